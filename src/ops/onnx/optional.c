/* SPDX-License-Identifier: Apache-2.0 */
/* Optional values: a list of no or one element. */
#include "ops/shared/data_movement.h"

typedef struct optional_params {
    const sn_type *type; /* of an optional made empty */
} optional_params;

static sonde_status prepare_optional(sn_prep *p)
{
    optional_params *r = p->params;
    const sn_attr *a = sn_node_attr(p->node, "type");
    if (a && a->kind == SN_ATTR_TYPE_PROTO)
        r->type = a->type;
    return SONDE_OK;
}

static sonde_status infer_optional(sn_infer *c)
{
    const optional_params *r = c->params;
    sn_type *elem = SN_NEW(c->arena, sn_type);
    if (!elem)
        return sn_fail_memory(c->err, sizeof *elem);
    *elem = (sn_type){.kind = SN_KIND_NONE, .rank = -1};
    if (sn_infer_has(c, 0))
        *elem = c->in[0]->type;
    else if (r->type)
        *elem = *r->type;
    c->out[0].type = (sn_type){.kind = SN_KIND_OPTIONAL, .rank = -1, .elem = elem};
    return SONDE_OK;
}

static sonde_status run_optional(const sn_step *s, sn_frame *f)
{
    const optional_params *r = s->params;
    const sn_slot *x = sn_has(s, 0) ? sn_in_slot(s, f, 0) : NULL;
    sn_list *l = sn_list_new(f->alloc, 1);
    if (!l)
        return sn_fail_memory(f->err, sizeof *l);
    if (x && x->kind != SN_KIND_NONE) {
        l->elem_kind = x->kind;
        l->elem_dtype = x->kind == SN_KIND_TENSOR ? x->t.dtype : SONDE_DTYPE_UNDEFINED;
        sonde_status st = sn_list_push(l, x, f->err);
        if (st != SONDE_OK) {
            sn_list_unref(l);
            return st;
        }
    } else if (r->type) {
        l->elem_kind = r->type->kind;
        l->elem_dtype = r->type->dtype;
    }
    sn_slot *y = sn_out_slot(s, f, 0);
    sn_slot_clear(y);
    y->kind = SN_KIND_OPTIONAL;
    y->list = l;
    return SONDE_OK;
}

const sn_op sn_op_optional[] = {{SN_OP_HEAD("Optional", 15, 0, 0, 1, 1, 1),
                                 .flags = SN_OP_NONTENSOR, .params_size = sizeof(optional_params),
                                 .prepare = prepare_optional, .infer = infer_optional,
                                 .run = run_optional, .types = SN_ALL_TYPES},
                                {.name = NULL}};

static sonde_status infer_has(sn_infer *c)
{
    return sn_infer_bounded(c, 0, SONDE_DTYPE_BOOL, NULL, 0);
}

static sonde_status run_has(const sn_step *s, sn_frame *f)
{
    const sn_slot *x = sn_has(s, 0) ? sn_in_slot(s, f, 0) : NULL;
    bool has = x && x->kind != SN_KIND_NONE && (x->kind != SN_KIND_OPTIONAL || x->list->n > 0);
    sn_tensor *y;
    SN_TRY(sn_run_output(s, f, 0, SONDE_DTYPE_BOOL, NULL, 0, &y));
    if (y)
        *(uint8_t *)y->data = has;
    return SONDE_OK;
}

const sn_op sn_op_optional_has_element[] = {{SN_OP_HEAD("OptionalHasElement", 15, 0, 0, 1, 1, 1),
                                             .flags = SN_OP_NONTENSOR, .infer = infer_has,
                                             .run = run_has, .types = SN_ALL_TYPES},
                                            {.name = NULL}};

static sonde_status infer_get(sn_infer *c)
{
    const sn_type *t = &c->in[0]->type;
    if (t->kind != SN_KIND_OPTIONAL)
        return sn_infer_same(c, 0, 0);
    c->out[0].type = t->elem ? *t->elem : (sn_type){.kind = SN_KIND_NONE, .rank = -1};
    return SONDE_OK;
}

static sonde_status run_get(const sn_step *s, sn_frame *f)
{
    const sn_slot *x = sn_in_slot(s, f, 0);
    if (x->kind == SN_KIND_OPTIONAL)
        x = x->list->n > 0 ? &x->list->items[0] : NULL;
    if (!x || x->kind == SN_KIND_NONE)
        return sn_run_fail(s, f, "the optional is empty");
    return sn_slot_share(sn_out_slot(s, f, 0), x, true, f->alloc, f->err);
}

const sn_op sn_op_optional_get_element[] = {{SN_OP_HEAD("OptionalGetElement", 15, 0, 1, 1, 1, 1),
                                             .flags = SN_OP_NONTENSOR, .infer = infer_get,
                                             .run = run_get, .types = SN_ALL_TYPES},
                                            {.name = NULL}};
