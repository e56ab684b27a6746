/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of one operand, instantiated per element type from lists of expressions: what each function
 * means stands here once. Every f32 function that matters for speed has a vector kernel besides. */
#include <math.h>

#include "compute/eltwise_loops.h"

#define LOOP(name, TI, TO, expr)                                                                   \
    static void name(void *py, const void *pa, const void *pb, size_t n, int mode, const void *pp) \
    {                                                                                              \
        TO *y = py;                                                                                \
        const TI *a = pa;                                                                          \
        const TI *p = pp;                                                                          \
        (void)pb;                                                                                  \
        (void)mode;                                                                                \
        (void)p;                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            TI x = a[i];                                                                           \
            y[i] = (TO)(expr);                                                                     \
        }                                                                                          \
    }

/* M(fn) is the C library's function for the type T. A NaN that goes in comes out, except where the
 * formula of the operator's text is a comparison that NaN fails: ThresholdedRelu gives 0. */
#define FLOAT_LIST(X)                                                                              \
    X(RELU, x < 0 ? 0 : x)                                                                         \
    X(LEAKY_RELU, x < 0 ? x * p[0] : x)                                                            \
    X(ELU, x < 0 ? p[0] * M(expm1)(x) : x)                                                         \
    X(SELU, p[0] * (x <= 0 ? p[1] * M(expm1)(x) : x))                                              \
    X(CELU, x < 0 ? p[0] * M(expm1)(x / p[0]) : x)                                                 \
    X(THRESHOLDED_RELU, x > p[0] ? x : 0)                                                          \
    X(HARD_SIGMOID, LIMIT(x *p[0] + p[1], 0, 1))                                                   \
    X(HARD_SWISH, x *LIMIT(x *(T)(1.0 / 6.0) + (T)0.5, 0, 1))                                      \
    X(SIGMOID, x < 0 ? M(exp)(x) / (1 + M(exp)(x)) : 1 / (1 + M(exp)(-x)))                         \
    X(TANH, M(tanh)(x))                                                                            \
    X(SOFTPLUS, M(log1p)(M(exp)(-M(fabs)(x))) + (x < 0 ? 0 : x))                                   \
    X(SOFTSIGN, x / (1 + M(fabs)(x)))                                                              \
    X(GELU, (T)0.5 * x * M(erfc)(-x * (T)0.70710678118654752440))                                  \
    X(GELU_TANH, x / (1 + M(exp)((T)-1.59576912160573071175 * (x + (T)0.044715 * x * x * x))))     \
    X(MISH, x *M(tanh)(M(log1p)(M(exp)(-M(fabs)(x))) + (x < 0 ? 0 : x)))                           \
    X(SWISH, x / (1 + M(exp)(-x * p[0])))                                                          \
    X(ERF, M(erf)(x))                                                                              \
    X(EXP, M(exp)(x))                                                                              \
    X(LOG, M(log)(x))                                                                              \
    X(SQRT, M(sqrt)(x))                                                                            \
    X(RECIPROCAL, 1 / x)                                                                           \
    X(ABS, M(fabs)(x))                                                                             \
    X(NEG, -x)                                                                                     \
    X(SIGN, x > 0 ? 1 : x < 0 ? -1 : x)                                                            \
    X(CEIL, M(ceil)(x))                                                                            \
    X(FLOOR, M(floor)(x))                                                                          \
    X(ROUND, M(nearbyint)(x))                                                                      \
    X(SIN, M(sin)(x))                                                                              \
    X(COS, M(cos)(x))                                                                              \
    X(TAN, M(tan)(x))                                                                              \
    X(ASIN, M(asin)(x))                                                                            \
    X(ACOS, M(acos)(x))                                                                            \
    X(ATAN, M(atan)(x))                                                                            \
    X(SINH, M(sinh)(x))                                                                            \
    X(COSH, M(cosh)(x))                                                                            \
    X(ASINH, M(asinh)(x))                                                                          \
    X(ACOSH, M(acosh)(x))                                                                          \
    X(ATANH, M(atanh)(x))                                                                          \
    X(CLIP, LIMIT(x, p[0], p[1]))

/* Keeps NaN: both comparisons are false then. The upper bound wins when the bounds cross. */
#define LIMIT(v, lo, hi) limit(v, lo, hi)

#define T     float
#define M(fn) fn##f
#define limit limit_f32
static float limit_f32(float v, float lo, float hi)
{
    float r = v < lo ? lo : v;
    return r > hi ? hi : r;
}
#define F32_LOOP(id, expr) LOOP(id##_f32, T, T, expr)
FLOAT_LIST(F32_LOOP)
LOOP(IS_NAN_f32, float, uint8_t, isnan(x))
LOOP(IS_INF_f32, float, uint8_t, isinf(x) && p[x > 0] > 0.0f)
#undef T
#undef M
#undef limit

#define T     double
#define M(fn) fn
#define limit limit_f64
static double limit_f64(double v, double lo, double hi)
{
    double r = v < lo ? lo : v;
    return r > hi ? hi : r;
}
#define F64_LOOP(id, expr) LOOP(id##_f64, T, T, expr)
FLOAT_LIST(F64_LOOP)
LOOP(IS_NAN_f64, double, uint8_t, isnan(x))
LOOP(IS_INF_f64, double, uint8_t, isinf(x) && p[x > 0] > 0.0)
#undef T
#undef M
#undef limit

/* ------------------------------------------------------------------ integers */
#define SIGNED_LOOPS(D, TI, W)                                                                     \
    LOOP(RELU_##D, TI, TI, x < 0 ? 0 : x)                                                          \
    LOOP(ABS_##D, TI, TI, x < 0 ? (W)0 - (W)x : (W)x)                                              \
    LOOP(NEG_##D, TI, TI, (W)0 - (W)x)                                                             \
    LOOP(SIGN_##D, TI, TI, (x > 0) - (x < 0))
SN_SIGNED_TYPES(SIGNED_LOOPS)

#define UNSIGNED_LOOPS(D, TI, W)                                                                   \
    LOOP(RELU_##D, TI, TI, x)                                                                      \
    LOOP(ABS_##D, TI, TI, x)                                                                       \
    LOOP(NEG_##D, TI, TI, (W)0 - (W)x)                                                             \
    LOOP(SIGN_##D, TI, TI, x > 0)
SN_UNSIGNED_TYPES(UNSIGNED_LOOPS)

#define INT_LOOPS(D, TI, W)                                                                        \
    LOOP(BIT_NOT_##D, TI, TI, ~(W)x)                                                               \
    LOOP(CLIP_##D, TI, TI, (x < p[0] ? p[0] : x) > p[1] ? p[1] : (x < p[0] ? p[0] : x))
SN_INT_TYPES(INT_LOOPS)

LOOP(NOT_bool, uint8_t, uint8_t, x == 0)

sn_elt_fn *sn_unary_loop(sn_unary op, sonde_dtype t)
{
#define F32_NAME(id, expr) [SN_UNARY_##id] = id##_f32,
#define F64_NAME(id, expr) [SN_UNARY_##id] = id##_f64,
    static sn_elt_fn *const f32[SN_UNARY_COUNT] = {
        FLOAT_LIST(F32_NAME)[SN_UNARY_IS_NAN] = IS_NAN_f32, [SN_UNARY_IS_INF] = IS_INF_f32};
    static sn_elt_fn *const f64[SN_UNARY_COUNT] = {
        FLOAT_LIST(F64_NAME)[SN_UNARY_IS_NAN] = IS_NAN_f64, [SN_UNARY_IS_INF] = IS_INF_f64};
    switch (t) {
    case SONDE_DTYPE_F32:
        return f32[op];
    case SONDE_DTYPE_F64:
        return f64[op];
    case SONDE_DTYPE_BOOL:
        return op == SN_UNARY_NOT ? NOT_bool : NULL;
#define INT_CASE(D, TI, W)                                                                         \
    case SONDE_DTYPE_##D:                                                                          \
        switch (op) {                                                                              \
        case SN_UNARY_RELU:                                                                        \
            return RELU_##D;                                                                       \
        case SN_UNARY_ABS:                                                                         \
            return ABS_##D;                                                                        \
        case SN_UNARY_NEG:                                                                         \
            return NEG_##D;                                                                        \
        case SN_UNARY_SIGN:                                                                        \
            return SIGN_##D;                                                                       \
        case SN_UNARY_BIT_NOT:                                                                     \
            return BIT_NOT_##D;                                                                    \
        case SN_UNARY_CLIP:                                                                        \
            return CLIP_##D;                                                                       \
        default:                                                                                   \
            return NULL;                                                                           \
        }
        SN_INT_TYPES(INT_CASE)
    default:
        return NULL;
    }
}
