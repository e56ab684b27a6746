/* SPDX-License-Identifier: Apache-2.0 */
/* Telling libFuzzer that the input under way is not interesting, whatever it covered. */
#ifndef SONDE_TESTS_FUZZ_COVERAGE_H
#define SONDE_TESTS_FUZZ_COVERAGE_H

void fuzz_forget_coverage(void);

#endif
