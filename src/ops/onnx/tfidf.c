/* SPDX-License-Identifier: Apache-2.0 */
/* TfIdfVectorizer: counts the n-grams of a pool in each row. Tokens become their numbers in the
 * pool; compute/ngrams.h does the rest. */
#include <string.h>

#include "compute/lookup.h"
#include "compute/ngrams.h"
#include "ops/shared/data_movement.h"

enum { MODE_TF, MODE_IDF, MODE_TFIDF };

typedef struct tfidf_params {
    sn_ngrams grams;
    size_t n_grams;
    sn_lookup tokens; /* token ► number */
} tfidf_params;

static sonde_status read_settings(sn_prep *p)
{
    tfidf_params *params = p->params;
    sn_ngrams *t = &params->grams;
    static const char *const names[] = {"TF", "IDF", "TFIDF"};
    const char *mode;
    size_t n;
    SN_TRY(sn_prep_string(p, "mode", "", &mode));
    SN_TRY(sn_prep_int(p, "min_gram_length", 0, &t->min));
    SN_TRY(sn_prep_int(p, "max_gram_length", 0, &t->max));
    SN_TRY(sn_prep_int(p, "max_skip_count", 0, &t->skips));
    SN_TRY(sn_prep_ints(p, "ngram_indexes", &t->columns, &params->n_grams));
    SN_TRY(sn_prep_floats(p, "weights", &t->weights, &n));
    int found = -1;
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], mode) == 0)
            found = i;
    if (found < 0)
        return sn_prep_fail(p, "attribute 'mode' is '%s'", mode);
    t->once = found == MODE_IDF;
    if (found == MODE_TF)
        t->weights = NULL;
    if (t->min < 1 || t->max < t->min || t->skips < 0 || t->skips > INT32_MAX)
        return sn_prep_fail(p, "lengths %lld to %lld with %lld skips are invalid",
                            (long long)t->min, (long long)t->max, (long long)t->skips);
    if (n != 0 && n != params->n_grams)
        return sn_prep_fail(p, "there are %zu weights for %zu n-grams", n, params->n_grams);
    for (size_t i = 0; i < params->n_grams; i++) {
        if (t->columns[i] < 0 || t->columns[i] == INT64_MAX)
            return sn_prep_fail(p, "attribute 'ngram_indexes' has %lld", (long long)t->columns[i]);
        t->width = t->columns[i] + 1 > t->width ? t->columns[i] + 1 : t->width;
    }
    return SONDE_OK;
}

static int64_t token_number(const tfidf_params *t, sn_dtype dtype, const void *tokens, int64_t i)
{
    return sn_lookup_find(&t->tokens, (sn_elems){dtype, (void *)(uintptr_t)tokens}, i);
}

/* counts[k] is where the (k+1)-grams begin in the pool of these token numbers. */
static sonde_status build(sn_prep *p, const uint32_t *pool, int64_t total, const int64_t *counts,
                          size_t n_counts)
{
    tfidf_params *t = p->params;
    int64_t gram = 0;
    for (size_t k = 0; k < n_counts; k++) {
        const int64_t first = counts[k], end = k + 1 < n_counts ? counts[k + 1] : total;
        const int64_t length = (int64_t)k + 1;
        if (first < 0 || end < first || end > total || (end - first) % length)
            return sn_prep_fail(p, "attribute 'ngram_counts' does not fit the pool");
        for (int64_t at = first; at < end; at += length, gram++) {
            if ((size_t)gram >= t->n_grams)
                return sn_prep_fail(p, "the pool has more n-grams than 'ngram_indexes'");
            if (length >= t->grams.min && length <= t->grams.max)
                sn_ngrams_add(&t->grams, pool + at, length, gram);
        }
    }
    return SONDE_OK;
}

static sonde_status prepare_tfidf(sn_prep *p)
{
    tfidf_params *t = p->params;
    const int64_t *ints, *counts;
    const sonde_string *strings;
    size_t n, m, n_counts;
    SN_TRY(read_settings(p));
    SN_TRY(sn_prep_ints(p, "ngram_counts", &counts, &n_counts));
    SN_TRY(sn_prep_ints(p, "pool_int64s", &ints, &n));
    SN_TRY(sn_prep_strings(p, "pool_strings", &strings, &m));
    if ((n > 0) == (m > 0) || n + m > INT32_MAX)
        return sn_prep_fail(p, "one pool must be given");
    const size_t total = n + m;
    if (!sn_lookup_make(&t->tokens, strings, SONDE_DTYPE_I64, ints, total, p->arena))
        return sn_fail_memory(p->err, total * sizeof(sn_lookup_entry));
    t->grams.cap = sn_ngrams_cap(total);
    t->grams.edges = SN_NEW_N(p->arena, sn_ngram_edge, t->grams.cap);
    t->grams.gram = SN_NEW_N(p->arena, int64_t, total + 1);
    uint32_t *pool = SN_NEW_N(p->arena, uint32_t, total);
    if (!t->grams.edges || !t->grams.gram || !pool)
        return sn_fail_memory(p->err, t->grams.cap * sizeof(sn_ngram_edge));
    sn_ngrams_clear(&t->grams);
    for (size_t i = 0; i < total; i++)
        pool[i] = (uint32_t)token_number(t, SONDE_DTYPE_I64, strings ? (const void *)strings : ints,
                                         (int64_t)i);
    return build(p, pool, (int64_t)total, counts, n_counts);
}

static sonde_status infer_tfidf(sn_infer *c)
{
    const tfidf_params *t = c->params;
    const sn_type *x = &c->in[0]->type;
    if (x->rank < 0)
        return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, NULL, -1);
    if (x->rank > 2)
        return sn_infer_fail(c, "the input has rank %d, expected 1 or 2", x->rank);
    const sn_dim dims[2] = {x->rank == 2 ? x->dims[0] : t->grams.width, t->grams.width};
    return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, dims, x->rank == 2 ? 2 : 1);
}

/* One dim is a single row. */
static void rows_of(const int64_t *dims, int rank, int64_t *rows, int64_t *columns)
{
    *rows = rank == 2 ? dims[0] : 1;
    *columns = rank > 0 ? dims[rank - 1] : 1;
}

static sonde_status bind_tfidf(sn_bind *b)
{
    const tfidf_params *t = b->params;
    const sn_dtype x = b->in[0]->type.dtype;
    if (t->tokens.strings ? x != SONDE_DTYPE_STRING : x != SONDE_DTYPE_I64 && x != SONDE_DTYPE_I32)
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "the input is %s, but the pool has a different type",
                            sn_dtype_onnx_name(x));
    int64_t rows, columns, count;
    sn_piece *tokens = SN_NEW(b->arena, sn_piece);
    if (!tokens)
        return sn_fail_memory(b->err, sizeof *tokens);
    rows_of(b->in[0]->type.dims, b->in[0]->type.rank, &rows, &columns);
    *tokens =
        sn_carve(&b->workspace, sn_i64_mul(rows, columns, &count) ? count : -1, sizeof(int32_t));
    b->bound = tokens;
    b->kernel = "trie";
    return SONDE_OK;
}

typedef struct tfidf_input {
    const tfidf_params *t;
    const sn_tensor *x;
} tfidf_input;

static void numbers_of(const void *arg, int64_t first, int64_t n, int32_t *numbers)
{
    const tfidf_input *in = arg;
    for (int64_t i = 0; i < n; i++)
        numbers[i] = (int32_t)token_number(in->t, in->x->dtype, in->x->data, first + i);
}

static sonde_status run_tfidf(const sn_step *s, sn_frame *f)
{
    const tfidf_params *t = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    const tfidf_input in = {t, x};
    int64_t rows, columns;
    rows_of(x->dims, x->rank, &rows, &columns);
    sn_ngrams_count(&t->grams, sn_out(s, f, 0)->data, rows, columns, numbers_of, &in,
                    sn_piece_ptr(f, *(const sn_piece *)s->bound), f->pool);
    return SONDE_OK;
}

const sn_op sn_op_tfidf_vectorizer[] = {
    {SN_OP_HEAD("TfIdfVectorizer", 9, 0, 1, 1, 1, 1), .params_size = sizeof(tfidf_params),
     .prepare = prepare_tfidf, .infer = infer_tfidf, .bind = bind_tfidf, .run = run_tfidf,
     .types = "str i32 i64"},
    {.name = NULL}};
