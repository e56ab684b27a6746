/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a model: load, make a session, run. Whatever happens must be a status; crashes,
 * leaks and hangs are what the fuzzer looks for. fuzz_graph.c changes models more wisely. */
#include "fuzz/run_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run_model(data, size, run_steer(data, size));
    return 0;
}
