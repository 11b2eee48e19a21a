/* LLVM's C interface and C++ names, as far as clang has them loaded. LLVM's headers are of one version; its C
 * interface is the same in all, so a file lists what it calls, as X(result, name, parameters), and
 * CLD_LLVM_FUNCTIONS(list) makes `llvm`, of pointers to these functions, and find_llvm(), which is false if
 * one of them is not there. */
#ifndef CLD_LLVM_INTERFACE_H
#define CLD_LLVM_INTERFACE_H

#include <dlfcn.h>
#include <stdbool.h>

typedef struct module *Module;
typedef struct value *Value;
typedef struct use *Use;
typedef struct block *Block;
typedef struct type *Type;
typedef struct layout *Layout;

enum { SPIR_KERNEL = 76 }; /* llvm::CallingConv::SPIR_KERNEL */

#define CLD_LLVM_MEMBER(result, name, parameters) result(*name) parameters;
#define CLD_LLVM_FIND(result, name, parameters)                                                              \
    llvm.name = (result(*) parameters)dlsym(RTLD_DEFAULT, #name);                                            \
    if (!llvm.name)                                                                                          \
        return false;
#define CLD_LLVM_FUNCTIONS(FUNCTIONS)                                                                        \
    static struct {                                                                                          \
        FUNCTIONS(CLD_LLVM_MEMBER)                                                                           \
    } llvm;                                                                                                  \
    static bool find_llvm(void) {                                                                            \
        FUNCTIONS(CLD_LLVM_FIND)                                                                             \
        return true;                                                                                         \
    }

/* For functions of clang's libraries that this library defines in their place. */
#define PUBLIC __attribute__((visibility("default")))
#define TEXT(name) TEXT_OF(name)
#define TEXT_OF(name) #name

#endif
