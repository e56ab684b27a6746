/* SPDX-License-Identifier: Apache-2.0 */
/* Memory spaces. A node that a device computes reads and makes values in the memory of the device,
 * a view lies where its source lies, and all else is on the host. Constants are no matter of steps:
 * they are brought to a device once, when they are packed.
 *
 * There is only the host so far, so nothing can differ and the pass has nothing to do. It stands
 * here because a place has to be known before types and layouts are chosen: what is good for the
 * CPU's kernels is not what a device wants. */
#include "passes/place.h"

static const sn_space_row spaces[] = {{.name = "host", .space = SN_SPACE_HOST}};

typedef struct places {
    const sn_space_row *rows;
    size_t n;
    const char *names[SN_FORM_LABELS];
} places;

/* Labels are numbers of rows. */
static uint8_t signature(const sn_form_stage *s, const sn_node *n)
{
    const places *p = s->user;
    if (!n->op || (n->op->flags & (SN_OP_CONTROL | SN_OP_NONTENSOR)))
        return 0;
    for (size_t k = 1; k < p->n; k++)
        if (p->rows[k].takes(n))
            return (uint8_t)k;
    return n->op->flags & SN_OP_VIEW ? SN_FORM_ELASTIC : 0;
}

static sn_port_form input(const sn_form_stage *s, const sn_node *n, uint32_t i)
{
    const uint8_t label = sn_forms_signature(s, n);
    if (!label || (label == SN_FORM_ELASTIC && i > 0)) /* the new shape is read on the host */
        return SN_PORT_NATIVE;
    return sn_value_is_const(n->in[i].value) ? SN_PORT_ANY : SN_PORT_SAME;
}

static sn_port_form output(const sn_form_stage *s, const sn_node *n, uint32_t o)
{
    (void)s;
    (void)n;
    (void)o;
    return SN_PORT_SAME;
}

static uint32_t weight(const sn_value *v)
{
    (void)v;
    return SN_COST_MOVE;
}

static sonde_status mark(sn_form_stage *s, sn_value *v, const sn_value *of, uint8_t label)
{
    const places *p = s->user;
    (void)of;
    v->fact.form.space = p->rows[label].space;
    return SONDE_OK;
}

static sn_form_border border(const sn_form_stage *s, const sn_value *to)
{
    const places *p = s->user;
    size_t k = 0;
    while (k + 1 < p->n && p->rows[k].space != to->fact.form.space)
        k++;
    return p->rows[k].copy;
}

sonde_status sn_place(sn_graph *g, sn_pass_env *env, const sn_space_row *rows, size_t n,
                      uint32_t *changes)
{
    places p = {.rows = rows, .n = n};
    for (size_t k = 0; k < n && k < SN_FORM_LABELS; k++)
        p.names[k] = rows[k].name;
    sn_form_stage s = {.g = g,
                       .env = env,
                       .label_names = p.names,
                       .user = &p,
                       .signature = signature,
                       .input = input,
                       .output = output,
                       .weight = weight,
                       .mark = mark,
                       .border = border};
    const sonde_status st = n > 1 ? sn_forms_solve(&s) : SONDE_OK;
    *changes += s.changes;
    return st;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    return sn_place(g, env, spaces, sizeof spaces / sizeof spaces[0], changes);
}

const sn_pass sn_pass_place = {
    .name = "place",
    .summary = "chooses the memory that values lie in: the host's, as long as there is no other",
    .run = run,
    .bodies = true,
};
