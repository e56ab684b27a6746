/* SPDX-License-Identifier: Apache-2.0 */
/* The list of checks, run one after the other over the same rows. A check that finds nothing says
 * nothing, and what one of them says does not depend on the others. */
#include "findings/findings.h"

#include <stdlib.h>

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

static int by_time(const void *a, const void *b)
{
    const sn_prof_row *x = a, *y = b;
    return (x->mean_ns < y->mean_ns) - (x->mean_ns > y->mean_ns);
}

/* A table says what all runs took, the slowest ones too. What to do about a model follows from what
 * its runs take as a rule: in the rows that checks see, times and shares are that. */
static void take_usual(sn_prof_summary *s)
{
    for (size_t i = 0; i < s->rows.n; i++) {
        sn_prof_row *r = &s->rows.data[i];
        r->mean_ns = r->usual_ns;
        r->share = r->usual_share;
    }
    if (s->rows.n > 1)
        qsort(s->rows.data, s->rows.n, sizeof *s->rows.data, by_time);
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
        take_usual(&c.ops);
        take_usual(&c.kernels);
        take_usual(&c.nodes);
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
    sn_vec_free(&f->gains, f->alloc);
    sn_arena_free(&f->arena);
}
