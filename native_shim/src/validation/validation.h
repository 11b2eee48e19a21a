/* Validation of API use (CL_DRIVER_CHECK): what the specification leaves undefined, and what is left over at
 * exit. It sees calls from outside, before and after each (object/call.h); where it is off, nothing of it is
 * ever called.
 *
 * Nothing is reported that may be right: where the order of commands cannot be known (user events that are
 * not set, semaphores, native kernels, callbacks), commands count as ordered. */
#ifndef CLD_VALIDATION_H
#define CLD_VALIDATION_H

#include "memory/mem.h"
#include "object/call.h"

/* caller.c: where the program goes on after the call. */
const void *caller_in_program(const struct cld_call *call);

/* All below is called with one lock held (calls.c). */

/* A place in the host: the call, its number among all, its thread, the address that it returns to. */
struct place {
    char call[48];
    uint64_t number;
    int thread;
    const void *caller;
};

/* message.c. A message, once for each kind, place and object: `subject` is a number of what it is about. The
 * text begins with the call and ends with lines of further places. */
struct message {
    char bytes[2048];
    size_t size;
};
bool message_begin(struct message *message, const char *kind, const struct place *place, uint64_t subject);
void message_add(struct message *message, const char *format, ...) __attribute__((format(printf, 2, 3)));
void message_add_place(struct message *message, const char *what, const struct place *place);
void message_end(struct message *message);
struct message_text {
    char text[160];
};
struct message_text message_caller(const void *caller); /* "libm.so+0x123 (function)" */

/* objects.c: what the program has made, and still has or has released. */
/* A kernel's argument block has what a sampler says, and not which one it was. */
struct sampler_argument {
    struct sampler_argument *next;
    uint32_t index;
    uintptr_t handle;
};
struct known {
    struct known *next;
    uintptr_t handle;
    enum cld_kind kind; /* CLD_DEAD: shared virtual memory, unified shared memory */
    uint64_t number;    /* of all, from 1 */
    size_t size;
    char name[40];               /* of a kernel */
    struct place made, released; /* released.number is 0 while it lives */
    struct command *command;     /* of an event */
    struct use *uses;            /* of memory: memory_use.c */
    struct mapping *mappings;
    const uint8_t *shared; /* the host's memory of a buffer, CL_MEM_USE_HOST_PTR: host_memory.c */
    struct known *next_shared;
    uint64_t hash; /* of what it holds, while the host may not change it */
    bool has_hash;
    bool is_coarse; /* shared virtual memory that the host maps: shared_virtual.c */
    bool is_parent; /* other memory objects are made from it, and queries give its handle */
    struct sampler_argument *samplers; /* of a kernel */
    int users, user;                   /* of a kernel: calls that are in it, the thread of the last one */
    bool is_being_set;
};

struct known *object_find(uintptr_t handle);
struct known *object_find_memory(uintptr_t address, size_t size); /* shared virtual memory that overlaps */
struct known *object_find_freed(uintptr_t address);
struct known *object_made(uintptr_t handle, enum cld_kind kind, const struct place *place, size_t size);
void object_released(struct known *known, const struct place *place);
/* "a buffer of 64 bytes made by ..." in words of a message. */
void object_describe(struct message *message, const struct known *known);
/* The root of sub-buffers and images made from buffers. NULL: not known. */
struct known *object_root(const struct cld_mem *mem);
/* Each object that is alive; not for changes of the table. */
void object_each(void (*visit)(struct known *known, void *argument), void *argument);
/* Prints what the program has not released. */
void objects_report_left_over(void);

/* A chain is commands one behind the other; a clock has, of each chain,
 * the newest command that came before. */
enum { CHAINS = 64 };
struct clock {
    uint32_t at[CHAINS];
};
struct command {
    uint32_t holds;
    uint32_t chain, position; /* position 0: it counts as ordered with all */
    bool is_gated;            /* waits for what the host does later */
    struct clock clock;
    struct place place;
    char kernel[40];
};

/* command.c. Of the memory that commands use. */
enum use_kind { TRANSFER, KERNEL, UNKNOWN_PART, MAYBE_NONE };
struct use {
    struct use *next;
    uintptr_t start, end; /* in the memory object at the root, or addresses */
    bool writes;
    enum use_kind kind;
    struct command *command;
};
struct mapping {
    struct mapping *next;
    uintptr_t pointer;
    uintptr_t start, end;
    bool writes;
    struct place place;
};
extern struct clock command_host_knows; /* to have ended, on whatever thread */
void command_drop(struct command *command);
bool command_precedes(const struct command *first, const struct command *second);
/* Whether what was enqueued first may run at the same time as the second, or after it. */
bool command_races(const struct command *first, const struct command *second);
bool command_is_over(const struct command *command); /* and the host knows */
void use_drop(struct use **link);
void object_forget_uses(struct known *known);

/* order.c: what happens before what. */
struct command *command_enqueued(const struct cld_call *call, const struct place *place, bool is_blocking);
void order_after_call(const struct cld_call *call, cl_int status);
void order_event_made(uintptr_t handle, struct command *command);
void order_host_knows(const struct command *command);
void order_poll(void);
void order_before_call(const struct cld_call *call);

/* memory_use.c */
void memory_before_enqueue(const struct cld_call *call, const struct place *place);
void memory_after_enqueue(const struct cld_call *call, bool is_blocking, struct command *command);
void memory_freed(struct known *known, const struct place *place);
void memory_may_be_used(struct known *known, struct command *command);

/* arguments.c: what kernels are given. */
void arguments_before_launch(const struct cld_call *call, const struct place *place);
void arguments_after_call(const struct cld_call *call); /* clSetKernelArg, clCloneKernel that succeeded */

/* shared_virtual.c: coarse-grained shared virtual memory. */
void shared_virtual_made(struct known *known, uint64_t flags);
void shared_virtual_of_buffer(const struct cld_mem *mem);
void shared_virtual_before(const struct cld_call *call, const struct place *place);
void shared_virtual_after(const struct cld_call *call, struct command *command);

/* host_memory.c: what the host promises not to change. */
void host_memory_promise(const void *start, size_t size, struct command *command);
void host_memory_check(const struct clock *over);  /* before the host knows that these commands have ended */
void host_memory_forget(const struct clock *over); /* the host may learn it without us */
void host_memory_written(const void *start, size_t size); /* by a command */
/* Of buffers with CL_MEM_USE_HOST_PTR, and coarse-grained shared virtual memory: what the host promises not
 * to change without a mapping. */
void host_memory_share(struct known *known, const uint8_t *memory);
void host_memory_unshare(struct known *known);
void host_memory_check_shared(struct known *known, const struct place *place); /* before a command uses it */
void host_memory_settle(void);       /* the host has learned that commands have ended */
void host_memory_trust_nobody(void); /* commands may write anywhere */

/* call_words.c: an argument by its name; false if the call has none. */
bool call_value(const struct cld_call *call, const char *name, uintptr_t *value);
static inline uintptr_t call_word(const struct cld_call *call, const char *name) {
    uintptr_t value = 0;
    call_value(call, name, &value);
    return value;
}
bool call_is(const struct cld_call *call, const char *name);
bool call_begins(const struct cld_call *call, const char *prefix);

#endif
