/* SPDX-License-Identifier: Apache-2.0 */
/* One side of a comparison: a model with the outputs that are wanted, run by a session or by
 * another runtime. */
#include "accuracy/pairs.h"

static sonde_status open_runner(sonde_accuracy *acc, const sn_side *side, const sn_model *from,
                                const char *const *names, uint32_t n, sn_runner *r,
                                sonde_error *err)
{
    SN_TRY(sn_with_outputs(acc, side, from, names, n, &r->model, err));
    if (side->run)
        return SONDE_OK;
    return sonde_session_create(r->model, &side->options, &r->session, err);
}

void sn_runner_close(sn_runner *r)
{
    sonde_session_release(r->session);
    sonde_model_release(r->model);
    *r = (sn_runner){.model = NULL};
}

sonde_status sn_runner_open(sonde_accuracy *acc, sn_arena *arena, const sn_side *side,
                            const sn_model *from, const uint32_t *pairs, uint32_t n, sn_runner *r,
                            sonde_error *err)
{
    if (!n)
        return SONDE_OK;
    const char **names = SN_NEW_N(arena, const char *, n);
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

void sn_release_values(sonde_value **values, uint32_t n)
{
    for (uint32_t i = 0; values && i < n; i++) {
        sonde_value_release(values[i]);
        values[i] = NULL;
    }
}

sonde_status sn_runner_run(sonde_accuracy *acc, const sn_side *side, const sn_runner *r,
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
