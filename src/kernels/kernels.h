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
#include "kernels/geometry.h"
#include "kernels/signatures.h"

/* Per slot the function, the name of the variant without "sn_" ("f32_relu_avx512"), and how it
 * divides its work. */
typedef struct sn_kernels {
#define SN_SLOT(slot, signature, read, weights, written, arrangement)                              \
    signature##_fn *slot;                                                                          \
    const char *slot##_name;                                                                       \
    sn_geometry slot##_geometry;
#include "kernels/slots.inc"
#undef SN_SLOT
} sn_kernels;

/* The table for these CPU flags (SN_CPU_*); built once per distinct set, never freed, thread-safe.
 */
const sn_kernels *sn_kernels_get(uint32_t cpu_flags);

/* A slot of slots.inc: what its variants have in common. */
typedef struct sn_kernel_slot {
    const char *name, *signature;   /* "f32_relu", "sn_f32_unary" */
    uint8_t read, weights, written; /* SONDE_DTYPE_* of elements; UNDEFINED: it has no weights */
    sn_arrangement arrangement;     /* of the weights */
} sn_kernel_slot;

/* What a slot multiplies: elements of its weights, or those it reads if it has none; and whether it
 * does so in tiles. Drivers make the arithmetic they tell of from this. */
enum {
#define SN_SLOT(slot, signature, read, weights, written, arrangement)                              \
    SN_PRODUCTS_##slot = SONDE_DTYPE_##weights ? SONDE_DTYPE_##weights : SONDE_DTYPE_##read,       \
    SN_TILED_##slot = SN_WEIGHTS_##arrangement == SN_WEIGHTS_CONV_TILES ||                         \
                      SN_WEIGHTS_##arrangement == SN_WEIGHTS_SPARSE_TILES,
#include "kernels/slots.inc"
#undef SN_SLOT
};

/* One row of kernels.inc, for tests and benchmarks; NULL past the end. */
typedef struct sn_kernel_row {
    const sn_kernel_slot *slot;
    const char *name; /* "f32_relu_avx512" */
    uint32_t flags;   /* SN_CPU_* it needs */
    sn_geometry geometry;
    double ulp;       /* tolerance against row 0 of the slot */
    void (*fn)(void); /* cast back to the signature's type */
} sn_kernel_row;
const sn_kernel_row *sn_kernel_row_get(size_t k);

/* Prototypes of every variant. */
#define SN_SLOT(slot, signature, read, weights, written, arrangement)                              \
    typedef signature##_fn sn_slot_type_##slot;
#include "kernels/slots.inc"
#undef SN_SLOT
#define SN_KERNEL(slot, flags, symbol, ulp, geometry) extern sn_slot_type_##slot symbol;
#include "kernels/kernels.inc"
#undef SN_KERNEL

#endif
