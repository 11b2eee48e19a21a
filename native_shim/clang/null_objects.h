/* Null events and queues are made values that clang's SPIR-V back end can write. */
#ifndef CLD_NULL_OBJECTS_H
#define CLD_NULL_OBJECTS_H

#include "llvm_interface.h"

/* To be called before clang writes SPIR-V of a program. */
void cld_load_null_objects(Module module);

#endif
