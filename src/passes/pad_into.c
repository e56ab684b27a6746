/* SPDX-License-Identifier: Apache-2.0 */
/* A Pad with zeros in front of a convolution or a pooling becomes their own padding, where that is
 * exact: a convolution's pads are zeros; an average counts them if it is told to; a maximum ignores
 * them, which is the same when nothing is below zero. */
#include "passes/rewrite.h"

enum { MAX_SPATIAL = SN_MAX_RANK - 2 };

/* Pads of the axes behind the first two: all begins, then all ends. */
typedef struct padding {
    int64_t pads[2 * MAX_SPATIAL];
    int n; /* spatial axes */
} padding;

static bool is_zero_mode(const sn_node *n)
{
    const sn_attr *mode = sn_node_attr(n, "mode");
    if (mode && (mode->kind != SN_ATTR_STRING || mode->s.size != 8 ||
                 memcmp(mode->s.data, "constant", 8) != 0))
        return false;
    if (n->opset < 11)
        return sn_node_attr_float(n, "value", 0.0f) == 0.0f;
    float zero = 0.0f;
    return n->n_in < 3 || !n->in[2].value ||
           (sn_value_scalar_f32(n->in[2].value, &zero) && zero == 0.0f);
}

/* What a Pad of f32 adds with zeros, to spatial axes only; false: another Pad. */
static bool read_pad(const sn_node *n, padding *p)
{
    int64_t all[2 * SN_MAX_RANK];
    const sn_type *t = n->in[0].value ? &n->in[0].value->fact.type : NULL;
    if (!t || !sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32) || t->rank < 3 ||
        t->rank > SN_MAX_RANK || !is_zero_mode(n) || (n->n_in > 3 && n->in[3].value))
        return false;
    const size_t count = 2 * (size_t)t->rank;
    const sn_attr *attr = sn_node_attr(n, n->opset < 2 ? "paddings" : "pads");
    const sn_value *v = n->n_in > 1 ? n->in[1].value : NULL;
    if (n->opset < 11 && attr && attr->kind == SN_ATTR_INTS && attr->n == count)
        memcpy(all, attr->ints, count * sizeof *all);
    else if (n->opset >= 11 && v && sn_value_is_const(v) &&
             v->fact.data->dtype == SONDE_DTYPE_I64 &&
             sn_tensor_count(v->fact.data) == (int64_t)count)
        sn_tensor_read(v->fact.data, 0, (int64_t)count, all);
    else
        return false;
    p->n = t->rank - 2;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < t->rank; i++) {
            const int64_t pad = all[side * t->rank + i];
            if (pad < 0 || (i < 2 && pad != 0))
                return false;
            if (i >= 2)
                p->pads[side * p->n + i - 2] = pad;
        }
    return true;
}

static int64_t list_entry(const sn_node *n, const char *name, int i, int64_t def)
{
    const sn_attr *a = sn_node_attr(n, name);
    return a && a->kind == SN_ATTR_INTS && (size_t)i < a->n ? a->ints[i] : def;
}

static bool has_own_pads(const sn_node *n, const padding *p)
{
    for (int i = 0; i < 2 * p->n; i++)
        if (list_entry(n, "pads", i, 0))
            return true;
    return false;
}

/* Pads are written out, and stay smaller than the window: every window meets the input. */
static bool can_take(const sn_node *n, const padding *p, const int64_t *kernel)
{
    const sn_attr *how = sn_node_attr(n, "auto_pad");
    const bool valid = how && how->kind == SN_ATTR_STRING && how->s.size == 5 &&
                       memcmp(how->s.data, "VALID", 5) == 0;
    const bool not_set = !how || (how->kind == SN_ATTR_STRING && how->s.size == 6 &&
                                  memcmp(how->s.data, "NOTSET", 6) == 0);
    if (!not_set && (!valid || has_own_pads(n, p)))
        return false;
    for (int i = 0; i < 2 * p->n; i++) {
        const int64_t extent = (kernel[i % p->n] - 1) * list_entry(n, "dilations", i % p->n, 1) + 1;
        const int64_t own = list_entry(n, "pads", i, 0);
        if (own < 0 || p->pads[i] >= extent - own)
            return false;
    }
    return true;
}

/* Nothing the node makes is below zero. */
static bool is_not_negative(const sn_node *n)
{
    return n && (sn_node_is(n, "Relu") || sn_node_is(n, "Sigmoid") || sn_node_is(n, "Abs") ||
                 sn_node_is(n, "HardSigmoid") || sn_node_is(n, "Softplus"));
}

static bool is_taker(const sn_node *n, const sn_node *pad, const padding *p)
{
    int64_t kernel[MAX_SPATIAL];
    const bool conv = sn_node_is(n, "Conv");
    const sn_type *w = conv && n->in[1].value ? &n->in[1].value->fact.type : NULL;
    if (n->in[0].value != pad->out[0] || (conv && (!w || w->rank != p->n + 2)))
        return false;
    for (int i = 0; i < p->n; i++) {
        kernel[i] = conv ? w->dims[i + 2] : list_entry(n, "kernel_shape", i, 0);
        if (!sn_dim_known(kernel[i]) || kernel[i] < 1 || kernel[i] > INT32_MAX)
            return false;
    }
    if (!can_take(n, p, kernel))
        return false;
    if (conv)
        return true;
    if (sn_node_attr_int(n, "ceil_mode", 0) || n->n_out != 1)
        return false;
    if (sn_node_is(n, "AveragePool"))
        return n->opset >= 7 &&
               (sn_node_attr_int(n, "count_include_pad", 0) || !has_own_pads(n, p));
    return sn_node_is(n, "MaxPool") && is_not_negative(pad->in[0].value->producer);
}

static sonde_status take(sn_graph *g, sn_pass_env *env, sn_node *n, sn_node *pad, const padding *p)
{
    int64_t *pads = SN_NEW_N(g->arena, int64_t, 2 * (size_t)p->n);
    if (!pads)
        return sn_fail_memory(env->err, sizeof *pads * 2 * MAX_SPATIAL);
    for (int i = 0; i < 2 * p->n; i++)
        pads[i] = p->pads[i] + list_entry(n, "pads", i, 0);
    sn_attr a = {.name = "pads", .kind = SN_ATTR_INTS, .n = 2 * (size_t)p->n, .ints = pads};
    SN_TRY(sn_node_set_attr(g, n, &a, env->err));
    sn_node_remove_attr(n, "auto_pad");
    a = (sn_attr){.name = "count_include_pad", .kind = SN_ATTR_INT, .n = 1, .i = 1};
    if (sn_node_is(n, "AveragePool"))
        SN_TRY(sn_node_set_attr(g, n, &a, env->err));
    sn_node_set_input(n, 0, pad->in[0].value);
    SN_TRY(sn_graph_replace(g, (sn_node *[]){pad, n}, 2, n, n, env->err));
    return sn_node_refresh(g, n, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (pad, g) {
        padding p;
        if (!sn_node_is(pad, "Pad") || !read_pad(pad, &p))
            continue;
        sn_node *n = sn_value_only_reader(pad->out[0]);
        if (!n || !n->n_in || !is_taker(n, pad, &p))
            continue;
        SN_TRY(take(g, env, n, pad, &p));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_pad_into = {
    .name = "pad-into",
    .summary = "fuses zero padding into the convolution or pooling after it",
    .run = run,
    .bodies = true,
};
