/* SPDX-License-Identifier: Apache-2.0 */
/* The list of samples. It has sources, each of which gives one sample or several; arrays are kept
 * as they were given and cut along axis 0. */
#include "shrink/samples.h"

#include <string.h>

#include "base/list_text.h"

/* ------------------------------------------------------------------ inputs */
sonde_status sn_samples_input(const sonde_samples *s, const char *name, sonde_type_info *info,
                              sonde_error *err)
{
    sn_list_text names = {0};
    for (size_t i = 0; i < sonde_session_input_count(s->session); i++) {
        const char *have = sonde_session_input_name(s->session, i);
        if (strcmp(have, name) == 0)
            return sonde_session_input_info(s->session, i, info, err);
        sn_list_add(&names, "%s", have);
    }
    return sn_fail(err, SONDE_NOT_FOUND,
                   "the samples have a value '%.200s', which is no input of the model; its inputs "
                   "are: %s",
                   name, sn_list_end(&names));
}

static bool has(const sonde_value_set *set, const char *name)
{
    for (size_t i = 0; i < sonde_value_set_count(set); i++)
        if (strcmp(sonde_value_set_name(set, i), name) == 0)
            return true;
    return false;
}

/* Every input without a default has a value. */
static sonde_status check_whole(const sonde_samples *s, const sonde_value_set *set,
                                sonde_error *err)
{
    for (size_t i = 0; i < sonde_session_input_count(s->session); i++) {
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        SN_TRY(sonde_session_input_info(s->session, i, &info, err));
        if (!info.optional_input && !has(set, info.name))
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "the samples have no value for the input '%.200s' (%.200s)", info.name,
                           info.text);
    }
    return SONDE_OK;
}

static sonde_status check_type(const sonde_value *v, const sonde_type_info *info, sonde_error *err)
{
    const sonde_dtype have = sonde_tensor_dtype(v);
    if (info->kind == SONDE_KIND_TENSOR && have != info->dtype)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "the samples of input '%.200s' are %s, but the model takes %.200s",
                       info->name, have ? sonde_dtype_text(have) : "no tensors", info->text);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ arrays */
/* How an array is cut: `each` entries of axis 0 are one sample, of which there are `count`. */
typedef struct cut {
    size_t count;
    int64_t each, over; /* over: entries at the end that are no whole sample */
    bool drop_axis;     /* a sample has no axis 0 of its own */
} cut;

static sonde_status plan_cut(const int64_t *dims, size_t rank, const sonde_type_info *info, cut *c,
                             sonde_error *err)
{
    *c = (cut){.count = 1};
    if (info->kind != SONDE_KIND_TENSOR || rank == 0)
        return SONDE_OK;
    const int64_t n = dims[0];
    c->drop_axis = info->rank >= 0 && rank == (size_t)info->rank + 1;
    if (!c->drop_axis && info->rank >= 0 && rank != (size_t)info->rank)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "the samples of input '%.200s' have %zu dimensions; the input is %.200s, so "
                       "they must have %d, or %d with one whole input for each index of axis 0",
                       info->name, rank, info->text, info->rank, info->rank + 1);
    /* Of those behind axis 0, and of all where axis 0 is that of the samples. */
    for (int d = c->drop_axis ? 0 : 1; d < info->rank; d++)
        if (info->dims[d] >= 0 && info->dims[d] != dims[d + c->drop_axis])
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "the samples of input '%.200s' have %lld in dimension %d, but the input "
                           "is %.200s",
                           info->name, (long long)dims[d + c->drop_axis], d + c->drop_axis,
                           info->text);
    c->each = c->drop_axis || info->rank < 1 || info->dims[0] < 1 ? 1 : info->dims[0];
    c->count = (size_t)(n / c->each);
    c->over = n % c->each;
    if (c->count == 0)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "input '%.200s' has %lld samples, but the model takes %lld at a time",
                       info->name, (long long)n, (long long)c->each);
    if (c->count > 1 && info->dtype == SONDE_DTYPE_STRING)
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "input '%.200s' consists of strings, which are not cut into samples; give "
                       "samples one by one",
                       info->name);
    return SONDE_OK;
}

static sonde_status plan_cut_of(const sonde_value *v, const sonde_type_info *info, cut *c,
                                sonde_error *err)
{
    SN_TRY(check_type(v, info, err));
    return plan_cut(sonde_tensor_dims(v), sonde_tensor_rank(v), info, c, err);
}

/* `*first`: the input that has *count samples; NULL: there is none yet. */
static sonde_status same_count(const cut *c, const char *name, const char **first, size_t *count,
                               sonde_error *err)
{
    if (c->count > 1 && *first && c->count != *count)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "input '%.200s' has %zu samples and input '%.200s' has %zu", *first, *count,
                       name, c->count);
    if (c->count > 1) {
        *first = name;
        *count = c->count;
    }
    return SONDE_OK;
}

sonde_status sn_samples_fit(const sonde_samples *s, const char *name, const int64_t *dims,
                            size_t rank, const char **first, size_t *count, sn_arena *arena,
                            sonde_error *err)
{
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    cut c;
    const char *own = sn_arena_strdup(arena, name);
    if (!own)
        return sn_fail_memory(err, strlen(name));
    SN_TRY(sn_samples_input(s, name, &info, err));
    SN_TRY(plan_cut(dims, rank, &info, &c, err));
    return same_count(&c, own, first, count, err);
}

static sonde_status cut_out(const sonde_samples *s, sonde_value *v, const cut *c, size_t index,
                            sonde_value **out, sonde_error *err)
{
    if (c->count == 1 && !c->drop_axis) {
        const int64_t n = c->each ? sonde_tensor_dims(v)[0] : 0;
        if (n == c->each) {
            *out = sonde_value_retain(v);
            return SONDE_OK;
        }
    }
    const size_t rank = sonde_tensor_rank(v), at = c->count > 1 ? index : 0;
    int64_t dims[SN_MAX_RANK];
    memcpy(dims, sonde_tensor_dims(v), rank * sizeof *dims);
    const size_t row = sonde_tensor_bytes(v) / (size_t)dims[0];
    dims[0] = c->each;
    return sonde_tensor_create(s->context, sonde_tensor_dtype(v), dims + c->drop_axis,
                               rank - c->drop_axis,
                               (const char *)sonde_tensor_data(v) + at * row * (size_t)c->each,
                               row * (size_t)c->each, out, err);
}

static sonde_status count_arrays(const sonde_samples *s, const sonde_value_set *set, size_t *count,
                                 size_t *over, sonde_error *err)
{
    const char *first = NULL;
    *count = 1;
    *over = 0;
    for (size_t i = 0; i < sonde_value_set_count(set); i++) {
        const char *name = sonde_value_set_name(set, i);
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        cut c;
        SN_TRY(sn_samples_input(s, name, &info, err));
        SN_TRY(plan_cut_of(sonde_value_set_value(set, i), &info, &c, err));
        SN_TRY(same_count(&c, name, &first, count, err));
        *over = (size_t)c.over > *over ? (size_t)c.over : *over;
    }
    return check_whole(s, set, err);
}

sonde_status sn_samples_cut(const sonde_samples *s, const sonde_value_set *set, size_t index,
                            sonde_value_set *out, sonde_error *err)
{
    for (size_t i = 0; i < sonde_value_set_count(set); i++) {
        const char *name = sonde_value_set_name(set, i);
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        sonde_value *all = sonde_value_set_value(set, i), *v = NULL;
        cut c;
        SN_TRY(sn_samples_input(s, name, &info, err));
        SN_TRY(plan_cut_of(all, &info, &c, err));
        SN_TRY(cut_out(s, all, &c, index, &v, err));
        const sonde_status st = sn_api_set_add(out, name, v, err);
        if (st != SONDE_OK) {
            sonde_value_release(v);
            return st;
        }
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ the list */
sonde_status sonde_samples_create(sonde_model *model, sonde_samples **samples, sonde_error *err)
{
    SN_REQUIRE(samples, err);
    *samples = NULL;
    SN_REQUIRE(model, err);
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    o.plan_only = o.no_optimize = 1;
    sonde_session *session = NULL;
    SN_TRY(sonde_session_create(model, &o, &session, err));
    sonde_samples *s = sn_alloc_zero(&model->context->alloc, sizeof *s);
    if (!s) {
        sonde_session_release(session);
        return sn_fail_memory(err, sizeof *s);
    }
    s->context = sn_api_context_ref(model->context);
    s->session = session;
    s->most = SIZE_MAX;
    sn_arena_init(&s->arena, &s->context->alloc);
    *samples = s;
    return SONDE_OK;
}

void sonde_samples_release(sonde_samples *s)
{
    if (!s)
        return;
    sonde_context *c = s->context;
    for (size_t i = 0; i < s->sources.n; i++)
        sonde_value_set_release(s->sources.data[i].set);
    sn_vec_free(&s->sources, &c->alloc);
    sn_arena_free(&s->arena);
    sonde_session_release(s->session);
    sn_free(&c->alloc, s, sizeof *s);
    sonde_context_release(c);
}

sonde_status sn_samples_push(sonde_samples *s, const sn_sample_source *source, sonde_error *err)
{
    if (!sn_vec_push(&s->sources, &s->context->alloc, *source))
        return sn_fail_memory(err, sizeof *source);
    s->count += source->count;
    return SONDE_OK;
}

bool sn_samples_are_enough(const sonde_samples *s)
{
    return s->count >= s->most;
}

sonde_status sn_samples_push_set(sonde_samples *s, sonde_value_set *set, bool one, sonde_error *err)
{
    sn_sample_source source = {.set = set, .count = 1, .whole = one};
    size_t over = 0;
    sonde_status st =
        one ? check_whole(s, set, err) : count_arrays(s, set, &source.count, &over, err);
    for (size_t i = 0; one && i < sonde_value_set_count(set) && st == SONDE_OK; i++) {
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        st = sn_samples_input(s, sonde_value_set_name(set, i), &info, err);
        if (st == SONDE_OK)
            st = check_type(sonde_value_set_value(set, i), &info, err);
    }
    if (st == SONDE_OK)
        st = sn_samples_push(s, &source, err);
    if (st != SONDE_OK)
        sonde_value_set_release(set);
    else if (!sn_samples_are_enough(s)) /* else what is over is not wanted anyhow */
        s->left_over += over;
    return st;
}

static sonde_status add_values(sonde_samples *s, const char *const *names,
                               sonde_value *const *values, size_t count, bool one, sonde_error *err)
{
    SN_REQUIRE(s, err);
    SN_REQUIRE(names, err);
    SN_REQUIRE(values, err);
    sonde_value_set *set = NULL;
    SN_TRY(sn_api_set_new(s->context, &set, err));
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < count && st == SONDE_OK; i++) {
        if (!names[i] || !values[i]) {
            st = sn_fail(err, SONDE_INVALID_ARGUMENT, "value %zu of the sample is NULL", i);
            break;
        }
        sonde_value *v = sonde_value_retain(values[i]);
        st = sn_api_set_add(set, names[i], v, err);
        if (st != SONDE_OK)
            sonde_value_release(v);
    }
    if (st == SONDE_OK)
        return sn_samples_push_set(s, set, one, err);
    sonde_value_set_release(set);
    return st;
}

sonde_status sonde_samples_add(sonde_samples *samples, const char *const *names,
                               sonde_value *const *values, size_t count, sonde_error *err)
{
    return add_values(samples, names, values, count, true, err);
}

sonde_status sonde_samples_add_arrays(sonde_samples *samples, const char *const *names,
                                      sonde_value *const *values, size_t count, sonde_error *err)
{
    return add_values(samples, names, values, count, false, err);
}

sonde_status sonde_samples_limit(sonde_samples *samples, size_t most, sonde_error *err)
{
    SN_REQUIRE(samples, err);
    samples->most = most ? most : SIZE_MAX;
    return SONDE_OK;
}

size_t sonde_samples_count(const sonde_samples *samples)
{
    if (!samples)
        return 0;
    return samples->count < samples->most ? samples->count : samples->most;
}

size_t sonde_samples_skipped(const sonde_samples *samples)
{
    return samples ? samples->skipped : 0;
}

size_t sonde_samples_left_over(const sonde_samples *samples)
{
    return samples ? samples->left_over : 0;
}
