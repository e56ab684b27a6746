/* SPDX-License-Identifier: Apache-2.0 */
/* What the recorder costs: the same run with and without it, in pairs inside one process, the order
 * within a pair alternating, so that drift of the machine falls on both alike. Reported is the
 * median of the paired differences with the 95 % confidence interval of that median (order
 * statistics: no assumption about the noise).
 *
 *     sonde_bench_overhead [MODEL [PAIRS [LEVEL [plain|stream|memory]]]]
 *     sonde_bench_overhead MODEL PAIRS N sampled|metrics
 *
 * plain: records stay in memory; stream: a thread writes them to a file meanwhile; memory: what is
 * held after every step is noted too. sampled: a pair is two times N runs, of which one has
 * sampling of one run in N (without a bound) and the other nothing; metrics: N runs that are
 * counted, and N that are not. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/internal.h"
#include "exec/session.h"
#include "sonde/experimental/metrics.h"
#include "sonde/experimental/recording.h"
#include "zoo/zoo.h"

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static _Noreturn void die(const sonde_error *err)
{
    fprintf(stderr, "sonde_bench_overhead: %s\n", err->message);
    exit(1);
}

static sonde_value *make_input(sonde_context *ctx, sonde_session *s, size_t i)
{
    sonde_error err;
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    int64_t dims[16];
    size_t bytes;
    sonde_value *v = NULL;
    if (sonde_session_input_info(s, i, &info, &err))
        die(&err);
    bytes = sonde_dtype_bytes(info.dtype);
    for (int d = 0; d < info.rank; d++) {
        dims[d] = info.dims[d] < 0 ? 1 : info.dims[d];
        bytes *= (size_t)dims[d];
    }
    if (sonde_tensor_create(ctx, info.dtype, dims, (size_t)info.rank, NULL, bytes, &v, &err))
        die(&err);
    return v;
}

enum { PLAIN, STREAM, MEMORY, SAMPLED, METRICS };

/* Sampling and metrics, switched as their users would not: at once, and off again. */
typedef struct watching {
    sonde_recording *recording;
    sn_metrics *metrics;
} watching;

static void watching_open(watching *w, sonde_context *ctx, int mode, int every)
{
    sonde_error err;
    sonde_profiler_options o = SONDE_INIT(sonde_profiler_options);
    o.level = 1;
    o.sample_every = every;
    o.max_overhead = 1;
    if (mode == SAMPLED && (sonde_recording_start(ctx, &o, &w->recording, &err) ||
                            sonde_recording_pause(w->recording, &err)))
        die(&err);
    if (mode == METRICS && sonde_metrics_start(ctx, &err))
        die(&err);
    w->metrics = atomic_exchange(&ctx->metrics, NULL);
}

static void watching_turn(watching *w, sonde_context *ctx, int mode, bool on)
{
    sonde_error err;
    if (mode == METRICS)
        atomic_store(&ctx->metrics, on ? w->metrics : NULL);
    else if (on ? sonde_recording_resume(w->recording, 0, &err)
                : sonde_recording_pause(w->recording, &err))
        die(&err);
    if (mode == SAMPLED && !on && sonde_recording_clear(w->recording, &err))
        die(&err);
}

static void watching_close(watching *w, sonde_context *ctx)
{
    sonde_recording_release(w->recording);
    atomic_store(&ctx->metrics, w->metrics); /* goes with the context */
}

/* The recorder on or off, as the mode has it. */
static void turn(sonde_context *ctx, int mode, int level, bool on)
{
    sonde_error err;
    if (mode == STREAM) {
        if (on ? sonde_profiler_resume(ctx, &err) : sonde_profiler_pause(ctx, &err))
            die(&err);
        return;
    }
    atomic_store(&ctx->core.trace->memory, on && mode == MEMORY);
    if (sn_exec_record(&ctx->core, on ? level : 0, &err))
        die(&err);
    if (!on)
        sn_exec_clear(&ctx->core);
}

int main(int argc, char **argv)
{
    static const char *const modes[] = {"plain", "stream", "memory", "sampled", "metrics"};
    const char *name = argc > 1 ? argv[1] : "regnet_x_400mf";
    size_t pairs = argc > 2 ? strtoul(argv[2], NULL, 10) : 2000;
    int level = argc > 3 ? atoi(argv[3]) : 1, mode = 0;
    while (argc > 4 && mode <= METRICS && strcmp(argv[4], modes[mode]) != 0)
        mode++;
    const bool watched = mode == SAMPLED || mode == METRICS;
    const int block = watched ? level : 1; /* runs of half a pair */
    sonde_error err;
    sonde_context *ctx;
    sonde_model *model;
    sonde_session *session;
    sn_model *core;
    if (pairs < 10 || level < 1 || mode > METRICS || (!watched && level > 3)) {
        fprintf(stderr, "usage: sonde_bench_overhead [MODEL [PAIRS >= 10 [LEVEL 1-3 "
                        "[plain|stream|memory]]]]\n"
                        "       sonde_bench_overhead MODEL PAIRS N sampled|metrics\n");
        return 2;
    }
    static const char *const fusing[] = {"fuse-elementwise"}; /* a record for every node */
    const sonde_session_options options = {
        .struct_size = sizeof options, .disabled_passes = fusing, .disabled_pass_count = 1};
    if (sonde_context_create(NULL, &ctx, &err) || sn_zoo_build(name, 1, &ctx->core, &core, &err) ||
        sn_api_model(ctx, core, name, &model, &err) ||
        sonde_session_create(model, &options, &session, &err))
        die(&err);
    size_t n_in = sonde_session_input_count(session), n_out = sonde_session_output_count(session);
    sonde_value **in = calloc(n_in, sizeof *in), **out = calloc(n_out, sizeof *out);
    double *diff = malloc(pairs * sizeof *diff), *off = malloc(pairs * sizeof *off);
    for (size_t i = 0; i < n_in; i++)
        in[i] = make_input(ctx, session, i);
    sn_clock clock;
    sn_clock_calibrate(&clock);
    char path[64];
    snprintf(path, sizeof path, "overhead-%ld.pftrace", (long)getpid());
    if (mode == STREAM &&
        (sonde_profiler_stream(ctx, level, path, &err) || sonde_profiler_pause(ctx, &err)))
        die(&err);
    watching watch = {NULL, NULL};
    if (watched)
        watching_open(&watch, ctx, mode, level);
    for (size_t k = 0; k < pairs + 20; k++) { /* 20 pairs of warm-up */
        double ns[2];
        for (int half = 0; half < 2; half++) {
            int on = (half ^ (int)(k & 1)) != 0;
            if (on && watched)
                watching_turn(&watch, ctx, mode, true);
            else if (on)
                turn(ctx, mode, level, true);
            uint64_t t0 = sn_ticks();
            for (int r = 0; r < block; r++)
                if (sonde_session_run(session, NULL, NULL, in, n_in, NULL, out, n_out, &err))
                    die(&err);
            ns[on] = sn_ticks_to_ns(&clock, sn_ticks() - t0) / block;
            if (on && watched)
                watching_turn(&watch, ctx, mode, false);
            else if (on)
                turn(ctx, mode, level, false);
        }
        if (k >= 20) {
            diff[k - 20] = ns[1] - ns[0];
            off[k - 20] = ns[0];
        }
    }
    if (mode == STREAM && sonde_profiler_stop(ctx, NULL, &err))
        die(&err);
    if (watched)
        watching_close(&watch, ctx);
    remove(path);
    qsort(diff, pairs, sizeof *diff, compare_doubles);
    qsort(off, pairs, sizeof *off, compare_doubles);
    double half_width = 0.98 * sqrt((double)pairs); /* 1.96 · sqrt(n) / 2 ranks */
    size_t lo = (size_t)fmax(0, floor((double)pairs / 2 - half_width));
    size_t hi = (size_t)fmin((double)pairs - 1, ceil((double)pairs / 2 + half_width));
    double base = off[pairs / 2];
    uint32_t steps = sn_session_program(session->core)->n_steps;
    printf("%s, %u steps, %d threads, %s %d, %s, %zu pairs\n", name, steps,
           sonde_context_threads(ctx), watched ? "blocks of" : "level", level, modes[mode], pairs);
    printf("off: median %.4f ms\n", base / 1e6);
    const double per = watched ? 1 : steps;
    printf("%s: %+.3f %% [%+.3f, %+.3f] of a run, %+.1f ns [%+.1f, %+.1f] a %s (median, 95 %%)\n",
           watched ? modes[mode] : "recorder", 100 * diff[pairs / 2] / base, 100 * diff[lo] / base,
           100 * diff[hi] / base, diff[pairs / 2] / per, diff[lo] / per, diff[hi] / per,
           watched ? "run" : "step");
    for (size_t i = 0; i < n_in; i++)
        sonde_value_release(in[i]);
    for (size_t i = 0; i < n_out; i++)
        sonde_value_release(out[i]);
    free(in);
    free(out);
    free(diff);
    free(off);
    sonde_session_release(session);
    sonde_model_release(model);
    sonde_context_release(ctx);
    return 0;
}
