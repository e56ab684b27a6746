/* SPDX-License-Identifier: Apache-2.0 */
/* Built-in models: the structure of well-known networks with seeded weights, made in milliseconds,
 * nothing downloaded. Good for measuring, testing and trying things out; their answers mean
 * nothing. Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_ZOO_H
#define SONDE_EXPERIMENTAL_ZOO_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The models there are, from 0; NULL (or 0) past the end. */
SONDE_API const char *sonde_zoo_name(size_t index);    /* "regnet_x_400mf" */
SONDE_API const char *sonde_zoo_summary(size_t index); /* one line for people */
SONDE_API uint64_t sonde_zoo_parameters(size_t index); /* trainable ones, as published */
/* Of one inference at the default sizes, a multiply-add counted as two; to three digits. */
SONDE_API uint64_t sonde_zoo_flops(size_t index);

/* Builds one: "NAME" or "NAME?batch=8&seq=384", which sets the default sizes of symbolic
 * dimensions; "zoo:" before it is allowed. sonde_model_load takes "zoo:NAME…", too, with seed 0.
 * Equal seeds give equal weights on every machine. Defaults for its symbolic dimensions are in its
 * metadata: "sonde.default.batch" = "1". */
SONDE_API sonde_status sonde_zoo_build(sonde_context *context, const char *name, uint64_t seed,
                                       sonde_model **model, sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
