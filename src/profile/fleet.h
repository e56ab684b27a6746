/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of many profiles side by side: by host, by worker, by version of the model, and the
 * workers that are slower than those that do the same. Profiles are looked at one after the other
 * and then not needed any more; what stays is 8 bytes for each measured run, and a row for each
 * operator of each worker. */
#ifndef SN_PROFILE_FLEET_H
#define SN_PROFILE_FLEET_H

#include "profile/profile.h"

typedef enum sn_fleet_by { SN_FLEET_HOST, SN_FLEET_WORKER, SN_FLEET_VERSION } sn_fleet_by;

typedef struct sn_fleet_op { /* an operator type of one profile, or "[Other]" */
    const char *name;
    double usual_ns; /* per run */
} sn_fleet_op;

typedef struct sn_fleet_member { /* one profile */
    const char *host, *worker, *version, *model;
    uint64_t runs, warmups, dropped;
    uint64_t operators, operator_ns; /* of measured runs: how many, and their own time as it was
                                        recorded, to the nanosecond */
    uint64_t first_ns, last_ns;      /* of measured runs, by the wall clock; 0: there are none */
    double *wall_ns;                 /* of measured runs, ascending, without the recorder's cost */
    double p50_ns;
    bool incomplete;
    SN_VEC(sn_fleet_op) ops;
} sn_fleet_member;

typedef struct sn_fleet {
    sn_allocator *alloc;
    sn_arena arena;
    SN_VEC(sn_fleet_member) members;
} sn_fleet;

void sn_fleet_init(sn_fleet *f, sn_allocator *alloc);
void sn_fleet_free(sn_fleet *f);
/* A profile that is not joined: its start_wall_ns counts. Nothing of it is kept. */
sonde_status sn_fleet_add(sn_fleet *f, const sn_profile *p, sonde_error *err);
/* The workers of a joined profile, or the profile itself. */
sonde_status sn_fleet_add_all(sn_fleet *f, const sn_profile *p, sonde_error *err);

/* Texts are "" where the profiles of the row differ, or say nothing. */
typedef struct sn_fleet_row {
    const char *host, *worker, *version, *model;
    uint64_t profiles, incomplete; /* how many, and how many of them end early */
    uint64_t runs, warmups, dropped, operators, operator_ns;
    double runs_per_s; /* from the first start to the last end of a measured run */
    double share;      /* 0…1 of the operator_ns of all rows */
    sn_prof_stats wall_ns;
} sn_fleet_row;

typedef struct sn_fleet_rows {
    SN_VEC(sn_fleet_row) list; /* by names, numbers in them by value */
    sn_allocator *alloc;
} sn_fleet_rows;
sonde_status sn_fleet_rows_of(const sn_fleet *f, sn_fleet_by by, sn_fleet_rows *rows,
                              sonde_error *err);
void sn_fleet_rows_free(sn_fleet_rows *rows);

/* A worker is compared with all that run the same version of the same model: it is a straggler if
 * its median lies above theirs by 10 % at least, and by 3 scaled median absolute deviations. Only
 * workers with SN_FLEET_RUNS measured runs count, and there must be SN_FLEET_PEERS of them. */
enum { SN_FLEET_RUNS = 5, SN_FLEET_PEERS = 3 };
#define SN_FLEET_SLOWER     1.10
#define SN_FLEET_DEVIATIONS 3.0

typedef struct sn_fleet_straggler {
    const char *host, *worker, *version, *model;
    double p50_ns, usual_ns;   /* its median, and the median of all */
    size_t peers;              /* workers that were compared, with itself */
    const char *op;            /* the operator whose time differs most; "" when none is slower */
    double op_ns, op_usual_ns; /* per run: what it usually takes, and the median of all */
} sn_fleet_straggler;

typedef struct sn_fleet_stragglers {
    SN_VEC(sn_fleet_straggler) list; /* the slowest, beside what is usual, first */
    size_t compared, uncompared;     /* workers with peers enough, and without */
    sn_allocator *alloc;
} sn_fleet_stragglers;
sonde_status sn_fleet_find_stragglers(const sn_fleet *f, sn_fleet_stragglers *out,
                                      sonde_error *err);
void sn_fleet_stragglers_free(sn_fleet_stragglers *s);

/* Names in the order of people: "worker 2" before "worker 10". */
int sn_fleet_compare_names(const char *a, const char *b);

#endif
