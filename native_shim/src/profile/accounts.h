/* What commands and calls have cost so far, by the name of the kernel, the kind of the transfer or the name
 * of the call. Entries are never freed, and all is counted with atomics: threads that execute commands take
 * no lock, and a fork at any time leaves whole what the child forgets. */
#ifndef CLD_ACCOUNTS_H
#define CLD_ACCOUNTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which code a launch has run: bits. None of them: the code that was there first. */
enum cld_code_kind {
    CLD_CODE_HOT = 1,     /* made for kernels that have run for a while */
    CLD_CODE_GROUP = 2,   /* for groups of one size */
    CLD_CODE_VALUE = 4,   /* for values of arguments */
    CLD_CODE_BY_ITEM = 8, /* one work-item at a time */
    CLD_CODE_KINDS = 16,
};

/* Of a thread, by hardware (profile/counters.h). */
enum { CLD_HARDWARE_COUNTERS = 4 };

struct cld_spent {
    _Atomic uint64_t count, time; /* ns */
};

/* Commands of one kernel, or of one kind. */
struct cld_account {
    struct cld_account *next; /* of those with the same hash */
    const char *name;         /* a copy */
    bool is_kernel;
    _Atomic uint64_t count, failed; /* executed; `failed` is no part of the others */
    _Atomic uint64_t time;          /* ns, from the start of each to its end */
    _Atomic uint64_t least, most;
    _Atomic uint64_t thread_time;   /* ns, of all threads that took part */
    _Atomic uint64_t items;         /* work-items */
    _Atomic uint64_t read, written; /* bytes of global memory, of those commands whose bytes are known */
    struct cld_spent with_bytes, with_operations; /* these commands; those whose operations are known */
    _Atomic uint64_t operations;                  /* on floating-point numbers */
    struct cld_spent codes[CLD_CODE_KINDS];
    _Atomic uint64_t hardware[CLD_HARDWARE_COUNTERS];
};

/* Calls of one entry point in which the host waits, or has something built. */
struct cld_call_account {
    _Atomic(const char *) form; /* of struct cld_call: one for each entry point */
    _Atomic int kind;           /* enum cld_call_kind */
    int blocking;               /* the argument that says whether it waits, or -1: it always does */
    _Atomic uint64_t count, time;
    _Atomic uint64_t busy; /* of its time, when some command was executed */
};

enum cld_call_kind {
    CLD_CALL_UNKNOWN, /* nobody has looked yet */
    CLD_CALL_OTHER,
    CLD_CALL_WAITS,
    CLD_CALL_BUILDS,
};

enum { CLD_ACCOUNT_BUCKETS = 256, CLD_CALL_ACCOUNTS = 1024 };

extern _Atomic(struct cld_account *) cld_accounts[CLD_ACCOUNT_BUCKETS];
extern struct cld_call_account cld_call_accounts[CLD_CALL_ACCOUNTS];

/* The account of that name, made if need be; NULL: no memory. */
struct cld_account *cld_account_of(const char *name, bool is_kernel);

/* The account of an entry point by its form, or NULL if it neither waits nor builds. */
struct cld_call_account *cld_call_account_of(const char *form);

/* All accounts with commands, the one with the most time first. NULL: none, or no memory. For the end of the
 * process: nobody frees the list. */
struct cld_account **cld_accounts_sorted(size_t *count);

/* In the child of a fork: nothing has been counted. */
void cld_accounts_forget(void);

static inline void cld_count(_Atomic uint64_t *sum, uint64_t more) {
    atomic_fetch_add_explicit(sum, more, memory_order_relaxed);
}

static inline uint64_t cld_counted(const _Atomic uint64_t *sum) {
    return atomic_load_explicit(sum, memory_order_relaxed);
}

#endif
