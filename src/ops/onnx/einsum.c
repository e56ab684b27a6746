/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: any sum of products over labelled axes. Labels become strides into each operand, which
 * the driver in compute/einsum.h walks. Sums of products of two operands are matrix products, and
 * computed as such. */
#include <string.h>

#include "compute/einsum_product.h"
#include "ops/shared/converted.h"
#include "ops/shared/data_movement.h"

enum {
    LETTERS = 52,
    MAX_LABELS = LETTERS + SN_MAX_RANK,
    MAX_OPERANDS = SN_EINSUM_OPERANDS,
    ELLIPSIS = -1
};
_Static_assert((int)SN_EINSUM_RANK >= (int)SN_MAX_RANK, "every output fits the driver");
_Static_assert((int)SN_EINSUM_SUMS >= (int)MAX_LABELS, "every label may be summed");

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
            return sn_prep_fail(p, "equation '%s' is not valid", text);
        if (*s != ',')
            break;
    }
    if (r->n != p->node->n_formal_in)
        return sn_prep_fail(p, "equation '%s' has %u operands, but %u are given", text, r->n,
                            p->node->n_formal_in);
    if (*s == '\0')
        return implicit_output(r) ? SONDE_OK
                                  : sn_prep_fail(p, "the rank would exceed %d", SN_MAX_RANK);
    s = parse_term(s + 2, &r->out);
    if (!s || *s)
        return sn_prep_fail(p, "equation '%s' is not valid", text);
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
        sn_input_type x;
        SN_TRY(sn_infer_input_type(c, i, &x));
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
            return sn_infer_fail(c, "operand %u has rank %d, which does not match the equation", i,
                                 x.rank);
        ellipsis = extra > ellipsis ? extra : ellipsis;
        for (int k = 0; k < x.rank; k++) {
            sn_dim *s = &sizes[labels[k]], d = x.dims[k];
            if (d == 1 || sn_dim_same(*s, d))
                continue;
            if (*s != 1 && sn_dim_known(*s) && sn_dim_known(d))
                return sn_infer_fail(c,
                                     "operand %u has dimension %lld where another operand has %lld",
                                     i, (long long)d, (long long)*s);
            *s = *s == 1 ? d : sn_dim_merge(*s, d);
        }
    }
    if (dtype == SONDE_DTYPE_STRING || dtype == SONDE_DTYPE_C64 || dtype == SONDE_DTYPE_C128)
        return sn_infer_fail(c, "%s operands are not supported", sn_dtype_name(dtype));
    if (!ranks_known)
        return sn_infer_rank(c, 0, dtype, -1);
    int rank = r->out.n - r->out.has_ellipsis + (r->out.has_ellipsis ? ellipsis : 0);
    if (rank > SN_MAX_RANK)
        return sn_infer_fail(c, "the rank would exceed %d", SN_MAX_RANK);
    axis_labels(&r->out, rank, labels);
    for (int k = 0; k < rank; k++)
        dims[k] = sizes[labels[k]];
    return sn_infer_bounded(c, 0, dtype, dims, rank);
}

/* ------------------------------------------------------------------ bind */
typedef struct product_bound {
    sn_einsum_product plan;
    sn_piece core;
} product_bound;

static sonde_status run_product(const sn_step *s, sn_frame *f)
{
    const product_bound *k = s->bound;
    sn_einsum_product_run(&k->plan, sn_out(s, f, 0)->data, sn_in(s, f, 0)->data,
                          sn_in(s, f, 1)->data, sn_piece_ptr(f, k->core), f->pool);
    return SONDE_OK;
}

static sonde_status bind_product(sn_bind *b, const sn_einsum *e)
{
    product_bound *k = SN_NEW(b->arena, product_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    SN_TRY(sn_einsum_product_plan(&k->plan, e, sn_bind_in_bf16(b), b->cpu_flags,
                                  b->ctx->cpu.l2_bytes, b->threads, b->err));
    k->core = sn_carve_inner(&b->workspace, &k->plan.workspace);
    b->bound = k;
    b->kernel = k->plan.gemm.name;
    b->run = run_product;
    return SONDE_OK;
}

static sonde_status bind_einsum(sn_bind *b)
{
    const einsum_params *r = b->params;
    const sn_type *y = &b->out[0].type;
    sn_einsum *e = SN_NEW(b->arena, sn_einsum);
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
    *e = (sn_einsum){
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
        sn_dense_strides(x->dims, x->rank, strides);
        axis_labels(&r->in[i], x->rank, labels);
        for (int k = 0; k < x->rank; k++) {
            int w = where[labels[k]];
            ptrdiff_t *s =
                w < SN_MAX_RANK ? &e->out_strides[i][w] : &e->sum_strides[i][w - SN_MAX_RANK];
            *s +=
                x->dims[k] == 1 ? 0 : strides[k]; /* a label twice in one operand is its diagonal */
        }
    }
    int64_t work;
    if (sn_i64_mul(e->out_count, e->sum_count, &work))
        b->flops = (uint64_t)work * r->n;
    if (sn_einsum_product_take(e))
        return bind_product(b, e);
    b->bound = e;
    b->kernel = "einsum_loops";
    return SONDE_OK;
}

/* ------------------------------------------------------------------ run */
static sonde_status run_einsum(const sn_step *s, sn_frame *f)
{
    const sn_einsum *e = s->bound;
    const void *x[MAX_OPERANDS];
    for (uint32_t i = 0; i < e->n; i++)
        x[i] = sn_in(s, f, i)->data;
    sn_einsum_run(e, sn_out(s, f, 0)->data, x, f->pool);
    return SONDE_OK;
}

const sn_op sn_op_einsum[] = {{SN_OP_HEAD("Einsum", 12, 0, 1, -1, 1, 1),
                               .params_size = sizeof(einsum_params), .prepare = prepare_einsum,
                               .infer = infer_einsum, .bind = bind_einsum, .run = run_einsum,
                               .types = "f16 bf16 f32 f64 i32 i64"},
                              {.name = NULL}};
