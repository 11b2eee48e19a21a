/* Who is told of commands and calls. */
#include "object/observer.h"

#include <stdlib.h>

const struct cld_observer *cld_observers[CLD_MOST_OBSERVERS];

void cld_observe(const struct cld_observer *observer) {
    for (int i = 0; i < CLD_MOST_OBSERVERS; i++)
        if (!cld_observers[i]) {
            cld_observers[i] = observer;
            return;
        }
    abort(); /* one more than there is room for */
}
