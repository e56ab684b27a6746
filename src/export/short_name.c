/* SPDX-License-Identifier: Apache-2.0 */
/* A name as far as a terminal has room for it. Names of nodes are paths whose parts repeat each
 * other
 * ("/features/features.2/features.2.0/conv"): of such parts the last says all, so the others go
 * first. If that is not enough, the middle goes, because the end of a path is what tells it from
 * others. */
#include <string.h>

#include "export/writer.h"

typedef struct window { /* columns before `head` and from `tail` on are written */
    sn_writer *w;       /* NULL: only counted */
    size_t at, head, tail, written;
} window;

/* A character, or the escape for it. */
static size_t one(const char *s, size_t *columns)
{
    char c[8] = "";
    uint32_t code = 0;
    const size_t n = sn_utf8_char((const unsigned char *)s, strnlen(s, 4), &code);
    memcpy(c, s, n ? n : 1);
    *columns = sn_terminal_width(c);
    return n ? n : 1;
}

static void put(window *v, const char *s, size_t n)
{
    size_t columns;
    for (size_t step; n; s += step, n -= step) {
        step = one(s, &columns);
        step = step < n ? step : n;
        const bool cut = v->at >= v->head || v->at + columns > v->head;
        if (v->w && (!cut || v->at >= v->tail)) {
            char c[8] = "";
            memcpy(c, s, step);
            sn_put_terminal(v->w, c);
            v->written += columns;
        } else if (v->w && v->written <= v->head && v->head < v->tail) {
            sn_put(v->w, "\xE2\x80\xA6"); /* … */
            v->written++;
            v->head = 0; /* once */
        }
        v->at += columns;
    }
}

/* "features" before "features.2". */
static bool repeated(const char *part, size_t n)
{
    const char *next = part[n] == '/' ? part + n + 1 : "";
    return n > 0 && strncmp(part, next, n) == 0 && next[n] == '.';
}

static void put_tidy(window *v, const char *text)
{
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, "/");
        const size_t all = n + (at[n] == '/');
        if (!repeated(at, n))
            put(v, at, all);
        at += all;
    }
}

size_t sn_put_short(sn_writer *w, const char *text, size_t room)
{
    const size_t whole = sn_terminal_width(text);
    if (whole <= room) {
        sn_put_terminal(w, text);
        return whole;
    }
    window v = {.w = NULL};
    if (!room)
        return 0;
    put_tidy(&v, text);
    const size_t tidy = v.at;
    v = (window){.w = w, .head = tidy};
    if (tidy > room) {
        v.head = (room + 1) / 6;
        v.tail = tidy - (room - 1 - v.head);
    }
    put_tidy(&v, text);
    return v.written;
}
