/* What is known of compiled kernels, and their code: held by whoever uses them, freed with the last hold. */
#include "kernel/executable.h"

#include <stdlib.h>

#include "kernel/program_symbols.h"
#include "kernel/variant.h"
#include "loader/load.h"
#include "object/mover.h"

void cld_executable_drop(struct cld_executable *executable) {
    if (!executable || atomic_fetch_sub(&executable->holds, 1) != 1)
        return;
    for (uint32_t i = 0; i < executable->code_count; i++)
        if (executable->code[i])
            cld_code_unload(executable->code[i]);
    free(executable->code);
    for (uint32_t i = 0; executable->blocks && i < executable->block_count; i++)
        cld_kernel_info_drop(executable->blocks[i]);
    free(executable->blocks);
    for (uint32_t i = 0; i < executable->name_count; i++)
        free(executable->names[i]);
    free(executable->names);
    cld_program_symbols_free(executable);
    free(executable->globals_memory);
    if (cld_mover())
        cld_mover()->executable_freed(executable);
    free(executable->options);
    free(executable->il);
    free(executable);
}

void cld_kernel_info_drop(struct cld_kernel_info *info) {
    if (!info || atomic_fetch_sub(&info->holds, 1) != 1)
        return;
    cld_variants_drop(info);
    free(info->history);
    if (!(info->flags & CLD_KERNEL_BLOCK))
        cld_executable_drop(info->executable);
    free(info->name);
    free(info->args);
    free(info->blocks);
    free(info->account);
    free(info->extents);
    free(info->works);
    free(info);
}
