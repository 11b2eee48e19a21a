/* What a kernel did when the host dies of it: one line on stderr, for the process ends anyway.
 *
 * The handlers are installed by the first kernel that runs, where the host has none: the default action then
 * follows as if ours had not been there, with the same signal and core. Handlers that the host installs later
 * replace ours. If one of them passes on to ours what it does not know, that gets the default action as well.
 *
 * Handlers allocate nothing, take no lock, and call only what POSIX lets them call. */
#define _GNU_SOURCE
#include "launch/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/settings.h"
#include "kernel/argument_specialisation.h"
#include "kernel/kernel.h"
#include "kernel/variant.h"
#include "loader/load.h"

enum { MOST_NAME = 160, MOST_STACK = 64 << 10 };

static const struct signal {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}};
enum { SIGNALS = sizeof signals / sizeof *signals };

static struct sigaction before[SIGNALS]; /* ours */
static _Atomic(struct cld_running *) all;
enum { NOT_TOLD, TELLING, TOLD };
static _Atomic int state;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct line {
    char text[512];
    size_t size;
};

static void put_bytes(struct line *line, const char *text, size_t size) {
    size_t room = sizeof line->text - line->size;
    size = size < room ? size : room;
    memcpy(line->text + line->size, text, size);
    line->size += size;
}

static void put(struct line *line, const char *text) {
    put_bytes(line, text, strlen(text));
}

static void put_number(struct line *line, uint64_t value, unsigned base) {
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = "0123456789abcdef"[value % base];
    while (value /= base);
    put_bytes(line, digits + at, sizeof digits - at);
}

static void put_address(struct line *line, const void *address) {
    put(line, "0x");
    put_number(line, (uint64_t)(uintptr_t)address, 16);
}

static void put_name(struct line *line, const char *name) {
    size_t size = strnlen(name, MOST_NAME + 1);
    put_bytes(line, name, size <= MOST_NAME ? size : MOST_NAME);
    if (size > MOST_NAME)
        put(line, "...");
}

struct registers {
    const void *program_counter;
    const uint8_t *link; /* where a function without a frame returns to, if a register has that; NULL */
    const uint8_t *stack;
    const char *access; /* what it did with the address */
};

#if defined(__x86_64__)
static struct registers registers_of(int number, const ucontext_t *context) {
    const greg_t *all_of_them = context->uc_mcontext.gregs;
    enum { PAGE_FAULT = 14, WRITE = 2 };
    bool known = number == SIGSEGV && all_of_them[REG_TRAPNO] == PAGE_FAULT;
    return (struct registers){(const void *)(uintptr_t)all_of_them[REG_RIP], NULL,
                              (const uint8_t *)(uintptr_t)all_of_them[REG_RSP],
                              !known                         ? "accesses"
                              : all_of_them[REG_ERR] & WRITE ? "writes to"
                                                             : "reads from"};
}
#elif defined(__aarch64__)
/* The kernel's record of the exception's syndrome (Arm's manual of the architecture: ESR_EL1), among others
 * behind the registers. Emulators may leave it out. */
static const char *access_of(const mcontext_t *registers) {
    enum { RECORD = 0x45535201, HEAD = 8, CLASS_SHIFT = 26, DATA_ABORT = 0x24, WRITES = 1 << 6 };
    const uint8_t *at = registers->__reserved, *end = at + sizeof registers->__reserved;
    while (end - at >= HEAD + 8) {
        uint32_t head[2];
        uint64_t syndrome;
        memcpy(head, at, sizeof head);
        if (head[0] == RECORD) {
            memcpy(&syndrome, at + HEAD, sizeof syndrome);
            if ((syndrome >> CLASS_SHIFT & 0x3f) == DATA_ABORT)
                return syndrome & WRITES ? "writes to" : "reads from";
            break;
        }
        if (!head[0] || head[1] < HEAD || head[1] > end - at)
            break;
        at += head[1];
    }
    return "accesses";
}

static struct registers registers_of(int number, const ucontext_t *context) {
    const mcontext_t *registers = &context->uc_mcontext;
    enum { LINK = 30 };
    return (struct registers){
        (const void *)(uintptr_t)registers->pc, (const uint8_t *)(uintptr_t)registers->regs[LINK],
        (const uint8_t *)(uintptr_t)registers->sp, number == SIGSEGV ? access_of(registers) : "accesses"};
}
#else
#error "where does this architecture keep its program counter?"
#endif

static bool find_in_code(const struct cld_event *command, const void *address, struct cld_code_place *place) {
    bool has_wish = cld_specialisation_is_of_images(command->kernel.info) && command->kernel.wish;
    const struct cld_variant *meanwhile = has_wish ? cld_variant_meanwhile(command->kernel.wish) : NULL;
    const struct cld_variant *codes[] = {command->kernel.variant, meanwhile};
    for (int i = 0; i < 2; i++)
        if (codes[i] && cld_variant_is_there(codes[i]) && codes[i]->code &&
            cld_code_find(codes[i]->code, address, place))
            return true;
    const struct cld_executable *executable = command->kernel.info->executable;
    for (uint32_t i = 0; executable && i < executable->code_count; i++)
        if (cld_code_find(executable->code[i], address, place))
            return true;
    return false;
}

/* The instruction, or the call of what the kernel has called: memcpy, say, or a function of the driver's. */
static bool find_place(const struct cld_event *command, const struct registers *registers,
                       const uint8_t *frame, struct cld_code_place *place) {
    if (find_in_code(command, registers->program_counter, place))
        return true;
    if (registers->link && find_in_code(command, registers->link - 1, place))
        return true;
    const uint8_t *at = (const uint8_t *)((uintptr_t)registers->stack & ~(uintptr_t)7);
    if (at > frame || frame - at > MOST_STACK) /* an overflow, or another stack */
        return false;
    for (; at + sizeof(void *) <= frame; at += sizeof(void *)) {
        const uint8_t *word;
        memcpy(&word, at, sizeof word);
        if (find_in_code(command, word - 1, place))
            return true;
    }
    return false;
}

static void put_place(struct line *line, const struct cld_code_place *place) {
    if (place->line) {
        put(line, " at ");
        if (place->file) {
            put_bytes(line, place->file, place->file_size < MOST_NAME ? place->file_size : MOST_NAME);
            put(line, ":");
        } else {
            put(line, "line ");
        }
        put_number(line, place->line, 10);
    }
    put(line, " (byte 0x");
    put_number(line, place->offset, 16);
    put(line, place->line ? " of its code)" : " of its code; built with -g, it has lines)");
}

/* A host may have closed the descriptor and opened a file of its own, which is not for us. */
static bool is_for_messages(int descriptor) {
    struct stat about;
    int flags = fcntl(descriptor, F_GETFL);
    return flags >= 0 && !fstat(descriptor, &about) &&
           (!S_ISREG(about.st_mode) || (flags & O_ACCMODE) == O_WRONLY);
}

static void tell(const struct signal *which, const siginfo_t *info, const struct cld_running *running,
                 const struct cld_event *command, const ucontext_t *context) {
    struct line line = {.size = 0};
    struct cld_code_place place;
    struct registers registers = registers_of(which->number, context);
    put(&line, "cl_driver: ");
    put(&line, which->name);
    put(&line, " in kernel ");
    put_name(&line, command->kernel.info->name);
    if (find_place(command, &registers, atomic_load_explicit(&running->frame, memory_order_relaxed), &place))
        put_place(&line, &place);
    if (which->number == SIGSEGV || which->number == SIGBUS) {
        put(&line, ", which ");
        put(&line, registers.access);
        if (info->si_code == SI_KERNEL) { /* x86's general protection */
            put(&line, " an address that is not aligned or cannot be");
        } else {
            put(&line, " address ");
            put_address(&line, info->si_addr);
        }
    }
    put(&line, "; CL_DRIVER_CHECK=1, or cl-driver run --check, finds out more\n");
    if (is_for_messages(STDERR_FILENO) && write(STDERR_FILENO, line.text, line.size) < 0)
        return;
}

/* One line, whatever other threads do at the same time: they wait for it, lest the process end before. */
static bool begin_telling(void) {
    int found = NOT_TOLD;
    if (atomic_compare_exchange_strong(&state, &found, TELLING))
        return true;
    const struct timespec while_it_does = {0, 1000000};
    for (int i = 0; i < 1000 && atomic_load(&state) == TELLING; i++)
        nanosleep(&while_it_does, NULL);
    return false;
}

/* Called again for what comes of an instruction, which is executed again; else the signal is sent again. */
static void take_default_action(int number, const siginfo_t *info) {
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(number, &standard, NULL);
    bool recurs = info->si_code > 0 && !(number == SIGBUS && info->si_code == BUS_MCEERR_AO);
    if (!recurs)
        raise(number);
}

static void on_fault(int number, siginfo_t *info, void *context) {
    int error = errno;
    pid_t thread = cld_thread_id();
    size_t which = 0;
    while (which + 1 < SIGNALS && signals[which].number != number)
        which++;
    const struct sigaction *host = &before[which];
    bool has_host = host->sa_flags & SA_SIGINFO || host->sa_handler != SIG_DFL;
    const struct cld_running *running = atomic_load_explicit(&all, memory_order_acquire);
    while (running && atomic_load_explicit(&running->thread, memory_order_relaxed) != thread)
        running = running->next;
    const struct cld_event *command =
        running ? atomic_load_explicit(&running->command, memory_order_relaxed) : NULL;
    if (command && info->si_code > 0 && (has_host || begin_telling())) {
        tell(&signals[which], info, running, command, context);
        atomic_store(&state, TOLD);
    }
    errno = error;
    if (!has_host)
        take_default_action(number, info);
    else if (host->sa_flags & SA_SIGINFO)
        host->sa_sigaction(number, info, context);
    else
        host->sa_handler(number);
}

static void install(void) {
    bool replaces = cld_setting_is(CL_DRIVER_FAULT_MESSAGE_SETTING, "on");
    if (cld_setting_is(CL_DRIVER_FAULT_MESSAGE_SETTING, "off"))
        return;
    for (size_t i = 0; i < SIGNALS; i++) {
        int number = signals[i].number;
        if (sigaction(number, NULL, &before[i]))
            continue;
        bool is_default = !(before[i].sa_flags & SA_SIGINFO) && before[i].sa_handler == SIG_DFL;
        bool is_ignored = !(before[i].sa_flags & SA_SIGINFO) && before[i].sa_handler == SIG_IGN;
        if (is_ignored || (!is_default && !replaces))
            continue;
        struct sigaction ours = before[i], found;
        ours.sa_sigaction = on_fault;
        ours.sa_flags = SA_SIGINFO | (is_default ? SA_ONSTACK : before[i].sa_flags & ~SA_RESETHAND);
        if (!sigaction(number, &ours, &found) && is_default && found.sa_handler != SIG_DFL)
            sigaction(number, &found, NULL); /* another thread was faster */
    }
}

struct cld_running *cld_fault_running(struct cld_self *self) {
    pid_t thread = cld_thread_id();
    pthread_once(&once, install);
    for (struct cld_running *running = atomic_load(&all); running; running = running->next) {
        pid_t nobody = 0;
        if (atomic_compare_exchange_strong(&running->thread, &nobody, thread))
            return self->running = running;
    }
    struct cld_running *made = NULL;
    if (posix_memalign((void **)&made, 64, 64)) /* a cache line: threads write to theirs at each kernel */
        return NULL;
    _Static_assert(sizeof *made <= 64, "it fits one");
    memset(made, 0, sizeof *made);
    atomic_init(&made->thread, thread);
    made->next = atomic_load(&all);
    while (!atomic_compare_exchange_weak(&all, &made->next, made))
        ;
    return self->running = made;
}

static void end_thread(struct cld_self *self) {
    if (self->running)
        atomic_store(&self->running->thread, 0);
    self->running = NULL;
}

static void renew_in_child(void) {
    struct cld_running *mine = cld_self_storage.running;
    for (struct cld_running *running = atomic_load(&all); running; running = running->next) {
        atomic_store(&running->thread, running == mine ? cld_thread_id() : 0);
        if (running != mine)
            atomic_store(&running->command, NULL);
    }
}

__attribute__((constructor)) static void register_faults(void) {
    cld_on_thread_end(end_thread);
    pthread_atfork(NULL, NULL, renew_in_child);
}
