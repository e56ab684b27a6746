/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C, SIGTERM and SIGHUP. While there is nothing to keep (a model is loaded, a profile read)
 * the program says so and ends at once. While results come together the first signal only asks for
 * an end: the run under way is cancelled, and what was measured is shown and saved. The second
 * signal ends the program the way it would have without any of this. Signals that are ignored when
 * the program starts (nohup, background jobs) stay ignored. A file that becomes larger than the
 * process may write (ulimit -f) is no reason to die: the write fails, and whoever wrote says so. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

static sonde_cancel_token *token;
static volatile sig_atomic_t arrived, keeps;
static bool on_terminal; /* a progress bar may stand there */

static _Noreturn void end_at_once(int number)
{
    static const char clear[] = "\r\033[K", line[] = "sonde: interrupted\n";
    if (on_terminal)
        (void)!write(STDERR_FILENO, clear, sizeof clear - 1);
    (void)!write(STDERR_FILENO, line, sizeof line - 1);
    _exit(EXIT_SIGNAL + number);
}

/* Nothing here but what a signal handler may do. */
static void on_signal(int number)
{
    const int before = errno;
    if (arrived) { /* the default is taken when this returns */
        signal(number, SIG_DFL);
        raise(number);
    } else if (!keeps) {
        end_at_once(number);
    } else {
        arrived = number;
        sonde_cancel(token);
    }
    errno = before;
}

/* Not ignored: programs that this one starts would ignore it, too. */
static void on_large_file(int number)
{
    (void)number;
}

void interrupt_watch(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    on_terminal = isatty(STDERR_FILENO);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction action = {.sa_handler = on_signal}, was; /* no SA_RESTART: waiting ends */
        if (sigaction(signals[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
    const struct sigaction refused = {.sa_handler = on_large_file};
    sigaction(SIGXFSZ, &refused, NULL);
}

int interrupt_keep(void)
{
    sonde_error err;
    if (!token && sonde_cancel_token_create(&token, &err))
        return fail("%s", err.message);
    keeps = 1;
    return EXIT_OK;
}

sonde_cancel_token *interrupt_token(void)
{
    return token;
}

bool interrupted(void)
{
    return arrived != 0;
}

int interrupt_code(int code)
{
    return arrived ? EXIT_SIGNAL + arrived : code;
}
