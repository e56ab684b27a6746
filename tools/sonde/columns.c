/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of names. Names come from models: any length, any script, any bytes. A column is as wide
 * on the terminal as its longest name; where the terminal is too narrow, names lose their middle,
 * because their ends tell them apart. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tool.h"

int terminal_width(void)
{
    struct winsize size;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    const long n = columns ? strtol(columns, NULL, 10) : 0;
    return n > 0 && n < 10000 ? (int)n : 0;
}

size_t utf8_next(const char *s, uint32_t *code)
{
    const unsigned char *p = (const unsigned char *)s;
    if (p[0] < 0x80) {
        *code = p[0];
        return 1;
    }
    const size_t n = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c = p[0] & (0x7Fu >> n);
    if (p[0] < 0xC2 || p[0] > 0xF4)
        return 0;
    for (size_t i = 1; i < n; i++) { /* also stops at the terminator */
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3F);
    }
    if (c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return 0;
    *code = c;
    return n;
}

typedef struct range {
    uint32_t first, last;
} range;

static bool within(uint32_t c, const range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

/* Columns of one character: 0 for what combines with the one before, 2 for the wide ones of East
 * Asia and pictures; blocks of Unicode, which is near enough for names. */
static int code_width(uint32_t c)
{
    static const range none[] = {
        {0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x610, 0x61A},   {0x64B, 0x65F},
        {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x2064},
        {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF}};
    static const range wide[] = {
        {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},
        {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},
        {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},
        {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
    if (within(c, none, sizeof none / sizeof *none))
        return 0;
    return within(c, wide, sizeof wide / sizeof *wide) ? 2 : 1;
}

int display_width(const char *s)
{
    int width = 0;
    uint32_t c;
    for (size_t n; *s; s += n ? n : 1) {
        n = utf8_next(s, &c);
        width += n ? code_width(c) : 1;
    }
    return width;
}

/* The longest beginning of `s` that takes at most `width` columns; *used: how many it takes. */
static size_t head_of(const char *s, int width, int *used)
{
    size_t at = 0;
    uint32_t c;
    *used = 0;
    for (size_t n; s[at]; at += n) {
        n = utf8_next(s + at, &c);
        const int one = n ? code_width(c) : 1;
        n = n ? n : 1;
        if (*used + one > width)
            break;
        *used += one;
    }
    return at;
}

char *cell(const char *s, int width)
{
    char *clean = printable(s);
    const int all = display_width(clean);
    text t = {.n = 0};
    if (all <= width) {
        text_add(&t, "%s%*s", clean, width - all, "");
    } else {
        int head, cut;
        const size_t n = head_of(clean, (width - 1) / 2, &head);
        const int left = width - 1 - head;
        /* What is cut off before the end: at least so much that the rest fits. */
        size_t from = head_of(clean, all - left, &cut);
        uint32_t c;
        if (all - cut > left) /* a wide character lies across */
            from += utf8_next(clean + from, &c) ? utf8_next(clean + from, &c) : 1;
        const int tail = display_width(clean + from);
        text_add(&t, "%.*s…%s%*s", (int)n, clean, clean + from, width - 1 - head - tail, "");
    }
    free(clean);
    return t.data ? t.data : text_of("%s", "");
}

int column_width(int longest, int others)
{
    enum { LEAST = 16 };
    const int terminal = terminal_width(), room = terminal - others;
    if (!terminal || longest <= room)
        return longest;
    return room > LEAST ? room : longest < LEAST ? longest : LEAST;
}
