/* SPDX-License-Identifier: Apache-2.0 */
/* What the image classifiers share: the blocks that torchvision's definitions share as well, and
 * the two ends. All of them are in eval mode, with their BatchNormalization nodes kept as exporters
 * of training frameworks often leave them: folding them is the engine's work. */
#ifndef SN_ZOO_CNN_H
#define SN_ZOO_CNN_H

#include "zoo/builder.h"

typedef enum sn_cnn_act { SN_CNN_LINEAR, SN_CNN_RELU, SN_CNN_RELU6, SN_CNN_SILU } sn_cnn_act;

/* As torch.onnx writes them: Relu; Clip between two Constants; Sigmoid and Mul. */
sn_value *sn_cnn_activate(sn_builder *b, sn_value *x, const char *path, sn_cnn_act act);

typedef struct sn_cnn_layer {
    sn_conv_spec conv;
    sn_cnn_act act;
    bool ends_branch; /* the last layer before a residual sum */
} sn_cnn_layer;

/* Normalisation after `l->conv`. Before a residual sum its scale is below 1, or the sum would
 * double its variance in every block. */
sn_value *sn_cnn_norm(sn_builder *b, sn_value *x, const char *path, const sn_cnn_layer *l);
/* Convolution, normalisation and activation as children 0, 1 and 2 of `path`. */
sn_value *sn_cnn_conv_norm(sn_builder *b, sn_value *x, const char *path, const sn_cnn_layer *l);
/* Scales each of `channels` by a number between 0 and 1 that a bottleneck of `squeezed` channels
 * makes from the mean over the image. */
sn_value *sn_cnn_squeeze_excite(sn_builder *b, sn_value *x, const char *path, int64_t channels,
                                int64_t squeezed, sn_cnn_act act);
/* The nearest multiple of `divisor`, never more than a tenth below `v`: how torchvision rounds
 * numbers of channels. */
int64_t sn_cnn_divisible(int64_t v, int64_t divisor);

/* An RGB image of `size` × `size` pixels. */
sn_value *sn_cnn_begin(sn_builder *b, sn_model *m, uint64_t seed, int64_t size, sonde_error *err);
/* Mean over the image (under the path `pool`), a dense layer (`fc`), the output; and the running
 * statistics of every normalisation, as if they had been collected. */
sonde_status sn_cnn_end(sn_builder *b, sn_value *x, const char *pool, const char *fc,
                        int64_t channels, int64_t classes);

#endif
