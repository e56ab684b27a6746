/* SPDX-License-Identifier: Apache-2.0 */
/* See affine.h. */
#include "passes/affine.h"

#include "passes/batchnorm.h"

static const sn_tensor *numbers(const sn_value *v)
{
    const sn_tensor *t = v && sn_value_is_const(v) ? v->fact.data : NULL;
    return t && t->dtype == SONDE_DTYPE_F32 && sn_tensor_is_plain(t) ? t : NULL;
}

/* Of f32, with variances that have a root: a model without keeps its node and its NaN. */
static bool is_norm(const sn_node *bn, int64_t channels)
{
    double scale, shift;
    if (!sn_batchnorm_is_constant(bn, channels))
        return false;
    for (int64_t c = 0; c < channels; c++)
        if (!sn_batchnorm_channel(bn, c, &scale, &shift))
            return false;
    return true;
}

/* The constant beside x in a node of two inputs. */
static const sn_value *operand(const sn_node *n, const sn_value *x)
{
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div"};
    bool known = false;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        known |= sn_node_is(n, ops[i]);
    const sn_value *v = known && n->n_out == 1 ? sn_node_other_input(n, x) : NULL;
    return numbers(v) ? v : NULL;
}

/* One element, or `channels` at the place of that axis and nothing else. */
static bool is_per_channel(const sn_tensor *t, int rank, int axis, int64_t channels)
{
    const int at = axis - (rank - t->rank); /* of the channels in t */
    const int64_t n = sn_tensor_count(t);
    if (t->rank > rank)
        return false;
    return n == 1 || (n == channels && at >= 0 && t->dims[at] == channels);
}

sn_affine sn_affine_of(const sn_node *n, const sn_value *x, int axis, int64_t channels)
{
    const int rank = x->fact.type.rank;
    if (!n->n_in || !n->n_out || !n->out[0] || rank < 1 || axis < 0 || axis >= rank ||
        !sn_value_is_dtype(x, SONDE_DTYPE_F32))
        return SN_AFFINE_NONE;
    if (n->in[0].value == x && axis == 1 && is_norm(n, channels))
        return SN_AFFINE_SCALE;
    const sn_value *v = operand(n, x);
    if (!v || !is_per_channel(v->fact.data, rank, axis, channels))
        return SN_AFFINE_NONE;
    const bool one = sn_tensor_count(v->fact.data) == 1;
    if (sn_node_is(n, "Add") || sn_node_is(n, "Sub"))
        return n->in[0].value == x || sn_node_is(n, "Add") ? SN_AFFINE_SHIFT : SN_AFFINE_NUMBER;
    if (sn_node_is(n, "Div")) {
        for (int64_t c = 0; c < sn_tensor_count(v->fact.data); c++)
            if (n->in[0].value != x || sn_read_f32(v->fact.data, c) == 0.0f)
                return SN_AFFINE_NONE;
    }
    return one ? SN_AFFINE_NUMBER : SN_AFFINE_SCALE;
}

void sn_affine_join(const sn_node *n, const sn_value *x, int64_t channels, double *scale,
                    double *shift)
{
    const bool norm = sn_node_is(n, "BatchNormalization");
    const sn_tensor *t = norm ? NULL : operand(n, x)->fact.data;
    const bool one = t && sn_tensor_count(t) == 1, first = n->in[0].value == x;
    for (int64_t c = 0; c < channels; c++) {
        const double number = t ? (double)sn_read_f32(t, one ? 0 : c) : 0.0;
        double factor = 1.0, summand = 0.0;
        if (norm) {
            (void)sn_batchnorm_channel(n, c, &factor, &summand); /* it has a root */
        } else if (sn_node_is(n, "Add")) {
            summand = number;
        } else if (sn_node_is(n, "Sub")) {
            factor = first ? 1.0 : -1.0;
            summand = first ? -number : number;
        } else {
            factor = sn_node_is(n, "Mul") ? number : 1.0 / number;
        }
        scale[c] *= factor;
        shift[c] = shift[c] * factor + summand;
    }
}

sn_value *sn_affine_input(const sn_node *n)
{
    if (sn_node_is(n, "BatchNormalization"))
        return n->n_in ? n->in[0].value : NULL;
    for (uint32_t i = 0; i < 2 && n->n_in == 2; i++)
        if (n->in[i].value && operand(n, n->in[i].value))
            return n->in[i].value;
    return NULL;
}

const sn_value *sn_affine_shown(const sn_node *n, const sn_value *x)
{
    if (sn_node_is(n, "BatchNormalization"))
        return n->in[2].value;
    return sn_node_is(n, "Add") || sn_node_is(n, "Sub") ? sn_node_other_input(n, x) : NULL;
}
