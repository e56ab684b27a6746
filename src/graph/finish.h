/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of sn_model_finish, each in its own file. */
#ifndef SN_GRAPH_FINISH_H
#define SN_GRAPH_FINISH_H

#include "graph/model.h"

/* capture.c: makes every outer-scope read of the bodies under g an explicit input. `what` names the
 * graph in messages ("the model", "function 'f'"). */
sonde_status sn_captures_resolve(sn_graph *g, const char *what, sonde_error *err);

/* inline.c: replaces every call of a model-local function in m->graph and its bodies. */
sonde_status sn_functions_inline(sn_model *m, sonde_error *err);

/* model.c: the version of `domain` among these imports, then the model's; -1 when neither has it.
 */
int32_t sn_opset_of(const sn_model *m, const sn_opset *opsets, size_t n, const char *domain);
/* model.c: gives every node of g and its bodies its version, -1 when its domain is not imported. */
void sn_graph_set_opsets(const sn_model *m, sn_graph *g, const sn_opset *opsets, size_t n);

#endif
