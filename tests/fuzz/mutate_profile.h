/* SPDX-License-Identifier: Apache-2.0 */
/* Changing a saved profile so that it mostly stays one. */
#ifndef SONDE_TESTS_FUZZ_MUTATE_PROFILE_H
#define SONDE_TESTS_FUZZ_MUTATE_PROFILE_H

#include <stddef.h>
#include <stdint.h>

/* In place, up to `room` bytes. The new size; 0: there was no place for a change. */
size_t mutate_trace(uint8_t *data, size_t size, size_t room, uint64_t seed); /* a .pftrace */
size_t mutate_json(uint8_t *data, size_t size, size_t room, uint64_t seed);

#endif
