/* SPDX-License-Identifier: Apache-2.0 */
/* What a context knows of its machine, and what is counted for it. */
#ifndef SN_RECORDS_MACHINE_H
#define SN_RECORDS_MACHINE_H

#include <pthread.h>

#include "base/context.h"
#include "base/counters.h"
#include "compute/peaks.h"
#include "profile/profile.h"

typedef struct sn_machine {
    sn_context *ctx;
    pthread_mutex_t lock; /* of everything here; held alone or inside the records' */
    bool looked;          /* for the file */
    sn_peaks one, all;    /* threads 0: not known */
    uint64_t measured_at_s;
    char path[1024], levels[128], unused[128];
    sn_counters *hw; /* opened at first use, closed with the context */
    bool counting, counted;
    sn_usage began, used;
    char note[512]; /* why there are no hardware counters; "" */
} sn_machine;

void sn_machine_init(sn_machine *m, sn_context *ctx);
void sn_machine_fini(sn_machine *m);
void sn_machine_after_fork(sn_machine *m); /* in the child */

/* ---- peaks ---- */
/* What makes figures of this build useless to others, "" for a release; such peaks are not kept. */
const char *sn_machine_build_note(void);
/* As measured here or read from the file; threads 0: not known. */
void sn_machine_peaks(sn_machine *m, sn_peaks *one, sn_peaks *all, uint64_t *measured_at_s);
/* The instructions that make these products here, "" where there are none. */
const char *sn_machine_instructions(const sn_machine *m, sn_arithmetic a);
/* Measures them and keeps them in the file. */
sonde_status sn_machine_calibrate(sn_machine *m, sonde_error *err);

/* ---- counters ---- */
/* SONDE_OK, or why there are no hardware counters; what the system counts is counted even then. */
sonde_status sn_machine_counters_start(sn_machine *m, sonde_error *err);
sonde_status sn_machine_counters_stop(sn_machine *m, sonde_error *err);
/* Reading the counters before and after a step: part of what recording it costs. */
double sn_machine_counters_cost_ns(sn_machine *m);

/* ---- into a profile ---- */
void sn_machine_describe_peaks(sn_machine *m, int threads, sn_profile *p); /* of that many */
void sn_machine_describe_counters(sn_machine *m, sn_profile *p);

#endif
