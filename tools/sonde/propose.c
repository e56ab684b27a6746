/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that fit. A symbolic dimension that nobody sets is 1, which is too small for models with
 * convolutions or pools over it, and wrong for those that divide it into rows. What a model wants
 * is in none of its types, so sizes are tried: binding a session computes shapes and nothing else.
 * All dimensions alike come first, as most models take that, then images apart from the rest, then
 * every combination of a few sizes. */
#include <stdlib.h>
#include <string.h>

#include "sonde/experimental/inspect.h"
#include "tool.h"

enum {
    MOST_TRIES = 1000,
    MOST_MS = 10000,         /* of a large model that nothing fits */
    MOST_ELEMENTS = 1 << 24, /* of an input: larger ones are no proposal */
    MOST_DIMS = 16
};

typedef struct free_dim {
    char *key; /* what -s calls it: "height", "x.2" */
    bool batch, image;
    int64_t size;
} free_dim;

typedef struct search {
    const loaded *l;
    loaded with;     /* the same with more sizes */
    run_setup setup; /* quiet, without files */
    free_dim dims[MOST_DIMS];
    size_t n;
    size_t tries;
    double start_ms;
} search;

/* ------------------------------------------------------------------ what is free */
static bool input_info(const search *s, size_t i, sonde_type_info *info)
{
    *info = (sonde_type_info)SONDE_INIT(sonde_type_info);
    return !sonde_session_input_info(s->l->session, i, info, NULL) && !info->optional_input;
}

/* The last two of [N, C, H, W], or the two before the last of [N, H, W, C]. */
static bool is_image_dim(const sonde_type_info *info, int dim)
{
    if (info->rank != 4 || dim == 0)
        return false;
    const bool last = info->dims[3] >= 1 && info->dims[3] <= 4 && info->dims[1] < 0;
    return last ? dim < 3 : dim > 1;
}

static bool is_batch_dim(const char *name, int dim)
{
    return dim == 0 && (!name || strncmp(name, "batch", 5) == 0 || strcmp(name, "N") == 0);
}

static bool add_dim(search *s, const sonde_type_info *info, int dim)
{
    const char *name = info->dim_names[dim];
    char *key = name ? text_of("%s", name) : text_of("%s.%d", info->name, dim);
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->dims[i].key, key) == 0) {
            free(key);
            return true;
        }
    if (s->n == MOST_DIMS) {
        free(key);
        return false;
    }
    s->dims[s->n++] = (free_dim){
        .key = key, .batch = is_batch_dim(name, dim), .image = is_image_dim(info, dim), .size = 1};
    return true;
}

/* The sizes of this try, behind those that were given. */
static void set_sizes(search *s)
{
    list_free_texts(&s->with.sizes);
    for (size_t i = 0; i < s->l->sizes.n; i++)
        list_add(&s->with.sizes, text_of("%s", s->l->sizes.items[i]));
    for (size_t i = 0; i < s->n; i++)
        list_add(&s->with.sizes, text_of("%s=%lld", s->dims[i].key, (long long)s->dims[i].size));
}

/* Names such as "past + sequence" are sums of others where these are dimensions, too: `sums` says
 * whether it is their turn. False: some input has no shape to make up. */
static bool find_dims(search *s, bool sums)
{
    sonde_type_info info;
    set_sizes(s);
    for (size_t i = 0; i < sonde_session_input_count(s->l->session); i++) {
        if (!input_info(s, i, &info))
            continue;
        if (info.kind == SONDE_KIND_MAP || (info.kind == SONDE_KIND_TENSOR && info.rank < 0))
            return false;
        for (int k = 0; k < info.rank && info.kind == SONDE_KIND_TENSOR; k++) {
            const char *name = info.dim_names[k];
            int64_t size;
            if (info.dims[k] >= 0 || (name && strstr(name, " + ") != NULL) != sums ||
                size_of_dim(&s->with, &s->setup.inputs, info.name, name, k, &size))
                continue;
            if (!add_dim(s, &info, k))
                return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------ one try */
/* A tensor of these sizes. Numbers that are no sizes themselves need no contents. */
static bool make_input(search *s, const sonde_type_info *info, sonde_value **value)
{
    int64_t dims[64];
    size_t count = 1;
    uint64_t random = 1;
    if (info->rank > 64)
        return false;
    for (int k = 0; k < info->rank && info->kind == SONDE_KIND_TENSOR; k++) {
        dims[k] = info->dims[k];
        if (dims[k] < 0 &&
            !size_of_dim(&s->with, &s->setup.inputs, info->name, info->dim_names[k], k, &dims[k]))
            dims[k] = 1;
        if (__builtin_mul_overflow(count, (size_t)dims[k], &count) || count > MOST_ELEMENTS)
            return false;
    }
    if (info->kind != SONDE_KIND_TENSOR || info->dtype != SONDE_DTYPE_F32)
        return !made_up_value(&s->with, &s->setup, info, &random, value);
    return !sonde_tensor_create(s->l->context, info->dtype, dims, (size_t)info->rank, NULL,
                                count * sizeof(float), value, NULL);
}

static bool fits(search *s)
{
    const size_t n = sonde_session_input_count(s->l->session);
    const char **names = need(calloc(n + 1, sizeof *names));
    sonde_value **values = need(calloc(n + 1, sizeof(sonde_value *)));
    sonde_inspection *look = NULL;
    sonde_type_info info;
    size_t made = 0;
    bool fine = true;
    set_sizes(s);
    s->tries++;
    for (size_t i = 0; i < n && fine; i++)
        if (input_info(s, i, &info)) {
            names[made] = sonde_session_input_name(s->l->session, i);
            fine = make_input(s, &info, &values[made]);
            made += fine;
        }
    fine = fine && made && !sonde_inspect_session(s->l->session, names, values, made, &look, NULL);
    sonde_inspection_release(look);
    for (size_t i = 0; i < made; i++)
        sonde_value_release(values[i]);
    free((void *)names);
    free(values);
    return fine;
}

static bool may_go_on(const search *s)
{
    return s->tries < MOST_TRIES && now_ms() - s->start_ms < (double)MOST_MS && !interrupted();
}

/* ------------------------------------------------------------------ what is tried */
static const int64_t usual[] = {8,    16,   32,   48,    64,    80,    96,  112, 128, 160,
                                192,  224,  256,  320,   384,   448,   512, 640, 768, 1024,
                                2048, 4096, 8192, 16384, 32768, 65536, 2,   3,   4,   5,
                                6,    7,    10,   12,    20,    24,    28,  1000};
static const int64_t image_sizes[] = {32, 48, 64, 224, 320, 640};
static const int64_t few[] = {1, 2, 4, 8, 16, 32, 48, 64, 128, 224, 320, 640};
enum {
    USUAL = sizeof usual / sizeof *usual,
    IMAGE_SIZES = sizeof image_sizes / sizeof *image_sizes,
    FEW = sizeof few / sizeof *few
};

/* Images of a few pixels fit many models and are sensible for none. */
static bool try_alike(search *s, int64_t image, int64_t other, int64_t batch)
{
    for (size_t i = 0; i < s->n; i++) {
        free_dim *d = &s->dims[i];
        d->size = d->batch ? batch : d->image ? image : other;
    }
    return fits(s);
}

static bool all_alike(search *s, int64_t batch)
{
    for (size_t i = 0; i < USUAL && may_go_on(s); i++)
        if (try_alike(s, usual[i] < 32 ? 32 : usual[i], usual[i], batch))
            return true;
    return false;
}

static bool images_apart(search *s)
{
    size_t images = 0, others = 0;
    for (size_t i = 0; i < s->n; i++) {
        images += s->dims[i].image;
        others += !s->dims[i].image && !s->dims[i].batch;
    }
    for (size_t i = 0; i < IMAGE_SIZES && images && others; i++)
        for (size_t k = 0; k < FEW && may_go_on(s); k++)
            if (try_alike(s, image_sizes[i], few[k], 1))
                return true;
    return false;
}

/* Every combination, counted like a number whose last digit changes first. */
static bool combinations(search *s, bool batches)
{
    size_t digit[MOST_DIMS] = {0};
    while (may_go_on(s)) {
        for (size_t i = 0; i < s->n; i++)
            s->dims[i].size = few[digit[i]];
        if (fits(s))
            return true;
        size_t k = s->n;
        while (k > 0) {
            const bool fixed = s->dims[k - 1].batch && !batches;
            if (!fixed && ++digit[k - 1] < FEW)
                break;
            digit[--k] = 0;
        }
        if (!k)
            return false;
    }
    return false;
}

/* ------------------------------------------------------------------ the result */
static bool find(search *s)
{
    bool batch = false;
    for (size_t i = 0; i < s->n; i++)
        batch |= s->dims[i].batch;
    if (!s->n || try_alike(s, 1, 1, 1)) /* sizes of 1 fit: they are not what is wrong */
        return false;
    return all_alike(s, 1) || images_apart(s) || combinations(s, false) ||
           (batch && (all_alike(s, 8) || combinations(s, true)));
}

list sizes_that_fit(const loaded *l, const run_setup *setup)
{
    list found = {.n = 0};
    if (!l->session || setup->inputs.inputs.n)
        return found; /* files have their sizes */
    search s = {.l = l, .with = *l, .setup = *setup, .start_ms = now_ms()};
    s.with.sizes = (list){.n = 0};
    s.setup.common.quiet = true;
    if (find_dims(&s, false) && find_dims(&s, true) && find(&s))
        for (size_t i = 0; i < s.n; i++)
            if (s.dims[i].size != 1)
                list_add(&found, text_of("%s=%lld", s.dims[i].key, (long long)s.dims[i].size));
    list_free_texts(&s.with.sizes);
    for (size_t i = 0; i < s.n; i++)
        free(s.dims[i].key);
    return found;
}

char *sizes_as_options(const list *sizes)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=.,:/@%";
    text t = {.n = 0};
    for (size_t i = 0; i < sizes->n; i++) {
        char *shown = printable(sizes->items[i]);
        const char *quote = strspn(shown, plain) == strlen(shown) ? ""
                            : strchr(shown, '\'')                 ? "\""
                                                                  : "'";
        text_add(&t, "%s-s %s%s%s", i ? " " : "", quote, shown, quote);
        free(shown);
    }
    return t.data;
}

int fail_with_sizes(const loaded *l, const run_setup *s, const char *message)
{
    list sizes = sizes_that_fit(l, s);
    if (!sizes.n)
        return fail("%s", message);
    char *options = sizes_as_options(&sizes);
    const int code =
        fail("%s; dimensions that are not set are 1, but these sizes fit: %s", message, options);
    free(options);
    list_free_texts(&sizes);
    return code;
}
