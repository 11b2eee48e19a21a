/* Reads answers of program_executable: from stdin, each a uint32 size and so many bytes. Writes a byte for
 * each: 'y', or 'n' where it is refused. Each message is in a block of just its size. */
#include <stdio.h>
#include <stdlib.h>

#include "answers.h"

int main(void) {
    uint32_t size;
    while (fread(&size, sizeof size, 1, stdin) == 1) {
        struct cld_msg msg;
        struct cld_answer_executables answer;
        cld_msg_init(&msg);
        msg.data = malloc(size ? size : 1);
        msg.size = msg.capacity = size;
        if (fread(msg.data, 1, size, stdin) != size)
            return 1;
        putchar(cld_answer_executables_read(&msg, &answer) ? 'y' : 'n');
        cld_answer_executables_free(&answer);
        cld_msg_free(&msg);
    }
    return 0;
}
