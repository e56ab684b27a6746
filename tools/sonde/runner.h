/* SPDX-License-Identifier: Apache-2.0 */
/* Running a loaded model again and again, for `run` and `profile`; in several instances at once
 * where --instances asks for them. */
#ifndef SONDE_TOOL_RUNNER_H
#define SONDE_TOOL_RUNNER_H

#include "tool.h"

/* Runs take the sets of inputs in turn: one, or one for each image of a folder. Output k of set s
 * stands at s * outputs + k; every instance has as many. */
typedef struct runner {
    loaded model;
    list images;         /* what the sets were made of; none: a single one */
    size_t skipped;      /* images that cannot be read */
    feeds *in;           /* one for each set */
    size_t sets;         /* at least 1 */
    size_t outputs;      /* of the model */
    char **names;        /* of the outputs: "scores"; of several sets "cat.jpg/scores" */
    sonde_value **out;   /* of the last run with each set; the first instance's, then the others' */
    size_t n_out;        /* those of sets that the first instance has run */
    double *ms;          /* latency of every measured run, of all instances */
    size_t runs, least;  /* at least so many of each instance where a duration is given */
    bool stop_when_full; /* a duration ends early when the recorder is nearly full, not before
                            `least` runs */
    double wall_ms;      /* from the common start to the end of the last measured run */
    bool cut;            /* a signal ended it: there are no outputs */
    void (*first)(void *user); /* NULL, or to be told that a measured run has ended */
    void *user;
} runner;

/* Loads the model and makes its inputs. */
int runner_open(runner *r, const run_setup *s, const char *model);
/* `warmup` runs, then `iterations` measured ones, or as many as the duration holds where that is
 * -1, at least `least` and at most `most`. With -v the first run prints every step: who shows
 * times asks for a warm-up then. A signal ends it early, which is said: EXIT_OK if a run was
 * measured, of which then no outputs are left. */
int runner_run(runner *r, const run_setup *s, int64_t warmup, int64_t iterations, size_t most);
void runner_close(runner *r);
/* Lets go of values; their places become NULL. */
void values_drop(sonde_value **values, size_t n);
/* Measured samples per second: runs of all instances times their batch. */
double runner_throughput(const runner *r);
/* "2 instances of 1 thread each: 123.4 samples per second"; nothing for one. */
void runner_print_instances(const runner *r);

/* Ends the recording that setup.record_level began and prints its table. */
int runner_table(const runner *r, bool by_shape);

/* Prints every output, those of an image under its path. */
void runner_print(const runner *r, const value_options *o);

/* Compares the outputs of every instance with those in a file (by name, or in order) or in a
 * test-data folder. */
int runner_check(const runner *r, const tolerances *t, bool quiet, const char *path);

/* `"latency_ms":{…}` and what else `run` and `profile` say alike. */
void runner_json(const runner *r, text *t);

#endif
