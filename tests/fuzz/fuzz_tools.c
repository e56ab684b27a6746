/* SPDX-License-Identifier: Apache-2.0 */
/* Models changed as in fuzz_graph, in the hands of the tools for models: inspect, sparsify,
 * quantize, compare, whatif. */
#include "fuzz/coverage.h"
#include "fuzz/flags.h"
#include "fuzz/mutate.h"
#include "fuzz/place.h"
#include "fuzz/run_model.h"
#include "fuzz/tools.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size); /* libFuzzer's own */

/* For the reasons given in fuzz_graph. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static char *const flags[] = {"-mutate_depth=2", "-entropic=0", "-reload=0", NULL};
    fuzz_add_flags(argc, argv, flags);
    return 0;
}

/* Measuring takes far longer than the rest: one model in 16. */
static void use(subject *s)
{
    static void (*const tools[])(subject *) = {
        tool_quantize, tool_sparsify, tool_compare,  tool_inspect,  tool_quantize, tool_sparsify,
        tool_compare,  tool_inspect,  tool_quantize, tool_sparsify, tool_compare,  tool_quantize,
        tool_quantize, tool_compare,  tool_sparsify, tool_whatif};
    tools[fuzz_below(s->random, sizeof tools / sizeof *tools)](s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t random = run_steer(data, size);
    const uint32_t level = fuzz_below(&random, 6);
    sonde_context *c = place_context(level);
    sonde_model *model = NULL;
    sonde_error err;
    if (!c)
        return 0;
    const sonde_status st = sonde_model_load_memory(c, data, size, NULL, &model, &err);
    fuzz_check(st, &err);
    bool runs = false;
    if (st == SONDE_OK) {
        subject s;
        runs = subject_open(&s, c, model, &random);
        use(&s);
        subject_close(&s);
    }
    sonde_model_release(model);
    place_check(level);
    if (!runs && size % 16)
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
