/* Tables of what commands and calls have cost. */
#define _GNU_SOURCE
#include "profile/accounts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

_Atomic(struct cld_account *) cld_accounts[CLD_ACCOUNT_BUCKETS];
struct cld_call_account cld_call_accounts[CLD_CALL_ACCOUNTS];

/* FNV-1a. */
static uint32_t hash_of(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash;
}

static struct cld_account *find(struct cld_account *account, const char *name, bool is_kernel) {
    while (account && (account->is_kernel != is_kernel || strcmp(account->name, name)))
        account = account->next;
    return account;
}

static struct cld_account *new_account(const char *name, bool is_kernel) {
    struct cld_account *account = calloc(1, sizeof *account);
    if (!account || !(account->name = strdup(name))) {
        free(account);
        return NULL;
    }
    account->is_kernel = is_kernel;
    atomic_store(&account->least, UINT64_MAX);
    return account;
}

struct cld_account *cld_account_of(const char *name, bool is_kernel) {
    _Atomic(struct cld_account *) *bucket = &cld_accounts[hash_of(name) % CLD_ACCOUNT_BUCKETS];
    struct cld_account *first = atomic_load_explicit(bucket, memory_order_acquire);
    struct cld_account *account = find(first, name, is_kernel);
    if (account)
        return account;
    struct cld_account *made = new_account(name, is_kernel);
    if (!made)
        return NULL;
    do {
        if ((account = find(first, name, is_kernel))) { /* another thread's */
            free((char *)(uintptr_t)made->name);
            free(made);
            return account;
        }
        made->next = first;
    } while (!atomic_compare_exchange_weak_explicit(bucket, &first, made, memory_order_acq_rel,
                                                    memory_order_acquire));
    return made;
}

static bool is_call(const char *form, const char *name) {
    size_t size = strlen(name);
    return !strncmp(form, name, size) && (form[size] == ' ' || !form[size]);
}

/* The number of the argument blocking_read, or one like it; -1 if there is none. Words of a form begin with a
 * letter that tells their type. */
static int blocking_argument(const char *form) {
    int number = 0;
    for (const char *at = strchr(form, ' '); at; at = strchr(at + 1, ' '), number++)
        if (!strncmp(at + 2, "blocking", 8))
            return number;
    return -1;
}

static int kind_of(const char *form) {
    static const char *const waiting[] = {"clFinish", "clWaitForEvents"};
    static const char *const building[] = {"clBuildProgram", "clCompileProgram", "clLinkProgram",
                                           "clCreateKernel", "clCreateKernelsInProgram"};
    for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++)
        if (is_call(form, waiting[i]))
            return CLD_CALL_WAITS;
    for (size_t i = 0; i < sizeof building / sizeof *building; i++)
        if (is_call(form, building[i]))
            return CLD_CALL_BUILDS;
    return blocking_argument(form) >= 0 ? CLD_CALL_WAITS : CLD_CALL_OTHER;
}

/* There are more places than entry points. */
struct cld_call_account *cld_call_account_of(const char *form) {
    size_t at = ((uintptr_t)form >> 4) * 2654435761u % CLD_CALL_ACCOUNTS;
    for (size_t tried = 0; tried < CLD_CALL_ACCOUNTS; tried++, at = (at + 1) % CLD_CALL_ACCOUNTS) {
        struct cld_call_account *account = &cld_call_accounts[at];
        const char *found = atomic_load_explicit(&account->form, memory_order_relaxed);
        if (!found)
            atomic_compare_exchange_strong(&account->form, &found, form);
        if (found && found != form)
            continue;
        int kind = atomic_load_explicit(&account->kind, memory_order_acquire);
        if (kind == CLD_CALL_UNKNOWN) { /* all threads that come here write the same */
            account->blocking = blocking_argument(form);
            atomic_store_explicit(&account->kind, kind = kind_of(form), memory_order_release);
        }
        return kind == CLD_CALL_OTHER ? NULL : account;
    }
    return NULL;
}

/* No malloc, and no qsort, which calls it: this may be in a handler of a signal. */
struct cld_account **cld_accounts_sorted(size_t *count) {
    *count = 0;
    size_t room = 0;
    for (size_t i = 0; i < CLD_ACCOUNT_BUCKETS; i++)
        for (struct cld_account *at = atomic_load(&cld_accounts[i]); at; at = at->next)
            room++;
    if (!room)
        return NULL;
    struct cld_account **sorted =
        mmap(NULL, room * sizeof *sorted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sorted == MAP_FAILED)
        return NULL;
    for (size_t i = 0; i < CLD_ACCOUNT_BUCKETS; i++)
        for (struct cld_account *at = atomic_load(&cld_accounts[i]); at && *count < room; at = at->next) {
            if (!cld_counted(&at->count) && !cld_counted(&at->failed))
                continue;
            size_t place = (*count)++;
            for (; place && cld_counted(&sorted[place - 1]->time) < cld_counted(&at->time); place--)
                sorted[place] = sorted[place - 1];
            sorted[place] = at;
        }
    return sorted;
}

void cld_accounts_forget(void) {
    for (size_t i = 0; i < CLD_ACCOUNT_BUCKETS; i++)
        atomic_store(&cld_accounts[i], NULL);
    for (size_t i = 0; i < CLD_CALL_ACCOUNTS; i++) {
        atomic_store(&cld_call_accounts[i].count, 0);
        atomic_store(&cld_call_accounts[i].time, 0);
        atomic_store(&cld_call_accounts[i].busy, 0);
    }
}
