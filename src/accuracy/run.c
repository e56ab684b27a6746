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
        if ((what & SN_JOB_LOCAL) && acc->cut && !p->local_failed)
            job->of_local[job->n_of_local++] = pairs[i];
    }
    for (uint32_t i = 0; i < job->n_of_local; i++) {
        const sn_pair *p = &acc->pairs[job->of_local[i]];
        for (uint32_t k = 0; k < p->n_needs; k++) {
            const uint32_t need = p->needs[k];
            if (job->is_fed[need])
                continue;
            job->is_fed[need] = true;
            job->fed[job->n_fed++] = need;
            if (job->place[need])
                continue;
            job->of_a[job->n_of_a++] = need;
            job->place[need] = job->n_of_a;
        }
    }
}

static sonde_status open_runner(sonde_accuracy *acc, const sn_side *side, const sn_model *from,
                                const char *const *names, uint32_t n, sn_runner *r,
                                sonde_error *err)
{
    SN_TRY(sn_with_outputs(acc, side, from, names, n, &r->model, err));
    if (side->run)
        return SONDE_OK;
    return sonde_session_create(r->model, &side->options, &r->session, err);
}

static void close_runner(sn_runner *r)
{
    sonde_session_release(r->session);
    sonde_model_release(r->model);
    *r = (sn_runner){.model = NULL};
}

static sonde_status open_side(sonde_accuracy *acc, sn_job *job, const sn_side *side,
                              const sn_model *from, const uint32_t *pairs, uint32_t n, sn_runner *r,
                              sonde_error *err)
{
    if (!n)
        return SONDE_OK;
    const char **names = SN_NEW_N(&job->arena, const char *, n);
    if (!names)
        return sn_fail_memory(err, n * sizeof *names);
    for (uint32_t i = 0; i < n; i++) {
        const sn_pair *p = &acc->pairs[pairs[i]];
        names[i] = side == &acc->a ? p->name : p->b.seen->name;
    }
    const sonde_status st = open_runner(acc, side, from, names, n, r, err);
    if (st != SONDE_OK)
        sn_error_prefix(err, "%s", side->label);
    return st;
}

sonde_status sn_job_open(sonde_accuracy *acc, sn_job *job, const uint32_t *pairs, uint32_t n,
                         int what, sonde_error *err)
{
    *job = (sn_job){.n_of_a = 0};
    sn_arena_init(&job->arena, &acc->context->alloc);
    sn_arena_init(&job->scratch, &acc->context->alloc);
    uint32_t *lists = SN_NEW_N(&job->arena, uint32_t, (size_t)acc->n_pairs * 5);
    job->is_fed = SN_NEW_N(&job->arena, bool, acc->n_pairs);
    if (!lists || !job->is_fed)
        return sn_fail_memory(err, (size_t)acc->n_pairs * 5 * sizeof *lists);
    uint32_t **each[] = {&job->place, &job->of_a, &job->of_b, &job->of_local, &job->fed};
    for (size_t i = 0; i < 5; i++)
        *each[i] = lists + (size_t)acc->n_pairs * i;
    choose(acc, job, pairs, n, what);
    SN_TRY(open_side(acc, job, &acc->a, acc->a.model->core, job->of_a, job->n_of_a, &job->a, err));
    SN_TRY(open_side(acc, job, &acc->b, acc->tapped, job->of_b, job->n_of_b, &job->b, err));
    if (!job->n_of_local)
        return SONDE_OK;
    sonde_error why; /* a cut model that cannot be made: there are no local errors */
    const sonde_status st =
        open_side(acc, job, &acc->b, acc->cut, job->of_local, job->n_of_local, &job->local, &why);
    if (st == SONDE_OUT_OF_MEMORY)
        return sn_fail_memory(err, 0);
    if (st != SONDE_OK) {
        for (uint32_t i = 0; i < job->n_of_local; i++)
            acc->pairs[job->of_local[i]].local_failed = true;
        job->n_of_local = 0;
        close_runner(&job->local);
    }
    return SONDE_OK;
}

void sn_job_close(sn_job *job)
{
    close_runner(&job->a);
    close_runner(&job->b);
    close_runner(&job->local);
    if (job->arena.alloc) { /* it was opened */
        sn_arena_free(&job->arena);
        sn_arena_free(&job->scratch);
    }
    *job = (sn_job){.n_of_a = 0};
}

/* ------------------------------------------------------------------ running */
static void release_all(sonde_value **values, uint32_t n)
{
    for (uint32_t i = 0; values && i < n; i++) {
        sonde_value_release(values[i]);
        values[i] = NULL;
    }
}

static sonde_status run_side(sonde_accuracy *acc, const sn_side *side, const sn_runner *r,
                             const sn_sample *s, sonde_value **out, uint32_t n, sonde_error *err)
{
    const sonde_run_options o = sn_accuracy_run_options(acc);
    const sonde_status st =
        side->run ? side->run(side->user, r->model, s->names, s->values, s->n, out, n, err)
                  : sonde_session_run(r->session, &o, s->names, s->values, s->n, NULL, out, n, err);
    if (st != SONDE_OK && st != SONDE_CANCELLED)
        sn_error_prefix(err, "%s", side->label);
    return st;
}

/* B may call its inputs by other names. */
static sonde_status sample_of_b(sonde_accuracy *acc, sn_job *job, const sn_sample *s,
                                const char ***names, sonde_error *err)
{
    *names = SN_NEW_N(&job->scratch, const char *, s->n + job->n_fed + 1);
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

static sonde_value *value_of(const sn_job *job, sonde_value *const *a, uint32_t pair)
{
    return job->place[pair] ? a[job->place[pair] - 1] : NULL;
}

static sonde_status compare(sonde_accuracy *acc, sn_job *job, sonde_value *const *a,
                            sonde_value *const *b, sonde_error *err)
{
    for (uint32_t i = 0; i < job->n_of_b; i++) {
        sn_pair *p = &acc->pairs[job->of_b[i]];
        const sonde_value *own = value_of(job, a, job->of_b[i]);
        SN_TRY(sn_sums_add(&p->sums, own, b[i], err));
        SN_TRY(set_type(acc, own, &p->type_a, err));
        SN_TRY(set_type(acc, b[i], &p->type_b, err));
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ operator by operator */
/* Operators that do not take A's tensors (other shapes, for example) have no local error. */
static sonde_status run_local(sonde_accuracy *acc, sn_job *job, const sn_sample *s,
                              const char **names, sonde_value *const *a, sonde_value **out,
                              sonde_error *err)
{
    sonde_value **values = SN_NEW_N(&job->scratch, sonde_value *, s->n + job->n_fed + 1);
    if (!values)
        return sn_fail_memory(err, s->n * sizeof(void *));
    sn_sample fed = {.names = names, .values = values, .n = s->n};
    for (size_t i = 0; i < s->n; i++)
        values[i] = s->values[i];
    for (uint32_t i = 0; i < job->n_fed; i++) {
        names[fed.n] = acc->pairs[job->fed[i]].fed;
        values[fed.n] = value_of(job, a, job->fed[i]);
        if (!values[fed.n++])
            return sn_fail(err, SONDE_RUNTIME, "there is no tensor '%.200s'",
                           acc->pairs[job->fed[i]].name);
    }
    return run_side(acc, &acc->b, &job->local, &fed, out, job->n_of_local, err);
}

static sonde_status add_local(sonde_accuracy *acc, sn_job *job, const sn_sample *s,
                              const char **names, sonde_value *const *a, sn_layer_fn layer,
                              void *user, sonde_error *err)
{
    sonde_value **out = SN_NEW_N(&job->scratch, sonde_value *, job->n_of_local);
    if (!out)
        return sn_fail_memory(err, job->n_of_local * sizeof(void *));
    sonde_status st = run_local(acc, job, s, names, a, out, err);
    const bool failed = st != SONDE_OK && st != SONDE_CANCELLED && st != SONDE_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < job->n_of_local && (failed || st == SONDE_OK); i++) {
        sn_pair *p = &acc->pairs[job->of_local[i]];
        if (failed)
            p->local_failed = true;
        else if (layer)
            st = layer(acc, p, out[i], user, err);
        else
            st = sn_sums_add(&p->local, value_of(job, a, job->of_local[i]), out[i], err);
    }
    release_all(out, job->n_of_local);
    if (failed) {
        job->n_of_local = 0;
        close_runner(&job->local);
        return SONDE_OK;
    }
    return st;
}

static sonde_status run_whole(sonde_accuracy *acc, sn_job *job, const sn_sample *s,
                              const char **names, sonde_value *const *a, sonde_error *err)
{
    sonde_value **b = SN_NEW_N(&job->scratch, sonde_value *, job->n_of_b);
    const sn_sample sample = {.names = names, .values = s->values, .n = s->n};
    if (!b)
        return sn_fail_memory(err, job->n_of_b * sizeof(void *));
    sonde_status st = run_side(acc, &acc->b, &job->b, &sample, b, job->n_of_b, err);
    if (st == SONDE_OK)
        st = compare(acc, job, a, b, err);
    release_all(b, job->n_of_b);
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
    sonde_status st = run_side(acc, &acc->a, &job->a, s, a, job->n_of_a, err);
    if (st == SONDE_OK && job->n_of_b)
        st = run_whole(acc, job, s, names, a, err);
    if (st == SONDE_OK && job->n_of_local)
        st = add_local(acc, job, s, names, a, layer, user, err);
    release_all(a, job->n_of_a);
    return st;
}
