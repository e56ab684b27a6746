/* SPDX-License-Identifier: Apache-2.0 */
/* Discrete Fourier transforms of any length: factors up to 7 by Stockham's way, in float or double;
 * other lengths by Bluestein's chirp through a power of two, in double, as it would lose digits in
 * float. Complex numbers are pairs re, im. */
#ifndef SN_COMPUTE_FFT_H
#define SN_COMPUTE_FFT_H

#include "base/workspace.h"

typedef struct sn_fft {
    int64_t n;        /* length, at least 1 */
    int64_t padded;   /* power of two of the chirp's convolution; 0: n has small factors only */
    bool single;      /* computes in float */
    double *roots;    /* e^(-2πi k / m), m = padded or n */
    float *roots_f32; /* the same in float; else NULL */
    double *chirp;    /* n numbers */
    double *spectrum; /* of the chirp, padded numbers */
    size_t table_elems;
    sn_piece line, spare; /* the line, where it is padded or float; what a stage writes to */
    sn_workspace workspace;
} sn_fft;

/* How many doubles its tables have, and the workspace of a run; false: too long. `single`: float
 * will do, where the length allows it. */
bool sn_fft_plan(sn_fft *f, int64_t n, bool single);
/* Computes the tables. `table` has to live as long as the plan. */
void sn_fft_make(sn_fft *f, double *table, void *workspace);
/* In place, n complex numbers; not scaled. */
void sn_fft_run(const sn_fft *f, double *x, bool inverse, void *workspace);

#endif
