/* Functions that no kernel reaches are taken out of a program before clang optimises it. */
#ifndef CLD_REACHED_H
#define CLD_REACHED_H

#include <stdbool.h>

/* To be called before clang compiles a program with which nothing will be linked; or perhaps nothing: then
 * functions are taken out only if they are much, and cld_note_cut() is called. */
void cld_program_is_whole(bool perhaps);

/* Says that functions were taken out; false: it cannot be said. Of resident.c. */
bool cld_note_cut(void);

#endif
