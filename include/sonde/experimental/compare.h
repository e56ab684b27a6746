/* SPDX-License-Identifier: Apache-2.0 */
/* Are two values the same? And the elements of a tensor as plain numbers, whatever its type.
 * Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_COMPARE_H
#define SONDE_EXPERIMENTAL_COMPARE_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* SONDE_OK when every floating-point element satisfies |got - expected| <= atol + rtol · |expected|
 * (NaN equals NaN, infinities equal themselves) and everything else, strings, integers, booleans,
 * shapes, types, is equal; else SONDE_RUNTIME and a sentence that names the first difference, how
 * many there are and the largest. Sequences and optionals are compared item by item. */
SONDE_API sonde_status sonde_value_compare(const sonde_value *got, const sonde_value *expected,
                                           double rtol, double atol, sonde_error *err);

/* Elements [first, first + count) as doubles; booleans as 0 and 1, complex numbers as their real
 * part. Returns how many were written: 0 for strings and for what is not a tensor. */
SONDE_API size_t sonde_tensor_read(const sonde_value *value, int64_t first, size_t count,
                                   double *out);

/* How the scores of classes lie in an output. */
typedef enum sonde_classes {
    SONDE_CLASSES_NONE = 0, /* there are none: one number, an image for each class, words … */
    SONDE_CLASSES_SAMPLES =
        1, /* one row for each sample: [N, C], [C], [N, C, 1, 1], [N, 1, 1, C] */
    SONDE_CLASSES_POSITIONS = 2 /* one for each position of each sample: [N, T, C], as of words */
} sonde_classes;
/* Row r has elements [r * classes, (r + 1) * classes). Both are 0 where there are none. */
SONDE_API sonde_classes sonde_value_classes(const sonde_value *value, int64_t *rows,
                                            int64_t *classes);

#ifdef __cplusplus
}
#endif
#endif
