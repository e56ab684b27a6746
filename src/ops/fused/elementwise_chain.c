/* SPDX-License-Identifier: Apache-2.0 */
/* sonde.Elementwise: a run of elementwise f32 functions that a pass found. Input 0 goes through all
 * of them and gives the output its shape; the other inputs are second operands, each of one
 * element, of the output's shape, or of a run of its dims.
 *
 *   functions  their names as compute/eltwise.h has them
 *   operands   per function: the input that is its other operand; negative: -i, and the running
 *              result is the second one; 0: the function takes one operand
 *   params     two per function */
#include <string.h>

#include "compute/chain.h"
#include "ops/shared/elementwise.h"

typedef struct chain_function {
    bool binary, swapped;
    int op; /* sn_unary or sn_binary */
    uint32_t input;
    float params[2];
} chain_function;

typedef struct chain_params {
    chain_function *functions;
    uint32_t n;
} chain_params;

static bool is_text(const char *name, const sonde_string *text)
{
    return strlen(name) == text->size && memcmp(name, text->data, text->size) == 0;
}

/* The function of that name; -1: there is none. */
static int find(bool binary, const sonde_string *text)
{
    const int n = binary ? (int)SN_BINARY_COUNT : (int)SN_UNARY_COUNT;
    for (int i = 0; i < n; i++)
        if (is_text(binary ? sn_binary_text((sn_binary)i) : sn_unary_text((sn_unary)i), text))
            return i;
    return -1;
}

static sonde_status prepare(sn_prep *p)
{
    chain_params *c = p->params;
    const sn_attr *names = sn_node_attr(p->node, "functions");
    const int64_t *operands;
    const float *params;
    size_t n_operands, n_params;
    SN_TRY(sn_prep_ints(p, "operands", &operands, &n_operands));
    SN_TRY(sn_prep_floats(p, "params", &params, &n_params));
    if (!names || names->kind != SN_ATTR_STRINGS || names->n < 1 || names->n > UINT32_MAX / 2 ||
        n_operands != names->n || n_params != 2 * names->n)
        return sn_prep_fail(p, "the lists of functions, operands and params do not fit");
    c->n = (uint32_t)names->n;
    c->functions = SN_NEW_N(p->arena, chain_function, names->n);
    if (!c->functions)
        return sn_fail_memory(p->err, names->n * sizeof *c->functions);
    for (uint32_t i = 0; i < c->n; i++) {
        chain_function *f = &c->functions[i];
        const int64_t operand = operands[i];
        f->binary = operand != 0;
        f->swapped = operand < 0;
        f->op = find(f->binary, &names->strings[i]);
        if (f->op < 0 || operand <= -(int64_t)p->node->n_in || operand >= (int64_t)p->node->n_in)
            return sn_prep_fail(p, "function %u is not known, or its operand is missing", i);
        f->input = (uint32_t)(operand < 0 ? -operand : operand);
        memcpy(f->params, params + 2 * i, sizeof f->params);
    }
    return SONDE_OK;
}

static sonde_status infer(sn_infer *c)
{
    for (uint32_t i = 0; i < c->n_in; i++)
        if (!sn_infer_has(c, i) ||
            (c->in[i]->type.dtype && c->in[i]->type.dtype != SONDE_DTYPE_F32))
            return sn_infer_fail(c, "input %u is required and must be f32", i);
    return sn_infer_same(c, 0, 0);
}

typedef struct chain_bound {
    sn_chain chain;
    sn_piece operands; /* pointers to the inputs */
} chain_bound;

static sonde_status bind(sn_bind *b)
{
    const chain_params *p = b->params;
    const sn_type *y = &b->out[0].type;
    chain_bound *k = SN_NEW(b->arena, chain_bound);
    sn_chain_link *links = SN_NEW_N(b->arena, sn_chain_link, p->n);
    int64_t total;
    if (!k || !links)
        return sn_fail_memory(b->err, p->n * sizeof *links);
    sn_chain *c = &k->chain;
    c->links = links;
    if (!sn_type_count(y, &total))
        return sn_bind_fail(b, SONDE_LIMIT, "the output is too large");
    c->n = p->n;
    c->total = (size_t)total;
    for (uint32_t i = 0; i < p->n; i++) {
        const chain_function *f = &p->functions[i];
        sn_chain_link *l = &c->links[i];
        bool known = f->binary
                         ? sn_binary_get(&l->elt, (sn_binary)f->op, SONDE_DTYPE_F32, b->cpu_flags)
                         : sn_unary_get(&l->elt, (sn_unary)f->op, SONDE_DTYPE_F32, b->cpu_flags);
        if (!known || l->elt.is_bool)
            return sn_bind_fail(b, SONDE_UNSUPPORTED, "function %u is not one of f32", i);
        const sn_type *t = &b->in[f->input]->type;
        if (f->binary && !sn_chain_lies(&l->lies, y->dims, y->rank, t->dims, t->rank))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "input %u does not fit the output",
                                f->input);
        l->binary = f->binary;
        l->swapped = f->swapped;
        l->operand = f->input;
        memcpy(l->params, f->params, sizeof l->params);
        c->cost += l->elt.cost;
        b->flops += (uint64_t)total * (f->binary ? 1 : l->elt.cost); /* as the nodes count them */
    }
    k->operands = sn_carve(&b->workspace, b->n_in, sizeof(float *));
    b->bound = k;
    b->kernel = "f32_chain";
    return SONDE_OK;
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const chain_bound *k = s->bound;
    const float **operands = sn_piece_ptr(f, k->operands);
    for (uint32_t i = 0; i < s->n_in; i++)
        operands[i] = sn_in(s, f, i)->data;
    sn_chain_run(&k->chain, sn_out(s, f, 0)->data, operands[0], operands, f->pool);
    return SONDE_OK;
}

const sn_op sn_op_chain[] = {{.name = "Elementwise",
                              .domain = "sonde",
                              .since = 1,
                              .min_in = 1,
                              .max_in = -1,
                              .min_out = 1,
                              .max_out = 1,
                              .flags = SN_OP_INPLACE0,
                              .params_size = sizeof(chain_params),
                              .prepare = prepare,
                              .infer = infer,
                              .bind = bind,
                              .run = run,
                              .types = "f32"},
                             {.name = NULL}};
