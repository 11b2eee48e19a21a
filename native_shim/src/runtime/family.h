/* Kernels that kernels enqueue: children. A kernel is complete once it and all its children are (API
 * specification, 3.2.3), so it keeps what it holds, and what they point to, until then.
 *
 * A family is a kernel of which somebody may see that it is complete, because the host enqueued it or because
 * there is an event, and all that were enqueued by it, or by members that nobody sees. So the latter end as
 * soon as they have run, and a kernel may enqueue itself as often as it likes. */
#ifndef CLD_FAMILY_H
#define CLD_FAMILY_H

#include "runtime/command.h"

struct cld_family {
    struct cld_event *owner;
    _Atomic uint32_t open;  /* members that are not complete, the owner among them until it has run */
    _Atomic int32_t status; /* what the owner ends with, once it has run; errors of members count */
};

/* Before a kernel that enqueues is executed. */
void cld_family_begin(struct cld_event *command);

/* Adds a child to the family of the parent, or one that is made for it. False: no memory. */
bool cld_family_join(struct cld_event *parent, struct cld_event *child);

/* The child is to wait until its parent has run. */
void cld_family_await(struct cld_event *parent, struct cld_event *child);

/* A kernel that enqueues has run, or is not to be: its children may start. False: it is to be completed
 * later, by the last member of its family. */
bool cld_family_release(struct cld_event *parent, int32_t *status, struct cld_ready *ready);

/* Writes the times of a child, from its start to its end and to when it was complete with its own children,
 * once it is complete. */
void cld_family_capture_times(struct cld_event *child, uint64_t *values);

/* A child is complete, but nobody knows yet. */
void cld_family_tell_times(struct cld_event *child);

/* A member is complete, with that status. The owner if that is to be completed now, and with what. */
struct cld_event *cld_family_leave(struct cld_family *family, int32_t status, int32_t *owners);

#endif
