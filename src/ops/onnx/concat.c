/* SPDX-License-Identifier: Apache-2.0 */
/* Concat and Split: parts of one axis. Both are a strided copy per part between a dense tensor and
 * a window of the other. Images in blocks are cut along the channels; where no block ends, lanes
 * move. */
#include <string.h>

#include "compute/packs.h"
#include "ops/shared/data_movement.h"
#include "ops/shared/layouts.h"

typedef struct part_params {
    int64_t axis;
    const int64_t *sizes; /* Split until opset 11 */
    size_t n_sizes;
    int64_t num_outputs; /* Split since 18; 0 = not given */
} part_params;

/* The dims a copy sees: [images][blocks][pixels × block] of an image in blocks, where axis 1 is
 * cut.
 */
typedef struct extent {
    int64_t dims[SN_MAX_RANK];
    int rank;
} extent;

static extent extent_of(const sn_tensor *t)
{
    extent e = {.rank = t->rank};
    for (int i = 0; i < t->rank; i++)
        e.dims[i] = t->dims[i];
    const int64_t block = sn_layout_block(t->layout);
    if (sn_layout_is_last(t->layout)) { /* channels stay dim 1, behind all pixels */
        e.rank = 2;
        e.dims[0] = t->dims[1] ? sn_tensor_count(t) / t->dims[1] : 0;
    }
    if (!block)
        return e;
    e.rank = 3;
    e.dims[1] = (t->dims[1] + block - 1) / block;
    e.dims[2] = block;
    for (int i = 2; i < t->rank; i++)
        e.dims[2] *= t->dims[i];
    return e;
}

/* Copies between `dense` and the window of a tensor whose axis has `whole` entries, at `at`. */
static void copy_part(char *whole_data, char *dense_data, const extent *dense, int axis,
                      int64_t whole, int64_t at, size_t elem, bool into_whole, sn_pool *pool)
{
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < dense->rank; i++)
        *(i < axis ? &outer : &inner) *= dense->dims[i];
    int64_t step = dense->dims[axis] ? inner / dense->dims[axis] : 0;
    sn_copy c;
    int64_t shape[2] = {outer, inner};
    ptrdiff_t wide[2] = {(ptrdiff_t)(step * whole), 1}, tight[2] = {(ptrdiff_t)inner, 1};
    if (outer * inner == 0)
        return;
    whole_data += (size_t)(step * at) * elem;
    sn_copy_plan(&c, elem, 2, shape, into_whole ? wide : tight, into_whole ? tight : wide);
    sn_copy_run(&c, into_whole ? whole_data : dense_data, into_whole ? dense_data : whole_data,
                pool);
}

/* Is v an image whose channels are known? */
static bool has_channels(const sn_value *v)
{
    const sn_type *t = v ? &v->fact.type : NULL;
    return t && !v->fact.data && t->dtype == SONDE_DTYPE_F32 && t->rank >= 3 && t->rank <= 5 &&
           sn_dim_known(t->dims[1]) && t->dims[1] > 0;
}

static bool cuts_channels(const part_params *p, const sn_value *v)
{
    return v && (p->axis == 1 || p->axis == 1 - v->fact.type.rank);
}

/* ------------------------------------------------------------------ Concat */
static sonde_status prepare_concat(sn_prep *p)
{
    if (!sn_node_attr(p->node, "axis"))
        return sn_prep_fail(p, "attribute 'axis' is missing");
    return sn_prep_int(p, "axis", 0, &((part_params *)p->params)->axis);
}

static sonde_status prepare_concat_1(sn_prep *p)
{
    return sn_prep_int(p, "axis", 1, &((part_params *)p->params)->axis);
}

static sonde_status concat_ints(sn_infer *c, sn_dim total)
{
    sn_dim all[SN_MAX_KNOWN_INTS];
    int64_t at = 0;
    if (!sn_dim_known(total) || total > SN_MAX_KNOWN_INTS)
        return SONDE_OK;
    for (uint32_t i = 0; i < c->n_in; i++) {
        const sn_dim *v;
        int64_t n, size = c->in[i]->type.dims[0];
        SN_TRY(sn_infer_ints(c, i, &v, &n));
        if (v && n != size)
            return SONDE_OK;
        for (int64_t k = 0; k < size; k++)
            all[at++] = v ? v[k] : SN_DIM_UNKNOWN;
    }
    return sn_infer_set_ints(c, 0, all, at);
}

static sonde_status infer_concat(sn_infer *c)
{
    const part_params *p = c->params;
    sn_dim dims[SN_MAX_RANK], total = 0;
    sn_dtype dtype = SONDE_DTYPE_UNDEFINED;
    int rank = -1, axis = 0;
    bool unknown_part = false;
    for (uint32_t i = 0; i < c->n_in; i++) {
        sn_input_type x;
        SN_TRY(sn_infer_input_type(c, i, &x));
        if (dtype == SONDE_DTYPE_UNDEFINED)
            dtype = x.dtype;
        else if (x.dtype != SONDE_DTYPE_UNDEFINED && x.dtype != dtype)
            return sn_infer_fail(c, "input %u is %s, the ones before are %s", i,
                                 sn_dtype_name(x.dtype), sn_dtype_name(dtype));
        if (x.rank < 0) {
            unknown_part = true;
            continue;
        }
        if (rank < 0) {
            rank = x.rank;
            SN_TRY(sn_infer_axis(c, p->axis, rank, false, &axis));
            memcpy(dims, x.dims, (size_t)rank * sizeof *dims);
        } else if (x.rank != rank) {
            return sn_infer_fail(c, "input %u has rank %d, expected %d", i, x.rank, rank);
        }
        for (int k = 0; k < rank; k++) {
            if (k == axis)
                continue;
            if (sn_dim_known(dims[k]) && sn_dim_known(x.dims[k]) && dims[k] != x.dims[k])
                return sn_infer_fail(c, "input %u has %lld in dim %d, expected %lld", i,
                                     (long long)x.dims[k], k, (long long)dims[k]);
            dims[k] = sn_dim_merge(dims[k], x.dims[k]);
        }
        bool numbers = sn_dim_known(total) && sn_dim_known(x.dims[axis]);
        total = sn_dim_add(total, x.dims[axis]);
        if (numbers && !sn_dim_known(total))
            return sn_infer_fail(c, "output 0 would be too large");
    }
    if (rank < 0)
        return sn_infer_rank(c, 0, dtype, -1);
    dims[axis] = unknown_part ? SN_DIM_UNKNOWN : total;
    SN_TRY(sn_infer_bounded(c, 0, dtype, dims, rank));
    return rank == 1 && !unknown_part ? concat_ints(c, total) : SONDE_OK;
}

static const sn_op_signature *in_blocks_concat(const sn_node *node, const void *params, int block)
{
    static const sn_op_signature alike = {.all_in = true, .out = SN_PORT_SAME};
    (void)block;
    if (!cuts_channels(params, node->out[0]))
        return NULL;
    for (uint32_t i = 0; i < node->n_in; i++)
        if (!has_channels(node->in[i].value))
            return NULL;
    return &alike;
}

static const sn_op_signature *in_last_concat(const sn_node *node, const void *params)
{
    static const sn_op_signature alike = {.all_in = true, .out = SN_PORT_SAME};
    const part_params *p = params;
    for (uint32_t i = 0; i < node->n_in; i++) {
        const sn_value *v = node->in[i].value;
        if (!v || v->fact.data || !sn_value_is_byte_image(v) ||
            (p->axis != 1 && p->axis != 1 - v->fact.type.rank))
            return NULL;
    }
    return &alike;
}

static uint32_t in_half_concat(const sn_node *node, const void *params, sn_dtype half,
                               uint32_t cpu_flags)
{
    const sn_value *y = node->out[0];
    (void)half;
    (void)params;
    if (!y || sn_fact_block(&y->fact) == 0 || node->n_in > SN_HALF_INPUTS ||
        !sn_pack_has_image_tiles(cpu_flags))
        return 0;
    for (uint32_t i = 0; i < node->n_in; i++)
        if (!node->in[i].value || node->in[i].value->fact.type.dtype != SONDE_DTYPE_F32)
            return 0;
    return ((1u << node->n_in) - 1) | SN_HALF_OUT | SN_HALF_ALIKE;
}

static sonde_status bind_concat(sn_bind *b)
{
    for (uint32_t i = 0; i < b->n_in; i++)
        if (!sn_form_same(b->in[i]->form, b->out[0].form))
            return sn_bind_fail(b, SONDE_INTERNAL,
                                "input %u has a different layout than the output", i);
    b->kernel = "copy_concat";
    const part_params *p = b->params;
    const sn_fact *y = &b->out[0];
    int axis;
    b->joins = y->type.rank > 0 && y->type.dtype != SONDE_DTYPE_STRING &&
               sn_axis_index(p->axis, y->type.rank, &axis) && !sn_layout_is_last(y->form.layout) &&
               (axis <= 1 || sn_fact_block(y) == 0);
    for (int i = 0; b->joins && i < axis; i++)
        b->joins = y->type.dims[i] == 1;
    const int64_t block = sn_fact_block(y);
    for (uint32_t i = 0; b->joins && block && i + 1 < b->n_in; i++)
        b->joins = axis == 0 || b->in[i]->type.dims[1] % block == 0;
    return SONDE_OK;
}

static sonde_status run_concat(const sn_step *s, sn_frame *f)
{
    const part_params *p = s->params;
    sn_tensor *y = sn_out(s, f, 0);
    int axis;
    int64_t at = 0;
    if (!sn_axis_index(p->axis, y->rank, &axis))
        return sn_run_fail(s, f, "axis %lld is outside the output", (long long)p->axis);
    const extent whole = extent_of(y);
    const uint8_t *place = y->data;
    const int64_t block = sn_layout_block(y->layout);
    int64_t channel = 0;
    bool apart = false; /* a part before ended inside of a block, or this one does */
    for (uint32_t i = 0; i < s->n_in; i++) {
        const sn_tensor *x = sn_in(s, f, i);
        if (block && axis == 1) {
            apart = apart || (i + 1 < s->n_in && x->dims[1] % block);
            if (apart)
                sn_copy_channels(y, channel, x, 0, x->dims[1], f->pool);
            channel += x->dims[1];
            if (apart)
                continue;
        }
        const extent part = extent_of(x);
        const bool made_there = x->bytes > 0 && x->data == (const void *)place;
        place += x->bytes;
        at += part.dims[axis];
        if (made_there)
            continue;
        copy_part(y->data, x->data, &part, axis, whole.dims[axis], at - part.dims[axis],
                  sn_dtype_bytes(y->dtype), true, f->pool);
    }
    return sn_run_own_strings(s, f, 0);
}

#define CONCAT(SINCE, UNTIL, PREPARE)                                                              \
    {                                                                                              \
        SN_OP_HEAD("Concat", SINCE, UNTIL, 1, -1, 1, 1),                                           \
            .params_size = sizeof(part_params), .prepare = PREPARE, .infer = infer_concat,         \
            .bind = bind_concat, .run = run_concat, .half = SN_HALF_MOVED,                         \
            .in_blocks = in_blocks_concat, .in_last = in_last_concat, .in_half = in_half_concat,   \
            .types = SN_ALL_TYPES                                                                  \
    }
const sn_op sn_op_concat[] = {
    CONCAT(1, 3, prepare_concat_1), CONCAT(4, 0, prepare_concat), {.name = NULL}};

/* ------------------------------------------------------------------ Split */
static sonde_status prepare_split(sn_prep *p)
{
    part_params *r = p->params;
    SN_TRY(sn_prep_ints(p, "split", &r->sizes, &r->n_sizes));
    SN_TRY(sn_prep_int(p, "num_outputs", 0, &r->num_outputs));
    if (r->num_outputs < 0 || (r->num_outputs > 0 && r->num_outputs != (int64_t)p->node->n_out))
        return sn_prep_fail(p, "attribute 'num_outputs' is %lld for %u outputs",
                            (long long)r->num_outputs, p->node->n_out);
    return sn_prep_int(p, "axis", 0, &r->axis);
}

/* Size of part k of n when no sizes are given; uneven parts are allowed since 18. */
static int64_t even_part(int64_t whole, int64_t n, int64_t k)
{
    int64_t size = whole / n + (whole % n != 0), left = whole - k * size;
    return left < 0 ? 0 : left < size ? left : size;
}

static sonde_status split_ints(sn_infer *c, uint32_t o, sn_dim at, sn_dim size)
{
    const sn_dim *v;
    int64_t n;
    SN_TRY(sn_infer_ints(c, 0, &v, &n));
    if (!v || !sn_dim_known(at) || !sn_dim_known(size) || at < 0 || size < 0 || at > n ||
        size > n - at)
        return SONDE_OK;
    return sn_infer_set_ints(c, o, v + at, size);
}

static sonde_status infer_split(sn_infer *c)
{
    const part_params *p = c->params;
    sn_input_type x;
    const sn_dim *sizes = p->n_sizes ? p->sizes : NULL;
    int64_t n = (int64_t)p->n_sizes;
    int axis;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    if (!sizes)
        SN_TRY(sn_infer_list(c, 1, &sizes, &n));
    bool given = sizes || sn_infer_has(c, 1);
    if (sizes && n != (int64_t)c->n_out)
        return sn_infer_fail(c, "%lld sizes for %u outputs", (long long)n, c->n_out);
    if (x.rank < 0) {
        for (uint32_t o = 0; o < c->n_out; o++)
            SN_TRY(sn_infer_rank(c, o, x.dtype, -1));
        return SONDE_OK;
    }
    SN_TRY(sn_infer_axis(c, p->axis, x.rank, false, &axis));
    sn_dim dims[SN_MAX_RANK], whole = x.dims[axis], at = 0;
    memcpy(dims, x.dims, (size_t)x.rank * sizeof *dims);
    if (!given && p->num_outputs == 0 && sn_dim_known(whole) && whole % c->n_out)
        return sn_infer_fail(c, "a dimension of %lld cannot be divided into %u equal outputs",
                             (long long)whole, c->n_out);
    for (uint32_t o = 0; o < c->n_out; o++) {
        dims[axis] = sizes ? sizes[o]
                     : !given && sn_dim_known(whole)
                         ? even_part(whole, (int64_t)c->n_out, (int64_t)o)
                         : SN_DIM_UNKNOWN;
        if (c->n_out == 1 && !sizes)
            dims[axis] = whole;
        SN_TRY(sn_infer_bounded(c, o, x.dtype, dims, x.rank));
        if (x.rank == 1)
            SN_TRY(split_ints(c, o, at, dims[axis]));
        at = sn_dim_add(at, dims[axis]);
    }
    if (sn_dim_known(at) && sn_dim_known(whole) && at != whole)
        return sn_infer_fail(c, "the parts add up to %lld, but the dimension is %lld",
                             (long long)at, (long long)whole);
    return SONDE_OK;
}

static sonde_status run_split(const sn_step *s, sn_frame *f)
{
    const part_params *p = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    int axis;
    int64_t at = 0;
    if (!sn_axis_index(p->axis, x->rank, &axis))
        return sn_run_fail(s, f, "axis %lld is outside the input", (long long)p->axis);
    const extent whole = extent_of(x);
    const int64_t block = sn_layout_block(x->layout);
    for (uint32_t o = 0; o < s->n_out; o++) {
        if (!sn_wants(s, o))
            return sn_run_fail(s, f, "output %u is missing", o);
        sn_tensor *y = sn_out(s, f, o);
        const extent part = extent_of(y);
        if (block && axis == 1) {
            if (y->dims[1] > x->dims[1] - at)
                return sn_run_fail(s, f, "the parts are larger than the input");
            sn_copy_channels(y, 0, x, at, y->dims[1], f->pool);
            at += y->dims[1];
            continue;
        }
        if (part.dims[axis] > whole.dims[axis] - at)
            return sn_run_fail(s, f, "the parts are larger than the input");
        copy_part(x->data, y->data, &part, axis, whole.dims[axis], at, sn_dtype_bytes(y->dtype),
                  false, f->pool);
        at += part.dims[axis];
        SN_TRY(sn_run_own_strings(s, f, o));
    }
    return SONDE_OK;
}

static const sn_op_signature *in_blocks_split(const sn_node *node, const void *params, int block)
{
    static const sn_op_signature alike = {.in = {SN_PORT_SAME}, .all_out = true};
    (void)block;
    if (!cuts_channels(params, node->in[0].value) || !has_channels(node->in[0].value))
        return NULL;
    for (uint32_t o = 0; o < node->n_out; o++)
        if (!has_channels(node->out[o]))
            return NULL;
    return &alike;
}

static sonde_status bind_split(sn_bind *b)
{
    for (uint32_t o = 0; o < b->n_out; o++)
        if (!sn_form_same(b->out[o].form, b->in[0]->form))
            return sn_bind_fail(b, SONDE_INTERNAL,
                                "output %u has a different layout than the input", o);
    b->kernel = "copy_split";
    return SONDE_OK;
}

#define SPLIT(SINCE, UNTIL, MAX_IN)                                                                \
    {                                                                                              \
        SN_OP_HEAD("Split", SINCE, UNTIL, 1, MAX_IN, 1, -1),                                       \
            .params_size = sizeof(part_params), .prepare = prepare_split, .infer = infer_split,    \
            .bind = bind_split, .run = run_split, .half = SN_HALF_MOVED,                           \
            .in_blocks = in_blocks_split, .types = SN_ALL_TYPES                                    \
    }
const sn_op sn_op_split[] = {SPLIT(1, 1, 2), SPLIT(2, 12, 1), SPLIT(13, 0, 2), {.name = NULL}};
