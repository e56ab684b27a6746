/* SPDX-License-Identifier: Apache-2.0 */
/* What B's operators make of A's tensors. Operators that do not take them (a layer that was made
 * narrower, for example) have no local error; they are found by dividing the pairs again and again,
 * so that the others still have theirs. */
#include "accuracy/pairs.h"

/* ------------------------------------------------------------------ making ready */
/* An operator that reads a tensor whose shape is not A's cannot be given A's. */
static bool takes(const sonde_accuracy *acc, const sn_pair *p)
{
    bool takes = !p->local_failed;
    for (uint32_t i = 0; i < p->n_needs && takes; i++)
        takes = !acc->pairs[p->needs[i]].sums.different;
    return takes;
}

/* The part of these pairs that may have local errors, ready to run; none: n is 0. */
static sonde_status open_part(sonde_accuracy *acc, const uint32_t *pairs, uint32_t n,
                              sn_arena *arena, sn_local *l, sonde_error *err)
{
    *l = (sn_local){.pairs = SN_NEW_N(arena, uint32_t, n + 1),
                    .fed = SN_NEW_N(arena, uint32_t, acc->n_pairs)};
    bool *is_fed = SN_NEW_N(arena, bool, acc->n_pairs);
    if (!l->pairs || !l->fed || !is_fed)
        return sn_fail_memory(err, acc->n_pairs * sizeof *l->fed);
    for (uint32_t i = 0; i < n; i++) {
        const sn_pair *p = &acc->pairs[pairs[i]];
        if (!takes(acc, p))
            continue;
        l->pairs[l->n++] = pairs[i];
        for (uint32_t k = 0; k < p->n_needs; k++) {
            if (!is_fed[p->needs[k]])
                l->fed[l->n_fed++] = p->needs[k];
            is_fed[p->needs[k]] = true;
        }
    }
    const sonde_status st =
        sn_runner_open(acc, arena, &acc->b, acc->cut, l->pairs, l->n, &l->runner, err);
    if (st != SONDE_OK)
        sn_runner_close(&l->runner);
    return st;
}

static bool is_final(sonde_status st)
{
    return st == SONDE_OK || st == SONDE_CANCELLED || st == SONDE_OUT_OF_MEMORY;
}

sonde_status sn_local_open(sonde_accuracy *acc, sn_job *job, sonde_error *err)
{
    sonde_error why; /* a model that cannot be made is divided when it is to run */
    const sonde_status st =
        open_part(acc, job->of_local, job->n_of_local, &job->arena, &job->local, &why);
    if (st != SONDE_OK && is_final(st))
        return sn_fail_memory(err, 0);
    job->local_ready = st == SONDE_OK;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ running */
static sonde_status run_model(sonde_accuracy *acc, const sn_local_run *r, const sn_local *l,
                              sonde_value **out, sonde_error *err)
{
    const sn_sample *s = r->sample;
    sonde_value **values = SN_NEW_N(&r->job->scratch, sonde_value *, s->n + l->n_fed + 1);
    if (!values)
        return sn_fail_memory(err, s->n * sizeof(void *));
    sn_sample fed = {.names = r->names, .values = values, .n = s->n};
    for (size_t i = 0; i < s->n; i++)
        values[i] = s->values[i];
    for (uint32_t i = 0; i < l->n_fed; i++) {
        r->names[fed.n] = acc->pairs[l->fed[i]].fed;
        values[fed.n] = sn_job_value(r->job, r->a, l->fed[i]);
        if (!values[fed.n++])
            return sn_fail(err, SONDE_RUNTIME, "there is no tensor '%.200s'",
                           acc->pairs[l->fed[i]].name);
    }
    return sn_runner_run(acc, &acc->b, &l->runner, &fed, out, l->n, err);
}

/* *ran: the operators took the tensors; else nothing was added. */
static sonde_status run_part(sonde_accuracy *acc, const sn_local_run *r, const sn_local *l,
                             bool *ran, sonde_error *err)
{
    sonde_value **out = SN_NEW_N(&r->job->scratch, sonde_value *, l->n + 1);
    *ran = false;
    if (!out)
        return sn_fail_memory(err, l->n * sizeof(void *));
    sonde_status st = l->n ? run_model(acc, r, l, out, err) : SONDE_OK;
    *ran = st == SONDE_OK;
    for (uint32_t i = 0; i < l->n && st == SONDE_OK; i++) {
        sn_pair *p = &acc->pairs[l->pairs[i]];
        st = r->layer
                 ? r->layer(acc, p, out[i], r->user, err)
                 : sn_sums_add(&p->local, sn_job_value(r->job, r->a, l->pairs[i]), out[i], err);
    }
    sn_release_values(out, l->n);
    return *ran || is_final(st) ? st : SONDE_OK;
}

static sonde_status divide(sonde_accuracy *acc, const sn_local_run *r, const uint32_t *pairs,
                           uint32_t n, sonde_error *err)
{
    sn_local part;
    bool ran = false;
    sonde_error why;
    sonde_status st = open_part(acc, pairs, n, &r->job->scratch, &part, &why);
    if (st == SONDE_OK)
        st = run_part(acc, r, &part, &ran, &why);
    sn_runner_close(&part.runner);
    if (st != SONDE_OK && is_final(st)) {
        if (err)
            *err = why;
        return st;
    }
    if (ran)
        return SONDE_OK;
    if (n == 1) {
        acc->pairs[*pairs].local_failed = true;
        return SONDE_OK;
    }
    SN_TRY(divide(acc, r, pairs, n / 2, err));
    return divide(acc, r, pairs + n / 2, n - n / 2, err);
}

/* A tensor of another shape has turned up. */
static bool is_stale(const sonde_accuracy *acc, const sn_local *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (!takes(acc, &acc->pairs[l->pairs[i]]))
            return true;
    return false;
}

sonde_status sn_local_run_all(sonde_accuracy *acc, const sn_local_run *r, sonde_error *err)
{
    sn_job *job = r->job;
    bool ran = false;
    if (job->local_ready && is_stale(acc, &job->local)) {
        sn_runner_close(&job->local.runner);
        SN_TRY(sn_local_open(acc, job, err));
    }
    if (job->local_ready)
        SN_TRY(run_part(acc, r, &job->local, &ran, err));
    if (ran)
        return SONDE_OK;
    sn_runner_close(&job->local.runner);
    job->local_ready = false;
    SN_TRY(divide(acc, r, job->of_local, job->n_of_local, err));
    return sn_local_open(acc, job, err);
}
