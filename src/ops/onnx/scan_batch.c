/* SPDX-License-Identifier: Apache-2.0 */
/* Scan of opset 8: every input has a batch axis first, sequences may differ in length, and missing
 * steps are zeros. Its results are rows in batch-major order, so stacking them is all it takes. */
#include <string.h>

#include "ops/onnx/scan.h"

sonde_status sn_scan_batch_prepare(sn_prep *p)
{
    sn_scan_params *r = p->params;
    int64_t n;
    size_t n_directions;
    SN_TRY(sn_body_find(p, "body", &r->body));
    SN_TRY(sn_body_need_inputs(p, 1)); /* the lengths may be left out */
    SN_TRY(sn_prep_int(p, "num_scan_inputs", 0, &n));
    SN_TRY(sn_prep_ints(p, "directions", &r->in_directions, &n_directions));
    uint32_t given =
        p->node->n_formal_in > 0 ? p->node->n_formal_in - 1 : 0; /* without the lengths */
    if (n < 1 || n > (int64_t)given || (r->in_directions && n_directions != (size_t)n))
        return sn_prep_fail(p, "attributes 'num_scan_inputs' and 'directions' do not fit %u inputs",
                            given);
    r->n_in = (uint32_t)n;
    r->n_state = given - r->n_in;
    if (r->body.graph->n_formal_inputs != given || r->body.graph->outputs.n != p->node->n_out ||
        p->node->n_out < r->n_state)
        return sn_prep_fail(p, "its body has %u inputs and %zu outputs, but the node has %u and %u",
                            r->body.graph->n_formal_inputs, r->body.graph->outputs.n, given,
                            p->node->n_out);
    r->n_out = p->node->n_out - r->n_state;
    return SONDE_OK;
}

sonde_status sn_scan_batch_infer(sn_infer *c)
{
    const sn_scan_params *r = c->params;
    uint32_t n = r->n_state + r->n_in;
    sn_dim batch = SN_DIM_UNKNOWN, steps = SN_DIM_UNKNOWN;
    sn_fact *formal = SN_NEW_N(c->arena, sn_fact, n);
    if (!formal)
        return sn_fail_memory(c->err, n * sizeof *formal);
    for (uint32_t i = 0; i < n; i++) {
        sn_input_type x;
        int drop = i < r->n_state ? 1 : 2;
        SN_TRY(sn_infer_input_type(c, 1 + i, &x));
        formal[i].type = (sn_type){.kind = SN_KIND_TENSOR, .dtype = x.dtype, .rank = -1};
        if (x.rank < 0)
            continue;
        if (x.rank < drop)
            return sn_infer_fail(c, "input %u has rank %d, expected at least %d", 1 + i, x.rank,
                                 drop);
        batch = sn_dim_merge(batch, x.dims[0]);
        if (drop == 2)
            steps = sn_dim_merge(steps, x.dims[1]);
        formal[i].type.rank = x.rank - drop;
        formal[i].type.dims = x.dims + drop;
    }
    SN_TRY(sn_body_fixpoint(c, &r->body, formal, n, 0, r->n_state, 0));
    for (uint32_t o = 0; o < c->n_out; o++) {
        bool state = o < r->n_state;
        const sn_type *t = state ? &formal[o].type : &r->body.graph->outputs.data[o]->fact.type;
        sn_dim dims[SN_MAX_RANK] = {batch, steps};
        int lead = state ? 1 : 2, rank = t->kind == SN_KIND_TENSOR ? t->rank : -1;
        if (rank + lead > SN_MAX_RANK)
            return sn_infer_fail(c, "the rank would exceed %d", SN_MAX_RANK);
        for (int i = 0; i < rank; i++)
            dims[lead + i] = t->dims[i];
        SN_TRY(sn_infer_bounded(c, o, t->dtype, dims, rank < 0 ? -1 : rank + lead));
    }
    return SONDE_OK;
}

/* Row `at` of a tensor seen without its first `drop` dims. */
static sn_slot row_view(const sn_tensor *x, int drop, int64_t at)
{
    sn_slot v = {.kind = SN_KIND_TENSOR, .t = {.dtype = x->dtype, .rank = x->rank - drop}};
    memcpy(v.t.dims, x->dims + drop, (size_t)v.t.rank * sizeof(int64_t));
    v.t.bytes = (size_t)sn_tensor_count(&v.t) * sn_dtype_bytes(x->dtype);
    v.t.data = (char *)x->data + (size_t)at * v.t.bytes;
    return v;
}

typedef struct batch_state {
    const sn_scan_params *r;
    int64_t batch, steps;
    sn_slot *in, *now, *out;
    sn_stack *stacks; /* states, then scanned outputs */
} batch_state;

static sonde_status run_sequence(const sn_step *s, sn_frame *f, batch_state *l, int64_t b,
                                 int64_t length)
{
    const sn_scan_params *r = l->r;
    uint32_t n_in = r->n_state + r->n_in, n_out = r->n_state + r->n_out;
    for (uint32_t i = 0; i < r->n_state; i++) {
        sn_slot first = row_view(sn_in(s, f, 1 + i), 1, b);
        SN_TRY(sn_slot_share(&l->now[i], &first, true, f->alloc, f->err));
    }
    for (int64_t t = 0; t < length; t++) {
        SN_TRY(sn_body_cancelled(s, f));
        for (uint32_t i = 0; i < r->n_state; i++)
            l->in[i] = l->now[i];
        for (uint32_t i = 0; i < r->n_in; i++) {
            bool back = r->in_directions && r->in_directions[i];
            l->in[r->n_state + i] = row_view(sn_in(s, f, 1 + r->n_state + i), 2,
                                             b * l->steps + (back ? length - 1 - t : t));
        }
        SN_TRY(sn_body_run(s, f, &r->body, l->in, n_in, l->out, n_out));
        for (uint32_t o = 0; o < n_out; o++) {
            if (o < r->n_state)
                sn_body_move(&l->now[o], &l->out[o]);
            else
                SN_TRY(sn_stack_push(s, f, &l->stacks[o], &l->out[o], l->batch * l->steps));
        }
    }
    for (uint32_t o = 0; o < r->n_state; o++)
        SN_TRY(sn_stack_push(s, f, &l->stacks[o], &l->now[o], l->batch));
    for (uint32_t o = r->n_state; o < n_out; o++)
        for (int64_t t = length; t < l->steps; t++) {
            const sn_tensor *row = &l->stacks[o].row;
            if (l->stacks[o].n == 0)
                return sn_run_fail(
                    s, f, "the first sequence is empty: the shape of its outputs is not known");
            SN_TRY(
                sn_slot_new_tensor(&l->out[o], row->dtype, row->dims, row->rank, f->alloc, f->err));
            if (row->dtype != SONDE_DTYPE_STRING && l->out[o].t.bytes)
                memset(l->out[o].t.data, 0, l->out[o].t.bytes);
            SN_TRY(sn_stack_push(s, f, &l->stacks[o], &l->out[o], 0));
        }
    return SONDE_OK;
}

static sonde_status run_all(const sn_step *s, sn_frame *f, batch_state *l)
{
    const sn_scan_params *r = l->r;
    for (int64_t b = 0; b < l->batch; b++) {
        int64_t length = l->steps;
        if (sn_has(s, 0) && sn_in_slot(s, f, 0)->kind == SN_KIND_TENSOR) {
            const sn_tensor *lengths = sn_in(s, f, 0);
            length = b < sn_tensor_count(lengths) ? sn_tensor_int(lengths, b) : -1;
        }
        if (length < 0 || length > l->steps)
            return sn_run_fail(s, f, "the length of sequence %lld is invalid", (long long)b);
        SN_TRY(run_sequence(s, f, l, b, length));
    }
    for (uint32_t o = 0; o < r->n_state + r->n_out; o++) {
        sn_slot *y = &l->out[o];
        SN_TRY(sn_stack_finish(s, f, &l->stacks[o], &r->body.graph->outputs.data[o]->fact.type, y));
        if (o >= r->n_state) {
            if (y->t.rank == SN_MAX_RANK)
                return sn_run_fail(s, f, "the rank would exceed %d", SN_MAX_RANK);
            memmove(y->t.dims + 2, y->t.dims + 1, (size_t)(y->t.rank - 1) * sizeof(int64_t));
            y->t.dims[0] = l->batch;
            y->t.dims[1] = l->steps;
            y->t.rank++;
        }
        if (sn_wants(s, o))
            sn_body_move(sn_out_slot(s, f, o), y);
    }
    return SONDE_OK;
}

sonde_status sn_scan_batch_run(const sn_step *s, sn_frame *f)
{
    batch_state l = {.r = s->params, .batch = -1, .steps = -1};
    const sn_scan_params *r = l.r;
    uint32_t n_in = r->n_state + r->n_in, n_out = r->n_state + r->n_out;
    for (uint32_t i = 0; i < n_in; i++) {
        const sn_slot *x = sn_in_slot(s, f, 1 + i);
        bool scanned = i >= r->n_state;
        if (x->kind != SN_KIND_TENSOR || x->t.rank < (scanned ? 2 : 1) ||
            (l.batch >= 0 && x->t.dims[0] != l.batch) ||
            (scanned && l.steps >= 0 && x->t.dims[1] != l.steps))
            return sn_run_fail(s, f, "input %u does not have the batch and steps of the others",
                               1 + i);
        l.batch = x->t.dims[0];
        l.steps = scanned ? x->t.dims[1] : l.steps;
    }
    size_t bytes = ((size_t)n_in + r->n_state + n_out) * sizeof(sn_slot) + n_out * sizeof(sn_stack);
    void *block = sn_alloc_zero(f->alloc, bytes);
    if (!block)
        return sn_fail_memory(f->err, bytes);
    l.in = block;
    l.now = l.in + n_in;
    l.out = l.now + r->n_state;
    l.stacks = (sn_stack *)(void *)(l.out + n_out);
    sonde_status st = run_all(s, f, &l);
    sn_body_clear(l.now, r->n_state + n_out);
    for (uint32_t o = 0; o < n_out; o++)
        sn_stack_free(f, &l.stacks[o]);
    sn_free(f->alloc, block, bytes);
    return st;
}
