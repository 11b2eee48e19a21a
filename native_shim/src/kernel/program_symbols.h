/* What hosts may ask a built program for by name: program-scope variables, and functions. */
#ifndef CLD_PROGRAM_SYMBOLS_H
#define CLD_PROGRAM_SYMBOLS_H

#include "kernel/kernel.h"

struct cld_answer_executable; /* answers.h */

/* What they may do with a variable: bits. */
enum cld_host_access { CLD_HOST_READS = 1, CLD_HOST_WRITES = 2 };

struct cld_program_variable {
    char *name;
    uint64_t offset; /* in the executable's globals */
    uint64_t size;
    uint8_t access; /* enum cld_host_access */
};

struct cld_program_function {
    char *name;
    uint64_t address; /* what kernels take for a pointer to it */
};

/* The executable, whose globals are there, gets those of the answer. False if it is malformed or memory is
 * out. */
bool cld_program_symbols_take(struct cld_executable *executable, const struct cld_answer_executable *answer);
void cld_program_symbols_free(struct cld_executable *executable);

/* NULL: it has none of that name. */
const struct cld_program_variable *cld_executable_variable(const struct cld_executable *executable,
                                                           const char *name);
const struct cld_program_function *cld_executable_function(const struct cld_executable *executable,
                                                           const char *name);

#endif
