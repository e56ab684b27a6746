/* SPDX-License-Identifier: Apache-2.0 */
/* The spans of a profile as lines of a data frame: ids as reports write them, texts of steps as
 * traces write them. What belongs to a step is made once, not once for every span of it. */
#include <stdio.h>
#include <stdlib.h>

#include "api/internal.h"
#include "base/traceparent.h"
#include "export/reports.h"
#include "export/step_text.h"
#include "sonde/experimental/profile.h"

struct sonde_profile_spans {
    sonde_context *context;
    const sn_profile *profile;
    sn_arena arena;
    const sn_step_text **texts; /* by step */
    const int64_t *executions;  /* by span: its number among device executions, or -1 */
    const sn_prof_span *
        *called; /* runs that belong to a caller's trace, in order of their number */
    size_t n_called;
};

/* Executions on a device are numbered; device spans inside of one are parts of it. */
static const int64_t *number_executions(const sn_profile *p, sn_arena *arena)
{
    int64_t *numbers = SN_NEW_N(arena, int64_t, p->spans.n + 1), n = 0;
    sn_prof_index index;
    if (!numbers || sn_prof_index_build(p, &index, NULL) != SONDE_OK)
        return NULL;
    for (size_t i = 0; i < p->spans.n; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        numbers[i] = -1;
        if (s->cat != SN_CAT_DEVICE)
            continue;
        const uint32_t at = sn_prof_index_find(&index, s->parent);
        if (at == UINT32_MAX || p->spans.data[at].cat != SN_CAT_DEVICE)
            numbers[i] = n++;
    }
    sn_prof_index_free(&index);
    return numbers;
}

static int by_run(const void *a, const void *b)
{
    const sn_prof_span *x = *(const sn_prof_span *const *)a, *y = *(const sn_prof_span *const *)b;
    return (x->run > y->run) - (x->run < y->run);
}

/* Runs that belong to the trace of a caller. */
static bool list_called(sonde_profile_spans *spans)
{
    const sn_profile *p = spans->profile;
    sn_caller caller;
    size_t n = 0;
    for (size_t i = 0; i < p->spans.n; i++)
        n += p->spans.data[i].cat == SN_CAT_ITERATION && *p->spans.data[i].args;
    spans->called = SN_NEW_N(&spans->arena, const sn_prof_span *, n + 1);
    for (size_t i = 0; spans->called && i < p->spans.n; i++)
        if (p->spans.data[i].cat == SN_CAT_ITERATION &&
            sn_traceparent_parse(p->spans.data[i].args, &caller))
            spans->called[spans->n_called++] = &p->spans.data[i];
    if (spans->n_called > 1)
        qsort(spans->called, spans->n_called, sizeof(const sn_prof_span *), by_run);
    return spans->called != NULL;
}

/* The traceparent of a run's caller; NULL: it has none. */
static const char *caller_of(const sonde_profile_spans *spans, uint32_t run)
{
    const sn_prof_span key = {.run = run}, *key_at = &key;
    const sn_prof_span *const *found =
        run && spans->n_called
            ? bsearch(&key_at, spans->called, spans->n_called, sizeof key_at, by_run)
            : NULL;
    return found ? (*found)->args : NULL;
}

sonde_status sonde_profile_spans_get(const sonde_profile *profile, sonde_profile_spans **spans,
                                     sonde_error *err)
{
    SN_REQUIRE(spans, err);
    *spans = NULL;
    SN_REQUIRE(profile, err);
    const sn_profile *p = profile->core;
    sonde_context *c = profile->context;
    sonde_profile_spans *made = sn_alloc_zero(&c->alloc, sizeof *made);
    if (!made)
        return sn_fail_memory(err, sizeof *made);
    made->context = sn_api_context_ref(c);
    made->profile = p;
    sn_arena_init(&made->arena, &c->alloc);
    made->executions = number_executions(p, &made->arena);
    made->texts = SN_NEW_N(&made->arena, const sn_step_text *, p->steps.n + 1);
    bool fine = made->executions && made->texts && list_called(made);
    for (size_t i = 0; fine && i < p->steps.n; i++)
        fine = (made->texts[i] = sn_step_text_of(&p->steps.data[i], &made->arena)) != NULL;
    if (!fine) {
        sonde_profile_spans_release(made);
        return sn_fail_memory(err, p->spans.n * sizeof(int64_t));
    }
    *spans = made;
    return SONDE_OK;
}

size_t sonde_profile_spans_count(const sonde_profile_spans *spans)
{
    return spans ? spans->profile->spans.n : 0;
}

static void describe_step(const sonde_profile_spans *spans, uint32_t at, sonde_profile_span *to)
{
    const sn_prof_step *step = &spans->profile->steps.data[at];
    const sn_step_text *text = spans->texts[at];
    to->node = text->nodes;
    to->op_type = step->op_type;
    to->post_op = step->post_op;
    to->kernel = step->kernel;
    to->input_shapes = text->input_shapes;
    to->input_types = text->input_types;
    to->output_shapes = text->output_shapes;
    to->output_types = text->output_types;
    to->operator_index = step->index;
    to->flops = (int64_t)step->flops;
    to->bytes = (int64_t)step->bytes;
    to->arithmetic = sn_arithmetic_name(step->arithmetic);
}

static sonde_profile_span describe(const sonde_profile_spans *spans, size_t at)
{
    const sn_profile *p = spans->profile;
    const sn_prof_span *s = &p->spans.data[at];
    const sn_prof_thread *thread =
        s->thread < p->threads_seen.n ? &p->threads_seen.data[s->thread] : NULL;
    sonde_profile_span to = {.name = s->name,
                             .category = sn_prof_span_category(s),
                             .text = s->args ? s->args : "",
                             .thread_name = thread ? thread->name : "",
                             .node = "",
                             .op_type = "",
                             .post_op = "",
                             .kernel = "",
                             .input_shapes = "",
                             .input_types = "",
                             .output_shapes = "",
                             .output_types = "",
                             .thread_id = thread ? thread->os_tid : 0,
                             .start_ns = p->start_wall_ns + s->start_ns,
                             .end_ns = p->start_wall_ns + s->start_ns + s->dur_ns,
                             .iteration = s->run ? (int64_t)s->iteration : -1,
                             .instance = p->instance + (int64_t)s->instance,
                             .operator_index = -1,
                             .pe_index = s->cat == SN_CAT_DEVICE ? (int64_t)s->thread : -1,
                             .execution_index = spans->executions[at],
                             .flops = -1,
                             .bytes = -1,
                             .warmup = s->warmup,
                             .arithmetic = ""};
    sn_trace_id_text(p, s->run, to.trace_id);
    sn_span_id_text(p, s->id, to.span_id);
    if (s->parent)
        sn_span_id_text(p, s->parent, to.parent_span_id);
    const char *caller = caller_of(spans, s->run);
    if (caller) /* "00-<32 digits>-<16 digits>-01" */
        snprintf(to.trace_id, sizeof to.trace_id, "%.32s", caller + 3);
    if (caller && s->cat == SN_CAT_ITERATION)
        snprintf(to.parent_span_id, sizeof to.parent_span_id, "%.16s", caller + 36);
    if (s->step < p->steps.n)
        describe_step(spans, s->step, &to);
    return to;
}

sonde_status sonde_profile_spans_span(const sonde_profile_spans *spans, size_t index,
                                      sonde_profile_span *span, sonde_error *err)
{
    SN_REQUIRE(spans, err);
    SN_REQUIRE(span, err);
    if (index >= spans->profile->spans.n)
        return sn_fail(err, SONDE_NOT_FOUND, "there are %zu spans, no span %zu",
                       spans->profile->spans.n, index);
    const sonde_profile_span made = describe(spans, index);
    return sn_api_copy_out(span, &made, sizeof made, err);
}

void sonde_profile_spans_release(sonde_profile_spans *spans)
{
    if (!spans)
        return;
    sonde_context *c = spans->context;
    sn_arena_free(&spans->arena);
    sn_free(&c->alloc, spans, sizeof *spans);
    sonde_context_release(c);
}
