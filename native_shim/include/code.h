/* Loads relocatable ELF objects made by cl_driver/jit: maps, relocates, resolves, protects. */
#ifndef CLD_CODE_H
#define CLD_CODE_H

#include <stddef.h>

struct cld_code;

/* NULL on failure, with the reason in error. Malformed input is refused, never trusted. */
struct cld_code *cld_code_load(const void *object, size_t size, char *error, size_t error_size);
void *cld_code_symbol(const struct cld_code *code, const char *name); /* NULL if absent */
void cld_code_unload(struct cld_code *code);

#endif
