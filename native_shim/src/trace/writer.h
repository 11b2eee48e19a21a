/* The trace's file, and what empties the threads' buffers into it: a thread of low priority, whoever finds
 * its buffer full, and the end of the process. */
#ifndef CLD_WRITER_H
#define CLD_WRITER_H

#include <stdint.h>

struct cld_ring;

/* Opens the file: a name in which %p stands for the number of the process. At load. */
void cld_writer_open(const char *path);

void cld_writer_add(struct cld_ring *ring);

/* Empties all buffers. */
void cld_writer_drain(void);

/* There are records. Wakes the thread if it sleeps. */
void cld_writer_call(void);

/* So many records that the file will not have. */
void cld_writer_lose(uint64_t count);

#endif
