/* SPDX-License-Identifier: Apache-2.0 */
/* sonde's own Chrome trace. Arguments name everything the timing table needs; lists of tensors are
 * taken apart at their commas, so a name that contains one loses the names of its step. A lane of
 * the model or of iterations says no thread: it is the one of what ran inside. */
#include <string.h>

#include "profile/chrome_keys.h"
#include "profile_readers/build.h"
#include "profile_readers/chrome_facts.h"
#include "profile_readers/events.h"
#include "profile_readers/reader.h"
#include "profile_readers/shapes.h"

typedef struct reader {
    sn_build b;
    SN_VEC(uint32_t) laneless; /* positions of spans whose thread is to be found */
} reader;

/* Keep in this order: the texts that tell steps apart. */
enum {
    ARG_OP,
    ARG_POST_OP,
    ARG_KERNEL,
    ARG_INPUT_NAMES,
    ARG_INPUT_TYPES,
    ARG_INPUT_SHAPES,
    ARG_OUTPUT_NAMES,
    ARG_OUTPUT_TYPES,
    ARG_OUTPUT_SHAPES,
    ARG_ATTRIBUTES,
    ARG_ARITHMETIC,
    ARG_TEXTS
};
static const char *const text_keys[ARG_TEXTS] = {"op",
                                                 "post_op",
                                                 "kernel",
                                                 "input_tensor_name",
                                                 "input_type",
                                                 "input_shape",
                                                 "output_tensor_name",
                                                 "output_type",
                                                 "output_shape",
                                                 "attributes",
                                                 "arithmetic"};

typedef struct arguments {
    sn_json_text texts[ARG_TEXTS], user, bind, model;
    uint64_t flops, bytes, iteration, instance, run, id, parent;
    bool warmup, own_category;
    sn_json nodes; /* before the array */
    bool has_nodes;
    sn_prof_hw counts;
} arguments;

static bool take_text(sn_json *j, sn_json_text key, arguments *a)
{
    sn_json_text *to = sn_json_is(key, "args")           ? &a->user
                       : sn_json_is(key, "traceparent")  ? &a->user
                       : sn_json_is(key, "reshape_time") ? &a->bind
                       : sn_json_is(key, "model")        ? &a->model
                                                         : NULL;
    for (int k = 0; k < ARG_TEXTS && !to; k++)
        if (sn_json_is(key, text_keys[k]))
            to = &a->texts[k];
    return to && sn_json_string(j, to);
}

static bool take_number(sn_json *j, sn_json_text key, arguments *a)
{
    const struct {
        const char *key;
        uint64_t *to;
    } all[] = {{"flops", &a->flops},          {"bytes", &a->bytes}, {"iteration", &a->iteration},
               {"instance", &a->instance},    {"run", &a->run},     {"span_id", &a->id},
               {"parent_span_id", &a->parent}};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        sn_json_num n;
        if (sn_json_is(key, all[k].key) && sn_json_number(j, &n)) {
            sn_json_scaled(n, 0, all[k].to);
            return true;
        }
    }
    return false;
}

static arguments read_arguments(const sn_json_event *e)
{
    arguments a = {.user = {"", 0}, .bind = {"", 0}, .model = {"", 0}};
    for (int k = 0; k < ARG_TEXTS; k++)
        a.texts[k] = (sn_json_text){"", 0};
    if (!e->has_args)
        return a;
    sn_json j = e->args;
    sn_json_text key;
    for (sn_json_object(&j); sn_json_member(&j, &key);) {
        sn_json_kind kind = sn_json_peek(&j);
        if (kind == SN_JSON_STRING && take_text(&j, key, &a))
            continue;
        if (kind == SN_JSON_NUMBER && take_number(&j, key, &a))
            continue;
        if (kind == SN_JSON_BOOL && sn_json_is(key, "warmup")) {
            sn_json_bool(&j, &a.warmup);
            continue;
        }
        if (kind == SN_JSON_BOOL && sn_json_is(key, "user")) {
            sn_json_bool(&j, &a.own_category);
            continue;
        }
        if (kind == SN_JSON_ARRAY && sn_json_is(key, "nodes")) {
            a.nodes = j;
            a.has_nodes = true;
        }
        if (kind == SN_JSON_OBJECT && sn_json_is(key, "counters")) {
            a.counts = sn_chrome_read_counts(&j);
            continue;
        }
        sn_json_skip(&j);
    }
    return a;
}

/* ------------------------------------------------------------------ steps */
/* The part before the next comma; false when nothing is left. */
static bool next_part(sn_json_text *rest, bool *more, sn_json_text *part)
{
    if (!*more)
        return false;
    const char *comma = rest->n ? memchr(rest->data, ',', rest->n) : NULL;
    *part = (sn_json_text){rest->data, comma ? (size_t)(comma - rest->data) : rest->n};
    *more = comma != NULL;
    rest->data += part->n + (comma != NULL);
    rest->n -= part->n + (comma != NULL);
    return true;
}

static size_t parts(sn_json_text list)
{
    size_t n = 1;
    for (size_t i = 0; i < list.n; i++)
        n += list.data[i] == ',';
    return n;
}

/* The floats are called fp32 in these lists. */
static const char *type_text(sn_build *b, sn_json_text type)
{
    if (type.n > 2 && memcmp(type.data, "fp", 2) == 0) {
        static const char *const floats[] = {"f16", "f32", "f64"};
        for (size_t k = 0; k < 3; k++)
            if (type.n == 4 && memcmp(type.data + 2, floats[k] + 1, 2) == 0)
                return floats[k];
    }
    return sn_build_text(b, type);
}

static const sn_prof_tensor *read_tensors(sn_build *b, const sn_json_text *lists, uint32_t *n)
{
    sn_json_text names = lists[0], types = lists[1], shapes = lists[2], name, type, shape;
    sn_shapes list;
    sn_shapes_init(&list, b);
    bool more_types = names.n || types.n || shapes.n, more_names = parts(names) == parts(types),
         more_shapes = parts(shapes) == parts(types);
    while (next_part(&types, &more_types, &type)) {
        sn_prof_tensor *x = sn_shapes_add(&list);
        x->dtype = type_text(b, type);
        if (next_part(&names, &more_names, &name))
            x->name = sn_build_text(b, name);
        if (next_part(&shapes, &more_shapes, &shape) && (shape.n || type.n))
            sn_shapes_parse_dims(&list, shape, x);
    }
    return sn_shapes_take(&list, n);
}

static void read_nodes(sn_build *b, sn_json j, sn_prof_step *s)
{
    SN_VEC(sn_prof_origin) list = {0};
    for (sn_json_array(&j); sn_json_item(&j);) {
        sn_json_text name = {"", 0};
        if (sn_json_peek(&j) == SN_JSON_STRING)
            sn_json_string(&j, &name);
        else
            sn_json_skip(&j);
        const sn_prof_origin o = {sn_build_text(b, name), ""};
        b->failed |= !sn_vec_push(&list, b->p->alloc, o);
    }
    sn_prof_origin *copy = SN_NEW_N(&b->p->arena, sn_prof_origin, list.n + 1);
    b->failed |= !copy;
    if (copy && list.n && list.n < UINT32_MAX) {
        memcpy(copy, list.data, list.n * sizeof *copy);
        copy[0].op_type = s->op_type;
        s->origins = copy;
        s->n_origins = (uint32_t)list.n;
    }
    sn_vec_free(&list, b->p->alloc);
}

/* "0.044ms" */
static uint64_t ms_text(sn_json_text text)
{
    sn_json j;
    sn_json_num n;
    uint64_t ns = 0;
    sn_json_init(&j, text.data, text.n, NULL);
    if (text.n && sn_json_number(&j, &n))
        sn_json_scaled(n, 6, &ns);
    return ns;
}

static uint32_t step_of(sn_build *b, const sn_json_event *e, const arguments *a)
{
    uint32_t index;
    bool is_new;
    sn_build_key_begin(b);
    sn_build_key_add(b, e->name);
    for (int k = 0; k < ARG_TEXTS; k++)
        sn_build_key_add(b, a->texts[k]);
    sn_prof_step *s = sn_build_step(b, &index, &is_new);
    if (!s)
        return UINT32_MAX;
    const uint64_t bind_ns = ms_text(a->bind);
    if (bind_ns)
        s->bind_ns =
            bind_ns; /* told where it was bound, which need not be where it is first seen */
    if (!is_new)
        return index;
    s->op_type = sn_build_text(b, a->texts[ARG_OP]);
    s->name = sn_build_text(b, e->name);
    s->post_op = sn_build_text(b, a->texts[ARG_POST_OP]);
    s->kernel = sn_build_text(b, a->texts[ARG_KERNEL]);
    s->attributes = sn_build_text(b, a->texts[ARG_ATTRIBUTES]);
    s->inputs = read_tensors(b, &a->texts[ARG_INPUT_NAMES], &s->n_inputs);
    s->outputs = read_tensors(b, &a->texts[ARG_OUTPUT_NAMES], &s->n_outputs);
    s->arithmetic = sn_arithmetic_named(a->texts[ARG_ARITHMETIC].data, a->texts[ARG_ARITHMETIC].n);
    s->flops = a->flops;
    s->bytes = a->bytes;
    s->hw = a->counts;
    if (a->has_nodes)
        read_nodes(b, a->nodes, s);
    /* A node without a name goes by its type, and so does work that is no node's. */
    bool named = !s->n_origins;
    for (uint32_t k = 0; k < s->n_origins && !named; k++)
        named = strcmp(s->origins[k].name, s->name) == 0;
    if (!named && strcmp(s->name, s->op_type) == 0)
        s->name = "";
    return index;
}

/* ------------------------------------------------------------------ events */
static uint64_t lane_number(sn_json_text tid)
{
    uint64_t v = 0;
    for (size_t i = 0; i < tid.n && v < 1000000000; i++)
        v = tid.data[i] >= '0' && tid.data[i] <= '9' ? v * 10 + (uint64_t)(tid.data[i] - '0') : 0;
    return v;
}

static void take_name(sn_build *b, const sn_json_event *e)
{
    sn_json j = e->args;
    sn_json_text key, name = {"", 0};
    if (!e->has_args || !sn_json_is(e->name, "thread_name") ||
        lane_number(e->tid) < SN_CHROME_FIRST_THREAD)
        return;
    for (sn_json_object(&j); sn_json_member(&j, &key);) {
        if (sn_json_is(key, "name") && sn_json_peek(&j) == SN_JSON_STRING)
            sn_json_string(&j, &name);
        else
            sn_json_skip(&j);
    }
    uint32_t thread = sn_build_thread(b, e->tid);
    if (thread < b->p->threads_seen.n) {
        b->p->threads_seen.data[thread].name = sn_build_text(b, name);
        b->p->threads_seen.data[thread].os_tid = 0;
    }
}

static void take_counter(sn_build *b, const sn_json_event *e)
{
    sn_json j = e->args;
    sn_json_text key;
    sn_json_num n = {0};
    if (!e->has_args || !e->timed)
        return;
    for (sn_json_object(&j); sn_json_member(&j, &key);) {
        if (sn_json_is(key, "value") && sn_json_peek(&j) == SN_JSON_NUMBER)
            sn_json_number(&j, &n);
        else
            sn_json_skip(&j);
    }
    const sn_prof_counter c = {.at_ns = e->start_ns,
                               .name = sn_build_text(b, e->name),
                               .value = sn_json_double(n),
                               .step = UINT32_MAX};
    b->failed |= !sn_vec_push(&b->p->counters, b->p->alloc, c);
}

static void take_span(reader *r, const sn_json_event *e)
{
    sn_build *b = &r->b;
    const arguments a = read_arguments(e);
    const sn_prof_cat cat =
        a.own_category ? SN_CAT_USER : sn_prof_cat_named(e->category.data, e->category.n);
    if (cat == SN_CAT_COUNT || !e->timed || !a.id || a.id > UINT32_MAX)
        return; /* also the lane's own title, which nobody recorded */
    const uint32_t step = cat == SN_CAT_OPERATOR ? step_of(b, e, &a) : UINT32_MAX;
    sn_prof_span *s = sn_build_span(b, cat);
    if (!s)
        return;
    s->id = (uint32_t)a.id;
    s->parent = a.parent < UINT32_MAX ? (uint32_t)a.parent : 0;
    s->start_ns = e->start_ns;
    s->dur_ns = e->dur_ns;
    s->run = a.run < UINT32_MAX ? (uint32_t)a.run : 0;
    s->iteration = a.iteration < UINT32_MAX ? (uint32_t)a.iteration : 0;
    s->instance = a.instance < UINT32_MAX ? (uint32_t)a.instance : 0;
    s->warmup = a.warmup;
    s->bound = ms_text(a.bind) > 0;
    s->step = step;
    s->args = sn_build_text(b, a.user);
    s->category = a.own_category ? sn_build_text(b, e->category) : "";
    const sn_json_text title = cat == SN_CAT_MODEL && a.model.n ? a.model : e->name;
    s->name = step < b->p->steps.n ? b->p->steps.data[step].op_type : sn_build_text(b, title);
    if (cat != SN_CAT_MODEL && cat != SN_CAT_ITERATION)
        s->thread = sn_build_thread(b, e->tid);
    else
        b->failed |= !sn_vec_push(&r->laneless, b->p->alloc, (uint32_t)(b->p->spans.n - 1));
}

static sonde_status take(void *user, const sn_json_event *e, sonde_error *err)
{
    reader *r = user;
    if (e->phase == 'M')
        take_name(&r->b, e);
    else if (e->phase == 'C')
        take_counter(&r->b, e);
    else if (e->phase == 'X')
        take_span(r, e);
    return r->b.failed ? sn_fail_memory(err, sizeof(sn_prof_span)) : SONDE_OK;
}

static void take_member(void *user, sn_json_text member, sn_json *j)
{
    reader *r = user;
    if (sn_json_is(member, "otherData"))
        sn_chrome_read_facts(&r->b, j);
    else
        sn_json_skip(j);
}

/* ------------------------------------------------------------------ the whole */
/* From the last span back, so that a model learns from its iterations what they learnt; an
 * iteration without operators learns from the record around it. */
static sonde_status find_threads(reader *r, sonde_error *err)
{
    sn_profile *p = r->b.p;
    sn_prof_index index;
    SN_TRY(sn_prof_index_build(p, &index, err));
    for (size_t i = 0; i < r->laneless.n; i++)
        p->spans.data[r->laneless.data[i]].thread = UINT32_MAX;
    for (size_t i = p->spans.n; i > 0; i--) {
        const sn_prof_span *s = &p->spans.data[i - 1];
        uint32_t up = sn_prof_index_find(&index, s->parent);
        if (s->thread != UINT32_MAX && up != UINT32_MAX && p->spans.data[up].thread == UINT32_MAX)
            p->spans.data[up].thread = s->thread;
    }
    for (size_t i = 0; i < r->laneless.n; i++) {
        sn_prof_span *s = &p->spans.data[r->laneless.data[i]];
        const uint32_t up = sn_prof_index_find(&index, s->parent);
        if (s->thread == UINT32_MAX && up != UINT32_MAX)
            s->thread = p->spans.data[up].thread;
        if (s->cat == SN_CAT_MODEL && *p->model_name) /* the event has a title instead */
            s->name = p->model_name;
    }
    sn_prof_index_free(&index);
    return SONDE_OK;
}

static sonde_status read_chrome(const void *data, size_t bytes, sn_profile *p, sonde_error *err)
{
    reader r = {0};
    sn_arena scratch;
    sn_build_init(&r.b, p);
    sn_arena_init(&scratch, p->alloc);
    const sn_event_handler to = {.event = take, .member = take_member, .user = &r};
    sonde_status st = sn_events_read(data, bytes, &scratch, &to, err);
    if (st == SONDE_OK)
        st = find_threads(&r, err);
    if (st == SONDE_OK)
        st = sn_build_finish(&r.b, SN_BUILD_GIVEN, false, err);
    sn_arena_free(&scratch);
    sn_vec_free(&r.laneless, p->alloc);
    sn_build_free(&r.b);
    return st;
}

/* The first event names the process, and us. */
static bool sniff_chrome(const char *head, size_t bytes)
{
    return sn_profile_sniff_first(head, bytes) == '{' &&
           sn_profile_sniff_has(head, bytes, "\"traceEvents\"") &&
           sn_profile_sniff_has(head, bytes, "\"process_name\"") &&
           sn_profile_sniff_has(head, bytes, "\"sonde") &&
           sn_profile_sniff_has(head, bytes, "\"thread_sort_index\"");
}

const sn_profile_reader sn_profile_reader_chrome = {
    .name = "a Chrome trace of sonde", .sniff = sniff_chrome, .read = read_chrome};
