/* SPDX-License-Identifier: Apache-2.0 */
/* See layouts.h. */
#include "ops/shared/layouts.h"

const sn_op_signature sn_layout_follows = {.in = {SN_PORT_SAME}, .out = SN_PORT_SAME};

static const sn_op_signature alike = {.all_in = true, .out = SN_PORT_SAME};
static const sn_op_signature alike_but_0 = {.in = {SN_PORT_NATIVE, SN_PORT_SAME},
                                            .out = SN_PORT_SAME};
static const sn_op_signature alike_but_1 = {.in = {SN_PORT_SAME, SN_PORT_NATIVE},
                                            .out = SN_PORT_SAME};

static bool is_f32(const sn_value *v)
{
    return v->fact.type.kind == SN_KIND_TENSOR && v->fact.type.dtype == SONDE_DTYPE_F32;
}

bool sn_value_is_image(const sn_value *v)
{
    return is_f32(v) && v->fact.type.rank >= 3 && v->fact.type.rank <= 5;
}

const sn_op_signature *sn_layout_elementwise(const sn_node *n, const void *params, int block)
{
    uint32_t present = 0;
    (void)params;
    (void)block;
    for (uint32_t i = 0; i < n->n_in; i++)
        present += n->in[i].value != NULL;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const sn_value *v = n->in[i].value;
        if (!v)
            continue;
        if (!sn_value_is_image(v) || v->fact.data)
            return NULL;
        if (present > 1 && !sn_type_same_shape(&v->fact.type, &n->out[0]->fact.type))
            return NULL;
    }
    return present ? &alike : NULL;
}

static bool is_one_number(const sn_value *v)
{
    return sn_value_is_const(v) && sn_tensor_count(v->fact.data) == 1;
}

static bool has_channels(const sn_value *v, sn_dim channels)
{
    if (is_one_number(v))
        return is_f32(v);
    if (!sn_value_is_const(v))
        return sn_value_is_image(v) && sn_dim_same(v->fact.type.dims[1], channels);
    const sn_tensor *t = v->fact.data; /* [C, 1, 1] and [1, C, 1, 1] */
    return t->dtype == SONDE_DTYPE_F32 && sn_tensor_is_plain(t) && (t->rank == 3 || t->rank == 4) &&
           sn_dim_same(t->dims[t->rank - 3], channels);
}

const sn_op_signature *sn_layout_operands(const sn_node *n, const void *params, int block)
{
    const sn_value *a = n->in[0].value, *b = n->n_in > 1 ? n->in[1].value : NULL;
    (void)params;
    (void)block;
    if (!a || !b || !n->out[0] || !sn_value_is_image(n->out[0]))
        return NULL;
    const sn_type *y = &n->out[0]->fact.type;
    const sn_dim channels = y->dims[1];
    if (y->rank != 4) /* of one shape, or with a single number */
        for (uint32_t i = 0; i < 2; i++) {
            const sn_value *v = n->in[i].value;
            if (!is_one_number(v) && (v->fact.data || !sn_type_same_shape(&v->fact.type, y)))
                return NULL;
        }
    if (!sn_dim_known(channels) || !has_channels(a, channels) || !has_channels(b, channels))
        return NULL;
    if (is_one_number(a))
        return is_one_number(b) ? NULL : &alike_but_0;
    return is_one_number(b) ? &alike_but_1 : &alike;
}

/* ------------------------------------------------------------------ channels last */
bool sn_value_is_byte_image(const sn_value *v)
{
    const sn_type *t = &v->fact.type;
    return t->kind == SN_KIND_TENSOR &&
           (t->dtype == SONDE_DTYPE_U8 || t->dtype == SONDE_DTYPE_I8) && t->rank >= 3 &&
           t->rank <= 5;
}

const sn_op_signature *sn_last_follows(const sn_node *n, const void *params)
{
    (void)params;
    return n->in[0].value && sn_value_is_byte_image(n->in[0].value) ? &sn_layout_follows : NULL;
}

/* Does the operand broadcast to the image `to` by its own dims, channels among channels? */
static bool lies_like(const sn_value *v, const sn_type *to)
{
    return !v->fact.data && sn_value_is_byte_image(v) && v->fact.type.rank == to->rank;
}

const sn_op_signature *sn_last_operands(const sn_node *n, uint32_t b)
{
    static const sn_op_signature first = {.in = {SN_PORT_SAME}, .out = SN_PORT_SAME};
    static const sn_op_signature with_1 = {.in = {SN_PORT_SAME, SN_PORT_SAME}, .out = SN_PORT_SAME};
    static const sn_op_signature with_3 = {.in = {[0] = SN_PORT_SAME, [3] = SN_PORT_SAME},
                                           .out = SN_PORT_SAME};
    const sn_value *x = n->in[0].value, *y = b < n->n_in ? n->in[b].value : NULL;
    if (!x || !y || !n->out[0] || !sn_value_is_byte_image(n->out[0]) ||
        !lies_like(x, &n->out[0]->fact.type))
        return NULL;
    if (is_one_number(y))
        return &first;
    if (!lies_like(y, &n->out[0]->fact.type))
        return NULL;
    return b == 1 ? &with_1 : b == 3 ? &with_3 : NULL;
}
