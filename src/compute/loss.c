/* SPDX-License-Identifier: Apache-2.0 */
/* Label by label. */
#include "compute/loss.h"

#include <math.h>

/* log(sum of e^x) over the classes of one position. */
static double log_sum(sn_elems x, int64_t base, int64_t classes, int64_t inner)
{
    double top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < classes; k++)
        top = fmax(top, sn_elem_f64(x.dtype, x.data, base + k * inner));
    if (isinf(top))
        return top;
    for (int64_t k = 0; k < classes; k++)
        sum += exp(sn_elem_f64(x.dtype, x.data, base + k * inner) - top);
    return top + log(sum);
}

bool sn_loss_run(const sn_loss *l, sn_elems y, sn_elems logs, sn_elems scores, sn_elems labels,
                 sn_elems weights, int64_t *bad)
{
    const int64_t classes = l->classes, inner = l->inner;
    double sum = 0, total = 0;
    for (int64_t i = 0; i < l->outer * inner; i++) {
        const int64_t base = i / inner * classes * inner + i % inner,
                      label = sn_elem_i64(labels.dtype, labels.data, i);
        const double shift = l->softmax ? log_sum(scores, base, classes, inner) : 0.0;
        for (int64_t k = 0; logs.data && k < classes; k++)
            sn_elem_set_f64(logs.dtype, logs.data, base + k * inner,
                            sn_elem_f64(scores.dtype, scores.data, base + k * inner) - shift);
        double loss = 0, weight = 0;
        if (!l->ignores || label != l->ignored) {
            if (label < 0 || label >= classes) {
                *bad = label;
                return false;
            }
            weight = weights.data ? sn_elem_f64(weights.dtype, weights.data, label) : 1.0;
            loss = weight * (shift - sn_elem_f64(scores.dtype, scores.data, base + label * inner));
        }
        sum += loss;
        total += weight;
        if (y.data && l->reduction == SN_LOSS_EACH)
            sn_elem_set_f64(y.dtype, y.data, i, loss);
    }
    if (y.data && l->reduction != SN_LOSS_EACH)
        sn_elem_set_f64(y.dtype, y.data, 0, l->reduction == SN_LOSS_SUM ? sum : sum / total);
    return true;
}
