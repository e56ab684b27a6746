/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this process has been given the registers of AMX. */
#ifndef SONDE_TESTS_AMX_H
#define SONDE_TESTS_AMX_H

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* 1: it may use them; 0: nobody asked yet; -1: there are none, or the kernel does not tell. */
static inline int amx_permission(void)
{
#if defined(__x86_64__)
    enum { ARCH_GET_XCOMP_SUPP = 0x1021, ARCH_GET_XCOMP_PERM = 0x1022, XFEATURE_XTILEDATA = 18 };
    uint64_t supported = 0, permitted = 0;
    if (syscall(SYS_arch_prctl, ARCH_GET_XCOMP_SUPP, &supported) != 0 ||
        !(supported >> XFEATURE_XTILEDATA & 1) ||
        syscall(SYS_arch_prctl, ARCH_GET_XCOMP_PERM, &permitted) != 0)
        return -1;
    return (int)(permitted >> XFEATURE_XTILEDATA & 1);
#else
    return -1;
#endif
}

#endif
