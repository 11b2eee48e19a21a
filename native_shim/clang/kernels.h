/* What the metadata of kernels says, which SPIR-V does not keep. */
#ifndef CLD_KERNELS_H
#define CLD_KERNELS_H

/* To be called before clang's first pass. */
struct module;
void cld_describe_kernels(struct module *module);

/* Adds that text to what is told of the program. Of resident.c. */
void cld_note_kernels(const char *text);

#endif
