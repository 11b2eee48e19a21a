/* Reads messages of the door with the C codec and writes them again. stdin and stdout: u32 size, message; an
 * answer of size 0xffffffff means that the message was refused. */
#include <stdio.h>
#include <stdlib.h>

#include "base/codec.h"

static void copy(struct cld_msg *from, struct cld_msg *to, unsigned depth) {
    if (from->failed || depth > 1000) {
        from->failed = true;
        return;
    }
    size_t size;
    switch (from->at < from->size ? from->data[from->at] : 0) {
    case 'i':
        cld_put_int(to, cld_get_int(from));
        return;
    case 'b': {
        const void *bytes = cld_get_bytes(from, &size);
        if (!from->failed)
            cld_put_bytes(to, bytes, size);
        return;
    }
    case 'l': {
        uint32_t count = cld_get_list(from);
        cld_put_list(to, count);
        for (uint32_t i = 0; i < count && !from->failed; i++)
            copy(from, to, depth + 1);
        return;
    }
    default:
        if (!cld_get_none(from))
            from->failed = true;
        else
            cld_put_none(to);
    }
}

int main(void) {
    uint32_t size;
    while (fread(&size, sizeof size, 1, stdin) == 1) {
        struct cld_msg request, answer;
        cld_msg_init(&request);
        cld_msg_init(&answer);
        /* Exactly as large as the message, so that a sanitizer sees a read past its end. */
        request.data = malloc(size ? size : 1);
        request.size = request.capacity = size;
        if (!request.data || fread(request.data, 1, size, stdin) != size)
            return 1;
        while (request.at < request.size && !request.failed)
            copy(&request, &answer, 0);
        uint32_t written = request.failed || answer.failed ? UINT32_MAX : (uint32_t)answer.size;
        fwrite(&written, sizeof written, 1, stdout);
        if (written != UINT32_MAX && written)
            fwrite(answer.data, 1, written, stdout);
        cld_msg_free(&request);
        cld_msg_free(&answer);
    }
    return 0;
}
