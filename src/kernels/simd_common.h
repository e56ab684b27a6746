/* SPDX-License-Identifier: Apache-2.0 */
/* What the templates need from the compiler, the same for every instruction set. */
#ifndef SN_KERNELS_SIMD_COMMON_H
#define SN_KERNELS_SIMD_COMMON_H

/* A loop of constant length that must become straight code: the arrays it indexes are registers. */
#if defined(__clang__)
#define SN_UNROLL    _Pragma("unroll")
#define SN_NO_UNROLL _Pragma("nounroll")
#else
#define SN_UNROLL    _Pragma("GCC unroll 64")
#define SN_NO_UNROLL _Pragma("GCC unroll 1")
#endif
#define SN_INLINE static inline __attribute__((always_inline))

#endif
