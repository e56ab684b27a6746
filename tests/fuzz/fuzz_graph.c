/* SPDX-License-Identifier: Apache-2.0 */
/* Valid models, changed as models: attributes, shapes, edges, types, operators, versions, small
 * constants, bodies and functions, one to four things at a time and still protobuf. What fuzz_model
 * does to the reader this does to everything behind it. */
#include "fuzz/coverage.h"
#include "fuzz/flags.h"
#include "fuzz/mutate.h"
#include "fuzz/run_model.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size); /* libFuzzer's own */

/* Flags that suit this harness, before those of the caller: few changes on top of each other, for
 * one that goes wrong spoils the rest, and no weighing of inputs by how rare what they cover is,
 * which costs more than running them, nor a look into the folder for what others found. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static char *const flags[] = {"-mutate_depth=2", "-entropic=0", "-reload=0", NULL};
    fuzz_add_flags(argc, argv, flags);
    return 0;
}

/* A model that did not become a session is rarely worth keeping: its children would fail as it did.
 * Most are made to look as if they covered nothing. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run_reached reached = run_model(data, size, run_steer(data, size));
    if (reached < RUN_MADE && size % 16)
        fuzz_forget_coverage();
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
