/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the user's browser. It belongs to the desktop and not to this program: it is started
 * without a shell, in a session of its own, is never waited for, and Ctrl-C does not reach it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "view/parts.h"

static bool has(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value;
}

static bool has_desktop(void)
{
#ifdef __APPLE__
    return true;
#else
    return has("DISPLAY") || has("WAYLAND_DISPLAY");
#endif
}

#ifdef __APPLE__
static const char *const usual = "open";
#else
static const char *const usual = "xdg-open";
#endif

/* Between fork and exec of a process with threads: nothing that could wait for one of them. */
static _Noreturn void become(const char *chosen, const char *address)
{
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; nothing >= 0 && fd <= 2; fd++)
        dup2(nothing, fd);
    setsid();
    if (fork() == 0) { /* a grandchild, whom nobody has to wait for */
        if (*chosen)
            execlp(chosen, chosen, address, (char *)NULL);
        execlp(usual, usual, address, (char *)NULL);
    }
    _exit(0);
}

bool browser_open(const char *address)
{
    if (!has_desktop())
        return false;
    const char *wanted = has("BROWSER") ? getenv("BROWSER") : "";
    char *first = text_of("%.*s", (int)strcspn(wanted, ":"), wanted); /* of a list */
    const pid_t pid = fork();
    if (pid == 0)
        become(first, address);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    free(first);
    return pid > 0;
}
