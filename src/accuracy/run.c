/* SPDX-License-Identifier: Apache-2.0 */
/* Runs both sides on a sample, for some of the pairs, and adds the errors. A job has models with
 * exactly the outputs it needs, so that nothing else is computed or kept. */
#include <stdio.h>

#include "accuracy/pairs.h"

/* ------------------------------------------------------------------ making ready */
/* Every pair of the job, then what local runs read besides. */
static void choose(sonde_accuracy *acc, sn_job *job, const uint32_t *pairs, uint32_t n, int what)
{
    for (uint32_t i = 0; i < n; i++) {
        const sn_pair *p = &acc->pairs[pairs[i]];
        job->of_a[job->n_of_a++] = pairs[i];
        job->place[pairs[i]] = job->n_of_a;
        if (what & (p->output ? SN_JOB_OUTPUTS : SN_JOB_INNER))
            job->of_b[job->n_of_b++] = pairs[i];
    }
    for (uint32_t i = 0; i < n && (what & SN_JOB_LOCAL) && acc->cut; i++) {
        const sn_pair *p = &acc->pairs[pairs[i]];
        job->of_local[job->n_of_local++] = pairs[i];
        for (uint32_t k = 0; k < p->n_needs; k++) {
            if (job->place[p->needs[k]])
                continue;
            job->of_a[job->n_of_a++] = p->needs[k];
            job->place[p->needs[k]] = job->n_of_a;
        }
    }
}

sonde_status sn_job_open(sonde_accuracy *acc, sn_job *job, const uint32_t *pairs, uint32_t n,
                         int what, sonde_error *err)
{
    *job = (sn_job){.n_of_a = 0};
    sn_arena_init(&job->arena, &acc->context->alloc);
    sn_arena_init(&job->scratch, &acc->context->alloc);
    uint32_t *lists = SN_NEW_N(&job->arena, uint32_t, (size_t)acc->n_pairs * 4);
    if (!lists)
        return sn_fail_memory(err, (size_t)acc->n_pairs * 4 * sizeof *lists);
    uint32_t **each[] = {&job->place, &job->of_a, &job->of_b, &job->of_local};
    for (size_t i = 0; i < 4; i++)
        *each[i] = lists + (size_t)acc->n_pairs * i;
    choose(acc, job, pairs, n, what);
    SN_TRY(sn_runner_open(acc, &job->arena, &acc->a, acc->a.model->core, job->of_a, job->n_of_a,
                          &job->a, err));
    SN_TRY(sn_runner_open(acc, &job->arena, &acc->b, acc->tapped, job->of_b, job->n_of_b, &job->b,
                          err));
    return sn_local_open(acc, job, err);
}

void sn_job_close(sn_job *job)
{
    sn_runner_close(&job->a);
    sn_runner_close(&job->b);
    sn_runner_close(&job->local.runner);
    if (job->arena.alloc) { /* it was opened */
        sn_arena_free(&job->arena);
        sn_arena_free(&job->scratch);
    }
    *job = (sn_job){.n_of_a = 0};
}

/* ------------------------------------------------------------------ running */
/* B may call its inputs by other names. */
static sonde_status sample_of_b(sonde_accuracy *acc, sn_job *job, const sn_sample *s,
                                const char ***names, sonde_error *err)
{
    *names = SN_NEW_N(&job->scratch, const char *, s->n + acc->n_pairs + 1);
    if (!*names)
        return sn_fail_memory(err, s->n * sizeof **names);
    const sn_graph *a = acc->a.model->core->graph, *b = acc->b.model->core->graph;
    for (size_t i = 0; i < s->n; i++) {
        (*names)[i] = NULL;
        for (size_t k = 0; k < b->inputs.n && !(*names)[i]; k++)
            if (strcmp(b->inputs.data[k]->name, s->names[i]) == 0)
                (*names)[i] = s->names[i];
        for (size_t k = 0; k < a->inputs.n && !(*names)[i] && a->inputs.n == b->inputs.n; k++)
            if (strcmp(a->inputs.data[k]->name, s->names[i]) == 0)
                (*names)[i] = b->inputs.data[k]->name;
        if (!(*names)[i])
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "'%.200s' has no input '%.200s' and another number of inputs than "
                           "'%.200s'",
                           acc->b.label, s->names[i], acc->a.label);
    }
    return SONDE_OK;
}

static sonde_status set_type(sonde_accuracy *acc, const sonde_value *v, const char **type,
                             sonde_error *err)
{
    char text[256] = "nothing";
    if (v && v->slot.kind == SN_KIND_TENSOR) {
        const sn_tensor *t = &v->slot.t;
        const sn_type of = {
            .kind = SN_KIND_TENSOR, .dtype = t->dtype, .rank = t->rank, .dims = t->dims};
        (void)sn_type_text(&of, NULL, text, sizeof text);
    } else if (v) {
        static const char *const kinds[] = {"nothing", "tensor", "sequence", "optional", "map"};
        (void)snprintf(text, sizeof text, "%s of %zu", kinds[v->slot.kind], sonde_value_count(v));
    }
    if (strcmp(*type, text) == 0)
        return SONDE_OK;
    *type = sn_arena_strdup(&acc->arena, text);
    return *type ? SONDE_OK : (*type = "", sn_fail_memory(err, sizeof text));
}

static sonde_status compare(sonde_accuracy *acc, sn_job *job, sonde_value *const *a,
                            sonde_value *const *b, sonde_error *err)
{
    for (uint32_t i = 0; i < job->n_of_b; i++) {
        sn_pair *p = &acc->pairs[job->of_b[i]];
        const sonde_value *own = sn_job_value(job, a, job->of_b[i]);
        SN_TRY(sn_sums_add(&p->sums, own, b[i], err));
        SN_TRY(set_type(acc, own, &p->type_a, err));
        SN_TRY(set_type(acc, b[i], &p->type_b, err));
    }
    return SONDE_OK;
}

static sonde_status run_whole(sonde_accuracy *acc, sn_job *job, const sn_sample *s,
                              const char **names, sonde_value *const *a, sonde_error *err)
{
    sonde_value **b = SN_NEW_N(&job->scratch, sonde_value *, job->n_of_b);
    const sn_sample sample = {.names = names, .values = s->values, .n = s->n};
    if (!b)
        return sn_fail_memory(err, job->n_of_b * sizeof(void *));
    sonde_status st = sn_runner_run(acc, &acc->b, &job->b, &sample, b, job->n_of_b, err);
    if (st == SONDE_OK)
        st = compare(acc, job, a, b, err);
    sn_release_values(b, job->n_of_b);
    return st;
}

sonde_status sn_job_run(sonde_accuracy *acc, sn_job *job, const sn_sample *s, sn_layer_fn layer,
                        void *user, sonde_error *err)
{
    sn_arena_reset(&job->scratch);
    sonde_value **a = SN_NEW_N(&job->scratch, sonde_value *, job->n_of_a);
    const char **names = NULL;
    if (!a)
        return sn_fail_memory(err, job->n_of_a * sizeof(void *));
    SN_TRY(sample_of_b(acc, job, s, &names, err));
    sonde_status st = sn_runner_run(acc, &acc->a, &job->a, s, a, job->n_of_a, err);
    if (st == SONDE_OK && job->n_of_b)
        st = run_whole(acc, job, s, names, a, err);
    const sn_local_run local = {
        .job = job, .sample = s, .names = names, .a = a, .layer = layer, .user = user};
    if (st == SONDE_OK && job->n_of_local)
        st = sn_local_run_all(acc, &local, err);
    sn_release_values(a, job->n_of_a);
    return st;
}
