/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs: from files, images and folders where -i says so, else made up: random numbers in the
 * range -r gives, small indices for integers, ones for masks. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sonde/experimental/tensor_file.h"
#include "tool.h"

/* ------------------------------------------------------------------ names */
static bool find_input(const loaded *l, const char *name, size_t n, size_t *index)
{
    for (size_t i = 0; i < sonde_session_input_count(l->session); i++) {
        const char *have = sonde_session_input_name(l->session, i);
        if (strlen(have) == n && strncmp(have, name, n) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

static int no_such_input(const loaded *l, const char *name, size_t n)
{
    text t = {.n = 0};
    for (size_t i = 0; i < sonde_session_input_count(l->session); i++)
        text_add(&t, "%s%s", i ? ", " : "", sonde_session_input_name(l->session, i));
    const int code =
        fail_usage("the model has no input '%.*s'; it has %s", (int)n, name, t.n ? t.data : "none");
    text_free(&t);
    return code;
}

static void put(sonde_value **slot, sonde_value *v)
{
    sonde_value_release(*slot);
    *slot = v;
}

/* ------------------------------------------------------------------ images */
bool is_image(const char *path)
{
    static const char *const suffixes[] = {".jpg", ".jpeg", ".png", ".ppm",
                                           ".JPG", ".JPEG", ".PNG"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (ends_with(path, suffixes[i]))
            return true;
    return false;
}

static int three(const char *s, const char *option, float *out)
{
    char extra;
    if (sscanf(s, "%f,%f,%f%c", &out[0], &out[1], &out[2], &extra) != 3)
        return fail_usage("--%s takes three numbers, R,G,B, not '%s'", option, s);
    return EXIT_OK;
}

int image_plan(const loaded *l, const options *o, size_t index, const char *path,
               sonde_image_options *image, float *numbers)
{
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    sonde_error err;
    if (sonde_session_input_info(l->session, index, &info, &err))
        return fail("%s", err.message);
    if (info.kind != SONDE_KIND_TENSOR || info.dtype != SONDE_DTYPE_F32 || info.rank != 4)
        return fail("'%s' is an image, but input '%s' is %s, not an f32 tensor of rank 4", path,
                    info.name, info.text);
    image->nhwc = info.dims[3] == 3 && info.dims[1] != 3;
    if (o->image_layout) {
        if (strcmp(o->image_layout, "nhwc") != 0 && strcmp(o->image_layout, "nchw") != 0)
            return fail_usage("--image-layout is nchw or nhwc, not '%s'", o->image_layout);
        image->nhwc = strcmp(o->image_layout, "nhwc") == 0;
    }
    int64_t size[2] = {224, 224};
    for (int k = 0; k < 2; k++) {
        const int dim = (image->nhwc ? 1 : 2) + k;
        if (info.dims[dim] >= 0)
            size[k] = info.dims[dim];
        else
            (void)size_of_dim(l, o, info.name, info.dim_names[dim], dim, &size[k]);
        if (size[k] < 1 || size[k] > 65536)
            return fail("input '%s' is %s: no image has that size", info.name, info.text);
    }
    image->height = (int)size[0];
    image->width = (int)size[1];
    image->resize = o->image_resize > 65536 ? 65536 : (int)o->image_resize;
    image->bgr = o->image_bgr;
    image->no_normalize = o->image_raw;
    image->no_mmap = unmapped.no_mmap;
    int code = EXIT_OK;
    if (o->image_mean && !(code = three(o->image_mean, "image-mean", numbers)))
        image->mean = numbers;
    if (!code && o->image_std && !(code = three(o->image_std, "image-std", numbers + 3)))
        image->deviation = numbers + 3;
    return code;
}

static int load_image(const loaded *l, const options *o, size_t index, const char *path,
                      sonde_value **out)
{
    sonde_image_options image = SONDE_INIT(sonde_image_options);
    float numbers[6];
    sonde_error err;
    const int code = image_plan(l, o, index, path, &image, numbers);
    if (code)
        return code;
    if (sonde_image_load(l->context, path, &image, out, &err))
        return fail("%s", err.message);
    return EXIT_OK;
}

/* ------------------------------------------------------------------ files */
/* The first input nobody has filled yet. */
static bool first_free(const feeds *f, size_t *index)
{
    for (size_t i = 0; i < f->n; i++)
        if (!f->values[i]) {
            *index = i;
            return true;
        }
    return false;
}

static int load_one(feeds *f, const loaded *l, const options *o, size_t index, const char *path)
{
    sonde_value *v = NULL;
    sonde_error err;
    if (is_image(path)) {
        const int code = load_image(l, o, index, path, &v);
        if (code)
            return code;
    } else if (sonde_value_load_for_with(l->session, f->names[index], path, &unmapped, &v, &err)) {
        return fail("%s", err.message);
    }
    put(&f->values[index], v);
    return EXIT_OK;
}

/* Values go to inputs of their names; a single value without one to the first free input. */
static int load_all(feeds *f, const loaded *l, const options *o, const char *path)
{
    size_t index = 0;
    if (is_image(path) || ends_with(path, ".npy") || ends_with(path, ".pb"))
        return first_free(f, &index) ? load_one(f, l, o, index, path)
                                     : fail("'%s': every input has a value already", path);
    sonde_value_set *set = NULL;
    sonde_error err;
    if (sonde_values_load_with(l->context, path, &unmapped, &set, &err))
        return fail("%s", err.message);
    int code = EXIT_OK;
    for (size_t i = 0; i < sonde_value_set_count(set) && !code; i++) {
        const char *name = sonde_value_set_name(set, i);
        if (find_input(l, name, strlen(name), &index))
            put(&f->values[index], sonde_value_retain(sonde_value_set_value(set, i)));
        else
            code = no_such_input(l, name, strlen(name));
    }
    sonde_value_set_release(set);
    return code;
}

/* input_0.pb, input_1.pb … of ONNX's test data, in the order of the inputs. */
static int load_folder(feeds *f, const loaded *l, const options *o, const char *path)
{
    size_t found = 0;
    int code = EXIT_OK;
    for (size_t i = 0; i < f->n && !code; i++) {
        char *file = text_of("%s/input_%zu.pb", path, i);
        if (is_file(file)) {
            code = load_one(f, l, o, i, file);
            found++;
        }
        free(file);
    }
    if (code || found)
        return code;
    return o->inputs.n > 1
               ? fail("'%s' holds no input_0.pb; a folder of images must be the only -i", path)
               : fail("'%s' holds neither images nor an input_0.pb", path);
}

static int load_argument(feeds *f, const loaded *l, const options *o, const char *argument)
{
    /* Names may contain '=': the longest one that is an input wins. */
    for (const char *equals = strrchr(argument, '='); equals;) {
        size_t index = 0;
        const size_t n = (size_t)(equals - argument);
        if (find_input(l, argument, n, &index))
            return load_one(f, l, o, index, equals + 1);
        const char *before = NULL;
        for (const char *p = argument; p < equals; p++)
            if (*p == '=')
                before = p;
        equals = before;
    }
    if (is_folder(argument))
        return load_folder(f, l, o, argument);
    const char *equals = strchr(argument, '=');
    if (equals && !is_file(argument))
        return no_such_input(l, argument, (size_t)(equals - argument));
    return load_all(f, l, o, argument);
}

/* ------------------------------------------------------------------ made-up values */
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

static int range_of(const options *o, const sonde_type_info *info, range *r)
{
    *r = usual_range(info);
    for (size_t i = 0; i < o->ranges.n; i++) {
        const char *item = o->ranges.items[i], *equals = strrchr(item, '=');
        const size_t n = (size_t)(equals - item);
        if (strlen(info->name) != n || strncmp(info->name, item, n) != 0)
            continue;
        const range most = limits(info->dtype);
        char extra;
        if (sscanf(equals + 1, "%lf:%lf%c", &r->min, &r->max, &extra) != 2 || !(r->min <= r->max))
            return fail_usage("range '%s' is not of the form INPUT=MIN:MAX", item);
        if (r->min < most.min || r->max > most.max)
            return fail_usage("range '%s' does not fit %s", item, sonde_dtype_text(info->dtype));
    }
    return EXIT_OK;
}

static void shape_of(const loaded *l, const options *o, const sonde_type_info *info, int64_t *dims)
{
    for (int k = 0; k < info->rank; k++) {
        int64_t asked = -1;
        const bool said = size_of_dim(l, o, info->name, info->dim_names[k], k, &asked);
        if (info->dims[k] >= 0) {
            dims[k] = info->dims[k];
            continue;
        }
        dims[k] = said ? asked : 1;
        if (said || o->quiet)
            continue;
        if (info->dim_names[k])
            warn("dimension '%s' of input '%s' is not set, using 1; -s %s=N sets it",
                 info->dim_names[k], info->name, info->dim_names[k]);
        else
            warn("dimension %d of input '%s' is not set, using 1; -s %s.%d=N sets it", k,
                 info->name, info->name, k);
    }
}

static int make_tensor(const loaded *l, const options *o, const sonde_type_info *info,
                       uint64_t *random, sonde_value **out)
{
    int64_t dims[64];
    if (info->rank < 0 || info->rank > 64)
        return fail("the shape of input '%s' is not known; give it a value with -i %s=FILE",
                    info->name, info->name);
    range r = {0, 0, true};
    const int code = range_of(o, info, &r);
    if (code)
        return code;
    shape_of(l, o, info, dims);
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

static int make_value(const loaded *l, const options *o, const sonde_type_info *info,
                      uint64_t *random, sonde_value **out)
{
    sonde_error err;
    switch (info->kind) {
    case SONDE_KIND_TENSOR:
        return make_tensor(l, o, info, random, out);
    case SONDE_KIND_SEQUENCE:
        return sonde_sequence_create(l->context, NULL, 0, out, &err) ? fail("%s", err.message)
                                                                     : EXIT_OK;
    case SONDE_KIND_OPTIONAL:
        return sonde_optional_create(l->context, NULL, out, &err) ? fail("%s", err.message)
                                                                  : EXIT_OK;
    default:
        return fail("input '%s' is %s; give it a value with -i %s=FILE", info->name, info->text,
                    info->name);
    }
}

/* ------------------------------------------------------------------ all of them */
static int ranges_check(const loaded *l, const options *o)
{
    for (size_t i = 0; i < o->ranges.n; i++) {
        const char *item = o->ranges.items[i], *equals = strrchr(item, '=');
        size_t index = 0;
        if (!equals)
            return fail_usage("range '%s' is not of the form INPUT=MIN:MAX", item);
        if (!find_input(l, item, (size_t)(equals - item), &index))
            return no_such_input(l, item, (size_t)(equals - item));
    }
    return EXIT_OK;
}

int feeds_make(feeds *f, const loaded *l, const options *o)
{
    const size_t n = sonde_session_input_count(l->session);
    *f = (feeds){.names = need(calloc(n + 1, sizeof *f->names)),
                 .values = need(calloc(n + 1, sizeof *f->values)),
                 .n = n};
    for (size_t i = 0; i < n; i++)
        f->names[i] = sonde_session_input_name(l->session, i);
    int code = sizes_check(l);
    if (!code)
        code = ranges_check(l, o);
    for (size_t i = 0; i < o->inputs.n && !code; i++)
        code = load_argument(f, l, o, o->inputs.items[i]);
    uint64_t random = (uint64_t)o->seed * 0xD1342543DE82EF95u + 1;
    size_t kept = 0;
    for (size_t i = 0; i < n && !code; i++) {
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        sonde_error err;
        if (sonde_session_input_info(l->session, i, &info, &err))
            code = fail("%s", err.message);
        else if (!f->values[i] && !info.optional_input)
            code = make_value(l, o, &info, &random, &f->values[i]);
        if (!code && f->values[i]) { /* inputs with defaults stay out unless given */
            sonde_value *v = f->values[i];
            f->values[i] = NULL;
            f->names[kept] = f->names[i];
            f->values[kept++] = v;
        }
    }
    if (!code)
        f->n = kept;
    return code;
}

void feeds_free(feeds *f)
{
    for (size_t i = 0; i < f->n; i++)
        sonde_value_release(f->values[i]);
    free((void *)f->names);
    free(f->values);
    *f = (feeds){.n = 0};
}
