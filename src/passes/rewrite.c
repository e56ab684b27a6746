/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that many passes share. */
#include "passes/rewrite.h"

#include <string.h>

#include "ops/framework/eval.h"

bool sn_node_is(const sn_node *n, const char *op_type)
{
    return !n->domain[0] && strcmp(n->op_type, op_type) == 0;
}

bool sn_node_is_internal(const sn_node *n, const char *op_type)
{
    return strcmp(n->domain, "sonde") == 0 && strcmp(n->op_type, op_type) == 0;
}

sn_node *sn_value_only_reader(const sn_value *v)
{
    return v && v->n_uses == 1 && !v->n_outputs ? v->uses->node : NULL;
}

bool sn_value_is_dtype(const sn_value *v, sn_dtype dtype)
{
    return v && v->fact.type.kind == SN_KIND_TENSOR && v->fact.type.dtype == dtype;
}

bool sn_value_is_byte(const sn_value *v)
{
    return sn_value_is_dtype(v, SONDE_DTYPE_U8) || sn_value_is_dtype(v, SONDE_DTYPE_I8);
}

bool sn_value_is_weight(const sn_value *v)
{
    return sn_value_is_dtype(v, SONDE_DTYPE_F32) ||
           (sn_value_is_const(v) &&
            (sn_value_is_dtype(v, SONDE_DTYPE_F16) || sn_value_is_dtype(v, SONDE_DTYPE_BF16)));
}

bool sn_value_scalar_f32(const sn_value *v, float *out)
{
    if (!v || !sn_value_is_const(v) || v->fact.data->dtype != SONDE_DTYPE_F32 ||
        !sn_tensor_is_plain(v->fact.data) || sn_tensor_count(v->fact.data) != 1)
        return false;
    *out = sn_read_f32(v->fact.data, 0);
    return true;
}

sonde_status sn_pass_constant(sn_graph *g, sn_pass_env *env, const char *name, sn_dtype dtype,
                              const int64_t *dims, int rank, sn_value **v, void **data)
{
    size_t bytes;
    if (!sn_tensor_bytes(dtype, dims, rank, &bytes))
        return sn_fail(env->err, SONDE_LIMIT, "constant '%s' is larger than memory can be", name);
    sn_tensor *t = SN_NEW(g->arena, sn_tensor);
    sn_buffer *b = t ? sn_buffer_new(env->ctx->alloc, bytes) : NULL;
    if (!b)
        return sn_fail_memory(env->err, bytes);
    if (!sn_vec_push(&env->buffers->list, env->ctx->alloc, b)) {
        sn_buffer_unref(b);
        return sn_fail_memory(env->err, sizeof b);
    }
    t->dtype = dtype;
    t->rank = rank;
    for (int i = 0; i < rank; i++)
        t->dims[i] = dims[i];
    t->data = b->data;
    t->bytes = bytes;
    t->owner = b;
    const char *unique = "";
    if (name[0]) {
        unique = sn_arena_printf(g->arena, "%s#%zu", name, g->values.n);
        if (!unique)
            return sn_fail_memory(env->err, strlen(name) + 24);
    }
    SN_TRY(sn_graph_add_constant(g, unique, t, v, env->err));
    (*v)->shown = name;
    *data = t->data;
    return SONDE_OK;
}

sonde_status sn_pass_flat(sn_graph *g, sn_pass_env *env, sn_value *v, sn_value **flat)
{
    *flat = v;
    if (v->fact.data->rank == 1)
        return SONDE_OK;
    sn_tensor *t = SN_NEW(g->arena, sn_tensor);
    if (!t)
        return sn_fail_memory(env->err, sizeof *t);
    *t = *v->fact.data;
    t->dims[0] = sn_tensor_count(t);
    t->rank = 1;
    SN_TRY(sn_graph_add_constant(g, "", t, flat, env->err));
    sn_value_show_as(*flat, v);
    return SONDE_OK;
}

sonde_status sn_pass_widen(sn_graph *g, sn_pass_env *env, const sn_value *v, sn_value **wide)
{
    const sn_tensor *from = v->fact.data;
    void *data;
    SN_TRY(sn_pass_constant(g, env, v->name, SONDE_DTYPE_F32, from->dims, from->rank, wide, &data));
    sn_value_show_as(*wide, v);
    float *dst = data;
    for (int64_t i = 0, n = sn_tensor_count(from); i < n; i++) {
        uint16_t h;
        sn_tensor_read(from, i, 1, &h);
        dst[i] = from->dtype == SONDE_DTYPE_F16 ? sn_f16_to_f32(h) : sn_bf16_to_f32(h);
    }
    return SONDE_OK;
}

sn_value *sn_node_other_input(const sn_node *n, const sn_value *v)
{
    if (n->n_in != 2 || n->in[0].value == n->in[1].value)
        return NULL;
    return n->in[0].value == v ? n->in[1].value : n->in[1].value == v ? n->in[0].value : NULL;
}

int64_t sn_node_attr_int(const sn_node *n, const char *name, int64_t def)
{
    const sn_attr *a = sn_node_attr(n, name);
    return a && a->kind == SN_ATTR_INT ? a->i : def;
}

float sn_node_attr_float(const sn_node *n, const char *name, float def)
{
    const sn_attr *a = sn_node_attr(n, name);
    return a && a->kind == SN_ATTR_FLOAT ? a->f : def;
}

sonde_status sn_node_refresh(sn_graph *g, sn_node *n, sonde_error *err)
{
    n->op = NULL;
    n->params = NULL;
    SN_TRY(sn_op_prepare(g, n, err));
    return sn_op_infer_node(g, n, err);
}

sonde_status sn_node_add_post_op(sn_graph *g, sn_node *n, const char *op_type, sonde_error *err)
{
    if (!n->post_op[0] || !op_type[0]) {
        n->post_op = n->post_op[0] ? n->post_op : op_type;
        return SONDE_OK;
    }
    char *text = sn_arena_printf(g->arena, "%s+%s", n->post_op, op_type);
    if (!text)
        return sn_fail_memory(err, strlen(n->post_op) + strlen(op_type) + 2);
    n->post_op = text;
    return SONDE_OK;
}

static bool are_plain_tensors(const sn_node *n, const sn_slot *out)
{
    for (uint32_t o = 0; o < n->n_out; o++)
        if (n->out[o] &&
            !(out[o].kind == SN_KIND_TENSOR && out[o].t.owner && sn_tensor_is_plain(&out[o].t)))
            return false;
    return true;
}

sonde_status sn_node_evaluate(sn_graph *g, sn_pass_env *env, const sn_node *n,
                              const sn_slot *const *given, sn_slot *out, bool *usable)
{
    const size_t slot_bytes = n->n_in * sizeof(sn_slot), ref_bytes = n->n_in * sizeof(sn_slot *);
    sn_slot *slots = sn_alloc_zero(g->alloc, slot_bytes);
    const sn_slot **in = sn_alloc_zero(g->alloc, ref_bytes);
    sonde_error local = {0};
    sonde_status st = SONDE_OK;
    *usable = false;
    if (!slots || !in) {
        st = sn_fail_memory(env->err, slot_bytes);
        goto fail;
    }
    for (uint32_t i = 0; i < n->n_in; i++) {
        sn_value *v = n->in[i].value;
        if (given && given[i]) {
            in[i] = given[i];
        } else if (v) {
            SN_TRY_GOTO(st, sn_value_make_readable(g, v, env->buffers, env->err));
            slots[i].kind = SN_KIND_TENSOR;
            slots[i].t = *v->fact.data;
            in[i] = &slots[i];
        }
    }
    st = sn_eval_node(env->ctx, n, in, out, &local);
    if (st == SONDE_OUT_OF_MEMORY) {
        sn_fail(env->err, st, "%s", local.message);
        goto fail;
    }
    *usable = st == SONDE_OK && are_plain_tensors(n, out);
    st = SONDE_OK;
fail:
    sn_free(g->alloc, slots, slots ? slot_bytes : 0);
    sn_free(g->alloc, in, in ? ref_bytes : 0);
    return st;
}

/* Inputs of the node that carry no capture of any body become absent. */
static sonde_status clear_unused_inputs(sn_graph *g, sn_node *n, sonde_error *err)
{
    uint32_t n_captures = n->n_in - n->n_formal_in;
    uint8_t *used = sn_alloc_zero(g->alloc, n_captures);
    if (!used)
        return sn_fail_memory(err, n_captures);
    sn_graph *body;
    for (uint32_t b = 0; (body = sn_node_body(n, b)); b++)
        for (size_t k = 0; k < body->capture_map.n; k++)
            used[body->capture_map.data[k] - n->n_formal_in] = 1;
    for (uint32_t i = 0; i < n_captures; i++)
        if (!used[i])
            sn_node_set_input(n, n->n_formal_in + i, NULL);
    sn_free(g->alloc, used, n_captures);
    return SONDE_OK;
}

/* Walks the captures of all bodies; `drop` decides which go. One sweep per body, in place. */
typedef bool (*drop_fn)(const sn_value *outer, sn_value *inner);

static sonde_status drop_captures(sn_graph *g, sn_node *n, drop_fn drop, uint32_t *changes,
                                  sonde_error *err)
{
    sn_graph *body;
    uint32_t dropped = 0;
    for (uint32_t b = 0; (body = sn_node_body(n, b)); b++) {
        size_t kept = 0;
        for (size_t k = 0; k < body->capture_map.n; k++) {
            sn_value *inner = body->inputs.data[body->n_formal_inputs + k];
            if (drop(n->in[body->capture_map.data[k]].value, inner)) {
                inner->is_input = false;
                dropped++;
                continue;
            }
            body->inputs.data[body->n_formal_inputs + kept] = inner;
            body->capture_map.data[kept++] = body->capture_map.data[k];
        }
        body->inputs.n = body->n_formal_inputs + kept;
        body->capture_map.n = kept;
    }
    *changes += dropped;
    return dropped ? clear_unused_inputs(g, n, err) : SONDE_OK;
}

static bool drop_constant(const sn_value *outer, sn_value *inner)
{
    if (!outer || !sn_value_is_const(outer))
        return false;
    inner->fact = outer->fact;
    inner->is_initializer = true;
    return true;
}

static bool drop_unread(const sn_value *outer, sn_value *inner)
{
    (void)outer;
    return !inner->n_uses && !inner->n_outputs;
}

sonde_status sn_node_share_constants(sn_graph *g, sn_node *n, uint32_t *changes, sonde_error *err)
{
    return drop_captures(g, n, drop_constant, changes, err);
}

sonde_status sn_node_prune_captures(sn_graph *g, sn_node *n, uint32_t *changes, sonde_error *err)
{
    return drop_captures(g, n, drop_unread, changes, err);
}
