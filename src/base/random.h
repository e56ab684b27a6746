/* SPDX-License-Identifier: Apache-2.0 */
/* splitmix64 (Steele, Lea, Flood 2014): numbers that look random and are the same everywhere.
 * Number i of a seed is sn_mix64(seed + i * SN_MIX64_STEP), so any of them can be had without the
 * others. */
#ifndef SN_BASE_RANDOM_H
#define SN_BASE_RANDOM_H

#include <stdint.h>

#define SN_MIX64_STEP UINT64_C(0x9E3779B97F4A7C15) /* 2^64 divided by the golden ratio */

static inline uint64_t sn_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

#endif
