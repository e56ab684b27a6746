/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine reaches at best, measured: every arithmetic there are instructions for, among
 * those in use, and reading from each level of memory. The roof that attained figures are held
 * against. */
#ifndef SN_COMPUTE_PEAKS_H
#define SN_COMPUTE_PEAKS_H

#include "base/alloc.h"
#include "base/arithmetic.h"
#include "base/cpu.h"
#include "base/pool.h"
#include "kernels/kernels.h"

typedef struct sn_peaks {
    int threads;
    double gops[SN_ARITH_COUNT]; /* multiply-adds, two operations each; 0 = no instructions */
    double l2_gbps, l3_gbps, memory_gbps; /* reading; GB of 10^9 bytes; 0 = not measured */
} sn_peaks;

/* Takes one to two seconds and, for that time, memory of twice the third-level cache (at most 512
 * MiB; a machine that cannot give it leaves memory_gbps at 0). `one` is of a single thread, `all`
 * of the pool's; the pool must be idle. */
/* AMX must have been asked for (sn_cpu_request), if the flags have it. */
sonde_status sn_peaks_measure(const sn_cpu *cpu, sn_pool *pool, sn_allocator *alloc, sn_peaks *one,
                              sn_peaks *all, sonde_error *err);

/* The kernel that makes products of this kind in registers (signatures.h, i8_peak), its name, and
 * the products of a round; no kernel: this CPU has no instructions for them, or they are f32. */
typedef struct sn_peak_kernel {
    sn_product_peak_fn *fn;
    const char *name;
    double products;
} sn_peak_kernel;
sn_peak_kernel sn_peaks_kernel(sn_arithmetic a, const sn_kernels *k);

/* The instruction set that makes these products on such a CPU ("vnni"); "" where none does. */
const char *sn_peaks_instructions(sn_arithmetic a, uint32_t cpu_flags);

#endif
