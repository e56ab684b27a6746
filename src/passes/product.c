/* SPDX-License-Identifier: Apache-2.0 */
/* See product.h. Sums are made in double and rounded once. */
#include "passes/product.h"

#include "passes/axes.h"

static const sn_tensor *numbers(const sn_value *v)
{
    const sn_tensor *t = v && sn_value_is_const(v) ? v->fact.data : NULL;
    return t && t->dtype == SONDE_DTYPE_F32 && sn_tensor_is_plain(t) ? t : NULL;
}

bool sn_product_of(sn_node *n, sn_product *p)
{
    const bool gemm = sn_node_is(n, "Gemm");
    if ((!gemm && !sn_node_is(n, "MatMul")) || n->n_in < 2 || n->n_out != 1 || !n->out[0] ||
        !sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32) || n->in[0].value->fact.type.rank < 2 ||
        !sn_value_is_dtype(n->out[0], SONDE_DTYPE_F32))
        return false;
    const sn_value *v = n->in[1].value;
    const sn_tensor *w = v && sn_value_is_const(v) && sn_value_is_weight(v) ? v->fact.data : NULL;
    if (!w || !sn_tensor_is_plain(w) || w->rank != 2 || sn_tensor_count(w) == 0 || v->n_uses != 1 ||
        v->n_outputs || (gemm && sn_node_attr_int(n, "transA", 0)))
        return false;
    *p = (sn_product){.node = n, .k_axis = gemm && sn_node_attr_int(n, "transB", 0) ? 1 : 0};
    p->k = w->dims[p->k_axis];
    p->columns = w->dims[1 - p->k_axis];
    if (!gemm || n->n_in < 3 || !n->in[2].value)
        return true;
    p->bias = numbers(n->in[2].value);
    if (!p->bias)
        return false;
    const int64_t count = sn_tensor_count(p->bias);
    return count == 1 || (count == p->columns && p->bias->dims[p->bias->rank - 1] == count);
}

/* ------------------------------------------------------------------ bias */

/* The constant row that an Add behind a MatMul adds already; NULL: there is none. */
static sn_value *row_behind(const sn_product *p)
{
    const sn_value *v = p->node->out[0];
    const sn_node *add = sn_value_only_reader(v);
    sn_value *row = add && sn_node_is(add, "Add") ? sn_node_other_input(add, v) : NULL;
    const sn_tensor *t = numbers(row);
    return t && t->rank >= 1 && t->rank <= v->fact.type.rank &&
                   t->dims[t->rank - 1] == p->columns && sn_tensor_count(t) == p->columns
               ? row
               : NULL;
}

/* The Add of a row behind a MatMul. */
static sonde_status add_row(sn_graph *g, sn_pass_env *env, sn_node *n, sn_value *row)
{
    sn_node *add;
    sn_value *sum = n->out[0], *v;
    SN_TRY(sn_graph_add_node(g, n->next, "", "Add", n->name, 2, 1, &add, env->err));
    add->opset = 14;
    SN_TRY(sn_graph_add_value(g, "", &v, env->err));
    sn_value_show_as(v, sum);
    sn_node_set_output(add, 0, sum);
    sn_node_set_output(n, 0, v);
    sn_node_set_input(add, 0, v);
    sn_node_set_input(add, 1, row);
    SN_TRY(sn_node_inherit(g, add, n, env->err));
    SN_TRY(sn_node_refresh(g, n, env->err));
    return sn_node_refresh(g, add, env->err);
}

static bool is_zero(const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] != 0.0)
            return false;
    return true;
}

/* The addend is row[c] from now on, of double. */
static sonde_status set_bias(sn_graph *g, sn_pass_env *env, const sn_product *p, const double *row,
                             const sn_value *from)
{
    sn_node *n = p->node;
    const bool gemm = sn_node_is(n, "Gemm");
    sn_value *old = !gemm ? row_behind(p) : n->n_in > 2 ? n->in[2].value : NULL, *v;
    void *data;
    if (!old && is_zero(row, p->columns))
        return SONDE_OK;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_F32, &p->columns, 1, &v, &data));
    SN_TRY(sn_value_show_all(g, v, (const sn_value *[]){old, from}, 2, env->err));
    for (int64_t c = 0; c < p->columns; c++)
        ((float *)data)[c] =
            (float)(row[c] + (gemm || !old ? 0.0 : (double)sn_read_f32(old->fact.data, c)));
    if (!gemm && old) {
        sn_node *add = sn_value_only_reader(n->out[0]);
        sn_node_set_input(add, add->in[1].value == old, v);
        return SONDE_OK;
    }
    if (!gemm)
        return add_row(g, env, n, v);
    const sn_attr beta = {.name = "beta", .kind = SN_ATTR_FLOAT, .n = 1, .f = 1.0f};
    SN_TRY(sn_node_set_attr(g, n, &beta, env->err));
    if (n->n_in > 2)
        sn_node_set_input(n, 2, v);
    else
        SN_TRY(sn_node_add_input(g, n, v, env->err));
    return sn_node_refresh(g, n, env->err);
}

/* What is added to column c today. */
static double bias_of(const sn_product *p, int64_t c)
{
    if (!p->bias)
        return 0.0;
    const double beta = (double)sn_node_attr_float(p->node, "beta", 1.0f);
    return beta * (double)sn_read_f32(p->bias, sn_tensor_count(p->bias) == 1 ? 0 : c);
}

/* ------------------------------------------------------------------ factors */

sonde_status sn_product_scale_columns(sn_graph *g, sn_pass_env *env, sn_product *p,
                                      const double *scale, const double *shift,
                                      const sn_value *from)
{
    const size_t bytes = (size_t)p->columns * sizeof(double);
    double *row = sn_alloc(g->alloc, bytes);
    if (!row)
        return sn_fail_memory(env->err, bytes);
    for (int64_t c = 0; c < p->columns; c++)
        row[c] = bias_of(p, c) * scale[c] + shift[c];
    sonde_status st = sn_pass_scale_weights(g, env, p->node, 1, 1 - p->k_axis, scale);
    if (st == SONDE_OK)
        st = set_bias(g, env, p, row, from);
    sn_free(g->alloc, row, bytes);
    return st;
}

/* row[c] += the sum of shift[i] · weights[i][c], a row of the file at a time. */
static sonde_status add_products(sn_graph *g, sn_pass_env *env, const sn_product *p,
                                 const double *shift, double *row)
{
    const sn_tensor *w = p->node->in[1].value->fact.data;
    const double alpha = (double)sn_node_attr_float(p->node, "alpha", 1.0f);
    const size_t bytes = (size_t)w->dims[1] * sizeof(float);
    float *line = sn_alloc(g->alloc, bytes);
    if (!line)
        return sn_fail_memory(env->err, bytes);
    for (int64_t i = 0; i < w->dims[0]; i++) {
        sn_tensor_read(w, i * w->dims[1], w->dims[1], line);
        for (int64_t j = 0; j < w->dims[1]; j++) {
            const int64_t k = p->k_axis ? j : i, c = p->k_axis ? i : j;
            row[c] += alpha * shift[k] * (double)line[j];
        }
    }
    sn_free(g->alloc, line, bytes);
    return SONDE_OK;
}

sonde_status sn_product_scale_input(sn_graph *g, sn_pass_env *env, sn_product *p,
                                    const double *scale, const double *shift, const sn_value *from)
{
    sn_node *n = p->node;
    const size_t bytes = (size_t)p->columns * sizeof(double);
    if (!sn_value_is_dtype(n->in[1].value, SONDE_DTYPE_F32)) {
        sn_value *wide;
        SN_TRY(sn_pass_widen(g, env, n->in[1].value, &wide));
        n->narrow_weights = false;
        sn_node_set_input(n, 1, wide);
    }
    double *row = sn_alloc(g->alloc, bytes);
    if (!row)
        return sn_fail_memory(env->err, bytes);
    for (int64_t c = 0; c < p->columns; c++)
        row[c] = bias_of(p, c);
    sonde_status st = SONDE_OK;
    if (!is_zero(shift, p->k))
        st = add_products(g, env, p, shift, row);
    if (st == SONDE_OK)
        st = sn_pass_scale_weights(g, env, n, 1, p->k_axis, scale);
    if (st == SONDE_OK)
        st = set_bias(g, env, p, row, from);
    sn_free(g->alloc, row, bytes);
    return st;
}

/* ------------------------------------------------------------------ axes */

/* The axis of b that has the elements of axis i of a, when b is a with other dims. */
static int same_axis(const sn_type *a, int i, const sn_type *b)
{
    int64_t inner = 1;
    int end = a->rank;
    if (a->kind != SN_KIND_TENSOR || b->kind != SN_KIND_TENSOR || i >= a->rank ||
        !sn_dim_known(a->dims[i]) || a->dims[i] < 2)
        return -1;
    for (; end > i + 1; end--)
        if (!sn_dim_known(a->dims[end - 1]) || a->dims[end - 1] < 1 ||
            !sn_i64_mul(inner, a->dims[end - 1], &inner))
            return -1;
    for (int k = b->rank - 1; k >= 0; k--) {
        const sn_dim d = b->dims[k];
        if (inner == 1 && d == a->dims[i])
            return k;
        if (!sn_dim_known(d) || d < 1 || inner % d != 0)
            return -1;
        inner /= d;
    }
    return -1;
}

int sn_view_axis(const sn_node *n, int axis)
{
    int64_t perm[SN_MAX_RANK];
    if (!sn_moves_axes(n))
        return -1;
    const sn_type *x = &n->in[0].value->fact.type, *y = &n->out[0]->fact.type;
    if (!sn_node_is(n, "Transpose"))
        return same_axis(x, axis, y);
    for (int i = 0; sn_transpose_perm(n, x->rank, perm) && i < x->rank; i++)
        if (perm[i] == axis)
            return i;
    return -1;
}

int sn_view_axis_before(const sn_node *n, int axis)
{
    int64_t perm[SN_MAX_RANK];
    if (!sn_moves_axes(n))
        return -1;
    const sn_type *x = &n->in[0].value->fact.type, *y = &n->out[0]->fact.type;
    if (!sn_node_is(n, "Transpose"))
        return same_axis(y, axis, x);
    return sn_transpose_perm(n, x->rank, perm) && axis < x->rank ? (int)perm[axis] : -1;
}
