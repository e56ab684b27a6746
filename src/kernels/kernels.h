/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel table: one function pointer per slot, filled upward from the plain C reference to the
 * best variant the CPU flags allow. slots.inc lists slots with their signature, kernels.inc lists
 * variants; both expand to prototypes, dispatch, the comparison test and the benchmark.
 * Kernels are pure: sizes and strides in elements, exact bounds, no over-read, no allocation. */
#ifndef SN_KERNELS_KERNELS_H
#define SN_KERNELS_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "kernels/signatures.h"

/* Per slot the function and the name of the variant without "sn_": "f32_relu_avx512". */
typedef struct sn_kernels {
#define SN_SLOT(slot, signature)                                                                   \
    signature##_fn *slot;                                                                          \
    const char *slot##_name;
#include "kernels/slots.inc"
#undef SN_SLOT
} sn_kernels;

/* The table for these CPU flags (SN_CPU_*); built once per distinct set, never freed, thread-safe.
 */
const sn_kernels *sn_kernels_get(uint32_t cpu_flags);

/* One row of kernels.inc, for tests and benchmarks; NULL past the end. */
typedef struct sn_kernel_row {
    const char *slot, *signature; /* "f32_relu", "sn_f32_unary" */
    const char *name;             /* "f32_relu_avx512" */
    uint32_t flags;               /* SN_CPU_* it needs */
    unsigned block;   /* channel block of the blocked layout it works on: 8, 16; 0: any */
    double ulp;       /* tolerance against row 0 of the slot */
    void (*fn)(void); /* cast back to the signature's type */
} sn_kernel_row;
const sn_kernel_row *sn_kernel_row_get(size_t k);

/* Prototypes of every variant. */
#define SN_SLOT(slot, signature) typedef signature##_fn sn_slot_type_##slot;
#include "kernels/slots.inc"
#undef SN_SLOT
#define SN_KERNEL(slot, flags, symbol, ulp) extern sn_slot_type_##slot symbol;
#include "kernels/kernels.inc"
#undef SN_KERNEL

#endif
