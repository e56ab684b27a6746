/* SPDX-License-Identifier: Apache-2.0 */
/* Samples: sets of inputs on which a model is tried, read one at a time. Quantising calibrates on
 * them.
 *
 *     sonde_samples *samples;
 *     sonde_samples_create(model, &samples, &err);
 *     sonde_samples_add_path(samples, "images/", NULL, &err);
 *
 * Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_SAMPLES_H
#define SONDE_EXPERIMENTAL_SAMPLES_H

#include "sonde/experimental/tensor_file.h"
#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sonde_samples sonde_samples;
/* An empty list of samples for the inputs of this model. */
SONDE_API sonde_status sonde_samples_create(sonde_model *model, sonde_samples **samples,
                                            sonde_error *err);
SONDE_API void sonde_samples_release(sonde_samples *samples);
/* Never more than `most` samples are in the list, wherever they come from: the first ones stay, and
 * files that would only add others are not read. 0: all. */
SONDE_API sonde_status sonde_samples_limit(sonde_samples *samples, size_t most, sonde_error *err);

/* One sample: a value for each input that has no default. The values are retained. */
SONDE_API sonde_status sonde_samples_add(sonde_samples *samples, const char *const *names,
                                         sonde_value *const *values, size_t count,
                                         sonde_error *err);
/* Arrays that carry samples on axis 0. An array of the rank of its input holds samples of batch 1
 * (or of the batch that the model states); an array of one rank more holds whole inputs. An array
 * with one sample belongs to every sample of the others. */
SONDE_API sonde_status sonde_samples_add_arrays(sonde_samples *samples, const char *const *names,
                                                sonde_value *const *values, size_t count,
                                                sonde_error *err);

typedef struct sonde_samples_options {
    size_t struct_size;
    /* How images become an input; NULL: defaults. Sizes of 0 are those of the model's input (224
     * where it leaves them open). */
    const sonde_image_options *image;
    int layout; /* of images: 0 as the shape of the input says, 1 NCHW, 2 NHWC */
} sonde_samples_options;
/* A file (.npz, .safetensors: arrays as above; .npy: the array of the only input without a default;
 * an image), or a folder of images, of such files, or of ONNX test data (input_0.pb …, itself or in
 * test_data_set_* folders). Folders are read in the order of names. A file of a folder that cannot
 * be read is skipped, with a warning in the log of the context; it is an error if none can be. */
SONDE_API sonde_status sonde_samples_add_path(sonde_samples *samples, const char *path,
                                              const sonde_samples_options *options,
                                              sonde_error *err);

SONDE_API size_t sonde_samples_count(const sonde_samples *samples);
/* Rows of arrays, and images, that are in no sample: a model that takes n at a time leaves over
 * what does not divide by n. */
SONDE_API size_t sonde_samples_left_over(const sonde_samples *samples);
/* Files of folders that could not be read and were skipped. */
SONDE_API size_t sonde_samples_skipped(const sonde_samples *samples);
/* Sample `index` as a set of values by input name; the caller releases it. */
SONDE_API sonde_status sonde_samples_get(const sonde_samples *samples, size_t index,
                                         sonde_value_set **set, sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
