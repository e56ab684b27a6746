/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation: y = (x - mean) / sqrt(variance + epsilon) * scale + bias per channel of
 * [images][channels][pixels]. Images are plain in f32, f64, f16 or bf16, or blocked in f32. In
 * training, which takes plain images, mean and variance are those of the batch. */
#ifndef SN_COMPUTE_BATCHNORM_H
#define SN_COMPUTE_BATCHNORM_H

#include "base/pool.h"
#include "compute/element.h"

typedef struct sn_batchnorm {
    int64_t images, channels, pixels;
    int64_t block; /* of the images: the one of the kernels; 0: plain */
    float epsilon;
    float momentum; /* training: how much of the running mean and variance stays */
    bool training;
    uint32_t cpu_flags; /* blocked images */
} sn_batchnorm;

/* The images have one type; what is per channel may have other float types. y may be x. */
typedef struct sn_batchnorm_data {
    sn_elems x, y;
    sn_elems scale, bias, mean, variance;
    /* Training; each may be left out. The mean and variance of the batch are mixed into the running
     * ones, and given as they are. */
    sn_elems running_mean, running_variance, batch_mean, batch_variance;
} sn_batchnorm_data;

void sn_batchnorm_run(const sn_batchnorm *b, const sn_batchnorm_data *d, sn_pool *pool);

#endif
