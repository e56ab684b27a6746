/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a convolution that are stored in fewer bits than it computes in. */
#include "compute/conv.h"
#include "compute/small_floats.h"

const float *sn_conv_weights(const sn_conv_call *c, int64_t first, int64_t count, float *room)
{
    const sn_conv_plan *p = c->p;
    if (!p->wide_floats)
        return (const float *)c->w + first;
    sn_load_f32(p->cpu_flags, p->d.w_dtype, room, (const uint16_t *)c->w + first, (size_t)count);
    return room;
}
