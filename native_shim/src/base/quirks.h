/* Programs that want settings of their own. The table is cl_driver/device/quirks.toml. */
#ifndef CLD_QUIRKS_H
#define CLD_QUIRKS_H

#include <stddef.h>

/* The settings of the first row that is meant for this process, by its executable or by a library that is
 * loaded now: lines of NAME=text; "" if none is. */
const char *cld_find_quirk(void);

/* Where a setting's text is in such lines, and its size; NULL if none names the setting. */
const char *cld_quirk_text(const char *quirk, const char *name, size_t *size);

#endif
