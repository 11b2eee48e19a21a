/* printf of kernels: every conversion, modifier and flag, against what OpenCL C says; damaged arguments. */
#include <locale.h>
#include <math.h>

#include "harness.h"
#include "loader/printf.h"

static uint8_t args[4096];
static uint32_t args_size;

static void put(unsigned kind, unsigned size, unsigned count, const void *elements) {
    uint32_t tag = size | count << 8 | kind << 16;
    args_size = (args_size + 7) & ~7u;
    memcpy(args + args_size, &tag, 4);
    memcpy(args + args_size + 8, elements, size * count);
    args_size += 8 + size * count;
}

static void put_int(int value) {
    put(0, 4, 1, &value);
}

static void put_long(long long value) {
    put(0, 8, 1, &value);
}

static void put_double(double value) {
    put(1, 8, 1, &value);
}

static void put_pointer(const void *value) {
    put(2, 8, 1, &value);
}

/* What the format prints with what was put, as the host's stdout gets it. */
static void expect(const char *format, const char *expected) {
    char text[70000] = {0};
    FILE *file = tmpfile();
    fflush(stdout);
    int old = dup(1);
    dup2(fileno(file), 1);
    struct cld_printf *output = cld_printf_new(NULL, NULL);
    cld_printf(output, format, args, args_size);
    cld_printf_end(output);
    dup2(old, 1);
    close(old);
    rewind(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    args_size = 0;
    if (strlen(expected) != size || strcmp(text, expected)) {
        fprintf(stderr, "\"%s\" printed \"%s\", not \"%s\"\n", format, text, expected);
        exit(1);
    }
}

static void scalars(void) {
    expect("plain\n", "plain\n");
    expect("100%% %%", "100% %");
    put_int(-5), expect("%d|", "-5|");
    put_int(-5), expect("%i", "-5");
    put_int(-5), expect("%u", "4294967291");
    put_int(255), expect("%x", "ff");
    put_int(255), expect("%#X", "0XFF");
    put_int(8), expect("%#o", "010");
    put_int(42), expect("%5d|", "   42|");
    put_int(42), expect("%-5d|", "42   |");
    put_int(42), expect("%05d|", "00042|");
    put_int(42), expect("%+d", "+42");
    put_int(42), expect("% d", " 42");
    put_int(42), expect("%.5d", "00042");
    put_int(42), expect("%08.5d", "   00042");
    put_int(0x1ff), expect("%hhd", "-1");
    put_int(0x1ffff), expect("%hd", "-1");
    put_int(0x1ff), expect("%hhu", "255");
    put_long(-1234567890123456789), expect("%ld", "-1234567890123456789");
    put_long(-1), expect("%lx", "ffffffffffffffff");
    put_long(-1), expect("%zu", "18446744073709551615");
    put_long(-5000000000), expect("%-12zd|", "-5000000000 |");
    put_long(-5000000000), expect("%td", "-5000000000");
    put_long(8), expect("%#4to", " 010");
    put_int('A'), expect("%c|", "A|");
    put_int('A'), expect("%3c|", "  A|");
    put_int('A'), expect("%-3c|", "A  |");
    put_pointer("text"), expect("%s|%%", "text|%");
    put_pointer("text"), expect("%6s|", "  text|");
    put_pointer("text"), expect("%-6.2s|", "te    |");
    put_pointer(NULL), expect("%s", "(null)");
    put_pointer((void *)0x1234), expect("%p", "0x1234");
    put_pointer(NULL), expect("%p", "(nil)");
    put_int(1), put_pointer("two"), put_double(3), put_long(4), expect("%d %s %g %ld", "1 two 3 4");
}

static void floats(void) {
    float single = 1.5f;
    uint16_t half = 0x3e00, tiny = 1, huge = 0xfc00;
    put(1, 4, 1, &single), expect("%f", "1.500000");
    put(1, 2, 1, &half), expect("%g", "1.5");
    put(1, 2, 1, &tiny), expect("%g", "5.96046e-08");
    put(1, 2, 1, &huge), expect("%f", "-inf");
    put_double(3.14159265), expect("%.2f", "3.14");
    put_double(3.14159265), expect("%10.3e|", " 3.142e+00|");
    put_double(3.14159265), expect("%-12.4E|", "3.1416E+00  |");
    put_double(0.0001), expect("%g", "0.0001");
    put_double(1e-10), expect("%G", "1E-10");
    put_double(1), expect("%#g", "1.00000");
    put_double(1), expect("%a", "0x1p+0");
    put_double(-0.5), expect("%A", "-0X1P-1");
    put_double(2.5), expect("%08.2f", "00002.50");
    put_double(2.5), expect("%+.1f", "+2.5");
    put_double((double)INFINITY), expect("%f %%", "inf %");
    put_double(-(double)INFINITY), expect("%F", "-INF");
    put_double((double)INFINITY), expect("%+g", "+inf");
    put_double((double)INFINITY), expect("%08g|", "     inf|");
    put_double(copysign((double)NAN, -1)), expect("%f", "nan");
    put_double((double)NAN), expect("%-6E|", "NAN   |");
}

static void vectors(void) {
    int8_t chars[4] = {1, -2, 3, -4};
    int16_t shorts[3] = {-1, 2, -3};
    int32_t ints[16];
    int64_t longs[2] = {-1, 1LL << 40};
    float floats[4] = {1, 2.5f, -3, 4};
    double doubles[2] = {0.1, 1e300};
    for (int i = 0; i < 16; i++)
        ints[i] = i * i;
    put(0, 1, 4, chars), expect("%v4hhd", "1,-2,3,-4");
    put(0, 1, 4, chars), expect("%v4hhu", "1,254,3,252");
    put(0, 1, 4, chars), expect("%#v4hhx", "0x1,0xfe,0x3,0xfc");
    put(0, 2, 3, shorts), expect("%v3hd|", "-1,2,-3|");
    put(0, 4, 16, ints), expect("%v16hld", "0,1,4,9,16,25,36,49,64,81,100,121,144,169,196,225");
    put(0, 4, 2, ints + 2), expect("%3v2hld|", "  4,  9|");
    put(0, 8, 2, longs), expect("%v2ld", "-1,1099511627776");
    put(1, 4, 4, floats), expect("%v4hlf", "1.000000,2.500000,-3.000000,4.000000");
    put(1, 4, 4, floats), expect("%2.1v4hlf", "1.0,2.5,-3.0,4.0");
    put(1, 8, 2, doubles), expect("%v2lg|", "0.1,1e+300|");
}

/* Nothing is read that is not there, whatever the format says. */
static void damage(void) {
    expect("%d %d", "");
    put_int(1), expect("%d %d", "1 ");
    put_int(1), expect("%", "");
    put_int(1), expect("%q", "");
    put_int(1), expect("%z", "");
    put_int(1), expect("%*d", "");
    put_int(1), expect("%v16hld", "1");
    put_int(7), expect("%s", "");
    put_int(7), args_size -= 2, expect("%d", "");
    args_size = 4, expect("%d", "");
    static uint8_t bytes[200];
    put(0, 200, 1, bytes), args_size = 200, expect("%d", "");
    put_int(1), args_size = 8, expect("%d", "");
    put_long(1), expect("%n", "");
    put_int(3), expect("%ld", "3");
    put_pointer(NULL), expect("%s|", "(null)|");
    put_pointer(NULL), expect("%8.3s|", "     (nu|");
    put_long(0), expect("%s|", "|");
}

/* No format is no text; the result says so. */
static void results(void) {
    struct cld_printf *output = cld_printf_new(NULL, NULL);
    CHECK_IS(cld_printf(output, "", args, 0), 0);
    CHECK_IS(cld_printf(output, NULL, args, 0), -1);
    CHECK_IS(cld_printf(NULL, "", args, 0), -1);
    cld_printf_end(output);
}

static void wide(void) {
    char expected[2001];
    memset(expected, ' ', 2000);
    strcpy(expected + 1999, "3");
    put_int(3), expect("%2000d", expected);
}

/* Thousands of calls from several threads: whole lines, and all of them. */
static void print_line(const struct cld_launch *launch, const uint8_t *arguments, struct cld_thread *thread,
                       uint64_t first, uint64_t last) {
    (void)arguments, (void)thread;
    for (uint64_t group = first; group < last; group++) {
        uint8_t one[16] = {4, 1, 0, 0};
        int number = (int)group;
        memcpy(one + 8, &number, 4);
        cld_printf(launch->printf_buffer, "line %d of a kernel\n", one, 12);
    }
}

static void launches(void) {
    cl_context context = test_context();
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = test_kernel(context, print_line, "");
    size_t groups = 60000, one = 1;
    static uint8_t found[60000];
    FILE *file = tmpfile();
    cl_event event;
    info_of(kernel)->uses_printf = 1;
    fflush(stdout);
    int old = dup(1);
    dup2(fileno(file), 1);
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &groups, &one, 0, NULL, &event));
    OK(clWaitForEvents(1, &event));
    dup2(old, 1); /* what is not written by now is missing */
    close(old);
    rewind(file);
    for (size_t i = 0; i < groups; i++) {
        int number, end = 0;
        CHECK_IS(fscanf(file, "line %d of a kernel\n%n", &number, &end), 1);
        CHECK(end > 0 && number >= 0 && number < (int)groups && !found[number]++);
    }
    CHECK_IS(fgetc(file), EOF);
    fclose(file);
    OK(clReleaseEvent(event));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseContext(context));
}

int main(void) {
    setlocale(LC_ALL, "de_DE.UTF-8"); /* a decimal comma, where the machine has that locale */
    scalars();
    floats();
    vectors();
    damage();
    results();
    wide();
    launches();
}
