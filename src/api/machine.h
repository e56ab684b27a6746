/* SPDX-License-Identifier: Apache-2.0 */
/* What a context knows of its machine, and what is counted for it. */
#ifndef SN_API_MACHINE_H
#define SN_API_MACHINE_H

#include <pthread.h>

#include "base/counters.h"
#include "compute/peaks.h"
#include "profile/profile.h"
#include "sonde/sonde.h"

typedef struct sn_machine {
    pthread_mutex_t lock; /* of everything here; held alone or inside the context's */
    bool looked;          /* for the file */
    sn_peaks one, all;    /* threads 0: not known */
    uint64_t measured_at_s;
    char path[1024], levels[128];
    sn_counters *hw; /* opened at first use, closed with the context */
    bool counting, counted;
    sn_usage began, used;
    char note[512]; /* why there are no hardware counters; "" */
} sn_machine;

/* Fill the profile's peaks and counts. */
void sn_api_describe_peaks(sonde_context *c, sn_profile *p);
void sn_api_peaks_for(sonde_context *c, int threads, sn_profile *p); /* of that many threads */
void sn_api_describe_counters(sonde_context *c, sn_profile *p);
/* Reading the counters before and after a step: part of what recording it costs. */
double sn_api_counters_cost_ns(sonde_context *c);

#endif
