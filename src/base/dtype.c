/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: one table made from the public list. */
#include "base/dtype.h"

#include <stdio.h>

typedef struct dtype_info {
    const char *name, *onnx;
    uint8_t bits;
} dtype_info;

static const dtype_info infos[SONDE_DTYPE_COUNT] = {
#define DTYPE_INFO(name, number, onnx, text, bits) [number] = {text, onnx, bits},
    SONDE_DTYPE_LIST(DTYPE_INFO)
#undef DTYPE_INFO
};

static const dtype_info *info_of(sn_dtype t)
{
    return (unsigned)t < SONDE_DTYPE_COUNT ? &infos[t] : &infos[0];
}

const char *sn_precision_name(sonde_precision p)
{
    static const char *const names[] = {
        [SONDE_PRECISION_FILE] = "file", [SONDE_PRECISION_F32] = "f32",
        [SONDE_PRECISION_BF16] = "bf16", [SONDE_PRECISION_F16] = "f16",
        [SONDE_PRECISION_AUTO] = "auto",
    };
    return (unsigned)p < sizeof names / sizeof *names ? names[p] : NULL;
}

const char *sn_dtype_name(sn_dtype t)
{
    return info_of(t)->name;
}

const char *sn_dtype_onnx_name(sn_dtype t)
{
    return info_of(t)->onnx;
}

bool sn_dtype_valid(int64_t number)
{
    return number > 0 && number < SONDE_DTYPE_COUNT;
}

const char *sn_dtype_number_text(int64_t number, char *buf)
{
    const char *name = number == 27 ? "float6e2m3" : number == 28 ? "float6e3m2" : NULL;
    snprintf(buf, 40, "%lld%s%s%s", (long long)number, name ? " (" : "", name ? name : "",
             name ? ")" : "");
    return buf;
}

unsigned sn_dtype_bits(sn_dtype t)
{
    return info_of(t)->bits;
}

size_t sn_dtype_bytes(sn_dtype t)
{
    if (t == SONDE_DTYPE_STRING)
        return sizeof(sonde_string);
    return (size_t)(info_of(t)->bits + 7) / 8;
}

bool sn_dtype_is_float(sn_dtype t)
{
    switch (t) {
    case SONDE_DTYPE_F32:
    case SONDE_DTYPE_F64:
    case SONDE_DTYPE_F16:
    case SONDE_DTYPE_BF16:
    case SONDE_DTYPE_F8E4M3FN:
    case SONDE_DTYPE_F8E4M3FNUZ:
    case SONDE_DTYPE_F8E5M2:
    case SONDE_DTYPE_F8E5M2FNUZ:
    case SONDE_DTYPE_F4E2M1:
    case SONDE_DTYPE_F8E8M0:
        return true;
    default:
        return false;
    }
}

static bool is_signed_int(sn_dtype t)
{
    switch (t) {
    case SONDE_DTYPE_I8:
    case SONDE_DTYPE_I16:
    case SONDE_DTYPE_I32:
    case SONDE_DTYPE_I64:
    case SONDE_DTYPE_I4:
    case SONDE_DTYPE_I2:
        return true;
    default:
        return false;
    }
}

bool sn_dtype_is_int(sn_dtype t)
{
    switch (t) {
    case SONDE_DTYPE_U8:
    case SONDE_DTYPE_U16:
    case SONDE_DTYPE_U32:
    case SONDE_DTYPE_U64:
    case SONDE_DTYPE_U4:
    case SONDE_DTYPE_U2:
        return true;
    default:
        return is_signed_int(t);
    }
}

bool sn_dtype_is_signed(sn_dtype t)
{
    return is_signed_int(t) || (sn_dtype_is_float(t) && t != SONDE_DTYPE_F8E8M0);
}

bool sn_dtype_file_bytes(sn_dtype t, int64_t n, size_t *bytes)
{
    if (n < 0)
        return false;
    size_t bits = info_of(t)->bits, total;
    if (bits >= 8)
        return sn_size_mul((size_t)n, bits / 8, bytes);
    if (!sn_size_mul((size_t)n, bits, &total) || !sn_size_add(total, 7, &total))
        return false;
    *bytes = total / 8;
    return true;
}

void sn_unpack_bits(sn_dtype t, const uint8_t *src, int64_t n, uint8_t *dst)
{
    unsigned bits = sn_dtype_bits(t), per_byte = 8 / bits, mask = (1u << bits) - 1;
    unsigned sign = sn_dtype_is_int(t) && sn_dtype_is_signed(t) ? 1u << (bits - 1) : 0;
    for (int64_t i = 0; i < n; i++) {
        unsigned v = (unsigned)src[i / per_byte] >> ((unsigned)(i % per_byte) * bits) & mask;
        dst[i] = (uint8_t)((v ^ sign) - sign);
    }
}

void sn_pack_bits(sn_dtype t, const uint8_t *src, int64_t n, uint8_t *dst)
{
    unsigned bits = sn_dtype_bits(t), per_byte = 8 / bits, mask = (1u << bits) - 1;
    for (int64_t i = 0; i < n; i++) {
        unsigned shift = (unsigned)(i % per_byte) * bits;
        unsigned keep = shift ? dst[i / per_byte] : 0;
        dst[i / per_byte] = (uint8_t)(keep | (src[i] & mask) << shift);
    }
}
