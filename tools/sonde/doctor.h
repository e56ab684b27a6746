/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor found: each with its evidence and what to do about it. */
#ifndef SONDE_TOOL_DOCTOR_H
#define SONDE_TOOL_DOCTOR_H

#include "runner.h"
#include "sonde/experimental/inspect.h"

typedef enum severity { GOOD, NOTE, SLOW } severity;

typedef struct finding {
    severity severity;
    const char *topic;     /* "cores" */
    char *said, *evidence; /* from text_of; the evidence may be "" */
    const char *remedy;    /* "" when there is nothing to do */
    char *own_remedy;      /* the same where it was made for this one, else NULL */
} finding;

typedef struct findings {
    finding *items;
    size_t n;
} findings;

/* Takes over both texts. */
void found(findings *f, severity s, const char *topic, char *said, char *evidence,
           const char *remedy);

/* The same with a remedy of its own, which it takes over too. */
void found_with(findings *f, severity s, const char *topic, char *said, char *evidence,
                char *remedy);

/* The first few names with their shares: "Conv 97.6 %, Gemm 1.1 %". */
typedef struct few {
    text t;
    int n;
    double share; /* of all, also those not named */
} few;
void few_add(few *w, const char *name, double share);
char *few_text(few *w); /* handed over */

/* doctor_open.c: the model opened without recording and without a word, and what its session makes
 * of the inputs. The runner is to be closed and the inspection released, also after an error. */
int open_to_inspect(runner *r, const run_setup *s, const char *model, sonde_inspection **look);

/* doctor_turns.c: a model run in two ways on one thread, in turns, so that what else the machine
 * does meets both.
 */
typedef struct turns {
    double first_ms, second_ms; /* medians */
    size_t pairs, faster;       /* of those, how often the second was faster */
} turns;
int take_turns(const run_setup *first, const run_setup *second, const char *model, turns *t);
bool second_is_faster(const turns *t); /* by 3 % or more, and in most of the pairs */

/* doctor_machine.c */
int look_at_machine(findings *f, sonde_context *context);
/* doctor_model.c: runs the model for a while. */
int look_at_model(findings *f, const run_setup *s, const char *model);
/* doctor_layout.c: reorders at the borders of the blocked layout. */
int look_at_reorders(findings *f, const run_setup *s, const char *model,
                     const sonde_profile *profile);
/* doctor_denormals.c: numbers that are all but 0 among values and weights. */
int look_for_denormals(findings *f, const run_setup *s, const char *model);

#endif
