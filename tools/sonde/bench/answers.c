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
    const options *o;
    const bench_model *model;
} question;

static options options_for(const question *q, const char **inputs)
{
    options o = *q->o;
    o.inputs = (list){.items = inputs, .n = 1};
    o.sizes = o.ranges = (list){.n = 0}; /* the inputs have their sizes */
    o.batch_size = o.seq_len = 0;
    o.record_level = 0;
    return o;
}

static int show_best(const question *q)
{
    int code = EXIT_OK;
    for (size_t i = 0; i < q->model->inputs.n && !code; i++) {
        options o = options_for(q, &q->model->inputs.items[i]);
        runner r;
        code = runner_open(&r, &o, q->model->path);
        if (!code)
            code = runner_run(&r, &o, 0, 1, SIZE_MAX);
        if (!code)
            printf("\n%s\n", i < q->model->images.n ? q->model->images.items[i] : q->model->label);
        if (!code)
            runner_print(&r, &o);
        runner_close(&r);
    }
    return code;
}

static int show_table(const question *q)
{
    enum { RUNS = 10 };
    options o = options_for(q, &q->model->inputs.items[0]);
    o.record_level = 1;
    runner r;
    int code = runner_open(&r, &o, q->model->path);
    if (!code)
        code = runner_run(&r, &o, 1, RUNS, SIZE_MAX);
    if (!code)
        code = runner_table(&r, &o);
    runner_close(&r);
    return code;
}

static int work(void *argument)
{
    const question *q = argument;
    int code = q->o->top ? show_best(q) : EXIT_OK;
    if (!code && q->o->profile)
        code = show_table(q);
    return code;
}

int bench_answers(const options *o, const bench_model *m)
{
    question q = {.o = o, .model = m};
    return o->top || o->profile ? bench_helper(work, &q) : EXIT_OK;
}
