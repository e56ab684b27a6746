/* SPDX-License-Identifier: Apache-2.0 */
/* How a row of a direct convolution falls into runs of pixels that one kernel call does, and
 * the copy of its input that makes runs longer. */
#ifndef SN_COMPUTE_CONV_RUNS_H
#define SN_COMPUTE_CONV_RUNS_H

#include "compute/conv.h"

typedef struct sn_conv_run_of {
    int64_t from, to;   /* pixels */
    int64_t first, end; /* taps that they read */
} sn_conv_run_of;

/* The run that begins at pixel `from` and ends at or before `to`. */
sn_conv_run_of sn_conv_next_run(const sn_conv_plan *p, int64_t from, int64_t to);

/* How rows of a direct plan are cut; once its chunks are known. */
void sn_conv_plan_rows(sn_conv_plan *p);
/* Floats of the copy of x that the plan needs; 0: none, -1: too many. */
int64_t sn_conv_margins_floats(const sn_conv_plan *p);
/* Makes the copy; where pixel 0 of its first row is. */
const float *sn_conv_margins(const sn_conv_call *c, sn_pool *pool);

#endif
