/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising: a model of floats becomes one of 8-bit integers (or of weights of 4 bits), written as
 * standard ONNX.
 *
 *     sonde_quantized *made;
 *     sonde_quantize(model, samples, NULL, &made, &err);
 *     sonde_quantized_save(made, "int8.onnx", NULL, &err);
 *     sonde_quantized_release(made);
 *
 * The same model, samples and options give the same bytes, with any number of threads.
 * Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_QUANTIZE_H
#define SONDE_EXPERIMENTAL_QUANTIZE_H

#include "sonde/experimental/samples.h"
#include "sonde/experimental/save.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sonde_quantize_kind {
    SONDE_QUANTIZE_STATIC,  /* QuantizeLinear and DequantizeLinear; ranges from samples */
    SONDE_QUANTIZE_DYNAMIC, /* DynamicQuantizeLinear and MatMulInteger; ranges found in each run */
    SONDE_QUANTIZE_WEIGHTS  /* MatMulNBits: weights alone, in blocks; activations stay floats */
} sonde_quantize_kind;

/* How the range of an activation follows from what the samples gave. */
typedef enum sonde_calibration {
    SONDE_CALIBRATION_DEFAULT,    /* MSE */
    SONDE_CALIBRATION_MINMAX,     /* from the smallest to the largest */
    SONDE_CALIBRATION_PERCENTILE, /* without the outermost values */
    SONDE_CALIBRATION_ENTROPY,    /* the least information lost (Kullback-Leibler) */
    SONDE_CALIBRATION_MSE         /* the least squared error */
} sonde_calibration;

typedef struct sonde_quantize_options {
    size_t struct_size;
    sonde_quantize_kind kind;
    sonde_calibration method;
    double percentile;      /* of SONDE_CALIBRATION_PERCENTILE: above 50, to 100; 0 = 99.999 */
    int per_tensor;         /* weights have one scale, not one per output channel */
    int signed_activations; /* int8 instead of uint8 */
    int bits;               /* of SONDE_QUANTIZE_WEIGHTS: 4 or 8; 0 = 4 */
    int block_size;         /* of SONDE_QUANTIZE_WEIGHTS: a power of two, 16 to 2^20; 0 = 32 */
    int equalize;           /* cross-layer equalisation before anything else */
    /* Static: biases stay as they are. Otherwise they take up the mean error that rounded weights
     * make on the samples. */
    int no_bias_correction;
    /* Names of nodes, of what they produce or of weights, patterns with * and ?, or lists of these
     * with commas. "@FILE": those in the list "leave_in_float" of a comparison, JSON of the schema
     * "sonde.compare/1", or one in each line of a text. `except`: what stays in float. `only`: the
     * products and convolutions that do not; none: all. */
    const char *const *except;
    size_t except_count;
    /* SQNR in dB between the outputs of both models on the samples; 0: none. Where it is missed,
     * the layers that cost most stay in float, as few as are needed, all but one at most; the best
     * found is the result also if the goal is not met. */
    double goal_db;
    int force;          /* also a model that is quantised already */
    size_t group_bytes; /* activations kept at a time while calibrating; 0 = 256 MiB */
    /* Called now and then with what is being done and how much of it is done, 0…1; not 0 makes it
     * end with SONDE_CANCELLED. */
    int (*progress)(void *user, const char *what, double done);
    void *progress_user;
    sonde_cancel_token *cancel; /* also of sonde_quantized_measure: lives as long as the result */
    const char *const *only;
    size_t only_count;
} sonde_quantize_options;

/* `samples` may be NULL where the kind needs none. Errors name the node or the tensor. */
typedef struct sonde_quantized sonde_quantized;
SONDE_API sonde_status sonde_quantize(sonde_model *model, const sonde_samples *samples,
                                      const sonde_quantize_options *options,
                                      sonde_quantized **result, sonde_error *err);
SONDE_API void sonde_quantized_release(sonde_quantized *result);
/* As sonde_model_save_with. */
SONDE_API sonde_status sonde_quantized_save(const sonde_quantized *result, const char *path,
                                            const sonde_save_options *options, sonde_error *err);

typedef struct sonde_quantized_info {
    size_t struct_size;
    size_t products, products_quantized;              /* Conv, ConvTranspose, Gemm, MatMul */
    size_t nodes, nodes_quantized;                    /* products included */
    uint64_t weight_bytes_before, weight_bytes_after; /* all constants, as given and as made */
    int64_t opset_before, opset_after;
    size_t equalized;      /* pairs of layers */
    size_t samples;        /* that were calibrated on */
    double sqnr_db;        /* of the outputs; NaN where there are no samples */
    double top1_agreement; /* share of rows of the first output with the same largest entry; NaN */
    int goal_missed;
    double goal_db;
    size_t left_for_goal; /* layers that stay in float because of the goal */
    /* Of products, those in bodies of control flow: the static form leaves them in float, because
     * nothing is calibrated there. */
    size_t body_products, body_products_quantized;
    int widened; /* static: the model computed in f16, and what stays in float is f32 now */
} sonde_quantized_info;
SONDE_API sonde_status sonde_quantized_info_get(const sonde_quantized *result,
                                                sonde_quantized_info *info, sonde_error *err);

/* One node of the model, normalisations folded into their convolutions; nodes of bodies come after
 * those of the main graph. Weights that several nodes read are counted at the first. */
typedef struct sonde_quantized_row {
    size_t struct_size;
    const char *node, *op_type; /* a node without a name is called by what it produces */
    const char *made;           /* "int8", "int4", "float" */
    const char *why;          /* of float: the reason; else what the weights have: "per channel" */
    const char *weight_shape; /* "64x3x7x7"; "" where there are none */
    uint64_t bytes_before, bytes_after; /* of weights and bias */
    double weight_sqnr_db;              /* of the rounded weights; NaN where there are none */
} sonde_quantized_row;
SONDE_API size_t sonde_quantized_count(const sonde_quantized *result);
SONDE_API sonde_status sonde_quantized_row_get(const sonde_quantized *result, size_t index,
                                               sonde_quantized_row *row, sonde_error *err);

/* Runs the model that was given and the one that was made in turn, a few times, on these inputs (as
 * sonde_session_run takes them): the median milliseconds of each, with the context's threads. */
typedef struct sonde_quantized_speed {
    size_t struct_size;
    double before_ms, after_ms;
    int runs; /* of each */
} sonde_quantized_speed;
SONDE_API sonde_status sonde_quantized_measure(const sonde_quantized *result,
                                               const char *const *names, sonde_value *const *values,
                                               size_t count, sonde_quantized_speed *speed,
                                               sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
