/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations of com.microsoft: SkipLayerNormalization and SkipSimplifiedLayerNormalization (a
 * residual and a bias are added first, and the sum may be handed out), and
 * SimplifiedLayerNormalization, which writers put into the standard domain too. Computed in f32, or
 * f64 where that is the type. */
#include <string.h>

#include "compute/norm.h"
#include "compute/row_sum.h"
#include "ops/shared/converted.h"
#include "ops/shared/elementwise.h"

#define ABSENT UINT32_MAX
enum { OUT_Y, OUT_MEAN, OUT_INV, OUT_SUM };

typedef struct skip_params {
    bool rms, skip;
    int64_t axis;
    float epsilon;
    uint32_t gamma, beta, bias; /* input numbers; ABSENT: the operator has none */
    uint32_t inv;               /* output number */
} skip_params;

typedef struct skip_bound {
    sn_norm_plan plan;
    sn_row_sum add;                         /* the skip, and the bias where there is one */
    sn_piece x, skip, gamma, beta, bias, y; /* in the type it computes in */
    sn_piece sum;
    bool own_sum; /* the sum is not made in its output */
} skip_bound;

static sonde_status prepare_skip(sn_prep *p)
{
    skip_params *n = p->params;
    const char *name = p->node->op_type;
    n->rms = strstr(name, "Simplified") != NULL;
    n->skip = strncmp(name, "Skip", 4) == 0;
    n->gamma = n->skip ? 2 : 1;
    n->beta = n->rms ? ABSENT : 3;
    n->bias = !n->skip ? ABSENT : n->rms ? 3 : 4;
    n->inv = n->skip ? OUT_INV : 1;
    n->axis = -1;
    if (!n->skip)
        SN_TRY(sn_prep_int(p, "axis", -1, &n->axis));
    return sn_prep_float(p, "epsilon", n->skip ? 1e-12f : 1e-5f, &n->epsilon);
}

static sonde_status infer_skip(sn_infer *c)
{
    const skip_params *n = c->params;
    const sn_type *x = &c->in[0]->type;
    const sn_dtype out = n->skip ? x->dtype : c->in[1]->type.dtype;
    const sn_dtype stats = x->dtype == SONDE_DTYPE_F64 ? SONDE_DTYPE_F64 : SONDE_DTYPE_F32;
    SN_TRY(sn_infer_tensor(c, OUT_Y, out, x->dims, x->rank));
    sn_dim dims[SN_MAX_RANK];
    if (x->rank == 0)
        return sn_infer_fail(c, "a scalar cannot be normalised");
    int axis = 0;
    if (x->rank > 0) {
        SN_TRY(sn_infer_axis(c, n->axis, x->rank, false, &axis));
        for (int i = 0; i < x->rank; i++)
            dims[i] = i < axis ? x->dims[i] : 1;
    }
    SN_TRY(sn_infer_tensor(c, n->skip ? OUT_MEAN : n->inv, stats, dims, x->rank));
    if (!n->skip)
        return SONDE_OK;
    SN_TRY(sn_infer_tensor(c, OUT_INV, stats, dims, x->rank));
    return sn_infer_tensor(c, OUT_SUM, x->dtype, x->dims, x->rank);
}

/* Room for input i in the computing type; checks that it has `count` elements. */
static sonde_status take(sn_bind *b, uint32_t i, int64_t count, sn_piece *piece)
{
    if (i >= b->n_in || !b->in[i])
        return SONDE_OK;
    int64_t n = 0;
    const sn_type *t = &b->in[i]->type;
    if (!sn_type_count(t, &n) || n != count)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "input %u has %lld elements, expected %lld", i,
                            (long long)n, (long long)count);
    if (sn_compute_float(t->dtype) == SONDE_DTYPE_UNDEFINED ||
        sn_compute_float(t->dtype) != sn_compute_float(b->in[0]->type.dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(t->dtype));
    *piece = sn_converted_carve(&b->workspace, b->in[i], sn_compute_float(t->dtype));
    return SONDE_OK;
}

/* Does skip lie as the last dims of the input do? Dims of 1 may stand before the others. */
static bool skip_fits(const sn_type *skip, const sn_type *x)
{
    bool whole = true; /* so far, from the end */
    for (int i = 1; i <= skip->rank && i <= x->rank; i++) {
        const sn_dim have = skip->dims[skip->rank - i], want = x->dims[x->rank - i];
        if (have != want && have != 1)
            return false;
        if (whole && have != want)
            whole = false;
        else if (!whole && have != 1)
            return false;
    }
    return skip->rank >= 2 && skip->rank <= x->rank;
}

static sonde_status bind_skip(sn_bind *b)
{
    const skip_params *n = b->params;
    skip_bound *k = SN_NEW(b->arena, skip_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    const sn_type *x = &b->in[0]->type;
    const sn_dtype compute = sn_compute_float(x->dtype);
    int64_t total = 0, row = 1;
    const int axis = (int)(n->axis < 0 ? n->axis + x->rank : n->axis);
    if (!sn_type_count(x, &total))
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    for (int i = axis; i < x->rank; i++)
        row *= x->dims[i];
    k->plan = (sn_norm_plan){.dtype = compute,
                             .rms = n->rms,
                             .n = row,
                             .rows = row > 0 ? total / row : 0,
                             .epsilon = (double)n->epsilon};
    sn_norm_choose_kernels(&k->plan, b->cpu_flags);
    SN_TRY(take(b, 0, total, &k->x));
    SN_TRY(take(b, n->gamma, row, &k->gamma));
    if (n->beta != ABSENT)
        SN_TRY(take(b, n->beta, row, &k->beta));
    if (n->bias != ABSENT)
        SN_TRY(take(b, n->bias, row, &k->bias));
    if (n->skip) {
        int64_t skip = 0;
        const sn_type *t = &b->in[1]->type;
        if (!sn_type_count(t, &skip) || row == 0 || skip % row || !skip_fits(t, x) ||
            (skip > 0 && total % skip) || (skip == 0 && total > 0))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "skip does not fit the input");
        k->add = (sn_row_sum){
            .dtype = compute, .rows = k->plan.rows, .n = row, .repeat = 1, .b_rows = skip / row};
        SN_TRY(take(b, 1, skip, &k->skip));
        k->own_sum = sn_is_half(x->dtype) || b->n_out <= OUT_SUM || !b->node->out[OUT_SUM];
        if (k->own_sum)
            k->sum = sn_carve(&b->workspace, total, sn_dtype_bytes(compute));
    }
    k->y = sn_converted_carve(&b->workspace, &b->out[OUT_Y], compute);
    b->bound = k;
    b->kernel = n->rms ? "skip_rms_norm" : "skip_layer_norm";
    b->flops = (uint64_t)total * 8;
    return SONDE_OK;
}

static const void *input(const sn_step *s, const sn_frame *f, uint32_t i, sn_piece piece)
{
    const skip_bound *k = s->bound;
    return i == ABSENT ? NULL : sn_converted_in(s, f, i, k->plan.dtype, piece);
}

static sonde_status run_skip(const sn_step *s, sn_frame *f)
{
    const skip_params *n = s->params;
    const skip_bound *k = s->bound;
    const sn_dtype compute = k->plan.dtype;
    const void *x = input(s, f, 0, k->x);
    if (n->skip) {
        void *sum = k->own_sum ? sn_piece_ptr(f, k->sum) : sn_out(s, f, OUT_SUM)->data;
        sn_row_sum_run(&k->add, sum, x, input(s, f, 1, k->skip), input(s, f, n->bias, k->bias),
                       f->pool);
        sn_converted_done(s, f, OUT_SUM, compute, k->sum);
        x = sum;
    }
    float *mean = n->skip && sn_wants(s, OUT_MEAN) ? sn_out(s, f, OUT_MEAN)->data : NULL;
    float *inv = sn_wants(s, n->inv) ? sn_out(s, f, n->inv)->data : NULL;
    if (compute == SONDE_DTYPE_F64 && (mean || inv))
        return sn_run_fail(s, f, "statistics of f64 rows are not supported");
    if (k->plan.rows > 0)
        sn_norm_run(&k->plan, sn_converted_out(s, f, OUT_Y, compute, k->y), x,
                    input(s, f, n->gamma, k->gamma), input(s, f, n->beta, k->beta), mean, inv,
                    f->pool);
    sn_converted_done(s, f, OUT_Y, compute, k->y);
    return SONDE_OK;
}

#define SKIP(symbol, NAME, DOMAIN, MIN_IN, MAX_IN, MAX_OUT)                                        \
    const sn_op symbol[] = {{.name = NAME,                                                         \
                             .domain = DOMAIN,                                                     \
                             .since = 1,                                                           \
                             .min_in = MIN_IN,                                                     \
                             .max_in = MAX_IN,                                                     \
                             .min_out = 1,                                                         \
                             .max_out = MAX_OUT,                                                   \
                             .params_size = sizeof(skip_params),                                   \
                             .prepare = prepare_skip,                                              \
                             .infer = infer_skip,                                                  \
                             .bind = bind_skip,                                                    \
                             .run = run_skip,                                                      \
                             .types = SN_FLOATS},                                                  \
                            {.name = NULL}};
SKIP(sn_op_ms_skip_layer_norm, "SkipLayerNormalization", SN_MS_DOMAIN, 3, 5, 4)
SKIP(sn_op_ms_skip_rms_norm, "SkipSimplifiedLayerNormalization", SN_MS_DOMAIN, 3, 4, 4)
SKIP(sn_op_ms_simplified_layer_norm, "SimplifiedLayerNormalization", SN_MS_DOMAIN, 2, 2, 2)
SKIP(sn_op_simplified_layer_norm, "SimplifiedLayerNormalization", "", 2, 2, 2)
