/* Strings that packets refer to by number once the file has them (InternedData). */
#ifndef CLD_NAMES_H
#define CLD_NAMES_H

#include "trace/packet.h"

/* The fields of InternedData: names of events, of arguments, and texts that are values of arguments. */
enum { CLD_EVENT_NAME = 2, CLD_ARGUMENT_NAME = 3, CLD_TEXT = 29 };

/* The number of a string. One that is new is to be written into the packet at hand: cld_names_write. */
uint64_t cld_name(unsigned field, const char *text, size_t size);

/* Writes what is new into a packet, outside of its other messages. */
void cld_names_write(struct cld_packets *packets);

/* Forgets all: another process. */
void cld_names_clear(void);

#endif
