/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of workers: a few runs of two operators, with labels and clocks. */
#ifndef SONDE_TESTS_PROFILE_WORKERS_H
#define SONDE_TESTS_PROFILE_WORKERS_H

#include "profile/synthetic.h"

typedef struct worker_of {
    const char *host, *worker, *version, *model;
    int64_t pid;
    const char *boot; /* NULL: none */
    uint64_t wall_ns, mono_ns, error_ns;
    unsigned runs;
    uint64_t conv_ns, matmul_ns; /* of one run, which takes 100 ns more */
    double record_ns;
    uint64_t dropped;
} worker_of;

static inline void label(sn_profile *p, const char *key, const char *value)
{
    if (value && sn_labels_put(&p->labels, key, value, NULL) != SONDE_OK)
        abort();
}

/* A warm-up, which is twice as long, then the runs, each 1 ms behind the start of the one before.
 */
static inline sn_profile *make_worker(sn_allocator *alloc, const worker_of *w)
{
    sn_profile *p = syn_profile(alloc);
    p->pid = w->pid;
    p->model_name = w->model ? w->model : "tiny";
    p->start_wall_ns = w->wall_ns;
    p->start_mono_ns = w->mono_ns;
    p->wall_error_ns = w->error_ns;
    p->boot = w->boot ? w->boot : "";
    p->record_ns = w->record_ns;
    p->dropped = w->dropped;
    label(p, "host", w->host);
    label(p, "worker", w->worker);
    label(p, "version", w->version);
    const uint32_t conv = syn_step(p, "Conv", "conv1", "", "k1");
    const uint32_t matmul = syn_step(p, "MatMul", "fc", "", "k2");
    for (unsigned i = 0; i <= w->runs; i++) {
        const uint64_t twice = i ? 1 : 2, t = i * MS;
        sn_prof_span *s = syn_span(p, SN_CAT_ITERATION, 0, t,
                                   twice * (w->conv_ns + w->matmul_ns) + 100, "Iteration");
        s->warmup = i == 0;
        s->iteration = i ? i - 1 : 0;
        s->run = i + 1;
        const uint32_t it = s->id;
        syn_op(p, it, t + 10, twice * w->conv_ns, conv);
        p->spans.data[p->spans.n - 1].run = i + 1;
        syn_op(p, it, t + 20 + twice * w->conv_ns, twice * w->matmul_ns, matmul);
        p->spans.data[p->spans.n - 1].run = i + 1;
    }
    return p;
}

#endif
