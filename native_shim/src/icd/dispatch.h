/* What native_shim/gen/dispatch.py generates from the OpenCL headers. */
#ifndef CLD_DISPATCH_H
#define CLD_DISPATCH_H

#include <stdint.h>

/* The table that every handle starts with: the header's entries in its order, then padding. No NULLs. Not
 * const, for the two tags of cl_khr_icd 2.0. */
extern void *cld_dispatch[];
extern const unsigned cld_dispatch_slots; /* without the padding */
extern const unsigned cld_dispatch_slot_clGetPlatformIDs, cld_dispatch_slot_clUnloadCompiler;

/* The driver's own function of that name, core or extension, or NULL. */
void *cld_function(const char *name);

/* What does the same as an entry point, and keeps its arguments for the log meanwhile (object/call.h). */
void *cld_logged(void *function);

#endif
