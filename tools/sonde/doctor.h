/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor found: each with its evidence and what to do about it. */
#ifndef SONDE_TOOL_DOCTOR_H
#define SONDE_TOOL_DOCTOR_H

#include "runner.h"

typedef enum severity { GOOD, NOTE, SLOW } severity;

typedef struct finding {
    severity severity;
    const char *topic;     /* "cores" */
    char *said, *evidence; /* from text_of; the evidence may be "" */
    const char *remedy;    /* "" when there is nothing to do */
} finding;

typedef struct findings {
    finding *items;
    size_t n;
} findings;

/* Takes over both texts. */
void found(findings *f, severity s, const char *topic, char *said, char *evidence,
           const char *remedy);

/* doctor_machine.c */
int look_at_machine(findings *f, sonde_context *context);
/* doctor_model.c: runs the model for a while. */
int look_at_model(findings *f, const options *o, const char *model);

#endif
