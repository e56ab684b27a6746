/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of a profile as OTLP has them. What is known of each is found in one walk at the beginning:
 * whom it lies in, and the outermost span, which is the trace. A span is written to memory first,
 * so that a request ends before it becomes too large; the profile itself is never copied. */
#include "export/otlp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/traceparent.h"
#include "export/reports.h"
#include "export/step_text.h"
#include "export/writer.h"

#define NOBODY UINT32_MAX
enum { INTERNAL = 1 }; /* the kind of a span that is no request between services */

typedef struct place { /* of a span; other spans by their position */
    uint32_t parent;   /* the innermost span around it that is shown; NOBODY */
    uint32_t root;     /* whose trace it is: the outermost one's, or its run's */
    uint32_t run;      /* its run; NOBODY */
    uint32_t step;     /* of a run: the first step that ran in it; UINT32_MAX */
    bool shown;
    bool dropped; /* it belongs to a run whose caller samples nothing */
} place;

typedef struct memory { /* what a request is put together in */
    sn_sink sink;
    sn_allocator *alloc;
    SN_VEC(char) bytes;
} memory;

struct sn_otlp {
    const sn_profile *p;
    const sn_otlp_resource *resource;
    uint32_t categories;
    place *places;
    size_t next;  /* span to be looked at */
    bool pending; /* `one` has a span that is not written yet */
    memory one;
    sn_writer w;
};

/* ------------------------------------------------------------------ memory */
static bool write_memory(sn_sink *sink, const void *data, size_t n)
{
    memory *m = sink->user;
    return sn_vec_append(&m->bytes, m->alloc, data, n);
}

static void memory_init(memory *m, sn_allocator *alloc)
{
    *m = (memory){.alloc = alloc, .sink = {.write = write_memory, .user = m}};
}

/* ------------------------------------------------------------------ who lies in whom */
static bool is_shown(const sn_otlp *o, const sn_prof_span *s)
{
    if (!sn_prof_cats_have(o->categories, s->cat))
        return false;
    return s->cat == SN_CAT_ITERATION || s->cat == SN_CAT_OPERATOR || s->cat == SN_CAT_USER ||
           (s->cat == SN_CAT_EXECUTOR && s->run);
}

static bool caller_of(const sn_prof_span *s, sn_caller *caller)
{
    return s->cat == SN_CAT_ITERATION && sn_traceparent_parse(s->args, caller);
}

/* Parents come first, so one walk is enough. What lies in a span that is not shown is shown in the
 * next one outwards; but of a run whose caller samples nothing, nothing is. */
static void find_place(sn_otlp *o, const sn_prof_index *index, uint32_t i)
{
    const sn_prof_span *s = &o->p->spans.data[i];
    const uint32_t up = s->parent ? sn_prof_index_find(index, s->parent) : UINT32_MAX;
    const place *above = up < i ? &o->places[up] : NULL;
    place *own = &o->places[i];
    sn_caller caller;
    const bool called = caller_of(s, &caller);
    *own = (place){.parent = NOBODY, .root = i, .run = NOBODY, .step = UINT32_MAX};
    own->dropped = (above && above->dropped) || (called && !(caller.flags & SN_CALLER_SAMPLED));
    if (own->dropped)
        return;
    if (above && !called) {
        own->parent = above->shown ? up : above->parent;
        own->run = above->run;
        own->root = own->parent != NOBODY ? o->places[own->parent].root
                    : own->run != NOBODY  ? own->run
                                          : i;
    }
    if (s->cat == SN_CAT_ITERATION)
        own->run = i;
    if (s->cat == SN_CAT_OPERATOR && own->run != NOBODY && o->places[own->run].step == UINT32_MAX)
        o->places[own->run].step = s->step;
    own->shown = is_shown(o, s);
}

static sonde_status find_places(sn_otlp *o, sonde_error *err)
{
    const sn_profile *p = o->p;
    sn_prof_index index;
    SN_TRY(sn_prof_index_build(p, &index, err));
    o->places = sn_alloc(p->alloc, p->spans.n * sizeof *o->places);
    for (size_t i = 0; o->places && i < p->spans.n; i++)
        find_place(o, &index, (uint32_t)i);
    sn_prof_index_free(&index);
    return o->places ? SONDE_OK : sn_fail_memory(err, p->spans.n * sizeof *o->places);
}

/* ------------------------------------------------------------------ ids */
static void put_hex(sn_writer *w, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        const char two[2] = {digits[bytes[i] >> 4], digits[bytes[i] & 15]};
        sn_put_bytes(w, two, sizeof two);
    }
}

/* A trace is its outermost span's: the caller's, else a run's own, else one of a record. */
static void put_trace_id(sn_otlp *o, uint32_t root)
{
    const sn_prof_span *s = &o->p->spans.data[root];
    sn_caller caller;
    char text[33];
    if (caller_of(s, &caller)) {
        put_hex(&o->w, caller.trace_id, sizeof caller.trace_id);
        return;
    }
    const bool numbered = s->cat == SN_CAT_ITERATION && s->run;
    sn_trace_id_text(o->p, numbered ? s->run : s->id | UINT32_C(1) << 31, text);
    sn_put(&o->w, text);
}

static void put_ids(sn_otlp *o, uint32_t i)
{
    const place *at = &o->places[i];
    const sn_prof_span *s = &o->p->spans.data[i];
    sn_caller caller;
    char text[17];
    sn_put(&o->w, "{\"traceId\":\"");
    put_trace_id(o, at->root);
    sn_span_id_text(o->p, s->id, text);
    sn_put(&o->w, "\",\"spanId\":\"");
    sn_put(&o->w, text);
    if (caller_of(s, &caller)) {
        sn_put(&o->w, "\",\"parentSpanId\":\"");
        put_hex(&o->w, caller.span_id, sizeof caller.span_id);
    } else if (at->parent != NOBODY) {
        sn_span_id_text(o->p, o->p->spans.data[at->parent].id, text);
        sn_put(&o->w, "\",\"parentSpanId\":\"");
        sn_put(&o->w, text);
    }
    sn_put(&o->w, "\",");
}

/* ------------------------------------------------------------------ attributes */
static void shape_text(const sn_prof_tensor *x, char *text, size_t bytes)
{
    size_t n = 0;
    text[0] = 0;
    for (int32_t d = 0; d < x->rank && n + 24 < bytes; d++)
        n += (size_t)snprintf(text + n, bytes - n, x->dims[d] >= 0 ? "%s%" PRId64 : "%s?",
                              d ? "x" : "", x->dims[d]);
}

/* "f32[1x3x224x224]"; what is no tensor says so itself. */
static void put_tensors(sn_otlp *o, bool *first, const char *key, const sn_prof_tensor *list,
                        uint32_t n)
{
    sn_otlp_list_begin(&o->w, first, key);
    for (uint32_t i = 0; i < n && i < SN_OTLP_LIST_ITEMS; i++) {
        char dims[400], text[512];
        shape_text(&list[i], dims, sizeof dims);
        snprintf(text, sizeof text, "%s[%s]", list[i].dtype, dims);
        sn_otlp_list_item(&o->w, i, list[i].rank >= 0 ? text : list[i].text ? list[i].text : "");
    }
    sn_otlp_list_end(&o->w);
}

static void put_step(sn_otlp *o, bool *first, const sn_prof_step *step)
{
    sn_writer *w = &o->w;
    sn_otlp_text(w, first, "sonde.op", step->op_type);
    sn_otlp_text(w, first, "sonde.post_op", step->post_op);
    if (step->n_origins) {
        sn_otlp_list_begin(w, first, "sonde.nodes");
        for (uint32_t k = 0; k < step->n_origins; k++)
            sn_otlp_list_item(w, k, sn_prof_node_name(step, k));
        sn_otlp_list_end(w);
    }
    sn_otlp_text(w, first, "sonde.kernel", step->kernel);
    put_tensors(o, first, "sonde.inputs", step->inputs, step->n_inputs);
    put_tensors(o, first, "sonde.outputs", step->outputs, step->n_outputs);
    if (step->flops)
        sn_otlp_integer(w, first, "sonde.flops", (int64_t)step->flops);
    if (step->bytes)
        sn_otlp_integer(w, first, "sonde.bytes", (int64_t)step->bytes);
}

/* The model's inputs in this run, of steps that read them; the batch is the first one's first. */
static void put_inputs(sn_otlp *o, bool *first, uint32_t step)
{
    const sn_profile *p = o->p;
    const uint32_t table = p->steps.data[step].table;
    const char *seen[SN_OTLP_LIST_ITEMS];
    size_t n = 0;
    int64_t batch = 0;
    while (step > 0 && p->steps.data[step - 1].table == table)
        step--;
    for (; step < p->steps.n && p->steps.data[step].table == table; step++)
        for (uint32_t k = 0; k < p->steps.data[step].n_inputs && n < SN_OTLP_LIST_ITEMS; k++) {
            const sn_prof_tensor *x = &p->steps.data[step].inputs[k];
            bool again = !x->port || x->rank < 0;
            for (size_t i = 0; i < n && !again; i++)
                again = strcmp(seen[i], x->port) == 0;
            if (again)
                continue;
            char dims[400], text[1024];
            shape_text(x, dims, sizeof dims);
            snprintf(text, sizeof text, "%.500s: %s[%s]", x->port, x->dtype, dims);
            if (!n)
                sn_otlp_list_begin(&o->w, first, "sonde.inputs");
            if (!n && x->rank > 0)
                batch = x->dims[0];
            sn_otlp_list_item(&o->w, n, text);
            seen[n++] = x->port;
        }
    if (n)
        sn_otlp_list_end(&o->w);
    if (batch > 0)
        sn_otlp_integer(&o->w, first, "sonde.batch", batch);
}

static void put_run(sn_otlp *o, bool *first, const sn_prof_span *s, uint32_t step)
{
    sn_writer *w = &o->w;
    sn_otlp_text(w, first, "sonde.model", o->p->model_name);
    sn_otlp_text(w, first, "sonde.precision", o->p->precision);
    if (o->p->threads > 0)
        sn_otlp_integer(w, first, "sonde.threads", o->p->threads);
    sn_otlp_integer(w, first, "sonde.session", s->instance);
    sn_otlp_integer(w, first, "sonde.run", s->run);
    sn_otlp_integer(w, first, "sonde.iteration", s->iteration);
    if (s->warmup)
        sn_otlp_true(w, first, "sonde.warmup");
    if (step < o->p->steps.n)
        put_inputs(o, first, step);
}

static void put_attributes(sn_otlp *o, uint32_t i)
{
    const sn_prof_span *s = &o->p->spans.data[i];
    bool first = true;
    sn_put(&o->w, ",\"attributes\":[");
    if (s->cat == SN_CAT_ITERATION)
        put_run(o, &first, s, o->places[i].step);
    if (s->cat == SN_CAT_OPERATOR && s->step < o->p->steps.n)
        put_step(o, &first, &o->p->steps.data[s->step]);
    if (s->cat == SN_CAT_USER)
        sn_otlp_text(&o->w, &first, "sonde.args", s->args);
    if (s->thread < o->p->threads_seen.n) {
        const sn_prof_thread *t = &o->p->threads_seen.data[s->thread];
        sn_otlp_integer(&o->w, &first, "thread.id", t->os_tid);
        sn_otlp_text(&o->w, &first, "thread.name", t->name);
    }
    sn_put(&o->w, "]");
}

/* ------------------------------------------------------------------ a span */
static void put_name(sn_otlp *o, const sn_prof_span *s)
{
    const sn_prof_step *step = s->step < o->p->steps.n ? &o->p->steps.data[s->step] : NULL;
    if (s->cat == SN_CAT_ITERATION) {
        char text[600];
        snprintf(text, sizeof text, "run %.500s", o->p->model_name);
        sn_put_json(&o->w, text);
        return;
    }
    const char *name = s->cat == SN_CAT_OPERATOR && step ? step->op_type : s->name;
    char part[SN_OTLP_TEXT_BYTES];
    snprintf(part, sizeof part, "%s", name && *name ? name : sn_prof_cat_name(s->cat));
    sn_put_json(&o->w, part);
}

static void put_time(sn_otlp *o, const char *key, uint64_t ns)
{
    sn_put(&o->w, ",\"");
    sn_put(&o->w, key);
    sn_put(&o->w, "\":\"");
    sn_put_u64(&o->w, o->p->start_wall_ns + ns);
    sn_put(&o->w, "\"");
}

static sonde_status make_span(sn_otlp *o, uint32_t i, sonde_error *err)
{
    const sn_prof_span *s = &o->p->spans.data[i];
    o->one.bytes.n = 0;
    sn_writer_init(&o->w, &o->one.sink);
    put_ids(o, i);
    sn_put(&o->w, "\"name\":");
    put_name(o, s);
    sn_put(&o->w, ",\"kind\":");
    sn_put_u64(&o->w, INTERNAL);
    put_time(o, "startTimeUnixNano", s->start_ns);
    put_time(o, "endTimeUnixNano", s->start_ns + s->dur_ns);
    put_attributes(o, i);
    sn_put(&o->w, "}");
    return sn_writer_finish(&o->w, NULL) ? sn_fail_memory(err, o->one.bytes.n) : SONDE_OK;
}

/* ------------------------------------------------------------------ requests */
sonde_status sn_otlp_open(sn_otlp **otlp, const sn_profile *p, const sn_otlp_resource *resource,
                          uint32_t categories, sonde_error *err)
{
    *otlp = NULL;
    sn_otlp *o = sn_alloc_zero(p->alloc, sizeof *o);
    if (!o)
        return sn_fail_memory(err, sizeof *o);
    o->p = p;
    o->resource = resource;
    o->categories = categories ? categories : p->categories;
    memory_init(&o->one, p->alloc);
    const sonde_status st = find_places(o, err);
    if (st != SONDE_OK) {
        sn_otlp_close(o);
        return st;
    }
    *otlp = o;
    return SONDE_OK;
}

void sn_otlp_close(sn_otlp *o)
{
    if (!o)
        return;
    sn_allocator *alloc = o->p->alloc;
    sn_vec_free(&o->one.bytes, alloc);
    sn_free(alloc, o->places, o->p->spans.n * sizeof *o->places);
    sn_free(alloc, o, sizeof *o);
}

static const char ending[] = "]}]}]}\n";

static sonde_status put_head(sn_otlp *o, sn_sink *sink, size_t *bytes, sonde_error *err)
{
    memory head;
    memory_init(&head, o->p->alloc);
    sn_writer_init(&o->w, &head.sink);
    sn_put(&o->w, "{\"resourceSpans\":[{\"resource\":");
    sn_otlp_put_resource(&o->w, o->p, o->resource);
    sn_put(&o->w, ",\"scopeSpans\":[{\"scope\":{\"name\":\"sonde\",\"version\":");
    sn_put_json(&o->w, o->p->version);
    sn_put(&o->w, "},\"spans\":[");
    const bool fine = sn_writer_finish(&o->w, NULL) == SONDE_OK;
    if (fine)
        (void)sn_sink_write(sink, head.bytes.data, head.bytes.n);
    *bytes = head.bytes.n;
    sn_vec_free(&head.bytes, o->p->alloc);
    return fine ? SONDE_OK : sn_fail_memory(err, *bytes);
}

/* The next span into o->one; false: there is none. */
static sonde_status advance(sn_otlp *o, bool *have, sonde_error *err)
{
    while (!o->pending && o->next < o->p->spans.n) {
        const uint32_t i = (uint32_t)o->next++;
        if (!o->places[i].shown)
            continue;
        SN_TRY(make_span(o, i, err));
        o->pending = true;
    }
    *have = o->pending;
    return SONDE_OK;
}

sonde_status sn_otlp_next(sn_otlp *o, size_t most_bytes, sn_sink *sink, size_t *spans,
                          sonde_error *err)
{
    size_t bytes = 0;
    bool have = false;
    *spans = 0;
    SN_TRY(advance(o, &have, err));
    if (!have)
        return SONDE_OK;
    SN_TRY(put_head(o, sink, &bytes, err));
    while (have && !sink->failed) {
        const size_t more = o->one.bytes.n + 1 + sizeof ending;
        if (*spans && most_bytes && (bytes > most_bytes || more > most_bytes - bytes))
            break;
        (void)sn_sink_text(sink, *spans ? ",\n" : "\n");
        (void)sn_sink_write(sink, o->one.bytes.data, o->one.bytes.n);
        bytes += o->one.bytes.n + 2;
        ++*spans;
        o->pending = false;
        SN_TRY(advance(o, &have, err));
    }
    (void)sn_sink_text(sink, ending);
    return sink->failed ? sn_fail(err, SONDE_IO, "writing the profile failed") : SONDE_OK;
}

static sonde_status write_otlp_with(const sn_profile *p, const sn_export_options *opt,
                                    sn_sink *sink, sonde_error *err)
{
    const sn_otlp_resource nothing = {NULL, NULL};
    sn_otlp *o = NULL;
    size_t spans = 0, bytes = 0;
    SN_TRY(sn_otlp_open(&o, p, &nothing, opt ? opt->categories : 0, err));
    sonde_status st = sn_otlp_next(o, 0, sink, &spans, err);
    if (st == SONDE_OK && !spans) { /* a request without spans is one, too */
        st = put_head(o, sink, &bytes, err);
        if (st == SONDE_OK && !sn_sink_text(sink, ending))
            st = sn_fail(err, SONDE_IO, "writing the profile failed");
    }
    sn_otlp_close(o);
    return st;
}

static sonde_status write_otlp(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    return write_otlp_with(p, NULL, sink, err);
}

const sn_exporter sn_exporter_otlp = {.suffix = ".otlp.json",
                                      .name = "otlp",
                                      .summary = "OpenTelemetry spans, as a collector takes them "
                                                 "over HTTP",
                                      .write = write_otlp,
                                      .write_with = write_otlp_with};
