/* SPDX-License-Identifier: Apache-2.0 */
/* Where models are tried: contexts with little memory, which count what they allocate, and a
 * watcher that cancels what takes too long. All live as long as the process, so that an input costs
 * only what its model costs. */
#ifndef SONDE_TESTS_FUZZ_PLACE_H
#define SONDE_TESTS_FUZZ_PLACE_H

#include <stdint.h>

#include "sonde/sonde.h"

/* A context with one thread for each of a few instruction sets; a number without one gets the
 * first. NULL: none could be made. */
sonde_context *place_context(uint32_t level);
/* After each input: all memory of that context must be back, which finds leaks at once and exactly.
 * Ends the process if it is not. */
void place_check(uint32_t level);

/* What runs between the two is cancelled through the token after about so many milliseconds. */
sonde_cancel_token *watch_begin(unsigned ms);
void watch_end(void);

_Noreturn void fuzz_fail(const char *what, const char *message);
/* An internal error ends the process. */
void fuzz_check(sonde_status st, const sonde_error *err);

#endif
