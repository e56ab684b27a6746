/* SPDX-License-Identifier: Apache-2.0 */
/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: the second is the first on log-softmax
 * over axis 1. */
#include <string.h>

#include "compute/loss.h"
#include "ops/shared/checks.h"
#include "ops/shared/data_movement.h"

enum { SCORES, LABELS, WEIGHTS };

typedef struct loss_params {
    sn_loss_reduction reduce;
    bool softmax, ignores;
    int64_t ignored; /* label that does not count */
} loss_params;

static sonde_status prepare_loss(sn_prep *p, bool softmax)
{
    static const char *const names[] = {"none", "sum", "mean"};
    loss_params *r = p->params;
    const char *text;
    r->softmax = softmax;
    r->ignores = sn_node_attr(p->node, "ignore_index") != NULL;
    SN_TRY(sn_prep_int(p, "ignore_index", 0, &r->ignored));
    SN_TRY(sn_prep_string(p, "reduction", "mean", &text));
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            r->reduce = (sn_loss_reduction)i;
            return SONDE_OK;
        }
    return sn_prep_fail(p, "reduction '%s' is unknown", text);
}

static sonde_status prepare_nll(sn_prep *p)
{
    return prepare_loss(p, false);
}
static sonde_status prepare_softmax(sn_prep *p)
{
    return prepare_loss(p, true);
}

static sonde_status infer(sn_infer *c)
{
    static const sn_dtype ints[] = {SONDE_DTYPE_I32, SONDE_DTYPE_I64};
    const loss_params *r = c->params;
    const sn_type *x = &c->in[SCORES]->type, *labels = &c->in[LABELS]->type;
    SN_TRY(sn_check_float(c, SCORES));
    SN_TRY(sn_check_same_dtype(c, WEIGHTS, SCORES));
    SN_TRY(sn_check_dtype(c, LABELS, ints, 2));
    if (c->n_out > 1)
        SN_TRY(sn_infer_same(c, 1, SCORES));
    sn_dim dims[SN_MAX_RANK];
    int rank = labels->rank;
    if (x->rank >= 0) {
        if (x->rank < 2 || x->rank > SN_MAX_RANK)
            return sn_infer_fail(c, "the scores have rank %d, at least 2 is needed", (int)x->rank);
        rank = x->rank - 1;
        dims[0] = x->dims[0];
        memcpy(dims + 1, x->dims + 2, (size_t)(rank - 1) * sizeof *dims);
        SN_TRY(sn_check_dims(c, LABELS, dims, rank));
        sn_dim classes[1] = {x->dims[1]};
        SN_TRY(sn_check_dims(c, WEIGHTS, classes, 1));
    } else if (rank >= 0) {
        memcpy(dims, labels->dims,
               (size_t)(rank < SN_MAX_RANK ? rank : SN_MAX_RANK) * sizeof *dims);
    }
    if (r->reduce != SN_LOSS_EACH)
        return sn_infer_tensor(c, 0, x->dtype, NULL, 0);
    return sn_infer_bounded(c, 0, x->dtype, rank < 0 ? NULL : dims, rank);
}

static sonde_status bind(sn_bind *b)
{
    const loss_params *r = b->params;
    if (!sn_is_common_float(b->in[SCORES]->type.dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "type %s is not supported",
                            sn_dtype_name(b->in[SCORES]->type.dtype));
    b->kernel = r->softmax ? "softmax_cross_entropy" : "nll_loss";
    return SONDE_OK;
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const loss_params *r = s->params;
    const sn_tensor *x = sn_in(s, f, SCORES), *labels = sn_in(s, f, LABELS);
    const int64_t n = sn_tensor_count(labels);
    const sn_loss l = {.reduction = r->reduce,
                       .softmax = r->softmax,
                       .ignores = r->ignores,
                       .ignored = r->ignored,
                       .outer = x->dims[0],
                       .classes = x->dims[1],
                       .inner = x->dims[0] ? n / x->dims[0] : 1};
    int64_t bad;
    if (!sn_loss_run(&l, sn_tensor_elems(sn_wants(s, 0) ? sn_out(s, f, 0) : NULL),
                     sn_tensor_elems(sn_wants(s, 1) ? sn_out(s, f, 1) : NULL), sn_tensor_elems(x),
                     sn_tensor_elems(labels),
                     sn_tensor_elems(sn_has(s, WEIGHTS) ? sn_in(s, f, WEIGHTS) : NULL), &bad))
        return sn_run_fail(s, f, "label %lld is outside of %lld classes", (long long)bad,
                           (long long)l.classes);
    return SONDE_OK;
}

#define LOSS(NAME, MAX_OUT, PREPARE)                                                               \
    {                                                                                              \
        SN_OP_HEAD(NAME, 12, 0, 2, 3, 1, MAX_OUT),                                                 \
            .params_size = sizeof(loss_params), .prepare = PREPARE, .infer = infer, .bind = bind,  \
            .run = run, .types = SN_COMMON_FLOATS                                                  \
    }
const sn_op sn_op_nll_loss[] = {LOSS("NegativeLogLikelihoodLoss", 1, prepare_nll), {.name = NULL}};
const sn_op sn_op_softmax_cross_entropy[] = {LOSS("SoftmaxCrossEntropyLoss", 2, prepare_softmax),
                                             {.name = NULL}};
