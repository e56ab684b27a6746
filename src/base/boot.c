/* SPDX-License-Identifier: Apache-2.0 */
/* The monotonic clock counts from the boot of the kernel, which has a random id that containers
 * share. A time namespace may shift it, so the namespace belongs to the name. */
#include "base/boot.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>
#include <unistd.h>

#include "base/clock.h"

sn_moment sn_moment_now(void)
{
    sn_moment best = {0, 0};
    uint64_t best_width = UINT64_MAX;
    for (int i = 0; i < 8; i++) { /* the one that nothing interrupted */
        const uint64_t before = sn_now_ns(), wall = sn_wall_ns(), width = sn_now_ns() - before;
        if (width < best_width) {
            best_width = width;
            best = (sn_moment){.mono_ns = before + width / 2, .wall_ns = wall};
        }
    }
    return best;
}

/* A short text of the system without its line end; false: there is none. */
static bool read_line(const char *path, char *to, size_t room)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, to, room - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    to[n] = 0;
    to[strcspn(to, "\n")] = 0;
    return *to != 0;
}

void sn_boot_name(char name[SN_BOOT_BYTES])
{
    static const char first_space[] = "time:[4026531834]"; /* the number the kernel gives it */
    char id[48], space[40];
    *name = 0;
    if (!read_line("/proc/sys/kernel/random/boot_id", id, sizeof id))
        return;
    const ssize_t n = readlink("/proc/self/ns/time", space, sizeof space - 1);
    space[n > 0 ? n : 0] = 0;
    const bool shifted = *space && strcmp(space, first_space) != 0;
    snprintf(name, SN_BOOT_BYTES, "%s%s%s", id, shifted ? " " : "", shifted ? space : "");
}

uint64_t sn_wall_error_ns(void)
{
    struct timex t = {.modes = 0};
    const int state = adjtimex(&t);
    if (state < 0 || state == TIME_ERROR || (t.status & STA_UNSYNC) || t.maxerror <= 0)
        return 0;
    return (uint64_t)t.maxerror * 1000;
}
