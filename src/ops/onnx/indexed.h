/* SPDX-License-Identifier: Apache-2.0 */
/* What the Gather and Scatter operators share: where their indices point, and what is said of one
 * that points outside. */
#ifndef SN_OPS_ONNX_INDEXED_H
#define SN_OPS_ONNX_INDEXED_H

#include "compute/gather.h"
#include "ops/framework/op.h"

/* One index per element, which replaces the coordinate of `axis` in x. */
sn_indexed_axis sn_indexed_axis_of(const sn_tensor *x, const sn_tensor *index, int axis);
/* Tuples of the index's last dim, which name rows of x behind its `batch` leading dims. */
sn_indexed_rows sn_indexed_rows_of(const sn_tensor *x, const sn_tensor *index, int batch);

sonde_status sn_run_bad_index(const sn_step *s, sn_frame *f, sn_bad_index bad);

#endif
