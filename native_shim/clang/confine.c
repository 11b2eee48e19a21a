/* A host that has changed its root folder, or given up rights, has compilers that have what it has: what a
 * program includes is what the host could read, and what a program does to its compiler it could do itself.
 *
 * The compiler process calls cld_confine(), once it has loaded what it needs; a clang does so before its
 * main(). Neither keeps a descriptor of a folder outside, by which the host, whose processes they are from
 * then on, could get there. So clang has its own files, a few, open, and finds them here by their names. */
#define _GNU_SOURCE
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

enum { MOST_GROUPS = 1024, MOST_OWN = 16 };

static struct {
    const char *path;
    int descriptor; /* -1: a folder */
} own[MOST_OWN];
static unsigned own_count;
static bool is_confined;

static bool set_groups(const char *text) {
    static gid_t wanted[MOST_GROUPS], present[MOST_GROUPS];
    int count = 0;
    for (char *end; *text && count < MOST_GROUPS; text = end + (*end == ','))
        wanted[count++] = (gid_t)strtoul(text, &end, 10);
    int before = getgroups(MOST_GROUPS, present);
    bool same = before == count && !memcmp(wanted, present, sizeof *wanted * (size_t)count);
    return !*text && (same || !setgroups((size_t)count, wanted));
}

static bool set_capabilities(uint64_t wanted) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    for (int i = 0; i < 2; i++)
        data[i].effective = data[i].permitted = (uint32_t)(wanted >> 32 * i);
    return !syscall(SYS_capset, &header, data);
}

/* Takes over: "root user group capabilities[ group,...]", the first the descriptor of a folder, which is
 * closed, -1 for that which there is; the fourth in hexadecimal. 0, or an error number. */
PUBLIC int cld_confine(const char *text) {
    int root, at = 0;
    unsigned user, group;
    uint64_t capabilities;
    if (sscanf(text, "%d %u %u %lx%n", &root, &user, &group, &capabilities, &at) < 4)
        return EINVAL;
    text += at + (text[at] == ' ');
    bool good = root < 0 || (!fchdir(root) && !chroot("."));
    if (root >= 0)
        close(root);
    /* Groups, and the user last: who is no longer root may not. What it may do is kept until it is known. */
    good = good && set_groups(text) && !prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    good = good && !setresgid(group, group, group) && !setresuid(user, user, user);
    good = good && set_capabilities(capabilities) && !prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
    /* Its memory, and what it has open, are not for other processes of that user. */
    good = good && !prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return good ? 0 : errno ? errno : EPERM;
}

/* "descriptor path\n...". */
static void take_own(char *text) {
    for (char *end; own_count < MOST_OWN && (end = strchr(text, '\n')); text = end + 1) {
        *end = 0;
        char *path;
        own[own_count].descriptor = (int)strtol(text, &path, 10);
        own[own_count++].path = path + 1;
    }
}

void cld_confine_clang(void) {
    const char *text = getenv("CLD_CLANG_CONFINED"), *files = getenv("CLD_CLANG_OWN");
    if (!text)
        return;
    is_confined = true;
    char *kept = strdup(files ? files : "");
    if (!kept || cld_confine(text))
        _exit(127);
    take_own(kept);
    unsetenv("CLD_CLANG_CONFINED");
    unsetenv("CLD_CLANG_OWN");
}

bool cld_is_confined(void) {
    return is_confined;
}

static int find(const char *path) {
    for (unsigned i = 0; i < own_count; i++)
        if (!strcmp(own[i].path, path))
            return (int)i;
    return -1;
}

int cld_open_own(const char *path) {
    int at = find(path);
    return at < 0 || own[at].descriptor < 0 ? -1 : fcntl(own[at].descriptor, F_DUPFD_CLOEXEC, 0);
}

bool cld_stat_own(const char *path, struct stat *status) {
    int at = find(path);
    if (at < 0)
        return false;
    if (own[at].descriptor >= 0)
        return !fstat(own[at].descriptor, status);
    memset(status, 0, sizeof *status);
    status->st_mode = S_IFDIR | 0555;
    status->st_dev = ~(dev_t)0; /* clang knows folders by their numbers */
    status->st_ino = (ino_t)at + 1;
    return true;
}
