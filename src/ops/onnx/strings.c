/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that make new text: StringConcat, StringSplit, StringNormalizer; and RegexFullMatch.
 * Case changes are ASCII; other bytes pass unchanged. */
#include <string.h>

#include "base/regex.h"
#include "ops/shared/data_movement.h"

static sonde_status need_strings(const sn_step *s, sn_frame *f, const sn_tensor *t)
{
    return t->dtype == SONDE_DTYPE_STRING
               ? SONDE_OK
               : sn_run_fail(s, f, "%s input, expected strings", sn_dtype_name(t->dtype));
}

static bool same_text(sonde_string a, sonde_string b, bool fold)
{
    if (a.size != b.size)
        return false;
    for (size_t i = 0; i < a.size; i++) {
        unsigned char x = (unsigned char)a.data[i], y = (unsigned char)b.data[i];
        if (fold) {
            x = x >= 'A' && x <= 'Z' ? (unsigned char)(x + 32) : x;
            y = y >= 'A' && y <= 'Z' ? (unsigned char)(y + 32) : y;
        }
        if (x != y)
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------ StringConcat */
static sonde_status infer_concat(sn_infer *c)
{
    sn_dim dims[SN_MAX_RANK];
    int rank;
    SN_TRY(sn_infer_broadcast(c, &c->in[0]->type, &c->in[1]->type, dims, &rank));
    return sn_infer_bounded(c, 0, SONDE_DTYPE_STRING, dims, rank);
}

/* Strides of t against the broadcast dims: 0 where it repeats. */
static void broadcast_strides(const sn_tensor *t, int rank, ptrdiff_t *out)
{
    ptrdiff_t strides[SN_MAX_RANK];
    sn_dense_strides(t->dims, t->rank, strides);
    for (int i = 0; i < rank; i++) {
        int k = i - (rank - t->rank);
        out[i] = k < 0 || t->dims[k] == 1 ? 0 : strides[k];
    }
}

/* Pairs that broadcasting brings together, one after the other. */
typedef struct pairs {
    const sonde_string *a, *b;
    int rank;
    int64_t dims[SN_MAX_RANK], at[SN_MAX_RANK], count;
    ptrdiff_t sa[SN_MAX_RANK], sb[SN_MAX_RANK], oa, ob;
} pairs;

static bool pairs_begin(pairs *p, const sn_tensor *a, const sn_tensor *b)
{
    memset(p, 0, sizeof *p);
    p->a = a->data;
    p->b = b->data;
    p->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < p->rank; i++) {
        int ia = i - (p->rank - a->rank), ib = i - (p->rank - b->rank);
        int64_t da = ia >= 0 ? a->dims[ia] : 1, db = ib >= 0 ? b->dims[ib] : 1;
        if (da != db && da != 1 && db != 1)
            return false;
        p->dims[i] = da == 1 ? db : da;
    }
    broadcast_strides(a, p->rank, p->sa);
    broadcast_strides(b, p->rank, p->sb);
    return sn_dims_count(p->dims, p->rank, &p->count);
}

static void pairs_next(pairs *p, sonde_string *a, sonde_string *b)
{
    *a = p->a[p->oa];
    *b = p->b[p->ob];
    for (int k = p->rank - 1; k >= 0; k--) {
        p->oa += p->sa[k];
        p->ob += p->sb[k];
        if (++p->at[k] < p->dims[k])
            return;
        p->at[k] = 0;
        p->oa -= (ptrdiff_t)p->dims[k] * p->sa[k];
        p->ob -= (ptrdiff_t)p->dims[k] * p->sb[k];
    }
}

static sonde_status run_concat(const sn_step *s, sn_frame *f)
{
    const sn_tensor *a = sn_in(s, f, 0), *b = sn_in(s, f, 1);
    pairs p;
    SN_TRY(need_strings(s, f, a));
    SN_TRY(need_strings(s, f, b));
    if (!pairs_begin(&p, a, b))
        return sn_run_fail(s, f, "the shapes do not broadcast");
    size_t table, text = 0, bytes;
    sonde_string x, y;
    if (!sn_size_mul((size_t)p.count, sizeof(sonde_string), &table))
        return sn_fail_memory(f->err, SIZE_MAX);
    for (int64_t i = 0; i < p.count; i++) {
        pairs_next(&p, &x, &y);
        if (!sn_size_add(text, x.size, &text) || !sn_size_add(text, y.size, &text))
            return sn_fail_memory(f->err, SIZE_MAX);
    }
    if (!sn_size_add(table, text, &bytes))
        return sn_fail_memory(f->err, SIZE_MAX);
    sonde_string *out = sn_alloc(f->alloc, bytes);
    if (!out)
        return sn_fail_memory(f->err, bytes);
    char *at = (char *)out + table;
    pairs_begin(&p, a, b);
    for (int64_t i = 0; i < p.count; i++) {
        pairs_next(&p, &x, &y);
        out[i] = (sonde_string){at, x.size + y.size};
        if (x.size)
            memcpy(at, x.data, x.size);
        if (y.size)
            memcpy(at + x.size, y.data, y.size);
        at += x.size + y.size;
    }
    sonde_status st = sn_run_strings(s, f, 0, p.dims, p.rank, out);
    sn_free(f->alloc, out, bytes);
    return st;
}

const sn_op sn_op_string_concat[] = {{SN_OP_HEAD("StringConcat", 20, 0, 2, 2, 1, 1),
                                      .flags = SN_OP_DATA_DEPENDENT, .infer = infer_concat,
                                      .run = run_concat, .types = "str"},
                                     {.name = NULL}};

/* ------------------------------------------------------------------ StringSplit */
typedef struct split_params {
    const char *delimiter; /* "": runs of white space */
    int64_t max_split;     /* -1: no limit */
} split_params;

static sonde_status prepare_split(sn_prep *p)
{
    split_params *r = p->params;
    SN_TRY(sn_prep_string(p, "delimiter", "", &r->delimiter));
    return sn_prep_int(p, "maxsplit", -1, &r->max_split);
}

static sonde_status infer_split(sn_infer *c)
{
    sn_input_type x;
    sn_dim dims[SN_MAX_RANK];
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(sn_infer_bounded(c, 1, SONDE_DTYPE_I64, x.dims, x.rank));
    if (x.rank < 0)
        return sn_infer_rank(c, 0, SONDE_DTYPE_STRING, -1);
    if (x.rank >= SN_MAX_RANK)
        return sn_infer_fail(c, "the rank would exceed %d", SN_MAX_RANK);
    memcpy(dims, x.dims, (size_t)x.rank * sizeof *dims);
    dims[x.rank] = SN_DIM_UNKNOWN;
    return sn_infer_bounded(c, 0, SONDE_DTYPE_STRING, dims, x.rank + 1);
}

static bool is_space(char ch)
{
    return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

/* Parts of one string, at most `cap` of them written to out (which may be NULL); returns how many.
 */
static int64_t split_text(const split_params *r, sonde_string text, sonde_string *out, int64_t cap)
{
    size_t width = strlen(r->delimiter), at = 0;
    int64_t n = 0;
    while (at <= text.size) {
        if (width == 0) {
            while (at < text.size && is_space(text.data[at]))
                at++;
            if (at == text.size)
                break;
        }
        size_t end = at;
        bool last = r->max_split >= 0 && n >= r->max_split;
        if (last) {
            end = text.size;
            while (width == 0 && end > at && is_space(text.data[end - 1]))
                end--;
        } else if (width == 0) {
            while (end < text.size && !is_space(text.data[end]))
                end++;
        } else {
            while (end + width <= text.size && memcmp(text.data + end, r->delimiter, width) != 0)
                end++;
            if (end + width > text.size)
                end = text.size, last = true;
        }
        if (out && n < cap)
            out[n] = (sonde_string){text.data + at, end - at};
        n++;
        if (last)
            break;
        at = end + (width ? width : 1);
    }
    return n;
}

static sonde_status run_split(const sn_step *s, sn_frame *f)
{
    const split_params *r = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    const sonde_string *text = x->data;
    int64_t n = sn_tensor_count(x), most = 0, dims[SN_MAX_RANK + 1];
    SN_TRY(need_strings(s, f, x));
    if (x->rank >= SN_MAX_RANK)
        return sn_run_fail(s, f, "the rank would exceed %d", SN_MAX_RANK);
    sn_tensor *counts;
    SN_TRY(sn_run_output(s, f, 1, SONDE_DTYPE_I64, x->dims, x->rank, &counts));
    for (int64_t i = 0; i < n; i++) {
        int64_t parts = split_text(r, text[i], NULL, 0);
        most = parts > most ? parts : most;
        if (counts)
            ((int64_t *)counts->data)[i] = parts;
    }
    memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    dims[x->rank] = most;
    size_t bytes;
    if (!sn_tensor_bytes(SONDE_DTYPE_STRING, dims, x->rank + 1, &bytes))
        return sn_fail_memory(f->err, SIZE_MAX);
    sonde_string *out = sn_alloc_zero(f->alloc, bytes);
    if (!out)
        return sn_fail_memory(f->err, bytes);
    for (int64_t i = 0; i < n; i++)
        split_text(r, text[i], out + i * most, most);
    sonde_status st = sn_run_strings(s, f, 0, dims, x->rank + 1, out);
    sn_free(f->alloc, out, bytes);
    return st;
}

const sn_op sn_op_string_split[] = {{SN_OP_HEAD("StringSplit", 20, 0, 1, 1, 2, 2),
                                     .flags = SN_OP_DATA_DEPENDENT,
                                     .params_size = sizeof(split_params), .prepare = prepare_split,
                                     .infer = infer_split, .run = run_split, .types = "str"},
                                    {.name = NULL}};

/* ------------------------------------------------------------------ StringNormalizer */
typedef struct normalize_params {
    int change; /* 0 none, 1 lower, 2 upper */
    bool fold;  /* stopwords match in any case */
    const sonde_string *stopwords;
    size_t n_stopwords;
} normalize_params;

static sonde_status prepare_normalize(sn_prep *p)
{
    static const char *const words[3] = {"NONE", "LOWER", "UPPER"};
    normalize_params *r = p->params;
    const char *text;
    int64_t sensitive;
    SN_TRY(sn_prep_string(p, "case_change_action", "NONE", &text));
    while (r->change < 3 && strcmp(text, words[r->change]) != 0)
        r->change++;
    if (r->change == 3)
        return sn_prep_fail(p, "case_change_action '%s' is unknown", text);
    SN_TRY(sn_prep_int(p, "is_case_sensitive", 0, &sensitive));
    r->fold = sensitive == 0;
    const sn_attr *a = sn_node_attr(p->node, "stopwords");
    if (a && a->kind == SN_ATTR_STRINGS) {
        r->stopwords = a->strings;
        r->n_stopwords = a->n;
    }
    return SONDE_OK;
}

static sonde_status infer_normalize(sn_infer *c)
{
    sn_input_type x;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    if (x.rank >= 0 && x.rank != 1 && (x.rank != 2 || (sn_dim_known(x.dims[0]) && x.dims[0] != 1)))
        return sn_infer_fail(c, "the input must have shape [C] or [1, C]");
    sn_dim dims[2] = {x.rank == 2 ? 1 : SN_DIM_UNKNOWN, SN_DIM_UNKNOWN};
    return sn_infer_bounded(c, 0, SONDE_DTYPE_STRING, dims, x.rank);
}

static bool is_stopword(const normalize_params *r, sonde_string text)
{
    for (size_t i = 0; i < r->n_stopwords; i++)
        if (same_text(text, r->stopwords[i], r->fold))
            return true;
    return false;
}

static sonde_status run_normalize(const sn_step *s, sn_frame *f)
{
    const normalize_params *r = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    const sonde_string *text = x->data;
    SN_TRY(need_strings(s, f, x));
    if (x->rank < 1 || x->rank > 2 || (x->rank == 2 && x->dims[0] != 1))
        return sn_run_fail(s, f, "the input must have shape [C] or [1, C]");
    size_t n = (size_t)sn_tensor_count(x), bytes;
    if (!sn_size_mul(n + 1, sizeof(sonde_string), &bytes))
        return sn_fail_memory(f->err, SIZE_MAX);
    sonde_string *kept = sn_alloc(f->alloc, bytes);
    if (!kept)
        return sn_fail_memory(f->err, bytes);
    int64_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (!is_stopword(r, text[i]))
            kept[count++] = text[i];
    if (count == 0)
        kept[count++] = (sonde_string){"", 0}; /* nothing left: one empty string */
    int64_t dims[2] = {x->rank == 2 ? 1 : count, count};
    sonde_status st = sn_run_strings(s, f, 0, dims, x->rank, kept);
    sn_free(f->alloc, kept, bytes);
    if (st != SONDE_OK || !r->change)
        return st;
    /* The output's bytes are its own: change them in place. */
    const sonde_string *out = sn_out(s, f, 0)->data;
    char from = r->change == 1 ? 'A' : 'a';
    for (int64_t i = 0; i < count; i++)
        for (char *ch = (char *)(uintptr_t)out[i].data, *end = ch + out[i].size; ch < end; ch++)
            if (*ch >= from && *ch < from + 26)
                *ch ^= 32;
    return SONDE_OK;
}

const sn_op sn_op_string_normalizer[] = {
    {SN_OP_HEAD("StringNormalizer", 10, 0, 1, 1, 1, 1), .flags = SN_OP_DATA_DEPENDENT,
     .params_size = sizeof(normalize_params), .prepare = prepare_normalize,
     .infer = infer_normalize, .run = run_normalize, .types = "str"},
    {.name = NULL}};

/* ------------------------------------------------------------------ RegexFullMatch */
static sonde_status prepare_regex(sn_prep *p)
{
    const char *pattern;
    SN_TRY(sn_prep_string(p, "pattern", NULL, &pattern));
    if (!pattern)
        return sn_prep_fail(p, "attribute 'pattern' is missing");
    const char *wrong = sn_regex_compile(p->params, pattern, p->arena);
    return wrong ? sn_prep_fail(p, "pattern '%.200s': %s", pattern, wrong) : SONDE_OK;
}

static sonde_status infer_regex(sn_infer *c)
{
    sn_input_type x;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    return sn_infer_bounded(c, 0, SONDE_DTYPE_BOOL, x.dims, x.rank);
}

static sonde_status bind_regex(sn_bind *b)
{
    sn_piece *scratch = SN_NEW(b->arena, sn_piece);
    if (!scratch)
        return sn_fail_memory(b->err, sizeof *scratch);
    *scratch = sn_carve_bytes(&b->workspace, sn_regex_workspace(b->params));
    b->bound = scratch;
    return SONDE_OK;
}

static sonde_status run_regex(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0);
    const sonde_string *text = x->data;
    uint8_t *out = sn_out(s, f, 0)->data;
    void *scratch = sn_piece_ptr(f, *(const sn_piece *)s->bound);
    SN_TRY(need_strings(s, f, x));
    for (int64_t i = 0, n = sn_tensor_count(x); i < n; i++)
        out[i] = sn_regex_full_match(s->params, text[i].data, text[i].size, scratch);
    return SONDE_OK;
}

const sn_op sn_op_regex_full_match[] = {{SN_OP_HEAD("RegexFullMatch", 20, 0, 1, 1, 1, 1),
                                         .params_size = sizeof(sn_regex), .prepare = prepare_regex,
                                         .infer = infer_regex, .bind = bind_regex, .run = run_regex,
                                         .types = "str"},
                                        {.name = NULL}};
