/* SPDX-License-Identifier: Apache-2.0 */
/* Hybrid networks go between tokens [n, pixels, c] and images [n, c, h, w] by a Reshape and a
 * Transpose, in either order. Written with the Transpose beside the image, as [n, h, w, c] ↔
 * [n, c, h, w], it can make or take the image as convolutions want it (blocked-layout), and the
 * Reshape of tokens moves nothing:
 *
 *   Transpose ► Reshape   tokens ► [n, c, pixels] ► image   as   tokens ► [n, h, w, c] ► image
 *   Reshape ► Transpose   image ► [n, c, pixels] ► tokens   as   image ► [n, h, w, c] ► tokens
 *
 * And an elementwise function behind such a view of a convolution or a product goes before it,
 * where it can be fused. */
#include "ops/shared/elementwise.h"
#include "passes/axes.h"

enum { TOKEN_RANK = 3, IMAGE_RANK = 4 };

static bool is_swap(const sn_node *n)
{
    int64_t perm[SN_MAX_RANK];
    return n && sn_node_is(n, "Transpose") && n->out[0] &&
           n->out[0]->fact.type.rank == TOKEN_RANK && sn_transpose_perm(n, TOKEN_RANK, perm) &&
           perm[0] == 0 && perm[1] == 2 && perm[2] == 1;
}

/* The constant shape of a Reshape to `rank` dims. */
static bool read_shape(const sn_node *n, int rank, int64_t *shape)
{
    const sn_value *v =
        n && sn_node_is(n, "Reshape") && n->n_in == 2 && n->out[0] ? n->in[1].value : NULL;
    const sn_tensor *t = v && sn_value_is_const(v) ? v->fact.data : NULL;
    if (!t || t->dtype != SONDE_DTYPE_I64 || t->rank != 1 || t->dims[0] != rank ||
        sn_node_attr_int(n, "allowzero", 0) || n->out[0]->fact.type.rank != rank)
        return false;
    sn_tensor_read(t, 0, rank, shape);
    return true;
}

/* The first two dims stay, and that of the channels is a number. */
static bool keeps_channels(const sn_type *a, const sn_type *b)
{
    return a->rank > 1 && b->rank > 1 && sn_dim_known(a->dims[1]) &&
           sn_dim_same(a->dims[1], b->dims[1]) && sn_dim_same(a->dims[0], b->dims[0]);
}

static sonde_status set_perm(sn_graph *g, sn_node *t, const int64_t *perm, sonde_error *err)
{
    int64_t *copy = SN_NEW_N(g->arena, int64_t, IMAGE_RANK);
    if (!copy)
        return sn_fail_memory(err, IMAGE_RANK * sizeof *copy);
    memcpy(copy, perm, IMAGE_RANK * sizeof *copy);
    sn_attr a = {.name = "perm", .kind = SN_ATTR_INTS, .n = IMAGE_RANK, .ints = copy};
    return sn_node_set_attr(g, t, &a, err);
}

/* `first`, then `second`, from x to y, with a new value between them; the Reshape by `shape`. */
static sonde_status rewire(sn_graph *g, sn_pass_env *env, sn_node *first, sn_node *second,
                           sn_value *x, sn_value *y, sn_node *reshape, const int64_t *shape,
                           int rank)
{
    sn_value *between, *dims;
    void *data;
    const int64_t count = rank;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_I64, &count, 1, &dims, &data));
    memcpy(data, shape, (size_t)rank * sizeof *shape);
    SN_TRY(sn_graph_add_value(g, "", &between, env->err));
    sn_value_show_as(between, x);
    sn_node_move(g, first, second);
    sn_node_set_input(reshape, 1, dims);
    sn_node_set_input(first, 0, x);
    sn_node_set_input(second, 0, NULL);
    sn_node_set_output(first, 0, between);
    sn_node_set_output(second, 0, y);
    sn_node_set_input(second, 0, between);
    SN_TRY(sn_node_refresh(g, first, env->err));
    return sn_node_refresh(g, second, env->err);
}

/* tokens ► Transpose t ► Reshape r ► image. */
static sonde_status to_image(sn_graph *g, sn_pass_env *env, sn_node *t, uint32_t *changes)
{
    static const int64_t perm[IMAGE_RANK] = {0, 3, 1, 2};
    int64_t s[IMAGE_RANK];
    sn_node *r = is_swap(t) ? sn_value_only_reader(t->out[0]) : NULL;
    if (!r || r->in[0].value != t->out[0] || !read_shape(r, IMAGE_RANK, s) ||
        !keeps_channels(&t->out[0]->fact.type, &r->out[0]->fact.type))
        return SONDE_OK;
    const int64_t shape[IMAGE_RANK] = {s[0], s[2], s[3], r->out[0]->fact.type.dims[1]};
    if (s[2] == 0 || s[3] == 0) /* a dim of the value that was reshaped */
        return SONDE_OK;
    SN_TRY(set_perm(g, t, perm, env->err));
    (*changes)++;
    return rewire(g, env, r, t, t->in[0].value, r->out[0], r, shape, IMAGE_RANK);
}

/* image ► Reshape r ► Transpose t ► tokens. */
static sonde_status to_tokens(sn_graph *g, sn_pass_env *env, sn_node *r, uint32_t *changes)
{
    static const int64_t perm[IMAGE_RANK] = {0, 2, 3, 1};
    int64_t s[TOKEN_RANK];
    if (!read_shape(r, TOKEN_RANK, s) || !r->in[0].value)
        return SONDE_OK;
    sn_node *t = sn_value_only_reader(r->out[0]);
    const sn_type *x = &r->in[0].value->fact.type;
    if (!is_swap(t) || x->rank != IMAGE_RANK || !keeps_channels(x, &r->out[0]->fact.type) ||
        s[2] == 0)
        return SONDE_OK;
    const int64_t shape[TOKEN_RANK] = {s[0], s[2], x->dims[1]};
    SN_TRY(set_perm(g, t, perm, env->err));
    (*changes)++;
    return rewire(g, env, t, r, r->in[0].value, t->out[0], r, shape, TOKEN_RANK);
}

/* ------------------------------------------------------------------ functions behind views */

/* What has an epilogue: a convolution, a product, or the Add of its bias. */
static bool has_epilogue(const sn_node *n)
{
    if (sn_node_is(n, "Conv") || sn_node_is(n, "Gemm") || sn_node_is_internal(n, "FusedGemm"))
        return true;
    if (sn_node_is(n, "MatMul"))
        return n->n_in > 1 && n->in[1].value && sn_value_is_const(n->in[1].value);
    if (!sn_node_is(n, "Add") || n->n_in != 2)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        const sn_value *v = n->in[i].value, *row = n->in[1 - i].value;
        const sn_node *p = v ? v->producer : NULL;
        if (p && sn_node_is(p, "MatMul") && row && sn_value_is_const(row) &&
            sn_value_only_reader(v) && has_epilogue(p))
            return true;
    }
    return false;
}

/* The first node of the chain of views that makes v, when only it and n read what it begins with;
 * NULL: there is none. */
static sn_node *views_before(const sn_value *v)
{
    sn_node *first = NULL;
    while (sn_value_only_reader(v) && v->producer && sn_moves_axes(v->producer)) {
        first = v->producer;
        v = first->in[0].value;
    }
    return first && v->producer && sn_value_only_reader(v) && has_epilogue(v->producer) ? first
                                                                                        : NULL;
}

static sonde_status hoist(sn_graph *g, sn_pass_env *env, sn_node *n, uint32_t *changes)
{
    sn_unary unary;
    float params[2];
    if (!sn_node_unary(n, &unary, params) || !sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32))
        return SONDE_OK;
    sn_value *v = n->in[0].value, *y = n->out[0], *made;
    sn_node *first = views_before(v), *last = v->producer;
    if (!first)
        return SONDE_OK;
    SN_TRY(sn_graph_add_value(g, "", &made, env->err));
    sn_value_show_as(made, y);
    sn_node_set_output(n, 0, made);
    sn_node_set_input(n, 0, first->in[0].value);
    sn_node_set_input(first, 0, made);
    sn_node_set_output(last, 0, y);
    sn_node_move(g, n, first);
    (*changes)++;
    return sn_node_refresh(g, n, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (n, g) {
        if (n->n_in < 1 || n->n_out != 1 || !n->in[0].value || !n->out[0])
            continue;
        SN_TRY(hoist(g, env, n, changes));
    }
    sn_graph_each (n, g) {
        if (sn_node_is(n, "Transpose")) {
            SN_TRY(to_image(g, env, n, changes));
        } else if (sn_node_is(n, "Reshape")) {
            SN_TRY(to_tokens(g, env, n, changes));
        }
    }
    return SONDE_OK;
}

const sn_pass sn_pass_image_views = {
    .name = "image-views",
    .summary = "writes views between tokens and images so that their layout can be chosen",
    .run = run,
    .bodies = true,
};
