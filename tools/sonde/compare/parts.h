/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `sonde compare`: samples, another runtime, the table. */
#ifndef SONDE_COMPARE_PARTS_H
#define SONDE_COMPARE_PARTS_H

#include "sonde/experimental/accuracy.h"
#include "sonde/experimental/samples.h"
#include "tool.h"

/* ---- samples.c ---- */
/* Sets of inputs: those of each file of a folder, parts of arrays that carry samples on axis 0, or
 * random ones. Nothing is kept of them but what one file holds. */
typedef struct samples {
    const loaded *model;
    const run_setup *setup;
    list files;            /* of a folder; empty: `arrays`, or made up */
    size_t *counts;        /* samples of each file */
    sonde_samples *arrays; /* what -i gives, or the file that was opened last: */
    size_t open;           /* its number; SIZE_MAX: none */
    bool made_up;
    bool said;      /* what is made up */
    size_t skipped; /* files of a folder that cannot be read */
    size_t n;
} samples;
/* At most `most` samples; -1: all that there are, and one that is made up. */
int samples_open(samples *s, const loaded *l, const run_setup *setup, int64_t most);
int samples_get(samples *s, size_t index, feeds *f); /* feeds_free it, also after an error */
void samples_close(samples *s);

/* ---- peer.c ---- */
/* Another runtime, in a process of its own, by the protocol of docs/benchmarking.md. */
typedef struct peer peer;
typedef struct peer_options {
    const char *against, *python;
    list peers;
    double timeout_s;
    const run_setup *setup;
} peer_options;
/* What --against says. "sonde" with variants only changes *model, which the peer must outlive.
 * Returns as options_parse does. */
int peer_open(peer **p, const peer_options *o, model_options *model);
bool peer_is_other(const peer *p); /* not sonde itself */
void peer_close(peer *p);
/* As sonde_accuracy_side wants it; `user` is the peer. */
sonde_status peer_run(void *user, sonde_model *model, const char *const *input_names,
                      sonde_value *const *inputs, size_t input_count, sonde_value **outputs,
                      size_t output_count, sonde_error *err);

/* ---- table.c ---- */
typedef struct table_of {
    const sonde_accuracy *accuracy;
    size_t top; /* rows of the operators that add most */
    bool all;   /* every tensor */
} table_of;
int compare_table(const table_of *t);

#endif
