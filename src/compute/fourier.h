/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of many lines of a tensor: each is loaded into a complex buffer in double,
 * transformed (fft.h) and stored again. Element types f32, f64, f16 and bf16. The last axis holds
 * the parts of a number: 1 (real) or 2 (complex). */
#ifndef SN_COMPUTE_FOURIER_H
#define SN_COMPUTE_FOURIER_H

#include "base/pool.h"
#include "compute/fft.h"

/* How the lines are shared out. The length of a transform is fft.n. */
typedef struct sn_fourier_work {
    sn_fft fft;
    int64_t lines, tasks;
    sn_pieces line, core; /* of each task: its line; the workspace of its transform */
    sn_workspace workspace;
} sn_fourier_work;
/* With the fft planned. */
void sn_fourier_share(sn_fourier_work *w, int64_t lines, int threads);

/* Along the middle of [outer][in][inner][in_parts] ► [outer][out][inner][out_parts]; a line is
 * padded with zeros or cut to the transform's length. One-sided: forward keeps the first half of
 * the spectrum; inverse takes the first half, makes the rest its conjugate and gives real numbers.
 */
typedef struct sn_dft {
    sn_fourier_work work; /* lines: outer × inner */
    sonde_dtype dtype;
    int64_t in, out, inner, in_parts, out_parts;
    bool inverse, onesided;
} sn_dft;
void sn_dft_run(const sn_dft *d, void *y, const void *x, void *workspace, sn_pool *pool);

/* Frames of [batch][signal][in_parts], `step` apart, ► [batch][frames][out][2]. A window shorter
 * than the frame is padded with zeros behind it. */
typedef struct sn_stft {
    sn_fourier_work work; /* lines: batch × frames */
    sonde_dtype dtype;
    int64_t signal, frames, step, in_parts, out;
    int64_t window; /* its elements; -1: there is none */
} sn_stft;
void sn_stft_run(const sn_stft *d, void *y, const void *x, const void *window, void *workspace,
                 sn_pool *pool);

#endif
