/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a run with made-up inputs fits into memory, known before they are made and before weights
 * are packed: inputs of gigabytes take seconds to make, and a run that has no room says so only
 * then. Small inputs are made at once, and left to the run. */
#include <stdlib.h>
#include <string.h>

#include "sonde/experimental/inspect.h"
#include "tool.h"

enum { MOST_RANK = 64 };
static const size_t large_bytes = (size_t)64 << 20;

typedef struct shapes {
    sonde_input_shape *items;
    size_t n, bytes;
} shapes;

static void shapes_free(shapes *s)
{
    for (size_t i = 0; i < s->n; i++)
        free((void *)(uintptr_t)s->items[i].dims);
    free(s->items);
}

/* False: it is no tensor, or nothing can be said of its size. */
static bool add_shape(shapes *s, const loaded *l, const input_options *o,
                      const sonde_type_info *info)
{
    if (info->kind != SONDE_KIND_TENSOR || info->rank < 0 || info->rank > MOST_RANK)
        return false;
    int64_t *dims = need(calloc((size_t)info->rank + 1, sizeof *dims));
    size_t bytes = sonde_dtype_bytes(info->dtype);
    made_up_shape(l, o, info, false, dims);
    s->items[s->n++] = (sonde_input_shape){info->name, info->dtype, dims, (size_t)info->rank};
    for (int d = 0; d < info->rank; d++)
        if (dims[d] < 0 || __builtin_mul_overflow(bytes, (size_t)dims[d], &bytes))
            return false;
    return !__builtin_add_overflow(s->bytes, bytes, &s->bytes);
}

static bool all_shapes(shapes *s, const loaded *l, const input_options *o,
                       const sonde_inspection *look)
{
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    size_t n = 0;
    while (!sonde_inspection_input(look, n, &info, NULL))
        n++;
    s->items = need(calloc(n + 1, sizeof *s->items));
    bool fine = true;
    for (size_t i = 0; i < n && fine; i++)
        fine = !sonde_inspection_input(look, i, &info, NULL) &&
               (info.optional_input || add_shape(s, l, o, &info));
    return fine;
}

/* By a session that packs nothing, and says nothing: the one that runs will. */
static int ask(const loaded *l, const run_setup *s, const shapes *inputs)
{
    sonde_session_options o = session_options(&s->model);
    sonde_session *session = NULL;
    sonde_error err = {.status = SONDE_OK};
    o.plan_only = 1;
    o.weights_cache = o.tune = NULL;
    if (!sonde_session_create(l->model, &o, &session, NULL))
        (void)sonde_session_fits(session, inputs->items, inputs->n, &err);
    sonde_session_release(session);
    return err.status == SONDE_OUT_OF_MEMORY ? fail("%s", err.message) : EXIT_OK;
}

/* Other models have sizes of their own, mostly small: they cost no look. */
static bool sizes_are_given(const loaded *l, const input_options *o, const char *model)
{
    return l->sizes.n || o->batch_size || o->seq_len || (is_zoo(model) && strchr(model, '?'));
}

int memory_check(const loaded *l, const run_setup *s, const char *model)
{
    const input_options *o = &s->inputs;
    sonde_inspection *look = NULL;
    shapes inputs = {.n = 0};
    int code = EXIT_OK;
    if (o->inputs.n || !sizes_are_given(l, o, model) || sonde_inspect_model(l->model, &look, NULL))
        return EXIT_OK;
    if (all_shapes(&inputs, l, o, look) && inputs.bytes >= large_bytes)
        code = ask(l, s, &inputs);
    shapes_free(&inputs);
    sonde_inspection_release(look);
    return code;
}
