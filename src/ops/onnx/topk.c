/* SPDX-License-Identifier: Apache-2.0 */
/* TopK: the k largest or smallest along an axis. Elements become order-preserving integer keys, so
 * one heap serves every type; equal elements keep the lower index first, as the operator asks. */
#include "ops/shared/data_movement.h"

typedef struct topk_params {
    int64_t axis, k, largest, sorted;
    bool from_attr; /* until opset 9 */
} topk_params;

typedef struct topk_item {
    uint64_t key;
    int64_t index;
} topk_item;

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
    sn_move_type x;
    sn_dim dims[SN_MAX_RANK], k = r->k;
    int axis;
    SN_TRY(sn_move_in(c, 0, &x));
    if (x.dtype != SONDE_DTYPE_UNDEFINED && !sn_elem_ordered(x.dtype))
        return sn_infer_fail(c, "%s elements have no order", sn_dtype_name(x.dtype));
    if (!r->from_attr) {
        const sn_dim *v;
        int64_t n;
        SN_TRY(sn_infer_ints(c, 1, &v, &n));
        k = v && n == 1 ? v[0] : SN_DIM_UNKNOWN;
        if (sn_dim_known(k) && k < 0)
            return sn_infer_fail(c, "k is %lld", (long long)k);
    }
    if (x.rank < 0) {
        SN_TRY(sn_move_out_rank(c, 0, x.dtype, -1));
        return sn_move_out_rank(c, 1, SONDE_DTYPE_I64, -1);
    }
    SN_TRY(sn_infer_axis(c, r->axis, x.rank, false, &axis));
    for (int i = 0; i < x.rank; i++)
        dims[i] = i == axis ? k : x.dims[i];
    if (sn_dim_known(k) && sn_dim_known(x.dims[axis]) && k > x.dims[axis])
        return sn_infer_fail(c, "k is %lld, the axis has %lld", (long long)k,
                             (long long)x.dims[axis]);
    SN_TRY(sn_move_out(c, 0, x.dtype, dims, x.rank));
    return sn_move_out(c, 1, SONDE_DTYPE_I64, dims, x.rank);
}

/* One heap of k items per thread. */
static sonde_status bind_topk(sn_bind *b)
{
    const topk_params *r = b->params;
    int axis;
    if (!sn_move_axis(r->axis, b->out[0].type.rank, &axis))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the axis is outside the input");
    size_t k = (size_t)b->out[0].type.dims[axis];
    size_t threads = b->threads > 1 ? (size_t)b->threads : 1;
    int *heaps = SN_NEW(b->arena, int);
    if (!heaps)
        return sn_fail_memory(b->err, sizeof *heaps);
    *heaps = (int)threads;
    b->bound = heaps;
    if (!sn_size_mul(k, sizeof(topk_item), &k) || !sn_size_mul(k, threads, &b->workspace_bytes))
        return sn_fail_memory(b->err, SIZE_MAX);
    b->kernel = "topk_heap";
    return SONDE_OK;
}

static bool worse(const topk_item *a, const topk_item *b)
{
    return a->key < b->key || (a->key == b->key && a->index > b->index);
}

/* The worst kept item is at the root. */
static void sift_down(topk_item *heap, int64_t n, int64_t i)
{
    topk_item item = heap[i];
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && worse(&heap[child + 1], &heap[child]))
            child++;
        if (!worse(&heap[child], &item))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = item;
}

typedef struct topk_job {
    const sn_tensor *x;
    sn_tensor *values, *indices;
    int64_t n, k, inner, lanes, per_task;
    bool largest;
    topk_item *heaps;
} topk_job;

static void topk_lane(const topk_job *j, int64_t lane, topk_item *heap)
{
    int64_t outer = lane / j->inner, in = lane % j->inner, base = outer * j->n * j->inner + in;
    uint64_t flip = j->largest ? 0 : UINT64_MAX;
    for (int64_t i = 0; i < j->n; i++) {
        topk_item item = {sn_elem_key(j->x->dtype, j->x->data, base + i * j->inner) ^ flip, i};
        if (i < j->k) {
            heap[i] = item;
            if (i + 1 == j->k)
                for (int64_t h = j->k / 2 - 1; h >= 0; h--)
                    sift_down(heap, j->k, h);
        } else if (worse(&heap[0], &item)) {
            heap[0] = item;
            sift_down(heap, j->k, 0);
        }
    }
    size_t elem = sn_dtype_bytes(j->x->dtype);
    int64_t out = outer * j->k * j->inner + in;
    for (int64_t i = j->k - 1; i >= 0; i--) {
        int64_t from = heap[0].index, to = out + i * j->inner;
        heap[0] = heap[i];
        sift_down(heap, i, 0);
        if (j->values)
            sn_move_elem((char *)j->values->data + (size_t)to * elem,
                         (const char *)j->x->data + (size_t)(base + from * j->inner) * elem, elem);
        if (j->indices)
            ((int64_t *)j->indices->data)[to] = from;
    }
}

static void topk_task(void *arg, size_t task, int worker)
{
    const topk_job *j = arg;
    int64_t lo = (int64_t)task * j->per_task, hi = lo + j->per_task;
    for (int64_t lane = lo; lane < hi && lane < j->lanes; lane++)
        topk_lane(j, lane, j->heaps + (int64_t)worker * j->k);
}

static sonde_status run_topk(const sn_step *s, sn_frame *f)
{
    const topk_params *r = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    topk_job j = {.x = x,
                  .inner = 1,
                  .lanes = 1,
                  .largest = r->largest != 0,
                  .heaps = (topk_item *)(void *)f->workspace};
    int axis;
    if (!sn_move_axis(r->axis, x->rank, &axis))
        return sn_run_fail(s, f, "the axis is outside an input of rank %d", x->rank);
    j.values = sn_wants(s, 0) ? sn_out(s, f, 0) : NULL;
    j.indices = sn_wants(s, 1) ? sn_out(s, f, 1) : NULL;
    if (!j.values && !j.indices)
        return SONDE_OK;
    j.n = x->dims[axis];
    j.k = (j.values ? j.values : j.indices)->dims[axis];
    if (j.k > j.n || (!r->from_attr && sn_move_int(sn_in(s, f, 1), 0) != j.k))
        return sn_run_fail(s, f, "k does not give the planned shape");
    for (int i = 0; i < x->rank; i++) {
        j.inner *= i > axis ? x->dims[i] : 1;
        j.lanes *= i != axis ? x->dims[i] : 1;
    }
    if (j.k == 0 || j.lanes == 0)
        return SONDE_OK;
    int64_t threads = sn_pool_threads(f->pool);
    if (threads <= 1 || threads > *(const int *)s->bound || sn_tensor_count(x) < 16384) {
        j.per_task = j.lanes;
        topk_task(&j, 0, 0);
        return SONDE_OK;
    }
    j.per_task = (j.lanes + threads * 4 - 1) / (threads * 4);
    sn_pool_run(f->pool, (size_t)((j.lanes + j.per_task - 1) / j.per_task), topk_task, &j);
    return SONDE_OK;
}

#define TOPK(SINCE, UNTIL, N_IN, PREPARE)                                                          \
    {                                                                                              \
        SN_MOVE_HEAD("TopK", SINCE, UNTIL, N_IN, N_IN, 2, 2),                                      \
            .params_size = sizeof(topk_params), .prepare = PREPARE, .infer = infer_topk,           \
            .bind = bind_topk, .run = run_topk,                                                    \
            .types = "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64"                              \
    }
const sn_op sn_op_topk[] = {
    TOPK(1, 9, 1, prepare_topk_1), TOPK(10, 0, 2, prepare_topk), {.name = NULL}};
