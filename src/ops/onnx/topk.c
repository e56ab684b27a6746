/* SPDX-License-Identifier: Apache-2.0 */
/* TopK: the k largest or smallest along an axis. */
#include "compute/topk.h"
#include "ops/shared/data_movement.h"

typedef struct topk_params {
    int64_t axis, k, largest, sorted;
    bool from_attr; /* until opset 9 */
} topk_params;

static sonde_status prepare_topk(sn_prep *p)
{
    topk_params *r = p->params;
    SN_TRY(sn_prep_int(p, "axis", -1, &r->axis));
    SN_TRY(sn_prep_int(p, "largest", 1, &r->largest));
    return sn_prep_int(p, "sorted", 1, &r->sorted);
}

static sonde_status prepare_topk_1(sn_prep *p)
{
    topk_params *r = p->params;
    SN_TRY(prepare_topk(p));
    r->from_attr = true;
    SN_TRY(sn_prep_int(p, "k", -1, &r->k));
    return r->k < 0 ? sn_prep_fail(p, "attribute 'k' is missing or negative") : SONDE_OK;
}

static sonde_status infer_topk(sn_infer *c)
{
    const topk_params *r = c->params;
    sn_input_type x;
    sn_dim dims[SN_MAX_RANK], k = r->k;
    int axis;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    if (x.dtype != SONDE_DTYPE_UNDEFINED && !sn_elem_ordered(x.dtype))
        return sn_infer_fail(c, "elements of type %s cannot be sorted", sn_dtype_name(x.dtype));
    if (!r->from_attr) {
        const sn_dim *v;
        int64_t n;
        SN_TRY(sn_infer_ints(c, 1, &v, &n));
        k = v && n == 1 ? v[0] : SN_DIM_UNKNOWN;
        if (sn_dim_known(k) && k < 0)
            return sn_infer_fail(c, "k is %lld", (long long)k);
    }
    if (x.rank < 0) {
        SN_TRY(sn_infer_rank(c, 0, x.dtype, -1));
        return sn_infer_rank(c, 1, SONDE_DTYPE_I64, -1);
    }
    SN_TRY(sn_infer_axis(c, r->axis, x.rank, false, &axis));
    for (int i = 0; i < x.rank; i++)
        dims[i] = i == axis ? k : x.dims[i];
    if (sn_dim_known(k) && sn_dim_known(x.dims[axis]) && k > x.dims[axis])
        return sn_infer_fail(c, "k is %lld, but the axis has %lld elements", (long long)k,
                             (long long)x.dims[axis]);
    SN_TRY(sn_infer_bounded(c, 0, x.dtype, dims, x.rank));
    return sn_infer_bounded(c, 1, SONDE_DTYPE_I64, dims, x.rank);
}

typedef struct topk_bound {
    int threads; /* that the heaps are for */
    sn_piece heaps;
} topk_bound;

static sonde_status bind_topk(sn_bind *b)
{
    const topk_params *r = b->params;
    int axis;
    if (!sn_axis_index(r->axis, b->out[0].type.rank, &axis))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the axis is outside the input");
    topk_bound *k = SN_NEW(b->arena, topk_bound);
    size_t bytes;
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    k->threads = b->threads > 1 ? b->threads : 1;
    if (!sn_topk_scratch(b->out[0].type.dims[axis], k->threads, &bytes))
        bytes = SIZE_MAX;
    k->heaps = sn_carve_bytes(&b->workspace, bytes);
    b->bound = k;
    b->kernel = "topk_heap";
    return SONDE_OK;
}

static sonde_status run_topk(const sn_step *s, sn_frame *f)
{
    const topk_params *r = s->params;
    const topk_bound *k = s->bound;
    const sn_tensor *x = sn_in(s, f, 0), *values = sn_wants(s, 0) ? sn_out(s, f, 0) : NULL,
                    *indices = sn_wants(s, 1) ? sn_out(s, f, 1) : NULL;
    sn_topk p = {.dtype = x->dtype, .largest = r->largest != 0, .outer = 1, .inner = 1};
    int axis;
    if (!sn_axis_index(r->axis, x->rank, &axis))
        return sn_run_fail(s, f, "the axis is outside an input of rank %d", x->rank);
    if (!values && !indices)
        return SONDE_OK;
    p.n = x->dims[axis];
    p.k = (values ? values : indices)->dims[axis];
    if (p.k > p.n || (!r->from_attr && sn_tensor_int(sn_in(s, f, 1), 0) != p.k))
        return sn_run_fail(s, f, "the value of k does not match the planned output shape");
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            *(i < axis ? &p.outer : &p.inner) *= x->dims[i];
    sn_topk_run(&p, values ? values->data : NULL, indices ? indices->data : NULL, x->data,
                sn_piece_ptr(f, k->heaps), k->threads, f->pool);
    return SONDE_OK;
}

#define TOPK(SINCE, UNTIL, N_IN, PREPARE)                                                          \
    {                                                                                              \
        SN_OP_HEAD("TopK", SINCE, UNTIL, N_IN, N_IN, 2, 2),                                        \
            .params_size = sizeof(topk_params), .prepare = PREPARE, .infer = infer_topk,           \
            .bind = bind_topk, .run = run_topk,                                                    \
            .types = "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64"                              \
    }
const sn_op sn_op_topk[] = {
    TOPK(1, 9, 1, prepare_topk_1), TOPK(10, 0, 2, prepare_topk), {.name = NULL}};
