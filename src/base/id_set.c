/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of CPU and node numbers. The parser reads files that anybody may have written, so numbers
 * saturate and ranges are cut at the limit before they are walked. */
#include "base/id_set.h"

#include <stdio.h>
#include <string.h>

enum { WORDS = SN_ID_LIMIT / 64 };

int sn_id_set_count(const sn_id_set *s)
{
    int n = 0;
    for (int i = 0; i < WORDS; i++)
        n += __builtin_popcountll(s->words[i]);
    return n;
}

int sn_id_set_next(const sn_id_set *s, int from)
{
    for (int id = from < 0 ? 0 : from; id < SN_ID_LIMIT; id = (id / 64 + 1) * 64) {
        const uint64_t rest = s->words[id / 64] >> (id % 64);
        if (rest)
            return id + __builtin_ctzll(rest);
    }
    return -1;
}

bool sn_id_set_is_empty(const sn_id_set *s)
{
    return sn_id_set_next(s, 0) < 0;
}

bool sn_id_set_within(const sn_id_set *s, const sn_id_set *of)
{
    for (int i = 0; i < WORDS; i++)
        if (s->words[i] & ~of->words[i])
            return false;
    return true;
}

void sn_id_set_keep(sn_id_set *s, const sn_id_set *others)
{
    for (int i = 0; i < WORDS; i++)
        s->words[i] &= others->words[i];
}

void sn_id_set_join(sn_id_set *s, const sn_id_set *others)
{
    for (int i = 0; i < WORDS; i++)
        s->words[i] |= others->words[i];
}

static const char *skip_space(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
        p++;
    return p;
}

/* Digits, as a number that stops growing at the limit. NULL: there are none. */
static const char *take_number(const char *p, int *number)
{
    if (*p < '0' || *p > '9')
        return NULL;
    int n = 0;
    for (; *p >= '0' && *p <= '9'; p++)
        n = n >= SN_ID_LIMIT ? SN_ID_LIMIT : n * 10 + (*p - '0');
    *number = n < SN_ID_LIMIT ? n : SN_ID_LIMIT;
    return p;
}

bool sn_id_set_parse(const char *text, sn_id_set *s, bool *beyond)
{
    bool too_large = false;
    memset(s, 0, sizeof *s);
    for (const char *p = skip_space(text); *p;) {
        int first, last;
        p = take_number(p, &first);
        last = first;
        if (p && *p == '-')
            p = take_number(p + 1, &last);
        if (!p || last < first)
            goto malformed;
        too_large |= last >= SN_ID_LIMIT;
        for (int id = first; id <= last && id < SN_ID_LIMIT; id++)
            sn_id_set_add(s, id);
        p = skip_space(p);
        if (*p == ',' && *(p = skip_space(p + 1)))
            continue;
        if (*p || p[-1] == ',')
            goto malformed;
    }
    if (beyond)
        *beyond = too_large;
    return true;
malformed:
    memset(s, 0, sizeof *s);
    if (beyond)
        *beyond = false;
    return false;
}

const char *sn_id_set_text(const sn_id_set *s, char *text, size_t bytes)
{
    enum { RANGE_BYTES = 16 }; /* ",8190-8191" */
    size_t n = 0;
    if (!bytes)
        return text;
    text[0] = 0;
    for (int id = sn_id_set_next(s, 0); id >= 0;) {
        int last = id;
        while (sn_id_set_has(s, last + 1))
            last++;
        char range[RANGE_BYTES + 16];
        const int w = last > id ? snprintf(range, sizeof range, "%s%d-%d", n ? "," : "", id, last)
                                : snprintf(range, sizeof range, "%s%d", n ? "," : "", id);
        if (n + (size_t)w + sizeof "..." > bytes) {
            snprintf(text + n, bytes - n, "...");
            return text;
        }
        memcpy(text + n, range, (size_t)w + 1);
        n += (size_t)w;
        id = sn_id_set_next(s, last + 1);
    }
    return text;
}
