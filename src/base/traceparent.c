/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal digits are lower case and ids are not all zeros; what breaks a rule is no trace at
 * all, never a part of one. */
#include "base/traceparent.h"

#include <stddef.h>
#include <string.h>

/* Where the parts of version 00 lie. */
enum { VERSION_AT = 0, TRACE_AT = 3, SPAN_AT = 36, FLAGS_AT = 53, LENGTH = 55 };

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_bytes(const char *text, uint8_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int high = digit(text[2 * i]), low = high < 0 ? -1 : digit(text[2 * i + 1]);
        if (low < 0)
            return false;
        to[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool all_zero(const uint8_t *bytes, size_t n)
{
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++)
        any |= bytes[i];
    return !any;
}

static bool parse(const char *text, sn_caller *c)
{
    uint8_t version;
    const size_t n = text ? strnlen(text, LENGTH + 1) : 0;
    if (n < LENGTH || text[TRACE_AT - 1] != '-' || text[SPAN_AT - 1] != '-' ||
        text[FLAGS_AT - 1] != '-' || !read_bytes(text + VERSION_AT, &version, 1))
        return false;
    if (version == 0xff || (n > LENGTH && (version == 0 || text[LENGTH] != '-')))
        return false;
    return read_bytes(text + TRACE_AT, c->trace_id, sizeof c->trace_id) &&
           read_bytes(text + SPAN_AT, c->span_id, sizeof c->span_id) &&
           read_bytes(text + FLAGS_AT, &c->flags, 1) &&
           !all_zero(c->trace_id, sizeof c->trace_id) && !all_zero(c->span_id, sizeof c->span_id);
}

bool sn_traceparent_parse(const char *text, sn_caller *out)
{
    sn_caller c = {.flags = 0};
    const bool fine = parse(text, &c);
    *out = fine ? c : (sn_caller){.flags = 0};
    return fine;
}

static char *put_bytes(char *to, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
    return to;
}

const char *sn_traceparent_text(const sn_caller *c, char text[SN_TRACEPARENT_TEXT])
{
    char *to = text;
    *to++ = '0';
    *to++ = '0';
    *to++ = '-';
    to = put_bytes(to, c->trace_id, sizeof c->trace_id);
    *to++ = '-';
    to = put_bytes(to, c->span_id, sizeof c->span_id);
    *to++ = '-';
    *put_bytes(to, &c->flags, 1) = 0;
    return text;
}
