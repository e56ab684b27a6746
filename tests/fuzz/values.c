/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors are filled by one loop over elements: a number in double precision, drawn in the taste of
 * the tensor, is stored as the element type wants it; types without a C number take bit patterns.
 */
#include "fuzz/values.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANK  16
#define MAX_ELEMS ((int64_t)1 << 14)

typedef enum taste { INDICES, ZEROS, SIGNED, FLOATS, BITS, SPECIAL, HUGE_ONES, N_TASTES } taste;

static double draw(taste t, uint64_t *random, int64_t k)
{
    static const double special[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1.0, 1e-40, -1.0};
    static const double huge[] = {1e30,          -1e30, 3e38,  2147483648.0,
                                  -2147483649.0, 4e18,  1e-30, 65504};
    switch (t) {
    case INDICES:
        return (double)(*random ? (int64_t)fuzz_below(random, 4) : k % 3);
    case SIGNED:
        return (double)fuzz_below(random, 9) - 4;
    case FLOATS:
        return ((double)fuzz_below(random, 1 << 20) / (1 << 19) - 1) * 3;
    case SPECIAL:
        return special[fuzz_below(random, 8)];
    case HUGE_ONES:
        return huge[fuzz_below(random, 8)];
    default:
        return 0;
    }
}

/* Out of range and NaN become something; conversions in C must not see them. */
static int64_t to_int(double d)
{
    return d >= -9e18 && d <= 9e18 ? (int64_t)d : d > 0 ? INT64_MAX : INT64_MIN;
}

static void store(sonde_dtype dtype, uint8_t *at, double d)
{
    int64_t i = to_int(d);
    float f = (float)d;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    switch (dtype) {
    case SONDE_DTYPE_F32:
    case SONDE_DTYPE_C64:
        memcpy(at, &f, sizeof f);
        break;
    case SONDE_DTYPE_F64:
    case SONDE_DTYPE_C128:
        memcpy(at, &d, sizeof d);
        break;
    case SONDE_DTYPE_BF16:
        memcpy(at, (uint16_t[]){(uint16_t)(bits >> 16)}, 2);
        break;
    case SONDE_DTYPE_F16: /* good enough: exact for small whole numbers */
        memcpy(at,
               (uint16_t[]){d == 0 ? 0
                                   : (uint16_t)((bits >> 16 & 0x8000) |
                                                ((bits >> 13) - (112u << 10) & 0x7FFF))},
               2);
        break;
    case SONDE_DTYPE_BOOL:
        *at = d != 0;
        break;
    case SONDE_DTYPE_U4:
    case SONDE_DTYPE_F4E2M1:
        *at = (uint8_t)i & 15;
        break;
    case SONDE_DTYPE_I4:
        *at = (uint8_t)((((uint8_t)i & 15) ^ 8) - 8);
        break;
    case SONDE_DTYPE_U2:
        *at = (uint8_t)i & 3;
        break;
    case SONDE_DTYPE_I2:
        *at = (uint8_t)((((uint8_t)i & 3) ^ 2) - 2);
        break;
    default: /* whole numbers, little-endian; 8-bit floats by their bits */
        memcpy(at, &i, sonde_dtype_bytes(dtype));
        break;
    }
}

/* Any bit pattern that may stand in memory: below a byte, only what the type can hold. */
static void store_bits(sonde_dtype dtype, uint8_t *at, uint64_t *random)
{
    size_t bytes = sonde_dtype_bytes(dtype);
    if (dtype == SONDE_DTYPE_BOOL || (dtype >= SONDE_DTYPE_U4 && dtype != SONDE_DTYPE_F8E8M0)) {
        store(dtype, at, (double)fuzz_below(random, 16));
        return;
    }
    for (size_t k = 0; k < bytes; k++)
        at[k] = (uint8_t)fuzz_below(random, 256);
}

static sonde_value *strings(sonde_context *c, const int64_t *dims, size_t rank, int64_t count,
                            uint64_t *random)
{
    static const char *const texts[] = {"",  "a",      "one", "Two words",
                                        "1", "-2.5e3", "nan", "\xC3\xA4"};
    sonde_value *v = NULL;
    sonde_string *elems = calloc((size_t)count + 1, sizeof *elems);
    for (int64_t k = 0; elems && k < count; k++) {
        elems[k].data = texts[fuzz_below(random, 8)];
        elems[k].size = strlen(elems[k].data);
    }
    sonde_tensor_create_strings(c, dims, rank, elems, &v, NULL);
    free(elems);
    return v;
}

static sonde_value *tensor(sonde_context *c, const sonde_type_info *info, uint64_t *random)
{
    static const int64_t free_dims[] = {2, 1, 1, 2, 3, 4, 5, 0};
    int64_t dims[MAX_RANK], count = 1;
    sonde_value *v = NULL;
    size_t rank = info->rank < 0 ? fuzz_below(random, 5) : (size_t)info->rank;
    if (info->rank > MAX_RANK)
        return NULL;
    for (size_t k = 0; k < rank; k++) {
        bool known = info->rank >= 0 && info->dims[k] >= 0;
        dims[k] = known ? info->dims[k] : free_dims[fuzz_below(random, 8)];
        if (dims[k] > MAX_ELEMS || (count *= dims[k]) > MAX_ELEMS)
            return NULL;
    }
    sonde_dtype dtype = info->dtype == SONDE_DTYPE_UNDEFINED ? SONDE_DTYPE_F32 : info->dtype;
    if (dtype == SONDE_DTYPE_STRING)
        return strings(c, dims, rank, count, random);
    size_t elem = sonde_dtype_bytes(dtype);
    if (sonde_tensor_create(c, dtype, dims, rank, NULL, (size_t)count * elem, &v, NULL) != SONDE_OK)
        return NULL;
    taste t = (taste)fuzz_below(random, N_TASTES);
    uint8_t *at = sonde_tensor_data(v);
    for (int64_t k = 0; k < count; k++, at += elem) {
        if (t == BITS)
            store_bits(dtype, at, random);
        else
            store(dtype, at, draw(t, random, k));
    }
    return v;
}

sonde_value *fuzz_value(sonde_context *c, const sonde_type_info *info, uint64_t *random)
{
    sonde_value *items[3] = {0}, *v = NULL;
    switch (info->kind) {
    case SONDE_KIND_TENSOR:
        return tensor(c, info, random);
    case SONDE_KIND_SEQUENCE:
    case SONDE_KIND_OPTIONAL: {
        size_t n = fuzz_below(random, info->kind == SONDE_KIND_SEQUENCE ? 4 : 2);
        bool all = true;
        for (size_t k = 0; k < n; k++)
            all = (items[k] = tensor(c, info, random)) && all;
        if (all && info->kind == SONDE_KIND_SEQUENCE)
            sonde_sequence_create(c, items, n, &v, NULL);
        else if (all)
            sonde_optional_create(c, items[0], &v, NULL);
        for (size_t k = 0; k < n; k++)
            sonde_value_release(items[k]);
        return v;
    }
    default:
        return NULL;
    }
}
