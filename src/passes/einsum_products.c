/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum of two operands that is a matrix product becomes one: labels that both operands and the
 * result have are batches, those the result lacks are summed, the others are rows and columns. The
 * operands are turned and reshaped to [batches, rows, sums] and [batches, sums, columns], the
 * product to what the equation says; what a constant goes through is computed here. Then other
 * passes see what they know: products, weights, attention. */
#include "passes/rewrite.h"

enum { LEFT, RIGHT, RESULT, TERMS };
enum { BATCH, ROWS, SUMS, COLUMNS, GROUPS };

typedef struct labels {
    int n;
    char at[SN_MAX_RANK];
} labels;

typedef struct equation {
    labels term[TERMS];
    labels group[GROUPS]; /* in the order of the result, sums in that of the right operand */
    sn_dim size[128];     /* by label */
    bool swapped;         /* the first operand is the right one */
} equation;

/* ------------------------------------------------------------------ reading */
static bool has(const labels *l, char c)
{
    return memchr(l->at, c, (size_t)l->n) != NULL;
}

static bool push(labels *l, char c)
{
    if (l->n == SN_MAX_RANK || has(l, c))
        return false;
    l->at[l->n++] = c;
    return true;
}

static bool parse(const char *text, size_t n, equation *e)
{
    int term = LEFT;
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        if (c == ' ')
            continue;
        if (c == ',' && term == LEFT)
            term = RIGHT;
        else if (c == '-' && term == RIGHT && i + 1 < n && text[i + 1] == '>')
            term = RESULT, i++;
        else if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) || !push(&e->term[term], c))
            return false;
    }
    return term == RESULT;
}

/* Dims of the operands by label; false: they differ, which is for a run to report. */
static bool take_sizes(const sn_node *n, equation *e)
{
    for (int t = LEFT; t <= RIGHT; t++) {
        const sn_type *type = &n->in[t].value->fact.type;
        if (type->kind != SN_KIND_TENSOR || type->rank != e->term[t].n)
            return false;
        for (int i = 0; i < type->rank; i++) {
            const char c = e->term[t].at[i];
            if (t == RIGHT && has(&e->term[LEFT], c) &&
                !sn_dim_same(e->size[(int)c], type->dims[i]))
                return false;
            e->size[(int)c] = type->dims[i];
        }
    }
    return true;
}

static bool group_labels(equation *e)
{
    const labels *l = &e->term[LEFT], *r = &e->term[RIGHT], *y = &e->term[RESULT];
    for (int i = 0; i < y->n; i++) {
        const bool left = has(l, y->at[i]), right = has(r, y->at[i]);
        if (!left && !right)
            return false;
        push(&e->group[left && right ? BATCH : left ? ROWS : COLUMNS], y->at[i]);
    }
    for (int i = 0; i < l->n; i++)
        if (!has(y, l->at[i]) && !has(r, l->at[i]))
            return false;
    for (int i = 0; i < r->n; i++) {
        if (has(y, r->at[i]))
            continue;
        if (!has(l, r->at[i]))
            return false;
        push(&e->group[SUMS], r->at[i]);
    }
    return e->group[SUMS].n > 0;
}

static bool is_float(const sn_value *v)
{
    return sn_value_is_dtype(v, SONDE_DTYPE_F32) || sn_value_is_dtype(v, SONDE_DTYPE_F64) ||
           sn_value_is_dtype(v, SONDE_DTYPE_F16) || sn_value_is_dtype(v, SONDE_DTYPE_BF16);
}

/* Constants go to the right, where weights are. */
static void order_operands(const sn_node *n, equation *e)
{
    const labels left = e->term[LEFT];
    e->swapped = sn_value_is_const(n->in[0].value) && !sn_value_is_const(n->in[1].value);
    if (!e->swapped)
        return;
    e->term[LEFT] = e->term[RIGHT];
    e->term[RIGHT] = left;
}

static bool match(const sn_node *n, equation *e)
{
    if (!sn_node_is(n, "Einsum") || n->n_in != 2 || !n->in[0].value || !n->in[1].value ||
        !n->out[0] || !is_float(n->in[0].value) || !is_float(n->in[1].value))
        return false;
    const sn_attr *a = sn_node_attr(n, "equation");
    *e = (equation){.size = {0}};
    if (!a || a->kind != SN_ATTR_STRING || !parse(a->s.data, a->s.size, e) || !take_sizes(n, e))
        return false;
    order_operands(n, e);
    if (!group_labels(e))
        return false;
    /* Axes that are made or joined have sizes that are known. */
    for (int t = LEFT; t <= RIGHT; t++)
        for (int i = 0; i < e->term[t].n; i++)
            if (!sn_dim_known(e->size[(int)e->term[t].at[i]]))
                return e->group[ROWS].n == 1 && e->group[SUMS].n == 1 && e->group[COLUMNS].n == 1;
    return true;
}

/* ------------------------------------------------------------------ writing */
typedef struct writer {
    sn_graph *g;
    sn_pass_env *env;
    sn_node *at; /* the Einsum */
} writer;

static sonde_status add_node(const writer *w, const char *op, sn_value *x, sn_value *second,
                             sn_node **made)
{
    sn_node *n;
    sn_value *y;
    SN_TRY(sn_graph_add_node(w->g, w->at, "", op, w->at->name, second ? 2 : 1, 1, &n, w->env->err));
    n->opset = w->at->opset;
    SN_TRY(sn_graph_add_value(w->g, "", &y, w->env->err));
    sn_node_set_input(n, 0, x);
    if (second)
        sn_node_set_input(n, 1, second);
    sn_node_set_output(n, 0, y);
    *made = n;
    return sn_node_inherit(w->g, n, w->at, w->env->err);
}

/* v with axes `from` in the order of `to`. */
static sonde_status turn(const writer *w, sn_value **v, const labels *from, const labels *to)
{
    int64_t *perm = SN_NEW_N(w->g->arena, int64_t, SN_MAX_RANK);
    bool same = true;
    sn_node *n;
    if (!perm)
        return sn_fail_memory(w->env->err, SN_MAX_RANK * sizeof *perm);
    for (int i = 0; i < to->n; i++) {
        perm[i] = (const char *)memchr(from->at, to->at[i], (size_t)from->n) - from->at;
        same = same && perm[i] == i;
    }
    if (same)
        return SONDE_OK;
    SN_TRY(add_node(w, "Transpose", *v, NULL, &n));
    const sn_attr a = {.name = "perm", .kind = SN_ATTR_INTS, .n = (size_t)to->n, .ints = perm};
    SN_TRY(sn_node_set_attr(w->g, n, &a, w->env->err));
    *v = n->out[0];
    return sn_node_refresh(w->g, n, w->env->err);
}

static sonde_status reshape(const writer *w, sn_value **v, const int64_t *dims, int rank)
{
    const sn_type *t = &(*v)->fact.type;
    bool same = t->rank == rank;
    for (int i = 0; i < rank && same; i++)
        same = t->dims[i] == dims[i];
    if (same)
        return SONDE_OK;
    const int64_t count = rank;
    sn_value *shape;
    sn_node *n;
    void *data;
    SN_TRY(sn_pass_constant(w->g, w->env, "", SONDE_DTYPE_I64, &count, 1, &shape, &data));
    memcpy(data, dims, sizeof *dims * (size_t)rank);
    SN_TRY(add_node(w, "Reshape", *v, shape, &n));
    *v = n->out[0];
    return sn_node_refresh(w->g, n, w->env->err);
}

static int64_t elements(const equation *e, const labels *l)
{
    int64_t n = 1;
    for (int i = 0; i < l->n; i++)
        n *= e->size[(int)l->at[i]];
    return n;
}

static void append(labels *l, const labels *more)
{
    for (int i = 0; i < more->n; i++)
        push(l, more->at[i]);
}

/* Axes of `l` apart, or as one. */
static int add_dims(const equation *e, const labels *l, bool joined, int64_t *dims, int rank)
{
    for (int i = 0; i < l->n && !joined; i++)
        dims[rank++] = e->size[(int)l->at[i]];
    if (joined)
        dims[rank++] = elements(e, l);
    return rank;
}

/* Rows stay apart where there are no batches and the right side is a plain matrix. */
static bool rows_apart(const equation *e)
{
    return e->group[BATCH].n == 0 && e->group[ROWS].n > 0;
}

/* An operand as [batches, first, second]. */
static sonde_status arrange(const writer *w, const equation *e, int term, int first, int second,
                            sn_value **v)
{
    labels order = e->group[BATCH];
    int64_t dims[2 * SN_MAX_RANK];
    append(&order, &e->group[first]);
    append(&order, &e->group[second]);
    SN_TRY(turn(w, v, &e->term[term], &order));
    if (e->group[first].n == 1 && e->group[second].n == 1)
        return SONDE_OK;
    int rank = add_dims(e, &e->group[BATCH], false, dims, 0);
    rank = add_dims(e, &e->group[first], !(first == ROWS && rows_apart(e)), dims, rank);
    rank = add_dims(e, &e->group[second], true, dims, rank);
    return reshape(w, v, dims, rank);
}

static sonde_status rewrite(const writer *w, const equation *e)
{
    sn_node *n = w->at, *product;
    sn_value *a = n->in[e->swapped].value, *b = n->in[!e->swapped].value, *y = n->out[0];
    int64_t dims[SN_MAX_RANK];
    labels order = e->group[BATCH];
    SN_TRY(arrange(w, e, LEFT, ROWS, SUMS, &a));
    SN_TRY(arrange(w, e, RIGHT, SUMS, COLUMNS, &b));
    SN_TRY(add_node(w, "MatMul", a, b, &product));
    SN_TRY(sn_node_refresh(w->g, product, w->env->err));
    sn_value *made = product->out[0];
    append(&order, &e->group[ROWS]);
    append(&order, &e->group[COLUMNS]);
    const bool plain = e->group[ROWS].n == 1 && e->group[COLUMNS].n == 1;
    if (!plain)
        SN_TRY(reshape(w, &made, dims, add_dims(e, &order, false, dims, 0)));
    SN_TRY(turn(w, &made, &order, &e->term[RESULT]));
    sn_node *last = made->producer;
    sn_node_set_output(last, 0, y);
    SN_TRY(sn_graph_replace(w->g, (sn_node *[]){n}, 1, product, n, w->env->err));
    return sn_node_refresh(w->g, last, w->env->err);
}

static bool fits(const equation *e)
{
    return e->group[BATCH].n + 2 <= SN_MAX_RANK && e->group[ROWS].n + 1 <= SN_MAX_RANK &&
           e->term[RESULT].n <= SN_MAX_RANK;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    uint32_t found = 0;
    sn_graph_each (n, g) {
        equation e;
        if (!match(n, &e) || !fits(&e))
            continue;
        SN_TRY(rewrite(&(writer){g, env, n}, &e));
        found++;
    }
    *changes += found;
    /* Turned and reshaped weights. */
    return found ? sn_pass_fold_constants.run(g, env, changes) : SONDE_OK;
}

const sn_pass sn_pass_einsum_products = {
    .name = "einsum-products",
    .summary = "writes Einsum of two operands as a matrix product",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
