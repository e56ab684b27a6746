/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar for people; nothing at all when stderr is not a terminal. */
#include <unistd.h>

#include "tool.h"

static bool shown;

void progress(const common_options *o, const char *what, double done)
{
    enum { WIDTH = 30, EVERY_MS = 80 };
    static double last_ms;
    if (o->quiet || o->verbose || !isatty(STDERR_FILENO) || now_ms() - last_ms < (double)EVERY_MS)
        return;
    last_ms = now_ms();
    done = done < 0 ? 0 : done > 1 ? 1 : done;
    char bar[WIDTH + 1];
    for (int i = 0; i < WIDTH; i++)
        bar[i] = (double)i < done * (double)WIDTH ? '#' : '.';
    bar[WIDTH] = 0;
    fprintf(stderr, "\r%-12s [%s] %3.0f %%", what, bar, done * 100);
    fflush(stderr);
    shown = true;
}

void progress_end(void)
{
    if (shown)
        fprintf(stderr, "\r\033[K");
    shown = false;
}
