/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime's profile: an array of trace events in whole microseconds. A run is a "model_run" of
 * the category Session, a kernel a "<node>_kernel_time" of the category Node; what a run contains
 * is known by time alone. Loading and initialisation become executor spans. */
#include <math.h>
#include <string.h>

#include "profile_readers/build.h"
#include "profile_readers/events.h"
#include "profile_readers/reader.h"
#include "profile_readers/shapes.h"

static bool ends_with(sn_json_text text, const char *suffix)
{
    size_t n = strlen(suffix);
    return text.n >= n && memcmp(text.data + text.n - n, suffix, n) == 0;
}

static sn_json_text without(sn_json_text text, const char *suffix)
{
    if (ends_with(text, suffix))
        text.n -= strlen(suffix);
    return text;
}

static bool begins_with(sn_json_text text, const char *prefix)
{
    const size_t n = strlen(prefix);
    return text.n >= n && memcmp(text.data, prefix, n) == 0;
}

/* "/conv/Conv_token_12": names that are not unique get a number. */
static bool drop_number(sn_json_text *name)
{
    static const char word[] = "_token_";
    const size_t bytes = sizeof word - 1;
    size_t n = name->n;
    while (n && name->data[n - 1] >= '0' && name->data[n - 1] <= '9')
        n--;
    if (n == name->n || n <= bytes || memcmp(name->data + n - bytes, word, bytes) != 0)
        return false;
    name->n = n - bytes;
    return true;
}

/* "/self/MatMul/MatMulScaleFusion/": the pass that made the node. */
static bool drop_pass(sn_json_text *name)
{
    if (!ends_with(*name, "Fusion/"))
        return false;
    size_t n = name->n - 1;
    while (n && name->data[n - 1] != '/')
        n--;
    if (n < 2)
        return false;
    name->n = n - 1;
    return true;
}

static bool drop(sn_json_text *name, const char *suffix)
{
    const size_t n = name->n;
    *name = without(*name, suffix);
    return name->n != n;
}

/* What the model calls a node that passes made of it: its name without what they add. A node in the
 * layout of blocks ("X_nchwc") is called after its output. One without any name of the model, such
 * as ReorderOutput_token_3, keeps the one it has. */
static sn_json_text original(sn_json_text name, sn_json_text op)
{
    sn_json_text x = name;
    while (drop_number(&x) || drop_pass(&x) || drop(&x, "_nchwc") || drop(&x, "/duplicated"))
        ;
    if (begins_with(x, "fused ")) {
        x.data += strlen("fused ");
        x.n -= strlen("fused ");
    }
    const bool only_op = x.n == op.n && memcmp(x.data, op.data, op.n) == 0;
    return x.n && !only_op ? x : name;
}

/* ONNX's word for a type, and ours. */
static const char *type_text(sn_build *b, sn_json_text type)
{
#define X(name, number, onnx, text, bits)                                                          \
    if (sn_json_is(type, onnx))                                                                    \
        return text;
    SONDE_DTYPE_LIST(X)
#undef X
    return sn_build_text(b, type);
}

/* [{"float": [1, 3]}, {"int64": []}]: one object per tensor. */
static void read_types(sn_json *j, sn_shapes *list)
{
    sn_json_text type;
    for (sn_json_array(j); sn_json_item(j);) {
        if (sn_json_peek(j) != SN_JSON_OBJECT) {
            sn_json_skip(j);
            continue;
        }
        sn_prof_tensor *x = sn_shapes_add(list);
        for (sn_json_object(j); sn_json_member(j, &type);) {
            x->dtype = type_text(list->b, type);
            sn_shapes_read_dims(list, j, x);
        }
    }
}

typedef struct node_args {
    sn_json_text op, provider;
    const uint8_t *inputs, *outputs; /* where the lists stand; NULL: nowhere */
} node_args;

static node_args read_args(sn_json j)
{
    node_args a = {{"", 0}, {"", 0}, NULL, NULL};
    sn_json_text key;
    for (sn_json_object(&j); sn_json_member(&j, &key);) {
        bool text = sn_json_peek(&j) == SN_JSON_STRING, array = sn_json_peek(&j) == SN_JSON_ARRAY;
        if (text && sn_json_is(key, "op_name")) {
            sn_json_string(&j, &a.op);
            continue;
        }
        if (text && sn_json_is(key, "provider")) {
            sn_json_string(&j, &a.provider);
            continue;
        }
        if (array && sn_json_is(key, "input_type_shape"))
            a.inputs = j.at;
        if (array && sn_json_is(key, "output_type_shape"))
            a.outputs = j.at;
        sn_json_skip(&j);
    }
    return a;
}

static sn_json_text raw(const sn_json_event *e, const uint8_t *at)
{
    sn_json j = e->args;
    if (!at)
        return (sn_json_text){"", 0};
    j.at = at;
    sn_json_skip(&j);
    return (sn_json_text){(const char *)at, (size_t)(j.at - at)};
}

static const sn_prof_tensor *read_list(sn_build *b, const sn_json_event *e, const uint8_t *at,
                                       uint32_t *n)
{
    sn_shapes list;
    sn_shapes_init(&list, b);
    if (at) {
        sn_json j = e->args;
        j.at = at;
        read_types(&j, &list);
    }
    return sn_shapes_take(&list, n);
}

/* The step of a node with these shapes. */
static uint32_t step_of(sn_build *b, const sn_json_event *e, sn_json_text name)
{
    node_args a = read_args(e->args);
    sn_json_text inputs = raw(e, a.inputs);
    uint32_t index;
    bool is_new;
    sn_build_key_begin(b);
    sn_build_key_add(b, name);
    sn_build_key_add(b, a.op);
    sn_build_key_add(b, a.provider);
    sn_build_key_add(b, inputs);
    sn_prof_step *s = sn_build_step(b, &index, &is_new);
    if (!s || !is_new)
        return s ? index : UINT32_MAX;
    s->name = sn_build_text(b, name);
    s->op_type = sn_build_text(b, a.op);
    s->kernel = sn_build_text(b, without(a.provider, "ExecutionProvider"));
    uint32_t n_inputs, n_outputs;
    const sn_prof_tensor *in = read_list(b, e, a.inputs, &n_inputs);
    const sn_prof_tensor *out = read_list(b, e, a.outputs, &n_outputs);
    sn_prof_origin *origin = SN_NEW(&b->p->arena, sn_prof_origin);
    if (!origin) {
        b->failed = true;
        return index;
    }
    s->inputs = in;
    s->n_inputs = n_inputs;
    s->outputs = out;
    s->n_outputs = n_outputs;
    *origin = (sn_prof_origin){sn_build_text(b, original(name, a.op)), s->op_type};
    s->origins = origin;
    s->n_origins = 1;
    return index;
}

static sonde_status take(void *user, const sn_json_event *e, sonde_error *err)
{
    sn_build *b = user;
    const bool node = sn_json_is(e->category, "Node"), session = sn_json_is(e->category, "Session");
    const bool run = session && sn_json_is(e->name, "model_run");
    const bool kernel = node && e->has_args && ends_with(e->name, "_kernel_time");
    if (e->phase != 'X' || !e->timed || !(kernel || session))
        return SONDE_OK;
    /* Inside a run there are also spans of the executor; they only repeat its time. */
    if (session && !run && ends_with(e->name, "Execute"))
        return SONDE_OK;
    const uint32_t step = kernel ? step_of(b, e, without(e->name, "_kernel_time")) : UINT32_MAX;
    const sn_prof_cat cat = run ? SN_CAT_ITERATION : kernel ? SN_CAT_OPERATOR : SN_CAT_EXECUTOR;
    return sn_build_event(b, e, cat, step, err);
}

static sonde_status read_onnxruntime(const void *data, size_t bytes, sn_profile *p,
                                     sonde_error *err)
{
    sn_build b;
    sn_arena scratch;
    sn_build_init(&b, p);
    sn_arena_init(&scratch, p->alloc);
    p->version = "ONNX Runtime";
    p->level = 1;
    p->record_ns = NAN;
    const sn_event_handler to = {.event = take, .user = &b};
    sonde_status st = sn_events_read(data, bytes, &scratch, &to, err);
    if (st == SONDE_OK)
        st = sn_build_finish(&b, SN_BUILD_BY_TIME, true, err);
    if (st == SONDE_OK)
        st = sn_build_loose(&b, err);
    sn_arena_free(&scratch);
    sn_build_free(&b);
    return st;
}

static bool sniff_onnxruntime(const char *head, size_t bytes)
{
    const char first = sn_profile_sniff_first(head, bytes);
    return (first == '[' || first == '{') && sn_profile_sniff_has(head, bytes, "\"cat\"") &&
           (sn_profile_sniff_has(head, bytes, "\"Session\"") ||
            sn_profile_sniff_has(head, bytes, "\"op_name\""));
}

const sn_profile_reader sn_profile_reader_onnxruntime = {
    .name = "a profile of ONNX Runtime", .sniff = sniff_onnxruntime, .read = read_onnxruntime};
