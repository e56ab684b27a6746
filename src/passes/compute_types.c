/* SPDX-License-Identifier: Apache-2.0 */
/* Types that steps compute in. Kernels compute 16-bit floats in f32, so a model in f16 or bf16
 * would convert every value twice on its way from one step to the next. Here the values between
 * steps that compute in f32 become f32; a Cast stands where one of them meets a step that needs the
 * type of the file (a graph input or output, control flow, a comparison, a Cast of the file itself,
 * which is there to round). Nothing is less precise than in the file. Later passes see an f32 model
 * and do with it what they do with any other.
 *
 * What an operator does with 16-bit floats it says itself (sn_op.half).
 * Weights of products and convolutions (sn_op.narrow_in) stay as they are in the file, two bytes
 * each: their drivers widen a few at a time. Other constants are converted once, here. */
#include "passes/forms.h"

enum { FILE_TYPE, WIDE }; /* labels */
static const char *const label_names[] = {"narrow", "wide"};

typedef struct types {
    uint8_t *original; /* by value id: SONDE_DTYPE_* in the file */
    size_t n_values;
} types;

static bool is_half(sn_dtype t)
{
    return t == SONDE_DTYPE_F16 || t == SONDE_DTYPE_BF16;
}

static bool is_half_value(const types *t, const sn_value *v)
{
    return v->fact.type.kind == SN_KIND_TENSOR && v->id < t->n_values &&
           is_half((sn_dtype)t->original[v->id]);
}

/* A weight whose driver takes it as it is in the file. */
static bool stays_narrow(const sn_node *n, uint32_t i)
{
    const sn_value *v = n->in[i].value;
    return i < 8 && (n->op->narrow_in >> i & 1) && sn_value_is_const(v) &&
           is_half(v->fact.data->dtype) && sn_tensor_is_plain(v->fact.data);
}

static uint8_t signature(const sn_form_stage *s, const sn_node *n)
{
    bool any = false;
    if (!n->op || (n->op->flags & (SN_OP_CONTROL | SN_OP_NONTENSOR)))
        return FILE_TYPE;
    for (uint32_t i = 0; i < n->n_in && !any; i++)
        any = n->in[i].value && is_half_value(s->user, n->in[i].value);
    if (!any)
        return FILE_TYPE;
    if (n->op->half == SN_HALF_IN_F32)
        return WIDE;
    /* Rows that are picked from a table of constants are converted, not the table. */
    if (n->op->half == SN_HALF_MOVED && !(n->in[0].value && sn_value_is_const(n->in[0].value)))
        return SN_FORM_ELASTIC;
    return FILE_TYPE;
}

static sn_port_form input(const sn_form_stage *s, const sn_node *n, uint32_t i)
{
    if (sn_forms_signature(s, n) == FILE_TYPE || !is_half_value(s->user, n->in[i].value))
        return SN_PORT_NATIVE;
    return stays_narrow(n, i) ? SN_PORT_ANY : SN_PORT_SAME;
}

static sn_port_form output(const sn_form_stage *s, const sn_node *n, uint32_t o)
{
    return n->out[o] && is_half_value(s->user, n->out[o]) ? SN_PORT_SAME : SN_PORT_NATIVE;
}

static uint32_t weight(const sn_value *v)
{
    (void)v;
    return 1;
}

static sonde_status mark(sn_form_stage *s, sn_value *v, const sn_value *of, uint8_t label)
{
    const types *t = s->user;
    const sn_dtype original = (sn_dtype)t->original[of->id];
    v->fact.type.dtype = label == WIDE ? SONDE_DTYPE_F32 : original;
    v->f16_in_file = label == WIDE && original == SONDE_DTYPE_F16;
    return SONDE_OK;
}

static sn_form_border border(const sn_form_stage *s, const sn_value *to)
{
    (void)s;
    return (sn_form_border){.domain = "",
                            .op_type = "Cast",
                            .opset = 13,
                            .attribute = "to",
                            .value = to->fact.type.dtype,
                            .shown_type = "[Convert]"};
}

/* Converted once. */
static sonde_status constant(sn_form_stage *s, const sn_node *n, uint32_t i, uint8_t label,
                             sn_value **out)
{
    const sn_value *v = n->in[i].value;
    if (*out || label != WIDE || !is_half(v->fact.data->dtype) || !sn_tensor_is_plain(v->fact.data))
        return SONDE_OK;
    return sn_pass_widen(s->g, s->env, v, out);
}

/* Weights that stayed as they are: the node may read them beside f32. */
static sonde_status done(sn_form_stage *s, sn_node *n)
{
    for (uint32_t i = 0; i < n->n_in && sn_forms_signature(s, n) == WIDE; i++)
        n->narrow_weights |= n->in[i].value && is_half(n->in[i].value->fact.type.dtype);
    return SONDE_OK;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_arena scratch;
    sn_arena_init(&scratch, g->alloc);
    types t = {.original = SN_NEW_N(&scratch, uint8_t, g->values.n + 1), .n_values = g->values.n};
    sn_form_stage s = {.g = g,
                       .env = env,
                       .label_names = label_names,
                       .user = &t,
                       .signature = signature,
                       .input = input,
                       .output = output,
                       .weight = weight,
                       .mark = mark,
                       .constant = constant,
                       .border = border,
                       .done = done};
    sonde_status st = SONDE_OK;
    bool any = false;
    for (size_t i = 0; t.original && i < t.n_values; i++) {
        const sn_value *v = g->values.data[i];
        t.original[i] = v ? (uint8_t)v->fact.type.dtype : 0;
        any |= is_half((sn_dtype)t.original[i]);
    }
    if (!t.original)
        st = sn_fail_memory(env->err, t.n_values);
    else if (any)
        st = sn_forms_solve(&s);
    sn_arena_free(&scratch);
    *changes += s.changes;
    return st;
}

const sn_pass sn_pass_compute_types = {
    .name = "compute-types",
    .summary = "keeps values f32 between steps that compute 16-bit floats in f32",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
