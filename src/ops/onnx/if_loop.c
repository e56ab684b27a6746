/* SPDX-License-Identifier: Apache-2.0 */
/* If and Loop. Their bodies run through the frame's hook; what a body returns is owned, so values
 * go round a loop by moving, never by copying. */
#include <string.h>

#include "ops/shared/body.h"

static sonde_status scalar_bool(const sn_step *s, sn_frame *f, const sn_slot *x, const char *what,
                                bool *out)
{
    if (x->kind != SN_KIND_TENSOR || x->t.dtype != SONDE_DTYPE_BOOL || sn_tensor_count(&x->t) != 1)
        return sn_run_fail(s, f, "%s is not a single bool", what);
    *out = *(const uint8_t *)x->t.data != 0;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ If */
typedef struct if_params {
    sn_body_ref branch[2]; /* else, then */
} if_params;

static sonde_status prepare_if(sn_prep *p)
{
    if_params *r = p->params;
    SN_TRY(sn_body_find(p, "else_branch", &r->branch[0]));
    SN_TRY(sn_body_find(p, "then_branch", &r->branch[1]));
    for (int i = 0; i < 2; i++)
        if (r->branch[i].graph->outputs.n != p->node->n_out ||
            r->branch[i].graph->n_formal_inputs != 0)
            return sn_prep_fail(p, "a branch has %u inputs and %zu outputs, expected none and %u",
                                r->branch[i].graph->n_formal_inputs, r->branch[i].graph->outputs.n,
                                p->node->n_out);
    return SONDE_OK;
}

static sonde_status infer_if(sn_infer *c)
{
    const if_params *r = c->params;
    const sn_dim *v;
    int64_t n;
    SN_TRY(sn_infer_ints(c, 0, &v, &n));
    int taken = v && n == 1 && sn_dim_known(v[0]) ? v[0] != 0 : -1;
    /* A branch that is never taken may not even be valid for these shapes: it is left alone. */
    for (int i = 0; i < 2; i++)
        if (taken < 0 || taken == i)
            SN_TRY(sn_infer_body(c, r->branch[i].graph, NULL, 0));
    for (uint32_t o = 0; o < c->n_out; o++) {
        const sn_type *a = &r->branch[taken < 0 ? 0 : taken].graph->outputs.data[o]->fact.type;
        const sn_type *b = &r->branch[taken < 0 ? 1 : taken].graph->outputs.data[o]->fact.type;
        if (!sn_body_join(a, b, &c->out[o].type,
                          c->arena)) /* two kinds of value: known when it runs */
            c->out[o].type = (sn_type){.kind = SN_KIND_NONE, .rank = -1};
    }
    return SONDE_OK;
}

static sonde_status run_if(const sn_step *s, sn_frame *f)
{
    const if_params *r = s->params;
    bool taken = false;
    SN_TRY(scalar_bool(s, f, sn_in_slot(s, f, 0), "the condition", &taken));
    sn_slot small[4], *out = small;
    size_t bytes = s->n_out * sizeof *out;
    if (s->n_out > 4 && !(out = sn_alloc(f->alloc, bytes)))
        return sn_fail_memory(f->err, bytes);
    memset(out, 0, bytes);
    sonde_status st = sn_body_run(s, f, &r->branch[taken], NULL, 0, out, s->n_out);
    for (uint32_t o = 0; o < s->n_out; o++) {
        if (st == SONDE_OK && sn_wants(s, o))
            sn_body_move(sn_out_slot(s, f, o), &out[o]);
        sn_slot_clear(&out[o]);
    }
    if (out != small)
        sn_free(f->alloc, out, bytes);
    return st;
}

const sn_op sn_op_if[] = {{SN_OP_HEAD("If", 1, 0, 1, 1, 1, -1),
                           .flags = SN_OP_CONTROL | SN_OP_NONTENSOR,
                           .params_size = sizeof(if_params), .prepare = prepare_if,
                           .infer = infer_if, .run = run_if, .types = "bool"},
                          {.name = NULL}};

/* ------------------------------------------------------------------ Loop */
typedef struct loop_params {
    sn_body_ref body;
    uint32_t n_carried, n_scan;
} loop_params;

static sonde_status prepare_loop(sn_prep *p)
{
    loop_params *r = p->params;
    SN_TRY(sn_body_find(p, "body", &r->body));
    r->n_carried = p->node->n_formal_in > 2 ? p->node->n_formal_in - 2 : 0;
    size_t outputs = r->body.graph->outputs.n;
    if (r->body.graph->n_formal_inputs != 2 + r->n_carried || outputs < 1 + (size_t)r->n_carried)
        return sn_prep_fail(
            p,
            "its body has %u inputs and %zu outputs, which does not match %u loop-carried values",
            r->body.graph->n_formal_inputs, outputs, r->n_carried);
    r->n_scan = (uint32_t)(outputs - 1 - r->n_carried);
    if (p->node->n_out > r->n_carried + r->n_scan)
        return sn_prep_fail(p, "the node has %u outputs, but its body has %u", p->node->n_out,
                            r->n_carried + r->n_scan);
    return SONDE_OK;
}

static bool fact_is_true(const sn_fact *f)
{
    if (f->ints && f->n_ints == 1)
        return f->ints[0] == 1;
    return f->data && f->data->dtype == SONDE_DTYPE_BOOL && sn_tensor_count(f->data) == 1 &&
           *(const uint8_t *)f->data->data != 0;
}

/* How often the body runs, when nothing but the count can stop it. */
static sonde_status known_trips(sn_infer *c, const loop_params *r, sn_dim *trips)
{
    const sn_dim *v;
    int64_t n;
    *trips = SN_DIM_UNKNOWN;
    if (sn_infer_has(c, 1) && !fact_is_true(c->in[1]))
        return SONDE_OK;
    if (!fact_is_true(&r->body.graph->outputs.data[0]->fact))
        return SONDE_OK;
    SN_TRY(sn_infer_ints(c, 0, &v, &n));
    if (v && n == 1)
        *trips = sn_dim_known(v[0]) && v[0] < 0 ? 0 : v[0];
    return SONDE_OK;
}

static sonde_status infer_loop(sn_infer *c)
{
    static const sn_dim yes = 1, no_dims[1];
    const loop_params *r = c->params;
    uint32_t n = 2 + r->n_carried;
    sn_fact *formal = SN_NEW_N(c->arena, sn_fact, n);
    if (!formal)
        return sn_fail_memory(c->err, n * sizeof *formal);
    formal[0].type = (sn_type){.kind = SN_KIND_TENSOR, .dtype = SONDE_DTYPE_I64, .dims = no_dims};
    /* The body only ever runs while the condition holds. */
    formal[1] =
        (sn_fact){.type = {.kind = SN_KIND_TENSOR, .dtype = SONDE_DTYPE_BOOL, .dims = no_dims},
                  .ints = &yes,
                  .n_ints = 1};
    for (uint32_t i = 0; i < r->n_carried; i++)
        if (sn_infer_has(c, 2 + i))
            formal[2 + i].type = c->in[2 + i]->type;
    SN_TRY(sn_body_fixpoint(c, &r->body, formal, n, 2, r->n_carried, 1));
    sn_dim trips;
    SN_TRY(known_trips(c, r, &trips));
    for (uint32_t o = 0; o < c->n_out; o++) {
        if (o < r->n_carried)
            c->out[o].type = formal[2 + o].type;
        else
            SN_TRY(sn_body_stacked(c, o, &r->body.graph->outputs.data[1 + o]->fact.type, trips, 0));
    }
    return SONDE_OK;
}

/* Everything one run of a loop holds, in one block. */
typedef struct loop_state {
    const loop_params *r;
    sn_slot *in;  /* 2 + carried: number, condition, carried values; borrowed */
    sn_slot *now; /* carried: what the last iteration made; owned */
    sn_slot *out; /* 1 + carried + scan */
    sn_stack *stacks;
    void *block;
    size_t bytes;
} loop_state;

static sonde_status loop_begin(sn_frame *f, loop_state *l)
{
    size_t n_slots = 3 + 3 * (size_t)l->r->n_carried + l->r->n_scan;
    l->bytes = n_slots * sizeof(sn_slot) + l->r->n_scan * sizeof(sn_stack);
    l->block = sn_alloc_zero(f->alloc, l->bytes);
    if (!l->block)
        return sn_fail_memory(f->err, l->bytes);
    l->in = l->block;
    l->now = l->in + 2 + l->r->n_carried;
    l->out = l->now + l->r->n_carried;
    l->stacks = (sn_stack *)(void *)(l->out + 1 + l->r->n_carried + l->r->n_scan);
    return SONDE_OK;
}

static void loop_end(sn_frame *f, loop_state *l)
{
    if (!l->block)
        return;
    sn_body_clear(l->now, l->r->n_carried);
    sn_body_clear(l->out, 1 + l->r->n_carried + l->r->n_scan);
    for (uint32_t i = 0; i < l->r->n_scan; i++)
        sn_stack_free(f, &l->stacks[i]);
    sn_free(f->alloc, l->block, l->bytes);
}

/* A borrowed scalar. */
static sn_slot scalar_slot(sn_dtype dtype, void *data)
{
    return (sn_slot){.kind = SN_KIND_TENSOR,
                     .t = {.dtype = dtype, .data = data, .bytes = sn_dtype_bytes(dtype)}};
}

/* A body that declares an optional may be handed, or return, the bare value: it is wrapped. */
static sonde_status wrap_optional(sn_frame *f, const sn_graph *body, uint32_t i, const sn_slot *x,
                                  sn_slot *out)
{
    if (body->inputs.data[i]->fact.type.kind != SN_KIND_OPTIONAL || x->kind == SN_KIND_OPTIONAL ||
        x->kind == SN_KIND_NONE)
        return SONDE_OK;
    sn_slot made = {.kind = SN_KIND_OPTIONAL, .list = sn_list_new(f->alloc, 1)};
    if (!made.list)
        return sn_fail_memory(f->err, sizeof *made.list);
    made.list->elem_kind = x->kind;
    sonde_status st = sn_list_push(made.list, x, f->err);
    if (st != SONDE_OK) {
        sn_slot_clear(&made);
        return st;
    }
    sn_body_move(out, &made);
    return SONDE_OK;
}

static sonde_status loop_iterate(const sn_step *s, sn_frame *f, loop_state *l, int64_t limit,
                                 bool go)
{
    uint32_t carried = l->r->n_carried, n_out = 1 + carried + l->r->n_scan;
    int64_t number = 0;
    uint8_t yes = 1;
    l->in[0] = scalar_slot(SONDE_DTYPE_I64, &number);
    l->in[1] = scalar_slot(SONDE_DTYPE_BOOL, &yes);
    for (uint32_t i = 0; i < carried; i++)
        if (sn_has(s, 2 + i)) {
            SN_TRY(wrap_optional(f, l->r->body.graph, 2 + i, sn_in_slot(s, f, 2 + i), &l->now[i]));
            l->in[2 + i] = l->now[i].kind == SN_KIND_NONE ? *sn_in_slot(s, f, 2 + i) : l->now[i];
        }
    for (; go && number < limit; number++) {
        SN_TRY(sn_body_cancelled(s, f));
        SN_TRY(sn_body_run(s, f, &l->r->body, l->in, 2 + carried, l->out, n_out));
        SN_TRY(scalar_bool(s, f, &l->out[0], "the condition returned by its body", &go));
        for (uint32_t i = 0; i < carried; i++) {
            sn_body_move(&l->now[i], &l->out[1 + i]);
            l->in[2 + i] = l->now[i];
            if (go && number + 1 < limit) {
                SN_TRY(wrap_optional(f, l->r->body.graph, 2 + i, &l->in[2 + i], &l->now[i]));
                l->in[2 + i] = l->now[i];
            }
        }
        for (uint32_t i = 0; i < l->r->n_scan; i++)
            SN_TRY(sn_stack_push(s, f, &l->stacks[i], &l->out[1 + carried + i],
                                 limit == INT64_MAX ? 0 : limit));
    }
    for (uint32_t o = 0; o < s->n_out; o++) {
        if (!sn_wants(s, o))
            continue;
        sn_slot *y = sn_out_slot(s, f, o);
        if (o >= carried)
            SN_TRY(sn_stack_finish(s, f, &l->stacks[o - carried],
                                   &l->r->body.graph->outputs.data[1 + o]->fact.type, y));
        else if (number > 0)
            sn_body_move(y, &l->now[o]);
        else
            SN_TRY(sn_slot_share(y, &l->in[2 + o], true, f->alloc, f->err));
    }
    return SONDE_OK;
}

static sonde_status run_loop(const sn_step *s, sn_frame *f)
{
    loop_state l = {.r = s->params};
    int64_t limit = INT64_MAX;
    bool go = true;
    if (sn_has(s, 0) && sn_in_slot(s, f, 0)->kind == SN_KIND_TENSOR) {
        const sn_tensor *m = sn_in(s, f, 0);
        if (m->dtype != SONDE_DTYPE_I64 || sn_tensor_count(m) != 1)
            return sn_run_fail(s, f, "the trip count is not a single i64");
        limit = *(const int64_t *)m->data;
    }
    if (sn_has(s, 1) && sn_in_slot(s, f, 1)->kind == SN_KIND_TENSOR)
        SN_TRY(scalar_bool(s, f, sn_in_slot(s, f, 1), "the condition", &go));
    sonde_status st = loop_begin(f, &l);
    if (st == SONDE_OK)
        st = loop_iterate(s, f, &l, limit, go);
    loop_end(f, &l);
    return st;
}

const sn_op sn_op_loop[] = {{SN_OP_HEAD("Loop", 1, 0, 0, -1, 1, -1),
                             .flags = SN_OP_CONTROL | SN_OP_NONTENSOR,
                             .params_size = sizeof(loop_params), .prepare = prepare_loop,
                             .infer = infer_loop, .run = run_loop, .types = SN_ALL_TYPES},
                            {.name = NULL}};
