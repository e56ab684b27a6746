/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome's trace event JSON, as chrome://tracing and ui.perfetto.dev read it. Viewers nest complete
 * events by time within a thread, so what overlaps without nesting gets a lane of its own: the
 * model, and the iterations of every instance (a second lane where two run at once). Everything
 * else lies on its real thread. The workers of a joined profile are processes; what counters add up
 * over all of them is a further one. Events are written one by one; the file is never held in
 * memory. */
#include <inttypes.h>
#include <stdio.h>

#include "export/chrome_facts.h"
#include "export/pftrace_sections.h"
#include "export/step_text.h"
#include "profile/chrome_keys.h"

enum {
    MODEL_LANE = 1,
    FIRST_ITERATION_LANE = 2,
    MAX_ITERATION_LANES = 64 /* more at once share the last one */
};

#define MODEL_TITLE "model_inference"

typedef struct process {
    int64_t pid;
    const char *name; /* NULL: after the model */
    uint64_t lane_end[MAX_ITERATION_LANES];
    uint32_t lane_instance[MAX_ITERATION_LANES];
    unsigned lanes;
} process;

typedef struct chrome {
    const sn_profile *p;
    sn_writer w;
    sn_prof_index index;
    sn_prof_summary summary;
    process *processes; /* by worker; the one behind the last has the counters of all of them */
    process *now;       /* whose events are written */
    sn_arena arena;
    const sn_step_text **step_text; /* per step, made at its first use; in the arena */
    uint32_t *first_span;           /* per step: its first use; 0: none */
    bool first_event, failed;
} chrome;

/* ------------------------------------------------------------------ events */
static void begin(chrome *c, const char *phase, const char *name, const char *cat, uint64_t tid)
{
    sn_put(&c->w, c->first_event ? "\n" : ",\n");
    c->first_event = false;
    sn_put(&c->w, "{\"ph\":\"");
    sn_put(&c->w, phase);
    sn_put(&c->w, "\",\"name\":");
    sn_put_json(&c->w, name);
    if (cat) {
        sn_put(&c->w, ",\"cat\":");
        sn_put_json(&c->w, cat);
    }
    sn_put(&c->w, ",\"pid\":");
    sn_put_i64(&c->w, c->now->pid);
    sn_put(&c->w, ",\"tid\":");
    sn_put_u64(&c->w, tid);
}

static void at(chrome *c, uint64_t ns)
{
    sn_put(&c->w, ",\"ts\":");
    sn_put_us(&c->w, ns);
}

static void metadata(chrome *c, const char *what, uint64_t tid, const char *name)
{
    begin(c, "M", what, NULL, tid);
    sn_put(&c->w, ",\"args\":{\"name\":");
    sn_put_json(&c->w, name);
    sn_put(&c->w, "}}");
}

static void sort_index(chrome *c, uint64_t tid)
{
    begin(c, "M", "thread_sort_index", NULL, tid);
    sn_put(&c->w, ",\"args\":{\"sort_index\":");
    sn_put_u64(&c->w, tid);
    sn_put(&c->w, "}}");
}

static void lane(chrome *c, uint64_t tid, const char *name)
{
    metadata(c, "thread_name", tid, name);
    sort_index(c, tid);
}

/* Whose thread it is. */
static void enter(chrome *c, uint32_t thread)
{
    c->now = &c->processes[c->p->workers.n ? c->p->threads_seen.data[thread].worker : 0];
}

static void put_process(chrome *c)
{
    const size_t worker = (size_t)(c->now - c->processes);
    const char *model =
        worker < c->p->workers.n ? c->p->workers.data[worker].part->model_name : c->p->model_name;
    begin(c, "M", "process_name", NULL, 0);
    sn_put(&c->w, ",\"args\":{\"name\":\"");
    sn_put(&c->w, c->now->name ? "" : model && *model ? "sonde: " : "sonde");
    sn_put_json_part(&c->w, c->now->name ? c->now->name : model);
    sn_put(&c->w, "\"}}");
    if (!c->now->name)
        return;
    begin(c, "M", "process_labels", NULL, 0); /* and what the name of an only process says */
    sn_put(&c->w, ",\"args\":{\"labels\":\"sonde: ");
    sn_put_json_part(&c->w, model);
    sn_put(&c->w, "\"}}");
    begin(c, "M", "process_sort_index", NULL, 0);
    sn_put(&c->w, ",\"args\":{\"sort_index\":");
    sn_put_u64(&c->w, worker);
    sn_put(&c->w, "}}");
}

/* Threads of a worker follow one another. */
static void put_threads(chrome *c)
{
    char text[64];
    const process *before = NULL;
    for (size_t i = 0; i < c->p->threads_seen.n; i++) {
        const sn_prof_thread *t = &c->p->threads_seen.data[i];
        enter(c, (uint32_t)i);
        if (c->now != before) {
            put_process(c);
            lane(c, MODEL_LANE, "model");
        }
        before = c->now;
        snprintf(text, sizeof text, "thread %" PRIu32, t->id);
        lane(c, SN_CHROME_FIRST_THREAD + i, t->name && *t->name ? t->name : text);
    }
    if (c->p->workers.n && c->p->counters.n) {
        c->now = &c->processes[c->p->workers.n];
        put_process(c);
    }
}

static bool several_instances(const chrome *c, const sn_prof_span *s)
{
    return s->instance || c->summary.instances > 1;
}

/* Iterations of one lane are one instance's and never overlap; lanes are named as they appear. */
static uint64_t iteration_lane(chrome *c, const sn_prof_span *s)
{
    process *own = c->now;
    unsigned k = 0, before = 0; /* lanes of the same instance */
    for (; k < own->lanes; k++) {
        if (own->lane_instance[k] != s->instance)
            continue;
        if (own->lane_end[k] <= s->start_ns)
            break;
        before++;
    }
    if (k == MAX_ITERATION_LANES)
        k--;
    if (k == own->lanes) {
        char of[32] = "", text[64];
        if (several_instances(c, s) && !c->p->workers.n)
            snprintf(of, sizeof of, " of instance %" PRIu32, s->instance);
        snprintf(text, sizeof text, before ? "iteration%s (%u)" : "iteration%s", of, before + 1);
        own->lane_instance[own->lanes++] = s->instance;
        lane(c, FIRST_ITERATION_LANE + k, text);
    }
    own->lane_end[k] = s->start_ns + s->dur_ns;
    return FIRST_ITERATION_LANE + k;
}

/* ------------------------------------------------------------------ arguments of a step */
static void arg_text(chrome *c, bool *first, const char *key, const char *value)
{
    sn_put_key(&c->w, first, key);
    sn_put_json(&c->w, value);
}

static void arg_u64(chrome *c, bool *first, const char *key, uint64_t value)
{
    sn_put_key(&c->w, first, key);
    sn_put_u64(&c->w, value);
}

static void arg_ms(chrome *c, bool *first, const char *key, uint64_t ns)
{
    sn_put_key(&c->w, first, key);
    sn_put(&c->w, "\"");
    sn_put_ms_text(&c->w, ns);
    sn_put(&c->w, "\"");
}

static void step_args(chrome *c, bool *first, const sn_prof_span *span)
{
    const sn_prof_step *s = &c->p->steps.data[span->step];
    const sn_step_text **text = &c->step_text[span->step];
    const bool first_use = !*text;
    if (!*text)
        *text = sn_step_text_of(s, &c->arena);
    if (!*text) {
        c->failed = true;
        return;
    }
    sn_writer *w = &c->w;
    arg_text(c, first, "op", s->op_type);
    arg_text(c, first, "post_op", s->post_op);
    sn_put_key(w, first, "nodes");
    sn_put(w, "[");
    for (uint32_t i = 0; i < s->n_origins; i++) {
        sn_put(w, i ? "," : "");
        sn_put_json(w, s->origins[i].name);
    }
    sn_put(w, "]");
    arg_text(c, first, "kernel", s->kernel);
    arg_text(c, first, "arithmetic", sn_arithmetic_name(s->arithmetic));
    arg_text(c, first, "input_tensor_name", (*text)->input_names);
    arg_text(c, first, "input_type", (*text)->input_types);
    arg_text(c, first, "input_shape", (*text)->input_shapes);
    arg_text(c, first, "output_tensor_name", (*text)->output_names);
    arg_text(c, first, "output_type", (*text)->output_types);
    arg_text(c, first, "output_shape", (*text)->output_shapes);
    arg_text(c, first, "attributes", s->attributes);
    arg_u64(c, first, "flops", s->flops);
    arg_u64(c, first, "bytes", s->bytes);
    arg_text(c, first, "args_string", (*text)->args_string);
    arg_ms(c, first, "reshape_time", span->bound ? s->bind_ns : 0);
    arg_ms(c, first, "forward_time", span->dur_ns);
    if (first_use)
        c->first_span[span->step] = span->id;
    if (first_use && s->hw.calls > 0) {
        sn_put_key(w, first, "counters");
        sn_chrome_counts(w, &s->hw);
    }
}

/* ------------------------------------------------------------------ spans */
static const sn_prof_step *step_of(const chrome *c, const sn_prof_span *s)
{
    return s->step < c->p->steps.n ? &c->p->steps.data[s->step] : NULL;
}

static const char *span_title(const chrome *c, const sn_prof_span *s)
{
    if (s->cat == SN_CAT_MODEL)
        return MODEL_TITLE;
    const sn_prof_step *step = s->cat == SN_CAT_OPERATOR ? step_of(c, s) : NULL;
    if (step && *sn_step_title(step))
        return sn_step_title(step);
    return s->name && *s->name ? s->name : sn_prof_cat_name(s->cat);
}

static bool wanted(const chrome *c, sn_prof_cat cat)
{
    return sn_prof_cats_have(c->p->categories, cat);
}

static uint64_t lane_of(chrome *c, const sn_prof_span *s)
{
    if (s->cat == SN_CAT_MODEL)
        return MODEL_LANE;
    if (s->cat == SN_CAT_ITERATION)
        return iteration_lane(c, s);
    return (uint64_t)SN_CHROME_FIRST_THREAD + s->thread;
}

/* An arrow from the step to one worker's share of it. Viewers bind an end to the innermost slice
 * open on its lane at that time: at the start of the step nothing inside it is open yet. */
static void put_flow(chrome *c, const sn_prof_span *slice, const sn_prof_span *step)
{
    begin(c, "s", "parallel", "thread", (uint64_t)SN_CHROME_FIRST_THREAD + step->thread);
    at(c, step->start_ns);
    sn_put(&c->w, ",\"id\":");
    sn_put_u64(&c->w, slice->id);
    sn_put(&c->w, "}");
    begin(c, "f", "parallel", "thread", (uint64_t)SN_CHROME_FIRST_THREAD + slice->thread);
    at(c, slice->start_ns);
    sn_put(&c->w, ",\"bp\":\"e\",\"id\":");
    sn_put_u64(&c->w, slice->id);
    sn_put(&c->w, "}");
}

static void put_span(chrome *c, const sn_prof_span *s)
{
    if (!wanted(c, s->cat))
        return;
    enter(c, s->thread);
    uint64_t tid = lane_of(c, s);
    uint32_t parent = sn_prof_index_find(&c->index, s->parent);
    const sn_prof_span *up = parent != UINT32_MAX ? &c->p->spans.data[parent] : NULL;
    begin(c, "X", span_title(c, s), sn_prof_span_category(s), tid);
    at(c, s->start_ns);
    sn_put(&c->w, ",\"dur\":");
    sn_put_us(&c->w, s->dur_ns);
    sn_put(&c->w, ",\"args\":{");
    bool first = true;
    if (s->cat == SN_CAT_OPERATOR && step_of(c, s))
        step_args(c, &first, s);
    if (s->cat == SN_CAT_MODEL)
        arg_text(c, &first, "model", c->p->model_name);
    if (s->cat == SN_CAT_USER && s->args && *s->args)
        arg_text(c, &first, "args", s->args);
    if (s->cat == SN_CAT_ITERATION && s->args && *s->args)
        arg_text(c, &first, "traceparent", s->args);
    if (s->category && *s->category) { /* which may be called like one of ours */
        sn_put_key(&c->w, &first, "user");
        sn_put(&c->w, "true");
    }
    if (s->cat == SN_CAT_THREAD && step_of(c, s)) {
        arg_text(c, &first, "op", step_of(c, s)->op_type);
        arg_text(c, &first, "node", step_of(c, s)->name);
    }
    if (s->run || s->cat == SN_CAT_OPERATOR || s->cat == SN_CAT_ITERATION)
        arg_u64(c, &first, "iteration", s->iteration);
    if (s->warmup) {
        sn_put_key(&c->w, &first, "warmup");
        sn_put(&c->w, "true");
    }
    if (s->run && several_instances(c, s))
        arg_u64(c, &first, "instance", s->instance);
    if (s->run)
        arg_u64(c, &first, "run", s->run);
    arg_u64(c, &first, "span_id", s->id);
    if (up)
        arg_u64(c, &first, "parent_span_id", s->parent);
    sn_put(&c->w, "}}");
    if (s->cat == SN_CAT_THREAD && up && up->cat == SN_CAT_OPERATOR && up->thread != s->thread &&
        wanted(c, SN_CAT_OPERATOR))
        put_flow(c, s, up);
}

/* The outermost level, where nobody recorded it: from the first iteration to the end of the last.
 */
static void put_model(chrome *c)
{
    uint64_t start = UINT64_MAX, end = 0;
    if (!wanted(c, SN_CAT_MODEL))
        return;
    for (size_t i = 0; i < c->p->spans.n; i++) {
        const sn_prof_span *s = &c->p->spans.data[i];
        if (s->cat == SN_CAT_MODEL)
            return;
        if (s->cat != SN_CAT_ITERATION)
            continue;
        start = s->start_ns < start ? s->start_ns : start;
        end = s->start_ns + s->dur_ns > end ? s->start_ns + s->dur_ns : end;
    }
    if (start > end)
        return;
    enter(c, 0);
    begin(c, "X", MODEL_TITLE, "model", MODEL_LANE);
    at(c, start);
    sn_put(&c->w, ",\"dur\":");
    sn_put_us(&c->w, end - start);
    sn_put(&c->w, ",\"args\":{\"model\":");
    sn_put_json(&c->w, c->p->model_name);
    sn_put(&c->w, "}}");
}

static void put_counters(chrome *c)
{
    c->now = &c->processes[c->p->workers.n];
    for (size_t i = 0; i < c->p->counters.n && wanted(c, SN_CAT_MEMORY); i++) {
        const sn_prof_counter *k = &c->p->counters.data[i];
        begin(c, "C", k->name, NULL, 0);
        at(c, k->at_ns);
        sn_put(&c->w, ",\"args\":{\"value\":");
        sn_put_number(&c->w, k->value);
        sn_put(&c->w, "}}");
    }
}

/* ------------------------------------------------------------------ the whole */
static sonde_status name_workers(chrome *c, sonde_error *err)
{
    const sn_profile *p = c->p;
    sn_pftrace_sections names;
    sn_pftrace_sections_init(&names, p->workers.n, p->alloc);
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < p->workers.n && st == SONDE_OK; i++) {
        sn_pftrace_section own;
        st = sn_pftrace_sections_next(&names, p->workers.data[i].part, &own, err);
        if (st != SONDE_OK)
            break;
        c->processes[i].pid = own.pid;
        c->processes[i].name = sn_arena_strdup(&c->arena, own.name);
        if (!c->processes[i].name)
            st = sn_fail_memory(err, 1);
    }
    c->processes[p->workers.n].pid = p->workers.n ? names.next_pid : p->pid;
    c->processes[p->workers.n].name = p->workers.n ? "all workers" : NULL;
    sn_pftrace_sections_free(&names);
    return st;
}

static sonde_status write_chrome(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    chrome c = {.p = p, .first_event = true};
    SN_TRY(sn_profile_summarise(p, SN_BY_OP, &c.summary, err));
    sonde_status st;
    SN_TRY_GOTO(st, sn_prof_index_build(p, &c.index, err));
    sn_arena_init(&c.arena, p->alloc);
    c.step_text = sn_arena_array(&c.arena, p->steps.n + 1, sizeof *c.step_text, sizeof(void *));
    c.first_span = SN_NEW_N(&c.arena, uint32_t, p->steps.n + 1);
    c.processes = SN_NEW_N(&c.arena, process, p->workers.n + 1);
    if (!c.step_text || !c.first_span || !c.processes) {
        st = sn_fail_memory(err, p->steps.n * sizeof *c.step_text);
        goto fail;
    }
    SN_TRY_GOTO(st, name_workers(&c, err));
    sn_writer_init(&c.w, sink);
    sn_put(&c.w, "{\"traceEvents\":[");
    put_threads(&c);
    put_model(&c);
    for (size_t i = 0; i < p->spans.n && !sink->failed && !c.failed; i++)
        put_span(&c, &p->spans.data[i]);
    put_counters(&c);
    sn_put(&c.w, "\n],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{");
    sn_chrome_facts(&c.w, p, &c.summary, c.first_span);
    sn_put(&c.w, "}}\n");
    st = sn_writer_finish(&c.w, err);
    if (c.failed)
        st = sn_fail_memory(err, sizeof(sn_step_text));
fail:
    sn_arena_free(&c.arena);
    sn_prof_index_free(&c.index);
    sn_prof_summary_free(&c.summary);
    return st;
}

const sn_exporter sn_exporter_chrome = {.suffix = ".json",
                                        .name = "chrome",
                                        .summary = "Trace for chrome://tracing and ui.perfetto.dev",
                                        .lists_spans = true,
                                        .write = write_chrome};
