/* SPDX-License-Identifier: Apache-2.0 */
/* The measured runs of a profile one by one, for reports that are not about rows. Their times are
 * the samples of sn_prof_summary.wall_ns. */
#include "profile/nesting.h"
#include "profile/profile.h"

sonde_status sn_profile_runs(const sn_profile *p, sn_prof_runs *out, sonde_error *err)
{
    sn_prof_nest nest;
    *out = (sn_prof_runs){.alloc = p->alloc};
    SN_TRY(sn_prof_nest_build(p, &nest, err));
    bool fine = true;
    for (size_t k = 0; k < nest.n_iterations && fine; k++) {
        const uint32_t at = nest.iteration_span[k];
        const sn_prof_span *s = &p->spans.data[at];
        const sn_prof_run run = {at, (double)s->dur_ns - nest.cost_ns[k]};
        fine = s->warmup || sn_vec_push(&out->all, p->alloc, run);
    }
    sn_prof_nest_free(&nest);
    if (fine)
        return SONDE_OK;
    sn_prof_runs_free(out);
    return sn_fail_memory(err, sizeof(sn_prof_run));
}

void sn_prof_runs_free(sn_prof_runs *runs)
{
    sn_vec_free(&runs->all, runs->alloc);
}
