/* SPDX-License-Identifier: Apache-2.0 */
/* What the templates need from the compiler, the same for every instruction set. */
#ifndef SN_KERNELS_SIMD_COMMON_H
#define SN_KERNELS_SIMD_COMMON_H

/* A loop of constant length that must become straight code: the arrays it indexes are registers.
 * Sanitizer builds leave it a loop: every access is checked just the same, and clang takes half a
 * minute for all tiles where straight code with its checks took it eight. So do builds without
 * optimisation, where gcc says that it ignores this. */
#if SONDE_FEW_TILES || !defined(__OPTIMIZE__)
#define SN_UNROLL
#define SN_NO_UNROLL
#elif defined(__clang__)
#define SN_UNROLL    _Pragma("unroll")
#define SN_NO_UNROLL _Pragma("nounroll")
#else
#define SN_UNROLL    _Pragma("GCC unroll 64")
#define SN_NO_UNROLL _Pragma("GCC unroll 1")
#endif
/* Asks for the line at p in the first- or second-level cache. */
#define SN_FETCH_L1(p)    __builtin_prefetch((p), 0, 3)
#define SN_FETCH_WRITE(p) __builtin_prefetch((p), 1, 3)
#define SN_FETCH_L2(p)    __builtin_prefetch((p), 0, 2)
#define SN_INLINE         static inline __attribute__((always_inline))

#endif
