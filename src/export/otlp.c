/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of a profile as OTLP has them. What is known of each is found in one walk at the beginning:
 * whom it lies in, and the outermost span, which is the trace. A span is written to memory first,
 * so that a request ends before it becomes too large; the profile itself is never copied. The
 * workers of a joined profile follow one another, each a resource with the numbers it has itself.
 */
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
    uint32_t inner;    /* of a run: operators and bodies in it that are shown */
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
    uint32_t *order; /* of a joined profile: spans by worker; else NULL, they are in order */
    size_t next;     /* place in that order to be looked at */
    bool pending;    /* `one` has a span that is not written yet */
    uint32_t worker; /* whose span that is; 0 where there are no workers */
    memory one;
    memory head;      /* what comes before the spans of a worker: */
    uint32_t head_of; /* this one; NOBODY */
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

/* ------------------------------------------------------------------ workers */
static uint32_t worker_of(const sn_profile *p, const sn_prof_span *s)
{
    return p->workers.n ? p->threads_seen.data[s->thread].worker : 0;
}

/* Numbers that joining moved, and whose they were; of a profile that is not joined, none and its
 * own. */
static sn_prof_worker origin_of(const sn_profile *p, const sn_prof_span *s)
{
    if (!p->workers.n)
        return (sn_prof_worker){.part = NULL};
    return p->workers.data[worker_of(p, s)];
}

static const sn_profile *part_of(const sn_profile *p, uint32_t worker)
{
    return p->workers.n ? p->workers.data[worker].part : p;
}

/* Spans of one worker after those of another, each in the order of their start. */
static sonde_status order_spans(sn_otlp *o, sonde_error *err)
{
    const sn_profile *p = o->p;
    size_t *first = sn_alloc_zero(p->alloc, (p->workers.n + 1) * sizeof *first);
    o->order = sn_alloc(p->alloc, p->spans.n * sizeof *o->order);
    for (size_t i = 0; first && i < p->spans.n; i++)
        first[worker_of(p, &p->spans.data[i]) + 1]++;
    for (size_t k = 0; first && k < p->workers.n; k++)
        first[k + 1] += first[k];
    for (size_t i = 0; first && o->order && i < p->spans.n; i++)
        o->order[first[worker_of(p, &p->spans.data[i])]++] = (uint32_t)i;
    const bool fine = first && o->order;
    sn_free(p->alloc, first, (p->workers.n + 1) * sizeof *first);
    return fine ? SONDE_OK : sn_fail_memory(err, p->spans.n * sizeof *o->order);
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
    if (own->shown && own->run != NOBODY)
        o->places[own->run].inner += s->cat == SN_CAT_OPERATOR || s->cat == SN_CAT_EXECUTOR;
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
static void shape_text(const int64_t *dims, int32_t rank, char *text, size_t bytes)
{
    size_t n = 0;
    text[0] = 0;
    for (int32_t d = 0; d < rank && n + 24 < bytes; d++)
        n += (size_t)snprintf(text + n, bytes - n, dims[d] >= 0 ? "%s%" PRId64 : "%s?",
                              d ? "x" : "", dims[d]);
}

/* "f32[1x3x224x224]"; what is no tensor says so itself. */
static void put_tensors(sn_otlp *o, bool *first, const char *key, const sn_prof_tensor *list,
                        uint32_t n)
{
    sn_otlp_list_begin(&o->w, first, key);
    for (uint32_t i = 0; i < n && i < SN_OTLP_LIST_ITEMS; i++) {
        char dims[400], text[512];
        shape_text(list[i].dims, list[i].rank, dims, sizeof dims);
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

/* A model's inputs, each as the first step found it that reads it. */
typedef struct inputs {
    const sn_prof_tensor *tensors[SN_OTLP_LIST_ITEMS];
    size_t n;
} inputs;

/* In the order of the model, which is that of its values; one whose value is 0, not known, stays
 * behind those before it. */
static void add_input(inputs *all, const sn_prof_tensor *x)
{
    if (!x->port || x->rank < 0 || all->n == SN_OTLP_LIST_ITEMS)
        return;
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->tensors[i]->port, x->port) == 0)
            return;
    size_t at = all->n++;
    for (; x->value && at > 0 && all->tensors[at - 1]->value > x->value; at--)
        all->tensors[at] = all->tensors[at - 1];
    all->tensors[at] = x;
}

/* As the caller gave it, not as the step sees it. */
static void port_shape(const sn_prof_tensor *x, const int64_t **dims, int32_t *rank)
{
    *dims = x->port_dims ? x->port_dims : x->dims;
    *rank = x->port_dims ? x->port_rank : x->rank;
}

/* The model's inputs in this run, of steps that read them; the batch is the first one's first size.
 */
static void put_inputs(sn_otlp *o, bool *first, uint32_t step)
{
    const sn_profile *p = o->p;
    const uint32_t table = p->steps.data[step].table;
    inputs all = {.n = 0};
    int64_t batch = 0;
    while (step > 0 && p->steps.data[step - 1].table == table)
        step--;
    for (; step < p->steps.n && p->steps.data[step].table == table; step++)
        for (uint32_t k = 0; k < p->steps.data[step].n_inputs; k++)
            add_input(&all, &p->steps.data[step].inputs[k]);
    if (!all.n)
        return;
    sn_otlp_list_begin(&o->w, first, "sonde.inputs");
    for (size_t i = 0; i < all.n; i++) {
        char dims[400], text[1024];
        const sn_prof_tensor *x = all.tensors[i];
        const int64_t *sizes;
        int32_t rank;
        port_shape(x, &sizes, &rank);
        shape_text(sizes, rank, dims, sizeof dims);
        batch = i == 0 && rank > 0 ? sizes[0] : batch;
        snprintf(text, sizeof text, "%.500s: %s[%s]", x->port, x->dtype, dims);
        sn_otlp_list_item(&o->w, i, text);
    }
    sn_otlp_list_end(&o->w);
    if (batch > 0)
        sn_otlp_integer(&o->w, first, "sonde.batch", batch);
}

static void put_run(sn_otlp *o, bool *first, const sn_prof_span *s, const place *at)
{
    sn_writer *w = &o->w;
    const sn_prof_worker moved = origin_of(o->p, s);
    const sn_profile *p = moved.part ? moved.part : o->p;
    sn_otlp_text(w, first, "sonde.model", p->model_name);
    sn_otlp_text(w, first, "sonde.precision", p->precision);
    const uint32_t own = at->step < o->p->steps.n ? o->p->steps.data[at->step].threads : 0;
    if (own || p->threads > 0)
        sn_otlp_integer(w, first, "sonde.threads", own ? own : (uint32_t)p->threads);
    sn_otlp_integer(w, first, "sonde.session", s->instance - moved.first_instance);
    sn_otlp_integer(w, first, "sonde.run", s->run ? s->run - moved.first_run : 0);
    sn_otlp_integer(w, first, "sonde.iteration", s->iteration);
    if (s->warmup)
        sn_otlp_true(w, first, "sonde.warmup");
    if (at->step < o->p->steps.n)
        put_inputs(o, first, at->step);
    if (at->inner)
        sn_otlp_integer(w, first, "sonde.operators", at->inner);
}

static void put_thread(sn_otlp *o, bool *first, const sn_prof_span *s)
{
    const sn_prof_worker moved = origin_of(o->p, s);
    const sn_profile *p = moved.part ? moved.part : o->p;
    const uint32_t at = s->thread - moved.first_thread;
    if (at >= p->threads_seen.n)
        return;
    sn_otlp_integer(&o->w, first, "thread.id", p->threads_seen.data[at].os_tid);
    sn_otlp_text(&o->w, first, "thread.name", p->threads_seen.data[at].name);
}

static void put_attributes(sn_otlp *o, uint32_t i)
{
    const sn_prof_span *s = &o->p->spans.data[i];
    bool first = true;
    sn_put(&o->w, ",\"attributes\":[");
    if (s->cat == SN_CAT_ITERATION)
        put_run(o, &first, s, &o->places[i]);
    if (s->cat == SN_CAT_OPERATOR && s->step < o->p->steps.n)
        put_step(o, &first, &o->p->steps.data[s->step]);
    if (s->cat == SN_CAT_USER)
        sn_otlp_text(&o->w, &first, "sonde.args", s->args);
    put_thread(o, &first, s);
    sn_put(&o->w, "]");
}

/* ------------------------------------------------------------------ a span */
static void put_name(sn_otlp *o, const sn_prof_span *s)
{
    const sn_prof_step *step = s->step < o->p->steps.n ? &o->p->steps.data[s->step] : NULL;
    if (s->cat == SN_CAT_ITERATION) {
        char text[600];
        snprintf(text, sizeof text, "run %.500s", part_of(o->p, worker_of(o->p, s))->model_name);
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
    o->head_of = NOBODY;
    memory_init(&o->one, p->alloc);
    memory_init(&o->head, p->alloc);
    sonde_status st = find_places(o, err);
    if (st == SONDE_OK && p->workers.n)
        st = order_spans(o, err);
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
    sn_vec_free(&o->head.bytes, alloc);
    sn_free(alloc, o->order, o->p->spans.n * sizeof *o->order);
    sn_free(alloc, o->places, o->p->spans.n * sizeof *o->places);
    sn_free(alloc, o, sizeof *o);
}

static const char beginning[] = "{\"resourceSpans\":[", after_spans[] = "]}]}", ending[] = "]}\n";

/* What comes before the spans of a worker into o->head. */
static sonde_status make_head(sn_otlp *o, uint32_t worker, sonde_error *err)
{
    const sn_profile *part = part_of(o->p, worker);
    if (o->head_of == worker)
        return SONDE_OK;
    o->head_of = NOBODY;
    o->head.bytes.n = 0;
    sn_writer_init(&o->w, &o->head.sink);
    sn_put(&o->w, "{\"resource\":");
    sn_otlp_put_resource(&o->w, part, o->resource, part != o->p);
    sn_put(&o->w, ",\"scopeSpans\":[{\"scope\":{\"name\":\"sonde\",\"version\":");
    sn_put_json(&o->w, part->version);
    sn_put(&o->w, "},\"spans\":[");
    if (sn_writer_finish(&o->w, NULL))
        return sn_fail_memory(err, o->head.bytes.n);
    o->head_of = worker;
    return SONDE_OK;
}

/* The next span into o->one; false: there is none. */
static sonde_status advance(sn_otlp *o, bool *have, sonde_error *err)
{
    while (!o->pending && o->next < o->p->spans.n) {
        const uint32_t i = o->order ? o->order[o->next] : (uint32_t)o->next;
        o->next++;
        if (!o->places[i].shown)
            continue;
        SN_TRY(make_span(o, i, err));
        o->worker = worker_of(o->p, &o->p->spans.data[i]);
        o->pending = true;
    }
    *have = o->pending;
    return SONDE_OK;
}

/* A request while it is written. */
typedef struct request {
    sn_sink *sink;
    size_t bytes;
    uint32_t worker; /* whose spans are under way; NOBODY */
} request;

static void add(request *r, const void *data, size_t n)
{
    (void)sn_sink_write(r->sink, data, n);
    r->bytes += n;
}

static void add_head(sn_otlp *o, request *r, uint32_t worker)
{
    if (r->worker == NOBODY) {
        add(r, beginning, sizeof beginning - 1);
    } else {
        add(r, after_spans, sizeof after_spans - 1);
        add(r, ",\n", 2);
    }
    add(r, o->head.bytes.data, o->head.bytes.n);
    r->worker = worker;
}

static sonde_status end(request *r, sonde_error *err)
{
    if (r->worker != NOBODY) {
        add(r, after_spans, sizeof after_spans - 1);
        add(r, ending, sizeof ending - 1);
    }
    return r->sink->failed ? sn_fail(err, SONDE_IO, "writing the profile failed") : SONDE_OK;
}

sonde_status sn_otlp_next(sn_otlp *o, size_t most_bytes, sn_sink *sink, size_t *spans,
                          sonde_error *err)
{
    enum { ENDS = sizeof after_spans + sizeof ending };
    request r = {.sink = sink, .worker = NOBODY};
    bool have = false;
    *spans = 0;
    SN_TRY(advance(o, &have, err));
    while (have && !sink->failed) {
        const bool same = r.worker == o->worker;
        SN_TRY(make_head(o, o->worker, err));
        const size_t head = same ? 0 : o->head.bytes.n + sizeof after_spans + 2;
        const size_t more = head + 2 + o->one.bytes.n + ENDS;
        if (*spans && most_bytes && (r.bytes > most_bytes || more > most_bytes - r.bytes))
            break;
        if (!same)
            add_head(o, &r, o->worker);
        add(&r, same ? ",\n" : "\n", same ? 2 : 1);
        add(&r, o->one.bytes.data, o->one.bytes.n);
        ++*spans;
        o->pending = false;
        SN_TRY(advance(o, &have, err));
    }
    return end(&r, err);
}

/* A request without spans is one, too. */
static sonde_status put_no_spans(sn_otlp *o, sn_sink *sink, sonde_error *err)
{
    request r = {.sink = sink, .worker = NOBODY};
    for (uint32_t k = 0; k < (o->p->workers.n ? o->p->workers.n : 1); k++) {
        SN_TRY(make_head(o, k, err));
        add_head(o, &r, k);
    }
    return end(&r, err);
}

static sonde_status write_otlp_with(const sn_profile *p, const sn_export_options *opt,
                                    sn_sink *sink, sonde_error *err)
{
    const sn_otlp_resource nothing = {NULL, NULL};
    sn_otlp *o = NULL;
    size_t spans = 0;
    SN_TRY(sn_otlp_open(&o, p, &nothing, opt ? opt->categories : 0, err));
    sonde_status st = sn_otlp_next(o, 0, sink, &spans, err);
    if (st == SONDE_OK && !spans)
        st = put_no_spans(o, sink, err);
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
                                      .lists_spans = true,
                                      .write = write_otlp,
                                      .write_with = write_otlp_with};
