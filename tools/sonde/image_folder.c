/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of images as the only -i: one set of inputs for each image, which runs take in turn. The
 * same for run, profile and bench; where one set is enough, the first image. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

enum { MOST_IMAGES = 64 }; /* more would not fit into caches and change what is measured */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_test_data(const char *folder)
{
    char *first = text_of("%s/input_0.pb", folder);
    const bool found = is_file(first);
    free(first);
    return found;
}

int image_folder(const run_setup *s, list *images)
{
    const input_options *o = &s->inputs;
    const char *folder = o->inputs.n == 1 ? o->inputs.items[0] : NULL;
    *images = (list){.n = 0};
    if (!folder || !is_folder(folder) || is_test_data(folder))
        return EXIT_OK;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (is_image(e->d_name))
            list_add(images,
                     text_of("%s%s%s", folder, ends_with(folder, "/") ? "" : "/", e->d_name));
    if (dir)
        closedir(dir);
    if (!images->n)
        return EXIT_OK;
    qsort((void *)images->items, images->n, sizeof *images->items, by_name);
    if (images->n > MOST_IMAGES && !s->common.quiet)
        warn("'%s' has %zu images; the first %d by name are used", folder, images->n, MOST_IMAGES);
    for (; images->n > MOST_IMAGES; images->n--)
        free((void *)(uintptr_t)images->items[images->n - 1]);
    return o->batch_size > 1
               ? fail_usage("the images of a folder run one at a time; remove --batch-size")
               : EXIT_OK;
}

void print_skipped(size_t skipped, size_t all, const char *what)
{
    if (!skipped)
        return;
    printf("%s that cannot be read and were skipped: %zu", what, skipped);
    if (all)
        printf(" of %zu", all);
    printf("\n");
}

int none_readable(size_t all, const char *what, const char *folder)
{
    return all == 1 ? fail("the only one of the %s in '%s' cannot be read", what, folder)
                    : fail("none of the %zu %s in '%s' can be read", all, what, folder);
}

int feeds_make_one(feeds *f, const loaded *l, const run_setup *s)
{
    *f = (feeds){.n = 0};
    run_setup one = *s;
    list images;
    int code = image_folder(s, &images);
    if (!code && !images.n)
        code = feeds_make(f, l, s);
    one.inputs.one_of_many = true;
    one.inputs.skip_silently = s->common.quiet;
    for (size_t i = 0; i < images.n && code == (i ? FEEDS_UNREADABLE : EXIT_OK); i++) {
        one.inputs.inputs = (list){.items = &images.items[i], .n = 1};
        feeds_free(f);
        code = feeds_make(f, l, &one);
    }
    if (code == FEEDS_UNREADABLE)
        code = none_readable(images.n, "images", s->inputs.inputs.items[0]);
    list_free_texts(&images);
    return code;
}
