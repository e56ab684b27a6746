/* SPDX-License-Identifier: Apache-2.0 */
/* The ten reductions. Axes are an attribute at first and an input since opset 13 (ReduceSum) or 18;
 * in the latter case a shape is known before the run only when the axes are. */
#include "compute/reduce.h"

#include <string.h>

#include "ops/shared/converted.h"
#include "ops/shared/elementwise.h"

typedef struct reduce_params {
    sn_reduce op;
    bool keepdims, noop_if_empty;
    bool from_input; /* axes are input 1 */
    const int64_t *axes;
    size_t n_axes;
} reduce_params;

typedef struct reduce_bound {
    sn_reduce_plan plan;
    bool noop;
    size_t n;         /* input elements */
    sn_dtype compute; /* integers whose result is a root or a logarithm go through f64 */
    sn_piece x, y;    /* in that type */
} reduce_bound;

static const struct {
    const char *name;
    sn_reduce op;
} rows[] = {
    {"ReduceSum", SN_REDUCE_SUM},
    {"ReduceMean", SN_REDUCE_MEAN},
    {"ReduceMax", SN_REDUCE_MAX},
    {"ReduceMin", SN_REDUCE_MIN},
    {"ReduceProd", SN_REDUCE_PROD},
    {"ReduceL1", SN_REDUCE_L1},
    {"ReduceL2", SN_REDUCE_L2},
    {"ReduceLogSum", SN_REDUCE_LOG_SUM},
    {"ReduceLogSumExp", SN_REDUCE_LOG_SUM_EXP},
    {"ReduceSumSquare", SN_REDUCE_SUM_SQUARE},
};

/* Is the result over no axes the input itself? The others still take absolute values, squares or
 * logarithms of the elements. */
static bool keeps_elements(sn_reduce op)
{
    return op <= SN_REDUCE_PROD || op == SN_REDUCE_LOG_SUM_EXP;
}

static sonde_status prepare_common(sn_prep *p)
{
    reduce_params *r = p->params;
    int64_t keep;
    size_t k = 0;
    while (strcmp(rows[k].name, p->node->op_type) != 0)
        k++; /* every operator that comes here has a row */
    r->op = rows[k].op;
    SN_TRY(sn_prep_int(p, "keepdims", 1, &keep));
    r->keepdims = keep != 0;
    return SONDE_OK;
}

static sonde_status prepare_attr(sn_prep *p)
{
    reduce_params *r = p->params;
    SN_TRY(prepare_common(p));
    return sn_prep_ints(p, "axes", &r->axes, &r->n_axes);
}

static sonde_status prepare_input(sn_prep *p)
{
    reduce_params *r = p->params;
    int64_t noop;
    SN_TRY(prepare_common(p));
    SN_TRY(sn_prep_int(p, "noop_with_empty_axes", 0, &noop));
    r->noop_if_empty = noop != 0;
    r->from_input = true;
    return SONDE_OK;
}

/* Marks the reduced axes. *known is false when they depend on a value not known yet. */
static sonde_status mark_axes(sn_infer *c, int rank, bool *reduced, bool *known, bool *noop)
{
    const reduce_params *r = c->params;
    const int64_t *axes = r->axes;
    int64_t n = (int64_t)r->n_axes;
    *known = true;
    *noop = false;
    if (r->from_input && sn_infer_has(c, 1)) {
        const sn_dim *ints;
        SN_TRY(sn_infer_ints(c, 1, &ints, &n));
        axes = ints;
        const sn_type *t = &c->in[1]->type;
        bool empty = t->rank == 1 && t->dims[0] == 0;
        if (!ints && !empty) {
            *known = false;
            return SONDE_OK;
        }
        if (empty)
            n = 0;
    }
    memset(reduced, n == 0 && !r->noop_if_empty, sizeof(bool) * SN_MAX_RANK);
    *noop = n == 0 && r->noop_if_empty && keeps_elements(r->op);
    for (int64_t i = 0; i < n; i++) {
        int a;
        if (!sn_dim_known(axes[i])) {
            *known = false;
            return SONDE_OK;
        }
        SN_TRY(sn_infer_axis(c, axes[i], rank, false, &a));
        reduced[a] = true;
    }
    return SONDE_OK;
}

static sonde_status infer_reduce(sn_infer *c)
{
    const reduce_params *r = c->params;
    const sn_type *x = &c->in[0]->type;
    if (x->rank < 0)
        return sn_infer_tensor(c, 0, x->dtype, NULL, -1);
    if (x->rank > SN_MAX_RANK)
        return sn_infer_fail(c, "rank %d is above the limit of %d", x->rank, SN_MAX_RANK);
    bool reduced[SN_MAX_RANK], known, noop;
    SN_TRY(mark_axes(c, x->rank, reduced, &known, &noop));
    sn_dim dims[SN_MAX_RANK];
    int rank = 0;
    if (!known) {
        for (int i = 0; i < x->rank; i++)
            dims[i] = SN_DIM_UNKNOWN;
        return sn_infer_tensor(c, 0, x->dtype, dims, r->keepdims ? x->rank : -1);
    }
    for (int i = 0; i < x->rank; i++) {
        if (!reduced[i])
            dims[rank++] = x->dims[i];
        else if (r->keepdims)
            dims[rank++] = 1;
    }
    SN_TRY(sn_infer_tensor(c, 0, x->dtype, dims, rank));
    /* Products and sums of shapes: ReduceProd(Shape(x)) counts elements. */
    const sn_dim *v;
    int64_t n, count;
    SN_TRY(sn_infer_ints(c, 0, &v, &n));
    if (!v || noop || x->rank != 1 || !reduced[0] || !sn_type_count(x, &count) || count != n ||
        n == 0)
        return SONDE_OK;
    sn_dim total = sn_dim_to_compute(v[0]);
    for (int64_t i = 1; i < n; i++) {
        const sn_dim next = sn_dim_to_compute(v[i]);
        const bool both = sn_dim_known(total) && sn_dim_known(next);
        if (r->op == SN_REDUCE_SUM)
            total = sn_dim_add(total, next);
        else if (r->op == SN_REDUCE_PROD)
            total = sn_dim_mul(total, next);
        else if (both && r->op == SN_REDUCE_MAX)
            total = total > next ? total : next;
        else if (both && r->op == SN_REDUCE_MIN)
            total = total < next ? total : next;
        else
            return SONDE_OK;
    }
    bool passes = r->op <= SN_REDUCE_PROD && r->op != SN_REDUCE_MEAN;
    total = sn_int_in_type(total, x->dtype);
    return passes ? sn_infer_set_ints(c, 0, &total, 1) : SONDE_OK;
}

/* The axes at bind time: known from the values (constant, propagated or actual), or, when keepdims
 * says where they are, from the shapes. */
static sonde_status bind_axes(sn_bind *b, bool *reduced, bool *noop)
{
    const sn_type *x = &b->in[0]->type, *y = &b->out[0].type;
    const reduce_params *r = b->params;
    sn_infer c = {.node = b->node,
                  .params = b->params,
                  .in = b->in,
                  .n_in = b->n_in,
                  .arena = b->arena,
                  .err = b->err};
    bool known;
    SN_TRY(mark_axes(&c, x->rank, reduced, &known, noop));
    if (known)
        return SONDE_OK;
    if (r->keepdims && y->rank == x->rank) {
        for (int i = 0; i < x->rank; i++)
            reduced[i] = y->dims[i] == 1;
        return SONDE_OK;
    }
    return sn_bind_fail(b, SONDE_INTERNAL, "the axes are not known");
}

static sonde_status bind_reduce(sn_bind *b)
{
    const reduce_params *r = b->params;
    reduce_bound *k = SN_NEW(b->arena, reduce_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    const sn_type *x = &b->in[0]->type;
    bool reduced[SN_MAX_RANK];
    SN_TRY(bind_axes(b, reduced, &k->noop));
    k->compute = x->dtype;
    if (!sn_reduce_supported(r->op, x->dtype) && sn_dtype_is_int(x->dtype))
        k->compute = SONDE_DTYPE_F64;
    if (!sn_reduce_supported(r->op, k->compute))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(x->dtype));
    sn_reduce_make(&k->plan, r->op, k->compute, x->dims, x->rank, reduced, b->cpu_flags);
    k->n = sn_fact_elems(b->in[0]);
    k->x = sn_converted_carve(&b->workspace, b->in[0], k->compute);
    k->y = sn_converted_carve(&b->workspace, &b->out[0], k->compute);
    b->bound = k;
    b->kernel = k->plan.rows ? "reduce_rows" : "reduce_columns";
    b->flops = k->n;
    return SONDE_OK;
}

static sonde_status run_reduce(const sn_step *s, sn_frame *f)
{
    const reduce_bound *k = s->bound;
    const sn_tensor *x = sn_in(s, f, 0);
    sn_tensor *y = sn_out(s, f, 0);
    if (k->noop) {
        if (y->data != x->data && y->bytes > 0)
            memcpy(y->data, x->data, y->bytes);
        return SONDE_OK;
    }
    const void *in = sn_converted_in(s, f, 0, k->compute, k->x);
    sn_reduce_run(&k->plan, sn_converted_out(s, f, 0, k->compute, k->y), in, f->pool);
    sn_converted_done(s, f, 0, k->compute, k->y);
    return SONDE_OK;
}

#define REDUCE(NAME, SINCE, UNTIL, MAX_IN, PREPARE, HALF, TYPES)                                   \
    {                                                                                              \
        SN_ELT_HEAD(NAME, SINCE, UNTIL, 1, MAX_IN),                                                \
            .params_size = sizeof(reduce_params), .prepare = PREPARE, .infer = infer_reduce,       \
            .bind = bind_reduce, .run = run_reduce, .half = (HALF), .types = TYPES                 \
    }
#define REDUCE_OP(symbol, NAME, INPUT_SINCE, HALF, TYPES)                                          \
    const sn_op sn_op_##symbol[] = {                                                               \
        REDUCE(NAME, 1, INPUT_SINCE - 1, 1, prepare_attr, HALF, TYPES),                            \
        REDUCE(NAME, INPUT_SINCE, 0, 2, prepare_input, HALF, TYPES),                               \
        {.name = NULL}};
#define WIDE "i32 i64 u32 u64 bf16 f16 f32 f64"
REDUCE_OP(reduce_sum, "ReduceSum", 13, SN_HALF_IN_F32, WIDE)
REDUCE_OP(reduce_mean, "ReduceMean", 18, SN_HALF_IN_F32, WIDE)
REDUCE_OP(reduce_max, "ReduceMax", 18, SN_HALF_IN_F32, "bool i8 u8 " WIDE)
REDUCE_OP(reduce_min, "ReduceMin", 18, SN_HALF_IN_F32, "bool i8 u8 " WIDE)
REDUCE_OP(reduce_prod, "ReduceProd", 18, SN_HALF_AS_TYPED, WIDE)
REDUCE_OP(reduce_l1, "ReduceL1", 18, SN_HALF_AS_TYPED, WIDE)
REDUCE_OP(reduce_l2, "ReduceL2", 18, SN_HALF_IN_F32, WIDE)
REDUCE_OP(reduce_log_sum, "ReduceLogSum", 18, SN_HALF_AS_TYPED, WIDE)
REDUCE_OP(reduce_log_sum_exp, "ReduceLogSumExp", 18, SN_HALF_AS_TYPED, WIDE)
REDUCE_OP(reduce_sum_square, "ReduceSumSquare", 18, SN_HALF_AS_TYPED, WIDE)
