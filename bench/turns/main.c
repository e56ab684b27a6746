/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of profiles that differ by noise alone, or by a slowdown of known size: what a comparison
 * must be held against (bench/turns.py). Two contexts, each with its own session, recorder and
 * memory, run the same model in turns in this process, and each pair is saved as OLD and NEW.
 *
 *     sonde_bench_turns MODEL PAIRS RUNS FOLDER [PERCENT op|node]
 *
 * With PERCENT, one operator of NEW takes that much longer: a type of operator or a single step
 * that takes a tenth of a run or more, another one in each pair. Its steps are called through
 * `delayed`, which spins on their thread after each call, for as long as the share of what that
 * call took. It is put into the steps of the binding from here: the library has no such switch. The
 * names go to standard output, one line a pair. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/internal.h"
#include "exec/session.h"
#include "plan/binding.h"
#include "sonde/experimental/recording.h"
#include "zoo/zoo.h"

enum { OLD, NEW, SIDES, WARMUPS = 5, LARGEST_RANK = 16 };

typedef struct side {
    sonde_context *context;
    sonde_model *model;
    sonde_session *session;
    sonde_recording *recording;
    sonde_value **in, **out;
    size_t n_in, n_out;
} side;

static void die(const char *message)
{
    fprintf(stderr, "sonde_bench_turns: %s\n", message);
    exit(1);
}

static void need(sonde_status st, const sonde_error *err)
{
    if (st)
        die(err->message);
}

/* ------------------------------------------------------------------ sides */
static sonde_value *make_input(const side *s, size_t i)
{
    sonde_error err;
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    int64_t dims[LARGEST_RANK];
    sonde_value *v = NULL;
    need(sonde_session_input_info(s->session, i, &info, &err), &err);
    size_t bytes = sonde_dtype_bytes(info.dtype);
    if (info.rank > LARGEST_RANK)
        die("an input has too many dimensions");
    for (int d = 0; d < info.rank; d++) {
        dims[d] = info.dims[d] >= 0 ? info.dims[d] : d ? 128 : 1; /* [batch, sequence, …] */
        bytes *= (size_t)dims[d];
    }
    need(
        sonde_tensor_create(s->context, info.dtype, dims, (size_t)info.rank, NULL, bytes, &v, &err),
        &err);
    return v;
}

static void run_once(side *s)
{
    sonde_error err;
    need(sonde_session_run(s->session, NULL, NULL, s->in, s->n_in, NULL, s->out, s->n_out, &err),
         &err);
}

static void open_side(side *s, const char *name)
{
    const sonde_context_options one = {.struct_size = sizeof one, .threads = 1};
    sonde_error err;
    sn_model *core;
    *s = (side){.context = NULL};
    need(sonde_context_create(&one, &s->context, &err), &err);
    need(sn_zoo_build(name, 1, &s->context->core, &core, &err), &err);
    need(sn_api_model(s->context, core, name, &s->model, &err), &err);
    need(sonde_session_create(s->model, NULL, &s->session, &err), &err);
    s->n_in = sonde_session_input_count(s->session);
    s->n_out = sonde_session_output_count(s->session);
    s->in = calloc(s->n_in, sizeof *s->in);
    s->out = calloc(s->n_out, sizeof *s->out);
    if (!s->in || !s->out)
        die("out of memory");
    for (size_t i = 0; i < s->n_in; i++)
        s->in[i] = make_input(s, i);
    for (int i = 0; i < WARMUPS; i++)
        run_once(s);
}

static void close_side(side *s)
{
    for (size_t i = 0; i < s->n_in; i++)
        sonde_value_release(s->in[i]);
    for (size_t i = 0; i < s->n_out; i++)
        sonde_value_release(s->out[i]);
    free(s->in);
    free(s->out);
    sonde_recording_release(s->recording);
    sonde_session_release(s->session);
    sonde_model_release(s->model);
    sonde_context_release(s->context);
}

/* ------------------------------------------------------------------ the slowdown */
typedef sonde_status (*step_run)(const sn_step *s, sn_frame *f);

static struct {
    const sn_binding *binding;
    step_run *run; /* of each step, as it was */
    double share;
} slow;

static sonde_status delayed(const sn_step *s, sn_frame *f)
{
    const uint64_t t0 = sn_ticks();
    const sonde_status st = slow.run[s - slow.binding->steps](s, f);
    const uint64_t t1 = sn_ticks(), end = t1 + (uint64_t)((double)(t1 - t0) * slow.share);
    while (sn_ticks() < end)
        ;
    return st;
}

static bool same_type(const sn_binding *b, uint32_t i, uint32_t k)
{
    return strcmp(b->steps[i].node->shown_type, b->steps[k].node->shown_type) == 0;
}

/* Time of each step: the least of some runs, which noise does not reach. */
static uint64_t *time_steps(side *s, sn_binding *b)
{
    enum { RUNS = 20 };
    uint64_t *least = malloc(b->n_steps * sizeof *least);
    sonde_error err;
    sonde_profile *p = NULL;
    if (!least)
        die("out of memory");
    for (uint32_t i = 0; i < b->n_steps; i++)
        least[i] = UINT64_MAX;
    for (int i = 0; i < RUNS; i++)
        run_once(s);
    need(sonde_recording_get(s->recording, &p, &err), &err);
    for (size_t i = 0; i < p->core->spans.n; i++) {
        const sn_prof_span *span = &p->core->spans.data[i];
        const sn_prof_step *step =
            span->step < p->core->steps.n ? &p->core->steps.data[span->step] : NULL;
        if (span->cat == SN_CAT_OPERATOR && step && step->table == b->id &&
            step->index < b->n_steps && span->dur_ns < least[step->index])
            least[step->index] = span->dur_ns;
    }
    sonde_profile_release(p);
    return least;
}

/* Slows one down of those that take a tenth of a run, the turn's; prints its type and node. */
static void slow_down(side *s, double share, bool whole_type, size_t turn)
{
    sn_binding *b = sn_binding_latest(sn_session_program(s->session->core));
    uint64_t *ns = time_steps(s, b), all = 0;
    uint32_t *found = malloc(b->n_steps * sizeof *found), n = 0;
    slow.binding = b;
    slow.share = share;
    slow.run = malloc(b->n_steps * sizeof *slow.run);
    if (!found || !slow.run)
        die("out of memory");
    for (uint32_t i = 0; i < b->n_steps; i++)
        all += ns[i];
    for (uint32_t i = 0; i < b->n_steps; i++) {
        uint64_t sum = 0;
        bool first = true;
        for (uint32_t k = 0; k < b->n_steps; k++) {
            const bool same = k == i || (whole_type && same_type(b, i, k));
            sum += same ? ns[k] : 0;
            first &= !(same && k < i);
        }
        if (first && sum * 10 >= all)
            found[n++] = i;
    }
    if (!n)
        die("no operator takes a tenth of a run");
    const uint32_t chosen = found[turn % n];
    for (uint32_t i = 0; i < b->n_steps; i++) {
        slow.run[i] = b->steps[i].run;
        if (i == chosen || (whole_type && same_type(b, i, chosen)))
            b->steps[i].run = delayed;
    }
    const sn_node *node = b->steps[chosen].node;
    printf("%s\t%s\n", node->shown_type, node->name);
    free(found);
    free(ns);
    sn_binding_unref(b);
}

/* ------------------------------------------------------------------ pairs */
static void save(side *s, const char *folder, size_t pair, const char *which)
{
    sonde_error err;
    sonde_profile *p = NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s/%zu-%s.pftrace", folder, pair, which);
    need(sonde_recording_get(s->recording, &p, &err), &err);
    need(sonde_profile_save(p, path, &err), &err);
    sonde_profile_release(p);
}

static void record(const char *model, size_t pair, size_t runs, const char *folder, double share,
                   bool whole_type)
{
    const sonde_profiler_options how = {.struct_size = sizeof how, .level = 1};
    side sides[SIDES];
    sonde_error err;
    for (int k = 0; k < SIDES; k++) {
        open_side(&sides[k], model);
        need(sonde_recording_start(sides[k].context, &how, &sides[k].recording, &err), &err);
    }
    if (share > 0)
        slow_down(&sides[NEW], share, whole_type, pair);
    for (int k = 0; k < SIDES; k++)
        need(sonde_recording_clear(sides[k].recording, &err), &err);
    for (size_t i = 0; i < 2 * runs; i++) /* OLD NEW NEW OLD: neither is always first */
        run_once(&sides[(i + 1) / 2 % 2]);
    for (int k = 0; k < SIDES; k++) {
        save(&sides[k], folder, pair, k == OLD ? "old" : "new");
        close_side(&sides[k]);
    }
    free(slow.run);
    slow.run = NULL;
}

int main(int argc, char **argv)
{
    const size_t pairs = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    const size_t runs = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    const double percent = argc > 5 ? atof(argv[5]) : 0;
    const bool type = argc > 6 && strcmp(argv[6], "op") == 0;
    const bool node = argc > 6 && strcmp(argv[6], "node") == 0;
    if (!pairs || !runs || (argc != 5 && !(argc == 7 && percent > 0 && (type || node)))) {
        fprintf(stderr, "usage: sonde_bench_turns MODEL PAIRS RUNS FOLDER [PERCENT op|node]\n");
        return 2;
    }
    if (mkdir(argv[4], 0777) != 0 && access(argv[4], W_OK) != 0)
        die("the folder cannot be made");
    for (size_t pair = 0; pair < pairs; pair++) {
        record(argv[1], pair, runs, argv[4], percent / 100, type);
        fflush(stdout);
    }
    return 0;
}
