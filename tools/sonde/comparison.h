/* SPDX-License-Identifier: Apache-2.0 */
/* What changed between two sets of runs, on the terminal, as JSON and as an exit status: for `diff`
 * and `history diff`. */
#ifndef SONDE_TOOL_COMPARISON_H
#define SONDE_TOOL_COMPARISON_H

#include "sonde/experimental/profile.h"
#include "tool.h"

typedef struct comparison {
    const sonde_comparison *rows; /* NULL: there is only the total */
    sonde_change total;
    sonde_by by;
    double limit; /* 0.05 for 5 %; < 0: none */
    int failures;
} comparison;

/* What --by says. Returns as options_parse does. */
int comparison_by(const char *said, sonde_by *by);
/* What a percentage says, as a share. The same. */
int comparison_limit(const char *option, const char *said, double *limit);
/* Compares what is in `c`; its total is set then. */
int comparison_make(comparison *c, const sonde_comparison *rows);
int comparison_print(const comparison *c);
/* `,"fail_above":…,"total":…,"rows":[…]`, the first only with a limit. */
int comparison_json(const comparison *c, text *t);
/* A number of JSON under a key, with a comma before it. */
void add_number(text *t, const char *key, double v);
/* Says what is slower by more than the limit, and counts it in `failures`. */
int comparison_judge(comparison *c);

#endif
