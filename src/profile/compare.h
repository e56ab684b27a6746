/* SPDX-License-Identifier: Apache-2.0 */
/* Two profiles side by side: what changed, and whether that is more than noise. A row's samples are
 * its time in each measured iteration. Medians throughout: one slow run says nothing about a
 * change. Many rows are compared at once, and the intervals of all of them together are wrong with
 * a chance of SN_COMPARE_ERROR. Of that each row has the part that its share of the run is, so that
 * a large operator can be told from noise however many small ones there are. Pure functions of the
 * samples: no chance, no clock. */
#ifndef SN_PROFILE_COMPARE_H
#define SN_PROFILE_COMPARE_H

#include "profile/profile.h"

typedef enum sn_verdict {
    SN_VERDICT_SAME,    /* no difference worth a name, and we would have seen one */
    SN_VERDICT_FASTER,  /* by SN_COMPARE_EFFECT or more, and hardly by chance */
    SN_VERDICT_SLOWER,  /* the same, the other way */
    SN_VERDICT_UNCLEAR, /* too few samples, or too much noise, to say */
    SN_VERDICT_NEW,     /* only in the second */
    SN_VERDICT_GONE     /* only in the first */
} sn_verdict;
const char *sn_verdict_name(sn_verdict v); /* "slower" */

#define SN_COMPARE_EFFECT 0.02 /* smaller changes count as none: other runs differ that much */
#define SN_COMPARE_CLOSE  0.05 /* "same" needs an interval inside ± this */
#define SN_COMPARE_ERROR  0.05 /* of all intervals of a comparison together: that one is wrong */
#define SN_COMPARE_FEWEST 5    /* samples on each side */

typedef struct sn_change {
    double old_median, new_median; /* 0 where there are no samples */
    double ratio;     /* of the medians, new / old, or the median over turns; 1 where there is
                         nothing to divide */
    double low, high; /* its interval; 0 and infinity where it cannot be known */
    double p;         /* that equal times would differ this much: 1 less the level at which the
                         interval ends at 1 */
    size_t turns;     /* whose ratios `ratio` is the median of; 0: it is the ratio of the medians */
    sn_verdict verdict;
} sn_change;
/* Samples are in the order of time; `error` is the chance that the interval may be wrong, such as
 * SN_COMPARE_ERROR where nothing else is compared; `room` is for n + m numbers. */
void sn_compare_samples(const double *old, size_t n, const double *now, size_t m, double error,
                        double *room, sn_change *out);
/* The same of samples that were taken in turns, with the logarithms of the ratios of each turn
 * (turns.h), not more of them than samples. */
void sn_compare_turns(const double *old, size_t n, const double *now, size_t m,
                      const double *ratios, size_t turns, double error, double *room,
                      sn_change *out);

typedef struct sn_compare_row {
    const char *name, *op_type, *example; /* as in sn_prof_row; BY_NODE: example is all the nodes */
    double old_ns, new_ns;                /* means per iteration; the rows add up to the total */
    double old_share, new_share;          /* of the medians: 0…1 of the median wall time */
    double old_calls, new_calls;          /* per iteration */
    sn_change change;
} sn_compare_row;

typedef struct sn_comparison {
    sn_compare_row total; /* the wall time of an iteration */
    uint64_t old_iterations, new_iterations;
    SN_VEC(sn_compare_row) rows; /* largest change of the median first */
    sn_allocator *alloc;
    sn_arena arena;
} sn_comparison;

/* Rows are the same when their keys are (sn_prof_key); BY_NODE, when they share a node, so that a
 * graph as it is in its file can be compared with what passes made of it. SONDE_INVALID_ARGUMENT
 * when a profile has no measured iteration. */
sonde_status sn_profile_compare(const sn_profile *old, const sn_profile *now, sn_prof_key key,
                                sn_allocator *alloc, sn_comparison *out, sonde_error *err);
void sn_comparison_free(sn_comparison *c);

#endif
