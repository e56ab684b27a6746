/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling: of all runs of a context one in N is recorded, and fewer where recording would take
 * more than a given share of the time. Others take the plain way; all they pay is one addition.
 * Only every Nth run is a candidate, and only candidates are timed: N times what they took stands
 * for the time of all. */
#ifndef SN_RECORDS_SAMPLER_H
#define SN_RECORDS_SAMPLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* 1 %: what is meant where nobody says how much recording may take. */
#define SN_SAMPLER_OVERHEAD 0.01

typedef struct sn_sampler {
    _Atomic uint32_t every;      /* one run of so many is a candidate; 0: nothing is sampled */
    _Atomic double max_overhead; /* recording's share of the time of runs; 1 and above: no bound */
    _Atomic uint64_t runs;       /* seen since the process began, and of those: */
    _Atomic uint64_t sampled,
        skipped; /* candidates that were recorded, and that the bound forbade */
    /* Of about the last seconds of running: */
    _Atomic double run_ns, cost_ns;
} sn_sampler;

typedef enum sn_sampling {
    SN_SAMPLE_NONE,    /* an ordinary run */
    SN_SAMPLE_SKIPPED, /* a candidate that costs too much: it is only timed */
    SN_SAMPLE_TAKEN    /* to be recorded */
} sn_sampling;

/* What the next run is; `cost_ns`: recording it takes about so long. Every answer but NONE is
 * followed by sn_sampler_ran. */
sn_sampling sn_sampler_next(sn_sampler *s, double cost_ns);
/* A candidate has taken `run_ns`, and recording it `cost_ns` of that (0: it was skipped). */
void sn_sampler_ran(sn_sampler *s, double run_ns, double cost_ns);
/* Recording's share of the time of about the last seconds of running; 0: not known yet. */
double sn_sampler_overhead(const sn_sampler *s);

#endif
