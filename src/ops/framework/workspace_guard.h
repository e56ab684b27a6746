/* SPDX-License-Identifier: Apache-2.0 */
/* The guard of a step's workspace (base/workspace.h). In `bind` an operator carves b->workspace and
 * keeps the pieces with its kernel parameters; in `run` it asks the frame where a piece lies:
 *
 *     bind:   k->columns = sn_carve(&b->workspace, n, sizeof(float));
 *     run:    float *columns = sn_piece_ptr(f, k->columns);
 *
 * sn_op_bind_step refuses a step whose sizes overflowed, and under AddressSanitizer has the guard
 * open the step's pieces while it runs, and only these. */
#ifndef SN_OPS_FRAMEWORK_WORKSPACE_GUARD_H
#define SN_OPS_FRAMEWORK_WORKSPACE_GUARD_H

#include "base/workspace.h"

/* Puts the guard in front of a bound step's run function, where there is one. For sn_op_bind_step.
 */
struct sn_bind;
sonde_status sn_workspace_guard(struct sn_bind *b);

#endif
