/* System calls without the C library: for processes that share a host's memory, whose errno is not theirs,
 * and for programs that are to be small. */
#ifndef CLD_SYSTEM_CALL_H
#define CLD_SYSTEM_CALL_H

#define BARE __attribute__((no_sanitize("address", "thread", "undefined")))

/* The result, or an error number, negated. */
BARE static inline long cld_system_call(long number, long a, long b, long c, long d) {
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
#else
#error "no system calls for this processor"
#endif
}

#endif
