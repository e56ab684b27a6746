/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs for a model nobody has seen: small, of the type it declares, in one of several tastes.
 * Random numbers start plain: the state 0 gives 0 for ever, so a file without steering is run
 * without anything special. */
#ifndef SONDE_TESTS_FUZZ_VALUES_H
#define SONDE_TESTS_FUZZ_VALUES_H

#include "sonde/sonde.h"

static inline uint64_t fuzz_random(uint64_t *state)
{
    if (*state == 0)
        return 0;
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
/* In [0, n); 0 when n is 0. */
static inline uint32_t fuzz_below(uint64_t *state, uint32_t n)
{
    return n ? (uint32_t)((fuzz_random(state) >> 32) * n >> 32) : 0;
}

/* NULL when the type is too large or cannot be made. */
sonde_value *fuzz_value(sonde_context *c, const sonde_type_info *info, uint64_t *random);

#endif
