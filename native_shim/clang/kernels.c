/* Names, type names and qualifiers of kernels' arguments, and the types of vec_type_hint: clang writes them
 * as metadata of LLVM IR, of which its SPIR-V back end keeps nothing (cl_driver/frontend/arguments.py).
 *
 * The text has fields, each with a CLD_CLANG_FIELD behind it: for each kernel its name, the number of its
 * arguments, for each of these the address space, access qualifier, type, type qualifiers and name, and the
 * type of its hint, "" for none, and whether that is signed. */
#define _GNU_SOURCE
#include "kernels.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llvm_interface.h"
#include "shared.h"

typedef struct context *Context;
typedef struct metadata *Metadata;
typedef struct entries *Entries;

#define FUNCTIONS(X)                                                                                         \
    X(Context, LLVMGetModuleContext, (Module))                                                               \
    X(Value, LLVMGetFirstFunction, (Module))                                                                 \
    X(Value, LLVMGetNextFunction, (Value))                                                                   \
    X(unsigned, LLVMGetFunctionCallConv, (Value))                                                            \
    X(int, LLVMIsDeclaration, (Value))                                                                       \
    X(const char *, LLVMGetValueName2, (Value, size_t *))                                                    \
    X(unsigned, LLVMGetMDKindIDInContext, (Context, const char *, unsigned))                                 \
    X(Entries, LLVMGlobalCopyAllMetadata, (Value, size_t *))                                                 \
    X(unsigned, LLVMValueMetadataEntriesGetKind, (Entries, unsigned))                                        \
    X(Metadata, LLVMValueMetadataEntriesGetMetadata, (Entries, unsigned))                                    \
    X(void, LLVMDisposeValueMetadataEntries, (Entries))                                                      \
    X(Value, LLVMMetadataAsValue, (Context, Metadata))                                                       \
    X(unsigned, LLVMGetMDNodeNumOperands, (Value))                                                           \
    X(void, LLVMGetMDNodeOperands, (Value, Value *))                                                         \
    X(const char *, LLVMGetMDString, (Value, unsigned *))                                                    \
    X(Value, LLVMIsAConstantInt, (Value))                                                                    \
    X(unsigned long long, LLVMConstIntGetZExtValue, (Value))                                                 \
    X(Type, LLVMTypeOf, (Value))                                                                             \
    X(char *, LLVMPrintTypeToString, (Type))                                                                 \
    X(void, LLVMDisposeMessage, (char *))

CLD_LLVM_FUNCTIONS(FUNCTIONS)

/* Of one kernel's metadata. Columns have an item for each argument, or none. */
enum { ADDRESS, ACCESS, TYPE, QUALIFIERS, NAME, COLUMNS, HINT = COLUMNS, NODES };
static const char *const names[NODES] = {"kernel_arg_addr_space", "kernel_arg_access_qual", "kernel_arg_type",
                                         "kernel_arg_type_qual",  "kernel_arg_name",        "vec_type_hint"};

struct node {
    Value *items;
    unsigned count;
};

static void put(FILE *out, const char *text, size_t size) {
    fwrite(text, 1, size, out);
    fputc(CLD_CLANG_FIELD, out);
}

static void put_number(FILE *out, unsigned long long number) {
    fprintf(out, "%llu%c", number, CLD_CLANG_FIELD);
}

static void put_item(FILE *out, struct node node, unsigned index) {
    unsigned size = 0;
    const char *text = "";
    Value item = index < node.count ? node.items[index] : NULL;
    if (item && llvm.LLVMIsAConstantInt(item)) {
        put_number(out, llvm.LLVMConstIntGetZExtValue(item));
        return;
    }
    if (item)
        text = llvm.LLVMGetMDString(item, &size);
    put(out, text ? text : "", text ? size : 0);
}

static struct node node_of(Context context, Metadata metadata) {
    Value value = llvm.LLVMMetadataAsValue(context, metadata);
    struct node node = {NULL, llvm.LLVMGetMDNodeNumOperands(value)};
    node.items = calloc(node.count + 1, sizeof *node.items);
    if (node.items)
        llvm.LLVMGetMDNodeOperands(value, node.items);
    else
        node.count = 0;
    return node;
}

static void describe(FILE *out, Context context, Value kernel, const unsigned *kinds) {
    struct node nodes[NODES] = {0};
    size_t count = 0, size = 0;
    Entries entries = llvm.LLVMGlobalCopyAllMetadata(kernel, &count);
    for (unsigned i = 0; i < count; i++)
        for (int n = 0; n < NODES; n++)
            if (llvm.LLVMValueMetadataEntriesGetKind(entries, i) == kinds[n] && !nodes[n].items)
                nodes[n] = node_of(context, llvm.LLVMValueMetadataEntriesGetMetadata(entries, i));
    if (entries)
        llvm.LLVMDisposeValueMetadataEntries(entries);
    const char *name = llvm.LLVMGetValueName2(kernel, &size);
    put(out, name, size);
    put_number(out, nodes[ADDRESS].count);
    for (unsigned i = 0; i < nodes[ADDRESS].count; i++)
        for (int n = 0; n < COLUMNS; n++)
            put_item(out, nodes[n], i);
    bool has_hint = nodes[HINT].count == 2 && nodes[HINT].items[0];
    char *type = has_hint ? llvm.LLVMPrintTypeToString(llvm.LLVMTypeOf(nodes[HINT].items[0])) : NULL;
    put(out, type ? type : "", type ? strlen(type) : 0);
    put_item(out, nodes[HINT], 1);
    if (type)
        llvm.LLVMDisposeMessage(type);
    for (int n = 0; n < NODES; n++)
        free(nodes[n].items);
}

void cld_describe_kernels(Module module) {
    char *text = NULL;
    size_t size;
    unsigned kinds[NODES];
    FILE *out = find_llvm() ? open_memstream(&text, &size) : NULL;
    if (!out)
        return;
    Context context = llvm.LLVMGetModuleContext(module);
    for (int n = 0; n < NODES; n++)
        kinds[n] = llvm.LLVMGetMDKindIDInContext(context, names[n], (unsigned)strlen(names[n]));
    for (Value f = llvm.LLVMGetFirstFunction(module); f; f = llvm.LLVMGetNextFunction(f))
        if (llvm.LLVMGetFunctionCallConv(f) == SPIR_KERNEL && !llvm.LLVMIsDeclaration(f))
            describe(out, context, f, kinds);
    if (!fclose(out))
        cld_note_kernels(text);
    free(text);
}
