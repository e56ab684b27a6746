/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer reads its arguments after LLVMFuzzerInitialize, and the last of equal ones counts. */
#include "fuzz/flags.h"

#include <stdlib.h>
#include <string.h>

void fuzz_add_flags(int *argc, char ***argv, char *const *flags)
{
    size_t n = 0, given = (size_t)*argc;
    while (flags[n])
        n++;
    char **all = malloc((given + n + 1) * sizeof *all);
    if (!all)
        return;
    all[0] = (*argv)[0];
    memcpy(all + 1, flags, n * sizeof *all);
    memcpy(all + 1 + n, *argv + 1, given * sizeof *all); /* and the NULL behind them */
    *argc += (int)n;
    *argv = all; /* for the life of the process */
}
