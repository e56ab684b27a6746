/* SPDX-License-Identifier: Apache-2.0 */
/* What it takes to compare times of several processes and machines: one moment on both clocks,
 * which monotonic clock that is, and how far the wall clock may be off. */
#ifndef SN_BASE_BOOT_H
#define SN_BASE_BOOT_H

#include "base/status.h"

/* The monotonic and the wall clock at one moment. */
typedef struct sn_moment {
    uint64_t mono_ns, wall_ns;
} sn_moment;
sn_moment sn_moment_now(void);

/* Processes with the same text have the same monotonic clock: the system's boot and, where it is
 * not the first one, the time namespace. "" when it cannot be read. */
enum { SN_BOOT_BYTES = 96 };
void sn_boot_name(char name[SN_BOOT_BYTES]);

/* By how much the wall clock may be wrong, as the kernel estimates from the last synchronisation;
 * 0: it is not synchronised, or does not say. */
uint64_t sn_wall_error_ns(void);

#endif
