/* SPDX-License-Identifier: Apache-2.0 */
/* Running a loaded model again and again, for `run` and `profile`. */
#ifndef SONDE_TOOL_RUNNER_H
#define SONDE_TOOL_RUNNER_H

#include "tool.h"

typedef struct runner {
    loaded model;
    feeds in;
    const char **names; /* of the outputs */
    sonde_value **out;  /* of the last run */
    size_t n_out;
    double *ms; /* latency of every measured run */
    size_t runs;
} runner;

/* Loads the model and makes its inputs. */
int runner_open(runner *r, const options *o, const char *model);
/* `warmup` runs, then `iterations` measured ones, or as many as `duration_s` holds where that is
 * -1, at least 10 and at most `most`. With -v the first measured run prints every step. */
int runner_run(runner *r, const options *o, int64_t warmup, int64_t iterations, size_t most);
void runner_close(runner *r);

/* Ends the recording that o->record_level began and prints its table. */
int runner_table(const runner *r, const options *o);

/* Compares the outputs with those in a file (by name, or in order) or in a test-data folder. */
int runner_check(const runner *r, const options *o, const char *path);

/* `"latency_ms":{…}` and what else `run` and `profile` say alike. */
void runner_json(const runner *r, const options *o, text *t);

#endif
