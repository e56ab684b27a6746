/* SPDX-License-Identifier: Apache-2.0 */
/* One element at a time, whatever its type. */
#include "compute/element.h"

#include <math.h>

#include "base/codec.h"
#include "compute/small_floats.h"

/* X(NAME, C type): the types C knows. */
#define NATIVE_LIST(X)                                                                             \
    X(F32, float)                                                                                  \
    X(F64, double)                                                                                 \
    X(I8, int8_t)                                                                                  \
    X(I16, int16_t)                                                                                \
    X(I32, int32_t)                                                                                \
    X(I64, int64_t)                                                                                \
    X(U8, uint8_t)                                                                                 \
    X(U16, uint16_t)                                                                               \
    X(U32, uint32_t)                                                                               \
    X(U64, uint64_t) X(BOOL, uint8_t) X(I4, int8_t) X(U4, uint8_t) X(I2, int8_t) X(U2, uint8_t)
/* X(NAME, C type, smallest, largest) */
#define INTEGER_LIST(X)                                                                            \
    X(I8, int8_t, INT8_MIN, INT8_MAX)                                                              \
    X(I16, int16_t, INT16_MIN, INT16_MAX)                                                          \
    X(I32, int32_t, INT32_MIN, INT32_MAX)                                                          \
    X(I64, int64_t, INT64_MIN, INT64_MAX)                                                          \
    X(U8, uint8_t, 0, UINT8_MAX)                                                                   \
    X(U16, uint16_t, 0, UINT16_MAX)                                                                \
    X(U32, uint32_t, 0, UINT32_MAX)                                                                \
    X(U64, uint64_t, 0, UINT64_MAX)                                                                \
    X(I4, int8_t, -8, 7) X(U4, uint8_t, 0, 15) X(I2, int8_t, -2, 1) X(U2, uint8_t, 0, 3)

/* Loads go through memcpy: constants seen by inference may lie unaligned in their file. */
#define LOAD_ELEM(T, data, i, v)                                                                   \
    memcpy(&(v), (const char *)(data) + (size_t)(i) * sizeof(T), sizeof(T))

double sn_elem_f64(sonde_dtype t, const void *data, int64_t i)
{
    uint16_t half;
    switch (t) {
#define LOAD(NAME, T)                                                                              \
    case SONDE_DTYPE_##NAME: {                                                                     \
        T v;                                                                                       \
        LOAD_ELEM(T, data, i, v);                                                                  \
        return (double)v;                                                                          \
    }
        NATIVE_LIST(LOAD)
#undef LOAD
    case SONDE_DTYPE_F16:
        LOAD_ELEM(uint16_t, data, i, half);
        return (double)sn_f16_to_f32(half);
    case SONDE_DTYPE_BF16:
        LOAD_ELEM(uint16_t, data, i, half);
        return (double)sn_bf16_to_f32(half);
    default:
        break;
    }
    return sn_dtype_is_float(t) ? (double)sn_f8_to_f32(t, ((const uint8_t *)data)[i]) : 0.0;
}

int64_t sn_elem_i64(sonde_dtype t, const void *data, int64_t i)
{
    switch (t) {
#define LOAD(NAME, T, lo, hi)                                                                      \
    case SONDE_DTYPE_##NAME: {                                                                     \
        T v;                                                                                       \
        LOAD_ELEM(T, data, i, v);                                                                  \
        return (int64_t)v;                                                                         \
    }
        INTEGER_LIST(LOAD)
#undef LOAD
    case SONDE_DTYPE_BOOL:
        return ((const uint8_t *)data)[i] != 0;
    default:
        break;
    }
    double v = sn_elem_f64(t, data, i);
    return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : 0;
}

void sn_elem_set_f64(sonde_dtype t, void *data, int64_t i, double v)
{
    switch (t) {
    case SONDE_DTYPE_F32:
        ((float *)data)[i] = (float)v;
        return;
    case SONDE_DTYPE_F64:
        ((double *)data)[i] = v;
        return;
    case SONDE_DTYPE_F16:
        ((uint16_t *)data)[i] = sn_f32_to_f16((float)v);
        return;
    case SONDE_DTYPE_BF16:
        ((uint16_t *)data)[i] = sn_f32_to_bf16((float)v);
        return;
    case SONDE_DTYPE_BOOL:
        ((uint8_t *)data)[i] = v != 0;
        return;
#define STORE(NAME, T, lo, hi)                                                                     \
    case SONDE_DTYPE_##NAME:                                                                       \
        ((T *)data)[i] = isnan(v)            ? (T)0                                                \
                         : v <= (double)(lo) ? (T)(lo)                                             \
                         : v >= (double)(hi) ? (T)(hi)                                             \
                                             : (T)v;                                               \
        return;
        INTEGER_LIST(STORE)
#undef STORE
    default:
        break;
    }
    if (sn_dtype_is_float(t))
        ((uint8_t *)data)[i] = sn_f32_to_f8(t, (float)v, true);
}

bool sn_elem_is_zero(sonde_dtype t, const void *data, int64_t i)
{
    size_t bytes = sn_dtype_bytes(t);
    const uint8_t *p = (const uint8_t *)data + (size_t)i * bytes;
    if (t == SONDE_DTYPE_STRING)
        return ((const sonde_string *)data)[i].size == 0;
    if (t == SONDE_DTYPE_C64)
        return ((const float *)data)[2 * i] == 0 && ((const float *)data)[2 * i + 1] == 0;
    if (t == SONDE_DTYPE_C128)
        return ((const double *)data)[2 * i] == 0 && ((const double *)data)[2 * i + 1] == 0;
    if (sn_dtype_is_float(t))
        return sn_elem_f64(t, data, i) == 0;
    for (size_t k = 0; k < bytes; k++)
        if (p[k])
            return false;
    return true;
}

/* IEEE bits in an order-preserving form: negative numbers flip, positive ones get the top bit. */
static uint64_t float_key(double v)
{
    uint64_t bits;
    if (isnan(v))
        return UINT64_MAX;
    v += 0.0; /* -0 and +0 are equal */
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

bool sn_elem_ordered(sonde_dtype t)
{
    return t != SONDE_DTYPE_STRING && t != SONDE_DTYPE_C64 && t != SONDE_DTYPE_C128 &&
           t != SONDE_DTYPE_UNDEFINED;
}

uint64_t sn_elem_key(sonde_dtype t, const void *data, int64_t i)
{
    if (t == SONDE_DTYPE_U64)
        return ((const uint64_t *)data)[i];
    if (sn_dtype_is_float(t))
        return float_key(sn_elem_f64(t, data, i));
    return (uint64_t)sn_elem_i64(t, data, i) ^ (uint64_t)1 << 63;
}
