/* SPDX-License-Identifier: Apache-2.0 */
/* What inspect has found out, for the text and for JSON. */
#ifndef SONDE_TOOL_INSPECT_H
#define SONDE_TOOL_INSPECT_H

#include "sonde/experimental/inspect.h"
#include "tool.h"

typedef struct inspect_options {
    run_setup setup;
    list outputs;
    const char *json, *graph;
    bool nodes, forms, operators, optimized;
    saving_options saving;
} inspect_options;

typedef struct inspected {
    const loaded *l;
    sonde_inspection *model, *session; /* session: NULL where the model cannot be run */
    const sonde_inspection *shown;     /* whose operators and nodes are listed: one of these */
    sonde_inspection_totals totals;    /* of the model */
    sonde_inspection_totals counted;   /* of the graph that is shown */
    sonde_inspection_totals run;       /* of one run; bound 0: not known */
    char *why_not;                     /* why it is not known; NULL: it is, or nothing can run */
    list fitting;                      /* sizes with which it would be: "height=48" */
} inspected;

/* Input or output number `index`: of the session, or of the model that cannot be run. False: past
 * the end. */
bool inspected_port(const inspected *in, bool inputs, size_t index, sonde_type_info *info);
int inspect_json(const inspected *in, const inspect_options *o);

#endif
