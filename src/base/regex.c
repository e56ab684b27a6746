/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles by recursive descent: jumps are relative, so a piece of program can be shifted to put a
 * branch before it, and a counted repetition simply compiles its source again. Runs as a set of
 * states over the text (Thompson's construction). */
#include "base/regex.h"

#include <string.h>

enum {
    MAX_CODE = 10000,
    MAX_RANGES = 100000,
    MAX_REPEAT = 1000,
    MAX_DEPTH = 200,
    MAX_ATOMS = 100000,
    MAX_POINT = 0x10FFFF
};

typedef struct parser {
    sn_regex *r;
    sn_arena *arena;
    const char *at;
    const char *error; /* the first thing that went wrong */
    int depth;
    int atoms; /* read so far: counted repetitions read theirs again */
} parser;

static bool fail(parser *p, const char *why)
{
    if (!p->error)
        p->error = why;
    return false;
}

/* ------------------------------------------------------------------ emitting */
static bool emit(parser *p, sn_regex_instr in)
{
    sn_regex *r = p->r;
    if (r->n >= MAX_CODE)
        return fail(p, "the pattern is too large");
    if (r->n == r->cap) {
        uint32_t cap = r->cap ? 2 * r->cap : 32;
        sn_regex_instr *code = SN_NEW_N(p->arena, sn_regex_instr, cap);
        if (!code)
            return fail(p, "out of memory");
        if (r->n)
            memcpy(code, r->code, r->n * sizeof *code);
        r->code = code;
        r->cap = cap;
    }
    r->code[r->n++] = in;
    return true;
}

/* Puts one instruction before the piece that begins at `start`. */
static bool insert(parser *p, uint32_t start, sn_regex_instr in)
{
    if (!emit(p, in))
        return false;
    sn_regex_instr *code = p->r->code;
    memmove(&code[start + 1], &code[start], (p->r->n - 1 - start) * sizeof *code);
    code[start] = in;
    return true;
}

static bool add_range(parser *p, uint32_t lo, uint32_t hi)
{
    sn_regex *r = p->r;
    if (r->n_ranges >= MAX_RANGES)
        return fail(p, "the pattern is too large");
    if (r->n_ranges == r->cap_ranges) {
        uint32_t cap = r->cap_ranges ? 2 * r->cap_ranges : 64;
        sn_regex_range *ranges = SN_NEW_N(p->arena, sn_regex_range, cap);
        if (!ranges)
            return fail(p, "out of memory");
        if (r->n_ranges)
            memcpy(ranges, r->ranges, r->n_ranges * sizeof *ranges);
        r->ranges = ranges;
        r->cap_ranges = cap;
    }
    r->ranges[r->n_ranges++] = (sn_regex_range){lo, hi};
    return true;
}

static bool emit_set(parser *p, uint32_t first, bool negate)
{
    return emit(p, (sn_regex_instr){.op = SN_REGEX_RANGES,
                                    .negate = negate,
                                    .first = first,
                                    .n = p->r->n_ranges - first});
}

/* ------------------------------------------------------------------ characters */
/* One code point; a byte that begins none counts by itself. Returns its length. */
static size_t decode(const char *s, size_t left, uint32_t *point)
{
    const unsigned char *b = (const unsigned char *)s;
    size_t n = b[0] < 0x80                   ? 1
               : b[0] >= 0xF0 && b[0] < 0xF8 ? 4
               : b[0] >= 0xE0                ? 3
               : b[0] >= 0xC0                ? 2
                                             : 1;
    *point = b[0];
    if (n == 1 || n > left || b[0] >= 0xF8)
        return 1;
    uint32_t v = b[0] & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((b[i] & 0xC0) != 0x80)
            return 1;
        v = v << 6 | (b[i] & 0x3F);
    }
    *point = v;
    return n;
}

static bool is_word(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

typedef struct named_class {
    const char *name;
    sn_regex_range ranges[4]; /* sorted, ended by {0, 0} unless full */
} named_class;

static const named_class classes[] = {
    {"d", {{'0', '9'}}},
    {"w", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
    {"s", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}},
    {"[:alnum:]", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
    {"[:alpha:]", {{'A', 'Z'}, {'a', 'z'}}},
    {"[:digit:]", {{'0', '9'}}},
    {"[:lower:]", {{'a', 'z'}}},
    {"[:upper:]", {{'A', 'Z'}}},
    {"[:space:]", {{'\t', '\r'}, {' ', ' '}}},
    {"[:punct:]", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
    {"[:xdigit:]", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
    {"[:word:]", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}}};

/* Adds a class, or everything else. */
static bool add_class(parser *p, const named_class *c, bool negate)
{
    uint32_t next = 0;
    for (int i = 0; i < 4 && c->ranges[i].hi; i++) {
        if (!negate && !add_range(p, c->ranges[i].lo, c->ranges[i].hi))
            return false;
        if (negate && !add_range(p, next, c->ranges[i].lo - 1))
            return false;
        next = c->ranges[i].hi + 1;
    }
    return !negate || add_range(p, next, MAX_POINT);
}

/* \d \w \s and their capital opposites at p->at, which is behind the backslash. */
static const named_class *perl_class(const parser *p, bool *negate)
{
    for (int i = 0; i < 3; i++) {
        char c = classes[i].name[0];
        *negate = *p->at == c - 32;
        if (*p->at == c || *negate)
            return &classes[i];
    }
    return NULL;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* An escaped single character; p->at is behind the backslash. */
static bool escaped(parser *p, uint32_t *point)
{
    static const char from[] = "ntrfva", to[] = "\n\t\r\f\v\a";
    char c = *p->at;
    const char *k = c ? strchr(from, c) : NULL;
    if (k) {
        *point = (uint32_t)to[k - from];
        p->at++;
        return true;
    }
    if (c == 'x') {
        bool braces = p->at[1] == '{';
        p->at += braces ? 2 : 1;
        *point = 0;
        for (int i = 0; i < (braces ? 6 : 2) && hex_digit(*p->at) >= 0; i++)
            *point = *point * 16 + (uint32_t)hex_digit(*p->at++);
        if (braces && *p->at++ != '}')
            return fail(p, "a hexadecimal escape is not closed");
        return *point <= MAX_POINT || fail(p, "a code point is too large");
    }
    if (c == '\0' || is_word((unsigned char)c))
        return fail(p, "an escape is unknown");
    p->at += decode(p->at, strlen(p->at), point);
    return true;
}

static bool class_member(parser *p, uint32_t *point)
{
    if (*p->at == '\\') {
        p->at++;
        return escaped(p, point);
    }
    p->at += decode(p->at, strlen(p->at), point);
    return true;
}

/* A bracket expression; p->at is behind the bracket. */
static bool parse_class(parser *p)
{
    uint32_t first = p->r->n_ranges;
    bool negate = *p->at == '^', perl_negate;
    if (negate)
        p->at++;
    for (bool any = false; any == false || *p->at != ']'; any = true) {
        const named_class *named = NULL;
        if (*p->at == '\0')
            return fail(p, "a class is not closed");
        for (size_t i = 3; i < sizeof classes / sizeof classes[0] && !named; i++)
            if (strncmp(p->at, classes[i].name, strlen(classes[i].name)) == 0)
                named = &classes[i];
        if (named) {
            p->at += strlen(named->name);
            if (!add_class(p, named, false))
                return false;
            continue;
        }
        if (*p->at == '\\') {
            p->at++;
            named = perl_class(p, &perl_negate);
            if (named) {
                p->at++;
                if (!add_class(p, named, perl_negate))
                    return false;
                continue;
            }
            p->at--;
        }
        uint32_t lo = 0, hi;
        if (!class_member(p, &lo))
            return false;
        hi = lo;
        if (p->at[0] == '-' && p->at[1] && p->at[1] != ']') {
            p->at++;
            if (!class_member(p, &hi))
                return false;
        }
        if (hi < lo)
            return fail(p, "a range is reversed");
        if (!add_range(p, lo, hi))
            return false;
    }
    p->at++;
    return emit_set(p, first, negate);
}

/* ------------------------------------------------------------------ grammar */
static bool parse_alternatives(parser *p);

static bool parse_group(parser *p)
{
    if (++p->depth > MAX_DEPTH)
        return fail(p, "groups are nested too deeply");
    if (p->at[0] == '?') {
        if (p->at[1] == ':') {
            p->at += 2;
        } else {
            const char *end = strchr(p->at, '>');
            if (strncmp(p->at, "?P<", 3) != 0 || !end)
                return fail(p, "this kind of group is not supported");
            p->at = end + 1;
        }
    }
    if (!parse_alternatives(p))
        return false;
    if (*p->at != ')')
        return fail(p, "a group is not closed");
    p->at++;
    p->depth--;
    return true;
}

static bool parse_escape(parser *p)
{
    bool negate;
    uint32_t first = p->r->n_ranges, point = 0;
    const named_class *named = perl_class(p, &negate);
    if (named) {
        p->at++;
        return add_class(p, named, false) && emit_set(p, first, negate);
    }
    static const struct {
        char c;
        sn_regex_op op;
    } edges[] = {{'b', SN_REGEX_WORD_EDGE},
                 {'B', SN_REGEX_NOT_WORD_EDGE},
                 {'A', SN_REGEX_BEGIN},
                 {'z', SN_REGEX_END}};
    for (int i = 0; i < 4; i++)
        if (*p->at == edges[i].c) {
            p->at++;
            return emit(p, (sn_regex_instr){.op = edges[i].op});
        }
    return escaped(p, &point) && add_range(p, point, point) && emit_set(p, first, false);
}

static bool parse_atom(parser *p)
{
    uint32_t first = p->r->n_ranges, point;
    if (++p->atoms > MAX_ATOMS)
        return fail(p, "the pattern is too large");
    switch (*p->at) {
    case '(':
        p->at++;
        return parse_group(p);
    case '[':
        p->at++;
        return parse_class(p);
    case '\\':
        p->at++;
        return parse_escape(p);
    case '^':
        p->at++;
        return emit(p, (sn_regex_instr){.op = SN_REGEX_BEGIN});
    case '$':
        p->at++;
        return emit(p, (sn_regex_instr){.op = SN_REGEX_END});
    case '.':
        p->at++;
        return add_range(p, '\n', '\n') && emit_set(p, first, true);
    case '*':
    case '+':
    case '?':
        return fail(p, "a repetition has nothing to repeat");
    default:
        break;
    }
    p->at += decode(p->at, strlen(p->at), &point);
    return add_range(p, point, point) && emit_set(p, first, false);
}

/* Turns the piece from `start` into one taken at most once, or any number of times. */
static bool make_optional(parser *p, uint32_t start)
{
    return insert(
        p, start,
        (sn_regex_instr){.op = SN_REGEX_SPLIT, .x = 1, .y = (int32_t)(p->r->n - start) + 1});
}

static bool make_star(parser *p, uint32_t start)
{
    int32_t length = (int32_t)(p->r->n - start);
    return insert(p, start, (sn_regex_instr){.op = SN_REGEX_SPLIT, .x = 1, .y = length + 2}) &&
           emit(p, (sn_regex_instr){.op = SN_REGEX_JUMP, .x = -(length + 1)});
}

static bool read_number(const char **s, int *n)
{
    if (**s < '0' || **s > '9')
        return false;
    for (*n = 0; **s >= '0' && **s <= '9'; ++*s)
        *n = *n > MAX_REPEAT ? *n : *n * 10 + (**s - '0');
    return true;
}

/* {m}, {m,} or {m,n} at s; *max -1: no limit. Anything else is plain text. */
static const char *read_counts(const char *s, int *min, int *max)
{
    s++;
    if (!read_number(&s, min))
        return NULL;
    *max = *min;
    if (*s == ',') {
        s++;
        *max = -1;
        if (*s != '}' && !read_number(&s, max))
            return NULL;
    }
    return *s == '}' ? s + 1 : NULL;
}

/* The atom whose source begins at `source` and whose program begins at `start`, min to max times.
 */
static bool repeat(parser *p, const char *source, uint32_t start, int min, int max)
{
    const char *after = p->at;
    if (min > MAX_REPEAT || max > MAX_REPEAT || (max >= 0 && max < min))
        return fail(p, "a repetition count is invalid");
    p->r->n = start;
    for (int i = 0; i < (max < 0 ? min + 1 : max); i++) {
        uint32_t piece = p->r->n;
        int depth = p->depth;
        p->at = source;
        if (!parse_atom(p))
            return false;
        p->depth = depth;
        if (i >= min && !(max < 0 ? make_star(p, piece) : make_optional(p, piece)))
            return false;
    }
    p->at = after;
    return true;
}

static bool parse_repeated(parser *p)
{
    const char *source = p->at, *after;
    uint32_t start = p->r->n;
    int min, max;
    if (!parse_atom(p))
        return false;
    switch (*p->at) {
    case '*':
        min = 0, max = -1, after = p->at + 1;
        break;
    case '+':
        min = 1, max = -1, after = p->at + 1;
        break;
    case '?':
        min = 0, max = 1, after = p->at + 1;
        break;
    case '{':
        after = read_counts(p->at, &min, &max);
        break;
    default:
        return true;
    }
    if (!after)
        return true;
    p->at = after + (*after == '?'); /* lazy or greedy: a full match does not tell them apart */
    if (*p->at == '*' || *p->at == '+')
        return fail(p, "a repetition repeats a repetition");
    return repeat(p, source, start, min, max);
}

static bool parse_alternatives(parser *p)
{
    uint32_t start = p->r->n;
    while (*p->at && *p->at != ')' && *p->at != '|')
        if (!parse_repeated(p))
            return false;
    if (*p->at != '|')
        return true;
    p->at++;
    int32_t length = (int32_t)(p->r->n - start);
    if (!insert(p, start, (sn_regex_instr){.op = SN_REGEX_SPLIT, .x = 1, .y = length + 2}) ||
        !emit(p, (sn_regex_instr){.op = SN_REGEX_JUMP}))
        return false;
    uint32_t jump = p->r->n - 1;
    if (++p->depth > MAX_DEPTH)
        return fail(p, "the pattern has too many alternatives");
    if (!parse_alternatives(p))
        return false;
    p->depth--;
    p->r->code[jump].x = (int32_t)(p->r->n - jump);
    return true;
}

const char *sn_regex_compile(sn_regex *r, const char *pattern, sn_arena *arena)
{
    parser p = {.r = r, .arena = arena, .at = pattern};
    if (parse_alternatives(&p) && *p.at)
        fail(&p, "a closing parenthesis has no opening one");
    if (!p.error)
        emit(&p, (sn_regex_instr){.op = SN_REGEX_MATCH});
    return p.error;
}

/* ------------------------------------------------------------------ running */
/* Two sets of states, the stack that follows jumps, and when a state was last added. */
size_t sn_regex_workspace(const sn_regex *r)
{
    return (size_t)r->n * 5 * sizeof(uint32_t);
}

typedef struct state_set {
    uint32_t *list, n;
} state_set;

typedef struct matcher {
    const sn_regex *r;
    uint32_t *mark, *stack;
    uint32_t step;
    bool at_begin, at_end, edge;
} matcher;

/* Adds pc and what it reaches without reading. Returns true when that includes the end. */
static bool add_state(matcher *m, state_set *s, uint32_t pc)
{
    bool matched = false;
    uint32_t depth = 0;
    if (m->mark[pc] == m->step)
        return false;
    m->mark[pc] = m->step;
    m->stack[depth++] = pc;
    while (depth) {
        pc = m->stack[--depth];
        const sn_regex_instr *in = &m->r->code[pc];
        int32_t next[2] = {1, 0};
        int n = 1;
        switch (in->op) {
        case SN_REGEX_RANGES:
            s->list[s->n++] = pc;
            continue;
        case SN_REGEX_MATCH:
            matched = true;
            continue;
        case SN_REGEX_JUMP:
            next[0] = in->x;
            break;
        case SN_REGEX_SPLIT:
            next[0] = in->x;
            next[1] = in->y;
            n = 2;
            break;
        case SN_REGEX_BEGIN:
            n = m->at_begin;
            break;
        case SN_REGEX_END:
            n = m->at_end;
            break;
        case SN_REGEX_WORD_EDGE:
            n = m->edge;
            break;
        case SN_REGEX_NOT_WORD_EDGE:
            n = !m->edge;
            break;
        }
        for (int i = 0; i < n; i++) {
            uint32_t to = (uint32_t)((int32_t)pc + next[i]);
            if (m->mark[to] != m->step) {
                m->mark[to] = m->step;
                m->stack[depth++] = to;
            }
        }
    }
    return matched;
}

static bool in_ranges(const sn_regex *r, const sn_regex_instr *in, uint32_t c)
{
    for (uint32_t i = 0; i < in->n; i++)
        if (c >= r->ranges[in->first + i].lo && c <= r->ranges[in->first + i].hi)
            return !in->negate;
    return in->negate;
}

size_t sn_regex_longest(const sn_regex *r, const char *text, size_t size, size_t from,
                        void *workspace)
{
    uint32_t *w = workspace;
    state_set now = {w, 0}, next = {w + r->n, 0};
    matcher m = {.r = r, .mark = w + 2 * r->n, .stack = w + 3 * r->n, .step = 1};
    memset(m.mark, 0, r->n * sizeof *m.mark);
    size_t at = from, longest = SN_REGEX_NONE;
    uint32_t before = from ? (unsigned char)text[from - 1] : 0, c = 0;
    size_t width = at < size ? decode(text + at, size - at, &c) : 0;
    m.at_begin = at == 0;
    m.at_end = at >= size;
    m.edge = (from > 0 && is_word(before)) != (at < size && is_word(c));
    if (add_state(&m, &now, 0))
        longest = 0;
    while (at < size && now.n > 0) {
        uint32_t after = 0;
        before = c;
        at += width;
        size_t next_width = at < size ? decode(text + at, size - at, &after) : 0;
        m.at_begin = false;
        m.at_end = at >= size;
        m.edge = is_word(before) != (at < size && is_word(after));
        if (++m.step == 0) { /* the marks have gone round */
            memset(m.mark, 0, r->n * sizeof *m.mark);
            m.step = 1;
        }
        next.n = 0;
        for (uint32_t i = 0; i < now.n; i++) {
            const sn_regex_instr *in = &r->code[now.list[i]];
            if (in_ranges(r, in, before) && add_state(&m, &next, now.list[i] + 1))
                longest = at - from;
        }
        state_set swap = now;
        now = next;
        next = swap;
        c = after;
        width = next_width;
    }
    return longest;
}

bool sn_regex_full_match(const sn_regex *r, const char *text, size_t size, void *workspace)
{
    return sn_regex_longest(r, text, size, 0, workspace) == size;
}
