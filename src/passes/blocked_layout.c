/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: decides which images of f32 lie in channel blocks and which of bytes have their channels
 * last, and inserts sonde.Reorder where these and the plain world meet.
 *
 * Operators say what they can do (sn_op.in_blocks, in_last). What is said of blocks here holds for
 * both; no operator takes one and makes the other. Convolutions that can are blocked for good:
 * their kernels are made for it. Nodes that do not care (elementwise ones, pools, concatenations,
 * …) are elastic: those that hang together form a group, and a group becomes blocked only when that
 * needs no more reorders at its border than staying plain. Nodes that only take blocked input (a
 * global pool) follow their input. Everything else is plain: graph inputs and outputs, constants,
 * captures and inputs of control flow. */
#include <string.h>

#include "ops/shared/channel_block.h"
#include "ops/shared/layouts.h"
#include "passes/forms.h"

enum { PLAIN, BLOCKED, LAST }; /* labels */
static const char *const label_names[] = {"plain", "blocked", "last"};

typedef struct layout {
    int block;
    const sn_op_signature **of; /* by node id; NULL: plain */
    uint8_t *label;             /* by node id: which it is a signature of */
    size_t n_nodes;
} layout;

static int block_of(const sn_form_stage *s)
{
    return ((const layout *)s->user)->block;
}

/* ------------------------------------------------------------------ what nodes can do */
typedef bool is_image_fn(const sn_value *v);

/* Does the signature suit the values of the node? */
static bool suits(const sn_op_signature *g, const sn_node *n, is_image_fn *is_image)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        const sn_value *v = n->in[i].value;
        if (v && sn_op_signature_in(g, i) == SN_PORT_SAME && !sn_value_is_const(v) && !is_image(v))
            return false;
    }
    for (uint32_t o = 0; o < n->n_out; o++) {
        const sn_port_form port = sn_op_signature_out(g, o);
        if (o > 0 && n->out[o] && port != SN_PORT_SAME)
            return false; /* second outputs (indices, masks) are plain: so is the node */
        if (port == SN_PORT_SAME && (!n->out[o] || !is_image(n->out[o])))
            return false;
    }
    return true;
}

static const sn_op_signature *signature_of(const sn_form_stage *s, const sn_node *n, int block,
                                           uint8_t *label)
{
    const sn_op *op = n->op;
    if (!op || (op->flags & (SN_OP_CONTROL | SN_OP_NONTENSOR)) || !n->n_in || !n->in[0].value ||
        !n->n_out || !n->out[0])
        return NULL;
    const bool plain_tiles = op->flags & SN_OP_PLAIN_TILES || n->out[0]->fact.type.rank > 4;
    const bool suited = sn_op_blocks_suit(plain_tiles, s->env->precision, s->env->cpu_flags);
    const sn_op_signature *g = suited && op->in_blocks ? op->in_blocks(n, n->params, block) : NULL;
    *label = BLOCKED;
    if (g && suits(g, n, sn_value_is_image))
        return g;
    *label = LAST;
    g = op->in_last ? op->in_last(n, n->params) : NULL;
    return g && suits(g, n, sn_value_is_byte_image) ? g : NULL;
}

/* ------------------------------------------------------------------ the stage */
static const sn_op_signature *of(const sn_form_stage *s, const sn_node *n)
{
    const layout *l = s->user;
    return n->id < l->n_nodes ? l->of[n->id] : NULL;
}

static uint8_t signature(const sn_form_stage *s, const sn_node *n)
{
    const layout *l = s->user;
    const sn_op_signature *g = l->of[n->id] = signature_of(s, n, l->block, &l->label[n->id]);
    if (!g || sn_op_signature_out(g, 0) != SN_PORT_SAME)
        return PLAIN;
    return g->native_cost == SN_COST_NEVER ? l->label[n->id] : SN_FORM_ELASTIC;
}

static sn_port_form input(const sn_form_stage *s, const sn_node *n, uint32_t i)
{
    const sn_op_signature *g = of(s, n);
    return g ? sn_op_signature_in(g, i) : SN_PORT_NATIVE;
}

static sn_port_form output(const sn_form_stage *s, const sn_node *n, uint32_t o)
{
    const sn_op_signature *g = of(s, n);
    return g ? sn_op_signature_out(g, o) : SN_PORT_NATIVE;
}

static uint32_t native_cost(const sn_form_stage *s, const sn_node *n)
{
    return of(s, n)->native_cost;
}

/* Reordering a pixel per channel is nothing beside an image. */
static uint32_t weight(const sn_value *v)
{
    const sn_type *t = &v->fact.type;
    for (int i = 2; i < t->rank; i++)
        if (t->dims[i] != 1)
            return SN_COST_MOVE;
    return t->rank > 2 ? 1 : SN_COST_MOVE;
}

static sonde_status mark(sn_form_stage *s, sn_value *v, const sn_value *of, uint8_t label)
{
    (void)of;
    v->fact.form.layout = label == LAST      ? sn_layout_last()
                          : label == BLOCKED ? sn_layout_blocks((unsigned)block_of(s))
                                             : (sn_layout){0};
    return SONDE_OK;
}

static sn_form_border border(const sn_form_stage *s, const sn_value *to)
{
    const bool last = sn_layout_is_last(to->fact.form.layout);
    (void)s;
    return (sn_form_border){.domain = "sonde",
                            .op_type = "Reorder",
                            .opset = 1,
                            .attribute = last ? "last" : "block",
                            .value = last ? 1 : sn_fact_block(&to->fact),
                            .shown_type = "[Reorder]"};
}

/* An operand of an image, [C, d2, d3] beside [d0, C, d2, d3]; else [d0, C, d2] is a sequence. */
static bool is_operand(const sn_form_stage *s, const sn_node *n, uint32_t i, const sn_tensor *t)
{
    return t->rank == 3 && n->out[0]->fact.type.rank == 4 && input(s, n, i) == SN_PORT_SAME;
}

/* A constant image in blocks, as [d0, C, d2, d3], or a sequence, as input i of n reads it. */
static sonde_status constant(sn_form_stage *s, const sn_node *n, uint32_t i, uint8_t label,
                             sn_value **out)
{
    const sn_value *v = n->in[i].value;
    const sn_tensor *from = v->fact.data;
    if (label != BLOCKED || from->dtype != SONDE_DTYPE_F32 || !sn_tensor_is_plain(from) ||
        from->rank < 3 || from->rank > 4)
        return SONDE_OK;
    const int32_t lead = is_operand(s, n, i, from), rank = from->rank + lead;
    if (*out && (*out)->fact.type.rank == rank)
        return SONDE_OK;
    int64_t dims[4] = {1, 1, 1, 1}, b = block_of(s);
    sn_pass_env *env = s->env;
    for (int d = 0; d < from->rank; d++)
        dims[lead + d] = from->dims[d];
    int64_t blocks = (dims[1] + b - 1) / b, pixels = dims[2] * dims[3];
    int64_t padded[4] = {dims[0], blocks * b, dims[2], dims[3]};
    void *data;
    *out = NULL;
    SN_TRY(sn_pass_constant(s->g, env, v->name, SONDE_DTYPE_F32, padded, rank, out, &data));
    sn_value_show_as(*out, v);
    float *dst = data;
    memset(dst, 0, (*out)->fact.data->bytes);
    for (int64_t image = 0; image < dims[0]; image++)
        for (int64_t c = 0; c < dims[1]; c++)
            for (int64_t p = 0; p < pixels; p++)
                dst[((image * blocks + c / b) * pixels + p) * b + c % b] =
                    sn_read_f32(from, (image * dims[1] + c) * pixels + p);
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
                .of = SN_NEW_N(&scratch, const sn_op_signature *, g->n_nodes + 1),
                .label = SN_NEW_N(&scratch, uint8_t, g->n_nodes + 1),
                .n_nodes = g->n_nodes};
    sn_form_stage s = {.g = g,
                       .env = env,
                       .label_names = label_names,
                       .user = &l,
                       .signature = signature,
                       .input = input,
                       .output = output,
                       .native_cost = native_cost,
                       .weight = weight,
                       .mark = mark,
                       .constant = constant,
                       .border = border};
    sonde_status st = SONDE_OK;
    if (!l.of || !l.label)
        st = sn_fail_memory(env->err, l.n_nodes * sizeof *l.of);
    else if (sn_op_find("sonde", "Reorder", 1, NULL))
        st = sn_forms_solve(&s);
    sn_arena_free(&scratch);
    *changes += s.changes;
    return st;
}

const sn_pass sn_pass_blocked_layout = {
    .name = "blocked-layout",
    .summary = "keeps activations in the layout that convolutions are made for",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
