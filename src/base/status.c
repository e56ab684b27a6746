/* SPDX-License-Identifier: Apache-2.0 */
/* Error sentences. They are composed in a buffer of their own first, so that an argument may be the
 * very message that is being replaced; what does not fit is cut at a whole UTF-8 character. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { MESSAGE_BYTES = sizeof(((sonde_error *)0)->message) };

/* Copies `text` into the message; when it was longer than the room, no half character stays behind.
 */
static void store(sonde_error *err, const char *text)
{
    size_t n = strlen(text);
    if (n >= MESSAGE_BYTES) {
        n = MESSAGE_BYTES - 1;
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
            n--;
    }
    memcpy(err->message, text, n);
    err->message[n] = '\0';
}

sonde_status sn_fail_va(sonde_error *err, sonde_status status, const char *fmt, va_list args)
{
    if (err) {
        /* One byte more than a message holds, so that store() sees that something was cut. */
        char text[MESSAGE_BYTES + 8];
        if (vsnprintf(text, sizeof text, fmt, args) < 0)
            text[0] = '\0';
        err->status = status;
        store(err, text);
    }
    return status;
}

sonde_status sn_fail(sonde_error *err, sonde_status status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sn_fail_va(err, status, fmt, args);
    va_end(args);
    return status;
}

void sn_error_prefix(sonde_error *err, const char *fmt, ...)
{
    if (!err)
        return;
    char text[2 * MESSAGE_BYTES + 8];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, MESSAGE_BYTES, fmt, args);
    va_end(args);
    if (n < 0)
        return;
    size_t at = strlen(text);
    snprintf(text + at, sizeof text - at, ": %s", err->message);
    store(err, text);
}

sonde_status sn_fail_memory(sonde_error *err, size_t bytes)
{
    const size_t limit = sn_alloc_limit_reached();
    if (!bytes && limit)
        return sn_fail(err, SONDE_OUT_OF_MEMORY,
                       "there is not enough memory: the memory limit is %zu bytes (max_memory, "
                       "--max-memory)",
                       limit);
    if (!bytes)
        return sn_fail(err, SONDE_OUT_OF_MEMORY, "there is not enough memory");
    if (limit)
        return sn_fail(err, SONDE_OUT_OF_MEMORY,
                       "cannot allocate %zu bytes: the memory limit is %zu bytes (max_memory, "
                       "--max-memory)",
                       bytes, limit);
    return sn_fail(err, SONDE_OUT_OF_MEMORY, "cannot allocate %zu bytes", bytes);
}
