/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: any sum of products over labelled axes. Labels become strides into each operand; output
 * labels are the outer loops, summed labels the inner ones. Correct for every equation; the common
 * matrix products are better written as MatMul. */
#include <string.h>

#include "ops/shared/data_movement.h"

enum { LETTERS = 52, MAX_LABELS = LETTERS + SN_MAX_RANK, MAX_OPERANDS = 16, ELLIPSIS = -1 };

typedef struct einsum_term {
    int n; /* entries: letters, and at most one ELLIPSIS */
    bool has_ellipsis;
    int8_t labels[SN_MAX_RANK + 1];
} einsum_term;

typedef struct einsum_params {
    uint32_t n;
    einsum_term in[MAX_OPERANDS], out;
} einsum_params;

/* ------------------------------------------------------------------ equation */
static int letter_of(char ch)
{
    return ch >= 'a' && ch <= 'z' ? ch - 'a' + 26 : ch >= 'A' && ch <= 'Z' ? ch - 'A' : -1;
}

/* Reads up to ',', "->" or the end; NULL when the text is not an equation. */
static const char *parse_term(const char *s, einsum_term *t)
{
    for (; *s && *s != ',' && *s != '-'; s++) {
        if (*s == ' ')
            continue;
        if (t->n > SN_MAX_RANK)
            return NULL;
        if (strncmp(s, "...", 3) == 0 && !t->has_ellipsis) {
            t->has_ellipsis = true;
            t->labels[t->n++] = ELLIPSIS;
            s += 2;
            continue;
        }
        int l = letter_of(*s);
        if (l < 0)
            return NULL;
        t->labels[t->n++] = (int8_t)l;
    }
    return s;
}

/* Without "->": the ellipsis, then every letter that appears once, in alphabetical order. */
static bool implicit_output(einsum_params *r)
{
    int times[LETTERS] = {0};
    bool ellipsis = false;
    for (uint32_t i = 0; i < r->n; i++)
        for (int k = 0; k < r->in[i].n; k++) {
            if (r->in[i].labels[k] == ELLIPSIS)
                ellipsis = true;
            else
                times[r->in[i].labels[k]]++;
        }
    if (ellipsis) {
        r->out.has_ellipsis = true;
        r->out.labels[r->out.n++] = ELLIPSIS;
    }
    for (int l = 0; l < LETTERS; l++) {
        if (times[l] != 1)
            continue;
        if (r->out.n > SN_MAX_RANK)
            return false;
        r->out.labels[r->out.n++] = (int8_t)l;
    }
    return true;
}

static sonde_status prepare_einsum(sn_prep *p)
{
    einsum_params *r = p->params;
    const char *text;
    SN_TRY(sn_prep_string(p, "equation", "", &text));
    const char *s = text;
    for (;; s++) {
        if (r->n == MAX_OPERANDS)
            return sn_prep_fail(p, "an equation of more than %d operands is not supported",
                                MAX_OPERANDS);
        s = parse_term(s, &r->in[r->n++]);
        if (!s || (*s == '-' && s[1] != '>'))
            return sn_prep_fail(p, "equation '%s' is not understood", text);
        if (*s != ',')
            break;
    }
    if (r->n != p->node->n_formal_in)
        return sn_prep_fail(p, "equation '%s' is for %u operands, %u are given", text, r->n,
                            p->node->n_formal_in);
    if (*s == '\0')
        return implicit_output(r) ? SONDE_OK
                                  : sn_prep_fail(p, "the rank would exceed %d", SN_MAX_RANK);
    s = parse_term(s + 2, &r->out);
    if (!s || *s)
        return sn_prep_fail(p, "equation '%s' is not understood", text);
    bool seen[LETTERS] = {false};
    for (int k = 0; k < r->out.n; k++) {
        int l = r->out.labels[k];
        if (l == ELLIPSIS)
            continue;
        bool known = false;
        for (uint32_t i = 0; i < r->n; i++)
            known |= memchr(r->in[i].labels, l, (size_t)r->in[i].n) != NULL;
        if (seen[l] || !known)
            return sn_prep_fail(p, "an output label of '%s' is repeated or appears in no operand",
                                text);
        seen[l] = true;
    }
    return SONDE_OK;
}

/* Label of each axis of a tensor of `rank`: ellipsis axes are LETTERS + position from the right.
 * Returns the number of ellipsis axes, -1 when the rank does not fit. */
static int axis_labels(const einsum_term *t, int rank, int *labels)
{
    int extra = rank - (t->n - t->has_ellipsis), at = 0;
    if (extra < 0 || (extra > 0 && !t->has_ellipsis))
        return -1;
    for (int k = 0; k < t->n; k++) {
        if (t->labels[k] != ELLIPSIS) {
            labels[at++] = t->labels[k];
            continue;
        }
        for (int e = extra - 1; e >= 0; e--)
            labels[at++] = LETTERS + e;
    }
    return extra;
}

/* ------------------------------------------------------------------ infer */
static sonde_status infer_einsum(sn_infer *c)
{
    const einsum_params *r = c->params;
    sn_dim sizes[MAX_LABELS], dims[SN_MAX_RANK];
    sn_dtype dtype = SONDE_DTYPE_UNDEFINED;
    int ellipsis = 0, labels[SN_MAX_RANK + 1];
    bool ranks_known = true;
    for (int l = 0; l < MAX_LABELS; l++)
        sizes[l] = 1;
    for (uint32_t i = 0; i < r->n; i++) {
        sn_move_type x;
        SN_TRY(sn_move_in(c, i, &x));
        if (dtype == SONDE_DTYPE_UNDEFINED)
            dtype = x.dtype;
        else if (x.dtype != SONDE_DTYPE_UNDEFINED && x.dtype != dtype)
            return sn_infer_fail(c, "operand %u is %s, the others are %s", i,
                                 sn_dtype_name(x.dtype), sn_dtype_name(dtype));
        if (x.rank < 0) {
            ranks_known = false;
            continue;
        }
        int extra = axis_labels(&r->in[i], x.rank, labels);
        if (extra < 0)
            return sn_infer_fail(c, "operand %u has rank %d, which the equation does not fit", i,
                                 x.rank);
        ellipsis = extra > ellipsis ? extra : ellipsis;
        for (int k = 0; k < x.rank; k++) {
            sn_dim *s = &sizes[labels[k]], d = x.dims[k];
            if (d == 1 || sn_dim_same(*s, d))
                continue;
            if (*s != 1 && sn_dim_known(*s) && sn_dim_known(d))
                return sn_infer_fail(c, "operand %u has %lld where another has %lld", i,
                                     (long long)d, (long long)*s);
            *s = *s == 1 ? d : sn_move_merge(*s, d);
        }
    }
    if (dtype == SONDE_DTYPE_STRING || dtype == SONDE_DTYPE_C64 || dtype == SONDE_DTYPE_C128)
        return sn_infer_fail(c, "%s operands are not supported", sn_dtype_name(dtype));
    if (!ranks_known)
        return sn_move_out_rank(c, 0, dtype, -1);
    int rank = r->out.n - r->out.has_ellipsis + (r->out.has_ellipsis ? ellipsis : 0);
    if (rank > SN_MAX_RANK)
        return sn_infer_fail(c, "the rank would exceed %d", SN_MAX_RANK);
    axis_labels(&r->out, rank, labels);
    for (int k = 0; k < rank; k++)
        dims[k] = sizes[labels[k]];
    return sn_move_out(c, 0, dtype, dims, rank);
}

/* ------------------------------------------------------------------ bind */
typedef struct einsum_bound {
    uint32_t n;
    sn_dtype dtype;
    int out_rank, sum_rank;
    int64_t out_dims[SN_MAX_RANK], sum_dims[MAX_LABELS];
    int64_t out_count, sum_count;
    /* Strides of every operand along output labels and summed labels. */
    ptrdiff_t out_strides[MAX_OPERANDS][SN_MAX_RANK], sum_strides[MAX_OPERANDS][MAX_LABELS];
} einsum_bound;

static sonde_status bind_einsum(sn_bind *b)
{
    const einsum_params *r = b->params;
    const sn_type *y = &b->out[0].type;
    einsum_bound *e = SN_NEW(b->arena, einsum_bound);
    if (!e)
        return sn_fail_memory(b->err, sizeof *e);
    int64_t sizes[MAX_LABELS];
    int where[MAX_LABELS], labels[SN_MAX_RANK + 1];
    for (int l = 0; l < MAX_LABELS; l++) {
        sizes[l] = 0; /* not used by any operand */
        where[l] = -1;
    }
    for (uint32_t i = 0; i < r->n; i++) {
        const sn_type *x = &b->in[i]->type;
        axis_labels(&r->in[i], x->rank, labels);
        for (int k = 0; k < x->rank; k++)
            if (sizes[labels[k]] == 0 || sizes[labels[k]] == 1 || x->dims[k] == 0)
                sizes[labels[k]] = x->dims[k] == 0 ? -1 : x->dims[k]; /* -1: really empty */
    }
    *e = (einsum_bound){
        .n = r->n, .dtype = y->dtype, .out_rank = y->rank, .out_count = 1, .sum_count = 1};
    axis_labels(&r->out, y->rank, labels);
    for (int k = 0; k < y->rank; k++) {
        where[labels[k]] = k;
        e->out_dims[k] = y->dims[k];
        e->out_count *= y->dims[k];
    }
    for (int l = 0; l < MAX_LABELS; l++) {
        if (sizes[l] == 0 || where[l] >= 0)
            continue;
        int64_t n = sizes[l] < 0 ? 0 : sizes[l];
        where[l] = SN_MAX_RANK + e->sum_rank;
        e->sum_dims[e->sum_rank++] = n;
        if (!sn_i64_mul(e->sum_count, n, &e->sum_count))
            return sn_bind_fail(b, SONDE_LIMIT, "the sum has too many terms");
    }
    for (uint32_t i = 0; i < r->n; i++) {
        const sn_type *x = &b->in[i]->type;
        ptrdiff_t strides[SN_MAX_RANK];
        sn_move_strides(x->dims, x->rank, strides);
        axis_labels(&r->in[i], x->rank, labels);
        for (int k = 0; k < x->rank; k++) {
            int w = where[labels[k]];
            ptrdiff_t *s =
                w < SN_MAX_RANK ? &e->out_strides[i][w] : &e->sum_strides[i][w - SN_MAX_RANK];
            *s +=
                x->dims[k] == 1 ? 0 : strides[k]; /* a label twice in one operand is its diagonal */
        }
    }
    b->bound = e;
    b->kernel = "einsum_loops";
    int64_t work;
    if (sn_i64_mul(e->out_count, e->sum_count, &work))
        b->flops = (uint64_t)work * r->n;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ run */
typedef struct einsum_job {
    const einsum_bound *e;
    const void *src[MAX_OPERANDS];
    void *dst;
    int64_t per_task;
} einsum_job;

/* The innermost sum: n terms at these offsets and strides. Acc is wide enough not to lose digits.
 */
#define DEFINE_DOT(NAME, T, ACC)                                                                   \
    static void dot_##NAME(const einsum_job *j, const ptrdiff_t *at, const ptrdiff_t *step,        \
                           int64_t n, void *sum)                                                   \
    {                                                                                              \
        ACC total = 0;                                                                             \
        const T *a = (const T *)j->src[0] + at[0];                                                 \
        if (j->e->n == 1) {                                                                        \
            for (int64_t i = 0; i < n; i++)                                                        \
                total += (ACC)a[i * step[0]];                                                      \
        } else if (j->e->n == 2) {                                                                 \
            const T *b = (const T *)j->src[1] + at[1];                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                total += (ACC)a[i * step[0]] * (ACC)b[i * step[1]];                                \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) {                                                      \
                ACC product = 1;                                                                   \
                for (uint32_t k = 0; k < j->e->n; k++)                                             \
                    product *= (ACC)((const T *)j->src[k])[at[k] + i * step[k]];                   \
                total += product;                                                                  \
            }                                                                                      \
        }                                                                                          \
        *(ACC *)sum += total;                                                                      \
    }
DEFINE_DOT(F32, float, double)
DEFINE_DOT(F64, double, double)
DEFINE_DOT(I32, int32_t, uint64_t)
DEFINE_DOT(I64, int64_t, uint64_t)

/* Every other type, one element at a time through its codec. */
static void dot_any(const einsum_job *j, const ptrdiff_t *at, const ptrdiff_t *step, int64_t n,
                    void *sum)
{
    for (int64_t i = 0; i < n; i++) {
        double product = 1;
        for (uint32_t k = 0; k < j->e->n; k++)
            product *= sn_elem_f64(j->e->dtype, j->src[k], at[k] + i * step[k]);
        *(double *)sum += product;
    }
}

static void store_sum(const einsum_bound *e, void *dst, int64_t o, const void *sum)
{
    uint64_t whole = *(const uint64_t *)sum;
    if (e->dtype == SONDE_DTYPE_I64)
        ((int64_t *)dst)[o] = (int64_t)whole;
    else if (e->dtype == SONDE_DTYPE_I32)
        ((int32_t *)dst)[o] = (int32_t)(uint32_t)whole;
    else
        sn_elem_set_f64(e->dtype, dst, o, *(const double *)sum);
}

static void sum_terms(const einsum_job *j, const ptrdiff_t *base, void *sum)
{
    const einsum_bound *e = j->e;
    ptrdiff_t at[MAX_OPERANDS], step[MAX_OPERANDS];
    int64_t index[MAX_LABELS] = {0}, inner = e->sum_rank ? e->sum_dims[e->sum_rank - 1] : 1;
    memcpy(at, base, sizeof at);
    for (uint32_t k = 0; k < e->n; k++)
        step[k] = e->sum_rank ? e->sum_strides[k][e->sum_rank - 1] : 0;
    for (int64_t t = 0; t < e->sum_count / inner; t++) {
        switch (e->dtype) {
        case SONDE_DTYPE_F32:
            dot_F32(j, at, step, inner, sum);
            break;
        case SONDE_DTYPE_F64:
            dot_F64(j, at, step, inner, sum);
            break;
        case SONDE_DTYPE_I32:
            dot_I32(j, at, step, inner, sum);
            break;
        case SONDE_DTYPE_I64:
            dot_I64(j, at, step, inner, sum);
            break;
        default:
            dot_any(j, at, step, inner, sum);
            break;
        }
        int d = e->sum_rank - 2;
        for (; d >= 0; d--) {
            bool wrap = ++index[d] == e->sum_dims[d];
            for (uint32_t k = 0; k < e->n; k++)
                at[k] += e->sum_strides[k][d] * (wrap ? 1 - (ptrdiff_t)e->sum_dims[d] : 1);
            if (!wrap)
                break;
            index[d] = 0;
        }
    }
}

static void einsum_task(void *arg, size_t task, int worker)
{
    (void)worker;
    const einsum_job *j = arg;
    const einsum_bound *e = j->e;
    int64_t lo = (int64_t)task * j->per_task, hi = lo + j->per_task;
    for (int64_t o = lo; o < hi && o < e->out_count; o++) {
        ptrdiff_t at[MAX_OPERANDS] = {0};
        int64_t rest = o;
        for (int d = e->out_rank - 1; d >= 0; d--) {
            int64_t i = rest % e->out_dims[d];
            rest /= e->out_dims[d];
            for (uint32_t k = 0; k < e->n; k++)
                at[k] += (ptrdiff_t)i * e->out_strides[k][d];
        }
        union {
            double real;
            uint64_t whole;
        } sum = {0};
        if (e->sum_count > 0)
            sum_terms(j, at, &sum);
        store_sum(e, j->dst, o, &sum);
    }
}

static sonde_status run_einsum(const sn_step *s, sn_frame *f)
{
    einsum_job j = {.e = s->bound, .dst = sn_out(s, f, 0)->data};
    if (j.e->out_count == 0)
        return SONDE_OK;
    for (uint32_t i = 0; i < j.e->n; i++)
        j.src[i] = sn_in(s, f, i)->data;
    int64_t threads = sn_pool_threads(f->pool);
    int64_t tasks = threads > 1 && j.e->out_count > 64 ? threads * 8 : 1;
    j.per_task = (j.e->out_count + tasks - 1) / tasks;
    sn_pool_run(f->pool, (size_t)((j.e->out_count + j.per_task - 1) / j.per_task), einsum_task, &j);
    return SONDE_OK;
}

const sn_op sn_op_einsum[] = {{SN_MOVE_HEAD("Einsum", 12, 0, 1, -1, 1, 1),
                               .params_size = sizeof(einsum_params), .prepare = prepare_einsum,
                               .infer = infer_einsum, .bind = bind_einsum, .run = run_einsum,
                               .types = "f16 bf16 f32 f64 i32 i64"},
                              {.name = NULL}};
