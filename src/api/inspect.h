/* SPDX-License-Identifier: Apache-2.0 */
/* Between inspect.c, which makes the rows, and inspect_totals.c, which counts. */
#ifndef SN_API_INSPECT_H
#define SN_API_INSPECT_H

#include "sonde/experimental/inspect.h"

#include "api/internal.h"

/* Parameters and constants of a model's graph, bodies included. */
sonde_status sn_inspect_parameters(sonde_inspection_totals *totals, const sn_graph *g,
                                   sn_allocator *alloc, sonde_error *err);
/* What one run of this binding needs. */
sonde_status sn_inspect_memory(sonde_inspection_totals *totals, const sn_binding *b,
                               sn_allocator *alloc, sonde_error *err);

#endif
