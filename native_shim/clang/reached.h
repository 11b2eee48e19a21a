/* Functions that no kernel reaches are taken out of a program before clang optimises it. */
#ifndef CLD_REACHED_H
#define CLD_REACHED_H

/* To be called before clang compiles a program with which nothing will be linked. */
void cld_program_is_whole(void);

#endif
