/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a kernel is plain C, by its name. */
#ifndef SN_FINDINGS_PLAIN_KERNEL_H
#define SN_FINDINGS_PLAIN_KERNEL_H

#include <stdbool.h>
#include <string.h>

/* Kernels end with their instruction set, "_ref" where that is plain C; operators without kernels
 * call their loops plain. */
static inline bool sn_kernel_is_plain(const char *kernel)
{
    const size_t n = kernel ? strlen(kernel) : 0;
    return n && ((n >= 4 && strcmp(kernel + n - 4, "_ref") == 0) || strstr(kernel, "plain"));
}

#endif
