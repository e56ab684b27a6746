/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's Chrome trace (torch.profiler, export_chrome_trace). Operators are of the category
 * cpu_op and contain one another: a row holds their own time. An iteration is a "ProfilerStep#n";
 * where there is none, the whole trace is one. Other annotations become user scopes; kernels of a
 * device and Python frames are left out. Before 1.13 operators and annotations shared the category
 * Operator; what PyTorch annotates itself has a # in its name ("Optimizer.step#SGD.step"). */
#include <math.h>
#include <string.h>

#include "profile_readers/build.h"
#include "profile_readers/events.h"
#include "profile_readers/reader.h"
#include "profile_readers/shapes.h"

typedef struct reader {
    sn_build b;
    bool iterations; /* the file has some */
} reader;

static bool begins_with(sn_json_text text, const char *prefix)
{
    size_t n = strlen(prefix);
    return text.n >= n && memcmp(text.data, prefix, n) == 0;
}

/* The names of C++'s types, and ours. */
static const char *type_text(sn_build *b, sn_json_text type)
{
    static const struct {
        const char *theirs, *ours;
    } all[] = {{"float", "f32"},         {"double", "f64"},    {"long int", "i64"},
               {"int", "i32"},           {"short int", "i16"}, {"unsigned char", "u8"},
               {"signed char", "i8"},    {"bool", "bool"},     {"c10::Half", "f16"},
               {"c10::BFloat16", "bf16"}};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        if (sn_json_is(type, all[k].theirs))
            return all[k].ours;
    return sn_build_text(b, type);
}

typedef struct op_args {
    const uint8_t *dims, *types; /* where the lists stand; NULL: nowhere */
    sn_json_text dims_text;
} op_args;

static op_args read_args(const sn_json_event *e)
{
    op_args a = {NULL, NULL, {"", 0}};
    sn_json j = e->args;
    sn_json_text key;
    if (!e->has_args)
        return a;
    for (sn_json_object(&j); sn_json_member(&j, &key);) {
        const bool array = sn_json_peek(&j) == SN_JSON_ARRAY;
        const bool dims = array && (sn_json_is(key, "Input Dims") || sn_json_is(key, "Input dims"));
        if (dims)
            a.dims = j.at;
        if (array && sn_json_is(key, "Input type"))
            a.types = j.at;
        sn_json_skip(&j);
        if (dims)
            a.dims_text = (sn_json_text){(const char *)a.dims, (size_t)(j.at - a.dims)};
    }
    return a;
}

/* [[1, 3], [], []] and ["float", "Scalar", ""]: an argument without a type is no tensor. */
static void read_inputs(sn_build *b, const sn_json_event *e, const op_args *a, sn_prof_step *s)
{
    sn_shapes list;
    sn_shapes_init(&list, b);
    sn_json j = e->args;
    j.at = a->dims;
    for (sn_json_array(&j); sn_json_item(&j);)
        sn_shapes_read_dims(&list, &j, sn_shapes_add(&list));
    j = e->args;
    j.at = a->types;
    size_t i = 0;
    sn_json_text type;
    if (a->types)
        for (sn_json_array(&j); sn_json_item(&j); i++) {
            type = (sn_json_text){"", 0};
            if (sn_json_peek(&j) == SN_JSON_STRING)
                sn_json_string(&j, &type);
            else
                sn_json_skip(&j);
            if (i < list.list.n) {
                list.list.data[i].dtype = type_text(b, type);
                if (!type.n)
                    list.list.data[i].rank = -1;
            }
        }
    s->inputs = sn_shapes_take(&list, &s->n_inputs);
}

static uint32_t step_of(sn_build *b, const sn_json_event *e)
{
    const op_args a = read_args(e);
    uint32_t index;
    bool is_new;
    sn_build_key_begin(b);
    sn_build_key_add(b, e->name);
    sn_build_key_add(b, a.dims_text);
    sn_prof_step *s = sn_build_step(b, &index, &is_new);
    if (!s)
        return UINT32_MAX;
    if (is_new) {
        s->op_type = sn_build_text(b, e->name);
        if (a.dims)
            read_inputs(b, e, &a, s);
    }
    return index;
}

static sonde_status take(void *user, const sn_json_event *e, sonde_error *err)
{
    reader *r = user;
    sn_build *b = &r->b;
    const bool old = sn_json_is(e->category, "Operator");
    const bool marked = old && e->name.n && memchr(e->name.data, '#', e->name.n);
    const bool op = sn_json_is(e->category, "cpu_op") || (old && !marked);
    const bool annotation = sn_json_is(e->category, "user_annotation") || marked;
    const bool iteration = annotation && begins_with(e->name, "ProfilerStep#");
    if (e->phase != 'X' || !e->timed || !(op || annotation))
        return SONDE_OK;
    r->iterations |= iteration;
    const uint32_t step = op ? step_of(b, e) : UINT32_MAX;
    const sn_prof_cat cat = iteration ? SN_CAT_ITERATION : op ? SN_CAT_OPERATOR : SN_CAT_USER;
    return sn_build_event(b, e, cat, step, err);
}

/* The thread of the earliest operator, from there to its last one's end. */
static void make_iteration(sn_build *b)
{
    const sn_profile *p = b->p;
    uint64_t start = UINT64_MAX, end = 0;
    uint32_t thread = 0;
    for (size_t i = 0; i < p->spans.n; i++)
        if (p->spans.data[i].cat == SN_CAT_OPERATOR && p->spans.data[i].start_ns < start) {
            start = p->spans.data[i].start_ns;
            thread = p->spans.data[i].thread;
        }
    for (size_t i = 0; i < p->spans.n; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        uint64_t its_end;
        if (s->cat == SN_CAT_OPERATOR && s->thread == thread &&
            !__builtin_add_overflow(s->start_ns, s->dur_ns, &its_end) && its_end > end)
            end = its_end;
    }
    sn_prof_span *made = start < end ? sn_build_span(b, SN_CAT_ITERATION) : NULL;
    if (made) {
        made->start_ns = start;
        made->dur_ns = end - start;
        made->thread = thread;
        made->name = "Iteration0";
    }
}

static sonde_status read_pytorch(const void *data, size_t bytes, sn_profile *p, sonde_error *err)
{
    reader r = {0};
    sn_arena scratch;
    sn_build_init(&r.b, p);
    sn_arena_init(&scratch, p->alloc);
    p->version = "PyTorch";
    p->level = 1;
    p->record_ns = NAN;
    const sn_event_handler to = {.event = take, .user = &r};
    sonde_status st = sn_events_read(data, bytes, &scratch, &to, err);
    if (st == SONDE_OK && !r.iterations)
        make_iteration(&r.b);
    if (st == SONDE_OK)
        st = sn_build_finish(&r.b, SN_BUILD_BY_TIME, true, err);
    if (st == SONDE_OK)
        st = sn_build_loose(&r.b, err);
    sn_arena_free(&scratch);
    sn_build_free(&r.b);
    return st;
}

static bool sniff_pytorch(const char *head, size_t bytes)
{
    return sn_profile_sniff_first(head, bytes) == '{' &&
           (sn_profile_sniff_has(head, bytes, "\"cpu_op\"") ||
            (sn_profile_sniff_has(head, bytes, "\"schemaVersion\"") &&
             sn_profile_sniff_has(head, bytes, "\"deviceProperties\"")));
}

const sn_profile_reader sn_profile_reader_pytorch = {
    .name = "a trace of PyTorch", .sniff = sniff_pytorch, .read = read_pytorch};
