/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise f32 kernels in plain C: what every vector variant is compared with. Functions that a
 * float formula would make inexact are computed in double and rounded once. */
#include <math.h>

#include "kernels/kernels.h"

/* A NaN in either operand comes out. */
static float larger(float a, float b)
{
    return isnan(a) || a > b ? a : b;
}
static float smaller(float a, float b)
{
    return isnan(a) || a < b ? a : b;
}

#define BINARY(name, expr)                                                                         \
    void sn_f32_##name##_ref(float *y, const float *pa, const float *pb, size_t n, int mode)       \
    {                                                                                              \
        size_t sa = mode != SN_BINARY_SV, sb = mode != SN_BINARY_VS;                               \
        const float first_a = n ? pa[0] : 0, first_b = n ? pb[0] : 0; /* y may be a or b */        \
        for (size_t i = 0; i < n; i++) {                                                           \
            float a = sa ? pa[i] : first_a, b = sb ? pb[i] : first_b;                              \
            y[i] = (expr);                                                                         \
        }                                                                                          \
    }
BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a *b)
BINARY(div, a / b)
BINARY(min, smaller(a, b))
BINARY(max, larger(a, b))

#define UNARY(name, expr)                                                                          \
    void sn_f32_##name##_ref(float *y, const float *px, size_t n, const float *p)                  \
    {                                                                                              \
        (void)p;                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            float x = px[i];                                                                       \
            y[i] = (expr);                                                                         \
        }                                                                                          \
    }
static float limit(float x, float lo, float hi)
{
    float v = x < lo ? lo : x;
    return v > hi ? hi : v;
}
static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}
static double softplus(double x)
{
    return log1p(exp(-fabs(x))) + (x < 0.0 ? 0.0 : x);
}
static double gelu_tanh(double x)
{
    const double root = 0.79788456080286535588; /* sqrt(2 / pi) */
    return x * sigmoid(2.0 * root * (x + 0.044715 * x * x * x));
}
static float squared(float x)
{
    return x * x;
}

UNARY(relu, x < 0.0f ? 0.0f : x)
UNARY(clip, limit(x, p[0], p[1]))
UNARY(leaky_relu, x < 0.0f ? x * p[0] : x)
UNARY(star_relu, squared(x < 0.0f ? 0.0f : x) * p[0] + p[1])
UNARY(exp, (float)exp((double)x))
UNARY(sigmoid, (float)sigmoid((double)x))
UNARY(tanh, (float)tanh((double)x))
UNARY(erf, (float)erf((double)x))
UNARY(gelu, (float)(0.5 * (double)x * erfc(-(double)x * 0.70710678118654752440)))
UNARY(gelu_tanh, (float)gelu_tanh((double)x))
UNARY(swish, (float)((double)x *sigmoid((double)(x *p[0]))))
UNARY(hard_sigmoid, limit(x *p[0] + p[1], 0.0f, 1.0f))
UNARY(hard_swish, x *limit(x *(1.0f / 6.0f) + 0.5f, 0.0f, 1.0f))
UNARY(sqrt, sqrtf(x))
UNARY(elu, x < 0.0f ? (float)((double)p[0] * expm1((double)x)) : x)
UNARY(selu, p[0] * (x <= 0.0f ? (float)((double)p[1] * expm1((double)x)) : x))
UNARY(celu, x < 0.0f ? (float)((double)p[0] * expm1((double)(x / p[0]))) : x)
UNARY(softplus, (float)softplus((double)x))
UNARY(softsign, x / (1.0f + fabsf(x)))
UNARY(mish, (float)((double)x *tanh(softplus((double)x))))
UNARY(log, (float)log((double)x))
UNARY(sin, (float)sin((double)x))
UNARY(cos, (float)cos((double)x))
UNARY(reciprocal, 1.0f / x)
UNARY(floor, floorf(x))
UNARY(ceil, ceilf(x))
UNARY(round, nearbyintf(x))
UNARY(abs, fabsf(x))
UNARY(neg, -x)

void sn_f32_add_clip_ref(float *y, const float *x, const float *z, size_t n, float lo, float hi)
{
    for (size_t i = 0; i < n; i++)
        y[i] = limit(z ? x[i] + z[i] : x[i], lo, hi);
}
