/* clang makes a kernel of each block that a program enqueues, or asks a size of, and gives functions of its
 * own the kernel's address. Its SPIR-V back end has no addresses of functions, and crashes. So the kernel
 * becomes a part of the called function's name, behind a dot, and the size and the alignment of what the
 * block has captured two more arguments. cl_driver/spirv/blocks.py reads these names.
 *
 * A block begins with the address of its function, which nobody reads, for clang refuses parameters that are
 * blocks, and calls others by their names: it becomes NULL. That back end also fails of functions with events
 * in their names, and takes pointers for sizes in those that make nd-ranges: these get other names
 * (builtins/cl/ndrange.cl has the latter). */
#define _GNU_SOURCE
#include "blocks.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct context *Context;
typedef struct builder *Builder;

enum { SPIR_FUNC = 75 }; /* llvm::CallingConv::SPIR_FUNC */

#define FUNCTIONS(X)                                                                                         \
    X(Context, LLVMGetModuleContext, (Module))                                                               \
    X(Layout, LLVMGetModuleDataLayout, (Module))                                                             \
    X(Value, LLVMGetFirstFunction, (Module))                                                                 \
    X(Value, LLVMGetNextFunction, (Value))                                                                   \
    X(Value, LLVMGetNamedFunction, (Module, const char *))                                                   \
    X(Value, LLVMAddFunction, (Module, const char *, Type))                                                  \
    X(void, LLVMSetFunctionCallConv, (Value, unsigned))                                                      \
    X(void, LLVMDeleteFunction, (Value))                                                                     \
    X(const char *, LLVMGetValueName2, (Value, size_t *))                                                    \
    X(void, LLVMSetValueName2, (Value, const char *, size_t))                                                \
    X(Use, LLVMGetFirstUse, (Value))                                                                         \
    X(Use, LLVMGetNextUse, (Use))                                                                            \
    X(Value, LLVMGetUser, (Use))                                                                             \
    X(Value, LLVMIsAFunction, (Value))                                                                       \
    X(Value, LLVMIsACallInst, (Value))                                                                       \
    X(Value, LLVMIsAAllocaInst, (Value))                                                                     \
    X(Value, LLVMIsAGlobalVariable, (Value))                                                                 \
    X(Value, LLVMIsAAddrSpaceCastInst, (Value))                                                              \
    X(Value, LLVMIsAConstantExpr, (Value))                                                                   \
    X(unsigned, LLVMGetNumArgOperands, (Value))                                                              \
    X(Value, LLVMGetOperand, (Value, unsigned))                                                              \
    X(Type, LLVMTypeOf, (Value))                                                                             \
    X(Type, LLVMGetAllocatedType, (Value))                                                                   \
    X(Type, LLVMGlobalGetValueType, (Value))                                                                 \
    X(unsigned, LLVMGetAlignment, (Value))                                                                   \
    X(unsigned long long, LLVMABISizeOfType, (Layout, Type))                                                 \
    X(Type, LLVMFunctionType, (Type, Type *, unsigned, int))                                                 \
    X(Type, LLVMInt32TypeInContext, (Context))                                                               \
    X(Value, LLVMConstInt, (Type, unsigned long long, int))                                                  \
    X(Value, LLVMConstNull, (Type))                                                                          \
    X(void, LLVMReplaceAllUsesWith, (Value, Value))                                                          \
    X(Builder, LLVMCreateBuilderInContext, (Context))                                                        \
    X(void, LLVMPositionBuilderBefore, (Builder, Value))                                                     \
    X(Value, LLVMBuildCall2, (Builder, Type, Value, Value *, unsigned, const char *))                        \
    X(void, LLVMSetInstructionCallConv, (Value, unsigned))                                                   \
    X(void, LLVMInstructionEraseFromParent, (Value))                                                         \
    X(void, LLVMDisposeBuilder, (Builder))

CLD_LLVM_FUNCTIONS(FUNCTIONS)

enum { MOST_ARGUMENTS = 16 };

/* What clang calls, and the argument that is the block's kernel; the next one is the block. */
static const struct {
    const char *name;
    unsigned kernel;
} callees[] = {
    {"__enqueue_kernel_basic", 3},
    {"__enqueue_kernel_basic_events", 6},
    {"__enqueue_kernel_varargs", 3},
    {"__enqueue_kernel_events_varargs", 6},
    {"__get_kernel_work_group_size_impl", 0},
    {"__get_kernel_preferred_work_group_size_multiple_impl", 0},
    {"__get_kernel_sub_group_count_for_ndrange_impl", 1},
    {"__get_kernel_max_sub_group_size_for_ndrange_impl", 1},
};

/* Parts of names that the back end takes for something else, and what stands for them: as long. */
static const char *const others[][2] = {
    {"12ocl_clkevent", "12cld_clkevent"},
    {"9ocl_queue", "9cld_queue"},
};

#define NDRANGE "_Z10ndrange_"
#define OWN_NDRANGE "_Z14cld_ndrange_"

static Value without_casts(Value value) {
    while (llvm.LLVMIsAConstantExpr(value) || llvm.LLVMIsAAddrSpaceCastInst(value))
        value = llvm.LLVMGetOperand(value, 0);
    return value;
}

/* The bytes of what a block captures, and their alignment; false if that is not seen. */
static bool measure(Module module, Value block, uint64_t *size, unsigned *alignment) {
    block = without_casts(block);
    bool is_local = llvm.LLVMIsAAllocaInst(block);
    if (!is_local && !llvm.LLVMIsAGlobalVariable(block))
        return false;
    Type type = is_local ? llvm.LLVMGetAllocatedType(block) : llvm.LLVMGlobalGetValueType(block);
    *size = llvm.LLVMABISizeOfType(llvm.LLVMGetModuleDataLayout(module), type);
    *alignment = llvm.LLVMGetAlignment(block);
    return true;
}

/* Puts a call of a function that has the kernel's name in its own in the place of one. */
static void name_kernel(Module module, Value call, const char *callee, unsigned at) {
    unsigned count = llvm.LLVMGetNumArgOperands(call), alignment;
    uint64_t size;
    if (count < at + 2 || count + 1 > MOST_ARGUMENTS)
        return;
    Value kernel = without_casts(llvm.LLVMGetOperand(call, at));
    if (!llvm.LLVMIsAFunction(kernel) ||
        !measure(module, llvm.LLVMGetOperand(call, at + 1), &size, &alignment))
        return;
    Value arguments[MOST_ARGUMENTS];
    Type types[MOST_ARGUMENTS];
    unsigned made = 0;
    for (unsigned i = 0; i < count; i++)
        if (i != at)
            arguments[made++] = llvm.LLVMGetOperand(call, i);
    Context context = llvm.LLVMGetModuleContext(module);
    Type integer = llvm.LLVMInt32TypeInContext(context);
    arguments[made++] = llvm.LLVMConstInt(integer, size, 0);
    arguments[made++] = llvm.LLVMConstInt(integer, alignment, 0);
    for (unsigned i = 0; i < made; i++)
        types[i] = llvm.LLVMTypeOf(arguments[i]);
    Type type = llvm.LLVMFunctionType(llvm.LLVMTypeOf(call), types, made, 0);
    size_t length;
    char *name;
    if (asprintf(&name, "__cld%s.%s", callee, llvm.LLVMGetValueName2(kernel, &length)) < 0)
        return;
    Value function = llvm.LLVMGetNamedFunction(module, name);
    if (!function) {
        function = llvm.LLVMAddFunction(module, name, type);
        llvm.LLVMSetFunctionCallConv(function, SPIR_FUNC);
    }
    free(name);
    Builder builder = llvm.LLVMCreateBuilderInContext(context);
    llvm.LLVMPositionBuilderBefore(builder, call);
    Value other = llvm.LLVMBuildCall2(builder, type, function, arguments, made, "");
    llvm.LLVMDisposeBuilder(builder);
    llvm.LLVMSetInstructionCallConv(other, SPIR_FUNC);
    llvm.LLVMReplaceAllUsesWith(call, other);
    llvm.LLVMInstructionEraseFromParent(call);
}

static void name_kernels(Module module, Value function, const char *callee, unsigned at) {
    Use use = llvm.LLVMGetFirstUse(function);
    while (use) {
        Value user = llvm.LLVMGetUser(use);
        use = llvm.LLVMGetNextUse(use);
        if (llvm.LLVMIsACallInst(user))
            name_kernel(module, user, callee, at);
    }
    if (!llvm.LLVMGetFirstUse(function))
        llvm.LLVMDeleteFunction(function);
}

static bool is_of_block(Value function) {
    size_t length;
    return strstr(llvm.LLVMGetValueName2(function, &length), "_block_invoke") != NULL;
}

/* Pointers to functions in blocks. */
static void drop_addresses(Module module) {
    for (Value f = llvm.LLVMGetFirstFunction(module); f; f = llvm.LLVMGetNextFunction(f))
        for (Use use = is_of_block(f) ? llvm.LLVMGetFirstUse(f) : NULL, next; use; use = next) {
            next = llvm.LLVMGetNextUse(use);
            Value user = llvm.LLVMGetUser(use);
            if (llvm.LLVMIsAConstantExpr(user))
                llvm.LLVMReplaceAllUsesWith(user, llvm.LLVMConstNull(llvm.LLVMTypeOf(user)));
        }
}

static bool is_renamed(const char *name) {
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(name, others[i][0]))
            return true;
    return !strncmp(name, NDRANGE, strlen(NDRANGE));
}

/* Gives a function another name if the back end must not see its own. */
static void rename_function(Value function) {
    size_t length;
    const char *before = llvm.LLVMGetValueName2(function, &length);
    char *name;
    if (!is_renamed(before))
        return;
    bool is_range = !strncmp(before, NDRANGE, strlen(NDRANGE));
    if (asprintf(&name, "%s%s", is_range ? OWN_NDRANGE : "", before + (is_range ? strlen(NDRANGE) : 0)) < 0)
        return;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (char *at = name; (at = strstr(at, others[i][0]));)
            memcpy(at, others[i][1], strlen(others[i][1]));
    llvm.LLVMSetValueName2(function, name, strlen(name));
    free(name);
}

void cld_name_blocks(Module module) {
    if (!find_llvm())
        return;
    for (size_t i = 0; i < sizeof callees / sizeof *callees; i++) {
        Value function = llvm.LLVMGetNamedFunction(module, callees[i].name);
        if (function)
            name_kernels(module, function, callees[i].name, callees[i].kernel);
    }
    drop_addresses(module);
    for (Value f = llvm.LLVMGetFirstFunction(module); f; f = llvm.LLVMGetNextFunction(f))
        rename_function(f);
}
