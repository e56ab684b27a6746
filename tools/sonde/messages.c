/* SPDX-License-Identifier: Apache-2.0 */
/* What the program says on stderr when something is wrong. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* What a message cites, names of models above all, may hold anything; lines stay lines. */
static void say(const char *prefix, const char *fmt, va_list args)
{
    char *raw = text_of_args(fmt, args);
    fflush(stdout);
    fputs(prefix, stderr);
    for (char *line = raw, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        char *shown = printable(line);
        fprintf(stderr, "%s\n", shown);
        free(shown);
    }
    free(raw);
}

int fail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    progress_end();
    say("sonde: ", fmt, args);
    va_end(args);
    return EXIT_ERROR;
}

int fail_usage(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("sonde: ", fmt, args);
    va_end(args);
    return EXIT_USAGE;
}

void warn(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("sonde: warning: ", fmt, args);
    va_end(args);
}
