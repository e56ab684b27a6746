/* SPDX-License-Identifier: Apache-2.0 */
/* The graph that quantising writes, without samples: prepared, planned and written as ever, but
 * with made-up ranges. These decide what is computed, not how long it takes; only where bytes begin
 * at 0 matters, because that is what does away with a Relu. */
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "shrink/form.h"
#include "shrink/quantizer.h"

#define MADE_UP_HIGH 5.1f
#define MADE_UP_LOW  -2.55f
enum { DEEPEST = 16 };

/* ------------------------------------------------------------------ ranges */
/* Whether the value is never negative. */
static bool is_positive(const sn_quantizer *q, const sn_value *v, int depth)
{
    static const char *const types[] = {"Relu", "Sigmoid", "HardSigmoid", "Softmax",
                                        "Exp",  "Abs",     "Sqrt",        "Softplus"};
    const sn_node *n = v ? v->producer : NULL;
    if (!n || depth > DEEPEST)
        return false;
    const sn_q_role role = q->nodes[n->id].role;
    if (role == SN_Q_FOLDED)
        return true;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (sn_q_is(n, types[i]))
            return true;
    if (role == SN_Q_MOVE)
        return is_positive(q, n->in[0].value, depth + 1);
    bool all = role == SN_Q_JOIN;
    for (uint32_t i = 0; i < n->n_in && all; i++)
        all = is_positive(q, n->in[i].value, depth + 1);
    return all;
}

static void make_up_ranges(const sn_quantizer *q)
{
    for (size_t i = 0; i < q->g->values.n; i++) {
        const sn_value *v = q->g->values.data[i];
        sn_q_value *d = &q->values[i];
        if (!d->bytes || d->scale_of != i)
            continue;
        d->low = is_positive(q, v, 0) ? 0 : MADE_UP_LOW;
        d->high = fminf(MADE_UP_HIGH, (float)sn_q_bound_of(q, v));
        sn_q_set_scale(q, v);
    }
    for (size_t i = 0; i < q->g->values.n; i++) {
        sn_q_value *d = &q->values[i];
        if (d->bytes && d->scale_of != i) {
            d->scale = q->values[d->scale_of].scale;
            d->zero = q->values[d->scale_of].zero;
        }
    }
}

/* ------------------------------------------------------------------ origins */
static bool is_wanted(const sn_form_question *f, const sn_node *n)
{
    for (uint32_t i = 0; i < n->n_origins; i++)
        if (f->wanted[n->origins[i]])
            return true;
    return false;
}

static bool note_products(const sn_quantizer *q, const sn_form_question *f)
{
    bool any = false;
    for (size_t i = 0; i < q->scopes.n; i++) {
        const sn_q_scope *s = &q->scopes.data[i];
        for (const sn_node *n = s->g->first; n; n = n->next) {
            if (s->nodes[n->id].role != SN_Q_PRODUCT)
                continue;
            any = true;
            if (n->n_origins) /* one for each weight, whatever was folded into the product */
                f->changed[n->anchor != SN_NO_ORIGIN ? n->anchor : n->origins[0]] = true;
        }
    }
    return any;
}

/* MatMulInteger ► Cast ► Mul ► Add, or MatMulNBits ► Add, stand for a product that is gone: they
 * are its work. `last` makes what the product made. */
static void inherit(sn_node *last, const sn_node *product)
{
    for (sn_node *n = last; n && !n->n_origins; n = n->in[0].value->producer) {
        n->origins = product->origins;
        n->n_origins = product->n_origins;
        n->shown_type = n->op_type;
        n->anchor = product->anchor;
        if (strcmp(n->op_type, "MatMulInteger") == 0 || strcmp(n->op_type, "MatMulNBits") == 0)
            return;
    }
}

static sonde_status pass_on_origins(const sn_quantizer *q, const sonde_model *made)
{
    sn_map products; /* by the name of what they make, which is the same in both graphs */
    sonde_status st = SONDE_OK;
    sn_map_init(&products, &q->context->alloc);
    for (sn_node *n = q->g->first; n && st == SONDE_OK; n = n->next)
        if (q->nodes[n->id].role == SN_Q_PRODUCT && n->n_origins &&
            !sn_map_put(&products, n->out[0]->name, n, NULL))
            st = sn_fail_memory(q->err, sizeof(sn_map_entry));
    for (sn_node *n = made->core->graph->first; n && st == SONDE_OK; n = n->next) {
        const sn_node *product =
            !n->n_origins && n->n_out && n->out[0] ? sn_map_get(&products, n->out[0]->name) : NULL;
        if (product)
            inherit(n, product);
    }
    sn_map_free(&products);
    return st;
}

/* ------------------------------------------------------------------ all of it */
static sonde_status write(sn_quantizer *q, sonde_model **made)
{
    switch (q->o.kind) {
    case SONDE_QUANTIZE_STATIC:
        make_up_ranges(q);
        return sn_q_write_static(q, made);
    case SONDE_QUANTIZE_DYNAMIC:
        return sn_q_write_dynamic(q, made);
    default:
        return sn_q_write_blocks(q, made);
    }
}

static sonde_status quantize(sn_quantizer *q, const sn_form_question *f, sonde_model **made)
{
    sn_q_product p;
    SN_TRY(sn_q_prepare(q));
    for (const sn_node *n = q->g->first; n; n = n->next)
        q->left[n->id] = !sn_q_product_of(n, &p) && !is_wanted(f, n);
    SN_TRY(sn_q_plan(q));
    if (!note_products(q, f))
        return SONDE_OK;
    SN_TRY(write(q, made));
    return pass_on_origins(q, *made);
}

sonde_status sn_quantized_form(const sn_form_question *f, sonde_model **prepared,
                               sonde_model **made, sonde_error *err)
{
    sn_quantizer q = {.context = f->model->context, .source = f->model, .err = err};
    q.o.kind = f->kind;
    q.o.force = 1;
    *prepared = *made = NULL;
    sn_arena_init(&q.arena, &q.context->alloc);
    const sonde_status st = quantize(&q, f, made);
    if (st == SONDE_OK && *made) {
        *prepared = q.prepared;
    } else {
        sonde_model_release(*made);
        sonde_model_release(q.prepared);
        *made = NULL;
    }
    sn_vec_free(&q.scopes, &q.context->alloc);
    sn_arena_free(&q.arena);
    return st;
}
