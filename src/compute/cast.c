/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion between element types. The eleven native types convert directly, pair by pair; small
 * floats go through f32 and sub-byte integers through a byte, in chunks that stay in the cache. */
#include "compute/cast.h"

#include <math.h>
#include <string.h>

#include "compute/parallel.h"

enum { CHUNK = 512 };

/* X(DTYPE, type) of the native types; BOOL is a byte that is 0 or 1. */
#define INT_LIST(X, ...)                                                                           \
    X(U8, uint8_t, __VA_ARGS__)                                                                    \
    X(I8, int8_t, __VA_ARGS__)                                                                     \
    X(U16, uint16_t, __VA_ARGS__)                                                                  \
    X(I16, int16_t, __VA_ARGS__)                                                                   \
    X(I32, int32_t, __VA_ARGS__)                                                                   \
    X(I64, int64_t, __VA_ARGS__)                                                                   \
    X(U32, uint32_t, __VA_ARGS__)                                                                  \
    X(U64, uint64_t, __VA_ARGS__)

/* ------------------------------------------------------------------ floats to integers */
static int64_t to_i64(double x)
{
    if (!(x > -0x1p63))
        return isnan(x) ? 0 : INT64_MIN;
    return x >= 0x1p63 ? INT64_MAX : (int64_t)x;
}
static int32_t to_i32(double x)
{
    if (!(x > -0x1p31))
        return isnan(x) ? 0 : INT32_MIN;
    return x >= 0x1p31 ? INT32_MAX : (int32_t)x;
}
static uint64_t to_u64(double x)
{
    if (x < 0x1p63)
        return (uint64_t)to_i64(x);
    return isnan(x) ? 0 : x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
}
static uint32_t to_u32(double x)
{
    return (uint32_t)to_i64(x);
}
static uint8_t to_u8(double x)
{
    return (uint8_t)to_i32(x);
}
static int8_t to_i8(double x)
{
    return (int8_t)to_i32(x);
}
static uint16_t to_u16(double x)
{
    return (uint16_t)to_i32(x);
}
static int16_t to_i16(double x)
{
    return (int16_t)to_i32(x);
}

#define FROM_FLOAT_U8(x)  to_u8((double)(x))
#define FROM_FLOAT_I8(x)  to_i8((double)(x))
#define FROM_FLOAT_U16(x) to_u16((double)(x))
#define FROM_FLOAT_I16(x) to_i16((double)(x))
#define FROM_FLOAT_I32(x) to_i32((double)(x))
#define FROM_FLOAT_I64(x) to_i64((double)(x))
#define FROM_FLOAT_U32(x) to_u32((double)(x))
#define FROM_FLOAT_U64(x) to_u64((double)(x))

/* ------------------------------------------------------------------ native pairs */
#define FOR_ALL(TO, T_OUT, T_IN, expr)                                                             \
    case SONDE_DTYPE_##TO: {                                                                       \
        T_OUT *y = dst;                                                                            \
        const T_IN *x = src;                                                                       \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = (expr);                                                                         \
        return;                                                                                    \
    }
#define INT_TO_INT(TO, T_OUT, T_IN)   FOR_ALL(TO, T_OUT, T_IN, (T_OUT)x[i])
#define FLOAT_TO_INT(TO, T_OUT, T_IN) FOR_ALL(TO, T_OUT, T_IN, FROM_FLOAT_##TO(x[i]))

#define FROM_TYPE(name, T_IN, TO_INT)                                                              \
    static void name(sonde_dtype to, void *dst, const void *src, size_t n)                         \
    {                                                                                              \
        switch (to) {                                                                              \
            INT_LIST(TO_INT, T_IN)                                                                 \
            FOR_ALL(F32, float, T_IN, (float)x[i])                                                 \
            FOR_ALL(F64, double, T_IN, (double)x[i])                                               \
            FOR_ALL(BOOL, uint8_t, T_IN, x[i] != 0)                                                \
        default:                                                                                   \
            return;                                                                                \
        }                                                                                          \
    }
FROM_TYPE(from_U8, uint8_t, INT_TO_INT)
FROM_TYPE(from_I8, int8_t, INT_TO_INT)
FROM_TYPE(from_U16, uint16_t, INT_TO_INT)
FROM_TYPE(from_I16, int16_t, INT_TO_INT)
FROM_TYPE(from_I32, int32_t, INT_TO_INT)
FROM_TYPE(from_I64, int64_t, INT_TO_INT)
FROM_TYPE(from_U32, uint32_t, INT_TO_INT)
FROM_TYPE(from_U64, uint64_t, INT_TO_INT)
FROM_TYPE(from_F32, float, FLOAT_TO_INT)
FROM_TYPE(from_F64, double, FLOAT_TO_INT)

static bool is_native(sonde_dtype t)
{
    return (t >= SONDE_DTYPE_F32 && t <= SONDE_DTYPE_I64) || t == SONDE_DTYPE_BOOL ||
           t == SONDE_DTYPE_F64 || t == SONDE_DTYPE_U32 || t == SONDE_DTYPE_U64;
}

static void cast_native(sonde_dtype to, void *dst, sonde_dtype from, const void *src, size_t n)
{
    switch (from) {
#define CASE(D, T, unused)                                                                         \
    case SONDE_DTYPE_##D:                                                                          \
        from_##D(to, dst, src, n);                                                                 \
        return;
        INT_LIST(CASE, 0)
        CASE(F32, float, 0)
        CASE(F64, double, 0)
#undef CASE
    case SONDE_DTYPE_BOOL:
        from_U8(to, dst, src, n);
        return;
    default:
        return;
    }
}

/* ------------------------------------------------------------------ detours */
static bool is_small_float(sonde_dtype t)
{
    return sn_is_half(t) || (t >= SONDE_DTYPE_F8E4M3FN && t <= SONDE_DTYPE_F8E5M2FNUZ) ||
           t == SONDE_DTYPE_F4E2M1 || t == SONDE_DTYPE_F8E8M0;
}

static int sub_byte_bits(sonde_dtype t)
{
    if (t == SONDE_DTYPE_U4 || t == SONDE_DTYPE_I4)
        return 4;
    return t == SONDE_DTYPE_U2 || t == SONDE_DTYPE_I2 ? 2 : 0;
}

static bool sub_byte_signed(sonde_dtype t)
{
    return t == SONDE_DTYPE_I4 || t == SONDE_DTYPE_I2;
}

bool sn_cast_supported(sonde_dtype t)
{
    return is_native(t) || is_small_float(t) || sub_byte_bits(t) != 0;
}

/* Rounds to odd: rounding the result once more, to a smaller float, is then exact. */
static float odd_f32(double d)
{
    float f = (float)d;
    if ((double)f == d || isnan(d) || isinf(d))
        return f;
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    if (fabs((double)f) > fabs(d))
        u--;
    u |= 1u;
    memcpy(&f, &u, sizeof(f));
    return f;
}

/* Keeps the low bits of a byte, the sign extended where there is one. */
static void wrap_bits(uint8_t *v, size_t n, int bits, bool is_signed)
{
    uint8_t mask = (uint8_t)((1u << bits) - 1), top = (uint8_t)(1u << (bits - 1));
    for (size_t i = 0; i < n; i++) {
        uint8_t low = v[i] & mask;
        v[i] = is_signed ? (uint8_t)((low ^ top) - top) : low;
    }
}

static void cast_chunk(uint32_t cpu_flags, sonde_dtype to, void *dst, sonde_dtype from,
                       const void *src, size_t n, sn_rounding how)
{
    float f32[CHUNK];
    double f64[CHUNK];
    if (is_small_float(from)) {
        sn_load_f32(cpu_flags, from, f32, src, n);
        from = SONDE_DTYPE_F32;
        src = f32;
    } else if (sub_byte_bits(from)) {
        from = sub_byte_signed(from) ? SONDE_DTYPE_I8 : SONDE_DTYPE_U8;
    }
    if (is_small_float(to)) {
        float out[CHUNK];
        if (from == SONDE_DTYPE_F32) {
            sn_store_f32(cpu_flags, to, dst, src, n, how);
            return;
        }
        cast_native(SONDE_DTYPE_F64, f64, from, src, n);
        for (size_t i = 0; i < n; i++)
            out[i] = odd_f32(f64[i]);
        sn_store_f32(cpu_flags, to, dst, out, n, how);
        return;
    }
    int bits = sub_byte_bits(to);
    if (bits) {
        cast_native(SONDE_DTYPE_I8, dst, from, src, n);
        wrap_bits(dst, n, bits, sub_byte_signed(to));
        return;
    }
    cast_native(to, dst, from, src, n);
}

typedef struct cast_job {
    sonde_dtype to, from;
    uint8_t *dst;
    const uint8_t *src;
    sn_rounding how;
    uint32_t cpu_flags;
} cast_job;

static void cast_range(void *arg, size_t lo, size_t hi)
{
    const cast_job *j = arg;
    size_t out = sn_dtype_bytes(j->to), in = sn_dtype_bytes(j->from);
    if (j->to == j->from) {
        if (j->dst != j->src)
            memcpy(j->dst + lo * out, j->src + lo * in, (hi - lo) * out);
        return;
    }
    if (is_native(j->to) && is_native(j->from)) {
        cast_native(j->to, j->dst + lo * out, j->from, j->src + lo * in, hi - lo);
        return;
    }
    for (size_t i = lo; i < hi; i += CHUNK)
        cast_chunk(j->cpu_flags, j->to, j->dst + i * out, j->from, j->src + i * in,
                   hi - i < CHUNK ? hi - i : CHUNK, j->how);
}

void sn_cast_run(uint32_t cpu_flags, sonde_dtype to, void *dst, sonde_dtype from, const void *src,
                 size_t n, sn_rounding how, sn_pool *pool)
{
    cast_job j = {to, from, dst, src, how, cpu_flags};
    sn_parallel_range(pool, n, 2, cast_range, &j);
}

void sn_narrow_bytes(sonde_dtype t, uint8_t *y, int64_t n)
{
    const unsigned drop = t == SONDE_DTYPE_I2 || t == SONDE_DTYPE_U2 ? 6 : 4;
    const bool extend = t == SONDE_DTYPE_I4 || t == SONDE_DTYPE_I2;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t low = (uint8_t)(y[i] << drop);
        const int wide = extend ? (int8_t)low : low;
        y[i] = (uint8_t)(wide >> drop);
    }
}
