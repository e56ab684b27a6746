/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a weight by their place in memory: floats, or quantised ones with what they stand
 * for. */
#ifndef SN_SHRINK_ELEMENTS_H
#define SN_SHRINK_ELEMENTS_H

#include "shrink/find_weights.h"

typedef struct sn_elements {
    const sn_tensor *t; /* with memory that may be written */
    int64_t strides[SN_MAX_RANK];
    const sn_weight_quant *quant;
    const double *scales; /* NULL: 1 */
    const int64_t *zeros; /* NULL: 0 */
    int64_t n_scales, n_zeros;
} sn_elements;

/* `t`: a copy of the weight's constant. Tables are made in the arena. */
sonde_status sn_elements_open(sn_elements *e, const sn_weight *w, const sn_tensor *t,
                              sn_arena *arena, sonde_error *err);
double sn_element(const sn_elements *e, int64_t at); /* the number it stands for */
void sn_element_clear(const sn_elements *e, int64_t at);

#endif
