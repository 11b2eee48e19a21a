/* Loads relocatable ELF objects made by cl_driver/jit: maps, relocates, resolves, protects. */
#ifndef CLD_LOAD_H
#define CLD_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cld_code;

/* Maps one object of this machine's architecture. The bytes are copied: they may go afterwards. Undefined
 * symbols are resolved from abi/code_symbols.def and from nowhere else. NULL on failure, with the reason in
 * error (cut to error_size, always terminated if error_size > 0). Malformed input is refused, never trusted:
 * every offset, size, index and relocation is checked before it is used. What cannot be checked is whether
 * the instructions themselves are benign. Any thread may call it. */
struct cld_code *cld_code_load(const void *object, size_t size, char *error, size_t error_size);

/* Says where a function is that abi/code_symbols.def has as provided. To be called by constructors. */
void cld_code_provide(const char *name, void *function);

/* The address of a defined global symbol; NULL if absent. */
void *cld_code_symbol(const struct cld_code *code, const char *name);

/* Code that looks whether it is to end looks at that word: cl_driver/codegen/llvm/emitter.py. Before it runs.
 */
void cld_code_set_terminated(struct cld_code *code, const _Atomic uint32_t *word);

/* An instruction as people know it. The file's name is not terminated; line: 0 if the object has none. */
struct cld_code_place {
    uint64_t offset; /* from the global symbol before it */
    const char *file;
    size_t file_size;
    uint32_t line;
};

/* Where an address of the code is; false for others. For handlers of signals, too. */
bool cld_code_find(const struct cld_code *code, const void *address, struct cld_code_place *place);

/* Unmaps. No thread may be inside the code. NULL is allowed. */
void cld_code_unload(struct cld_code *code);

#endif
