/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor found: each with its evidence and what to do about it. */
#ifndef SONDE_TOOL_DOCTOR_H
#define SONDE_TOOL_DOCTOR_H

#include "runner.h"
#include "sonde/experimental/findings.h"
#include "sonde/experimental/inspect.h"

/* ---- doctor_findings.c ---- */
/* All texts are from malloc, with names as the model has them: what is printed goes through
 * printable(). */
typedef struct findings {
    sonde_finding *items;
    size_t n;
} findings;

/* Takes over what was said and the evidence, and copies the rest. */
void found(findings *f, sonde_severity severity, const char *topic, char *said, char *evidence,
           const char *remedy);
/* The same with a remedy of its own, which it takes over too. */
void found_with(findings *f, sonde_severity severity, const char *topic, char *said, char *evidence,
                char *remedy);
void findings_free(findings *f);
/* What the library says, which is released. */
void found_all(findings *f, sonde_findings *said);
/* What the profile alone says. */
int look_at_profile(findings *f, const sonde_profile *profile);

/* The first few names with their shares: "conv1 (Conv) 97.6 %, fc (Gemm) 1.1 %". The text is to be
 * freed. */
typedef struct few {
    text t;
    int n;
} few;
void few_add(few *w, const char *name, double share);

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

/* doctor_machine.c. A quick look leaves out how even the times of equal work are, which takes 0.15
 * s and more. */
int look_at_machine(findings *f, sonde_context *context, bool quick);
/* doctor_model.c: runs the model for a while. */
int look_at_model(findings *f, const run_setup *s, const char *model);
/* doctor_layout.c: reorders at the borders of the blocked layout. */
int look_at_reorders(findings *f, const run_setup *s, const char *model,
                     const sonde_profile *profile);
/* doctor_denormals.c: numbers that are all but 0 among values and weights. */
int look_for_denormals(findings *f, const run_setup *s, const char *model);

#endif
