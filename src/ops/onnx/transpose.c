/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that are one strided copy of their input: Transpose, DepthToSpace, SpaceToDepth,
 * Expand, Tile. Each says its dims and strides when it is bound; running is the copy engine alone,
 * or, where a Transpose makes or takes an image in blocks, the driver that changes layouts. */
#include <string.h>

#include "compute/reorder.h"
#include "ops/shared/data_movement.h"
#include "ops/shared/layouts.h"

/* The bound form of all of them: a copy from input 0 to output 0. */
static sonde_status bind_copy(sn_bind *b, int rank, const int64_t *dims, const ptrdiff_t *src)
{
    ptrdiff_t dst[SN_COPY_MAX_RANK];
    sn_copy *c = SN_NEW(b->arena, sn_copy);
    if (!c)
        return sn_fail_memory(b->err, sizeof *c);
    sn_dense_strides(dims, rank, dst);
    sn_copy_plan(c, sn_dtype_bytes(b->out[0].type.dtype), rank, dims, dst, src);
    b->bound = c;
    b->kernel = sn_copy_name(c);
    b->view = true;
    for (int i = 0; i < rank; i++)
        b->view &= dims[i] == 1 || src[i] == dst[i];
    return SONDE_OK;
}

static sonde_status run_copy(const sn_step *s, sn_frame *f)
{
    sn_copy_run(s->bound, sn_out(s, f, 0)->data, sn_in(s, f, 0)->data, f->pool);
    return sn_run_own_strings(s, f, 0);
}

/* ------------------------------------------------------------------ Transpose */
typedef struct transpose_params {
    int n; /* -1: reverse the axes */
    int8_t perm[SN_MAX_RANK];
} transpose_params;

typedef struct image_bound {
    sn_reorder r;
    uint32_t cpu_flags;
} image_bound;

static sonde_status prepare_transpose(sn_prep *p)
{
    transpose_params *r = p->params;
    const int64_t *perm;
    size_t n;
    const sn_attr *a = sn_node_attr(p->node, "perm");
    SN_TRY(sn_prep_ints(p, "perm", &perm, &n));
    r->n = a ? (int)n : -1;
    if (n > SN_MAX_RANK)
        return sn_prep_fail(p, "attribute 'perm' has %zu entries, at most %d are supported", n,
                            SN_MAX_RANK);
    bool seen[SN_MAX_RANK] = {false};
    for (size_t i = 0; i < n; i++) {
        int64_t v = perm[i] < 0 ? perm[i] + (int64_t)n : perm[i];
        if (v < 0 || v >= (int64_t)n || seen[v])
            return sn_prep_fail(p, "attribute 'perm' is not a permutation");
        seen[v] = true;
        r->perm[i] = (int8_t)v;
    }
    return SONDE_OK;
}

static sonde_status infer_transpose(sn_infer *c)
{
    const transpose_params *r = c->params;
    sn_input_type x;
    sn_dim dims[SN_MAX_RANK];
    SN_TRY(sn_infer_input_type(c, 0, &x));
    if (x.rank < 0)
        return sn_infer_rank(c, 0, x.dtype, r->n);
    if (r->n >= 0 && r->n != x.rank)
        return sn_infer_fail(c, "attribute 'perm' has %d entries for an input of rank %d", r->n,
                             x.rank);
    for (int i = 0; i < x.rank; i++)
        dims[i] = x.dims[r->n < 0 ? x.rank - 1 - i : r->perm[i]];
    return sn_infer_bounded(c, 0, x.dtype, dims, x.rank);
}

/* Which of the two that go between channels last and images it is. */
typedef enum image_move { NO_IMAGE, FROM_LAST, TO_LAST, EITHER } image_move;

static image_move image_move_of(const transpose_params *r)
{
    bool from = r->n >= 3, to = r->n >= 3; /* lines of three dims: both */
    for (int i = 0; i < r->n; i++) {
        from &= r->perm[i] == (i == 0 ? 0 : i == 1 ? r->n - 1 : i - 1);
        to &= r->perm[i] == (i == 0 ? 0 : i == r->n - 1 ? 1 : i + 1);
    }
    return from && to ? EITHER : from ? FROM_LAST : to ? TO_LAST : NO_IMAGE;
}

/* Made by a convolution, v has its channels second. */
static bool is_of_convolution(const sn_value *v)
{
    const sn_node *n = v->producer;
    return n && (strcmp(n->op_type, "Conv") == 0 || strcmp(n->op_type, "FusedConv") == 0);
}

/* It writes or reads an image in blocks as easily as a plain one. */
static const sn_op_signature *transpose_blocks(const sn_node *n, const void *params, int block)
{
    static const sn_op_signature makes = {.in = {SN_PORT_NATIVE}, .out = SN_PORT_SAME};
    static const sn_op_signature takes = {.in = {SN_PORT_ANY}, .out = SN_PORT_NATIVE};
    const image_move move = image_move_of(params);
    (void)block;
    if (move == NO_IMAGE || !sn_value_is_image(n->in[0].value) || n->in[0].value->fact.data)
        return NULL;
    if (move == EITHER)
        return is_of_convolution(n->in[0].value) ? &takes : &makes;
    return move == FROM_LAST ? &makes : &takes;
}

static sonde_status run_image(const sn_step *s, sn_frame *f)
{
    const image_bound *k = s->bound;
    sn_reorder_run(&k->r, k->cpu_flags, sn_in(s, f, 0)->data, sn_out(s, f, 0)->data, f->pool);
    return SONDE_OK;
}

/* One side has blocks. */
static sonde_status bind_image(sn_bind *b)
{
    const sn_type *image = sn_fact_block(b->in[0]) ? &b->in[0]->type : &b->out[0].type;
    image_bound *k = SN_NEW(b->arena, image_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    *k = (image_bound){.r = {.n = image->dims[0],
                             .c = image->dims[1],
                             .pixels = 1,
                             .from = sn_fact_block(b->in[0]),
                             .to = sn_fact_block(&b->out[0]),
                             .last = true},
                       .cpu_flags = b->cpu_flags};
    for (int i = 2; i < image->rank; i++)
        k->r.pixels *= image->dims[i];
    b->bound = k;
    b->run = run_image;
    b->kernel = sn_reorder_name(&k->r, b->cpu_flags);
    return SONDE_OK;
}

static sonde_status bind_transpose(sn_bind *b)
{
    const transpose_params *r = b->params;
    const sn_type *x = &b->in[0]->type;
    if (sn_fact_block(b->in[0]) || sn_fact_block(&b->out[0]))
        return bind_image(b);
    ptrdiff_t strides[SN_MAX_RANK], src[SN_MAX_RANK];
    sn_dense_strides(x->dims, x->rank, strides);
    for (int i = 0; i < x->rank; i++)
        src[i] = strides[r->n < 0 ? x->rank - 1 - i : r->perm[i]];
    return bind_copy(b, x->rank, b->out[0].type.dims, src);
}

const sn_op sn_op_transpose[] = {
    {SN_OP_HEAD("Transpose", 1, 0, 1, 1, 1, 1), .params_size = sizeof(transpose_params),
     .prepare = prepare_transpose, .infer = infer_transpose, .bind = bind_transpose,
     .run = run_copy, .half = SN_HALF_MOVED, .in_blocks = transpose_blocks, .types = SN_ALL_TYPES},
    {.name = NULL}};

/* ------------------------------------------------------------------ DepthToSpace, SpaceToDepth */
typedef struct block_params {
    int64_t size;
    bool crd; /* column-row-depth order instead of depth-column-row */
} block_params;

static sonde_status prepare_block(sn_prep *p)
{
    block_params *r = p->params;
    const char *mode;
    SN_TRY(sn_prep_int(p, "blocksize", 0, &r->size));
    if (r->size < 1 || r->size > INT32_MAX)
        return sn_prep_fail(p, "attribute 'blocksize' is %lld, expected a positive number",
                            (long long)r->size);
    SN_TRY(sn_prep_string(p, "mode", "DCR", &mode));
    r->crd = strcmp(mode, "CRD") == 0;
    return r->crd || strcmp(mode, "DCR") == 0 ? SONDE_OK
                                              : sn_prep_fail(p, "mode '%s' is unknown", mode);
}

static sonde_status block_input(sn_infer *c, sn_input_type *x)
{
    SN_TRY(sn_infer_input_type(c, 0, x));
    return x->rank >= 0 && x->rank != 4
               ? sn_infer_fail(c, "the input has rank %d, expected 4", x->rank)
               : SONDE_OK;
}

/* d / by, exactly. */
static sonde_status divide_dim(sn_infer *c, sn_dim d, int64_t by, sn_dim *out)
{
    *out = SN_DIM_UNKNOWN;
    if (!sn_dim_known(d))
        return SONDE_OK;
    if (d % by)
        return sn_infer_fail(c, "a dimension of %lld is not divisible by %lld", (long long)d,
                             (long long)by);
    *out = d / by;
    return SONDE_OK;
}

static sonde_status infer_depth_to_space(sn_infer *c)
{
    const block_params *r = c->params;
    sn_input_type x;
    SN_TRY(block_input(c, &x));
    if (x.rank < 0)
        return sn_infer_rank(c, 0, x.dtype, 4);
    sn_dim dims[4] = {x.dims[0], 0, sn_dim_mul(x.dims[2], r->size), sn_dim_mul(x.dims[3], r->size)};
    SN_TRY(divide_dim(c, x.dims[1], r->size * r->size, &dims[1]));
    return sn_infer_bounded(c, 0, x.dtype, dims, 4);
}

static sonde_status infer_space_to_depth(sn_infer *c)
{
    const block_params *r = c->params;
    sn_input_type x;
    SN_TRY(block_input(c, &x));
    if (x.rank < 0)
        return sn_infer_rank(c, 0, x.dtype, 4);
    sn_dim dims[4] = {x.dims[0], sn_dim_mul(x.dims[1], r->size * r->size), 0, 0};
    SN_TRY(divide_dim(c, x.dims[2], r->size, &dims[2]));
    SN_TRY(divide_dim(c, x.dims[3], r->size, &dims[3]));
    return sn_infer_bounded(c, 0, x.dtype, dims, 4);
}

/* Binds a permutation of the input seen with six dims. */
static sonde_status bind_permuted(sn_bind *b, const int64_t *split, const int *perm)
{
    ptrdiff_t strides[6], src[6];
    int64_t dims[6];
    sn_dense_strides(split, 6, strides);
    for (int i = 0; i < 6; i++) {
        src[i] = strides[perm[i]];
        dims[i] = split[perm[i]];
    }
    return bind_copy(b, 6, dims, src);
}

static sonde_status bind_depth_to_space(sn_bind *b)
{
    static const int dcr[6] = {0, 3, 4, 1, 5, 2}, crd[6] = {0, 1, 4, 2, 5, 3};
    const block_params *r = b->params;
    const int64_t *d = b->in[0]->type.dims, k = r->size, depth = d[1] / (k * k);
    if (r->crd)
        return bind_permuted(b, (int64_t[6]){d[0], depth, k, k, d[2], d[3]}, crd);
    return bind_permuted(b, (int64_t[6]){d[0], k, k, depth, d[2], d[3]}, dcr);
}

static sonde_status bind_space_to_depth(sn_bind *b)
{
    static const int dcr[6] = {0, 3, 5, 1, 2, 4}, crd[6] = {0, 1, 3, 5, 2, 4};
    const block_params *r = b->params;
    const int64_t *d = b->in[0]->type.dims, k = r->size;
    return bind_permuted(b, (int64_t[6]){d[0], d[1], d[2] / k, k, d[3] / k, k}, r->crd ? crd : dcr);
}

const sn_op sn_op_depth_to_space[] = {
    {SN_OP_HEAD("DepthToSpace", 1, 0, 1, 1, 1, 1), .params_size = sizeof(block_params),
     .prepare = prepare_block, .infer = infer_depth_to_space, .bind = bind_depth_to_space,
     .run = run_copy, .half = SN_HALF_MOVED, .types = SN_ALL_TYPES},
    {.name = NULL}};
const sn_op sn_op_space_to_depth[] = {
    {SN_OP_HEAD("SpaceToDepth", 1, 0, 1, 1, 1, 1), .params_size = sizeof(block_params),
     .prepare = prepare_block, .infer = infer_space_to_depth, .bind = bind_space_to_depth,
     .run = run_copy, .half = SN_HALF_MOVED, .types = SN_ALL_TYPES},
    {.name = NULL}};

/* ------------------------------------------------------------------ Expand */
static sonde_status expand_dim(sn_infer *c, sn_dim have, sn_dim want, sn_dim *out)
{
    if (want == 1 || sn_dim_same(have, want))
        *out = have;
    else if (have == 1)
        *out = want;
    else if (sn_dim_known(have) && sn_dim_known(want))
        return sn_infer_fail(c, "a dim of %lld cannot be expanded to %lld", (long long)have,
                             (long long)want);
    else if (sn_dim_known(have))
        *out = have; /* not 1, so the other side must agree or be 1 */
    else
        *out = sn_dim_known(want) ? want : SN_DIM_UNKNOWN;
    return SONDE_OK;
}

static sonde_status infer_expand(sn_infer *c)
{
    sn_input_type x;
    const sn_dim *shape, *ints;
    int64_t n, n_ints, count;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(sn_infer_list(c, 1, &shape, &n));
    if (n > SN_MAX_RANK)
        return sn_infer_fail(c, "a shape of %lld dims is too long", (long long)n);
    if (x.rank < 0 || n < 0)
        return sn_infer_rank(c, 0, x.dtype, -1);
    int rank = x.rank > n ? x.rank : (int)n;
    sn_dim dims[SN_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int xi = i - (rank - x.rank), si = i - (rank - (int)n);
        SN_TRY(expand_dim(c, xi >= 0 ? x.dims[xi] : 1,
                          si < 0  ? 1
                          : shape ? shape[si]
                                  : SN_DIM_UNKNOWN,
                          &dims[i]));
    }
    SN_TRY(sn_infer_bounded(c, 0, x.dtype, dims, rank));
    SN_TRY(sn_infer_ints(c, 0, &ints, &n_ints));
    if (!ints || n_ints != 1 || !sn_dims_known(dims, rank) || !sn_dims_count(dims, rank, &count) ||
        count > SN_MAX_KNOWN_INTS)
        return SONDE_OK;
    sn_dim all[SN_MAX_KNOWN_INTS];
    for (int64_t i = 0; i < count; i++)
        all[i] = ints[0];
    return sn_infer_set_ints(c, 0, all, count);
}

static sonde_status bind_expand(sn_bind *b)
{
    const sn_type *x = &b->in[0]->type, *y = &b->out[0].type;
    ptrdiff_t strides[SN_MAX_RANK], src[SN_MAX_RANK];
    int lead = y->rank - x->rank;
    sn_dense_strides(x->dims, x->rank, strides);
    for (int i = 0; i < y->rank; i++)
        src[i] = i < lead || x->dims[i - lead] == 1 ? 0 : strides[i - lead];
    return bind_copy(b, y->rank, y->dims, src);
}

const sn_op sn_op_expand[] = {{SN_OP_HEAD("Expand", 8, 0, 2, 2, 1, 1), .infer = infer_expand,
                               .bind = bind_expand, .run = run_copy, .half = SN_HALF_MOVED,
                               .types = SN_ALL_TYPES},
                              {.name = NULL}};

/* ------------------------------------------------------------------ Tile */
static sonde_status infer_tile(sn_infer *c)
{
    sn_input_type x;
    const sn_dim *repeats, *ints;
    int64_t n, n_ints;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(sn_infer_list(c, 1, &repeats, &n));
    if (x.rank < 0 || !repeats)
        return sn_infer_rank(c, 0, x.dtype, x.rank);
    if (n != x.rank)
        return sn_infer_fail(c, "%lld repeats for an input of rank %d", (long long)n, x.rank);
    sn_dim dims[SN_MAX_RANK];
    for (int i = 0; i < x.rank; i++) {
        dims[i] = sn_dim_mul(x.dims[i], repeats[i]);
        if (sn_dim_known(repeats[i]) && repeats[i] < 0)
            return sn_infer_fail(c, "repeat %d is %lld", i, (long long)repeats[i]);
        if (sn_dim_known(x.dims[i]) && sn_dim_known(repeats[i]) && !sn_dim_known(dims[i]))
            return sn_infer_fail(c, "output 0 would be too large");
    }
    SN_TRY(sn_infer_bounded(c, 0, x.dtype, dims, x.rank));
    SN_TRY(sn_infer_ints(c, 0, &ints, &n_ints));
    if (!ints || x.rank != 1 || !sn_dim_known(dims[0]) || dims[0] > SN_MAX_KNOWN_INTS ||
        n_ints != x.dims[0])
        return SONDE_OK;
    sn_dim all[SN_MAX_KNOWN_INTS];
    for (int64_t i = 0; i < dims[0]; i++)
        all[i] = ints[i % n_ints];
    return sn_infer_set_ints(c, 0, all, dims[0]);
}

/* Each axis is two: which copy (source stride 0), and where in it. */
static sonde_status bind_tile(sn_bind *b)
{
    const sn_type *x = &b->in[0]->type, *y = &b->out[0].type;
    ptrdiff_t strides[SN_MAX_RANK], src[2 * SN_MAX_RANK];
    int64_t dims[2 * SN_MAX_RANK];
    sn_dense_strides(x->dims, x->rank, strides);
    for (int i = 0; i < x->rank; i++) {
        dims[2 * i] = x->dims[i] ? y->dims[i] / x->dims[i] : 0;
        dims[2 * i + 1] = x->dims[i];
        src[2 * i] = 0;
        src[2 * i + 1] = strides[i];
    }
    return bind_copy(b, 2 * x->rank, dims, src);
}

const sn_op sn_op_tile[] = {{SN_OP_HEAD("Tile", 6, 0, 2, 2, 1, 1), .infer = infer_tile,
                             .bind = bind_tile, .run = run_copy, .half = SN_HALF_MOVED,
                             .types = SN_ALL_TYPES},
                            {.name = NULL}};
