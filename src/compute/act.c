/* SPDX-License-Identifier: Apache-2.0 */
/* Activations behind convolutions and matrix products: one table from name to kernel slot. */
#include "compute/act.h"

#include <math.h>
#include <string.h>

bool sn_act_parse(const char *name, const float *params, size_t n, sn_act *out)
{
    static const struct {
        const char *name;
        sn_act_kind kind;
        size_t n_params;
        float params[2];
    } table[] = {
#define SN_ACT_ROW(kind, text, slot, n, a, b) {text, SN_ACT_##kind, n, {a, b}},
        SN_ACT_LIST(SN_ACT_ROW)
#undef SN_ACT_ROW
    };
    *out = (sn_act){SN_ACT_NONE, {0}};
    if (!name || !*name)
        return true;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i].name, name) != 0)
            continue;
        out->kind = table[i].kind;
        for (size_t j = 0; j < 2; j++)
            out->params[j] = j < n && j < table[i].n_params ? params[j] : table[i].params[j];
        return true;
    }
    return false;
}

bool sn_act_limits(const sn_act *act, float *lo, float *hi)
{
    *lo = act->kind == SN_ACT_RELU ? 0.0f : act->kind == SN_ACT_CLIP ? act->params[0] : -INFINITY;
    *hi = act->kind == SN_ACT_CLIP ? act->params[1] : INFINITY;
    return act->kind == SN_ACT_NONE || act->kind == SN_ACT_RELU || act->kind == SN_ACT_CLIP;
}

bool sn_act_keeps_zero(const sn_act *act)
{
    switch (act->kind) {
    case SN_ACT_SIGMOID:
        return false;
    case SN_ACT_CLIP:
        return act->params[0] <= 0.0f && act->params[1] >= 0.0f;
    case SN_ACT_HARD_SIGMOID:
        return act->params[1] <= 0.0f;
    case SN_ACT_STAR_RELU:
        return act->params[1] == 0.0f;
    default:
        return true;
    }
}

void sn_act_apply(const sn_act *act, const sn_kernels *k, float *y, size_t n)
{
    switch (act->kind) {
    case SN_ACT_NONE:
        break;
#define SN_ACT_CASE(kind, text, slot, n_params, a, b)                                              \
    case SN_ACT_##kind:                                                                            \
        k->slot(y, y, n, act->params);                                                             \
        break;
        SN_ACT_LIST(SN_ACT_CASE)
#undef SN_ACT_CASE
    }
}

void sn_act_apply_rough(const sn_act *act, const sn_kernels *k, float *y, size_t n)
{
    if (act->kind == SN_ACT_SILU)
        k->f32_swish_rough(y, y, n, act->params[0]);
    else
        sn_act_apply(act, k, y, n);
}

void sn_act_store_half(const sn_act *act, const sn_kernels *k, sonde_dtype type, uint16_t *y,
                       float *x, size_t n)
{
    const bool f16 = type == SONDE_DTYPE_F16;
    float lo, hi;
    if (act->kind == SN_ACT_SILU && !f16) {
        k->bf16_swish(y, x, n, act->params[0]);
        return;
    }
    if (!sn_act_limits(act, &lo, &hi))
        sn_act_apply(act, k, x, n);
    (f16 ? k->f16_add_clip : k->bf16_add_clip)(y, x, NULL, n, lo, hi);
}
