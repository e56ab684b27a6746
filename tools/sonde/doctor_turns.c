/* SPDX-License-Identifier: Apache-2.0 */
/* A model run in two ways, in turns. On a machine that does other things too, a second of one way
 * and then a second of the other compares the seconds; pairs compare the ways. On one thread: two
 * pools would be in each other's way, and threads that wait for one another show what else the
 * machine does. */
#include "doctor.h"

enum { FEWEST = 10, MOST = 300 };
#define BUDGET_MS 800.0

static int open_one(runner *r, run_setup *own, const run_setup *s, const char *model)
{
    *own = *s;
    own->record_level = 0;
    own->common.quiet = true;
    own->model.threads = 1;
    own->common.verbose = 0;
    own->counters = false;
    const int code = runner_open(r, own, model);
    return code ? code : runner_run(r, own, 2, 0, 0);
}

int take_turns(const run_setup *first, const run_setup *second, const char *model, turns *t)
{
    runner a, b = {.n_out = 0};
    run_setup own_a, own_b;
    *t = (turns){.pairs = 0};
    int code = open_one(&a, &own_a, first, model);
    if (!code)
        code = open_one(&b, &own_b, second, model);
    const double start = now_ms();
    while (!code && t->pairs < MOST && (t->pairs < FEWEST || now_ms() - start < BUDGET_MS)) {
        const int64_t runs = (int64_t)++t->pairs;
        code = runner_run(&a, &own_a, 0, runs, 0);
        if (!code)
            code = runner_run(&b, &own_b, 0, runs, 0);
        if (!code)
            t->faster += b.ms[runs - 1] < a.ms[runs - 1];
    }
    latency la = {.p50 = 0}, lb = {.p50 = 0};
    if (!code) {
        latency_of(a.ms, a.runs, &la);
        latency_of(b.ms, b.runs, &lb);
    }
    t->first_ms = la.p50;
    t->second_ms = lb.p50;
    runner_close(&a);
    runner_close(&b);
    return code;
}

bool second_is_faster(const turns *t)
{
    return t->second_ms < 0.97 * t->first_ms && t->faster * 4 >= t->pairs * 3;
}
