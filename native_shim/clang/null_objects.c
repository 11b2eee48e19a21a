/* A program may set an event_t or a queue_t to 0, and clang's passes may make that an operand of a phi, a
 * select or a return. clang's SPIR-V back end knows such a constant only where it is stored or passed to a
 * function, and crashes elsewhere. So a function that has it elsewhere stores it to a variable of its own and
 * uses what it loads from there, which cl_driver/passes/ make a constant again. */
#include "null_objects.h"

#include <stddef.h>

typedef struct builder *Builder;

enum { TARGET_TYPE = 20 }; /* LLVMTargetExtTypeKind */

#define FUNCTIONS(X)                                                                                         \
    X(void *, LLVMGetModuleContext, (Module))                                                                \
    X(Value, LLVMGetFirstFunction, (Module))                                                                 \
    X(Value, LLVMGetNextFunction, (Value))                                                                   \
    X(Block, LLVMGetFirstBasicBlock, (Value))                                                                \
    X(Block, LLVMGetNextBasicBlock, (Block))                                                                 \
    X(Value, LLVMGetFirstInstruction, (Block))                                                               \
    X(Value, LLVMGetNextInstruction, (Value))                                                                \
    X(Value, LLVMIsACallInst, (Value))                                                                       \
    X(Value, LLVMIsAStoreInst, (Value))                                                                      \
    X(int, LLVMGetNumOperands, (Value))                                                                      \
    X(Value, LLVMGetOperand, (Value, unsigned))                                                              \
    X(void, LLVMSetOperand, (Value, unsigned, Value))                                                        \
    X(Type, LLVMTypeOf, (Value))                                                                             \
    X(int, LLVMGetTypeKind, (Type))                                                                          \
    X(int, LLVMIsConstant, (Value))                                                                          \
    X(Value, LLVMConstNull, (Type))                                                                          \
    X(Builder, LLVMCreateBuilderInContext, (void *))                                                         \
    X(void, LLVMPositionBuilderBefore, (Builder, Value))                                                     \
    X(Value, LLVMBuildAlloca, (Builder, Type, const char *))                                                 \
    X(Value, LLVMBuildStore, (Builder, Value, Value))                                                        \
    X(Value, LLVMBuildLoad2, (Builder, Type, Value, const char *))                                           \
    X(void, LLVMDisposeBuilder, (Builder))

CLD_LLVM_FUNCTIONS(FUNCTIONS)

enum { MOST_TYPES = 8 }; /* SPIR-V has fewer that may be null */

/* What one function has loaded, by type. */
struct nulls {
    Builder builder;
    Value function;
    unsigned count;
    Value values[MOST_TYPES];
};

/* The null object of a type, loaded where the function begins; NULL if it has too many types. */
static Value loaded_null(struct nulls *nulls, Value constant) {
    Type type = llvm.LLVMTypeOf(constant);
    for (unsigned i = 0; i < nulls->count; i++)
        if (llvm.LLVMTypeOf(nulls->values[i]) == type)
            return nulls->values[i];
    if (nulls->count == MOST_TYPES)
        return NULL;
    Block entry = llvm.LLVMGetFirstBasicBlock(nulls->function);
    llvm.LLVMPositionBuilderBefore(nulls->builder, llvm.LLVMGetFirstInstruction(entry));
    Value variable = llvm.LLVMBuildAlloca(nulls->builder, type, "");
    llvm.LLVMBuildStore(nulls->builder, llvm.LLVMConstNull(type), variable);
    return nulls->values[nulls->count++] = llvm.LLVMBuildLoad2(nulls->builder, type, variable, "");
}

/* Whether an operand is a null object, or an undefined one, which may as well be null. */
static bool is_null_object(Value operand) {
    return llvm.LLVMGetTypeKind(llvm.LLVMTypeOf(operand)) == TARGET_TYPE && llvm.LLVMIsConstant(operand);
}

static void load_nulls(struct nulls *nulls, Value instruction) {
    if (llvm.LLVMIsACallInst(instruction) || llvm.LLVMIsAStoreInst(instruction))
        return;
    for (unsigned i = 0; i < (unsigned)llvm.LLVMGetNumOperands(instruction); i++) {
        Value operand = llvm.LLVMGetOperand(instruction, i);
        Value null = is_null_object(operand) ? loaded_null(nulls, operand) : NULL;
        if (null)
            llvm.LLVMSetOperand(instruction, i, null);
    }
}

void cld_load_null_objects(Module module) {
    if (!find_llvm())
        return;
    struct nulls nulls = {.builder = llvm.LLVMCreateBuilderInContext(llvm.LLVMGetModuleContext(module))};
    for (Value f = llvm.LLVMGetFirstFunction(module); f; f = llvm.LLVMGetNextFunction(f)) {
        nulls.function = f;
        nulls.count = 0;
        for (Block block = llvm.LLVMGetFirstBasicBlock(f); block; block = llvm.LLVMGetNextBasicBlock(block))
            for (Value i = llvm.LLVMGetFirstInstruction(block); i; i = llvm.LLVMGetNextInstruction(i))
                load_nulls(&nulls, i);
    }
    llvm.LLVMDisposeBuilder(nulls.builder);
}
