/* SPDX-License-Identifier: Apache-2.0 */
/* Samples for a comparison. A folder is listed once, and each of its files is read when its turn
 * comes. Arrays are cut along axis 0 by sonde_samples, as those that a quantiser calibrates on. */
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

static int list_folder(samples *s, const char *folder)
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
    return EXIT_OK;
}

/* ------------------------------------------------------------------ arrays */
/* Neither an image nor test data, which are one sample each. */
static bool has_arrays(const char *path)
{
    return !is_image(path) && !is_folder(path);
}

/* The arrays of these -i options, and how many samples they carry. */
static int open_arrays(samples *s, const list *inputs, size_t *count)
{
    run_setup one = *s->setup;
    feeds f;
    sonde_error err;
    one.inputs.inputs = *inputs;
    one.inputs.samples = true;
    one.inputs.one_of_many = s->files.n > 0;
    one.inputs.skip_silently = s->setup->common.quiet;
    one.common.quiet |= s->said; /* what is made up is said once */
    sonde_samples_release(s->arrays);
    s->arrays = NULL;
    int code = feeds_make(&f, s->model, &one);
    if (!code && (sonde_samples_create(s->model->model, &s->arrays, &err) ||
                  sonde_samples_add_arrays(s->arrays, f.names, f.values, f.n, &err)))
        code = fail("%s", err.message);
    feeds_free(&f);
    s->said |= !code;
    *count = sonde_samples_count(s->arrays);
    return code;
}

static const char *input_named(const loaded *l, const char *name)
{
    for (size_t i = 0; i < sonde_session_input_count(l->session); i++)
        if (strcmp(sonde_session_input_name(l->session, i), name) == 0)
            return sonde_session_input_name(l->session, i);
    return name;
}

static int get_array(const samples *s, size_t index, feeds *f)
{
    sonde_value_set *set = NULL;
    sonde_error err;
    if (sonde_samples_get(s->arrays, index, &set, &err))
        return fail("%s", err.message);
    const size_t n = sonde_value_set_count(set);
    *f = (feeds){.names = need(calloc(n + 1, sizeof *f->names)),
                 .values = need(calloc(n + 1, sizeof *f->values)),
                 .n = n};
    for (size_t i = 0; i < n; i++) {
        f->names[i] = input_named(s->model, sonde_value_set_name(set, i));
        f->values[i] = sonde_value_retain(sonde_value_set_value(set, i));
    }
    sonde_value_set_release(set);
    return EXIT_OK;
}

/* ------------------------------------------------------------------ files of a folder */
static int open_file(samples *s, size_t file, size_t *count)
{
    const list one = {.items = &s->files.items[file], .n = 1};
    const int code = open_arrays(s, &one, count);
    s->open = code ? SIZE_MAX : file;
    return code;
}

/* The sample that an image or a folder of test data is. */
static int get_single(samples *s, size_t file, feeds *f)
{
    run_setup one = *s->setup;
    one.inputs.inputs = (list){.items = &s->files.items[file], .n = 1};
    one.inputs.one_of_many = true;
    one.inputs.skip_silently = s->setup->common.quiet;
    one.common.quiet |= s->said;
    const int code = feeds_make(f, s->model, &one);
    s->said |= !code;
    return code;
}

/* Files are read to know whether they can be, and those with arrays, how many samples they have,
 * until there are enough. Those that cannot be read leave the list. */
static int count_files(samples *s, size_t most)
{
    const size_t all = s->files.n;
    size_t kept = 0;
    s->counts = need(calloc(all, sizeof *s->counts));
    int code = EXIT_OK;
    for (size_t i = 0; i < all && s->n < most && !code; i++) {
        size_t count = 1;
        const char *file = s->files.items[i];
        s->files.items[i] = s->files.items[kept]; /* one that is skipped, or itself */
        s->files.items[kept] = file;
        if (has_arrays(file)) {
            code = open_file(s, kept, &count);
        } else {
            feeds f;
            code = get_single(s, kept, &f);
            feeds_free(&f);
        }
        if (code == FEEDS_UNREADABLE) {
            s->skipped++;
            code = EXIT_OK;
            continue;
        }
        s->n += count;
        s->counts[kept++] = count;
    }
    if (!code && !kept)
        code = none_readable(all, "samples", s->setup->inputs.inputs.items[0]);
    return code;
}

static int get_of_file(samples *s, size_t index, feeds *f)
{
    size_t file = 0, count;
    while (index >= s->counts[file])
        index -= s->counts[file++];
    if (has_arrays(s->files.items[file])) {
        const int code = s->open == file ? EXIT_OK : open_file(s, file, &count);
        return code ? code : get_array(s, index, f);
    }
    const int code = get_single(s, file, f);
    return code == FEEDS_UNREADABLE ? EXIT_ERROR : code; /* it could be read before */
}

/* ------------------------------------------------------------------ all kinds */
int samples_open(samples *s, const loaded *l, const run_setup *setup, int64_t most)
{
    const list *inputs = &setup->inputs.inputs;
    const size_t limit = most > 0 ? (size_t)most : SIZE_MAX;
    const bool folder = inputs->n == 1 && is_folder(inputs->items[0]);
    int code = EXIT_OK;
    *s = (samples){.model = l, .setup = setup, .open = SIZE_MAX};
    if (!inputs->n) {
        s->made_up = true;
        s->n = most > 0 ? (size_t)most : 1;
    } else if (folder && has_test_data(inputs->items[0])) {
        list_add(&s->files, text_of("%s", inputs->items[0]));
        code = count_files(s, limit);
    } else if (folder) {
        code = list_folder(s, inputs->items[0]);
        if (!code)
            code = count_files(s, limit);
    } else {
        code = open_arrays(s, inputs, &s->n);
    }
    s->n = s->n < limit ? s->n : limit;
    return code;
}

int samples_get(samples *s, size_t index, feeds *f)
{
    run_setup one = *s->setup;
    *f = (feeds){.n = 0};
    if (s->files.n)
        return get_of_file(s, index, f);
    if (!s->made_up)
        return get_array(s, index, f);
    one.inputs.seed += (int64_t)index;
    one.common.quiet |= index > 0;
    return feeds_make(f, s->model, &one);
}

void samples_close(samples *s)
{
    list_free_texts(&s->files);
    free(s->counts);
    sonde_samples_release(s->arrays);
    *s = (samples){.n = 0};
}
