/* SPDX-License-Identifier: Apache-2.0 */
/* Blocked layout: decides which values lie in channel blocks and inserts sonde.Reorder where a
 * blocked and a plain world meet.
 *
 * Convolutions that can are blocked for good: their kernels are made for it. Nodes that do not care
 * (elementwise ones, pools, concatenations, …) are elastic: those that hang together form a group,
 * and a group becomes blocked only when that needs no more reorders at its border than staying
 * plain. Nodes that only take blocked input (a global pool) follow their input. Everything else is
 * plain: graph inputs and outputs, constants, captures and inputs of control flow. */
#include <string.h>

#include "ops/shared/channel_block.h"
#include "passes/rewrite.h"

enum {
    FIXED_IN = 1,    /* reads input 0 blocked */
    FIXED_OUT = 2,   /* gives output 0 blocked; a residual lies like the output */
    ELASTIC = 4,     /* input and output in either layout, the same for both */
    ALL_INPUTS = 8,  /* elementwise: all its inputs share the layout */
    SOFT_IN = 16,    /* reads input 0 in either layout, gives plain */
    ALL_OUTPUTS = 32 /* all its outputs share the layout */
};

typedef struct group {                 /* of elastic nodes, at its root's node id */
    uint64_t plain_cost, blocked_cost; /* what reordering at the border weighs */
    uint32_t blocked_links;            /* borders to fixed blocked nodes */
} group;

typedef struct layout {
    sn_graph *g;
    sn_pass_env *env;
    int block;
    uint8_t *kind;            /* by node id */
    uint32_t *parent;         /* by node id: union-find over elastic nodes */
    group *groups;            /* by node id */
    uint32_t *seen;           /* by value id: root + 1 of the group that counted it last */
    sn_value **other;         /* by value id: the same value in the other layout */
    size_t n_nodes, n_values; /* when the pass began */
    uint32_t changes;
} layout;

static bool fits(const sn_value *v)
{
    return sn_value_is_dtype(v, SONDE_DTYPE_F32) && v->fact.type.rank == 4;
}

static bool is_scalar_const(const sn_value *v)
{
    return sn_value_is_const(v) && sn_tensor_count(v->fact.data) == 1;
}

/* Add, Sub, Mul and Div broadcast over physical dims, so in blocks they need only agree on the
 * channels; a constant is put into blocks here, and one element stays as it is. */
static bool is_broadcast(const sn_node *n)
{
    static const char *const names[] = {"Add", "Sub", "Mul", "Div"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (sn_node_is(n, names[i]) && n->opset >= 7)
            return n->n_in == 2 && n->in[0].value && n->in[1].value;
    return false;
}

static bool same_channels(const sn_value *v, sn_dim channels)
{
    if (is_scalar_const(v))
        return sn_value_is_dtype(v, SONDE_DTYPE_F32);
    if (!sn_value_is_const(v))
        return fits(v) && sn_dim_same(v->fact.type.dims[1], channels);
    const sn_tensor *t = v->fact.data; /* [C, 1, 1] and [1, C, 1, 1] */
    return t->dtype == SONDE_DTYPE_F32 && sn_tensor_is_plain(t) && (t->rank == 3 || t->rank == 4) &&
           sn_dim_same(t->dims[t->rank - 3], channels);
}

/* Elementwise on tensors that share one layout? */
static bool all_same(const sn_node *n)
{
    uint32_t present = 0;
    if (is_broadcast(n)) {
        sn_dim channels = n->out[0]->fact.type.dims[1];
        return sn_dim_known(channels) && same_channels(n->in[0].value, channels) &&
               same_channels(n->in[1].value, channels);
    }
    for (uint32_t i = 0; i < n->n_in; i++)
        present += n->in[i].value != NULL;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const sn_value *v = n->in[i].value;
        if (!v)
            continue;
        if (!fits(v) || v->fact.data)
            return false;
        if (present > 1 && !sn_type_same_shape(&v->fact.type, &n->out[0]->fact.type))
            return false;
    }
    return present > 0;
}

/* Ours and com.microsoft's: input 3 is a residual in both. */
static bool is_fused_conv(const sn_node *n)
{
    return strcmp(n->op_type, "FusedConv") == 0;
}

static bool is_conv(const sn_node *n)
{
    return sn_node_is(n, "Conv") || is_fused_conv(n) || sn_node_is(n, "ConvTranspose") ||
           sn_node_is_internal(n, "ConvDepthwise") || sn_node_is_internal(n, "GatedConv");
}

static uint8_t kind_of(const sn_node *n, int block)
{
    const sn_op *op = n->op;
    if (!op || (op->flags & (SN_OP_CONTROL | SN_OP_NONTENSOR)) || !n->n_in || !n->in[0].value ||
        !n->n_out)
        return 0;
    uint32_t want = op->blocking ? op->blocking(n, n->params, block) : 0;
    if (want & SN_BLOCK_ALL)
        return ELASTIC | ALL_OUTPUTS | ALL_INPUTS;
    for (uint32_t o = 1; o < n->n_out; o++)
        if (n->out[o])
            return 0; /* second outputs (indices, masks) are plain: so is the node */
    bool out_fits = n->out[0] && fits(n->out[0]);
    bool in = (want & SN_BLOCK_IN) && fits(n->in[0].value), out = (want & SN_BLOCK_OUT) && out_fits;
    if (is_conv(n)) {
        bool agrees = in == ((want & SN_BLOCK_IN) != 0) && out == ((want & SN_BLOCK_OUT) != 0);
        return agrees ? (uint8_t)((in ? FIXED_IN : 0) | (out ? FIXED_OUT : 0)) : 0;
    }
    if (in && out)
        return ELASTIC;
    if (in && !(want & SN_BLOCK_OUT))
        return SOFT_IN;
    if ((op->flags & SN_OP_LAYOUT_ANY) && out_fits && all_same(n))
        return ELASTIC | ALL_INPUTS;
    return 0;
}

static uint32_t find(layout *l, uint32_t i)
{
    while (l->parent[i] != i)
        i = l->parent[i] = l->parent[l->parent[i]];
    return i;
}

/* Does node n read input i in the layout its kind speaks of? */
static bool is_activation(const layout *l, const sn_node *n, uint32_t i)
{
    uint8_t k = l->kind[n->id];
    if (k & ALL_OUTPUTS)
        return fits(n->in[i].value); /* not the sizes of a Split */
    if (k & ALL_INPUTS)
        return !is_scalar_const(n->in[i].value);
    return i == 0 && (k & (FIXED_IN | ELASTIC | SOFT_IN));
}

static bool is_residual(const layout *l, const sn_node *n, uint32_t i)
{
    if (!(l->kind[n->id] & FIXED_OUT))
        return false;
    return is_fused_conv(n) ? i == 3 : i == 4 && sn_node_is_internal(n, "GatedConv");
}

/* One pixel, which its reader takes as it lies. */
static bool is_gate(const sn_node *n, uint32_t i)
{
    return i == 2 && sn_node_is_internal(n, "GatedConv");
}

/* The node whose kind decides how v lies; NULL: v is plain. */
static const sn_node *decider(const layout *l, const sn_value *v)
{
    const sn_node *p = v->producer;
    return p && (v->output_index == 0 || (l->kind[p->id] & ALL_OUTPUTS)) ? p : NULL;
}

static void join_groups(layout *l)
{
    sn_graph_each (n, l->g) {
        if (!(l->kind[n->id] & ELASTIC))
            continue;
        for (uint32_t i = 0; i < n->n_in; i++) {
            const sn_value *v = n->in[i].value;
            const sn_node *p = v && is_activation(l, n, i) ? decider(l, v) : NULL;
            if (p && (l->kind[p->id] & ELASTIC))
                l->parent[find(l, n->id)] = find(l, p->id);
        }
    }
}

/* Reordering a pixel per channel is nothing beside an image. */
static uint32_t weight(const sn_value *v)
{
    const sn_type *t = &v->fact.type;
    return t->rank == 4 && t->dims[2] == 1 && t->dims[3] == 1 ? 1 : 16;
}

static void count_readers(const layout *l, group *gr, const sn_value *out)
{
    bool wants_blocked = false, wants_plain = out->n_outputs > 0;
    for (const sn_edge *e = out->uses; e; e = e->next) {
        uint8_t k = l->kind[e->node->id];
        bool takes = is_activation(l, e->node, e->index);
        if ((takes && (k & FIXED_IN)) || is_residual(l, e->node, e->index))
            wants_blocked = true;
        else if (!takes &&
                 !is_gate(e->node,
                          e->index)) /* elastic readers are of the group, soft ones take either */
            wants_plain = true;
    }
    gr->plain_cost += wants_blocked ? weight(out) : 0;
    gr->blocked_links += wants_blocked;
    gr->blocked_cost += wants_plain ? weight(out) : 0;
}

/* What the group around an elastic node's inputs and outputs would cost either way. */
static void count_borders(layout *l, const sn_node *n)
{
    uint32_t root = find(l, n->id);
    group *gr = &l->groups[root];
    for (uint32_t i = 0; i < n->n_in; i++) {
        const sn_value *v = n->in[i].value;
        if (!v || !is_activation(l, n, i) || l->seen[v->id] == root + 1 || sn_value_is_const(v))
            continue;
        const sn_node *p = decider(l, v);
        if (p && (l->kind[p->id] & ELASTIC))
            continue;
        l->seen[v->id] = root + 1;
        if (p && (l->kind[p->id] & FIXED_OUT)) {
            gr->plain_cost += weight(v);
            gr->blocked_links++;
        } else {
            gr->blocked_cost += weight(v);
        }
    }
    count_readers(l, gr, n->out[0]);
    for (uint32_t o = 1; o < n->n_out && (l->kind[n->id] & ALL_OUTPUTS); o++)
        count_readers(l, gr, n->out[o]);
}

static bool gives_blocked(layout *l, const sn_node *n)
{
    uint8_t k = l->kind[n->id];
    if (!(k & ELASTIC))
        return k & FIXED_OUT;
    const group *gr = &l->groups[find(l, n->id)];
    return gr->blocked_links && gr->blocked_cost <= gr->plain_cost;
}

/* A Reorder from `from` to `to` (values of one type), before `before`. */
static sonde_status add_reorder(layout *l, sn_value *from, sn_value *to, sn_node *before,
                                const sn_node *origin)
{
    sn_node *r;
    sonde_error *err = l->env->err;
    const sn_layout planned = to->fact.form.layout;
    SN_TRY(sn_graph_add_node(l->g, before, "sonde", "Reorder", "", 1, 1, &r, err));
    r->opset = 1;
    sn_node_set_input(r, 0, from);
    sn_node_set_output(r, 0, to);
    sn_attr a = {.name = "block", .kind = SN_ATTR_INT, .n = 1, .i = sn_layout_block(planned)};
    SN_TRY(sn_node_set_attr(l->g, r, &a, err));
    SN_TRY(sn_node_inherit(l->g, r, origin, err));
    r->name = ""; /* no node of the file: work done for the sake of one */
    r->shown_type = "[Reorder]";
    SN_TRY(sn_node_refresh(l->g, r, err));
    to->fact.form.layout = planned;
    l->changes++;
    return SONDE_OK;
}

/* A value like v in layout `block`. */
static sonde_status twin(layout *l, const sn_value *v, int block, sn_value **out)
{
    const char *name = "";
    if (v->name[0]) {
        name = sn_arena_printf(l->g->arena, "%s#%s%u", v->name, block ? "blocked" : "plain", v->id);
        if (!name)
            return sn_fail_memory(l->env->err, strlen(v->name) + 24);
    }
    SN_TRY(sn_graph_add_value(l->g, name, out, l->env->err));
    (*out)->fact.type = v->fact.type;
    (*out)->fact.form.layout = sn_layout_blocks((unsigned)block);
    sn_value_show_as(*out, v);
    return SONDE_OK;
}

/* A constant operand in blocks, as [d0, C, d2, d3]. */
static sonde_status blocked_constant(layout *l, const sn_value *v, sn_value **out)
{
    const sn_tensor *from = v->fact.data;
    int64_t dims[4] = {1}, b = l->block;
    sn_pass_env *env = l->env;
    for (int i = 0; i < from->rank; i++)
        dims[4 - from->rank + i] = from->dims[i];
    int64_t blocks = (dims[1] + b - 1) / b, pixels = dims[2] * dims[3];
    int64_t padded[4] = {dims[0], blocks * b, dims[2], dims[3]};
    void *data;
    SN_TRY(sn_pass_constant(l->g, env, v->name, SONDE_DTYPE_F32, padded, 4, out, &data));
    sn_value_show_as(*out, v);
    float *dst = data;
    memset(dst, 0, (*out)->fact.data->bytes);
    for (int64_t n = 0; n < dims[0]; n++)
        for (int64_t c = 0; c < dims[1]; c++)
            for (int64_t p = 0; p < pixels; p++)
                dst[((n * blocks + c / b) * pixels + p) * b + c % b] =
                    sn_read_f32(from, (n * dims[1] + c) * pixels + p);
    sn_tensor *t = (sn_tensor *)(uintptr_t)(*out)->fact.data; /* made above */
    t->dims[1] = dims[1];
    t->layout = sn_layout_blocks((unsigned)b);
    return sn_value_set_constant(l->g, *out, t, env->err);
}

/* Input i of n wants `block`; v lies otherwise. The reorder is made once and shared. */
static sonde_status switch_input(layout *l, sn_node *n, uint32_t i, int block)
{
    sn_value *v = n->in[i].value;
    sn_value *t = l->other[v->id];
    if (!t) {
        if (sn_value_is_const(v) && (l->kind[n->id] & ALL_INPUTS)) {
            SN_TRY(blocked_constant(l, v, &t));
        } else {
            SN_TRY(twin(l, v, block, &t));
            SN_TRY(add_reorder(l, v, t, n, v->producer ? v->producer : n));
        }
        l->other[v->id] = t;
    }
    sn_node_set_input(n, i, t);
    return SONDE_OK;
}

/* n gives output o blocked. A graph output stays the plain value under its name; the node then
 * makes a blocked twin. */
static sonde_status block_output(layout *l, sn_node *n, uint32_t o)
{
    sn_value *v = n->out[o];
    if (!v->n_outputs) {
        v->fact.form.layout = sn_layout_blocks((unsigned)l->block);
        return SONDE_OK;
    }
    sn_value *t;
    SN_TRY(twin(l, v, l->block, &t));
    sn_node_set_output(n, o, t);
    l->other[v->id] = t;
    return add_reorder(l, t, v, n->next, n);
}

static sonde_status rewrite(layout *l)
{
    sn_graph_each (n, l->g) {
        if (n->id >= l->n_nodes)
            continue; /* a Reorder */
        uint8_t k = l->kind[n->id];
        bool out_blocked = gives_blocked(l, n);
        for (uint32_t i = 0; i < n->n_in; i++) {
            sn_value *v = n->in[i].value;
            if (!v || is_gate(n, i))
                continue;
            bool blocked = false;
            if (is_residual(l, n, i) || (is_activation(l, n, i) && (k & ELASTIC)))
                blocked = out_blocked;
            else if (is_activation(l, n, i))
                blocked = (k & FIXED_IN) || sn_fact_block(&v->fact) ||
                          (l->other[v->id] && sn_fact_block(&l->other[v->id]->fact));
            int want = blocked ? l->block : 0;
            if ((unsigned)want != sn_fact_block(&v->fact))
                SN_TRY(switch_input(l, n, i, want));
        }
        for (uint32_t o = 0; out_blocked && o < ((k & ALL_OUTPUTS) ? n->n_out : 1); o++)
            SN_TRY(block_output(l, n, o));
        n_next = n->next; /* a Reorder may follow now */
    }
    return SONDE_OK;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    layout l = {.g = g,
                .env = env,
                .block = (int)sn_op_channel_block(env->cpu_flags),
                .n_nodes = g->n_nodes,
                .n_values = g->values.n};
    if (!sn_op_find("sonde", "Reorder", 1, NULL))
        return SONDE_OK;
    sn_arena scratch;
    sn_arena_init(&scratch, g->alloc);
    l.kind = SN_NEW_N(&scratch, uint8_t, l.n_nodes + 1);
    l.parent = SN_NEW_N(&scratch, uint32_t, l.n_nodes + 1);
    l.groups = SN_NEW_N(&scratch, group, l.n_nodes + 1);
    l.seen = SN_NEW_N(&scratch, uint32_t, l.n_values + 1);
    l.other = SN_NEW_N(&scratch, sn_value *, l.n_values + 1);
    sonde_status st = SONDE_OK;
    if (!l.kind || !l.parent || !l.groups || !l.seen || !l.other) {
        st = sn_fail_memory(env->err, l.n_nodes * sizeof(group));
    } else {
        bool any = false;
        sn_graph_each (n, g) {
            l.parent[n->id] = n->id;
            l.kind[n->id] = kind_of(n, l.block);
            any |= (l.kind[n->id] & (FIXED_IN | FIXED_OUT)) != 0;
        }
        if (any) {
            join_groups(&l);
            sn_graph_each (n, g)
                if (l.kind[n->id] & ELASTIC)
                    count_borders(&l, n);
            st = rewrite(&l);
        }
    }
    sn_arena_free(&scratch);
    *changes += l.changes;
    return st;
}

const sn_pass sn_pass_blocked_layout = {
    .name = "blocked-layout",
    .summary = "keeps activations in the blocked layout between convolutions",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
