/* SPDX-License-Identifier: Apache-2.0 */
/* The operator profiler: one operator alone, described by type, shapes and attributes, or cut out
 * of a model with its real inputs and weights; every way this machine can run it side by side.
 *
 *     const int64_t x[] = {1, 64, 56, 56}, w[] = {64, 64, 3, 3};
 *     const sonde_op_input in[] = {{.dtype = SONDE_DTYPE_F32, .dims = x, .rank = 4},
 *                                  {.dtype = SONDE_DTYPE_F32, .dims = w, .rank = 4, .constant =
 * 1}}; sonde_op_spec spec = SONDE_INIT(sonde_op_spec); spec.op_type = "Conv"; spec.inputs = in;
 *     spec.input_count = 2;
 *     spec.attributes = "pads=1,1,1,1";
 *     sonde_op_result *result;
 *     sonde_op_profile(NULL, &spec, NULL, &result, &err);
 *
 * The operator runs through a session, as it would in a model, but alone: nothing is fused with it.
 * Times are those of its own step; reordering of its input and output is not counted.
 * Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_OP_H
#define SONDE_EXPERIMENTAL_OP_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sonde_op_input {
    sonde_dtype dtype; /* UNDEFINED: an optional input that is left out */
    const int64_t *dims;
    size_t rank;
    int constant;     /* a weight: known beforehand, may be packed */
    const void *data; /* dense; NULL: random floats and bytes, ones for bool, zeros for indices */
} sonde_op_input;

typedef struct sonde_op_spec {
    size_t struct_size;
    /* Described: */
    const char *op_type;
    const char *domain; /* NULL = ONNX's own */
    int64_t opset;      /* 0 = the newest */
    const sonde_op_input *inputs;
    size_t input_count;
    size_t output_count;    /* 0 = 1 */
    const char *attributes; /* "kernel_shape=3,3;strides=1,1;group=1"; [3] is a list of one */
    uint64_t seed;          /* of made-up data */
    /* Or cut out of a model: the node with this name, with what it is given when the model runs on
     * these inputs (see sonde_session_run). Then nothing of the above is used. */
    sonde_model *model;
    const char *node;
    const char *const *input_names;
    sonde_value *const *values;
    size_t value_count;
} sonde_op_spec;

typedef struct sonde_op_options {
    size_t struct_size;
    int warmup;                 /* runs before measuring; 0 = 10, -1 = none */
    int exec;                   /* runs behind one latency; 0 = 10 */
    int repeat;                 /* latencies; 0 = 1 */
    int one_variant;            /* only the way a session of this context would run it */
    int no_cache;               /* measure, whatever was measured before */
    sonde_cancel_token *cancel; /* makes it end with SONDE_CANCELLED; NULL: nothing does */
    sonde_precision precision;  /* of constant weights, as of a session's; 0: as they are */
} sonde_op_options;

/* The result of an equal specification and equal options comes from the context's cache. */
typedef struct sonde_op_result sonde_op_result;
SONDE_API sonde_status sonde_op_profile(sonde_context *context, const sonde_op_spec *spec,
                                        const sonde_op_options *options, sonde_op_result **result,
                                        sonde_error *err);
SONDE_API void sonde_op_result_release(sonde_op_result *result);
SONDE_API void sonde_op_cache_reset(sonde_context *context);
SONDE_API size_t sonde_op_cache_size(sonde_context *context); /* results kept */

typedef struct sonde_op_info {
    size_t struct_size;
    const char *op_type, *domain, *node; /* the node is "" when it was described */
    const char *inputs;                  /* "f32[1, 64, 56, 56], const f32[64, 64, 3, 3], _" */
    const char *attributes;
    int cached; /* measured earlier */
} sonde_op_info;
SONDE_API sonde_status sonde_op_result_info(const sonde_op_result *result, sonde_op_info *info,
                                            sonde_error *err);

/* One way to run it. The first is the one a session takes; the others differ in instructions,
 * threads, packing of weights or layout. */
typedef struct sonde_op_variant {
    size_t struct_size;
    const char *cpu; /* "avx512" */
    int threads;
    int packed;               /* weights were packed beforehand */
    const char *layout;       /* "blocked" or "plain" */
    const char *kernel;       /* "" when it has no name */
    const double *latency_us; /* `repeat` means of `exec` runs each */
    size_t latency_count;
    const double *samples_us; /* every run, in order */
    size_t sample_count;
    double min_us, mean_us, stddev_us, p50_us, p90_us, p99_us, max_us; /* of the samples */
    uint64_t workspace_bytes, flops, bytes;                            /* of one run */
    double gflops, gbps;    /* at the mean; 0: not known */
    double roofline;        /* 0…1 of the measured peaks; -1: not known */
    const char *bound;      /* "compute", "l2", "l3", "memory": the nearest peak; "" */
    const char *arithmetic; /* what the flops are computed in: "f32", "bf16_tiles", "i8"; "" */
} sonde_op_variant;
SONDE_API size_t sonde_op_result_count(const sonde_op_result *result);
SONDE_API sonde_status sonde_op_result_variant(const sonde_op_result *result, size_t index,
                                               sonde_op_variant *variant, sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
