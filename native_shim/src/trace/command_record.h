/* What the records of commands and calls have in them. */
#ifndef CLD_COMMAND_RECORD_H
#define CLD_COMMAND_RECORD_H

#include <stdint.h>

/* CLD_RECORD_QUEUED begins so. After it: how many bytes the kernel's name has, the name, in whole words; how
 * many commands it waits for, and the ids of these. */
struct cld_command_record {
    uint64_t id;
    uint64_t queue; /* its address */
    uint64_t properties;
    uint32_t is_node, has_event;
    uint64_t bytes;     /* that it copies or fills */
    uint64_t mem_bytes; /* of the memory objects that it holds */
    uint64_t dimensions;
    uint64_t global_size[3], local_size[3];
};

/* CLD_RECORD_ELSEWHERE, whose time is the start: the command's id, the worker's number, the address of its
 * name, the end. */
struct cld_elsewhere_record {
    uint64_t id, number, name, end;
};

/* CLD_RECORD_CALL: the form of the call (gen/calls.py), then each argument's value. CLD_RECORD_RETURN: the
 * form, the result, and for each pointer of these letters that is not NULL the number of the argument, its
 * value, and what lies behind it, as a name above, or CLD_NOT_READ. */
#define CLD_POINTED "szldf"
#define CLD_NOT_READ UINT64_MAX
enum { CLD_MOST_TEXT = 120, CLD_MOST_PROPERTIES = 16 };

#endif
