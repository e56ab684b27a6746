/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding: a node whose inputs are all constant is evaluated once, here; a node whose
 * small integer result inference already knows (Shape ► Gather ► Concat chains) becomes that
 * constant. Nodes behind a folded one are inferred again, so that what was learned travels on. */
#include <string.h>

#include "passes/rewrite.h"

#define MAX_RESULT_BYTES ((size_t)16 << 20) /* larger results must not grow beyond … */
#define MAX_GROWTH       4                  /* … this many times their inputs */

typedef struct folder {
    sn_graph *g;
    sn_pass_env *env;
    uint8_t *fresh; /* by value id: more is known than when its readers were inferred */
    uint32_t changes;
    bool weights_too;
} folder;

/* Results whose size follows from input values but never exceeds a small multiple of the input. */
static bool is_bounded_dynamic(const sn_node *n)
{
    static const char *const names[] = {"NonZero", "Unique", "Compress"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (sn_node_is(n, names[i]))
            return true;
    return false;
}

static bool inputs_constant(const sn_node *n, size_t *bytes)
{
    *bytes = 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const sn_value *v = n->in[i].value;
        if (!v)
            continue;
        if (!sn_value_is_const(v) || !sn_tensor_is_plain(v->fact.data))
            return false;
        *bytes += v->fact.data->bytes;
    }
    return true;
}

static bool size_allowed(const sn_node *n, size_t input_bytes)
{
    size_t total = 0;
    for (uint32_t o = 0; o < n->n_out; o++) {
        const sn_value *v = n->out[o];
        size_t bytes;
        if (!v)
            continue;
        if (!sn_type_is_concrete(&v->fact.type))
            return is_bounded_dynamic(n) && input_bytes <= MAX_RESULT_BYTES / 64;
        if (!sn_tensor_bytes(v->fact.type.dtype, v->fact.type.dims, v->fact.type.rank, &bytes) ||
            !sn_size_add(total, bytes, &total))
            return false;
    }
    return total <= MAX_RESULT_BYTES || total / MAX_GROWTH <= input_bytes;
}

/* Output v becomes the constant in `s`, whose buffer moves to the program. */
static sonde_status adopt(folder *f, sn_value *v, sn_slot *s)
{
    sn_pass_env *env = f->env;
    sn_tensor *t = SN_NEW(f->g->arena, sn_tensor);
    if (!t || !sn_vec_push(&env->buffers->list, env->ctx->alloc, s->t.owner))
        return sn_fail_memory(env->err, sizeof *t);
    *t = s->t;
    memset(s, 0, sizeof *s); /* the reference moved */
    return sn_value_set_constant(f->g, v, t, env->err);
}

static sonde_status fold_away(folder *f, sn_node *n)
{
    for (uint32_t o = 0; o < n->n_out; o++)
        if (n->out[o])
            f->fresh[n->out[o]->id] = 1;
    f->changes++;
    return sn_graph_fold(f->g, n, f->env->err);
}

static sonde_status evaluate(folder *f, sn_node *n, bool *done)
{
    const size_t out_bytes = n->n_out * sizeof(sn_slot);
    sn_slot *out = sn_alloc_zero(f->g->alloc, out_bytes);
    if (!out)
        return sn_fail_memory(f->env->err, out_bytes);
    sonde_status st = sn_node_evaluate(f->g, f->env, n, NULL, out, done);
    for (uint32_t o = 0; st == SONDE_OK && *done && o < n->n_out; o++)
        if (n->out[o])
            st = adopt(f, n->out[o], &out[o]);
    for (uint32_t o = 0; o < n->n_out; o++)
        sn_slot_clear(&out[o]);
    sn_free(f->g->alloc, out, out_bytes);
    return st;
}

/* Output v is the integers inference found. */
static sonde_status write_ints(folder *f, sn_value *v)
{
    sn_slot s = {0};
    const sn_fact *fact = &v->fact;
    SN_TRY(sn_slot_new_tensor(&s, fact->type.dtype, fact->type.dims, fact->type.rank,
                              f->env->ctx->alloc, f->env->err));
    sn_fact_write_ints(fact, s.t.data);
    sonde_status st = adopt(f, v, &s);
    sn_slot_clear(&s);
    return st;
}

/* Every output that matters is constant already (Constant), or has known integers. */
static sonde_status fold_known(folder *f, sn_node *n, bool *done)
{
    *done = false;
    for (uint32_t o = 0; o < n->n_out; o++) {
        const sn_value *v = n->out[o];
        if (v && (v->n_uses || v->n_outputs) && !v->fact.data && !sn_fact_ints_known(&v->fact))
            return SONDE_OK;
    }
    for (uint32_t o = 0; o < n->n_out; o++) {
        sn_value *v = n->out[o];
        if (!v || (!v->n_uses && !v->n_outputs))
            continue;
        if (v->fact.data)
            v->is_initializer = true;
        else
            SN_TRY(write_ints(f, v));
    }
    *done = true;
    return SONDE_OK;
}

static bool learns(const folder *f, const sn_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i].value && f->fresh[n->in[i].value->id])
            return true;
    return false;
}

static sonde_status infer_again(folder *f, sn_node *n)
{
    bool vague[8];
    for (uint32_t o = 0; o < n->n_out && o < 8; o++)
        vague[o] = n->out[o] && !sn_type_is_concrete(&n->out[o]->fact.type);
    SN_TRY(sn_op_infer_node(f->g, n, f->env->err));
    for (uint32_t o = 0; o < n->n_out; o++) {
        const sn_value *v = n->out[o];
        if (v && (o >= 8 || vague[o] || v->fact.ints || v->fact.data))
            f->fresh[v->id] = 1;
    }
    return SONDE_OK;
}

static sonde_status visit(folder *f, sn_node *n)
{
    uint32_t flags = n->op->flags;
    bool done = false;
    size_t input_bytes;
    if (flags & SN_OP_CONTROL)
        SN_TRY(sn_node_share_constants(f->g, n, &f->changes, f->env->err));
    if (learns(f, n))
        SN_TRY(infer_again(f, n));
    if (flags & (SN_OP_RANDOM | SN_OP_CONTROL | SN_OP_NONTENSOR))
        return SONDE_OK;
    SN_TRY(fold_known(f, n, &done));
    if (!f->weights_too && sn_node_is(n, "DequantizeLinear"))
        return SONDE_OK;
    if (!done && !(flags & SN_OP_NO_FOLD) && inputs_constant(n, &input_bytes) &&
        size_allowed(n, input_bytes))
        SN_TRY(evaluate(f, n, &done));
    return done ? fold_away(f, n) : SONDE_OK;
}

static sonde_status fold(sn_graph *g, sn_pass_env *env, bool weights_too, uint32_t *changes)
{
    size_t n_values = g->values.n;
    folder f = {
        .g = g, .env = env, .fresh = sn_alloc_zero(g->alloc, n_values), .weights_too = weights_too};
    if (!f.fresh)
        return sn_fail_memory(env->err, n_values);
    sonde_status st = SONDE_OK;
    sn_graph_each (n, g) {
        if (st == SONDE_OK && n->op)
            st = visit(&f, n);
    }
    sn_free(g->alloc, f.fresh, n_values);
    *changes += f.changes;
    return st;
}

/* Quantised weights stay what they are until fuse-qdq has looked at them. */
static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    return fold(g, env, false, changes);
}

static sonde_status run_dequantize(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    return fold(g, env, true, changes);
}

const sn_pass sn_pass_fold_constants = {
    .name = "fold-constants",
    .summary = "computes nodes with constant inputs",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};

const sn_pass sn_pass_fold_dequantize = {
    .name = "fold-dequantize",
    .summary = "computes DequantizeLinear of constant weights",
    .run = run_dequantize,
    .bodies = true,
    .reads_weights = true,
};
