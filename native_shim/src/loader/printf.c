/* printf of kernels (OpenCL C specification, 6.15.14), and their assertions: formatted as it is called, kept
 * per launch, written when the command ends. Nothing here trusts the format to match the arguments: values
 * are read by the tags that the compiler wrote, and never behind args_size. */
#define _GNU_SOURCE
#include "loader/printf.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRITE_AT = 1 << 20, LONGEST_FIELD = 1 << 16 };

struct text {
    char *data;
    size_t size, capacity;
};

struct cld_printf {
    pthread_mutex_t lock;
    struct text text;
    cld_print *print; /* NULL: to stdout */
    void *data;
};

enum kind {
    INTEGER,
    FLOATING,
    POINTER,
};

struct specifier {
    bool minus, plus, space, alternate, zero;
    int width, precision; /* precision -1: none */
    int vector;           /* 0: a scalar */
    int length;           /* bytes that h, hh, hl, l, z or t say; 0: none */
    char conversion;
};

struct reader {
    const uint8_t *at, *end;
};

struct value {
    enum kind kind;
    unsigned size, count;
    const uint8_t *bytes;
};

static locale_t c_locale; /* the host may have set a decimal comma */
static pthread_once_t locale_once = PTHREAD_ONCE_INIT;

static void make_locale(void) {
    c_locale = newlocale(LC_ALL_MASK, "C", NULL);
}

static char *room(struct text *text, size_t size) {
    if (size > text->capacity - text->size) {
        size_t capacity = text->capacity ? text->capacity : 256;
        while (capacity - text->size < size)
            capacity *= 2;
        char *data = realloc(text->data, capacity);
        if (!data)
            return NULL;
        text->data = data;
        text->capacity = capacity;
    }
    return text->data + text->size;
}

static void append(struct text *text, const char *bytes, size_t size) {
    char *to = size ? room(text, size) : NULL;
    if (!to)
        return;
    memcpy(to, bytes, size);
    text->size += size;
}

static int number(const char **at) {
    int value = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        if (value < LONGEST_FIELD)
            value = 10 * value + (**at - '0');
    return value < LONGEST_FIELD ? value : LONGEST_FIELD;
}

/* at: behind the per cent sign; ends behind the conversion character. */
static struct specifier parse(const char **at) {
    struct specifier spec = {.precision = -1};
    for (;; ++*at) {
        if (**at == '-')
            spec.minus = true;
        else if (**at == '+')
            spec.plus = true;
        else if (**at == ' ')
            spec.space = true;
        else if (**at == '#')
            spec.alternate = true;
        else if (**at == '0')
            spec.zero = true;
        else
            break;
    }
    spec.width = number(at);
    if (**at == '.') {
        ++*at;
        spec.precision = number(at);
    }
    if (**at == 'v') {
        ++*at;
        spec.vector = number(at);
    }
    if (**at == 'h') {
        ++*at;
        spec.length = **at == 'h' ? 1 : **at == 'l' ? 4 : 2;
        *at += spec.length != 2;
    } else if (**at == 'l' || **at == 'z' || **at == 't') { /* long, size_t, ptrdiff_t */
        ++*at;
        spec.length = 8;
    }
    spec.conversion = **at;
    if (**at)
        ++*at;
    return spec;
}

/* The next argument; false where there is none. */
static bool read_value(struct reader *args, struct value *value) {
    uint32_t tag;
    if ((size_t)(args->end - args->at) < 8)
        return false;
    memcpy(&tag, args->at, sizeof tag);
    value->size = tag & 0xff;
    value->count = tag >> 8 & 0xff;
    value->kind = (enum kind)(tag >> 16);
    value->bytes = args->at + 8;
    size_t size = (size_t)value->size * value->count;
    if (!size || value->size > 8 || size > (size_t)(args->end - value->bytes))
        return false;
    size_t whole = (size + 7) & ~(size_t)7;
    size_t left = (size_t)(args->end - value->bytes);
    args->at = value->bytes + (whole < left ? whole : left);
    return true;
}

static uint64_t element(const struct value *value, unsigned i) {
    uint64_t bits = 0; /* little endian, as all hosts of the driver are */
    memcpy(&bits, value->bytes + (size_t)i * value->size, value->size);
    return bits;
}

static double half_value(uint64_t bits) {
    int exponent = bits >> 10 & 31;
    double fraction = (double)(bits & 1023), sign = bits >> 15 & 1 ? -1 : 1;
    if (exponent == 31)
        return bits & 1023 ? copysign((double)NAN, sign) : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static double floating(const struct value *value, unsigned i) {
    uint64_t bits = element(value, i);
    if (value->kind != FLOATING)
        return (double)(int64_t)bits;
    if (value->size == 2)
        return half_value(bits);
    if (value->size == 4) {
        float single;
        uint32_t word = (uint32_t)bits;
        memcpy(&single, &word, sizeof single);
        return single;
    }
    double result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

/* Builds the specifier for C's printf: the same flags, with the length and conversion given. */
static void c_format(char *format, const struct specifier *spec, const char *conversion, bool zero) {
    char *at = format;
    *at++ = '%';
    if (spec->minus)
        *at++ = '-';
    if (spec->plus)
        *at++ = '+';
    if (spec->space)
        *at++ = ' ';
    if (spec->alternate)
        *at++ = '#';
    if (spec->zero && zero)
        *at++ = '0';
    at += sprintf(at, "*");
    if (spec->precision >= 0)
        at += sprintf(at, ".%d", spec->precision);
    strcpy(at, conversion);
}

#define EMIT(text, format, width, value)                                                                     \
    do {                                                                                                     \
        int size_ = snprintf(NULL, 0, format, width, value);                                                 \
        char *to_ = size_ >= 0 ? room(text, (size_t)size_ + 1) : NULL;                                       \
        if (to_)                                                                                             \
            (text)->size += (size_t)snprintf(to_, (size_t)size_ + 1, format, width, value);                  \
    } while (0)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void print_integer(struct text *text, const struct specifier *spec, uint64_t bits, unsigned size) {
    char format[64], conversion[8];
    bool is_signed = spec->conversion == 'd' || spec->conversion == 'i';
    unsigned shift = 64 - 8 * size;
    bits = is_signed ? (uint64_t)((int64_t)(bits << shift) >> shift) : bits << shift >> shift;
    sprintf(conversion, "ll%c", spec->conversion);
    c_format(format, spec, conversion, spec->precision < 0);
    EMIT(text, format, spec->width, (long long)bits);
}

/* Infinities and NaNs have one spelling, and are not padded with zeros. */
static void print_floating(struct text *text, const struct specifier *spec, double value) {
    char format[64], conversion[2] = {spec->conversion, 0}, word[8];
    if (isfinite(value)) {
        c_format(format, spec, conversion, true);
        EMIT(text, format, spec->width, value);
        return;
    }
    bool upper = spec->conversion < 'a';
    const char *sign = isnan(value) ? "" : value < 0 ? "-" : spec->plus ? "+" : spec->space ? " " : "";
    snprintf(word, sizeof word, "%s%s", sign, isnan(value) ? (upper ? "NAN" : "nan") : upper ? "INF" : "inf");
    struct specifier plain = {.minus = spec->minus, .precision = -1};
    c_format(format, &plain, "s", false);
    EMIT(text, format, spec->width, word);
}

static void print_string(struct text *text, const struct specifier *spec, const char *string) {
    char format[64];
    struct specifier plain = {.minus = spec->minus, .precision = spec->precision};
    c_format(format, &plain, "s", false);
    EMIT(text, format, spec->width, string ? string : "(null)");
}

static void print_value(struct text *text, const struct specifier *spec, const struct value *value,
                        unsigned i) {
    char format[64];
    uint64_t bits = element(value, i);
    switch (spec->conversion) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X': {
        /* Vectors say the size of their elements by h, hh, hl, l; scalars are ints, or longs with l. What was
         * not passed cannot be printed. */
        unsigned size = spec->length ? (unsigned)spec->length : spec->vector ? value->size : 4;
        if (size > value->size) /* a sign to extend from where the value ends */
            size = value->size;
        print_integer(text, spec, bits, size);
        break;
    }
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        print_floating(text, spec, floating(value, i));
        break;
    case 'c': {
        struct specifier plain = {.minus = spec->minus, .precision = -1};
        c_format(format, &plain, "c", false);
        EMIT(text, format, spec->width, (int)(unsigned char)bits);
        break;
    }
    case 's':
        print_string(text, spec, value->kind == POINTER ? (const char *)(uintptr_t)bits : "");
        break;
    case 'p': {
        struct specifier plain = {.minus = spec->minus, .alternate = true, .precision = -1};
        c_format(format, &plain, PRIx64, false);
        if (bits)
            EMIT(text, format, spec->width, bits);
        else
            print_string(text, &plain, "(nil)");
        break;
    }
    }
}

#pragma GCC diagnostic pop

static void print(struct text *text, const char *format, struct reader *args) {
    while (*format) {
        size_t plain = strcspn(format, "%");
        append(text, format, plain);
        format += plain;
        if (!*format)
            return;
        format++;
        if (*format == '%') {
            append(text, format++, 1);
            continue;
        }
        struct specifier spec = parse(&format);
        struct value value;
        if (!spec.conversion || !strchr("diuoxXfFeEgGaAcsp", spec.conversion) || !read_value(args, &value))
            return; /* the rest cannot be understood */
        unsigned count = spec.vector ? (unsigned)spec.vector : 1;
        for (unsigned i = 0; i < count && i < value.count; i++) {
            if (i)
                append(text, ",", 1);
            print_value(text, &spec, &value, i);
        }
    }
}

static void write_out(struct cld_printf *output) {
    struct text *text = &output->text;
    if (text->size && output->print)
        output->print(output->data, text->data, text->size);
    else if (text->size)
        fwrite(text->data, 1, text->size, stdout);
    text->size = 0;
}

struct cld_printf *cld_printf_new(cld_print *print, void *data) {
    struct cld_printf *output = calloc(1, sizeof *output);
    if (!output)
        return NULL;
    pthread_mutex_init(&output->lock, NULL);
    output->print = print;
    output->data = data;
    return output;
}

void cld_printf_end(struct cld_printf *output) {
    if (!output)
        return;
    if (output->text.size) {
        write_out(output);
        if (!output->print)
            fflush(stdout); /* who waits for the command finds the text where stdout goes, be it a file */
    }
    pthread_mutex_destroy(&output->lock);
    free(output->text.data);
    free(output);
}

static struct text formatted(const char *format, const uint8_t *args, uint32_t args_size) {
    struct reader reader = {args, args + args_size};
    struct text text = {NULL, 0, 0};
    pthread_once(&locale_once, make_locale);
    locale_t old = c_locale ? uselocale(c_locale) : (locale_t)0;
    print(&text, format, &reader);
    if (old)
        uselocale(old);
    return text;
}

int32_t cld_printf(void *printf_buffer, const char *format, const uint8_t *args, uint32_t args_size) {
    struct cld_printf *output = printf_buffer;
    if (!output || !format)
        return -1;
    struct text text = formatted(format, args, args_size);
    pthread_mutex_lock(&output->lock);
    append(&output->text, text.data, text.size);
    if (output->text.size >= WRITE_AT)
        write_out(output);
    pthread_mutex_unlock(&output->lock);
    free(text.data);
    return 0;
}

int32_t cld_assert_fail(void *printf_buffer, const char *expression, const uint8_t *args,
                        uint32_t args_size) {
    static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
    struct cld_printf *output = printf_buffer;
    struct text text =
        formatted("%s:%d: %s: global id: [%lu,%lu,%lu], local id: [%lu,%lu,%lu] ", args, args_size);
    pthread_mutex_lock(&first); /* for ever: one message, then the process ends */
    if (output) {
        pthread_mutex_lock(&output->lock);
        write_out(output);
        pthread_mutex_unlock(&output->lock);
    }
    fflush(stdout);
    fprintf(stderr, "%.*sAssertion `%s` failed.\n", (int)text.size, text.data ? text.data : "",
            expression ? expression : "(null)");
    fflush(stderr);
    abort();
}
