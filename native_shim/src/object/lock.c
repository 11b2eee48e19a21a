/* The mutexes that objects share. */
#include "object/lock.h"

#include "object/object.h"

enum { LOCKS = 64 };

static pthread_mutex_t locks[LOCKS] = {[0 ... LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER};

pthread_mutex_t *cld_lock_of(const void *object) {
    return &locks[(uintptr_t)object / CLD_SLOT_SIZE % LOCKS];
}

void cld_locks_take(void) {
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_lock(&locks[i]);
}

void cld_locks_release(void) {
    for (int i = LOCKS; i-- > 0;)
        pthread_mutex_unlock(&locks[i]);
}
