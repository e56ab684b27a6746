/* SPDX-License-Identifier: Apache-2.0 */
/* Scan and SequenceMap: a body applied to the slices of tensors, or to the elements of sequences.
 */
#include <string.h>

#include "ops/onnx/scan.h"

/* ------------------------------------------------------------------ Scan */
static sonde_status list_of(sn_prep *p, const char *name, uint32_t want, const int64_t **out)
{
    size_t n;
    SN_TRY(sn_prep_ints(p, name, out, &n));
    if (*out && n != want)
        return sn_prep_fail(p, "attribute '%s' has %zu entries, expected %u", name, n, want);
    return SONDE_OK;
}

static sonde_status prepare_scan(sn_prep *p)
{
    sn_scan_params *r = p->params;
    int64_t n;
    SN_TRY(sn_body_find(p, "body", &r->body));
    SN_TRY(sn_body_need_inputs(p, 0));
    SN_TRY(sn_prep_int(p, "num_scan_inputs", 0, &n));
    if (n < 1 || n > (int64_t)p->node->n_formal_in)
        return sn_prep_fail(p, "attribute 'num_scan_inputs' is %lld for %u inputs", (long long)n,
                            p->node->n_formal_in);
    r->n_in = (uint32_t)n;
    r->n_state = p->node->n_formal_in - r->n_in;
    if (r->body.graph->n_formal_inputs != p->node->n_formal_in ||
        r->body.graph->outputs.n != p->node->n_out || p->node->n_out < r->n_state)
        return sn_prep_fail(p, "its body has %u inputs and %zu outputs, but the node has %u and %u",
                            r->body.graph->n_formal_inputs, r->body.graph->outputs.n,
                            p->node->n_formal_in, p->node->n_out);
    r->n_out = p->node->n_out - r->n_state;
    SN_TRY(list_of(p, "scan_input_axes", r->n_in, &r->in_axes));
    SN_TRY(list_of(p, "scan_input_directions", r->n_in, &r->in_directions));
    SN_TRY(list_of(p, "scan_output_axes", r->n_out, &r->out_axes));
    return list_of(p, "scan_output_directions", r->n_out, &r->out_directions);
}

static sonde_status infer_scan(sn_infer *c)
{
    const sn_scan_params *r = c->params;
    uint32_t n = r->n_state + r->n_in;
    sn_fact *formal = SN_NEW_N(c->arena, sn_fact, n);
    sn_dim trips = SN_DIM_UNKNOWN;
    if (!formal)
        return sn_fail_memory(c->err, n * sizeof *formal);
    for (uint32_t i = 0; i < n; i++) {
        sn_input_type x;
        SN_TRY(sn_infer_input_type(c, i, &x));
        formal[i].type = c->in[i]->type;
        if (i < r->n_state)
            continue;
        formal[i].type = (sn_type){.kind = SN_KIND_TENSOR, .dtype = x.dtype, .rank = -1};
        if (x.rank < 0)
            continue;
        int axis;
        SN_TRY(sn_infer_axis(c, r->in_axes ? r->in_axes[i - r->n_state] : 0, x.rank, false, &axis));
        if (sn_dim_known(trips) && sn_dim_known(x.dims[axis]) && trips != x.dims[axis])
            return sn_infer_fail(c,
                                 "scanned inputs have different numbers of slices: %lld and %lld",
                                 (long long)trips, (long long)x.dims[axis]);
        trips = sn_dim_merge(trips, x.dims[axis]);
        sn_dim *dims = SN_NEW_N(c->arena, sn_dim, x.rank);
        if (!dims)
            return sn_fail_memory(c->err, SN_MAX_RANK * sizeof *dims);
        for (int k = 0, d = 0; k < x.rank; k++)
            if (k != axis)
                dims[d++] = x.dims[k];
        formal[i].type.rank = x.rank - 1;
        formal[i].type.dims = dims;
    }
    SN_TRY(sn_body_fixpoint(c, &r->body, formal, n, 0, r->n_state, 0));
    for (uint32_t o = 0; o < c->n_out; o++) {
        if (o < r->n_state)
            c->out[o].type = formal[o].type;
        else
            SN_TRY(sn_body_stacked(c, o, &r->body.graph->outputs.data[o]->fact.type, trips,
                                   r->out_axes ? r->out_axes[o - r->n_state] : 0));
    }
    return SONDE_OK;
}

/* A dense view of slice i along the axis: borrowed when the axis is the first, else copied into
 * *own. */
static sonde_status take_slice(sn_frame *f, const sn_tensor *x, int axis, int64_t i, sn_slot *own,
                               sn_slot *view)
{
    int64_t dims[SN_MAX_RANK];
    ptrdiff_t strides[SN_MAX_RANK], src[SN_MAX_RANK], dst[SN_MAX_RANK];
    size_t elem = sn_dtype_bytes(x->dtype);
    int rank = 0;
    sn_dense_strides(x->dims, x->rank, strides);
    for (int k = 0; k < x->rank; k++)
        if (k != axis) {
            dims[rank] = x->dims[k];
            src[rank++] = strides[k];
        }
    char *from = (char *)x->data + (size_t)(i * strides[axis]) * elem;
    if (axis == 0) {
        *view =
            (sn_slot){.kind = SN_KIND_TENSOR, .t = {.dtype = x->dtype, .rank = rank, .data = from}};
        memcpy(view->t.dims, dims, (size_t)rank * sizeof *dims);
        view->t.bytes = (size_t)strides[0] * elem;
        return SONDE_OK;
    }
    SN_TRY(sn_slot_new_tensor(own, x->dtype, dims, rank, f->alloc, f->err));
    sn_dense_strides(dims, rank, dst);
    sn_copy c;
    sn_copy_plan(&c, elem, rank, dims, dst, src);
    sn_copy_run(&c, own->t.data, from, f->pool);
    *view = *own;
    return SONDE_OK;
}

/* Moves the stacked first axis to where the output wants it, reversed if asked. */
static sonde_status place_axis(const sn_step *s, sn_frame *f, sn_slot *stacked, int64_t axis,
                               bool reverse, sn_slot *out)
{
    const sn_tensor *x = &stacked->t;
    int at;
    if (!sn_axis_index(axis, x->rank, &at))
        return sn_run_fail(s, f, "a scan output axis of %lld is outside rank %d", (long long)axis,
                           x->rank);
    if (at == 0 && !reverse) {
        sn_body_move(out, stacked);
        return SONDE_OK;
    }
    int64_t dims[SN_MAX_RANK];
    ptrdiff_t strides[SN_MAX_RANK], src[SN_MAX_RANK], dst[SN_MAX_RANK], first = 0;
    sn_dense_strides(x->dims, x->rank, strides);
    for (int i = 0, k = 1; i < x->rank; i++) {
        int from = i == at ? 0 : k++;
        dims[i] = x->dims[from];
        src[i] = strides[from];
    }
    if (reverse && x->dims[0] > 0) {
        first = (ptrdiff_t)(x->dims[0] - 1) * strides[0];
        src[at] = -strides[0];
    }
    sn_slot made = {0};
    SN_TRY(sn_slot_new_tensor(&made, x->dtype, dims, x->rank, f->alloc, f->err));
    size_t elem = sn_dtype_bytes(x->dtype);
    sn_dense_strides(dims, x->rank, dst);
    sn_copy c;
    sn_copy_plan(&c, elem, x->rank, dims, dst, src);
    sn_copy_run(&c, made.t.data, (const char *)x->data + first * (ptrdiff_t)elem, f->pool);
    if (x->dtype == SONDE_DTYPE_STRING) {
        sonde_status st = sn_slot_new_strings(out, dims, x->rank, made.t.data, f->alloc, f->err);
        sn_slot_clear(&made);
        return st;
    }
    sn_body_move(out, &made);
    return SONDE_OK;
}

typedef struct scan_state {
    const sn_scan_params *r;
    int64_t trips;
    sn_slot *in;     /* borrowed views for the body */
    sn_slot *now;    /* state: owned */
    sn_slot *slices; /* copied slices: owned */
    sn_slot *out;
    sn_stack *stacks;
    void *block;
    size_t bytes;
} scan_state;

static sonde_status scan_begin(sn_frame *f, scan_state *l)
{
    size_t n_in = (size_t)l->r->n_state + l->r->n_in, n_out = (size_t)l->r->n_state + l->r->n_out;
    l->bytes = (n_in + l->r->n_state + l->r->n_in + n_out) * sizeof(sn_slot) +
               l->r->n_out * sizeof(sn_stack);
    l->block = sn_alloc_zero(f->alloc, l->bytes);
    if (!l->block)
        return sn_fail_memory(f->err, l->bytes);
    l->in = l->block;
    l->now = l->in + n_in;
    l->slices = l->now + l->r->n_state;
    l->out = l->slices + l->r->n_in;
    l->stacks = (sn_stack *)(void *)(l->out + n_out);
    return SONDE_OK;
}

static void scan_end(sn_frame *f, scan_state *l)
{
    if (!l->block)
        return;
    sn_body_clear(l->now, l->r->n_state);
    sn_body_clear(l->slices, l->r->n_in);
    sn_body_clear(l->out, l->r->n_state + l->r->n_out);
    for (uint32_t i = 0; i < l->r->n_out; i++)
        sn_stack_free(f, &l->stacks[i]);
    sn_free(f->alloc, l->block, l->bytes);
}

static sonde_status scan_slices(const sn_step *s, sn_frame *f, scan_state *l, int64_t t)
{
    const sn_scan_params *r = l->r;
    for (uint32_t i = 0; i < r->n_in; i++) {
        const sn_tensor *x = sn_in(s, f, r->n_state + i);
        int axis;
        if (!sn_axis_index(r->in_axes ? r->in_axes[i] : 0, x->rank, &axis))
            return sn_run_fail(s, f, "a scan input axis is outside rank %d", x->rank);
        bool back = r->in_directions && r->in_directions[i];
        SN_TRY(take_slice(f, x, axis, back ? l->trips - 1 - t : t, &l->slices[i],
                          &l->in[r->n_state + i]));
    }
    return SONDE_OK;
}

static sonde_status scan_iterate(const sn_step *s, sn_frame *f, scan_state *l)
{
    const sn_scan_params *r = l->r;
    uint32_t n_in = r->n_state + r->n_in, n_out = r->n_state + r->n_out;
    for (uint32_t i = 0; i < r->n_state; i++)
        l->in[i] = *sn_in_slot(s, f, i);
    for (int64_t t = 0; t < l->trips; t++) {
        SN_TRY(sn_body_cancelled(s, f));
        SN_TRY(scan_slices(s, f, l, t));
        SN_TRY(sn_body_run(s, f, &r->body, l->in, n_in, l->out, n_out));
        for (uint32_t i = 0; i < r->n_state; i++) {
            sn_body_move(&l->now[i], &l->out[i]);
            l->in[i] = l->now[i];
        }
        for (uint32_t i = 0; i < r->n_out; i++)
            SN_TRY(sn_stack_push(s, f, &l->stacks[i], &l->out[r->n_state + i], l->trips));
    }
    for (uint32_t o = 0; o < n_out; o++) {
        if (!sn_wants(s, o))
            continue;
        sn_slot *y = sn_out_slot(s, f, o);
        if (o < r->n_state && l->trips > 0) {
            sn_body_move(y, &l->now[o]);
        } else if (o < r->n_state) {
            SN_TRY(sn_slot_share(y, &l->in[o], true, f->alloc, f->err));
        } else {
            uint32_t k = o - r->n_state;
            SN_TRY(sn_stack_finish(s, f, &l->stacks[k], &r->body.graph->outputs.data[o]->fact.type,
                                   &l->out[o]));
            SN_TRY(place_axis(s, f, &l->out[o], r->out_axes ? r->out_axes[k] : 0,
                              r->out_directions && r->out_directions[k], y));
        }
    }
    return SONDE_OK;
}

static sonde_status run_scan(const sn_step *s, sn_frame *f)
{
    scan_state l = {.r = s->params, .trips = -1};
    for (uint32_t i = 0; i < l.r->n_in; i++) {
        const sn_slot *x = sn_in_slot(s, f, l.r->n_state + i);
        int axis;
        if (x->kind != SN_KIND_TENSOR ||
            !sn_axis_index(l.r->in_axes ? l.r->in_axes[i] : 0, x->t.rank, &axis))
            return sn_run_fail(s, f, "scanned input %u has no such axis", i);
        if (l.trips >= 0 && x->t.dims[axis] != l.trips)
            return sn_run_fail(s, f,
                               "scanned inputs have different numbers of slices: %lld and %lld",
                               (long long)l.trips, (long long)x->t.dims[axis]);
        l.trips = x->t.dims[axis];
    }
    sonde_status st = scan_begin(f, &l);
    if (st == SONDE_OK)
        st = scan_iterate(s, f, &l);
    scan_end(f, &l);
    return st;
}

#define SCAN(SINCE, UNTIL, MIN_IN, PREPARE, INFER, RUN)                                            \
    {                                                                                              \
        SN_OP_HEAD("Scan", SINCE, UNTIL, MIN_IN, -1, 1, -1),                                       \
            .flags = SN_OP_CONTROL | SN_OP_NONTENSOR, .params_size = sizeof(sn_scan_params),       \
            .prepare = PREPARE, .infer = INFER, .run = RUN, .types = SN_ALL_TYPES                  \
    }
const sn_op sn_op_scan[] = {
    SCAN(8, 8, 0, sn_scan_batch_prepare, sn_scan_batch_infer, sn_scan_batch_run),
    SCAN(9, 0, 1, prepare_scan, infer_scan, run_scan),
    {.name = NULL}};

/* ------------------------------------------------------------------ SequenceMap */
typedef struct map_params {
    sn_body_ref body;
} map_params;

static sonde_status prepare_map(sn_prep *p)
{
    map_params *r = p->params;
    SN_TRY(sn_body_find(p, "body", &r->body));
    SN_TRY(sn_body_need_inputs(p, 0));
    if (r->body.graph->n_formal_inputs != p->node->n_formal_in ||
        r->body.graph->outputs.n != p->node->n_out)
        return sn_prep_fail(p, "its body has %u inputs and %zu outputs, but the node has %u and %u",
                            r->body.graph->n_formal_inputs, r->body.graph->outputs.n,
                            p->node->n_formal_in, p->node->n_out);
    return SONDE_OK;
}

static sonde_status infer_map(sn_infer *c)
{
    const map_params *r = c->params;
    uint32_t n = c->node->n_formal_in;
    sn_fact *formal = SN_NEW_N(c->arena, sn_fact, n);
    const sn_fact **facts = SN_NEW_N(c->arena, const sn_fact *, n);
    if (!formal || !facts)
        return sn_fail_memory(c->err, n * sizeof *formal);
    for (uint32_t i = 0; i < n; i++) {
        facts[i] = &formal[i];
        if (!sn_infer_has(c, i))
            continue;
        const sn_type *t = &c->in[i]->type;
        if (t->kind == SN_KIND_SEQUENCE && t->elem)
            formal[i].type = *t->elem;
        else if (t->kind == SN_KIND_TENSOR)
            formal[i].type = *t;
    }
    SN_TRY(sn_infer_body(c, r->body.graph, facts, n));
    for (uint32_t o = 0; o < c->n_out; o++) {
        sn_type *elem = SN_NEW(c->arena, sn_type);
        if (!elem)
            return sn_fail_memory(c->err, sizeof *elem);
        *elem = r->body.graph->outputs.data[o]->fact.type;
        c->out[o].type = (sn_type){.kind = SN_KIND_SEQUENCE, .rank = -1, .elem = elem};
    }
    return SONDE_OK;
}

static sonde_status map_elements(const sn_step *s, sn_frame *f, sn_slot *in, sn_slot *out,
                                 uint32_t n_in)
{
    const map_params *r = s->params;
    const sn_list *first = sn_in_slot(s, f, 0)->list;
    for (uint32_t o = 0; o < s->n_out; o++) {
        if (!sn_wants(s, o))
            continue;
        const sn_type *t = &r->body.graph->outputs.data[o]->fact.type;
        sn_slot *y = sn_out_slot(s, f, o);
        sn_slot_clear(y);
        y->list = sn_list_new(f->alloc, first->n);
        if (!y->list)
            return sn_fail_memory(f->err, first->n * sizeof(sn_slot));
        y->kind = SN_KIND_SEQUENCE;
        y->list->elem_kind = SN_KIND_TENSOR;
        y->list->elem_dtype = t->dtype;
    }
    for (size_t e = 0; e < first->n; e++) {
        SN_TRY(sn_body_cancelled(s, f));
        for (uint32_t i = 0; i < n_in; i++) {
            const sn_slot *x = sn_in_slot(s, f, i);
            bool list = x->kind == SN_KIND_SEQUENCE;
            if (list && x->list->n != first->n)
                return sn_run_fail(s, f, "input %u has %zu elements, input 0 has %zu", i,
                                   x->list->n, first->n);
            in[i] = list ? x->list->items[e] : *x;
        }
        SN_TRY(sn_body_run(s, f, &r->body, in, n_in, out, s->n_out));
        for (uint32_t o = 0; o < s->n_out; o++)
            if (sn_wants(s, o))
                SN_TRY(sn_list_push(sn_out_slot(s, f, o)->list, &out[o], f->err));
    }
    return SONDE_OK;
}

static sonde_status run_map(const sn_step *s, sn_frame *f)
{
    uint32_t n_in = s->node->n_formal_in;
    if (sn_in_slot(s, f, 0)->kind != SN_KIND_SEQUENCE)
        return sn_run_fail(s, f, "input 0 is not a sequence");
    size_t bytes = ((size_t)n_in + s->n_out) * sizeof(sn_slot);
    sn_slot *slots = sn_alloc_zero(f->alloc, bytes);
    if (!slots)
        return sn_fail_memory(f->err, bytes);
    sonde_status st = map_elements(s, f, slots, slots + n_in, n_in);
    sn_body_clear(slots + n_in, s->n_out);
    sn_free(f->alloc, slots, bytes);
    return st;
}

const sn_op sn_op_sequence_map[] = {{SN_OP_HEAD("SequenceMap", 17, 0, 1, -1, 1, -1),
                                     .flags = SN_OP_CONTROL | SN_OP_NONTENSOR,
                                     .params_size = sizeof(map_params), .prepare = prepare_map,
                                     .infer = infer_map, .run = run_map, .types = SN_ALL_TYPES},
                                    {.name = NULL}};
