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

static bool is_named(const sn_pass *p, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], p->name) == 0)
            return true;
    return false;
}

static bool is_meant(const sn_pass *p, const sn_graph *g)
{
    if (p->means(g))
        return true;
    for (const sn_node *n = g->first; p->bodies && n; n = n->next) {
        const sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)); k++)
            if (is_meant(p, body))
                return true;
    }
    return false;
}

sonde_status sn_passes_run(sn_graph *g, sn_pass_env *env, const char *const *disabled,
                           size_t n_disabled, bool meaning_only)
{
    size_t n = sizeof rows / sizeof rows[0];
    while (meaning_only && n > 0 &&
           (!rows[n - 1]->means || is_named(rows[n - 1], disabled, n_disabled) ||
            !is_meant(rows[n - 1], g)))
        n--;
    for (size_t k = 0; k < n; k++) {
        const sn_pass *p = rows[k];
        if (is_named(p, disabled, n_disabled))
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
