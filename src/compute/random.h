/* SPDX-License-Identifier: Apache-2.0 */
/* Random tensors; a seed gives the same one everywhere. Numbers come from splitmix64, those of
 * dropout from the Mersenne Twister that ONNX's reference uses, so that a seed gives the documented
 * result. Elements may have any numeric type. */
#ifndef SN_COMPUTE_RANDOM_H
#define SN_COMPUTE_RANDOM_H

#include "compute/element.h"

/* n numbers from [low, high). */
void sn_random_uniform(uint64_t seed, double low, double high, sn_elems y, int64_t n);
void sn_random_normal(uint64_t seed, double mean, double scale, sn_elems y, int64_t n);
/* 1 with the probability x[i], else 0. */
void sn_random_bernoulli(uint64_t seed, sn_elems y, sn_elems x, int64_t n);
/* `samples` classes for each row of unnormalised log probabilities [rows][classes]; there is at
 * least one class. */
void sn_random_multinomial(uint64_t seed, sn_elems y, sn_elems x, int64_t rows, int64_t classes,
                           int64_t samples);

/* n elements, each dropped with the probability `ratio` (0 < ratio < 1), the others scaled up to
 * make good for it. mask: 1 where one was kept. y and mask may be left out; y may be x. */
void sn_dropout_run(uint32_t seed, double ratio, sn_elems y, sn_elems x, uint8_t *mask, int64_t n);

#endif
