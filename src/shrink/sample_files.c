/* SPDX-License-Identifier: Apache-2.0 */
/* Samples from files and folders: images, arrays, ONNX test data. Images and test data are read
 * when their turn comes. Folders are read in the order of names, so that the same folder gives the
 * same samples everywhere. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "shrink/samples.h"

enum { MOST_FILES = 1 << 20 };

typedef struct reading {
    sonde_samples *s;
    sn_arena *arena;
    sonde_samples_options o;
    sonde_error *err;
    sonde_image_options *image; /* of the image input, once it is known */
    const char *input;
    size_t batch; /* images at a time */
    bool many;    /* files of a folder */
} reading;

static bool ends_with(const char *text, const char *suffix)
{
    const size_t n = strlen(text), m = strlen(suffix);
    return n >= m && strcmp(text + n - m, suffix) == 0;
}

static bool is_image(const char *path)
{
    static const char *const suffixes[] = {".jpg", ".jpeg", ".png", ".ppm"};
    const size_t n = strlen(path);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (n >= strlen(suffixes[i]) &&
            strcasecmp(path + n - strlen(suffixes[i]), suffixes[i]) == 0)
            return true;
    return false;
}

static bool is_arrays(const char *path)
{
    return ends_with(path, ".npz") || ends_with(path, ".npy") || ends_with(path, ".safetensors");
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* ------------------------------------------------------------------ folders */
typedef struct names {
    SN_VEC(const char *) list; /* whole paths in the arena, sorted */
} names;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static sonde_status list_folder(reading *r, const char *folder, bool (*wanted)(const char *),
                                names *out)
{
    sn_allocator *alloc = &r->s->context->alloc;
    DIR *dir = opendir(folder);
    if (!dir)
        return sn_fail(r->err, SONDE_IO, "the folder '%.300s' cannot be read", folder);
    sonde_status st = SONDE_OK;
    for (struct dirent *e; st == SONDE_OK && (e = readdir(dir));) {
        if (e->d_name[0] == '.' || !wanted(e->d_name))
            continue;
        const char *path = sn_arena_printf(r->arena, "%s%s%s", folder,
                                           ends_with(folder, "/") ? "" : "/", e->d_name);
        if (!path || out->list.n >= MOST_FILES || !sn_vec_push(&out->list, alloc, path))
            st = sn_fail_memory(r->err, strlen(folder));
    }
    closedir(dir);
    if (st == SONDE_OK && out->list.n > 1)
        qsort((void *)out->list.data, out->list.n, sizeof *out->list.data, by_name);
    return st;
}

/* ------------------------------------------------------------------ files that cannot be read */
/* `st`: of reading a file. What to go on with: of many, one that cannot be read is skipped and
 * *skipped set. That memory ran out is no fault of the file. */
static sonde_status or_skip(reading *r, sonde_status st, bool *skipped)
{
    *skipped = r->many && st != SONDE_OK && st != SONDE_OUT_OF_MEMORY && st != SONDE_CANCELLED;
    if (!*skipped)
        return st;
    r->s->skipped++;
    sn_log_write(&r->s->context->core.log, SN_LOG_WARN, "%s; it is skipped", r->err->message);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ images */
/* The input that images go to, and how: the only one without a default, of rank 4. */
static sonde_status plan_images(reading *r, const char *path)
{
    const sonde_session *session = r->s->session;
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    size_t needed = 0;
    for (size_t i = 0; i < sonde_session_input_count(session); i++) {
        sonde_type_info one = SONDE_INIT(sonde_type_info);
        SN_TRY(sonde_session_input_info(session, i, &one, r->err));
        if (!one.optional_input && needed++ == 0)
            info = one;
    }
    sonde_image_options of_type = {.struct_size = sizeof of_type, .dtype = info.dtype};
    sonde_image_plan plan = {.struct_size = sizeof plan};
    if (needed != 1 || info.kind != SONDE_KIND_TENSOR || info.rank != 4 ||
        sonde_image_plan_get(&of_type, &plan, NULL) != SONDE_OK)
        return sn_fail(
            r->err, SONDE_INVALID_ARGUMENT,
            "'%.300s' is an image, but the model does not have exactly one input that is "
            "a tensor of numbers of rank 4; give the samples as .npz",
            path);
    sonde_image_options *image = SN_NEW(r->arena, sonde_image_options);
    if (!image)
        return sn_fail_memory(r->err, sizeof *image);
    if (r->o.image)
        memcpy(image, r->o.image,
               r->o.image->struct_size < sizeof *image ? r->o.image->struct_size : sizeof *image);
    image->struct_size = sizeof *image;
    image->dtype = info.dtype;
    image->nhwc = r->o.layout ? r->o.layout == 2 : info.dims[3] == 3 && info.dims[1] != 3;
    const int64_t height = info.dims[image->nhwc ? 1 : 2], width = info.dims[image->nhwc ? 2 : 3];
    if (height > 65536 || width > 65536)
        return sn_fail(r->err, SONDE_INVALID_ARGUMENT,
                       "input '%.200s' is %.200s, which is not the shape of an image", info.name,
                       info.text);
    image->height = height > 0 ? (int)height : image->height;
    image->width = width > 0 ? (int)width : image->width;
    float *numbers = SN_NEW_N(r->arena, float, 6);
    if (!numbers)
        return sn_fail_memory(r->err, 6 * sizeof *numbers);
    if (image->mean)
        image->mean = memcpy(numbers, image->mean, 3 * sizeof *numbers);
    if (image->deviation)
        image->deviation = memcpy(numbers + 3, image->deviation, 3 * sizeof *numbers);
    image->no_mmap = 1;
    r->image = image;
    r->input = info.name;
    r->batch = info.dims[0] > 1 ? (size_t)info.dims[0] : 1;
    return SONDE_OK;
}

/* Whether one of many can be decoded; it is read again when its turn comes. */
static sonde_status try_image(reading *r, const char *path, bool *skipped)
{
    sonde_value *v = NULL;
    *skipped = false;
    if (!r->many)
        return SONDE_OK;
    const sonde_status st = sonde_image_load(r->s->context, path, r->image, &v, r->err);
    sonde_value_release(v);
    return or_skip(r, st, skipped);
}

static sonde_status push_images(reading *r, const char **paths)
{
    for (size_t k = 0; k < r->batch; k++) {
        const char *own = sn_arena_strdup(r->arena, paths[k]);
        if (!own)
            return sn_fail_memory(r->err, strlen(paths[k]));
        paths[k] = own;
    }
    const sn_sample_source source = {
        .paths = paths, .n_paths = r->batch, .image = r->image, .input = r->input, .count = 1};
    return sn_samples_push(r->s, &source, r->err);
}

static sonde_status add_images(reading *r, const char *const *paths, size_t n)
{
    const char **batch = NULL;
    size_t waiting = 0, pushed = 0;
    if (!r->image)
        SN_TRY(plan_images(r, paths[0]));
    for (size_t i = 0; i < n && !sn_samples_are_enough(r->s); i++) {
        bool skipped;
        SN_TRY(try_image(r, paths[i], &skipped));
        if (skipped)
            continue;
        if (!waiting && !(batch = SN_NEW_N(r->arena, const char *, r->batch)))
            return sn_fail_memory(r->err, r->batch * sizeof *batch);
        batch[waiting++] = paths[i];
        if (waiting < r->batch)
            continue;
        SN_TRY(push_images(r, batch));
        waiting = 0;
        pushed++;
    }
    if (!pushed && waiting)
        return sn_fail(r->err, SONDE_INVALID_ARGUMENT,
                       "there are %zu images, but the model takes %zu at a time", waiting,
                       r->batch);
    r->s->left_over += waiting;
    return SONDE_OK;
}

/* Several images of batch 1 as one tensor. */
static sonde_status stack(sonde_context *c, sonde_value *const *parts, size_t n, sonde_value **out,
                          sonde_error *err)
{
    const size_t each = sonde_tensor_bytes(parts[0]), rank = sonde_tensor_rank(parts[0]);
    int64_t dims[SN_MAX_RANK];
    memcpy(dims, sonde_tensor_dims(parts[0]), rank * sizeof *dims);
    dims[0] = (int64_t)n;
    SN_TRY(
        sonde_tensor_create(c, sonde_tensor_dtype(parts[0]), dims, rank, NULL, each * n, out, err));
    for (size_t i = 0; i < n; i++)
        memcpy((char *)sonde_tensor_data(*out) + i * each, sonde_tensor_data(parts[i]), each);
    return SONDE_OK;
}

static sonde_status read_images(const sonde_samples *s, const sn_sample_source *source,
                                sonde_value **v, sonde_error *err)
{
    sonde_context *c = s->context;
    if (source->n_paths == 1)
        return sonde_image_load(c, source->paths[0], source->image, v, err);
    const size_t bytes = source->n_paths * sizeof(sonde_value *);
    sonde_value **parts = sn_alloc_zero(&c->alloc, bytes);
    if (!parts)
        return sn_fail_memory(err, bytes);
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < source->n_paths && st == SONDE_OK; i++)
        st = sonde_image_load(c, source->paths[i], source->image, &parts[i], err);
    if (st == SONDE_OK)
        st = stack(c, parts, source->n_paths, v, err);
    for (size_t i = 0; i < source->n_paths; i++)
        sonde_value_release(parts[i]);
    sn_free(&c->alloc, parts, bytes);
    return st;
}

/* ------------------------------------------------------------------ test data */
static sonde_status try_test_data(reading *r, size_t input, const char *path, bool *skipped)
{
    const sonde_session *session = r->s->session;
    sonde_value *v = NULL;
    const sonde_status st =
        sonde_value_load_for(session, sonde_session_input_name(session, input), path, &v, r->err);
    sonde_value_release(v);
    return or_skip(r, st, skipped);
}

/* input_0.pb, input_1.pb … of one folder: one sample. */
static sonde_status add_test_data(reading *r, const char *folder)
{
    const size_t n = sonde_session_input_count(r->s->session);
    const char **paths = SN_NEW_N(r->arena, const char *, n + 1);
    size_t *inputs = SN_NEW_N(r->arena, size_t, n + 1);
    sn_sample_source source = {.paths = paths, .inputs = inputs, .count = 1};
    if (!paths || !inputs)
        return sn_fail_memory(r->err, n * sizeof *paths);
    for (size_t i = 0; i < n; i++) {
        const char *path = sn_arena_printf(r->arena, "%s/input_%zu.pb", folder, i);
        if (!path)
            return sn_fail_memory(r->err, strlen(folder));
        if (!is_there(path))
            continue;
        paths[source.n_paths] = path;
        inputs[source.n_paths++] = i;
        if (!r->many)
            continue;
        bool skipped;
        SN_TRY(try_test_data(r, i, path, &skipped));
        if (skipped)
            return SONDE_OK;
    }
    return sn_samples_push(r->s, &source, r->err);
}

static sonde_status read_test_data(const sonde_samples *s, const sn_sample_source *source, size_t k,
                                   sonde_value_set *out, sonde_error *err)
{
    const sonde_session *session = s->session;
    const char *name = sonde_session_input_name(session, source->inputs[k]);
    sonde_value *v = NULL;
    SN_TRY(sonde_value_load_for(session, name, source->paths[k], &v, err));
    const sonde_status st = sn_api_set_add(out, name, v, err);
    if (st != SONDE_OK)
        sonde_value_release(v);
    return st;
}

static sonde_status read_files(const sonde_samples *s, const sn_sample_source *source,
                               sonde_value_set *out, sonde_error *err)
{
    if (!source->image) {
        for (size_t k = 0; k < source->n_paths; k++)
            SN_TRY(read_test_data(s, source, k, out, err));
        return SONDE_OK;
    }
    sonde_value *v = NULL;
    SN_TRY(read_images(s, source, &v, err));
    const sonde_status st = sn_api_set_add(out, source->input, v, err);
    if (st != SONDE_OK)
        sonde_value_release(v);
    return st;
}

/* ------------------------------------------------------------------ paths */
/* The name of the only input without a default; NULL: there is not exactly one. */
static const char *only_input(const sonde_session *session)
{
    const char *name = NULL;
    for (size_t i = 0; i < sonde_session_input_count(session); i++) {
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        if (sonde_session_input_info(session, i, &info, NULL) || info.optional_input)
            continue;
        if (name)
            return NULL;
        name = info.name;
    }
    return name;
}

/* The one value of an .npy file has no name: it belongs to the only input. */
static sonde_status name_array(reading *r, sonde_value_set *from, sonde_value_set **set)
{
    const char *name = only_input(r->s->session);
    if (!name || sonde_value_set_count(from) != 1)
        return sn_fail(
            r->err, SONDE_INVALID_ARGUMENT,
            "an .npy file is the array of one input, but the model does not have exactly "
            "one without a default; give the samples as .npz");
    SN_TRY(sn_api_set_new(r->s->context, set, r->err));
    sonde_value *v = sonde_value_retain(sonde_value_set_value(from, 0));
    const sonde_status st = sn_api_set_add(*set, name, v, r->err);
    if (st != SONDE_OK) {
        sonde_value_release(v);
        sonde_value_set_release(*set);
    }
    return st;
}

/* What an archive claims to contain, before any of it is unpacked. */
typedef struct sizing {
    reading *r;
    size_t count; /* of samples, so far */
    const char *first;
    sonde_status status;
} sizing;

static int fits(void *user, const char *name, const int64_t *dims, size_t rank)
{
    sizing *z = user;
    if (z->status == SONDE_OK && *name)
        z->status =
            sn_samples_fit(z->r->s, name, dims, rank, &z->first, &z->count, z->r->arena, z->r->err);
    return z->status == SONDE_OK;
}

/* *set stays NULL where the file was skipped. */
static sonde_status load_arrays(reading *r, const char *path, sonde_value_set **set)
{
    sizing z = {.r = r, .count = 1, .status = SONDE_OK};
    const sonde_load_options o = {
        .struct_size = sizeof o, .no_mmap = 1, .wants = fits, .wants_user = &z};
    sonde_value_set *loaded = NULL;
    bool skipped;
    SN_TRY(or_skip(r, sonde_values_load_with(r->s->context, path, &o, &loaded, r->err), &skipped));
    if (skipped)
        return SONDE_OK;
    if (z.status != SONDE_OK) {
        sonde_value_set_release(loaded);
        sn_error_prefix(r->err, "'%.300s'", path);
        return z.status;
    }
    if (!ends_with(path, ".npy")) {
        *set = loaded;
        return SONDE_OK;
    }
    const sonde_status st = name_array(r, loaded, set);
    sonde_value_set_release(loaded);
    if (st != SONDE_OK)
        sn_error_prefix(r->err, "'%.300s'", path);
    return st;
}

static sonde_status add_arrays(reading *r, const char *path)
{
    sonde_value_set *set = NULL;
    SN_TRY(load_arrays(r, path, &set));
    if (!set)
        return SONDE_OK;
    const sonde_status st = sn_samples_push_set(r->s, set, false, r->err);
    if (st != SONDE_OK)
        sn_error_prefix(r->err, "'%.300s'", path);
    return st;
}

static bool is_test_set(const char *name)
{
    return strncmp(name, "test_data_set_", 14) == 0;
}

static sonde_status add_each(reading *r, const names *found, bool (*is_kind)(const char *))
{
    if (is_kind == is_image)
        return add_images(r, found->list.data, found->list.n);
    for (size_t i = 0; i < found->list.n && !sn_samples_are_enough(r->s); i++)
        SN_TRY(is_kind == is_arrays ? add_arrays(r, found->list.data[i])
                                    : add_test_data(r, found->list.data[i]));
    return SONDE_OK;
}

static sonde_status add_folder(reading *r, const char *folder)
{
    static bool (*const kinds[])(const char *) = {is_image, is_arrays, is_test_set};
    const char *first = sn_arena_printf(r->arena, "%s/input_0.pb", folder);
    if (!first)
        return sn_fail_memory(r->err, strlen(folder));
    if (is_there(first))
        return add_test_data(r, folder);
    names found = {.list = {0}};
    sonde_status st = SONDE_OK;
    bool any = false;
    const size_t sources = r->s->sources.n, skipped = r->s->skipped;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && st == SONDE_OK && !any; k++) {
        found.list.n = 0;
        st = list_folder(r, folder, kinds[k], &found);
        any = found.list.n > 0;
        r->many = any;
        if (st == SONDE_OK && any)
            st = add_each(r, &found, kinds[k]);
    }
    const size_t all = found.list.n;
    sn_vec_free(&found.list, &r->s->context->alloc);
    if (st == SONDE_OK && r->s->skipped > skipped && r->s->sources.n == sources)
        return sn_fail(r->err, SONDE_INVALID_ARGUMENT,
                       "none of the %zu samples in '%.300s' can be read", all, folder);
    if (st == SONDE_OK && !any)
        return sn_fail(
            r->err, SONDE_NOT_FOUND,
            "'%.300s' has no samples: neither images (.jpg, .png, .ppm) nor .npz or .npy "
            "files nor ONNX test data (input_0.pb, test_data_set_*)",
            folder);
    return st;
}

sonde_status sonde_samples_add_path(sonde_samples *samples, const char *path,
                                    const sonde_samples_options *options, sonde_error *err)
{
    SN_REQUIRE(samples, err);
    SN_REQUIRE(path, err);
    reading r = {.s = samples, .arena = &samples->arena, .err = err};
    SN_OPTIONS(r.o, options, err);
    if (!is_there(path))
        return sn_fail(err, SONDE_NOT_FOUND, "'%.300s' does not exist", path);
    if (sn_samples_are_enough(samples))
        return SONDE_OK;
    if (is_folder(path))
        return add_folder(&r, path);
    if (is_image(path))
        return add_images(&r, &path, 1);
    if (is_arrays(path))
        return add_arrays(&r, path);
    return sn_fail(
        err, SONDE_INVALID_ARGUMENT,
        "'%.300s' is not a file of samples: .npz, .npy, .safetensors, an image, or a folder of "
        "images, of such files or of ONNX test data",
        path);
}

/* ------------------------------------------------------------------ one sample */
static sonde_status get_set(const sonde_samples *s, const sn_sample_source *source, size_t index,
                            sonde_value_set *out, sonde_error *err)
{
    if (source->paths)
        return read_files(s, source, out, err);
    if (!source->whole)
        return sn_samples_cut(s, source->set, index, out, err);
    for (size_t i = 0; i < sonde_value_set_count(source->set); i++) {
        sonde_value *v = sonde_value_retain(sonde_value_set_value(source->set, i));
        const sonde_status st = sn_api_set_add(out, sonde_value_set_name(source->set, i), v, err);
        if (st != SONDE_OK) {
            sonde_value_release(v);
            return st;
        }
    }
    return SONDE_OK;
}

sonde_status sonde_samples_get(const sonde_samples *samples, size_t index, sonde_value_set **set,
                               sonde_error *err)
{
    SN_REQUIRE(set, err);
    *set = NULL;
    SN_REQUIRE(samples, err);
    size_t k = 0, at = index;
    while (k < samples->sources.n && at >= samples->sources.data[k].count)
        at -= samples->sources.data[k++].count;
    if (k == samples->sources.n || index >= samples->most)
        return sn_fail(err, SONDE_NOT_FOUND, "there are %zu samples, no sample %zu",
                       sonde_samples_count(samples), index);
    sonde_value_set *made = NULL;
    SN_TRY(sn_api_set_new(samples->context, &made, err));
    const sonde_status st = get_set(samples, &samples->sources.data[k], at, made, err);
    if (st == SONDE_OK)
        *set = made;
    else
        sonde_value_set_release(made);
    return st;
}
