/* printf of kernels. */
#ifndef CLD_PRINTF_H
#define CLD_PRINTF_H

#include <stdint.h>

struct cld_printf; /* what one launch has printed */

/* For one launch. NULL when out of memory. */
struct cld_printf *cld_printf_new(void);

/* Writes it to the host's stdout and frees it. NULL is ignored. */
void cld_printf_end(struct cld_printf *output);

/* What kernels call; see abi/kernel_abi.h for args. */
void cld_printf(void *printf_buffer, const char *format, const uint8_t *args, uint32_t args_size);

#endif
