/* SPDX-License-Identifier: Apache-2.0 */
/* TfIdfVectorizer: counts the n-grams of a pool in each row. The pool is kept as a trie over token
 * numbers, in one hash table from (node, token) to node, so that a row costs its length times the
 * longest n-gram and skip, whatever the pool's size. */
#include <string.h>

#include "compute/eltwise.h"
#include "ops/ml/shared.h"

typedef enum tfidf_mode { MODE_TF, MODE_IDF, MODE_TFIDF } tfidf_mode;

typedef struct tfidf_edge {
    uint64_t key;  /* node << 32 | token, plus one; 0: free */
    uint32_t node; /* it leads to */
} tfidf_edge;

typedef struct tfidf_params {
    tfidf_mode mode;
    int64_t min, max, skips;
    const int64_t *indexes;
    const float *weights; /* NULL: all one */
    size_t n_indexes;
    int64_t width;
    sn_ml_map tokens; /* token ► number */
    tfidf_edge *edges;
    size_t cap;    /* a power of two */
    int64_t *gram; /* node ► n-gram that ends there, or -1 */
    uint32_t n_nodes;
} tfidf_params;

/* The slot of an edge, taken or free. */
static tfidf_edge *edge_at(const tfidf_params *t, uint32_t node, uint32_t token)
{
    const uint64_t key = ((uint64_t)node << 32 | token) + 1;
    size_t at = (size_t)(key * 0x9E3779B97F4A7C15u >> 17) & (t->cap - 1);
    while (t->edges[at].key && t->edges[at].key != key)
        at = (at + 1) & (t->cap - 1);
    return &t->edges[at];
}

static uint32_t child(tfidf_params *t, uint32_t node, uint32_t token)
{
    tfidf_edge *e = edge_at(t, node, token);
    if (!e->key) {
        e->key = ((uint64_t)node << 32 | token) + 1;
        e->node = t->n_nodes++;
        t->gram[e->node] = -1;
    }
    return e->node;
}

static sonde_status read_settings(sn_prep *p)
{
    tfidf_params *t = p->params;
    static const char *const names[] = {"TF", "IDF", "TFIDF"};
    const char *mode;
    size_t n;
    SN_TRY(sn_prep_string(p, "mode", "", &mode));
    SN_TRY(sn_prep_int(p, "min_gram_length", 0, &t->min));
    SN_TRY(sn_prep_int(p, "max_gram_length", 0, &t->max));
    SN_TRY(sn_prep_int(p, "max_skip_count", 0, &t->skips));
    SN_TRY(sn_prep_ints(p, "ngram_indexes", &t->indexes, &t->n_indexes));
    SN_TRY(sn_prep_floats(p, "weights", &t->weights, &n));
    int found = -1;
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], mode) == 0)
            found = i;
    if (found < 0)
        return sn_prep_fail(p, "attribute 'mode' is '%s'", mode);
    t->mode = (tfidf_mode)found;
    if (t->min < 1 || t->max < t->min || t->skips < 0 || t->skips > INT32_MAX)
        return sn_prep_fail(p, "lengths %lld to %lld with %lld skips are invalid",
                            (long long)t->min, (long long)t->max, (long long)t->skips);
    if (n != 0 && n != t->n_indexes)
        return sn_prep_fail(p, "there are %zu weights for %zu n-grams", n, t->n_indexes);
    for (size_t i = 0; i < t->n_indexes; i++) {
        if (t->indexes[i] < 0 || t->indexes[i] == INT64_MAX)
            return sn_prep_fail(p, "attribute 'ngram_indexes' has %lld", (long long)t->indexes[i]);
        t->width = t->indexes[i] + 1 > t->width ? t->indexes[i] + 1 : t->width;
    }
    return SONDE_OK;
}

static int64_t token_number(const tfidf_params *t, const sn_tensor *x, int64_t i)
{
    if (t->tokens.strings)
        return sn_ml_find_text(&t->tokens, ((const sonde_string *)x->data)[i]);
    return sn_ml_find_number(&t->tokens, sn_ml_key(x->dtype, x->data, i));
}

/* counts[k] is where the (k+1)-grams begin in the pool. */
static sonde_status build(sn_prep *p, const sn_tensor *pool, const int64_t *counts, size_t n_counts)
{
    tfidf_params *t = p->params;
    const int64_t total = pool->dims[0];
    int64_t gram = 0;
    for (size_t k = 0; k < n_counts; k++) {
        const int64_t first = counts[k], end = k + 1 < n_counts ? counts[k + 1] : total;
        const int64_t length = (int64_t)k + 1;
        if (first < 0 || end < first || end > total || (end - first) % length)
            return sn_prep_fail(p, "attribute 'ngram_counts' does not fit the pool");
        for (int64_t at = first; at < end; at += length, gram++) {
            if ((size_t)gram >= t->n_indexes)
                return sn_prep_fail(p, "the pool has more n-grams than 'ngram_indexes'");
            if (length < t->min || length > t->max)
                continue;
            uint32_t node = 0;
            for (int64_t i = 0; i < length; i++)
                node = child(t, node, (uint32_t)token_number(t, pool, at + i));
            t->gram[node] = gram;
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
    SN_TRY(sn_ml_strings(p, "pool_strings", &strings, &m));
    if ((n > 0) == (m > 0) || n + m > INT32_MAX)
        return sn_prep_fail(p, "one pool must be given");
    const size_t total = n + m;
    if (!sn_ml_map_make(&t->tokens, strings, SONDE_DTYPE_I64, ints, total, p->arena))
        return sn_fail_memory(p->err, total * sizeof(sn_ml_entry));
    for (t->cap = 16; t->cap < 2 * total + 2;)
        t->cap *= 2;
    t->edges = SN_NEW_N(p->arena, tfidf_edge, t->cap);
    t->gram = SN_NEW_N(p->arena, int64_t, total + 1);
    if (!t->edges || !t->gram)
        return sn_fail_memory(p->err, t->cap * sizeof(tfidf_edge));
    t->gram[0] = -1;
    t->n_nodes = 1;
    sn_tensor pool = {.dtype = strings ? SONDE_DTYPE_STRING : SONDE_DTYPE_I64, .rank = 1};
    pool.dims[0] = (int64_t)total;
    /* Only read: the attribute's memory seen as a tensor. */
    memcpy(&pool.data, strings ? (const void *)&strings : (const void *)&ints, sizeof pool.data);
    return build(p, &pool, counts, n_counts);
}

static sonde_status infer_tfidf(sn_infer *c)
{
    const tfidf_params *t = c->params;
    const sn_type *x = &c->in[0]->type;
    if (x->rank < 0)
        return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, NULL, -1);
    if (x->rank > 2)
        return sn_infer_fail(c, "the input has rank %d, expected 1 or 2", x->rank);
    const sn_dim dims[2] = {x->rank == 2 ? x->dims[0] : t->width, t->width};
    return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, dims, x->rank == 2 ? 2 : 1);
}

static sonde_status bind_tfidf(sn_bind *b)
{
    const tfidf_params *t = b->params;
    const sn_dtype x = b->in[0]->type.dtype;
    if (t->tokens.strings ? x != SONDE_DTYPE_STRING : x != SONDE_DTYPE_I64 && x != SONDE_DTYPE_I32)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the input is %s, the pool is not",
                            sn_dtype_onnx_name(x));
    b->kernel = "trie";
    return SONDE_OK;
}

typedef struct tfidf_job {
    const tfidf_params *t;
    const sn_tensor *x;
    int64_t columns;
    float *y;
} tfidf_job;

/* Counts n-grams of at least `least` tokens that begin at `from`, every `step` tokens. */
static void count_from(const tfidf_job *j, int64_t row, int64_t from, int64_t step, int64_t least,
                       float *y)
{
    const tfidf_params *t = j->t;
    uint32_t node = 0;
    int64_t length = 1;
    for (int64_t i = from; i < j->columns && length <= t->max; i += step, length++) {
        const int64_t token = token_number(t, j->x, row * j->columns + i);
        if (token < 0)
            return;
        const tfidf_edge *e = edge_at(t, node, (uint32_t)token);
        if (!e->key)
            return;
        node = e->node;
        const int64_t gram = t->gram[node];
        if (gram < 0 || length < least)
            continue;
        const float weight = t->weights && t->mode != MODE_TF ? t->weights[gram] : 1.0f;
        float *count = &y[t->indexes[gram]];
        *count = t->mode == MODE_IDF ? weight : *count + weight;
    }
}

static void tfidf_range(void *arg, size_t lo, size_t hi)
{
    const tfidf_job *j = arg;
    const tfidf_params *t = j->t;
    for (int64_t r = (int64_t)lo; r < (int64_t)hi; r++) {
        float *y = j->y + r * t->width;
        memset(y, 0, sizeof(float) * (size_t)t->width);
        int64_t least = t->min;
        /* A step beyond the row finds nothing but single tokens. */
        for (int64_t step = 1; step <= t->skips + 1 && step <= j->columns && least <= t->max;
             step++) {
            for (int64_t from = 0; from < j->columns; from++)
                count_from(j, r, from, step, least, y);
            if (least == 1) /* single tokens know no skips: they are counted once */
                least = 2;
        }
    }
}

static sonde_status run_tfidf(const sn_step *s, sn_frame *f)
{
    const tfidf_params *t = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    tfidf_job j = {.t = t,
                   .x = x,
                   .columns = x->rank > 0 ? x->dims[x->rank - 1] : 1,
                   .y = sn_out(s, f, 0)->data};
    const size_t rows = x->rank == 2 ? (size_t)x->dims[0] : 1;
    sn_parallel_range(f->pool, rows, 16 * (size_t)(j.columns + t->width) + 1, tfidf_range, &j);
    return SONDE_OK;
}

const sn_op sn_op_tfidf_vectorizer[] = {
    {SN_MOVE_HEAD("TfIdfVectorizer", 9, 0, 1, 1, 1, 1), .params_size = sizeof(tfidf_params),
     .prepare = prepare_tfidf, .infer = infer_tfidf, .bind = bind_tfidf, .run = run_tfidf,
     .types = "str i32 i64"},
    {.name = NULL}};
