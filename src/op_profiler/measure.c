/* SPDX-License-Identifier: Apache-2.0 */
/* One way of running a case: a context of its own with the instructions and threads asked for, a
 * session, and the recorder. What counts is the time of the operator's own step; the reorders that
 * the layout pass put around it are left out, because in a model they stand at borders only. */
#include "op_profiler/op_case.h"
#include "plan/binding.h"

typedef struct measuring {
    const sn_op_case *c;
    const sn_op_way *way;
    sonde_context *context;
    sonde_model *model;
    sonde_session *session;
    const char **names;
    sonde_value **values, **outputs;
    size_t n_in, n_out;
    sn_binding *bound;
} measuring;

static sonde_status open(measuring *m, sonde_error *err)
{
    sonde_context *outer = m->c->context;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = m->way->threads;
    o.cpu = m->way->cpu;
    o.max_memory = outer->alloc.limit_bytes;
    o.alloc = outer->user_alloc;
    o.free = outer->user_free;
    o.alloc_user = outer->user;
    SN_TRY(sonde_context_create(&o, &m->context, err));
    SN_TRY(sn_api_ignore_env(m->context, err));
    SN_TRY(sn_op_case_model(m->c, m->context, &m->model, err));
    sonde_session_options s = SONDE_INIT(sonde_session_options);
    s.no_optimize = m->way->no_optimize;
    s.no_prepack = m->way->no_prepack;
    s.precision = m->way->precision;
    return sonde_session_create(m->model, &s, &m->session, err);
}

static sonde_status set_inputs(measuring *m, sn_arena *arena, sonde_error *err)
{
    m->n_out = sonde_session_output_count(m->session);
    m->names = SN_NEW_N(arena, const char *, m->c->n_in + 1);
    m->values = SN_NEW_N(arena, sonde_value *, m->c->n_in + 1);
    m->outputs = SN_NEW_N(arena, sonde_value *, m->n_out + 1);
    if (!m->names || !m->values || !m->outputs)
        return sn_fail_memory(err, m->c->n_in * sizeof *m->values);
    for (size_t k = 0; k < m->c->n_in; k++) {
        const sn_op_port *port = &m->c->in[k];
        bool seen = port->data || !port->value;
        for (size_t i = 0; i < m->n_in && !seen; i++)
            seen = strcmp(m->names[i], port->name) == 0;
        if (seen)
            continue;
        m->names[m->n_in] = port->name;
        m->values[m->n_in++] = port->value;
    }
    return sn_api_bind(m->session, m->names, m->values, m->n_in, &m->bound, err);
}

static sonde_status run(measuring *m, bool warmup, sonde_error *err)
{
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    o.warmup = warmup;
    o.cancel = m->way->cancel;
    const sonde_status st = sonde_session_run(m->session, &o, m->names, m->values, m->n_in, NULL,
                                              m->outputs, m->n_out, err);
    for (size_t i = 0; i < m->n_out; i++) {
        sonde_value_release(m->outputs[i]);
        m->outputs[i] = NULL;
    }
    return st;
}

/* The profile of one repetition: few enough records that none is ever dropped. */
static sonde_status repetition(measuring *m, bool warmups, sonde_profile **profile,
                               sonde_error *err)
{
    SN_TRY(sonde_profiler_start(m->context, 1, err));
    sonde_status st = SONDE_OK;
    for (int i = 0; warmups && i < m->way->warmup && st == SONDE_OK; i++)
        st = run(m, true, err);
    for (int i = 0; i < m->way->exec && st == SONDE_OK; i++)
        st = run(m, false, err);
    const sonde_status stopped =
        sonde_profiler_stop(m->context, st ? NULL : profile, st ? NULL : err);
    return st ? st : stopped;
}

static bool is_reorder(const measuring *m, uint32_t step)
{
    const sn_node *n = step < m->bound->n_steps ? m->bound->steps[step].node : NULL;
    return n && strcmp(n->op_type, "Reorder") == 0 && strcmp(n->domain, "sonde") == 0;
}

/* Adds the operator's time in every measured run to samples[]. */
static void collect(const measuring *m, const sn_profile *p, double *samples)
{
    for (size_t i = 0; i < p->spans.n; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        if (s->cat != SN_CAT_OPERATOR || s->warmup || s->step >= p->steps.n ||
            s->iteration >= (uint32_t)m->way->exec)
            continue;
        const sn_prof_step *step = &p->steps.data[s->step];
        if (step->table == m->bound->id && !is_reorder(m, step->index))
            samples[s->iteration] += (double)s->dur_ns / 1e3;
    }
}

/* The instructions that a kernel is named after, else the best that it may use. */
static const char *level_of(const char *kernel, uint32_t flags)
{
    const char *suffix = strrchr(kernel, '_');
    const char *level = suffix ? sn_cpu_level_word(flags, suffix + 1) : NULL;
    return level ? level : sn_cpu_level_name(flags);
}

/* What is known without running. */
static sonde_status describe(const measuring *m, sn_arena *arena, sonde_op_variant *row,
                             size_t *steps, bool *reordered, sonde_error *err)
{
    *steps = 0;
    *reordered = false;
    const char *kernel = "";
    uint32_t arithmetic = 0;
    for (uint32_t i = 0; i < m->bound->n_steps; i++) {
        const sn_step_info *info = &m->bound->info[i];
        if (is_reorder(m, i)) {
            *reordered = true;
            continue;
        }
        ++*steps;
        row->flops += info->flops;
        row->bytes += info->bytes;
        arithmetic |= info->arithmetic ? 1u << info->arithmetic : 0;
        if (info->workspace_bytes > row->workspace_bytes)
            row->workspace_bytes = info->workspace_bytes;
        if (info->kernel && *info->kernel && !*kernel)
            kernel = info->kernel;
    }
    row->cpu = level_of(kernel, m->context->core.cpu.flags);
    row->threads = m->way->threads;
    row->packed = sn_session_program(m->session->core)->packed_bytes > 0;
    row->layout = *reordered ? "blocked" : "plain";
    char text[SN_ARITH_TEXT];
    row->arithmetic = sn_arena_strdup(arena, sn_arithmetic_text(arithmetic, text));
    row->kernel = sn_arena_strdup(arena, kernel);
    return row->kernel && row->arithmetic ? SONDE_OK : sn_fail_memory(err, strlen(kernel));
}

static sonde_status measure(measuring *m, sn_arena *arena, sonde_op_variant *row, sonde_error *err)
{
    const size_t exec = (size_t)m->way->exec, repeat = (size_t)m->way->repeat, n = exec * repeat;
    double *samples = SN_NEW_N(arena, double, n), *latency = SN_NEW_N(arena, double, repeat);
    double *sorted = SN_NEW_N(arena, double, n);
    if (!samples || !latency || !sorted)
        return sn_fail_memory(err, n * sizeof *samples);
    for (size_t r = 0; r < repeat; r++) {
        sonde_profile *profile = NULL;
        SN_TRY(repetition(m, r == 0, &profile, err));
        collect(m, profile->core, samples + r * exec);
        sonde_profile_release(profile);
        for (size_t i = 0; i < exec; i++)
            latency[r] += samples[r * exec + i] / (double)exec;
    }
    memcpy(sorted, samples, n * sizeof *sorted);
    sn_prof_stats s;
    sn_prof_stats_of(sorted, n, &s);
    row->latency_us = latency;
    row->latency_count = repeat;
    row->samples_us = samples;
    row->sample_count = n;
    row->min_us = s.min;
    row->mean_us = s.mean;
    row->stddev_us = s.stddev;
    row->p50_us = s.p50;
    row->p90_us = s.p90;
    row->p99_us = s.p99;
    row->max_us = s.max;
    row->gflops = s.mean > 0 ? (double)row->flops / s.mean / 1e3 : 0;
    row->gbps = s.mean > 0 ? (double)row->bytes / s.mean / 1e3 : 0;
    return SONDE_OK;
}

/* Every variant is held against the same roof: that of the caller's context. */
static void attain(const measuring *m, sonde_op_variant *row)
{
    sn_profile peaks = {.peak_gbps = 0};
    double peak_ns = 0;
    sn_machine_describe_peaks(&m->c->context->machine, row->threads, &peaks);
    for (uint32_t i = 0; i < m->bound->n_steps; i++) {
        const sn_step_info *info = &m->bound->info[i];
        const double ns = sn_prof_peak_ns(&peaks, info->arithmetic, (double)info->flops);
        peak_ns = ns < 0 || peak_ns < 0 ? -1 : peak_ns + ns;
    }
    row->roofline =
        sn_prof_attained(&peaks, peak_ns, (double)row->bytes, row->mean_us * 1e3, &row->bound);
}

sonde_status sn_op_measure(const sn_op_case *c, const sn_op_way *way, sn_arena *arena,
                           sonde_op_variant *row, size_t *steps, bool *reordered, sonde_error *err)
{
    measuring m = {.c = c, .way = way};
    *row = (sonde_op_variant){.struct_size = sizeof *row, .bound = "", .arithmetic = ""};
    sonde_status st = open(&m, err);
    if (st == SONDE_OK)
        st = set_inputs(&m, arena, err);
    if (st == SONDE_OK)
        st = describe(&m, arena, row, steps, reordered, err);
    if (st == SONDE_OK && *steps)
        st = measure(&m, arena, row, err);
    if (st == SONDE_OK)
        attain(&m, row);
    if (m.bound)
        sn_binding_unref(m.bound);
    sonde_session_release(m.session);
    sonde_model_release(m.model);
    sonde_context_release(m.context);
    return st;
}
