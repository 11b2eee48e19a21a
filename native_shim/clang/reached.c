/* A function that is not static could be what a later link looks for, so clang optimises it and writes SPIR-V
 * of it, which is most of its time for a program with a large library in front of its kernels. Where nothing
 * will be linked, functions that no kernel reaches are taken out when clang is about to run its first pass;
 * and where perhaps nothing will, if they are much: if something is linked after all, the program is compiled
 * again. A function that is defined nowhere stays named, in the smallest function that names it: the link
 * says that it is missing. What stays and is no kernel is as if it were static.
 *
 * clang's libraries call LLVM's, where the passes and LLVM's C interface are, so the first call comes here. A
 * clang that is one file, or an LLVM that has other names, never calls, and optimises everything. */
#include "reached.h"

#include "blocks.h"
#include "kernels.h"
#include "llvm_interface.h"
#include "tables.h"

#include <stddef.h>
#include <stdlib.h>

/* llvm::PassManager<llvm::Module>::run(llvm::Module &, llvm::AnalysisManager<llvm::Module> &) */
#define RUN_PASSES _ZN4llvm11PassManagerINS_6ModuleENS_15AnalysisManagerIS1_JEEEJEE3runERS1_RS3_

#define FUNCTIONS(X)                                                                                         \
    X(Value, LLVMGetFirstFunction, (Module))                                                                 \
    X(Value, LLVMGetNextFunction, (Value))                                                                   \
    X(unsigned, LLVMGetFunctionCallConv, (Value))                                                            \
    X(unsigned, LLVMGetIntrinsicID, (Value))                                                                 \
    X(int, LLVMIsDeclaration, (Value))                                                                       \
    X(Use, LLVMGetFirstUse, (Value))                                                                         \
    X(Use, LLVMGetNextUse, (Use))                                                                            \
    X(Value, LLVMGetUser, (Use))                                                                             \
    X(Value, LLVMIsAInstruction, (Value))                                                                    \
    X(Value, LLVMIsAConstantExpr, (Value))                                                                   \
    X(Block, LLVMGetInstructionParent, (Value))                                                              \
    X(Value, LLVMGetBasicBlockParent, (Block))                                                               \
    X(Block, LLVMGetFirstBasicBlock, (Value))                                                                \
    X(Block, LLVMGetNextBasicBlock, (Block))                                                                 \
    X(Value, LLVMGetFirstInstruction, (Block))                                                               \
    X(Value, LLVMGetNextInstruction, (Value))                                                                \
    X(Type, LLVMTypeOf, (Value))                                                                             \
    X(int, LLVMGetLinkage, (Value))                                                                          \
    X(void, LLVMSetLinkage, (Value, int))                                                                    \
    X(Value, LLVMGetPoison, (Type))                                                                          \
    X(void, LLVMReplaceAllUsesWith, (Value, Value))                                                          \
    X(void, LLVMDeleteFunction, (Value))

CLD_LLVM_FUNCTIONS(FUNCTIONS)

static bool is_whole, is_perhaps, has_begun;

/* Instructions, before any pass, that are much: clang takes about a second for them. */
enum { MUCH = 30000 };

enum { EXTERNAL = 0, INTERNAL = 8 }; /* LLVMLinkage */

void cld_program_is_whole(bool perhaps) {
    is_whole = true;
    is_perhaps = perhaps;
    if (!perhaps)
        cld_tables_are_whole();
}

struct function {
    Value value;
    size_t first_name; /* of what it names */
    size_t size;       /* instructions */
    bool is_declared, is_kept, is_reached;
};

struct edge {
    size_t user, named, next;
};

static const size_t NONE = (size_t)-1;

static struct {
    struct function *functions;
    size_t count;
    struct edge *edges;
    size_t edge_count, edge_space;
    size_t *pending, pending_count;
} program;

static int by_value(const void *a, const void *b) {
    const struct function *x = a, *y = b;
    return x->value < y->value ? -1 : x->value > y->value;
}

static int by_size(const void *a, const void *b) {
    const struct function *x = &program.functions[*(const size_t *)a],
                          *y = &program.functions[*(const size_t *)b];
    return x->size < y->size ? -1 : x->size > y->size;
}

static void keep(size_t index) {
    if (!program.functions[index].is_kept) {
        program.functions[index].is_kept = true;
        program.pending[program.pending_count++] = index;
    }
}

/* Keeps what is named by what has been kept. */
static void reach(void) {
    while (program.pending_count) {
        size_t edge = program.functions[program.pending[--program.pending_count]].first_name;
        for (; edge != NONE; edge = program.edges[edge].next)
            keep(program.edges[edge].named);
    }
}

static bool add_edge(size_t user, size_t named) {
    if (program.edge_count == program.edge_space) {
        size_t space = program.edge_space ? 2 * program.edge_space : 1024;
        struct edge *more = realloc(program.edges, space * sizeof *more);
        if (!more)
            return false;
        program.edges = more;
        program.edge_space = space;
    }
    program.edges[program.edge_count] = (struct edge){user, named, program.functions[user].first_name};
    program.functions[user].first_name = program.edge_count++;
    return true;
}

/* Notes which functions name this one, by themselves or in an expression; what a variable names stays. */
static bool add_users(Value value, size_t named) {
    for (Use use = llvm.LLVMGetFirstUse(value); use; use = llvm.LLVMGetNextUse(use)) {
        Value user = llvm.LLVMGetUser(use);
        if (llvm.LLVMIsAInstruction(user)) {
            struct function key = {.value =
                                       llvm.LLVMGetBasicBlockParent(llvm.LLVMGetInstructionParent(user))};
            struct function *found = bsearch(&key, program.functions, program.count, sizeof key, by_value);
            if (!found || !add_edge((size_t)(found - program.functions), named))
                return false;
        } else if (llvm.LLVMIsAConstantExpr(user)) {
            if (!add_users(user, named))
                return false;
        } else {
            keep(named);
        }
    }
    return true;
}

static size_t size_of(Value function) {
    size_t size = 0;
    for (Block block = llvm.LLVMGetFirstBasicBlock(function); block;
         block = llvm.LLVMGetNextBasicBlock(block))
        for (Value i = llvm.LLVMGetFirstInstruction(block); i; i = llvm.LLVMGetNextInstruction(i))
            size++;
    return size;
}

/* Keeps the smallest functions that name what is defined nowhere, and would not be named any more. */
static bool keep_what_is_missing(void) {
    size_t *order = malloc(program.count * sizeof *order), count = 0;
    if (!order)
        return false;
    for (size_t i = 0; i < program.count; i++)
        if (!program.functions[i].is_kept && !program.functions[i].is_declared) {
            program.functions[i].size = size_of(program.functions[i].value);
            order[count++] = i;
        }
    qsort(order, count, sizeof *order, by_size);
    for (size_t i = 0; i < count; i++) {
        size_t edge = program.functions[order[i]].first_name;
        for (; edge != NONE; edge = program.edges[edge].next) {
            const struct function *named = &program.functions[program.edges[edge].named];
            if (named->is_declared && !named->is_kept)
                break;
        }
        if (edge != NONE)
            keep(order[i]);
        reach();
    }
    free(order);
    return true;
}

/* Decides what stays; false where there is no kernel, or no memory. */
static bool look(Module module) {
    size_t count = 0;
    bool has_kernel = false;
    for (Value f = llvm.LLVMGetFirstFunction(module); f; f = llvm.LLVMGetNextFunction(f))
        count++;
    program.functions = calloc(count + 1, sizeof *program.functions);
    program.pending = calloc(count + 1, sizeof *program.pending);
    if (!program.functions || !program.pending)
        return false;
    for (Value f = llvm.LLVMGetFirstFunction(module); f; f = llvm.LLVMGetNextFunction(f))
        program.functions[program.count++] =
            (struct function){.value = f, .first_name = NONE, .is_declared = llvm.LLVMIsDeclaration(f)};
    qsort(program.functions, count, sizeof *program.functions, by_value);
    for (size_t i = 0; i < count; i++) {
        Value f = program.functions[i].value;
        bool is_kernel = llvm.LLVMGetFunctionCallConv(f) == SPIR_KERNEL;
        has_kernel |= is_kernel && !program.functions[i].is_declared;
        if (is_kernel || llvm.LLVMGetIntrinsicID(f))
            keep(i);
        if (!add_users(f, i))
            return false;
    }
    reach();
    for (size_t i = 0; i < count; i++)
        program.functions[i].is_reached = program.functions[i].is_kept;
    return has_kernel && keep_what_is_missing();
}

/* Whether what nobody reaches is so much that it is worth while to compile it only if it is asked for. */
static bool is_much(void) {
    size_t size = 0;
    for (size_t i = 0; i < program.count && size < MUCH; i++)
        if (!program.functions[i].is_kept && !program.functions[i].is_declared)
            size += size_of(program.functions[i].value);
    return size >= MUCH;
}

/* What is inlined wherever it is called need not be compiled for itself, too. clang 22 calls the body of each
 * kernel from the kernel. */
static void make_internal(void) {
    for (size_t i = 0; i < program.count; i++) {
        const struct function *f = &program.functions[i];
        if (f->is_reached && !f->is_declared && llvm.LLVMGetFunctionCallConv(f->value) != SPIR_KERNEL &&
            llvm.LLVMGetLinkage(f->value) == EXTERNAL)
            llvm.LLVMSetLinkage(f->value, INTERNAL);
    }
}

static void drop_unreached(Module module) {
    if (find_llvm() && look(module) && (!is_perhaps || (is_much() && cld_note_cut()))) {
        if (is_perhaps)
            cld_tables_are_whole();
        for (size_t i = 0; i < program.count; i++) {
            Value f = program.functions[i].value;
            if (!program.functions[i].is_kept)
                llvm.LLVMReplaceAllUsesWith(f, llvm.LLVMGetPoison(llvm.LLVMTypeOf(f)));
        }
        for (size_t i = 0; i < program.count; i++)
            if (!program.functions[i].is_kept)
                llvm.LLVMDeleteFunction(program.functions[i].value);
        make_internal();
    }
    free(program.functions);
    free(program.pending);
    free(program.edges);
}

/* Stands for llvm::PreservedAnalyses, which the caller has room for: it is returned in memory. */
struct preserved {
    void *words[32];
};

typedef struct preserved run_passes(const void *, Module, void *);

PUBLIC struct preserved RUN_PASSES(const void *manager, Module module, void *analyses) {
    static run_passes *real;
    if (!real)
        real = (run_passes *)dlsym(RTLD_NEXT, TEXT(RUN_PASSES));
    if (!has_begun) { /* passes run passes */
        has_begun = true;
        cld_describe_kernels(module);
        cld_name_blocks(module);
    }
    if (is_whole) {
        is_whole = false;
        drop_unreached(module);
    }
    return real(manager, module, analyses);
}
