/* SPDX-License-Identifier: Apache-2.0 */
/* Samples for a comparison. A folder is listed once, and each of its files is read when its turn
 * comes. Arrays with one dimension more than their input, or with a multiple of its fixed first
 * one, are cut along axis 0. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "compare/parts.h"

/* ------------------------------------------------------------------ folders */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has_test_data(const char *folder)
{
    char *first = text_of("%s/input_0.pb", folder);
    const bool found = is_file(first);
    free(first);
    return found;
}

static bool is_sample(const char *path)
{
    return is_image(path) || ends_with(path, ".npz") || ends_with(path, ".safetensors") ||
           (is_folder(path) && has_test_data(path));
}

static int list_folder(samples *s, const char *folder, int64_t most)
{
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char *path = text_of("%s%s%s", folder, ends_with(folder, "/") ? "" : "/", e->d_name);
        if (e->d_name[0] != '.' && is_sample(path))
            list_add(&s->files, path);
        else
            free(path);
    }
    if (dir)
        closedir(dir);
    if (!s->files.n)
        return fail("'%s' contains no samples: no images, no .npz or .safetensors files and no "
                    "folders with input_0.pb",
                    folder);
    qsort((void *)s->files.items, s->files.n, sizeof *s->files.items, by_name);
    s->n = most && (size_t)most < s->files.n ? (size_t)most : s->files.n;
    return EXIT_OK;
}

/* ------------------------------------------------------------------ arrays */
/* How the value of an input is cut. */
typedef struct cutting {
    size_t parts;
    int64_t each; /* size of a part on axis 0; 0: axis 0 counts the parts, and goes; -1: not cut */
} cutting;

static cutting cutting_of(const loaded *l, const char *name, const sonde_value *v)
{
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    info.rank = -1;
    for (size_t i = 0; i < sonde_session_input_count(l->session); i++)
        if (strcmp(sonde_session_input_name(l->session, i), name) == 0)
            (void)sonde_session_input_info(l->session, i, &info, NULL);
    const int rank = (int)sonde_tensor_rank(v);
    if (sonde_value_kind(v) != SONDE_KIND_TENSOR || info.rank < 0 || rank < 1)
        return (cutting){1, -1};
    const int64_t n = sonde_tensor_dims(v)[0];
    if (rank == info.rank + 1)
        return (cutting){(size_t)n, 0};
    if (rank != info.rank || info.dims[0] < 1 || n <= info.dims[0] || n % info.dims[0] != 0)
        return (cutting){1, -1};
    return (cutting){(size_t)(n / info.dims[0]), info.dims[0]};
}

static int count_arrays(samples *s, int64_t most)
{
    size_t n = 1;
    for (size_t i = 0; i < s->whole.n; i++) {
        const size_t parts = cutting_of(s->model, s->whole.names[i], s->whole.values[i]).parts;
        if (parts == 0)
            return fail("the array for input '%s' has no samples", s->whole.names[i]);
        if (parts > 1 && n > 1 && parts != n)
            return fail("the array for input '%s' has %zu samples, another one has %zu",
                        s->whole.names[i], parts, n);
        n = parts > 1 ? parts : n;
    }
    s->n = most && (size_t)most < n ? (size_t)most : n;
    return EXIT_OK;
}

/* Sample `index` of an array; one that has a single sample gives it to all. */
static int cut(const samples *s, size_t i, size_t index, sonde_value **out)
{
    const char *name = s->whole.names[i];
    sonde_value *v = s->whole.values[i];
    const cutting c = cutting_of(s->model, name, v);
    const size_t rank = sonde_tensor_rank(v);
    int64_t dims[64];
    sonde_error err;
    if (c.each < 0) {
        *out = sonde_value_retain(v);
        return EXIT_OK;
    }
    if (sonde_tensor_dtype(v) == SONDE_DTYPE_STRING || rank > 64)
        return fail("the array for input '%s' cannot be cut into samples", name);
    const size_t bytes = sonde_tensor_bytes(v) / c.parts, at = c.parts > 1 ? index : 0;
    for (size_t k = 0; k < rank; k++)
        dims[k] = sonde_tensor_dims(v)[k];
    dims[0] = c.each;
    const bool deeper = c.each == 0;
    if (sonde_tensor_create(s->model->context, sonde_tensor_dtype(v), deeper ? dims + 1 : dims,
                            deeper ? rank - 1 : rank,
                            (const char *)sonde_tensor_data(v) + bytes * at, bytes, out, &err))
        return fail("%s", err.message);
    return EXIT_OK;
}

/* ------------------------------------------------------------------ all kinds */
int samples_open(samples *s, const loaded *l, const run_setup *setup, int64_t most)
{
    const list *inputs = &setup->inputs.inputs;
    *s = (samples){.model = l, .setup = setup};
    if (inputs->n == 1 && is_folder(inputs->items[0]) && !has_test_data(inputs->items[0]))
        return list_folder(s, inputs->items[0], most);
    if (!inputs->n) {
        s->made_up = true;
        s->n = most ? (size_t)most : 1;
        return EXIT_OK;
    }
    const int code = feeds_make(&s->whole, l, setup);
    return code ? code : count_arrays(s, most);
}

int samples_get(const samples *s, size_t index, feeds *f)
{
    run_setup one = *s->setup;
    *f = (feeds){.n = 0};
    one.common.quiet |= index > 0; /* said once */
    if (s->made_up) {
        one.inputs.seed += (int64_t)index;
        return feeds_make(f, s->model, &one);
    }
    if (s->files.n) {
        one.inputs.inputs = (list){.items = &s->files.items[index], .n = 1};
        return feeds_make(f, s->model, &one);
    }
    *f = (feeds){.names = need(calloc(s->whole.n + 1, sizeof *f->names)),
                 .values = need(calloc(s->whole.n + 1, sizeof *f->values)),
                 .n = s->whole.n};
    int code = EXIT_OK;
    for (size_t i = 0; i < f->n && !code; i++) {
        f->names[i] = s->whole.names[i];
        code = cut(s, i, index, &f->values[i]);
    }
    return code;
}

void samples_close(samples *s)
{
    list_free_texts(&s->files);
    if (s->whole.names)
        feeds_free(&s->whole);
    *s = (samples){.n = 0};
}
