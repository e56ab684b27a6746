/* SPDX-License-Identifier: Apache-2.0 */
/* The guard stands in front of the operator's own run function, so that neither the run loop nor
 * the operators know of it: a bound step with pieces gets a run function that opens them, calls the
 * operator and closes them again. */
#include "ops/framework/workspace_guard.h"

#include "ops/framework/op.h"

#if SN_WORKSPACE_GUARDED

/* What the operator answered, kept behind the guard. */
typedef struct guarded_step {
    sonde_status (*run)(const sn_step *, sn_frame *);
    const void *bound;
    sn_workspace workspace;
} guarded_step;

static sonde_status run_guarded(const sn_step *s, sn_frame *f)
{
    const guarded_step *g = s->bound;
    sn_step inner = *s;
    inner.run = g->run;
    inner.bound = g->bound;
    sn_workspace_open_pieces(f->workspace, &g->workspace);
    const sonde_status st = inner.run(&inner, f);
    sn_workspace_close(f->workspace, g->workspace.bytes);
    return st;
}

sonde_status sn_workspace_guard(sn_bind *b)
{
    if (b->workspace.n_extents == 0)
        return SONDE_OK;
    guarded_step *g = SN_NEW(b->arena, guarded_step);
    if (!g)
        return sn_fail_memory(b->err, sizeof *g);
    *g = (guarded_step){.run = b->run, .bound = b->bound, .workspace = b->workspace};
    b->run = run_guarded;
    b->bound = g;
    return SONDE_OK;
}

#else

sonde_status sn_workspace_guard(sn_bind *b)
{
    (void)b;
    return SONDE_OK;
}

#endif
