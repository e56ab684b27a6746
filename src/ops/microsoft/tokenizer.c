/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizer of com.microsoft, which converters of text vectorisers write: every text becomes a row
 * of tokens. Tokens are the matches of an expression, or what lies between the matches of
 * separators, one separator after the other, or single characters. */
#include <string.h>

#include "base/regex.h"
#include "base/utf8.h"
#include "ops/shared/data_movement.h"

enum { MAX_SEPARATORS = 64 };

typedef struct token_params {
    sn_regex *patterns; /* the expression, or separators; none: characters */
    size_t n_patterns, workspace_bytes;
    bool between, mark; /* tokens lie between matches; each row begins with STX and ends with ETX */
    int64_t min_chars;
    sonde_string pad;
} token_params;

static sonde_status add_pattern(sn_prep *p, const char *pattern)
{
    token_params *r = p->params;
    sn_regex *regex = &r->patterns[r->n_patterns++];
    const char *wrong = sn_regex_compile(regex, pattern, p->arena);
    if (wrong)
        return sn_prep_fail(p, "pattern '%.200s': %s", pattern, wrong);
    const size_t bytes = sn_regex_workspace(regex);
    r->workspace_bytes = bytes > r->workspace_bytes ? bytes : r->workspace_bytes;
    return SONDE_OK;
}

static sonde_status prepare_token(sn_prep *p)
{
    token_params *r = p->params;
    const char *expression, *pad;
    int64_t mark;
    SN_TRY(sn_prep_int(p, "mark", 0, &mark));
    SN_TRY(sn_prep_int(p, "mincharnum", 1, &r->min_chars));
    SN_TRY(sn_prep_string(p, "pad_value", "", &pad));
    SN_TRY(sn_prep_string(p, "tokenexp", NULL, &expression));
    r->mark = mark != 0;
    r->pad = (sonde_string){pad, strlen(pad)};
    if (r->min_chars < 1)
        return sn_prep_fail(p, "mincharnum is %lld, expected 1 or more", (long long)r->min_chars);
    const sn_attr *list = sn_node_attr(p->node, "separators");
    const size_t n = list && list->kind == SN_ATTR_STRINGS ? list->n : 0;
    if ((n > 0) == (expression && *expression) || n > MAX_SEPARATORS)
        return sn_prep_fail(p, "needs tokenexp, or up to %d separators", MAX_SEPARATORS);
    if (n == 1 && list->strings[0].size == 0)
        return SONDE_OK;
    r->between = n > 0;
    r->patterns = SN_NEW_N(p->arena, sn_regex, n ? n : 1);
    if (!r->patterns)
        return sn_fail_memory(p->err, (n ? n : 1) * sizeof *r->patterns);
    memset(r->patterns, 0, (n ? n : 1) * sizeof *r->patterns);
    if (!n)
        return add_pattern(p, expression);
    for (size_t i = 0; i < n; i++) {
        if (memchr(list->strings[i].data, 0, list->strings[i].size))
            return sn_prep_fail(p, "separator %zu contains a zero byte", i);
        const char *text = sn_arena_strndup(p->arena, list->strings[i].data, list->strings[i].size);
        if (!text)
            return sn_fail_memory(p->err, list->strings[i].size);
        if (!*text)
            return sn_prep_fail(p, "an empty separator must be the only separator");
        SN_TRY(add_pattern(p, text));
    }
    return SONDE_OK;
}

static sonde_status infer_token(sn_infer *c)
{
    sn_input_type x;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    if (x.rank < 0)
        return sn_infer_rank(c, 0, SONDE_DTYPE_STRING, -1);
    if (x.rank != 1 && x.rank != 2)
        return sn_infer_fail(c, "the input must have shape [C] or [N, C]");
    const sn_dim dims[3] = {x.dims[0], x.rank == 2 ? x.dims[1] : SN_DIM_UNKNOWN, SN_DIM_UNKNOWN};
    return sn_infer_bounded(c, 0, SONDE_DTYPE_STRING, dims, x.rank + 1);
}

/* ------------------------------------------------------------------ run */
/* Where tokens go: counted, and written while there is room. */
typedef struct row {
    const token_params *r;
    void *workspace;
    sonde_string *out;
    int64_t n, room;
} row;

static size_t char_bytes(sonde_string text, size_t at)
{
    uint32_t code;
    const size_t n = sn_utf8_char((const unsigned char *)text.data + at, text.size - at, &code);
    return n ? n : 1;
}

static void add_token(row *w, const char *data, size_t size)
{
    const sonde_string token = {data, size};
    int64_t chars = 0;
    for (size_t at = 0; at < size && chars < w->r->min_chars; chars++)
        at += char_bytes(token, at);
    if (chars < w->r->min_chars)
        return;
    if (w->n < w->room)
        w->out[w->n] = token;
    w->n++;
}

/* The first match at or after *from that is not empty: where it begins is in *from. 0: none. */
static size_t find(const row *w, const sn_regex *pattern, sonde_string text, size_t *from)
{
    for (; *from < text.size; *from += char_bytes(text, *from)) {
        const size_t n = sn_regex_longest(pattern, text.data, text.size, *from, w->workspace);
        if (n != SN_REGEX_NONE && n > 0)
            return n;
    }
    return 0;
}

static void split_between(row *w, size_t k, sonde_string text)
{
    if (k == w->r->n_patterns) {
        add_token(w, text.data, text.size);
        return;
    }
    for (size_t at = 0; at < text.size;) {
        size_t end = at;
        const size_t n = find(w, &w->r->patterns[k], text, &end);
        if (end > at)
            split_between(w, k + 1, (sonde_string){text.data + at, end - at});
        at = n ? end + n : text.size;
    }
}

static int64_t split_text(row *w, sonde_string text)
{
    w->n = 0;
    if (w->r->between) {
        split_between(w, 0, text);
        return w->n;
    }
    for (size_t at = 0; at < text.size;) {
        const size_t n =
            w->r->n_patterns ? find(w, w->r->patterns, text, &at) : char_bytes(text, at);
        if (n == 0)
            break;
        add_token(w, text.data + at, n);
        at += n;
    }
    return w->n;
}

/* A row of `width` tokens, `most` of them from the text. */
static void write_row(row *w, sonde_string text, sonde_string *line, int64_t most, int64_t width)
{
    const int64_t marks = width > most;
    w->out = line + marks;
    w->room = most;
    int64_t used = marks + split_text(w, text);
    if (marks) {
        line[0] = (sonde_string){"\x02", 1};
        line[used++] = (sonde_string){"\x03", 1};
    }
    while (used < width)
        line[used++] = w->r->pad;
}

static sonde_status write_rows(row *w, const sn_step *s, sn_frame *f, const sn_tensor *x)
{
    const sonde_string *text = x->data;
    const int64_t n = sn_tensor_count(x);
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t tokens = split_text(w, text[i]);
        most = tokens > most ? tokens : most;
    }
    const int64_t width = most + (w->r->mark && most > 0 ? 2 : 0);
    const int64_t dims[3] = {x->dims[0], x->rank == 2 ? x->dims[1] : width, width};
    size_t bytes;
    if (!sn_tensor_bytes(SONDE_DTYPE_STRING, dims, x->rank + 1, &bytes))
        return sn_fail_memory(f->err, SIZE_MAX);
    sonde_string *out = sn_alloc(f->alloc, bytes + 1);
    if (!out)
        return sn_fail_memory(f->err, bytes);
    for (int64_t i = 0; i < n; i++)
        write_row(w, text[i], out + i * width, most, width);
    const sonde_status st = sn_run_strings(s, f, 0, dims, x->rank + 1, out);
    sn_free(f->alloc, out, bytes + 1);
    return st;
}

static sonde_status run_token(const sn_step *s, sn_frame *f)
{
    const token_params *r = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    if (x->dtype != SONDE_DTYPE_STRING || x->rank < 1 || x->rank > 2)
        return sn_run_fail(s, f, "the input must be strings of shape [C] or [N, C]");
    /* Steps whose shapes depend on data have no workspace from their binding. */
    row w = {.r = r, .workspace = sn_alloc(f->alloc, r->workspace_bytes + 1)};
    if (!w.workspace)
        return sn_fail_memory(f->err, r->workspace_bytes);
    const sonde_status st = write_rows(&w, s, f, x);
    sn_free(f->alloc, w.workspace, r->workspace_bytes + 1);
    return st;
}

const sn_op sn_op_ms_tokenizer[] = {{.name = "Tokenizer",
                                     .domain = "com.microsoft",
                                     .since = 1,
                                     .min_in = 1,
                                     .max_in = 1,
                                     .min_out = 1,
                                     .max_out = 1,
                                     .flags = SN_OP_DATA_DEPENDENT,
                                     .params_size = sizeof(token_params),
                                     .prepare = prepare_token,
                                     .infer = infer_token,
                                     .run = run_token,
                                     .types = "str",
                                     .attributes = "mark mincharnum pad_value separators tokenexp"},
                                    {.name = NULL}};
