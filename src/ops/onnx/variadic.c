/* SPDX-License-Identifier: Apache-2.0 */
/* Min, Max, Sum and Mean over any number of broadcast inputs: the two-operand loop, folded from the
 * left into the output. */
#include <string.h>

#include "ops/shared/elementwise.h"
#include "ops/shared/layouts.h"

typedef struct variadic_params {
    sn_binary op;
    bool mean;
} variadic_params;

typedef struct variadic_bound {
    sn_elt elt, divide;
    sn_bcast first;  /* inputs 0 and 1 into the output */
    sn_bcast single; /* the output divided by one number */
    sn_bcast *next;  /* output and input k into the output; n_in - 2 of them */
    size_t bytes;    /* of the output */
    union {
        float f32;
        double f64;
        uint16_t half;
    } count;
} variadic_bound;

static sonde_status prepare_variadic(sn_prep *p)
{
    variadic_params *v = p->params;
    const char *name = p->node->op_type;
    v->mean = strcmp(name, "Mean") == 0;
    v->op = strcmp(name, "Min") == 0   ? SN_BINARY_MIN
            : strcmp(name, "Max") == 0 ? SN_BINARY_MAX
                                       : SN_BINARY_ADD;
    for (uint32_t i = 0; i < p->node->n_formal_in; i++)
        if (!p->node->in[i].value)
            return sn_prep_fail(p, "input %u is missing", i);
    return SONDE_OK;
}

static sn_dim int_value(int op, sn_dim a, sn_dim b)
{
    if (sn_dim_same(a, b) && op != SN_BINARY_ADD)
        return a;
    if (!sn_dim_known(a) || !sn_dim_known(b))
        return SN_DIM_UNKNOWN;
    return op == SN_BINARY_ADD ? sn_dim_add(a, b) : (a < b) == (op == SN_BINARY_MIN) ? a : b;
}

static sonde_status infer_variadic(sn_infer *c)
{
    const variadic_params *v = c->params;
    SN_TRY(sn_infer_elementwise(c, 0, SONDE_DTYPE_UNDEFINED));
    return c->n_in == 2 && !v->mean ? sn_infer_ints_2(c, int_value, (int)v->op) : SONDE_OK;
}

static sonde_status bind_variadic(sn_bind *b)
{
    const variadic_params *v = b->params;
    variadic_bound *k = SN_NEW(b->arena, variadic_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    const sn_type *y = &b->out[0].type;
    if (!sn_binary_get(&k->elt, v->op, y->dtype, b->cpu_flags) ||
        !sn_binary_get(&k->divide, SN_BINARY_DIV, y->dtype, b->cpu_flags))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(y->dtype));
    k->bytes = sn_fact_elems(&b->out[0]) * k->elt.out_bytes;
    b->bound = k;
    b->kernel = k->elt.name;
    size_t total = sn_fact_elems(&b->out[0]);
    b->flops = (uint64_t)total * (b->n_in - (v->mean ? 0 : 1));
    if (sn_fact_block(&b->out[0])) { /* all inputs alike: one flat run each */
        sn_bcast_flat(&k->first, total, 2);
    } else if (b->n_in >= 2) {
        const int64_t *dims[2] = {b->in[0]->type.dims, b->in[1]->type.dims};
        const int ranks[2] = {b->in[0]->type.rank, b->in[1]->type.rank};
        sn_bcast_plan(&k->first, y->dims, y->rank, 2, dims, ranks);
    }
    uint32_t more = b->n_in > 2 ? b->n_in - 2 : 0;
    k->next = SN_NEW_N(b->arena, sn_bcast, more + 1);
    if (!k->next)
        return sn_fail_memory(b->err, sizeof(sn_bcast) * more);
    for (uint32_t i = 0; i < more; i++) {
        const sn_type *t = &b->in[i + 2]->type;
        const int64_t *dims[2] = {y->dims, t->dims};
        const int ranks[2] = {y->rank, t->rank};
        if (sn_fact_block(&b->out[0]))
            sn_bcast_flat(&k->next[i], total, 2);
        else
            sn_bcast_plan(&k->next[i], y->dims, y->rank, 2, dims, ranks);
    }
    sn_bcast_flat(&k->single, total, 1);
    if (y->dtype == SONDE_DTYPE_F64)
        k->count.f64 = (double)b->n_in;
    else if (y->dtype == SONDE_DTYPE_F16)
        k->count.half = sn_f32_to_f16((float)b->n_in);
    else if (y->dtype == SONDE_DTYPE_BF16)
        k->count.half = sn_f32_to_bf16((float)b->n_in);
    else
        k->count.f32 = (float)b->n_in;
    return SONDE_OK;
}

static sonde_status run_variadic(const sn_step *s, sn_frame *f)
{
    const variadic_bound *k = s->bound;
    const variadic_params *v = s->params;
    void *y = sn_out(s, f, 0)->data;
    const void *x = sn_in(s, f, 0)->data;
    if (s->n_in == 1) {
        if (x != y && k->bytes > 0)
            memcpy(y, x, k->bytes);
        return SONDE_OK;
    }
    sn_binary_run(&k->elt, &k->first, y, x, sn_in(s, f, 1)->data, NULL, f->pool);
    for (uint32_t i = 2; i < s->n_in; i++)
        sn_binary_run(&k->elt, &k->next[i - 2], y, y, sn_in(s, f, i)->data, NULL, f->pool);
    if (v->mean)
        sn_binary_run(&k->divide, &k->single, y, y, &k->count, NULL, f->pool);
    return SONDE_OK;
}

#define VARIADIC(symbol, NAME, TYPES)                                                              \
    const sn_op sn_op_##symbol[] = {                                                               \
        {SN_ELT_HEAD(NAME, 1, 0, 1, -1), .flags = SN_OP_INPLACE0 | SN_OP_ELEMENTWISE,              \
         .params_size = sizeof(variadic_params), .prepare = prepare_variadic,                      \
         .infer = infer_variadic, .bind = bind_variadic, .run = run_variadic,                      \
         .half = SN_HALF_IN_F32, .in_blocks = sn_layout_elementwise, .types = TYPES},              \
        {.name = NULL}};
VARIADIC(min, "Min", SN_FLOATS " " SN_INTS)
VARIADIC(max, "Max", SN_FLOATS " " SN_INTS)
VARIADIC(sum, "Sum", SN_FLOATS)
VARIADIC(mean, "Mean", SN_FLOATS)
