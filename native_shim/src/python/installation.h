/* Where the Python of an installed package is: private to guest_config.c. */
#ifndef CLD_INSTALLATION_H
#define CLD_INSTALLATION_H

#include "python/guest.h"

/* Sets what cl_driver.conf leaves open: version, python, home, libpython, stdlib. False if there is none;
 * logged. */
bool cld_find_installation(struct cld_guest_config *config);

#endif
