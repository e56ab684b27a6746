/* SPDX-License-Identifier: Apache-2.0 */
/* Valid models, changed as models: attributes, shapes, edges, types, operators, versions, small
 * constants, bodies and functions, one to four things at a time and still protobuf. What fuzz_model
 * does to the reader this does to everything behind it. */
#include "fuzz/mutate.h"
#include "fuzz/run_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size); /* libFuzzer's own */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run_model(data, size, run_steer(data, size));
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    size_t n = mutate_model(data, size, data, max_size, seed);
    return n ? n : LLVMFuzzerMutate(data, size, max_size);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max_size, unsigned seed)
{
    return mutate_cross(a, a_size, b, b_size, out, max_size, seed);
}
