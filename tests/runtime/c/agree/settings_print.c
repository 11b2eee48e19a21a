/* Prints every setting's text as C reads it. */
#include <stdio.h>

#include "base/settings.h"

int main(void) {
    for (int i = 0; i < CLD_SETTING_COUNT; i++)
        printf("%s=%lld\n", cld_setting((enum cld_setting)i),
               (long long)cld_setting_int((enum cld_setting)i, -1));
    return 0;
}
