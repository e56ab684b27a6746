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
#include "passes/forms.h"

enum {
    FIXED_IN = 1,    /* reads input 0 blocked */
    FIXED_OUT = 2,   /* gives output 0 blocked; a residual lies like the output */
    ELASTIC = 4,     /* input and output in either layout, the same for both */
    ALL_INPUTS = 8,  /* elementwise: all its inputs share the layout */
    SOFT_IN = 16,    /* reads input 0 in either layout, gives plain */
    ALL_OUTPUTS = 32 /* all its outputs share the layout */
};

enum { PLAIN, BLOCKED }; /* labels */
static const char *const label_names[] = {"plain", "blocked"};

typedef struct layout {
    int block;
    uint8_t *kind; /* by node id */
    size_t n_nodes;
} layout;

static int block_of(const sn_form_stage *s)
{
    return ((const layout *)s->user)->block;
}

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

/* ------------------------------------------------------------------ the stage */
static uint8_t kind(const sn_form_stage *s, const sn_node *n)
{
    const layout *l = s->user;
    return n->id < l->n_nodes ? l->kind[n->id] : 0;
}

static uint8_t signature(const sn_form_stage *s, const sn_node *n)
{
    const layout *l = s->user;
    const uint8_t k = l->kind[n->id] = kind_of(n, l->block);
    if (k & ELASTIC)
        return SN_FORM_ELASTIC;
    return k & (FIXED_IN | FIXED_OUT) ? BLOCKED : PLAIN;
}

/* A residual lies like the output. */
static bool is_residual(const sn_node *n, uint32_t i)
{
    return is_fused_conv(n) ? i == 3 : i == 4 && sn_node_is_internal(n, "GatedConv");
}

/* One pixel, which its reader takes as it lies. */
static bool is_gate(const sn_node *n, uint32_t i)
{
    return i == 2 && sn_node_is_internal(n, "GatedConv");
}

static sn_form_port input(const sn_form_stage *s, const sn_node *n, uint32_t i)
{
    const uint8_t k = kind(s, n);
    const sn_value *v = n->in[i].value;
    if (is_gate(n, i))
        return SN_PORT_ANY;
    if (k & ALL_OUTPUTS)
        return fits(v) ? SN_PORT_LABEL : SN_PORT_NATIVE; /* not the sizes of a Split */
    if (k & ALL_INPUTS)
        return is_scalar_const(v) ? SN_PORT_NATIVE : SN_PORT_LABEL;
    if (i == 0 && (k & SOFT_IN))
        return SN_PORT_ANY;
    if (i == 0 && (k & (FIXED_IN | ELASTIC)))
        return SN_PORT_LABEL;
    return (k & FIXED_OUT) && is_residual(n, i) ? SN_PORT_LABEL : SN_PORT_NATIVE;
}

static sn_form_port output(const sn_form_stage *s, const sn_node *n, uint32_t o)
{
    const uint8_t k = kind(s, n);
    return (k & ALL_OUTPUTS) || (o == 0 && (k & (FIXED_OUT | ELASTIC))) ? SN_PORT_LABEL
                                                                        : SN_PORT_NATIVE;
}

/* Reordering a pixel per channel is nothing beside an image. */
static uint32_t weight(const sn_value *v)
{
    const sn_type *t = &v->fact.type;
    return t->rank == 4 && t->dims[2] == 1 && t->dims[3] == 1 ? 1 : 16;
}

static sonde_status mark(sn_form_stage *s, sn_value *v, const sn_value *of, uint8_t label)
{
    (void)of;
    v->fact.form.layout = sn_layout_blocks(label == BLOCKED ? (unsigned)block_of(s) : 0);
    return SONDE_OK;
}

static sn_form_border border(const sn_form_stage *s, const sn_value *to)
{
    (void)s;
    return (sn_form_border){.domain = "sonde",
                            .op_type = "Reorder",
                            .opset = 1,
                            .attribute = "block",
                            .value = sn_fact_block(&to->fact),
                            .shown_type = "[Reorder]"};
}

/* A constant operand in blocks, as [d0, C, d2, d3]. */
static sonde_status constant(sn_form_stage *s, const sn_node *reader, const sn_value *v,
                             uint8_t label, sn_value **out)
{
    if (label != BLOCKED || !(kind(s, reader) & ALL_INPUTS))
        return SONDE_OK;
    const sn_tensor *from = v->fact.data;
    int64_t dims[4] = {1}, b = block_of(s);
    sn_pass_env *env = s->env;
    for (int i = 0; i < from->rank; i++)
        dims[4 - from->rank + i] = from->dims[i];
    int64_t blocks = (dims[1] + b - 1) / b, pixels = dims[2] * dims[3];
    int64_t padded[4] = {dims[0], blocks * b, dims[2], dims[3]};
    void *data;
    SN_TRY(sn_pass_constant(s->g, env, v->name, SONDE_DTYPE_F32, padded, 4, out, &data));
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
    return sn_value_set_constant(s->g, *out, t, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_arena scratch;
    sn_arena_init(&scratch, g->alloc);
    layout l = {.block = (int)sn_op_channel_block(env->cpu_flags),
                .kind = SN_NEW_N(&scratch, uint8_t, g->n_nodes + 1),
                .n_nodes = g->n_nodes};
    sn_form_stage s = {.g = g,
                       .env = env,
                       .label_names = label_names,
                       .user = &l,
                       .signature = signature,
                       .input = input,
                       .output = output,
                       .weight = weight,
                       .mark = mark,
                       .constant = constant,
                       .border = border};
    sonde_status st = SONDE_OK;
    if (!l.kind)
        st = sn_fail_memory(env->err, l.n_nodes);
    else if (sn_op_find("sonde", "Reorder", 1, NULL))
        st = sn_forms_solve(&s);
    sn_arena_free(&scratch);
    *changes += s.changes;
    return st;
}

const sn_pass sn_pass_blocked_layout = {
    .name = "blocked-layout",
    .summary = "keeps activations in the blocked layout between convolutions",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
