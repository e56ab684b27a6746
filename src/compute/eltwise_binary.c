/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of two operands, instantiated per element type from lists of expressions. Either operand
 * may be one element for the whole run. Integer arithmetic is done in unsigned numbers: it wraps.
 */
#include <math.h>

#include "compute/eltwise_loops.h"

#define LOOP(name, TI, TO, expr)                                                                   \
    static void name(void *py, const void *pa, const void *pb, size_t n, int mode, const void *pp) \
    {                                                                                              \
        TO *y = py;                                                                                \
        const TI *va = pa, *vb = pb;                                                               \
        (void)pp;                                                                                  \
        if (mode == SN_BINARY_VV) {                                                                \
            for (size_t i = 0; i < n; i++) {                                                       \
                TI a = va[i], b = vb[i];                                                           \
                y[i] = (TO)(expr);                                                                 \
            }                                                                                      \
        } else if (mode == SN_BINARY_SV && n > 0) {                                                \
            TI a = va[0];                                                                          \
            for (size_t i = 0; i < n; i++) {                                                       \
                TI b = vb[i];                                                                      \
                y[i] = (TO)(expr);                                                                 \
            }                                                                                      \
        } else if (n > 0) {                                                                        \
            TI b = vb[0];                                                                          \
            for (size_t i = 0; i < n; i++) {                                                       \
                TI a = va[i];                                                                      \
                y[i] = (TO)(expr);                                                                 \
            }                                                                                      \
        }                                                                                          \
    }

/* ------------------------------------------------------------------ floats */
#define COMPARE_LIST(X)                                                                            \
    X(EQUAL, a == b)                                                                               \
    X(GREATER, a > b)                                                                              \
    X(GREATER_EQUAL, a >= b)                                                                       \
    X(LESS, a < b)                                                                                 \
    X(LESS_EQUAL, a <= b)

#define FLOAT_LIST(X)                                                                              \
    X(ADD, a + b)                                                                                  \
    X(SUB, a - b)                                                                                  \
    X(MUL, a *b)                                                                                   \
    X(DIV, a / b)                                                                                  \
    X(MIN, isnan(a) || a < b ? a : b)                                                              \
    X(MAX, isnan(a) || a > b ? a : b)                                                              \
    X(POW, M(pow)(a, b))                                                                           \
    X(MOD, floored_mod(a, b))                                                                      \
    X(FMOD, M(fmod)(a, b))                                                                         \
    X(PRELU, a < 0 ? a * b : a)

/* The remainder with the divisor's sign, zero included. */
#define FLOORED_MOD(name, T, FM, SIGN)                                                             \
    static T name(T a, T b)                                                                        \
    {                                                                                              \
        T r = FM(a, b);                                                                            \
        if (r == 0)                                                                                \
            return SIGN(r, b);                                                                     \
        return (r < 0) != (b < 0) ? r + b : r;                                                     \
    }
FLOORED_MOD(floored_mod_f32, float, fmodf, copysignf)
FLOORED_MOD(floored_mod_f64, double, fmod, copysign)

#define M(fn)              fn##f
#define floored_mod        floored_mod_f32
#define F32_LOOP(id, expr) LOOP(id##_f32, float, float, expr)
#define F32_CMP(id, expr)  LOOP(id##_f32, float, uint8_t, expr)
FLOAT_LIST(F32_LOOP)
COMPARE_LIST(F32_CMP)
#undef M
#undef floored_mod

#define M(fn)              fn
#define floored_mod        floored_mod_f64
#define F64_LOOP(id, expr) LOOP(id##_f64, double, double, expr)
#define F64_CMP(id, expr)  LOOP(id##_f64, double, uint8_t, expr)
FLOAT_LIST(F64_LOOP)
COMPARE_LIST(F64_CMP)
#undef M
#undef floored_mod

/* x to a constant power is nearly always a square, a cube or a root. */
static void pow_f32(void *py, const void *pa, const void *pb, size_t n, int mode, const void *pp)
{
    float *y = py;
    const float *a = pa;
    float b = mode == SN_BINARY_VS && n > 0 ? *(const float *)pb : 0.0f;
    if (b == 2.0f) {
        for (size_t i = 0; i < n; i++)
            y[i] = a[i] * a[i];
    } else if (b == 3.0f) {
        for (size_t i = 0; i < n; i++)
            y[i] = a[i] * a[i] * a[i];
    } else if (b == 0.5f) {
        for (size_t i = 0; i < n; i++) /* pow(-0, 0.5) is +0, pow(-inf, 0.5) is inf */
            y[i] = a[i] == -INFINITY ? INFINITY : sqrtf(a[i]) + 0.0f;
    } else {
        POW_f32(py, pa, pb, n, mode, pp);
    }
}

/* ------------------------------------------------------------------ integers */
/* Quotients that C leaves undefined: by zero 0, the smallest number by -1 wraps. */

#define INT_HELPERS(D, T, W)                                                                       \
    static inline T quotient_##D(T a, T b)                                                         \
    {                                                                                              \
        if (b == 0)                                                                                \
            return 0;                                                                              \
        if (b == (T)-1)                                                                            \
            return (T)-1 > 0 ? (T)(a == b) : (T)((W)0 - (W)a);                                     \
        return (T)(a / b);                                                                         \
    }                                                                                              \
    static inline T remainder_##D(T a, T b)                                                        \
    {                                                                                              \
        if (b == 0 || (b == (T)-1 && (T)-1 < (T)1))                                                \
            return 0;                                                                              \
        return (T)(a % b);                                                                         \
    }                                                                                              \
    static inline T floored_##D(T a, T b)                                                          \
    {                                                                                              \
        T r = remainder_##D(a, b);                                                                 \
        return r != 0 && (r < (T)1) != (b < (T)1) ? (T)(r + b) : r;                                \
    }                                                                                              \
    static inline T power_##D(T a, T b)                                                            \
    {                                                                                              \
        W base = (W)a, r = 1;                                                                      \
        if ((T)-1 < (T)1 && b < (T)1 && b != 0) /* 1/a^|b|, truncated */                           \
            return a == 1 ? (T)1 : a == (T)-1 ? ((b & 1) ? (T)-1 : (T)1) : (T)0;                   \
        for (T e = b; e > 0; e = (T)(e / 2)) {                                                     \
            if (e & 1)                                                                             \
                r *= base;                                                                         \
            base *= base;                                                                          \
        }                                                                                          \
        return (T)r;                                                                               \
    }
SN_INT_TYPES(INT_HELPERS)

#define INT_LOOPS(D, T, W)                                                                         \
    LOOP(ADD_##D, T, T, (W)a + (W)b)                                                               \
    LOOP(SUB_##D, T, T, (W)a - (W)b)                                                               \
    LOOP(MUL_##D, T, T, (W)a *(W)b)                                                                \
    LOOP(DIV_##D, T, T, quotient_##D(a, b))                                                        \
    LOOP(MIN_##D, T, T, a < b ? a : b)                                                             \
    LOOP(MAX_##D, T, T, a > b ? a : b)                                                             \
    LOOP(POW_##D, T, T, power_##D(a, b))                                                           \
    LOOP(MOD_##D, T, T, floored_##D(a, b))                                                         \
    LOOP(FMOD_##D, T, T, remainder_##D(a, b))                                                      \
    LOOP(PRELU_##D, T, T, (a > 0 || a == 0) ? (W)a : (W)a *(W)b)                                   \
    LOOP(BIT_AND_##D, T, T, (W)a &(W)b)                                                            \
    LOOP(BIT_OR_##D, T, T, (W)a | (W)b)                                                            \
    LOOP(BIT_XOR_##D, T, T, (W)a ^ (W)b)                                                           \
    LOOP(EQUAL_##D, T, uint8_t, a == b)                                                            \
    LOOP(GREATER_##D, T, uint8_t, a > b)                                                           \
    LOOP(GREATER_EQUAL_##D, T, uint8_t, a >= b)                                                    \
    LOOP(LESS_##D, T, uint8_t, a < b)                                                              \
    LOOP(LESS_EQUAL_##D, T, uint8_t, a <= b)
SN_INT_TYPES(INT_LOOPS)

/* By the number of bits, or more, or (read as unsigned) less than none: all of them go, and from
 * the left come copies of the sign. */
#define SHIFT_LOOPS(D, T, W)                                                                       \
    LOOP(SHIFT_LEFT_##D, T, T, (W)b < sizeof(T) * 8 ? (W)a << b : 0)                               \
    LOOP(SHIFT_RIGHT_##D, T, T, right_##D(a, (W)b))
#define SHIFT_RIGHT(D, T, W)                                                                       \
    static inline T right_##D(T a, W b)                                                            \
    {                                                                                              \
        const W flip = a > 0 || a == 0 ? 0 : ~(W)0;                                                \
        return (T)((b < sizeof(T) * 8 ? ((W)a ^ flip) >> b : 0) ^ flip);                           \
    }
SN_INT_TYPES(SHIFT_RIGHT)
SN_INT_TYPES(SHIFT_LOOPS)

LOOP(AND_bool, uint8_t, uint8_t, a &&b)
LOOP(OR_bool, uint8_t, uint8_t, a || b)
LOOP(XOR_bool, uint8_t, uint8_t, !a != !b)
LOOP(EQUAL_bool, uint8_t, uint8_t, !a == !b)

static sn_elt_fn *bool_loop(sn_binary op)
{
    switch (op) {
    case SN_BINARY_AND:
        return AND_bool;
    case SN_BINARY_OR:
        return OR_bool;
    case SN_BINARY_XOR:
        return XOR_bool;
    case SN_BINARY_EQUAL:
        return EQUAL_bool;
    default:
        return NULL;
    }
}

sn_elt_fn *sn_binary_loop(sn_binary op, sonde_dtype t)
{
#define F32_NAME(id, expr) [SN_BINARY_##id] = id##_f32,
#define F64_NAME(id, expr) [SN_BINARY_##id] = id##_f64,
    static sn_elt_fn *const f32[SN_BINARY_COUNT] = {FLOAT_LIST(F32_NAME) COMPARE_LIST(F32_NAME)};
    static sn_elt_fn *const f64[SN_BINARY_COUNT] = {FLOAT_LIST(F64_NAME) COMPARE_LIST(F64_NAME)};
#define INT_TABLE(D, T, W)                                                                         \
    static sn_elt_fn *const table_##D[SN_BINARY_COUNT] = {                                         \
        [SN_BINARY_ADD] = ADD_##D,                                                                 \
        [SN_BINARY_SUB] = SUB_##D,                                                                 \
        [SN_BINARY_MUL] = MUL_##D,                                                                 \
        [SN_BINARY_DIV] = DIV_##D,                                                                 \
        [SN_BINARY_MIN] = MIN_##D,                                                                 \
        [SN_BINARY_MAX] = MAX_##D,                                                                 \
        [SN_BINARY_POW] = POW_##D,                                                                 \
        [SN_BINARY_MOD] = MOD_##D,                                                                 \
        [SN_BINARY_FMOD] = FMOD_##D,                                                               \
        [SN_BINARY_PRELU] = PRELU_##D,                                                             \
        [SN_BINARY_BIT_AND] = BIT_AND_##D,                                                         \
        [SN_BINARY_BIT_OR] = BIT_OR_##D,                                                           \
        [SN_BINARY_BIT_XOR] = BIT_XOR_##D,                                                         \
        [SN_BINARY_EQUAL] = EQUAL_##D,                                                             \
        [SN_BINARY_GREATER] = GREATER_##D,                                                         \
        [SN_BINARY_GREATER_EQUAL] = GREATER_EQUAL_##D,                                             \
        [SN_BINARY_LESS] = LESS_##D,                                                               \
        [SN_BINARY_LESS_EQUAL] = LESS_EQUAL_##D,                                                   \
        [SN_BINARY_SHIFT_LEFT] = SHIFT_LEFT_##D,                                                   \
        [SN_BINARY_SHIFT_RIGHT] = SHIFT_RIGHT_##D};
    SN_INT_TYPES(INT_TABLE)
    switch (t) {
    case SONDE_DTYPE_F32:
        return op == SN_BINARY_POW ? pow_f32 : f32[op];
    case SONDE_DTYPE_F64:
        return f64[op];
    case SONDE_DTYPE_BOOL:
        return bool_loop(op);
#define INT_CASE(D, T, W)                                                                          \
    case SONDE_DTYPE_##D:                                                                          \
        return table_##D[op];
        SN_INT_TYPES(INT_CASE)
    default:
        return NULL;
    }
}
