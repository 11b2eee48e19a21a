/* Whether there is somebody who moves memory objects. */
#include "object/mover.h"

_Atomic(const struct cld_mover *) cld_mover_table;
