/* SPDX-License-Identifier: Apache-2.0 */
/* Exporters make a matrix of [batch, length, k] for a Gemm and the three dims again of what comes
 * out. A matrix product takes the rows as they are grouped: it reads what stands before the first
 * Reshape and makes what stands behind the second, and the chains that computed their shapes have
 * no reader left. */
#include "passes/rewrite.h"

/* An addend that is the same for every row, or none. */
static bool is_row(const sn_value *v)
{
    const sn_type *t = v ? &v->fact.type : NULL;
    return !t || (t->kind == SN_KIND_TENSOR &&
                  (t->rank == 0 || t->rank == 1 || (t->rank == 2 && t->dims[0] == 1)));
}

static bool is_product(const sn_node *n)
{
    bool gemm = sn_node_is(n, "Gemm");
    if ((!gemm && !sn_node_is(n, "MatMul")) || n->n_in < 2 || !n->in[0].value || !n->in[1].value ||
        n->in[1].value->fact.type.rank != 2 || !sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32))
        return false;
    return !gemm ||
           (!sn_node_attr_int(n, "transA", 0) && is_row(n->n_in > 2 ? n->in[2].value : NULL));
}

/* a and b group their rows alike. */
static bool same_rows(const sn_type *a, const sn_type *b)
{
    if (a->kind != SN_KIND_TENSOR || b->kind != SN_KIND_TENSOR || a->rank < 2 || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank - 1; i++)
        if (!sn_dim_same(a->dims[i], b->dims[i]))
            return false;
    return true;
}

static bool same_columns(const sn_value *a, const sn_value *b)
{
    const sn_type *x = &a->fact.type, *y = &b->fact.type;
    return x->kind == SN_KIND_TENSOR && y->kind == SN_KIND_TENSOR && x->rank > 0 && y->rank > 0 &&
           sn_dim_same(x->dims[x->rank - 1], y->dims[y->rank - 1]);
}

/* The Add of a row behind a product, if that is what reads it. */
static sn_node *row_added(const sn_node *n)
{
    sn_node *add = sn_value_only_reader(n->out[0]);
    const sn_value *row =
        add && sn_node_is(add, "Add") ? sn_node_other_input(add, n->out[0]) : NULL;
    return row && sn_value_is_const(row) && is_row(row) && same_columns(add->out[0], n->out[0])
               ? add
               : NULL;
}

static sonde_status visit(sn_graph *g, sn_pass_env *env, sn_node *n, uint32_t *changes)
{
    sn_node *before = n->in[0].value->producer, *add = row_added(n);
    sn_node *tail = add ? add : n, *behind = sn_value_only_reader(tail->out[0]);
    if (!before || !sn_node_is(before, "Reshape") || !behind || !sn_node_is(behind, "Reshape"))
        return SONDE_OK;
    sn_value *x = before->in[0].value;
    if (!x || !same_columns(x, n->in[0].value) || !same_columns(behind->out[0], tail->out[0]) ||
        !same_rows(&x->fact.type, &behind->out[0]->fact.type))
        return SONDE_OK;
    if (sn_node_is(n, "Gemm")) {
        n->domain = "sonde";
        n->op_type = "FusedGemm";
        n->opset = 1;
    }
    sn_node_set_input(n, 0, x);
    sn_node_set_output(tail, 0, behind->out[0]);
    SN_TRY(sn_graph_replace(g, (sn_node *[]){behind}, 1, tail, tail, env->err));
    if (add) { /* the value between has another rank now */
        sn_value *v;
        SN_TRY(sn_graph_add_value(g, "", &v, env->err));
        sn_value_show_as(v, n->out[0]);
        sn_value_replace(g, n->out[0], v);
        sn_node_set_output(n, 0, v);
    }
    SN_TRY(sn_node_refresh(g, n, env->err));
    (*changes)++;
    return add ? sn_node_refresh(g, add, env->err) : SONDE_OK;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    uint32_t found = 0;
    sn_graph_each (n, g) {
        if (!is_product(n))
            continue;
        SN_TRY(visit(g, env, n, &found));
        n_next = n->next; /* what followed may be gone */
    }
    *changes += found;
    return found ? sn_pass_dead_code.run(g, env, changes) : SONDE_OK;
}

const sn_pass sn_pass_flat_products = {
    .name = "flat-products",
    .summary = "removes reshapes of the row dimensions around matrix products",
    .run = run,
    .bodies = true,
};
