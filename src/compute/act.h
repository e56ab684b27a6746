/* SPDX-License-Identifier: Apache-2.0 */
/* Activations that convolutions and matrix products apply before their result leaves the cache.
 * Those that are a clip happen inside the tile kernel, the others on the rows it just wrote. */
#ifndef SN_COMPUTE_ACT_H
#define SN_COMPUTE_ACT_H

#include "kernels/kernels.h"

/* X(NAME, text in a node's `activation`, kernel slot, number of parameters, their defaults) */
#define SN_ACT_LIST(X)                                                                             \
    X(RELU, "Relu", f32_relu, 0, 0.0f, 0.0f)                                                       \
    X(CLIP, "Clip", f32_clip, 2, -3.4028235e38f, 3.4028235e38f)                                    \
    X(SIGMOID, "Sigmoid", f32_sigmoid, 0, 0.0f, 0.0f)                                              \
    X(HARD_SWISH, "HardSwish", f32_hard_swish, 0, 0.0f, 0.0f)                                      \
    X(HARD_SIGMOID, "HardSigmoid", f32_hard_sigmoid, 2, 0.2f, 0.5f)                                \
    X(SILU, "Silu", f32_swish, 1, 1.0f, 0.0f)                                                      \
    X(LEAKY_RELU, "LeakyRelu", f32_leaky_relu, 1, 0.01f, 0.0f)                                     \
    X(TANH, "Tanh", f32_tanh, 0, 0.0f, 0.0f)                                                       \
    X(GELU, "Gelu", f32_gelu, 0, 0.0f, 0.0f)                                                       \
    X(GELU_TANH, "GeluTanh", f32_gelu_tanh, 0, 0.0f, 0.0f)                                         \
    X(ELU, "Elu", f32_elu, 1, 1.0f, 0.0f)                                                          \
    X(SELU, "Selu", f32_selu, 2, 1.05070102f, 1.67326319f)                                         \
    X(CELU, "Celu", f32_celu, 1, 1.0f, 0.0f)                                                       \
    X(MISH, "Mish", f32_mish, 0, 0.0f, 0.0f)                                                       \
    X(STAR_RELU, "StarRelu", f32_star_relu, 2, 1.0f, 0.0f) /* p0 max(x, 0)² + p1 */

typedef enum sn_act_kind {
    SN_ACT_NONE,
#define SN_ACT_ENUM(name, text, slot, n, a, b) SN_ACT_##name,
    SN_ACT_LIST(SN_ACT_ENUM)
#undef SN_ACT_ENUM
} sn_act_kind;

typedef struct sn_act {
    sn_act_kind kind;
    float params[2];
} sn_act;

/* From the text of a node ("" or NULL: none) and its parameters; false: unknown name. */
bool sn_act_parse(const char *name, const float *params, size_t n, sn_act *out);
/* The clip a kernel applies; true when that is all there is to do. */
bool sn_act_limits(const sn_act *act, float *lo, float *hi);
/* Does f(0) = 0 hold? Otherwise padding lanes of a block have to be cleared again. */
bool sn_act_keeps_zero(const sn_act *act);
/* y = f(y); any kind. */
void sn_act_apply(const sn_act *act, const sn_kernels *k, float *y, size_t n);
/* The same for sums of products of bf16, which are not worth more than 12 bits. */
void sn_act_apply_rough(const sn_act *act, const sn_kernels *k, float *y, size_t n);
/* y = f(x) in bf16 or f16; x is used up. */
void sn_act_store_half(const sn_act *act, const sn_kernels *k, sonde_dtype type, uint16_t *y,
                       float *x, size_t n);

#endif
