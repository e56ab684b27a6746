/* SPDX-License-Identifier: Apache-2.0 */
/* The list of passes and the loop that runs them, outer graph first, then the bodies of control
 * flow. Every pass leaves the graph sorted, its nodes resolved and its facts inferred. */
#include "passes/pass.h"

#include <string.h>

#include "passes/rewrite.h"

static const sn_pass *const rows[] = {
#define SN_PASS(symbol) &symbol,
#include "passes/passes.inc"
#undef SN_PASS
};

const sn_pass *sn_pass_row(size_t k)
{
    return k < sizeof rows / sizeof rows[0] ? rows[k] : NULL;
}

static sonde_status run_on(const sn_pass *p, sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    SN_TRY(p->run(g, env, changes));
    if (!p->bodies)
        return SONDE_OK;
    sn_graph_each (n, g) {
        sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)); k++)
            SN_TRY(run_on(p, body, env, changes));
    }
    return SONDE_OK;
}

sonde_status sn_passes_run(sn_graph *g, sn_pass_env *env, const char *const *disabled,
                           size_t n_disabled)
{
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const sn_pass *p = rows[k];
        bool off = false;
        for (size_t i = 0; i < n_disabled; i++)
            off |= strcmp(disabled[i], p->name) == 0;
        if (off)
            continue;
        sn_trace *trace = env->ctx->trace;
        uint64_t begin = trace ? sn_span_begin(trace) : 0;
        uint32_t changes = 0;
        sonde_status st = run_on(p, g, env, &changes);
        if (trace)
            sn_span_end(trace, begin, "pass", p->name);
        if (st != SONDE_OK) {
            sn_error_prefix(env->err, "pass %s", p->name);
            return st;
        }
        sn_log_write(&env->ctx->log, SN_LOG_DEBUG, "pass %s: %u changes", p->name, changes);
    }
    return SONDE_OK;
}
