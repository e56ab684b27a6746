/* SPDX-License-Identifier: Apache-2.0 */
/* Declared types: of inputs first, then of outputs and inner values, where a wrong one is soon
 * found to contradict what is inferred. */
#include "fuzz/mutate.h"

static const char *const symbols[] = {"N", "batch", "seq", "M", "K", "N", ""};

static bool of_input(const pt_field *parent, const pt_field *f)
{
    return parent->kind == PT_GRAPH && f->number == GRAPH_INPUT;
}

static bool pick_info(mutation *m, mu_spot *s)
{
    return (!mu_one_in(m, 6) && mu_pick(m, PT_INFO, of_input, s)) || mu_pick(m, PT_INFO, NULL, s);
}

/* Some message of `kind` within the type of some value. */
static bool pick_inside(mutation *m, pt_kind kind, mu_spot *s)
{
    mu_spot info;
    return pick_info(m, &info) && mu_pick_in(m, info.field, kind, NULL, s);
}

static void set_dim(mutation *m, pt_field *d)
{
    const pt_field *old = pt_find(d, DIM_VALUE);
    int64_t value = old ? (int64_t)old->num : 2;
    d->n_kids = 0;
    switch (mu_below(m, 8)) {
    case 0:
        break; /* unknown */
    case 1:
    case 2:
        pt_set_text(m->arena, d, DIM_PARAM, symbols[mu_below(m, 7)]);
        break;
    case 3:
        pt_set_num(m->arena, d, DIM_VALUE, (uint64_t)mu_int(m, value));
        break;
    case 4:
        pt_set_num(m->arena, d, DIM_VALUE, (uint64_t)value + 1);
        break;
    default:
        pt_set_num(m->arena, d, DIM_VALUE, mu_below(m, 9));
        break;
    }
}

static bool dim(mutation *m)
{
    mu_spot s;
    if (!pick_inside(m, PT_DIM, &s))
        return false;
    set_dim(m, s.field);
    return true;
}

static bool rank(mutation *m)
{
    mu_spot s;
    if (!pick_inside(m, PT_SHAPE, &s))
        return false;
    pt_field *d = mu_pick_kid(m, s.field, 1);
    uint32_t how = mu_below(m, 6);
    if (how == 0) {
        pt_remove(s.parent, s.field);
    } else if (how < 3 && d) {
        pt_remove(s.field, d);
    } else {
        d = pt_add_message(m->arena, s.field, 1);
        set_dim(m, d);
        s.field->n_kids--;
        pt_insert(m->arena, s.field, mu_below(m, s.field->n_kids + 1), d);
    }
    return true;
}

static bool dtype(mutation *m)
{
    mu_spot s;
    if (!pick_inside(m, PT_TYPE_TENSOR, &s))
        return false;
    pt_set_num(m->arena, s.field, TYPE_TENSOR_DTYPE, mu_dtype(m));
    return true;
}

/* A tensor becomes a sequence or an optional of itself, or an element steps out. */
static bool nesting(mutation *m)
{
    mu_spot s, inner;
    if (!pick_inside(m, PT_TYPE, &s))
        return false;
    if (mu_one_in(m, 2) && mu_pick_in(m, s.field, PT_TYPE, NULL, &inner)) {
        s.field->kids = inner.field->kids;
        s.field->n_kids = inner.field->n_kids;
        s.field->cap_kids = inner.field->cap_kids;
        return true;
    }
    pt_field *copy = pt_clone(m->arena, s.field);
    if (!copy)
        return false;
    s.field->n_kids = 0;
    pt_field *outer =
        pt_add_message(m->arena, s.field, mu_one_in(m, 2) ? TYPE_SEQUENCE : TYPE_OPTIONAL);
    copy->number = 1;
    pt_insert(m->arena, outer, 0, copy);
    return true;
}

const mutation_row mutations_of_types[] = {
    {dim, 12}, {rank, 5}, {dtype, 6}, {nesting, 1}, {NULL, 0}};
