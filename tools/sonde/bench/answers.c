/* SPDX-License-Identifier: Apache-2.0 */
/* What sonde itself says about the model that was measured: the best classes for every set of
 * inputs
 * (--top, --labels) and the timing table (-p). In a helper process, as everything that takes
 * memory. */
#include <stdlib.h>
#include <string.h>

#include "bench/parts.h"
#include "runner.h"

typedef struct question {
    const bench_options *o;
    const run_setup *setup;
    const bench_model *model;
} question;

static run_setup setup_for(const question *q, const char **inputs)
{
    run_setup s = *q->setup;
    s.inputs.inputs = (list){.items = inputs, .n = 1};
    s.inputs.sizes = s.inputs.ranges = (list){.n = 0}; /* the inputs have their sizes */
    s.inputs.batch_size = s.inputs.seq_len = 0;
    s.record_level = 0;
    return s;
}

static int show_best(const question *q)
{
    int code = EXIT_OK;
    for (size_t i = 0; i < q->model->inputs.n && !code; i++) {
        run_setup s = setup_for(q, &q->model->inputs.items[i]);
        runner r;
        code = runner_open(&r, &s, q->model->path);
        if (!code)
            code = runner_run(&r, &s, 0, 1, SIZE_MAX);
        if (!code)
            printf("\n%s\n", i < q->model->images.n ? q->model->images.items[i] : q->model->label);
        if (!code)
            runner_print(&r, &q->o->values);
        runner_close(&r);
    }
    return code;
}

static int show_table(const question *q)
{
    enum { RUNS = 10 };
    run_setup s = setup_for(q, &q->model->inputs.items[0]);
    s.record_level = 1;
    runner r;
    int code = runner_open(&r, &s, q->model->path);
    if (!code)
        code = runner_run(&r, &s, 1, RUNS, SIZE_MAX);
    if (!code)
        code = runner_table(&r, q->o->profile > 1);
    runner_close(&r);
    return code;
}

static int work(void *argument)
{
    const question *q = argument;
    int code = q->o->values.top ? show_best(q) : EXIT_OK;
    if (!code && q->o->profile)
        code = show_table(q);
    return code;
}

int bench_answers(const bench_options *o, const run_setup *s, const bench_model *m)
{
    question q = {.o = o, .setup = s, .model = m};
    return o->values.top || o->profile ? bench_helper(work, &q) : EXIT_OK;
}
