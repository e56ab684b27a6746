/* SPDX-License-Identifier: Apache-2.0 */
/* The list of checks, run one after the other over the same rows. A check that finds nothing says
 * nothing, and what one of them says does not depend on the others. */
#include "findings/findings.h"

#include "findings/check.h"

static sonde_status check_all(sn_case *c, sonde_error *err)
{
    static sn_check *const checks[] = {
#define SN_CHECK(name) sn_check_##name,
#include "findings/checks.inc"
#undef SN_CHECK
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks && !c->failed; i++)
        checks[i](c);
    return c->failed ? sn_fail_memory(err, sizeof(sonde_finding)) : SONDE_OK;
}

sonde_status sn_findings_of(const sn_profile *p, sn_findings *out, sonde_error *err)
{
    *out = (sn_findings){.alloc = p->alloc};
    sn_arena_init(&out->arena, p->alloc);
    sn_case c = {.p = p, .out = out};
    sonde_status st;
    SN_TRY_GOTO(st, sn_profile_summarise(p, SN_BY_OP, &c.ops, err));
    if (c.ops.iterations) {
        SN_TRY_GOTO(st, sn_profile_summarise(p, SN_BY_KERNEL, &c.kernels, err));
        SN_TRY_GOTO(st, sn_profile_summarise(p, SN_BY_NODE, &c.nodes, err));
        SN_TRY_GOTO(st, check_all(&c, err));
    }
fail:
    sn_prof_summary_free(&c.ops);
    sn_prof_summary_free(&c.kernels);
    sn_prof_summary_free(&c.nodes);
    if (st)
        sn_findings_free(out);
    return st;
}

void sn_findings_free(sn_findings *f)
{
    sn_vec_free(&f->list, f->alloc);
    sn_arena_free(&f->arena);
}
