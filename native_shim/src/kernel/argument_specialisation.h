/* Code for arguments that keep their values: integers by which addresses are computed, loops counted, divided
 * and so on (cl_driver/passes/lower/argument_values.py). Asked for once a kernel has run for a while with the
 * same values, tried against the code for all values when it is there, and kept where it is faster. Of images
 * and samplers the formats and bits are such values, too: a launch waits for code for these
 * (passes/lower/images.py).
 */
#ifndef CLD_ARGUMENT_SPECIALISATION_H
#define CLD_ARGUMENT_SPECIALISATION_H

#include "kernel/kernel.h"

struct cld_event;

/* What is known of the values that a kernel was launched with. Threads may lose one another's updates. */
struct cld_specialisation_history {
    bool now;                                           /* CL_DRIVER_VALUE_CODE */
    uint32_t of_images;                                 /* bits: the values that are formats and samplers */
    _Atomic uint64_t recent[CLD_MOST_SPECIALISABLE][2]; /* the last two that differ */
    _Atomic uint32_t changes[CLD_MOST_SPECIALISABLE];   /* how often there was another one */
    _Atomic uint32_t launches;                          /* all since the kernel's busy_time was `since` */
    _Atomic uint64_t since, wait;                       /* after `wait` more ns code may be asked for */
};

/* Makes a kernel's history, if it has arguments that matter, and if the settings allow. It is freed with the
 * kernel's info. */
void cld_specialisation_history_new(struct cld_kernel_info *info);

/* Whether launches of a kernel have a `wish`, or none, and not a `trial`. */
bool cld_specialisation_is_of_images(const struct cld_kernel_info *info);

/* Chooses code for the values of a launch's arguments in place of what was chosen for all values, if there is
 * any, and whether the launch is timed. Asks for code where there should be some. */
void cld_specialisation_choose(struct cld_event *command, const struct cld_kernel *kernel);

#endif
