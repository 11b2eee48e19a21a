/* clang's SPIR-V back end writes an instruction for each constituent of a table that is an array or a
 * structure, in more than proportional time, and fails of tables of more than 65,535 of them. So a large
 * table of these becomes one of integers with the same bytes when clang is about to run its back end.
 * Programs see no difference: pointers have no type in LLVM, and the back end converts them where they are
 * used.
 *
 * clang's libraries call LLVM's, so the call that runs the back end comes here (reached.c). */
#include "tables.h"

#include "llvm_interface.h"
#include "null_objects.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* llvm::legacy::PassManager::run(llvm::Module &) */
#define RUN_BACK_END _ZN4llvm6legacy11PassManager3runERNS_6ModuleE

enum {
    MOST_CONSTITUENTS = 4096, /* arrays and structures of a table that the back end gets as it is */
    MOST_BYTES = 256 << 20,
    WIDEST = 8, /* bytes of an integer */
};

enum kind { HALF = 1, FLOAT = 2, DOUBLE = 3, INTEGER = 8, STRUCTURE = 10, ARRAY = 11, VECTOR = 13 };
enum linkage { INTERNAL = 8, PRIVATE = 9 };

#define FUNCTIONS(X)                                                                                         \
    X(Layout, LLVMGetModuleDataLayout, (Module))                                                             \
    X(Value, LLVMGetFirstGlobal, (Module))                                                                   \
    X(Value, LLVMGetNextGlobal, (Value))                                                                     \
    X(Value, LLVMGetInitializer, (Value))                                                                    \
    X(void, LLVMSetInitializer, (Value, Value))                                                              \
    X(Type, LLVMTypeOf, (Value))                                                                             \
    X(int, LLVMGetTypeKind, (Type))                                                                          \
    X(unsigned, LLVMGetIntTypeWidth, (Type))                                                                 \
    X(Type, LLVMGetElementType, (Type))                                                                      \
    X(uint64_t, LLVMGetArrayLength2, (Type))                                                                 \
    X(unsigned, LLVMGetVectorSize, (Type))                                                                   \
    X(unsigned, LLVMCountStructElementTypes, (Type))                                                         \
    X(Type, LLVMStructGetTypeAtIndex, (Type, unsigned))                                                      \
    X(unsigned long long, LLVMOffsetOfElement, (Layout, Type, unsigned))                                     \
    X(unsigned long long, LLVMABISizeOfType, (Layout, Type))                                                 \
    X(unsigned, LLVMABIAlignmentOfType, (Layout, Type))                                                      \
    X(Type, LLVMIntTypeInContext, (void *, unsigned))                                                        \
    X(void *, LLVMGetTypeContext, (Type))                                                                    \
    X(Value, LLVMGetAggregateElement, (Value, unsigned))                                                     \
    X(int, LLVMIsNull, (Value))                                                                              \
    X(int, LLVMIsUndef, (Value))                                                                             \
    X(Value, LLVMConstBitCast, (Value, Type))                                                                \
    X(Value, LLVMIsAConstantInt, (Value))                                                                    \
    X(unsigned long long, LLVMConstIntGetZExtValue, (Value))                                                 \
    X(Value, LLVMConstInt, (Type, unsigned long long, int))                                                  \
    X(Value, LLVMConstArray2, (Type, Value *, uint64_t))                                                     \
    X(unsigned, LLVMGetPointerAddressSpace, (Type))                                                          \
    X(Value, LLVMAddGlobalInAddressSpace, (Module, Type, const char *, unsigned))                            \
    X(int, LLVMGetLinkage, (Value))                                                                          \
    X(void, LLVMSetLinkage, (Value, int))                                                                    \
    X(int, LLVMIsGlobalConstant, (Value))                                                                    \
    X(void, LLVMSetGlobalConstant, (Value, int))                                                             \
    X(unsigned, LLVMGetAlignment, (Value))                                                                   \
    X(void, LLVMSetAlignment, (Value, unsigned))                                                             \
    X(int, LLVMGetVisibility, (Value))                                                                       \
    X(void, LLVMSetVisibility, (Value, int))                                                                 \
    X(int, LLVMGetUnnamedAddress, (Value))                                                                   \
    X(void, LLVMSetUnnamedAddress, (Value, int))                                                             \
    X(const char *, LLVMGetValueName2, (Value, size_t *))                                                    \
    X(void, LLVMSetValueName2, (Value, const char *, size_t))                                                \
    X(void, LLVMReplaceAllUsesWith, (Value, Value))                                                          \
    X(void, LLVMDeleteGlobal, (Value))

CLD_LLVM_FUNCTIONS(FUNCTIONS)

static bool is_whole;

void cld_tables_are_whole(void) {
    is_whole = true;
}

/* Bits of a number that has the bytes of an integer; 0 for other types. */
static unsigned number_bits(Type type) {
    switch (llvm.LLVMGetTypeKind(type)) {
    case HALF:
        return 16;
    case FLOAT:
        return 32;
    case DOUBLE:
        return 64;
    case INTEGER: {
        unsigned bits = llvm.LLVMGetIntTypeWidth(type);
        return bits == 8 || bits == 16 || bits == 32 || bits == 64 ? bits : 0;
    }
    default:
        return 0;
    }
}

/* How many arrays and structures a value of this type consists of, itself among them; more than any table may
 * have if there is something in it that is no number. */
static uint64_t constituents(Type type) {
    const uint64_t never = UINT64_MAX;
    switch (llvm.LLVMGetTypeKind(type)) {
    case ARRAY: {
        uint64_t each = constituents(llvm.LLVMGetElementType(type)), count = llvm.LLVMGetArrayLength2(type);
        return each == never || (each && count > MOST_BYTES / each) ? never : 1 + each * count;
    }
    case STRUCTURE: {
        uint64_t sum = 1;
        for (unsigned i = 0; i < llvm.LLVMCountStructElementTypes(type); i++) {
            uint64_t each = constituents(llvm.LLVMStructGetTypeAtIndex(type, i));
            if (each == never)
                return never;
            sum += each;
        }
        return sum;
    }
    case VECTOR:
        return number_bits(llvm.LLVMGetElementType(type)) ? 1 : never;
    default:
        return number_bits(type) ? 0 : never;
    }
}

/* Writes the bytes of a constant over zeros; false where one is not known yet. */
static bool write(Layout layout, Value value, unsigned char *to) {
    if (llvm.LLVMIsNull(value) || llvm.LLVMIsUndef(value))
        return true;
    Type type = llvm.LLVMTypeOf(value);
    unsigned bits = number_bits(type);
    if (bits) {
        Type integer = llvm.LLVMIntTypeInContext(llvm.LLVMGetTypeContext(type), bits);
        Value number = llvm.LLVMConstBitCast(value, integer);
        if (!llvm.LLVMIsAConstantInt(number))
            return false;
        uint64_t word = llvm.LLVMConstIntGetZExtValue(number);
        for (unsigned i = 0; i < bits / 8; i++)
            to[i] = (unsigned char)(word >> 8 * i);
        return true;
    }
    int kind = llvm.LLVMGetTypeKind(type);
    uint64_t count = kind == STRUCTURE ? llvm.LLVMCountStructElementTypes(type)
                     : kind == VECTOR  ? llvm.LLVMGetVectorSize(type)
                                       : llvm.LLVMGetArrayLength2(type);
    uint64_t step = kind == STRUCTURE ? 0 : llvm.LLVMABISizeOfType(layout, llvm.LLVMGetElementType(type));
    for (unsigned i = 0; i < count; i++) {
        uint64_t offset = kind == STRUCTURE ? llvm.LLVMOffsetOfElement(layout, type, i) : i * step;
        Value element = llvm.LLVMGetAggregateElement(value, i);
        if (!element || !write(layout, element, to + offset))
            return false;
    }
    return true;
}

/* The bytes of a constant as integers of `width` bytes; NULL where they cannot be had. */
static Value integers(Layout layout, Value value, uint64_t size, unsigned width) {
    Type type = llvm.LLVMTypeOf(value);
    unsigned char *bytes = calloc(size, 1);
    Value *numbers = malloc(size / width * sizeof *numbers), table = NULL;
    if (bytes && numbers && write(layout, value, bytes)) {
        Type integer = llvm.LLVMIntTypeInContext(llvm.LLVMGetTypeContext(type), 8 * width);
        for (uint64_t i = 0; i < size / width; i++) {
            uint64_t word = 0;
            for (unsigned k = 0; k < width; k++)
                word |= (uint64_t)bytes[i * width + k] << 8 * k;
            numbers[i] = llvm.LLVMConstInt(integer, word, 0);
        }
        table = llvm.LLVMConstArray2(integer, numbers, size / width);
    }
    free(bytes);
    free(numbers);
    return table;
}

/* What the back end gets in place of the initial value of a variable; NULL for the value itself. */
static Value flat_table(Layout layout, Value global) {
    Value value = llvm.LLVMGetInitializer(global);
    int linkage = llvm.LLVMGetLinkage(global);
    if (!value || llvm.LLVMIsNull(value) || llvm.LLVMIsUndef(value))
        return NULL;
    if (!is_whole && linkage != INTERNAL && linkage != PRIVATE)
        return NULL; /* another module may say what type it has */
    Type type = llvm.LLVMTypeOf(value);
    uint64_t count = constituents(type);
    if (count <= MOST_CONSTITUENTS || count == UINT64_MAX)
        return NULL;
    uint64_t size = llvm.LLVMABISizeOfType(layout, type);
    unsigned width = llvm.LLVMABIAlignmentOfType(layout, type);
    width = width < WIDEST ? width : WIDEST;
    return size > MOST_BYTES ? NULL : integers(layout, value, size, width);
}

static void replace(Module module, Layout layout, Value global, Value table) {
    unsigned space = llvm.LLVMGetPointerAddressSpace(llvm.LLVMTypeOf(global));
    Value flat = llvm.LLVMAddGlobalInAddressSpace(module, llvm.LLVMTypeOf(table), "", space);
    unsigned alignment = llvm.LLVMGetAlignment(global);
    if (!alignment)
        alignment = llvm.LLVMABIAlignmentOfType(layout, llvm.LLVMTypeOf(llvm.LLVMGetInitializer(global)));
    llvm.LLVMSetInitializer(flat, table);
    llvm.LLVMSetAlignment(flat, alignment);
    llvm.LLVMSetLinkage(flat, llvm.LLVMGetLinkage(global));
    llvm.LLVMSetVisibility(flat, llvm.LLVMGetVisibility(global));
    llvm.LLVMSetUnnamedAddress(flat, llvm.LLVMGetUnnamedAddress(global));
    llvm.LLVMSetGlobalConstant(flat, llvm.LLVMIsGlobalConstant(global));
    size_t length = 0;
    const char *name = llvm.LLVMGetValueName2(global, &length);
    char *kept = malloc(length + 1);
    if (kept) {
        memcpy(kept, name, length);
        llvm.LLVMSetValueName2(global, "", 0);
        llvm.LLVMSetValueName2(flat, kept, length);
        free(kept);
    }
    llvm.LLVMReplaceAllUsesWith(global, flat);
    llvm.LLVMDeleteGlobal(global);
}

static void flatten_tables(Module module) {
    Layout layout = llvm.LLVMGetModuleDataLayout(module);
    for (Value global = llvm.LLVMGetFirstGlobal(module), next; global; global = next) {
        next = llvm.LLVMGetNextGlobal(global);
        Value table = flat_table(layout, global);
        if (table)
            replace(module, layout, global, table);
    }
}

typedef bool run_back_end(void *, Module);

PUBLIC bool RUN_BACK_END(void *manager, Module module) {
    static run_back_end *real;
    if (!real)
        real = (run_back_end *)dlsym(RTLD_NEXT, TEXT(RUN_BACK_END));
    if (find_llvm())
        flatten_tables(module);
    cld_load_null_objects(module);
    return real(manager, module);
}
