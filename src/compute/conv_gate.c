/* SPDX-License-Identifier: Apache-2.0 */
/* Weights by a gate; see conv_gate.h. */
#include "compute/conv_gate.h"

/* Every weight by the gate of its input channel; `lanes` is a constant where this is called. */
static inline void scale_rows(const sn_conv_gate *w, float *restrict to, const float *restrict from,
                              const float *restrict gate, const int64_t lanes)
{
    for (int64_t r = 0; r < w->rows; r++) {
        for (int64_t c = 0; c < w->inputs; c++, to += lanes, from += lanes) {
            const float g = c < w->channels ? gate[c] : 0.0f;
            for (int64_t l = 0; l < lanes; l++)
                to[l] = from[l] * g;
        }
    }
}

void sn_conv_gate_run(const sn_conv_gate *w, float *to, const float *from, const float *gate)
{
    if (w->lanes == 16)
        scale_rows(w, to, from, gate, 16);
    else if (w->lanes == 8)
        scale_rows(w, to, from, gate, 8);
    else
        scale_rows(w, to, from, gate, 1);
}
