/* SPDX-License-Identifier: Apache-2.0 */
/* Where the classes of a classifier's output lie. Models give their scores as [N, C], but also as
 * [N, C, 1, 1] (the end of a net without a Flatten), [N, 1, 1, C] (the same, channels last) or [C].
 * In all of these the scores of one sample lie side by side, so that two numbers say everything. */
#include "api/internal.h"
#include "base/dtype.h"
#include "sonde/experimental/compare.h"

/* Names of classes, truth values and results of ArgMax are no scores. */
static bool holds_scores(const sn_tensor *t)
{
    if (sn_dtype_is_float(t->dtype))
        return true;
    return sn_dtype_is_int(t->dtype) && (t->rank > 1 || sn_dtype_bytes(t->dtype) < 4);
}

sonde_classes sonde_value_classes(const sonde_value *value, int64_t *rows, int64_t *classes)
{
    int64_t unused;
    rows = rows ? rows : &unused;
    classes = classes ? classes : &unused;
    *rows = *classes = 0;
    if (!value || value->slot.kind != SN_KIND_TENSOR)
        return SONDE_CLASSES_NONE;
    const sn_tensor *t = &value->slot.t;
    const int64_t count = sn_tensor_count(t);
    int64_t most = t->rank == 1 ? t->dims[0] : 1;
    int wide = t->rank == 1; /* axes behind the samples with more than one element */
    for (int k = 1; k < t->rank; k++)
        if (t->dims[k] != 1) {
            most = t->dims[k];
            wide++;
        }
    const bool positions = wide == 2 && t->rank == 3;
    if (count == 0 || !holds_scores(t) || (wide != 1 && !positions) || most < 2)
        return SONDE_CLASSES_NONE;
    *classes = most;
    *rows = count / most;
    return positions ? SONDE_CLASSES_POSITIONS : SONDE_CLASSES_SAMPLES;
}
