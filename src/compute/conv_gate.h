/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a 1×1 convolution multiplied by a gate of its input channels (squeeze-and-excite): far
 * fewer products than the pixels would take. */
#ifndef SN_COMPUTE_CONV_GATE_H
#define SN_COMPUTE_CONV_GATE_H

#include <stdint.h>

/* Weights [rows][inputs][lanes]; of the inputs, `channels` are real, gates of the others are 0. */
typedef struct sn_conv_gate {
    int64_t rows, inputs, lanes, channels;
} sn_conv_gate;
void sn_conv_gate_run(const sn_conv_gate *w, float *to, const float *from, const float *gate);

#endif
