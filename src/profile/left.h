/* SPDX-License-Identifier: Apache-2.0 */
/* Runs whose spans are left out of a file, so that its size has a bound. What summaries need of
 * them stays in the profile (sn_prof_left), so that figures are those of all runs. */
#ifndef SN_PROFILE_LEFT_H
#define SN_PROFILE_LEFT_H

#include "profile/profile.h"

/* A profile with fewer runs: it borrows everything of the one it is made of but spans, counters and
 * what was left out, and must not outlive it. */
typedef struct sn_prof_limited {
    sn_profile shown;
    char note[160];
} sn_prof_limited;

/* At most `most` measured runs (1 at least), and one more for every step that none of these
 * executes: the first ones, the slowest ones, and of the others an even sample. Of the warm-up runs
 * the first ones stay. Spans of no run stay. */
sonde_status sn_profile_limit(const sn_profile *p, size_t most, sn_prof_limited *out,
                              sonde_error *err);
void sn_profile_limited_free(sn_prof_limited *l);
/* Measured runs, those that are left out not counted. */
sonde_status sn_profile_count_runs(const sn_profile *p, size_t *n, sonde_error *err);

/* The quantiles of sn_prof_left_step.points. */
extern const double sn_left_quantiles[SN_LEFT_POINTS];
/* Samples that have these quantiles, for who needs those of several steps together. A file may say
 * any number of calls, so there is a most. */
size_t sn_left_samples(const sn_prof_left_step *s, double *to);
static inline size_t sn_left_count(const sn_prof_left_step *s)
{
    return s->calls < 1                              ? 0
           : s->calls < (double)SN_LEFT_MOST_SAMPLES ? (size_t)s->calls
                                                     : SN_LEFT_MOST_SAMPLES;
}
/* What was left out of this row, or NULL. `step`: SN_LEFT_MEMORY and SN_LEFT_OTHER, too. They stand
 * in order of these numbers. */
const sn_prof_left_step *sn_left_of(const sn_profile *p, uint32_t step);
/* The note of a profile that was read says it. */
sonde_status sn_left_tell(sn_profile *p, sonde_error *err);
/* Steps into their order; what is told twice of one is added up. */
void sn_left_sort(sn_profile *p);
/* Measured runs that have spans. */
size_t sn_left_kept(const sn_profile *p);
/* "the spans of 12 of 3,400 runs are here …" into `text`, where something was left out; else "". */
const char *sn_left_note(const sn_profile *p, size_t kept, char text[160]);

#endif
