/* What failed and why, for those who ask (CL_DRIVER_LOG). Never prints otherwise. */
#ifndef CLD_LOG_H
#define CLD_LOG_H

#include <stdbool.h>
#include <stddef.h>

extern _Atomic int cld_log_level; /* 0 off, 1 failed checks and errors, 2 every call */

/* Writes a line, if level is at most cld_log_level. Leaves errno as it is. */
void cld_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes a text as it is to where the log goes, whatever the level. */
void cld_log_text(const char *text, size_t size);

#endif
