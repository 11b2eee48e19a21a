/* printf of kernels, and their assertions. */
#ifndef CLD_PRINTF_H
#define CLD_PRINTF_H

#include <stddef.h>
#include <stdint.h>

struct cld_printf; /* what one launch has printed */

/* Who takes what kernels print; text is valid during the call. */
typedef void cld_print(void *data, const char *text, size_t size);

/* For one launch. print: NULL for the host's stdout. NULL when out of memory. */
struct cld_printf *cld_printf_new(cld_print *print, void *data);

/* Writes it there and frees it. NULL is ignored. */
void cld_printf_end(struct cld_printf *output);

/* What kernels call; see abi/kernel_abi.h for args. 0; -1 where there is no format. */
int32_t cld_printf(void *printf_buffer, const char *format, const uint8_t *args, uint32_t args_size);

/* Writes what the launch has printed, the message to stderr, and ends the process by abort(). */
int32_t cld_assert_fail(void *printf_buffer, const char *expression, const uint8_t *args, uint32_t args_size);

#endif
