/* What is left after many events: no memory, and handles that are refused. argv[1]: how many. */
#include "client.h"

/* Pages of this process's own: those that chunks of dead handles share count once for each that was looked
 * at. */
static long resident_kib(void) {
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file);
    while (fgets(line, sizeof line, file))
        sscanf(line, "RssAnon: %ld kB", &kib);
    fclose(file);
    CHECK(kib >= 0);
    return kib;
}

/* Released in the order of their making, backwards, and in one that goes to and fro. */
static int in_order(int round, int i, int count) {
    if (round == 0)
        return i;
    if (round == 1)
        return count - 1 - i;
    return (int)((uint64_t)i * 7919 % (uint64_t)count);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    int count = atoi(argv[1]);
    CHECK(count % 7919);
    cl_int status;
    cl_device_id device = the_device();
    cl_context context = make_context(device);
    cl_event *events = malloc((size_t)count * sizeof *events);
    CHECK(events);
    memset(events, 1, (size_t)count * sizeof *events); /* its pages are the test's own */
    for (int round = 0; round < 3; round++) {
        long before = resident_kib();
        for (int i = 0; i < count; i++) {
            events[i] = clCreateUserEvent(context, &status);
            OK(status);
        }
        long most = resident_kib();
        for (int i = 0; i < count; i++) {
            OK(clSetUserEventStatus(events[in_order(round, i, count)], CL_COMPLETE));
            OK(clReleaseEvent(events[in_order(round, i, count)]));
        }
        long after = resident_kib();
        CHECK(most - before > count / 4);
        /* What a thread keeps, and what is kept for those that come soon. */
        if (after - before > 36 << 10) {
            fprintf(stderr, "%d: %ld KiB, %ld with the events, %ld after\n", round, before, most, after);
            return 1;
        }
        for (int i = 0; i < count; i++)
            EXPECT(clRetainEvent(events[i]), CL_INVALID_EVENT);
    }
    free(events);
    OK(clReleaseContext(context));
    return 0;
}
