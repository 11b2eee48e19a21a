/* Blocks and what enqueues them are made calls that clang's SPIR-V back end can write. */
#ifndef CLD_BLOCKS_H
#define CLD_BLOCKS_H

#include "llvm_interface.h"

/* To be called before clang's first pass. */
void cld_name_blocks(Module module);

#endif
