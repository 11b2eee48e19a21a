/* Large tables of arrays or structures are made tables of integers before clang writes SPIR-V of them. */
#ifndef CLD_TABLES_H
#define CLD_TABLES_H

/* To be called before clang writes SPIR-V of a program with which nothing will be linked. */
void cld_tables_are_whole(void);

#endif
