/* SPDX-License-Identifier: Apache-2.0 */
/* Who contains whom: for every span the iteration it belongs to and its own time. Internal to this
 * room: summarise.c builds rows on it. */
#ifndef SN_PROFILE_NESTING_H
#define SN_PROFILE_NESTING_H

#include "profile/profile.h"

#define SN_PROF_NONE UINT32_MAX

typedef struct sn_prof_nest {
    sn_allocator *alloc;
    size_t n_spans;
    uint32_t *iteration; /* per span: number of its iteration (order of start), or SN_PROF_NONE */
    double *net_ns;      /* per span, OPERATOR and MEMORY: its time without nested ones and without
                            the recorder's cost */
    size_t n_iterations; /* warm-ups included */
    uint32_t *iteration_span; /* per iteration: its span */
    double *cost_ns;          /* per iteration: the recorder's cost inside it, already taken off */
} sn_prof_nest;

sonde_status sn_prof_nest_build(const sn_profile *p, sn_prof_nest *nest, sonde_error *err);
void sn_prof_nest_free(sn_prof_nest *nest);

#endif
