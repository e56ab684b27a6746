/* SPDX-License-Identifier: Apache-2.0 */
/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: the second is the first on log-softmax
 * over axis 1. Sums are made in double whatever the element type. */
#include <math.h>
#include <string.h>

#include "ops/shared/as_f32.h"
#include "ops/shared/data_movement.h"

enum { SCORES, LABELS, WEIGHTS };
typedef enum reduction { REDUCE_NONE, REDUCE_SUM, REDUCE_MEAN } reduction;

typedef struct loss_params {
    reduction reduce;
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
            r->reduce = (reduction)i;
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
    SN_TRY(sn_wide_float(c, SCORES));
    SN_TRY(sn_wide_same_dtype(c, WEIGHTS, SCORES));
    SN_TRY(sn_wide_dtype(c, LABELS, ints, 2));
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
        SN_TRY(sn_wide_dims(c, LABELS, dims, rank));
        sn_dim classes[1] = {x->dims[1]};
        SN_TRY(sn_wide_dims(c, WEIGHTS, classes, 1));
    } else if (rank >= 0) {
        memcpy(dims, labels->dims,
               (size_t)(rank < SN_MAX_RANK ? rank : SN_MAX_RANK) * sizeof *dims);
    }
    if (r->reduce != REDUCE_NONE)
        return sn_infer_tensor(c, 0, x->dtype, NULL, 0);
    return sn_wide_out(c, 0, x->dtype, rank < 0 ? NULL : dims, rank);
}

static sonde_status bind(sn_bind *b)
{
    const loss_params *r = b->params;
    if (!sn_wide_takes(b->in[SCORES]->type.dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "type %s is not supported",
                            sn_dtype_name(b->in[SCORES]->type.dtype));
    b->kernel = r->softmax ? "softmax_cross_entropy" : "nll_loss";
    return SONDE_OK;
}

/* log(sum of e^x) over the classes of one position. */
static double log_sum(const sn_tensor *x, int64_t base, int64_t classes, int64_t inner)
{
    double top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < classes; k++)
        top = fmax(top, sn_elem_f64(x->dtype, x->data, base + k * inner));
    if (isinf(top))
        return top;
    for (int64_t k = 0; k < classes; k++)
        sum += exp(sn_elem_f64(x->dtype, x->data, base + k * inner) - top);
    return top + log(sum);
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const loss_params *r = s->params;
    const sn_tensor *x = sn_in(s, f, SCORES), *labels = sn_in(s, f, LABELS);
    const sn_tensor *weights = sn_has(s, WEIGHTS) ? sn_in(s, f, WEIGHTS) : NULL;
    sn_tensor *y = sn_wants(s, 0) ? sn_out(s, f, 0) : NULL,
              *logs = sn_wants(s, 1) ? sn_out(s, f, 1) : NULL;
    const int64_t classes = x->dims[1], n = sn_tensor_count(labels),
                  inner = x->dims[0] ? n / x->dims[0] : 1;
    double sum = 0, total = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t base = i / inner * classes * inner + i % inner,
                      label = sn_move_int(labels, i);
        const double shift = r->softmax ? log_sum(x, base, classes, inner) : 0.0;
        for (int64_t k = 0; logs && k < classes; k++)
            sn_elem_set_f64(logs->dtype, logs->data, base + k * inner,
                            sn_elem_f64(x->dtype, x->data, base + k * inner) - shift);
        double loss = 0, weight = 0;
        if (!r->ignores || label != r->ignored) {
            if (label < 0 || label >= classes)
                return sn_run_fail(s, f, "label %lld is outside of %lld classes", (long long)label,
                                   (long long)classes);
            weight = weights ? sn_elem_f64(weights->dtype, weights->data, label) : 1.0;
            loss = weight * (shift - sn_elem_f64(x->dtype, x->data, base + label * inner));
        }
        sum += loss;
        total += weight;
        if (y && r->reduce == REDUCE_NONE)
            sn_elem_set_f64(y->dtype, y->data, i, loss);
    }
    if (y && r->reduce != REDUCE_NONE)
        sn_elem_set_f64(y->dtype, y->data, 0, r->reduce == REDUCE_SUM ? sum : sum / total);
    return SONDE_OK;
}

#define LOSS(NAME, MAX_OUT, PREPARE)                                                               \
    {                                                                                              \
        SN_MOVE_HEAD(NAME, 12, 0, 2, 3, 1, MAX_OUT),                                               \
            .params_size = sizeof(loss_params), .prepare = PREPARE, .infer = infer, .bind = bind,  \
            .run = run, .types = SN_WIDE_TYPES                                                     \
    }
const sn_op sn_op_nll_loss[] = {LOSS("NegativeLogLikelihoodLoss", 1, prepare_nll), {.name = NULL}};
const sn_op sn_op_softmax_cross_entropy[] = {LOSS("SoftmaxCrossEntropyLoss", 2, prepare_softmax),
                                             {.name = NULL}};
