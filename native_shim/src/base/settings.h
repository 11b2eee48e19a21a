/* Environment variables. The table is cl_driver/settings.py. */
#ifndef CLD_SETTINGS_H
#define CLD_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/quirks.h"

enum cld_setting {
#define CLD_SETTING(name, type, default_text, choices) name##_SETTING,
#include "settings_table.h"
#undef CLD_SETTING
    CLD_SETTING_COUNT
};

/* Whether the environment is that of somebody with the rights of this process: not in set-user-ID programs,
 * nor in those with file capabilities, whatever they make of their user ids later. cl_driver/trust.py is
 * told. */
bool cld_is_trusted(void);

/* The row of cl_driver/device/quirks.toml for this program, unless the user turned that off. */
const struct cld_quirk *cld_quirk(void);

/* The environment variable's text; what the program's quirk says where it is unset, empty or malformed, else
 * the default. Never NULL, "" where neither says anything. Where the environment is not trusted every setting
 * has its default. Write the name in full: cld_setting(CL_DRIVER_LOG_SETTING). The environment is read at the
 * first call; what a program changes in it later counts no more. */
const char *cld_setting(enum cld_setting setting);

/* The same as a number, `otherwise` where there is none. */
int64_t cld_setting_int(enum cld_setting setting, int64_t otherwise);

/* True where the setting's text is that. */
bool cld_setting_is(enum cld_setting setting, const char *text);

#endif
