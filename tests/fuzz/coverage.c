/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer looks at one counter per edge of the code, after each run. The linker gives their
 * section a first and a last name, which this file can use because it is not instrumented itself.
 */
#include "fuzz/coverage.h"

#include <stdint.h>
#include <string.h>

extern uint8_t counters[] __asm__("__start___sancov_cntrs");
extern uint8_t counters_end[] __asm__("__stop___sancov_cntrs");

void fuzz_forget_coverage(void)
{
    memset(counters, 0, (size_t)(counters_end - counters));
}
