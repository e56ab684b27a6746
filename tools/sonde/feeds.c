/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs: from files, images and folders where -i says so, else made up. */
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
    const int code = fail_usage("the model has no input '%.*s'; its inputs are: %s", (int)n, name,
                                t.n ? t.data : "none");
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
    static const char *const suffixes[] = {".jpg", ".jpeg", ".png", ".ppm"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (has_suffix(path, suffixes[i]))
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

int image_numbers(const input_options *o, sonde_image_options *image, float *numbers)
{
    if (o->image_layout && strcmp(o->image_layout, "nhwc") != 0 &&
        strcmp(o->image_layout, "nchw") != 0)
        return fail_usage("--image-layout is nchw or nhwc, not '%s'", o->image_layout);
    image->resize = o->image_resize > 65536 ? 65536 : (int)o->image_resize;
    image->bgr = o->image_bgr;
    image->no_normalize = o->image_raw;
    image->no_mmap = unmapped.no_mmap;
    int code = EXIT_OK;
    char extra;
    if (o->image_scale && (sscanf(o->image_scale, "%f%c", &image->scale, &extra) != 1 ||
                           !isfinite(image->scale) || image->scale == 0))
        return fail_usage("--image-scale takes a number other than 0, not '%s'", o->image_scale);
    if (o->image_mean && !(code = three(o->image_mean, "image-mean", numbers)))
        image->mean = numbers;
    if (!code && o->image_std && !(code = three(o->image_std, "image-std", numbers + 3)))
        image->deviation = numbers + 3;
    return code;
}

int image_plan(const loaded *l, const input_options *o, size_t index, const char *path,
               sonde_image_options *image, float *numbers)
{
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    sonde_error err;
    if (sonde_session_input_info(l->session, index, &info, &err))
        return fail("%s", err.message);
    sonde_image_plan plan = SONDE_INIT(sonde_image_plan);
    image->dtype = info.dtype;
    if (info.kind != SONDE_KIND_TENSOR || info.rank != 4 ||
        sonde_image_plan_get(image, &plan, &err))
        return fail("'%s' is an image, but input '%s' is %s, not a tensor of numbers of rank 4",
                    path, info.name, info.text);
    image->nhwc = info.dims[3] == 3 && info.dims[1] != 3;
    const int code = image_numbers(o, image, numbers);
    if (code)
        return code;
    if (o->image_layout)
        image->nhwc = strcmp(o->image_layout, "nhwc") == 0;
    int64_t size[2] = {224, 224};
    for (int k = 0; k < 2; k++) {
        const int dim = (image->nhwc ? 1 : 2) + k;
        if (info.dims[dim] >= 0)
            size[k] = info.dims[dim];
        else
            (void)size_of_dim(l, o, info.name, info.dim_names[dim], dim, &size[k]);
        if (size[k] < 1 || size[k] > 65536)
            return fail("input '%s' is %s, which is not the shape of an image", info.name,
                        info.text);
    }
    image->height = (int)size[0];
    image->width = (int)size[1];
    return EXIT_OK;
}

int file_unreadable(const input_options *o, sonde_status st, const sonde_error *err)
{
    if (!o->one_of_many || st == SONDE_OUT_OF_MEMORY)
        return fail("%s", err->message);
    if (!o->skip_silently)
        warn("%s; it is skipped", err->message);
    return FEEDS_UNREADABLE;
}

static int load_image(const loaded *l, const input_options *o, size_t index, const char *path,
                      sonde_value **out)
{
    sonde_image_options image = SONDE_INIT(sonde_image_options);
    float numbers[6];
    sonde_error err;
    const int code = image_plan(l, o, index, path, &image, numbers);
    if (code)
        return code;
    const sonde_status st = sonde_image_load(l->context, path, &image, out, &err);
    return st ? file_unreadable(o, st, &err) : EXIT_OK;
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

/* What an archive has is held against the inputs before any of it is unpacked. */
typedef struct asked {
    const loaded *l;
    const char *path;
    const size_t *of; /* the input that it is for; NULL: that of its name */
    bool samples;     /* axis 0 carries samples, which may be an axis more than the input has */
    int code;         /* EXIT_OK, or that of the message that was written */
} asked;

static bool has_shape(const asked *a, const sonde_type_info *info, const int64_t *dims, size_t rank)
{
    if (info->kind != SONDE_KIND_TENSOR || info->rank < 0)
        return true;
    const size_t own = (size_t)info->rank;
    const size_t more = a->samples && rank == own + 1;
    bool same = rank == own + more;
    for (size_t d = a->samples && !more; same && d < own; d++)
        same = info->dims[d] < 0 || info->dims[d] == dims[d + more];
    return same;
}

bool feeds_takes_shape(const sonde_type_info *input, const int64_t *dims, size_t rank)
{
    return has_shape(&(asked){.samples = false}, input, dims, rank);
}

static int is_input(void *user, const char *name, const int64_t *dims, size_t rank)
{
    asked *a = user;
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    size_t index = 0;
    if (a->code)
        return 0;
    if (a->of) {
        index = *a->of;
        name = sonde_session_input_name(a->l->session, index);
    }
    if (!a->of && !find_input(a->l, name, strlen(name), &index)) {
        a->code = no_such_input(a->l, name, strlen(name));
    } else if (!sonde_session_input_info(a->l->session, index, &info, NULL) &&
               !has_shape(a, &info, dims, rank)) {
        text shape = {.n = 0};
        text_add_shape(&shape, dims, rank);
        a->code = fail("'%s': input '%s' should be %s but has the shape %s", a->path, name,
                       info.text, shape.data);
        text_free(&shape);
    }
    return !a->code;
}

/* The one array of an archive that has samples for this input, whatever its name is there. */
static int load_samples(const loaded *l, const input_options *o, size_t index, const char *path,
                        sonde_value **out)
{
    sonde_value_set *set = NULL;
    sonde_error err;
    asked a = {.l = l, .path = path, .samples = true, .of = &index, .code = EXIT_OK};
    sonde_load_options how = unmapped;
    how.wants = is_input;
    how.wants_user = &a;
    const sonde_status st = sonde_values_load_with(l->context, path, &how, &set, &err);
    if (st)
        return file_unreadable(o, st, &err);
    const size_t n = sonde_value_set_count(set);
    if (!a.code && n != 1)
        a.code = fail("'%s' contains %zu values, expected one for '%s'", path, n,
                      sonde_session_input_name(l->session, index));
    else if (!a.code)
        *out = sonde_value_retain(sonde_value_set_value(set, 0));
    sonde_value_set_release(set);
    return a.code;
}

static int load_one(feeds *f, const loaded *l, const input_options *o, size_t index,
                    const char *path)
{
    sonde_value *v = NULL;
    sonde_error err;
    int code = EXIT_OK;
    if (is_image(path)) {
        code = load_image(l, o, index, path, &v);
    } else if (o->samples && !ends_with(path, ".npy") && !ends_with(path, ".pb")) {
        code = load_samples(l, o, index, path, &v);
    } else {
        const sonde_status st =
            sonde_value_load_for_with(l->session, f->names[index], path, &unmapped, &v, &err);
        code = st ? file_unreadable(o, st, &err) : EXIT_OK;
    }
    if (code)
        return code;
    put(&f->values[index], v);
    return EXIT_OK;
}

/* Values go to inputs of their names; a single value without one to the first free input. */
static int load_all(feeds *f, const loaded *l, const input_options *o, const char *path)
{
    size_t index = 0;
    if (is_image(path) || ends_with(path, ".npy") || ends_with(path, ".pb"))
        return first_free(f, &index)
                   ? load_one(f, l, o, index, path)
                   : fail("'%s' is not needed: all inputs already have a value", path);
    sonde_value_set *set = NULL;
    sonde_error err;
    asked a = {.l = l, .path = path, .samples = o->samples, .code = EXIT_OK};
    sonde_load_options how = unmapped;
    how.wants = is_input;
    how.wants_user = &a;
    const sonde_status st = sonde_values_load_with(l->context, path, &how, &set, &err);
    if (st)
        return file_unreadable(o, st, &err);
    if (a.code) {
        sonde_value_set_release(set);
        return a.code;
    }
    int code = sonde_value_set_count(set) ? EXIT_OK : fail("'%s' contains no arrays", path);
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
static int load_folder(feeds *f, const loaded *l, const input_options *o, const char *path)
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
               ? fail("'%s' contains no input_0.pb; a folder of images must be the only -i option",
                      path)
               : fail("'%s' contains neither images nor a file input_0.pb", path);
}

static int load_argument(feeds *f, const loaded *l, const input_options *o, const char *argument)
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

/* ------------------------------------------------------------------ all of them */
static int ranges_check(const loaded *l, const input_options *o)
{
    for (size_t i = 0; i < o->ranges.n; i++) {
        const char *item = o->ranges.items[i], *equals = strrchr(item, '=');
        size_t index = 0;
        if (!equals)
            return fail_usage("--range '%s' does not have the form INPUT=MIN:MAX", item);
        if (!find_input(l, item, (size_t)(equals - item), &index))
            return no_such_input(l, item, (size_t)(equals - item));
    }
    return EXIT_OK;
}

int feeds_make(feeds *f, const loaded *l, const run_setup *s)
{
    const input_options *o = &s->inputs;
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
            code = made_up_value(l, s, &info, &random, &f->values[i]);
        else if (f->values[i])
            code = sizes_fit(l, o, &info, f->values[i]);
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
