/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of libFuzzer that suit a harness. */
#ifndef SONDE_TESTS_FUZZ_FLAGS_H
#define SONDE_TESTS_FUZZ_FLAGS_H

/* Puts `flags`, ended by NULL, before those of the caller, which win. For LLVMFuzzerInitialize. */
void fuzz_add_flags(int *argc, char ***argv, char *const *flags);

#endif
