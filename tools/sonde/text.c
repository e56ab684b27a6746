/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and lists of texts: made, cleaned, written as numbers, compared; and the memory they are
 * in. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tool.h"

void *need(void *memory)
{
    if (!memory) {
        fputs("sonde: out of memory\n", stderr);
        exit(EXIT_ERROR);
    }
    return memory;
}

void *grow(void *memory, size_t n, size_t bytes)
{
    /* Called for every element: memory moves only when n reaches a power of two. */
    if (n & (n - 1))
        return memory;
    return need(realloc(memory, (n ? 2 * n : 1) * bytes));
}

char *text_of_args(const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *s = need(malloc((size_t)(n > 0 ? n : 0) + 1));
    vsnprintf(s, (size_t)(n > 0 ? n : 0) + 1, fmt, args);
    return s;
}

char *text_of(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *s = text_of_args(fmt, args);
    va_end(args);
    return s;
}

/* Control characters, breaks of lines, and what turns the direction of all that follows. */
static bool moves_text(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200E && c <= 0x200F) ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

size_t shown_bytes(const char *s)
{
    uint32_t c = 0;
    const size_t n = *s ? utf8_next(s, &c) : 0;
    return n && !moves_text(c) ? n : 0;
}

char *printable(const char *s)
{
    char *out = text_of("%s", s), *to = out;
    uint32_t c;
    for (size_t n; *s; s += n ? n : 1) {
        n = utf8_next(s, &c);
        if (!n || moves_text(c)) {
            *to++ = '?';
        } else {
            memcpy(to, s, n);
            to += n;
        }
    }
    *to = 0;
    return out;
}

bool ends_with(const char *s, const char *suffix)
{
    const size_t n = strlen(s), m = strlen(suffix);
    return n >= m && strcmp(s + n - m, suffix) == 0;
}

bool has_suffix(const char *path, const char *suffix)
{
    const size_t n = strlen(path), m = strlen(suffix);
    return n >= m && strcasecmp(path + n - m, suffix) == 0;
}

/* Four buffers, so that one printf may use several. */
static char *next_buffer(void)
{
    static char buffers[4][48];
    static unsigned turn;
    return buffers[turn++ % 4];
}

const char *grouped(uint64_t n)
{
    char digits[24], *out = next_buffer();
    const int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    int at = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

const char *bytes_text(uint64_t n)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double x = (double)n;
    int unit = 0;
    for (; x >= 1024 && unit < 4; unit++)
        x /= 1024;
    char *out = next_buffer();
    snprintf(out, 48, unit ? "%.1f %s" : "%.0f %s", x, units[unit]);
    return out;
}

/* Edit distance of short words; long ones count as far apart. */
static size_t distance(const char *a, const char *b)
{
    enum { MAX = 32 };
    const size_t n = strlen(a), m = strlen(b);
    size_t row[MAX + 1];
    if (n > MAX || m > MAX)
        return MAX;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const size_t change = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            const size_t other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < other ? change : other;
        }
    }
    return row[m];
}

const char *closest(const char *word, const char *const *candidates)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 3 + 2;
    for (; *candidates; candidates++) {
        const size_t d = distance(word, *candidates);
        if (d < best_distance) {
            best_distance = d;
            best = *candidates;
        }
    }
    return best;
}

void list_add(list *l, const char *item)
{
    l->items = grow(l->items, l->n, sizeof *l->items);
    l->items[l->n++] = item;
}

void list_free(list *l)
{
    free((void *)l->items);
    *l = (list){.n = 0};
}

void list_free_texts(list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free((void *)(uintptr_t)l->items[i]);
    list_free(l);
}

void text_add_shape(text *t, const int64_t *dims, size_t rank)
{
    text_add(t, "[");
    for (size_t d = 0; d < rank; d++)
        text_add(t, "%s%lld", d ? ", " : "", (long long)dims[d]);
    text_add(t, "]");
}

void text_add(text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *piece = text_of_args(fmt, args);
    va_end(args);
    const size_t n = strlen(piece);
    if (t->n + n + 1 > t->cap) {
        t->cap = 2 * (t->n + n + 1);
        t->data = need(realloc(t->data, t->cap));
    }
    memcpy(t->data + t->n, piece, n + 1);
    t->n += n;
    free(piece);
}

void text_json(text *t, const char *s)
{
    const char *plain = s; /* from there on nothing needs an escape */
    uint32_t c;
    text_add(t, "\"");
    for (size_t n; *s; s += n ? n : 1) {
        n = utf8_next(s, &c);
        if (n && !moves_text(c) && c != '"' && c != '\\')
            continue;
        text_add(t, "%.*s", (int)(s - plain), plain);
        plain = s + (n ? n : 1);
        if (!n)
            text_add(t, "\xEF\xBF\xBD"); /* no character: the one that stands for those */
        else if (moves_text(c))
            text_add(t, "\\u%04x", (unsigned)c);
        else
            text_add(t, "\\%c", (char)c);
    }
    text_add(t, "%.*s\"", (int)(s - plain), plain);
}

void text_free(text *t)
{
    free(t->data);
    *t = (text){.n = 0};
}
