/* SPDX-License-Identifier: Apache-2.0 */
/* What the tools for models do with a model nobody has seen: inspect, sparsify, quantise, compare,
 * what-if. Options and inputs are drawn from the model's own steering. */
#ifndef SONDE_TESTS_FUZZ_TOOLS_H
#define SONDE_TESTS_FUZZ_TOOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "sonde/sonde.h"

#define TOOL_PORTS 16

/* One model, and inputs that a session of it takes. */
typedef struct subject {
    sonde_context *context;
    sonde_model *model;
    const char *names[TOOL_PORTS];
    sonde_value *values[TOOL_PORTS];
    size_t n;
    sonde_session *session; /* that the names belong to; NULL: there are no inputs either */
    uint64_t *random;
} subject;

/* False: no session can be made, or it has inputs that cannot. */
bool subject_open(subject *s, sonde_context *c, sonde_model *model, uint64_t *random);
void subject_close(subject *s);

void tool_inspect(subject *s);
void tool_sparsify(subject *s);
void tool_quantize(subject *s);
void tool_compare(subject *s);
void tool_whatif(subject *s);

/* How often each came to an end: SONDE_FUZZ_STATS=1, as in run_model.h. */
void tools_count(const char *tool, sonde_status st);

#endif
