/* SPDX-License-Identifier: Apache-2.0 */
/* Discrete Fourier transforms of any length: factors up to 7 by Stockham's way, in float or double;
 * other lengths by Bluestein's chirp through a power of two, in double, as it would lose digits in
 * float. Complex numbers are pairs re, im. */
#ifndef SN_COMPUTE_FFT_H
#define SN_COMPUTE_FFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sn_fft {
    int64_t n;        /* length, at least 1 */
    int64_t padded;   /* power of two of the chirp's convolution; 0: n has small factors only */
    double *roots;    /* e^(-2πi k / m), m = padded or n */
    float *roots_f32; /* the same, where it computes in float; else NULL */
    double *chirp;    /* n numbers */
    double *spectrum; /* of the chirp, padded numbers */
} sn_fft;

/* Doubles of the tables and of the scratch a run needs; false: too long. */
bool sn_fft_sizes(int64_t n, size_t *table, size_t *scratch);
/* `table`: room of that size, which has to live as long as the plan. `single`: float will do. */
void sn_fft_make(sn_fft *f, int64_t n, bool single, double *table, double *scratch);
/* In place, n complex numbers; not scaled. */
void sn_fft_run(const sn_fft *f, double *x, bool inverse, double *scratch);

#endif
