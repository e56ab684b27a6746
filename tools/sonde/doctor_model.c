/* SPDX-License-Identifier: Apache-2.0 */
/* A model: run for a while under the profiler, then judged by its rows. Each check is one function
 * over the same rows; a share of the run says how much a remedy could bring. */
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "sonde/experimental/inspect.h"
#include "sonde/experimental/profile.h"

typedef struct rows {
    sonde_profile_rows *handle;
    sonde_profile_row *list;
    size_t n;
} rows;

typedef struct model_case {
    findings *f;
    sonde_profile_summary summary;
    rows ops, kernels, nodes;
} model_case;

static int get_rows(rows *r, const sonde_profile *profile, sonde_by by)
{
    sonde_error err;
    if (sonde_profile_rows_get(profile, by, &r->handle, &err))
        return fail("%s", err.message);
    r->n = sonde_profile_rows_count(r->handle);
    r->list = need(calloc(r->n + 1, sizeof *r->list));
    for (size_t i = 0; i < r->n; i++) {
        r->list[i].struct_size = sizeof r->list[i];
        if (sonde_profile_rows_row(r->handle, i, &r->list[i], &err))
            return fail("%s", err.message);
    }
    return EXIT_OK;
}

static void free_rows(rows *r)
{
    sonde_profile_rows_release(r->handle);
    free(r->list);
}

void few_add(few *w, const char *name, double share)
{
    char *shown = printable(name);
    if (w->n < 4)
        text_add(&w->t, "%s%s %.1f %%", w->n ? ", " : "", *shown ? shown : "(unnamed)",
                 share * 100);
    else if (w->n == 4)
        text_add(&w->t, " and more");
    free(shown);
    w->n++;
    w->share += share;
}

char *few_text(few *w)
{
    return w->t.data ? w->t.data : text_of("%s", "");
}

/* ------------------------------------------------------------------ the checks */
static void what_dominates(model_case *m)
{
    few w = {.n = 0};
    for (size_t i = 0; i < m->ops.n && w.n < 4; i++)
        if (!m->ops.list[i].bracket && m->ops.list[i].share >= 0.01)
            few_add(&w, m->ops.list[i].name, m->ops.list[i].share);
    found(m->f, GOOD, "operators",
          text_of("a run of %.0f steps takes %s (median %s, p99 %s)", m->summary.ops,
                  time_text(m->summary.mean_ns / 1e6), time_text(m->summary.p50_ns / 1e6),
                  time_text(m->summary.p99_ns / 1e6)),
          few_text(&w), "");
}

static void what_varies(model_case *m)
{
    if (m->summary.p99_ns > 1.5 * m->summary.p50_ns)
        found(m->f, NOTE, "spread",
              text_of("the slowest 1 %% of runs take at least %.1f times the median",
                      m->summary.p99_ns / m->summary.p50_ns),
              text_of("median %s, p99 %s", time_text(m->summary.p50_ns / 1e6),
                      time_text(m->summary.p99_ns / 1e6)),
              "other work on the machine is the usual cause; see 'noise' above");
}

static void plain_kernels(model_case *m)
{
    few w = {.n = 0};
    for (size_t i = 0; i < m->kernels.n; i++) {
        const sonde_profile_row *r = &m->kernels.list[i];
        if (!r->bracket && sonde_kernel_is_plain(r->kernel))
            few_add(&w, r->kernel, r->share);
    }
    if (w.share >= 0.01)
        found(m->f, SLOW, "kernels",
              text_of("%.1f %% of the time is spent in plain C kernels", w.share * 100),
              few_text(&w),
              "use all instruction sets (no --cpu), f32 instead of f64, or a shape that has a SIMD "
              "kernel");
    else
        text_free(&w.t);
}

/* Transposes of the model's own; changes of layout are looked at apart. */
static void moving_data(model_case *m)
{
    few w = {.n = 0};
    for (size_t i = 0; i < m->ops.n; i++)
        if (strcmp(m->ops.list[i].op_type, "Transpose") == 0)
            few_add(&w, "Transpose", m->ops.list[i].share);
    if (w.share >= 0.05)
        found(m->f, SLOW, "layout",
              text_of("%.1f %% of the time is spent in transposes", w.share * 100), few_text(&w),
              "export the model in the layout of the operators (NCHW), and remove pairs of "
              "transposes");
    else
        text_free(&w.t);
}

static void between_steps(model_case *m)
{
    for (size_t i = 0; i < m->ops.n; i++) {
        const sonde_profile_row *r = &m->ops.list[i];
        if (strcmp(r->name, "[Other]") == 0 && r->share >= 0.05)
            found(m->f, NOTE, "overhead",
                  text_of("%.1f %% of the time is spent between operators", r->share * 100),
                  text_of("[Other] is %s per run for %.0f steps", time_text(r->mean_ns / 1e6),
                          m->summary.ops),
                  "use larger batches, or fewer and larger operators; on a busy machine this is "
                  "waiting time");
        if (strcmp(r->name, "[Mem alloc/free]") == 0 && r->share >= 0.05)
            found(m->f, NOTE, "allocation",
                  text_of("%.1f %% of the time is spent allocating memory", r->share * 100),
                  text_of("%s a run", time_text(r->mean_ns / 1e6)),
                  "pass output tensors to the run, and avoid data-dependent shapes");
    }
}

static void tiny_steps(model_case *m)
{
    double calls = 0, share = 0;
    for (size_t i = 0; i < m->nodes.n; i++) {
        const sonde_profile_row *r = &m->nodes.list[i];
        if (r->bracket || !(r->calls > 0) || r->per_call_mean_ns >= 1000)
            continue;
        calls += r->calls;
        share += r->share;
    }
    if (calls >= 20 && calls > 0.5 * m->summary.ops)
        found(m->f, NOTE, "small steps",
              text_of("%.0f of %.0f steps take less than a microsecond", calls, m->summary.ops),
              text_of("together %.1f %% of the run", share * 100),
              "the overhead of starting steps dominates: simplify the graph when exporting, or run "
              "larger batches");
}

static void below_roofline(model_case *m)
{
    few w = {.n = 0};
    bool known = false;
    for (size_t i = 0; i < m->nodes.n; i++) {
        const sonde_profile_row *r = &m->nodes.list[i];
        known |= r->roofline >= 0;
        if (r->roofline >= 0 && r->roofline < 0.2 && r->share >= 0.01)
            few_add(&w, *r->node ? r->node : r->name, r->share);
    }
    if (w.share >= 0.05)
        found(m->f, NOTE, "roofline",
              text_of("%.1f %% of the time is spent in operators below 20 %% of the machine's peak",
                      w.share * 100),
              few_text(&w), "'sonde op MODEL --node NAME' measures one of them in every variant");
    else
        text_free(&w.t);
    if (!known)
        found(m->f, NOTE, "roofline", text_of("the percentage of the machine's peak is unknown"),
              text_of("there are no measured peaks for this number of threads"),
              "sonde doctor --calibrate");
}

static void bound_by_memory(model_case *m)
{
    few w = {.n = 0};
    for (size_t i = 0; i < m->ops.n; i++) {
        const sonde_profile_row *r = &m->ops.list[i];
        if (r->roofline >= 0.5 && (strcmp(r->bound, "memory") == 0 || strcmp(r->bound, "l3") == 0))
            few_add(&w, r->name, r->share);
    }
    if (w.share >= 0.1)
        found(m->f, NOTE, "bandwidth",
              text_of("%.1f %% of the time is limited by memory bandwidth, not by arithmetic",
                      w.share * 100),
              few_text(&w),
              "use larger batches, which reuse weights, or smaller dtypes, which move fewer bytes");
    else
        text_free(&w.t);
}

/* Where products are of 16-bit floats, f32 would be slower, whatever the other steps do. */
static void half_floats(model_case *m)
{
    few w = {.n = 0};
    for (size_t i = 0; i < m->ops.n; i++)
        if (strstr(m->ops.list[i].arithmetic, "f16_"))
            return;
    for (size_t i = 0; i < m->ops.n; i++)
        if ((strcmp(m->ops.list[i].dtype, "f16") == 0 ||
             strcmp(m->ops.list[i].dtype, "bf16") == 0) &&
            strcmp(m->ops.list[i].arithmetic, "f32") == 0)
            few_add(&w, m->ops.list[i].name, m->ops.list[i].share);
    if (w.share >= 0.05)
        found(m->f, SLOW, "types",
              text_of("%.1f %% of the time is spent on 16-bit floats, which are computed in f32",
                      w.share * 100),
              few_text(&w),
              "use the model in f32: it is faster on this processor, but needs more memory");
    else
        text_free(&w.t);
}

/* Elementwise steps that a pass could have put behind a Conv or a MatMul. */
static void not_fused(model_case *m)
{
    static const char *const light[] = {
        "Relu",      "Clip",      "Sigmoid", "Add", "Mul",  "BatchNormalization",
        "LeakyRelu", "HardSwish", "Sub",     "Div", "Tanh", "Erf"};
    few w = {.n = 0};
    for (size_t i = 0; i < m->ops.n; i++)
        for (size_t k = 0; k < sizeof light / sizeof *light; k++)
            if (strcmp(m->ops.list[i].op_type, light[k]) == 0)
                few_add(&w, m->ops.list[i].name, m->ops.list[i].share);
    if (w.share >= 0.05)
        found(m->f, NOTE, "fusion",
              text_of("%.1f %% of the time is spent in elementwise operators that were not fused",
                      w.share * 100),
              few_text(&w),
              "check that --no-optimize and --disable-pass are not set; 'sonde inspect MODEL "
              "--optimized --nodes' shows what is between them and the operator before");
    else
        text_free(&w.t);
}

static void shapes_from_data(model_case *m)
{
    few w = {.n = 0};
    for (size_t i = 0; i < m->nodes.n; i++)
        if (m->nodes.list[i].dynamic)
            few_add(&w, *m->nodes.list[i].node ? m->nodes.list[i].node : m->nodes.list[i].name,
                    m->nodes.list[i].share);
    if (w.n > 0)
        found(m->f, w.share >= 0.05 ? SLOW : NOTE, "shapes",
              text_of("%d steps have data-dependent shapes (%.1f %% of the time)", w.n,
                      w.share * 100),
              few_text(&w), "set sizes with -s, or export the model with fixed sizes");
    else
        text_free(&w.t);
}

/* ------------------------------------------------------------------ one thread against all */
static int median_of(const run_setup *s, const char *model, int64_t threads, double *ms)
{
    run_setup own = *s;
    own.model.threads = threads;
    own.record_level = 0;
    own.common.quiet = true;
    own.measuring.duration_s = 0.4;
    runner r;
    int code = runner_open(&r, &own, model);
    if (!code)
        code = runner_run(&r, &own, 2, -1, 10000);
    latency l = {.p50 = 0};
    if (!code)
        latency_of(r.ms, r.runs, &l);
    *ms = l.p50;
    runner_close(&r);
    return code;
}

static int scaling(model_case *m, const run_setup *s, const char *model)
{
    const int threads = m->summary.threads;
    double one = 0, all = 0;
    if (threads < 2)
        return EXIT_OK;
    int code = median_of(s, model, 1, &one);
    if (!code)
        code = median_of(s, model, threads, &all);
    if (code)
        return code;
    const double gain = all > 0 ? one / all : 0;
    const bool poor = gain < 1 + 0.4 * (threads - 1);
    found(m->f,
          gain < 1 ? SLOW
          : poor   ? NOTE
                   : GOOD,
          "threads", text_of("%d threads are %.2f times as fast as one thread", threads, gain),
          text_of("medians %s and %s", time_text(one), time_text(all)),
          gain < 1
              ? "use one thread (-t 1): the model is too small for more, or the cores are shared"
          : poor ? "use fewer threads to leave cores for other work, or several instances to use "
                   "all cores"
                 : "");
    return EXIT_OK;
}

static int measure(const run_setup *s, const char *model, sonde_profile **profile)
{
    run_setup own = *s;
    own.record_level = 1;
    own.measuring.duration_s = 0.7;
    own.common.quiet = true;
    runner r;
    sonde_error err;
    int code = runner_open(&r, &own, model);
    if (!code)
        code = runner_run(&r, &own, 3, -1, 2000);
    if (!code && sonde_profiler_stop(r.model.context, profile, &err))
        code = fail("%s", err.message);
    runner_close(&r);
    return code;
}

int look_at_model(findings *f, const run_setup *s, const char *model)
{
    sonde_profile *profile = NULL;
    sonde_error err;
    model_case m = {.f = f, .summary = SONDE_INIT(sonde_profile_summary)};
    int code = measure(s, model, &profile);
    if (!code && sonde_profile_summary_get(profile, &m.summary, &err))
        code = fail("%s", err.message);
    if (!code)
        code = get_rows(&m.ops, profile, SONDE_BY_OP);
    if (!code)
        code = get_rows(&m.kernels, profile, SONDE_BY_KERNEL);
    if (!code)
        code = get_rows(&m.nodes, profile, SONDE_BY_NODE);
    if (!code) {
        what_dominates(&m);
        what_varies(&m);
        plain_kernels(&m);
        moving_data(&m);
        between_steps(&m);
        tiny_steps(&m);
        below_roofline(&m);
        bound_by_memory(&m);
        half_floats(&m);
        not_fused(&m);
        shapes_from_data(&m);
        code = look_at_reorders(f, s, model, profile);
    }
    if (!code)
        code = look_for_denormals(f, s, model);
    if (!code)
        code = scaling(&m, s, model);
    free_rows(&m.ops);
    free_rows(&m.kernels);
    free_rows(&m.nodes);
    sonde_profile_release(profile);
    return code;
}
