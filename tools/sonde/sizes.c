/* SPDX-License-Identifier: Apache-2.0 */
/* Who says how large a dimension is: -s, --batch-size and --seq-len, then the defaults a model
 * carries, which are those of the query for "zoo:NAME?dim=n". */
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static bool starts(const char *name, const char *word)
{
    return strncmp(name, word, strlen(word)) == 0;
}

/* Whether KEY of "KEY=N" names this dim. */
static bool key_names_dim(const char *key, size_t n, const char *input, const char *name, int dim)
{
    if (name && strlen(name) == n && strncmp(name, key, n) == 0)
        return true;
    const size_t prefix = strlen(input);
    if (n <= prefix + 1 || strncmp(key, input, prefix) != 0 || key[prefix] != '.')
        return false;
    const char *rest = key + prefix + 1;
    const size_t m = n - prefix - 1;
    if (name && strlen(name) == m && strncmp(name, rest, m) == 0)
        return true;
    char number[16];
    const int digits = snprintf(number, sizeof number, "%d", dim);
    return (size_t)digits == m && strncmp(number, rest, m) == 0;
}

/* A shortened word of -s: "seq" for the dim "sequence". */
static bool key_shortens_dim(const char *key, size_t n, const char *name)
{
    return name && n >= 3 && strlen(name) > n && strncmp(name, key, n) == 0;
}

static bool is_batch(const char *name, int dim)
{
    return name ? starts(name, "batch") || strcmp(name, "N") == 0 : dim == 0;
}

bool counts_samples(const loaded *l)
{
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    if (!sonde_session_input_count(l->session) ||
        sonde_session_input_info(l->session, 0, &info, NULL) || info.rank < 1)
        return false;
    return is_batch(info.dim_names[0], 0) && (info.dim_names[0] || info.rank > 1);
}

/* What a decoder has read before is not what it is given now. */
static bool is_sequence(const char *name)
{
    return name && !starts(name, "past") &&
           (starts(name, "seq") || strstr(name, "_seq") || strstr(name, "sequence"));
}

static bool default_of(const loaded *l, const char *name, int64_t *size)
{
    char *key = text_of("sonde.default.%s", name);
    bool found = false;
    for (size_t i = 0; !found && i < sonde_model_metadata_count(l->model); i++)
        if (strcmp(sonde_model_metadata_key(l->model, i), key) == 0) {
            *size = strtoll(sonde_model_metadata_value(l->model, i), NULL, 10);
            found = *size >= 0;
        }
    free(key);
    return found;
}

/* "past_sequence + sequence", "past_sequence + 1": how exporters name the sum of other dims. */
static bool size_of_sum(const loaded *l, const input_options *o, const char *input,
                        const char *name, int64_t *size)
{
    int64_t total = 0;
    for (const char *part = name; part;) {
        const char *plus = strstr(part, " + ");
        const int n = (int)(plus ? plus - part : (ptrdiff_t)strlen(part));
        char *word = text_of("%.*s", n, part), *end = NULL;
        int64_t one = strtoll(word, &end, 10);
        const bool number = n > 0 && !*end;
        const bool known = number || (n > 0 && size_of_dim(l, o, input, word, -1, &one));
        free(word);
        if (!known || one < 0 || __builtin_add_overflow(total, one, &total))
            return false;
        part = plus ? plus + 3 : NULL;
    }
    *size = total;
    return true;
}

/* The -s that names the dim, the last of several, and its number; NULL: none does. */
static const char *size_item(const loaded *l, const char *input, const char *name, int dim,
                             bool shortened, int64_t *size)
{
    for (size_t i = l->sizes.n; i-- > 0;) {
        const char *item = l->sizes.items[i], *equals = strrchr(item, '=');
        const size_t n = (size_t)(equals - item);
        if (shortened ? key_shortens_dim(item, n, name)
                      : key_names_dim(item, n, input, name, dim)) {
            *size = strtoll(equals + 1, NULL, 10);
            return item;
        }
    }
    return NULL;
}

bool size_of_dim(const loaded *l, const input_options *o, const char *input, const char *name,
                 int dim, int64_t *size)
{
    for (int shortened = 0; shortened < 2; shortened++) { /* exact names go first */
        if (shortened && name && strstr(name, " + ") && size_of_sum(l, o, input, name, size))
            return true;
        if (size_item(l, input, name, dim, shortened, size))
            return true;
    }
    if (o->batch_size && is_batch(name, dim)) {
        *size = o->batch_size;
        return true;
    }
    if (o->seq_len && is_sequence(name)) {
        *size = o->seq_len;
        return true;
    }
    return name && default_of(l, name, size);
}

/* ------------------------------------------------------------------ mistakes */
/* Whether some dim goes by that name; *fixed receives its size when it is not free, else -1. */
static bool names_something(const loaded *l, const char *key, size_t n, int64_t *fixed)
{
    for (size_t i = 0; i < sonde_session_input_count(l->session); i++) {
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        if (sonde_session_input_info(l->session, i, &info, NULL))
            continue;
        for (int k = 0; k < info.rank; k++)
            if (key_names_dim(key, n, info.name, info.dim_names[k], k) ||
                key_shortens_dim(key, n, info.dim_names[k])) {
                *fixed = info.dims[k];
                return true;
            }
    }
    return false;
}

/* "batch, sequence, input.0 …" for the error. */
static void list_dims(const loaded *l, text *t)
{
    for (size_t i = 0; i < sonde_session_input_count(l->session); i++) {
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        if (sonde_session_input_info(l->session, i, &info, NULL))
            continue;
        for (int k = 0; k < info.rank; k++) {
            if (info.dims[k] >= 0)
                continue;
            char *name = info.dim_names[k] ? text_of("%s", info.dim_names[k])
                                           : text_of("%s.%d", info.name, k);
            if (!t->data || !strstr(t->data, name))
                text_add(t, "%s%s", t->n ? ", " : "", name);
            free(name);
        }
    }
}

int sizes_check(const loaded *l)
{
    for (size_t i = 0; i < l->sizes.n; i++) {
        const char *item = l->sizes.items[i], *equals = strrchr(item, '=');
        char *end = NULL;
        const long long n = equals ? strtoll(equals + 1, &end, 10) : -1;
        if (!equals || equals == item || !equals[1] || *end || n < 0)
            return fail_usage("--size '%s' does not have the form DIM=N", item);
        int64_t fixed = -1;
        if (names_something(l, item, (size_t)(equals - item), &fixed)) {
            if (fixed >= 0 && fixed != n)
                return fail_usage("--size '%s': the model fixes this dimension to %lld", item,
                                  (long long)fixed);
            continue;
        }
        text t = {.n = 0};
        list_dims(l, &t);
        const int code =
            t.n ? fail_usage("the model has no dimension '%.*s'; its symbolic dimensions are: %s",
                             (int)(equals - item), item, t.data)
                : fail_usage("the model has no dimension '%.*s'; all its inputs have fixed shapes",
                             (int)(equals - item), item);
        text_free(&t);
        return code;
    }
    return EXIT_OK;
}

/* The option that says how large the dim is, from malloc, and what it says; NULL: none does. */
static char *said(const loaded *l, const input_options *o, const sonde_type_info *info, int dim,
                  int64_t *size)
{
    const char *name = info->dim_names[dim];
    for (int shortened = 0; shortened < 2; shortened++) {
        const char *item = size_item(l, info->name, name, dim, shortened, size);
        if (item)
            return text_of("--size '%s'", item);
    }
    if (o->batch_size && is_batch(name, dim)) {
        *size = o->batch_size;
        return text_of("--batch-size %lld", (long long)*size);
    }
    if (o->seq_len && is_sequence(name)) {
        *size = o->seq_len;
        return text_of("--seq-len %lld", (long long)*size);
    }
    return NULL;
}

int sizes_fit(const loaded *l, const input_options *o, const sonde_type_info *info,
              const sonde_value *given)
{
    if (sonde_value_kind(given) != SONDE_KIND_TENSOR ||
        sonde_tensor_rank(given) != (size_t)(info->rank < 0 ? 0 : info->rank))
        return EXIT_OK; /* what does not fit the model is told by the run */
    for (int k = 0; k < info->rank; k++) {
        const int64_t have = sonde_tensor_dims(given)[k];
        int64_t size = have;
        if (info->dims[k] >= 0 || (info->dim_names[k] && strstr(info->dim_names[k], " + ")))
            continue;
        char *option = said(l, o, info, k, &size);
        int code = EXIT_OK;
        if (option && size != have) {
            char *type = value_type_text(given);
            code = fail_usage("%s does not fit the file of input '%s', which is %s", option,
                              info->name, type);
            free(type);
        }
        free(option);
        if (code)
            return code;
    }
    return EXIT_OK;
}
