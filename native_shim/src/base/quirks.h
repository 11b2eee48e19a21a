/* Programs that want settings of their own. The table is cl_driver/device/quirks.toml. */
#ifndef CLD_QUIRKS_H
#define CLD_QUIRKS_H

#include <stddef.h>

/* A row: its name, and lines of NAME=text. Both are "" for programs that want nothing. */
struct cld_quirk {
    const char *name, *settings;
};

/* The first row that is meant for this process, by its executable or by a library that is loaded now. */
struct cld_quirk cld_find_quirk(void);

/* Where a setting's text is in such lines, and its size; NULL if none names the setting. */
const char *cld_quirk_text(const char *settings, const char *name, size_t *size);

#endif
