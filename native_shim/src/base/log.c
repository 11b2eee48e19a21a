/* The log of those who ask for one: CL_DRIVER_LOG, CL_DRIVER_LOG_FILE. */
#define _GNU_SOURCE
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/settings.h"
#include "base/thread.h"

_Atomic int cld_log_level;

/* Where programs see another device than others do, that is the first thing to know. */
static void log_quirk(void) {
    const struct cld_quirk *quirk = cld_quirk();
    for (const char *line = quirk->settings; *line; line += strcspn(line, "\n") + 1) {
        int size = (int)strcspn(line, "\n");
        cld_log(1, "quirk %s: %.*s unless that variable is set; CL_DRIVER_QUIRKS=0 turns quirks off",
                quirk->name, size, line);
    }
}

__attribute__((constructor)) static void read_level(void) {
    cld_log_level = cld_setting_is(CL_DRIVER_LOG_SETTING, "calls")    ? 2
                    : cld_setting_is(CL_DRIVER_LOG_SETTING, "errors") ? 1
                                                                      : 0;
    log_quirk();
}

/* One write() per line: lines of several threads and processes do not mix, and nothing is lost in a crash.
 * The file is opened anew each time, because hosts close descriptors that they do not know. */
static void write_out(const char *text, size_t size) {
    const char *path = cld_setting(CL_DRIVER_LOG_FILE_SETTING);
    /* Without waiting: a FIFO may have no reader. */
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    int file = *path ? open(path, flags, 0600) : STDERR_FILENO;
    if (file >= 0) {
        ssize_t written = write(file, text, size);
        (void)written;
    }
    if (file > STDERR_FILENO)
        close(file);
}

void cld_log(int level, const char *format, ...) {
    if (level > cld_log_level)
        return;
    int error = errno;
    char line[1024];
    int size = snprintf(line, sizeof line, "cl_driver[%d]: ", (int)cld_thread_id());
    va_list args;
    va_start(args, format);
    int more = vsnprintf(line + size, sizeof line - (size_t)size - 1, format, args);
    va_end(args);
    size = more < 0 ? size : size + more;
    if (size > (int)sizeof line - 2)
        size = (int)sizeof line - 2;
    line[size++] = '\n';
    write_out(line, (size_t)size);
    errno = error;
}

void cld_log_text(const char *text, size_t size) {
    int error = errno;
    write_out(text, size);
    errno = error;
}
