/* SPDX-License-Identifier: Apache-2.0 */
/* Older models as models of opset 13, which scales per channel need. Most operators of version 7
 * and later mean the same there. Those that changed are rows of a table: what was an attribute
 * becomes a constant input, and what has another meaning is written so that it means what it did.
 * A node that no row can bring over is named, and the model is refused. */
#include <math.h>
#include <string.h>

#include "ops/framework/op.h"
#include "shrink/quantizer.h"

enum { OLDEST = 7 };

typedef struct raising {
    sn_model *m;
    sn_graph *g;
    sn_node *n;
    sonde_error *err;
} raising;

static sonde_status refuse(const raising *r, const char *why)
{
    char text[400];
    return sn_fail(
        r->err, SONDE_UNSUPPORTED,
        "%s of opset %d cannot be raised to opset 13: %s; export the model with opset 13 "
        "or later",
        sn_node_text(r->n, text, sizeof text), (int)r->n->opset, why);
}

static const char *base_name(const raising *r)
{
    return r->n->out[0] && r->n->out[0]->name[0] ? r->n->out[0]->name : r->n->op_type;
}

static sonde_status set_input(const raising *r, uint32_t k, sn_value *v)
{
    while (r->n->n_in < k)
        SN_TRY(sn_node_add_input(r->g, r->n, NULL, r->err));
    if (k < r->n->n_in)
        sn_node_set_input(r->n, k, v);
    else
        SN_TRY(sn_node_add_input(r->g, r->n, v, r->err));
    if (r->n->n_formal_in < r->n->n_in)
        r->n->n_formal_in = r->n->n_in;
    return SONDE_OK;
}

static sonde_status ints_input(const raising *r, uint32_t k, const char *suffix,
                               const int64_t *ints, size_t count)
{
    const int64_t dim = (int64_t)count;
    sn_value *v;
    void *data;
    SN_TRY(sn_q_constant(r->m, r->g, base_name(r), suffix, SONDE_DTYPE_I64, &dim, 1, &v, &data,
                         r->err));
    if (count)
        memcpy(data, ints, count * sizeof *ints);
    return set_input(r, k, v);
}

static sonde_status floats_input(const raising *r, uint32_t k, const char *suffix,
                                 const float *floats, int64_t count, int rank)
{
    sn_value *v;
    void *data;
    SN_TRY(sn_q_constant(r->m, r->g, base_name(r), suffix, SONDE_DTYPE_F32, &count, rank, &v, &data,
                         r->err));
    memcpy(data, floats, (size_t)count * sizeof *floats);
    return set_input(r, k, v);
}

static sonde_status set_text(const raising *r, const char *name, const char *text)
{
    const sn_attr a = {
        .name = name, .kind = SN_ATTR_STRING, .n = 1, .s = {.data = text, .size = strlen(text)}};
    return sn_node_set_attr(r->g, r->n, &a, r->err);
}

/* An attribute of integers becomes input k; absent, it stays absent. */
static sonde_status move_ints(const raising *r, const char *name, uint32_t k)
{
    const sn_attr *a = sn_node_attr(r->n, name);
    if (!a)
        return SONDE_OK;
    if (a->kind != SN_ATTR_INTS)
        return refuse(r, "an attribute has an unexpected type");
    SN_TRY(ints_input(r, k, k == 1 ? "_axes" : "_numbers", a->ints, a->n));
    sn_node_remove_attr(r->n, name);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ the operators */
static sonde_status clip(const raising *r)
{
    static const char *const names[] = {"min", "max"};
    for (uint32_t k = 0; k < 2; k++) {
        const sn_attr *a = sn_node_attr(r->n, names[k]);
        if (a && r->n->out[0] && r->n->in[0].value->fact.type.dtype != SONDE_DTYPE_F32 &&
            r->n->in[0].value->fact.type.dtype != SONDE_DTYPE_UNDEFINED)
            return refuse(r, "its bounds are f32 and its input is not");
        if (a)
            SN_TRY(floats_input(r, 1 + k, k ? "_max" : "_min", &a->f, 1, 0));
        sn_node_remove_attr(r->n, names[k]);
    }
    return SONDE_OK;
}

static sonde_status pad(const raising *r)
{
    const float value = sn_q_float(r->n, "value", 0.0f);
    SN_TRY(move_ints(r, "pads", 1));
    sn_node_remove_attr(r->n, "value");
    return value != 0.0f ? floats_input(r, 2, "_value", &value, 1, 0) : SONDE_OK;
}

static sonde_status slice(const raising *r)
{
    const sn_attr *starts = sn_node_attr(r->n, "starts"), *ends = sn_node_attr(r->n, "ends");
    const sn_attr *axes = sn_node_attr(r->n, "axes");
    if (!starts || !ends || starts->n != ends->n)
        return refuse(r, "its bounds are missing");
    SN_TRY(ints_input(r, 1, "_starts", starts->ints, starts->n));
    SN_TRY(ints_input(r, 2, "_ends", ends->ints, ends->n));
    if (axes)
        SN_TRY(ints_input(r, 3, "_axes", axes->ints, axes->n));
    sn_node_remove_attr(r->n, "starts");
    sn_node_remove_attr(r->n, "ends");
    sn_node_remove_attr(r->n, "axes");
    return SONDE_OK;
}

static sonde_status top_k(const raising *r)
{
    const int64_t k = sn_q_int(r->n, "k", 0);
    sn_node_remove_attr(r->n, "k");
    return ints_input(r, 1, "_k", &k, 1);
}

/* Outside of training it does nothing; a mask is all that could be asked of it. */
static sonde_status dropout(const raising *r)
{
    if (r->n->n_out > 1 && r->n->out[1] && (r->n->out[1]->n_uses || r->n->out[1]->n_outputs))
        return refuse(r, "its mask is read");
    sn_node_remove_attr(r->n, "ratio");
    r->n->op_type = "Identity";
    if (r->n->n_out > 1 && r->n->out[1])
        r->n->out[1]->producer = NULL;
    r->n->n_out = 1;
    return SONDE_OK;
}

/* Until opset 10 an index was scaled without a shift and rounded down. */
static sonde_status resize_10(const raising *r)
{
    sn_value *scales = r->n->n_in > 1 ? r->n->in[1].value : NULL;
    const float none = 0;
    SN_TRY(set_text(r, "coordinate_transformation_mode", "asymmetric"));
    SN_TRY(set_text(r, "nearest_mode", "floor"));
    SN_TRY(floats_input(r, 1, "_roi", &none, 0, 1));
    return set_input(r, 2, scales);
}

static sonde_status upsample(const raising *r)
{
    const sn_attr *a = sn_node_attr(r->n, "scales");
    r->n->op_type = "Resize";
    if (a) {
        SN_TRY(floats_input(r, 1, "_scales", a->floats, (int64_t)a->n, 1));
        sn_node_remove_attr(r->n, "scales");
    }
    return resize_10(r);
}

/* It used to take all dims from `axis` on as one; from 13 on only that axis. */
static sonde_status softmax(const raising *r)
{
    const sn_type *t = &r->n->in[0].value->fact.type;
    int64_t axis = sn_q_int(r->n, "axis", 1);
    if (t->rank < 0)
        return refuse(r, "the rank of its input is unknown");
    axis += axis < 0 ? t->rank : 0;
    for (int i = (int)axis + 1; i < t->rank; i++)
        if (!sn_dim_known(t->dims[i]) || t->dims[i] != 1)
            return refuse(r, "it is computed over several dimensions");
    const sn_attr a = {.name = "axis", .kind = SN_ATTR_INT, .n = 1, .i = axis};
    return sn_node_set_attr(r->g, r->n, &a, r->err);
}

static sonde_status axes_input(const raising *r)
{
    return move_ints(r, "axes", 1);
}

static sonde_status split(const raising *r)
{
    return move_ints(r, "split", 1);
}

static sonde_status batch_norm(const raising *r)
{
    if (!sn_q_int(r->n, "spatial", 1))
        return refuse(r, "it normalises every position by itself");
    sn_node_remove_attr(r->n, "spatial");
    return SONDE_OK;
}

static sonde_status unknown_scan(const raising *r)
{
    return refuse(r, "it counts batches");
}

static const struct {
    const char *op_type;
    int32_t before; /* versions below this one are changed */
    sonde_status (*change)(const raising *r);
} changes[] = {
    {"Clip", 11, clip},
    {"Pad", 11, pad},
    {"Slice", 10, slice},
    {"TopK", 10, top_k},
    {"Dropout", 12, dropout},
    {"Upsample", 10, upsample},
    {"Resize", 11, resize_10},
    {"Softmax", 13, softmax},
    {"LogSoftmax", 13, softmax},
    {"Hardmax", 13, softmax},
    {"Squeeze", 13, axes_input},
    {"Unsqueeze", 13, axes_input},
    {"ReduceSum", 13, axes_input},
    {"Split", 13, split},
    {"BatchNormalization", 9, batch_norm},
    {"Scan", 9, unknown_scan},
};

static sonde_status raise_node(const raising *r, int64_t version)
{
    sn_node *n = r->n;
    if (n->opset >= version)
        return SONDE_OK;
    if (n->opset < OLDEST)
        return refuse(r, "it is older than opset 7");
    const char *was = n->op_type;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (strcmp(was, changes[i].op_type) == 0 && n->opset < changes[i].before)
            SN_TRY(changes[i].change(r));
    n->opset = (int32_t)version;
    return SONDE_OK;
}

static sonde_status raise_graph(sn_model *m, sn_graph *g, int64_t version, sonde_error *err)
{
    for (sn_node *n = g->first; n; n = n->next) {
        const raising r = {.m = m, .g = g, .n = n, .err = err};
        sn_graph *body;
        if (!n->domain[0])
            SN_TRY(raise_node(&r, version));
        for (uint32_t k = 0; (body = sn_node_body(n, k)); k++)
            SN_TRY(raise_graph(m, body, version, err));
    }
    return SONDE_OK;
}

sonde_status sn_q_raise_opset(sn_model *m, int64_t version, sonde_error *err)
{
    SN_TRY(sn_ops_resolve(m->graph, err)); /* ranks tell what Softmax meant */
    SN_TRY(sn_ops_infer(m->graph, err));
    SN_TRY(raise_graph(m, m->graph, version, err));
    for (size_t i = 0; i < m->opsets.n; i++)
        if (!m->opsets.data[i].domain[0])
            m->opsets.data[i].version = version;
    return SONDE_OK;
}
