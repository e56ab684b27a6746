/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks: once a write has failed nothing more is sent, so exporters need not look at every call. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"

bool sn_sink_write(sn_sink *s, const void *data, size_t bytes)
{
    if (!s->failed && bytes && !s->write(s, data, bytes))
        s->failed = true;
    return !s->failed;
}

bool sn_sink_text(sn_sink *s, const char *text)
{
    return sn_sink_write(s, text, strlen(text));
}

bool sn_sink_printf(sn_sink *s, const char *fmt, ...)
{
    char small[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(small, sizeof small, fmt, args);
    va_end(args);
    if (n < 0) {
        s->failed = true;
        return false;
    }
    if ((size_t)n < sizeof small)
        return sn_sink_write(s, small, (size_t)n);
    size_t bytes = (size_t)n + 1;
    char *large = malloc(bytes);
    if (!large) {
        s->failed = true;
        return false;
    }
    va_start(args, fmt);
    vsnprintf(large, bytes, fmt, args);
    va_end(args);
    sn_sink_write(s, large, (size_t)n);
    free(large);
    return !s->failed;
}
