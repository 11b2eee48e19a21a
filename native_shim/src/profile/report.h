/* What is written at the end: a table on stderr, or a file in JSON. */
#ifndef CLD_REPORT_H
#define CLD_REPORT_H

#include <stdbool.h>
#include <stdint.h>

/* The process begins, or a child after fork does. */
void cld_report_begin(bool is_child);

/* Threads that execute a command of some device. */
void cld_report_device(uint32_t threads);

/* Writes it, once. in_signal: from a handler; nothing is allocated and nothing measured then. */
void cld_report_write(bool in_signal);

#endif
