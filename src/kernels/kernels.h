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

typedef struct sn_kernels {
#define SN_SLOT(slot, signature) signature##_fn slot; const char *slot##_name;
#include "kernels/slots.inc"
#undef SN_SLOT
} sn_kernels;

/* Prototypes of every variant. */
#define SN_SLOT(slot, signature) typedef signature##_fn sn_slot_type_##slot;
#include "kernels/slots.inc"
#undef SN_SLOT

/* The table for these CPU flags (SN_CPU_*); built once per distinct set, never freed, thread-safe. */
const sn_kernels *sn_kernels_get(uint32_t cpu_flags);

#endif
