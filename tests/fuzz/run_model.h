/* SPDX-License-Identifier: Apache-2.0 */
/* One model from bytes to results, through the public API alone, for the fuzzers: load, make a
 * session, run it on made-up inputs. What the bytes may cost is bounded: memory by the context,
 * inputs by their size, a run by a watcher that cancels it. A leak or an internal error ends the
 * process; so do, by themselves, sanitizers' reports. */
#ifndef SONDE_TESTS_FUZZ_RUN_MODEL_H
#define SONDE_TESTS_FUZZ_RUN_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* How far a model came. */
typedef enum run_reached {
    RUN_REFUSED, /* not read */
    RUN_LOADED,
    RUN_MADE,  /* a session exists */
    RUN_BOUND, /* and fits its inputs; only told apart when statistics are asked for */
    RUN_DONE,
    RUN_REACHED_COUNT
} run_reached;

/* `steer` decides all that the model does not say: values and free dims of inputs, passes on or
 * off, precision, threads, instruction set, which values are fed and fetched, what is run twice. 0:
 * plainly. SONDE_FUZZ_STATS=1 in the environment prints how far models came when the process ends;
 * 2 also why they came no further. */
run_reached run_model(const uint8_t *data, size_t size, uint64_t steer);

/* A file may end in its own steering: a field that protobuf readers skip. */
#define RUN_STEER_FIELD 2000
uint64_t run_steer(const uint8_t *data, size_t size); /* 0 when there is none */

#endif
