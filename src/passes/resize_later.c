/* SPDX-License-Identifier: Apache-2.0 */
/* A 1×1 convolution sums channels, an enlarging Resize sums pixels with weights that add up to one:
 * the order does not matter, and before the Resize there are fewer pixels. Segmentation heads have
 * a convolution of several enlarged images side by side, which becomes a sum:
 *
 *   Conv(Concat(Resize(a), b))  as  Conv_b(b) + Resize(Conv_a(a)) */
#include "passes/rewrite.h"

enum { MAX_PARTS = 16, GAIN = 2 /* so many times the pixels behind the Resize */, WIDER = 4 };

typedef struct head {
    sn_node *conv, *concat; /* concat: NULL where the convolution reads one value */
    uint32_t n;
    sn_value *part[MAX_PARTS];
    sn_node *resize[MAX_PARTS]; /* NULL: a part that stays where it is */
    int64_t first[MAX_PARTS];   /* its first channel */
    int64_t outputs, channels;
} head;

static bool all_are(const sn_node *n, const char *name, int64_t value)
{
    const sn_attr *a = sn_node_attr(n, name);
    for (size_t i = 0; a && a->kind == SN_ATTR_INTS && i < a->n; i++)
        if (a->ints[i] != value)
            return false;
    return true;
}

static bool is_pointwise(const sn_node *n)
{
    if (!sn_node_is(n, "Conv") || !sn_conv_channels(n) || !n->in[0].value || !n->out[0] ||
        !sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32) ||
        !sn_value_is_dtype(n->in[1].value, SONDE_DTYPE_F32) || sn_node_attr(n, "auto_pad") ||
        sn_node_attr_int(n, "group", 1) != 1 || !all_are(n, "strides", 1) || !all_are(n, "pads", 0))
        return false;
    const sn_tensor *w = n->in[1].value->fact.data;
    return sn_tensor_count(w) == w->dims[0] * w->dims[1];
}

static bool pixels_of(const sn_type *t, int64_t *pixels)
{
    *pixels = 1;
    for (int i = 2; i < t->rank; i++)
        if (!sn_dim_known(t->dims[i]) || !sn_i64_mul(*pixels, t->dims[i], pixels))
            return false;
    return t->rank > 2;
}

static bool mode_is(const sn_node *n, const char *name, const char *text)
{
    const sn_attr *a = sn_node_attr(n, name);
    return a && a->kind == SN_ATTR_STRING && a->s.size == strlen(text) &&
           memcmp(a->s.data, text, a->s.size) == 0;
}

/* The Resize that makes v for one reader, enlarges it, and leaves batch and channels alone. */
static sn_node *enlarges(const sn_value *v, int64_t outputs)
{
    sn_node *n = v && sn_value_only_reader(v) ? v->producer : NULL;
    int64_t before, behind;
    if (!n || !sn_node_is(n, "Resize") || n->opset < 11 || !n->in[0].value ||
        mode_is(n, "coordinate_transformation_mode", "tf_crop_and_resize"))
        return NULL;
    const sn_type *x = &n->in[0].value->fact.type, *y = &v->fact.type;
    if (x->kind != SN_KIND_TENSOR || x->rank != y->rank || !pixels_of(x, &before) ||
        !pixels_of(y, &behind) || behind < GAIN * before || !sn_dim_same(x->dims[0], y->dims[0]) ||
        !sn_dim_same(x->dims[1], y->dims[1]) || outputs > WIDER * x->dims[1])
        return NULL;
    const sn_value *sizes = n->n_in > 3 ? n->in[3].value : NULL;
    return !sizes || (sn_value_is_const(sizes) && sizes->fact.data->dtype == SONDE_DTYPE_I64)
               ? n
               : NULL;
}

static bool find(sn_node *conv, head *h)
{
    *h = (head){.conv = conv, .outputs = conv->in[1].value->fact.data->dims[0]};
    sn_value *x = conv->in[0].value;
    sn_node *c = sn_value_only_reader(x) ? x->producer : NULL;
    if (c && sn_node_is(c, "Concat") && c->n_in <= MAX_PARTS &&
        (sn_node_attr_int(c, "axis", 1) == 1 ||
         sn_node_attr_int(c, "axis", 1) == 1 - x->fact.type.rank))
        h->concat = c;
    h->n = h->concat ? h->concat->n_in : 1;
    bool any = false;
    for (uint32_t i = 0; i < h->n; i++) {
        sn_value *v = h->concat ? h->concat->in[i].value : x;
        if (!v || v->fact.type.rank < 3 || !sn_dim_known(v->fact.type.dims[1]))
            return false;
        h->part[i] = v;
        h->first[i] = h->channels;
        h->channels += v->fact.type.dims[1];
        h->resize[i] = enlarges(v, h->outputs);
        any |= h->resize[i] != NULL;
    }
    return any && h->channels == conv->in[1].value->fact.data->dims[1];
}

/* ------------------------------------------------------------------ the new nodes */

/* The weights of some parts, side by side: those of part `only`, or of all that stay. */
static sonde_status weights_of(sn_graph *g, sn_pass_env *env, const head *h, int only,
                               sn_value **out)
{
    const sn_value *old = h->conv->in[1].value;
    const sn_tensor *w = old->fact.data;
    int64_t dims[SN_MAX_RANK] = {h->outputs, 0}, at = 0;
    void *data;
    for (int i = 2; i < w->rank; i++)
        dims[i] = 1;
    for (uint32_t i = 0; i < h->n; i++)
        if (only >= 0 ? (int)i == only : !h->resize[i])
            dims[1] += h->part[i]->fact.type.dims[1];
    SN_TRY(sn_pass_constant(g, env, old->name, SONDE_DTYPE_F32, dims, w->rank, out, &data));
    sn_value_show_as(*out, old);
    for (int64_t m = 0; m < h->outputs; m++)
        for (uint32_t i = 0; i < h->n; i++) {
            const int64_t channels = h->part[i]->fact.type.dims[1];
            if (only >= 0 ? (int)i != only : h->resize[i] != NULL)
                continue;
            sn_tensor_read(w, m * h->channels + h->first[i], channels, (float *)data + at);
            at += channels;
        }
    return SONDE_OK;
}

/* Sizes of all dims say the number of channels, too. */
static sonde_status set_channels(sn_graph *g, sn_pass_env *env, sn_node *resize, int64_t channels)
{
    const sn_value *sizes = resize->n_in > 3 ? resize->in[3].value : NULL;
    const int64_t rank = resize->in[0].value->fact.type.rank;
    sn_value *v;
    void *data;
    if (!sizes || sn_tensor_count(sizes->fact.data) != rank || sn_node_attr(resize, "axes"))
        return SONDE_OK;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_I64, &rank, 1, &v, &data));
    sn_tensor_read(sizes->fact.data, 0, rank, data);
    ((int64_t *)data)[1] = channels;
    sn_node_set_input(resize, 3, v);
    return SONDE_OK;
}

/* Part i: its convolution comes first. *out: what its Resize makes now. */
static sonde_status turn(sn_graph *g, sn_pass_env *env, const head *h, uint32_t i, sn_value *bias,
                         sn_value **out)
{
    sn_node *r = h->resize[i], *conv;
    sn_value *w, *small;
    SN_TRY(weights_of(g, env, h, (int)i, &w));
    SN_TRY(sn_graph_add_node(g, r, "", "Conv", h->conv->name, bias ? 3 : 2, 1, &conv, env->err));
    conv->opset = h->conv->opset;
    SN_TRY(sn_graph_add_value(g, "", &small, env->err));
    SN_TRY(sn_graph_add_value(g, "", out, env->err));
    sn_value_show_as(small, h->conv->out[0]);
    sn_value_show_as(*out, h->conv->out[0]);
    sn_node_set_input(conv, 0, r->in[0].value);
    sn_node_set_input(conv, 1, w);
    if (bias)
        sn_node_set_input(conv, 2, bias);
    sn_node_set_output(conv, 0, small);
    SN_TRY(sn_node_inherit(g, conv, h->conv, env->err));
    SN_TRY(set_channels(g, env, r, h->outputs));
    sn_node_set_input(r, 0, small);
    sn_node_set_output(r, 0, *out);
    SN_TRY(sn_node_refresh(g, conv, env->err));
    return sn_node_refresh(g, r, env->err);
}

static sonde_status add(sn_graph *g, sn_pass_env *env, const head *h, sn_node *before, sn_value *a,
                        sn_value *b, sn_value *y)
{
    sn_node *n;
    SN_TRY(sn_graph_add_node(g, before, "", "Add", h->conv->name, 2, 1, &n, env->err));
    n->opset = 14;
    sn_node_set_input(n, 0, a);
    sn_node_set_input(n, 1, b);
    sn_node_set_output(n, 0, y);
    SN_TRY(sn_node_inherit(g, n, h->conv, env->err));
    return sn_node_refresh(g, n, env->err);
}

/* What the convolution reads of the parts that stay. */
static sonde_status join_rest(sn_graph *g, sn_pass_env *env, const head *h, uint32_t rest,
                              sn_value **x)
{
    sn_node *c;
    for (uint32_t i = 0; i < h->n; i++)
        if (!h->resize[i])
            *x = h->part[i];
    if (rest == 1)
        return SONDE_OK;
    SN_TRY(sn_graph_add_node(g, h->concat, "", "Concat", h->concat->name, rest, 1, &c, env->err));
    c->opset = h->concat->opset;
    const sn_attr axis = {.name = "axis", .kind = SN_ATTR_INT, .n = 1, .i = 1};
    SN_TRY(sn_node_set_attr(g, c, &axis, env->err));
    for (uint32_t i = 0, k = 0; i < h->n; i++)
        if (!h->resize[i])
            sn_node_set_input(c, k++, h->part[i]);
    SN_TRY(sn_graph_add_value(g, "", x, env->err));
    sn_value_show_as(*x, h->concat->out[0]);
    sn_node_set_output(c, 0, *x);
    SN_TRY(sn_node_inherit(g, c, h->concat, env->err));
    return sn_node_refresh(g, c, env->err);
}

/* The sum of `count` values, and of `first` if it is there, is `y`. */
static sonde_status add_all(sn_graph *g, sn_pass_env *env, const head *h, sn_value *first,
                            sn_value *const *list, uint32_t count, sn_node *before, sn_value *y)
{
    sn_value *sum = list[0];
    for (uint32_t i = 1; i <= count; i++) {
        sn_value *other = i < count ? list[i] : first, *made = y;
        if (!other)
            break;
        if (i + (first ? 0 : 1) < count) {
            SN_TRY(sn_graph_add_value(g, "", &made, env->err));
            sn_value_show_as(made, y);
        }
        SN_TRY(add(g, env, h, before, sum, other, made));
        sum = made;
    }
    return SONDE_OK;
}

static sonde_status rewrite(sn_graph *g, sn_pass_env *env, const head *h)
{
    sn_node *n = h->conv, *before = n->next;
    sn_value *bias = n->n_in > 2 ? n->in[2].value : NULL, *y = n->out[0], *x = NULL, *w,
             *own = NULL;
    sn_value *list[MAX_PARTS];
    uint32_t count = 0, rest = 0;
    for (uint32_t i = 0; i < h->n; i++)
        rest += !h->resize[i];
    if (rest) {
        SN_TRY(weights_of(g, env, h, -1, &w));
        SN_TRY(join_rest(g, env, h, rest, &x));
    }
    for (uint32_t i = 0; i < h->n; i++) {
        if (!h->resize[i])
            continue;
        SN_TRY(turn(g, env, h, i, rest || count ? NULL : bias, &list[count]));
        count++;
    }
    if (rest) {
        SN_TRY(sn_graph_add_value(g, "", &own, env->err));
        sn_value_show_as(own, y);
        sn_node_set_input(n, 0, x);
        sn_node_set_input(n, 1, w);
        sn_node_set_output(n, 0, own);
        SN_TRY(sn_node_refresh(g, n, env->err));
    } else if (count == 1) { /* the Resize makes the result */
        sn_node *r = list[0]->producer;
        sn_node_set_output(r, 0, y);
        SN_TRY(sn_node_refresh(g, r, env->err));
    }
    if (rest || count > 1)
        SN_TRY(add_all(g, env, h, own, list, count, before, y));
    sn_node *made = rest ? n : h->resize[0]->in[0].value->producer;
    sn_node *const gone[] = {n, h->concat};
    if (!rest)
        SN_TRY(sn_graph_replace(g, gone, h->concat ? 2 : 1, made, made, env->err));
    else if (h->concat)
        SN_TRY(sn_graph_replace(g, gone + 1, 1, made, made, env->err));
    return SONDE_OK;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (n, g) {
        head h;
        if (!is_pointwise(n) || !find(n, &h))
            continue;
        SN_TRY(rewrite(g, env, &h));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_resize_later = {
    .name = "resize-later",
    .summary = "computes 1x1 convolutions before images are enlarged, not behind",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
