/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that nobody gave, made up: random numbers in the range -r gives, small indices for
 * integers, ones for masks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static uint16_t half_of(float x, bool brain)
{
    union {
        float f;
        uint32_t u;
    } v = {.f = x};
    if (brain)
        return (uint16_t)(v.u >> 16);
    const uint32_t sign = v.u >> 16 & 0x8000;
    const int exponent = (int)(v.u >> 23 & 255) - 112;
    if (exponent <= 0)
        return (uint16_t)sign;
    if (exponent >= 31)
        return (uint16_t)(sign | 0x7BFF);
    return (uint16_t)(sign | (uint32_t)exponent << 10 | (v.u >> 13 & 1023));
}

/* One element; what a type cannot hold is left zero. */
static void store(void *data, int64_t i, sonde_dtype dtype, double x)
{
    switch (dtype) {
    case SONDE_DTYPE_F32:
        ((float *)data)[i] = (float)x;
        break;
    case SONDE_DTYPE_F64:
        ((double *)data)[i] = x;
        break;
    case SONDE_DTYPE_F16:
    case SONDE_DTYPE_BF16:
        ((uint16_t *)data)[i] = half_of((float)x, dtype == SONDE_DTYPE_BF16);
        break;
    case SONDE_DTYPE_U8:
    case SONDE_DTYPE_BOOL:
    case SONDE_DTYPE_U4:
        ((uint8_t *)data)[i] = (uint8_t)x;
        break;
    case SONDE_DTYPE_I8:
    case SONDE_DTYPE_I4:
        ((int8_t *)data)[i] = (int8_t)x;
        break;
    case SONDE_DTYPE_U16:
        ((uint16_t *)data)[i] = (uint16_t)x;
        break;
    case SONDE_DTYPE_I16:
        ((int16_t *)data)[i] = (int16_t)x;
        break;
    case SONDE_DTYPE_U32:
        ((uint32_t *)data)[i] = (uint32_t)x;
        break;
    case SONDE_DTYPE_I32:
        ((int32_t *)data)[i] = (int32_t)x;
        break;
    case SONDE_DTYPE_U64:
        ((uint64_t *)data)[i] = (uint64_t)x;
        break;
    case SONDE_DTYPE_I64:
        ((int64_t *)data)[i] = (int64_t)x;
        break;
    default:
        break;
    }
}

static bool is_float(sonde_dtype t)
{
    return t == SONDE_DTYPE_F32 || t == SONDE_DTYPE_F64 || t == SONDE_DTYPE_F16 ||
           t == SONDE_DTYPE_BF16;
}

typedef struct range {
    double min, max;
    bool whole; /* integers, both ends included */
} range;

/* The limits of an integer type, so that -r cannot leave it. */
static range limits(sonde_dtype t)
{
    switch (t) {
    case SONDE_DTYPE_I8:
        return (range){-128, 127, true};
    case SONDE_DTYPE_U8:
        return (range){0, 255, true};
    case SONDE_DTYPE_I16:
        return (range){-32768, 32767, true};
    case SONDE_DTYPE_U16:
        return (range){0, 65535, true};
    case SONDE_DTYPE_I32:
        return (range){-2147483648.0, 2147483647.0, true};
    case SONDE_DTYPE_U32:
        return (range){0, 4294967295.0, true};
    case SONDE_DTYPE_I64:
        return (range){-9007199254740992.0, 9007199254740992.0, true};
    case SONDE_DTYPE_U64:
        return (range){0, 9007199254740992.0, true};
    case SONDE_DTYPE_BOOL:
        return (range){0, 1, true};
    case SONDE_DTYPE_U4:
        return (range){0, 15, true};
    case SONDE_DTYPE_I4:
        return (range){-8, 7, true};
    default:
        return (range){-INFINITY, INFINITY, false};
    }
}

/* Integers are mostly indices: small ones are valid nearly everywhere. Masks let everything
 * through. */
static range usual_range(const sonde_type_info *info)
{
    if (is_float(info->dtype))
        return (range){0, 1, false};
    if (strstr(info->name, "mask") || info->dtype == SONDE_DTYPE_BOOL)
        return (range){1, 1, true};
    if (strstr(info->name, "token_type") || strstr(info->name, "segment"))
        return (range){0, 0, true};
    if (info->dtype == SONDE_DTYPE_U8)
        return (range){0, 255, true};
    if (info->dtype == SONDE_DTYPE_I8)
        return (range){-128, 127, true};
    return (range){0, 7, true};
}

static int range_of(const input_options *o, const sonde_type_info *info, range *r)
{
    *r = usual_range(info);
    for (size_t i = 0; i < o->ranges.n; i++) {
        const char *item = o->ranges.items[i], *equals = strrchr(item, '=');
        const size_t n = (size_t)(equals - item);
        if (strlen(info->name) != n || strncmp(info->name, item, n) != 0)
            continue;
        const range most = limits(info->dtype);
        char extra;
        if (sscanf(equals + 1, "%lf:%lf%c", &r->min, &r->max, &extra) != 2 || isnan(r->min) ||
            isnan(r->max))
            return fail_usage("--range '%s' does not have the form INPUT=MIN:MAX", item);
        if (r->min > r->max)
            return fail_usage("--range '%s': MIN is greater than MAX", item);
        if (r->min < most.min || r->max > most.max)
            return fail_usage("--range '%s': these values are outside the range of dtype %s", item,
                              sonde_dtype_text(info->dtype));
    }
    return EXIT_OK;
}

void made_up_shape(const loaded *l, const input_options *o, const sonde_type_info *info, bool warns,
                   int64_t *dims)
{
    for (int k = 0; k < info->rank; k++) {
        int64_t asked = -1;
        const bool said = size_of_dim(l, o, info->name, info->dim_names[k], k, &asked);
        if (info->dims[k] >= 0) {
            dims[k] = info->dims[k];
            continue;
        }
        dims[k] = said ? asked : 1;
        if (said || !warns)
            continue;
        if (info->dim_names[k])
            warn("dimension '%s' of input '%s' is not set; using 1 (set it with -s %s=N)",
                 info->dim_names[k], info->name, info->dim_names[k]);
        else
            warn("dimension %d of input '%s' is not set; using 1 (set it with -s %s.%d=N)", k,
                 info->name, info->name, k);
    }
}

static int make_tensor(const loaded *l, const run_setup *s, const sonde_type_info *info,
                       uint64_t *random, sonde_value **out)
{
    int64_t dims[64];
    if (info->rank < 0 || info->rank > 64)
        return fail("the shape of input '%s' is unknown; provide a value with -i %s=FILE",
                    info->name, info->name);
    range r = {0, 0, true};
    const int code = range_of(&s->inputs, info, &r);
    if (code)
        return code;
    made_up_shape(l, &s->inputs, info, !s->common.quiet, dims);
    size_t count = 1, bytes = 0;
    for (int k = 0; k < info->rank; k++)
        if (__builtin_mul_overflow(count, (size_t)dims[k], &count))
            return fail("input '%s' is too large", info->name);
    if (__builtin_mul_overflow(count, sonde_dtype_bytes(info->dtype), &bytes))
        return fail("input '%s' is too large", info->name);
    sonde_error err;
    if (info->dtype == SONDE_DTYPE_STRING) {
        sonde_string *words = need(calloc(count + 1, sizeof *words));
        for (size_t i = 0; i < count; i++)
            words[i] = (sonde_string){"hello", 5};
        const sonde_status st =
            sonde_tensor_create_strings(l->context, dims, (size_t)info->rank, words, out, &err);
        free(words);
        return st ? fail("%s", err.message) : EXIT_OK;
    }
    if (sonde_tensor_create(l->context, info->dtype, dims, (size_t)info->rank, NULL, bytes, out,
                            &err))
        return fail("input '%s': %s", info->name, err.message);
    void *data = sonde_tensor_data(*out);
    for (size_t i = 0; i < count; i++) {
        const double unit = (double)(next_random(random) >> 11) * 0x1p-53;
        store(data, (int64_t)i, info->dtype,
              r.whole ? floor(r.min + unit * (r.max - r.min + 1)) : r.min + unit * (r.max - r.min));
    }
    return EXIT_OK;
}

int made_up_value(const loaded *l, const run_setup *s, const sonde_type_info *info,
                  uint64_t *random, sonde_value **out)
{
    sonde_error err;
    switch (info->kind) {
    case SONDE_KIND_TENSOR:
        return make_tensor(l, s, info, random, out);
    case SONDE_KIND_SEQUENCE:
        return sonde_sequence_create(l->context, NULL, 0, out, &err) ? fail("%s", err.message)
                                                                     : EXIT_OK;
    case SONDE_KIND_OPTIONAL:
        return sonde_optional_create(l->context, NULL, out, &err) ? fail("%s", err.message)
                                                                  : EXIT_OK;
    default:
        return fail("cannot generate input '%s' of type %s; provide a value with -i %s=FILE",
                    info->name, info->text, info->name);
    }
}
