/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a graph down to what leads from the values that are fed to those that are asked for. */
#ifndef SN_PLAN_CUT_H
#define SN_PLAN_CUT_H

#include "plan/program.h"

/* Cuts `g`, a clone of `whole`, by the feeds and outputs of the configuration. Without any, it only
 * makes constants of inputs that have a default. */
sonde_status sn_cut_graph(sn_graph *g, const sn_graph *whole, const sn_program_config *cfg,
                          sonde_error *err);

#endif
