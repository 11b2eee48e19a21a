/* What hosts may ask a built program for by name: program-scope variables, and functions. */
#define _GNU_SOURCE
#include "kernel/program_symbols.h"

#include <stdlib.h>
#include <string.h>

#include "answers.h"

bool cld_program_symbols_take(struct cld_executable *executable, const struct cld_answer_executable *answer) {
    executable->variables = calloc((size_t)answer->variables_count + 1, sizeof *executable->variables);
    executable->functions = calloc((size_t)answer->functions_count + 1, sizeof *executable->functions);
    if (!executable->variables || !executable->functions)
        return false;
    for (; executable->variable_count < answer->variables_count; executable->variable_count++) {
        const struct cld_answer_variable *given = &answer->variables[executable->variable_count];
        if (given->size > executable->globals_size || given->offset > executable->globals_size - given->size)
            return false;
        struct cld_program_variable *variable = &executable->variables[executable->variable_count];
        *variable = (struct cld_program_variable){
            .name = strndup(given->name.data, given->name.size),
            .offset = given->offset,
            .size = given->size,
            .access = given->access,
        };
        if (!variable->name)
            return false;
    }
    for (; executable->function_count < answer->functions_count; executable->function_count++) {
        const struct cld_answer_function *given = &answer->functions[executable->function_count];
        struct cld_program_function *function = &executable->functions[executable->function_count];
        function->name = strndup(given->name.data, given->name.size);
        function->address = given->address;
        if (!function->name)
            return false;
    }
    return true;
}

void cld_program_symbols_free(struct cld_executable *executable) {
    for (uint32_t i = 0; i < executable->variable_count; i++)
        free(executable->variables[i].name);
    for (uint32_t i = 0; i < executable->function_count; i++)
        free(executable->functions[i].name);
    free(executable->variables);
    free(executable->functions);
}

const struct cld_program_variable *cld_executable_variable(const struct cld_executable *executable,
                                                           const char *name) {
    for (uint32_t i = 0; i < executable->variable_count; i++)
        if (!strcmp(executable->variables[i].name, name))
            return &executable->variables[i];
    return NULL;
}

const struct cld_program_function *cld_executable_function(const struct cld_executable *executable,
                                                           const char *name) {
    for (uint32_t i = 0; i < executable->function_count; i++)
        if (!strcmp(executable->functions[i].name, name))
            return &executable->functions[i];
    return NULL;
}
