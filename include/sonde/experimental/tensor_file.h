/* SPDX-License-Identifier: Apache-2.0 */
/* Values in files: .npy and .npz (NumPy), .safetensors, .pb (ONNX test data), and images as
 * tensors. Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_TENSOR_FILE_H
#define SONDE_EXPERIMENTAL_TENSOR_FILE_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Everything in the file; the suffix tells the format. A .npy file holds one value named "". A .pb
 * file is read as a tensor, under the name it carries. */
SONDE_API sonde_status sonde_values_load(sonde_context *context, const char *path,
                                         sonde_value_set **set, sonde_error *err);
/* The one value of a file, for the input or output `name` of a session: its type says how a .pb
 * file is to be read (a tensor, a sequence or an optional). */
SONDE_API sonde_status sonde_value_load_for(const sonde_session *session, const char *name,
                                            const char *path, sonde_value **value,
                                            sonde_error *err);

/* The same two with options. */
SONDE_API sonde_status sonde_values_load_with(sonde_context *context, const char *path,
                                              const sonde_load_options *options,
                                              sonde_value_set **set, sonde_error *err);
SONDE_API sonde_status sonde_value_load_for_with(const sonde_session *session, const char *name,
                                                 const char *path,
                                                 const sonde_load_options *options,
                                                 sonde_value **value, sonde_error *err);

/* By suffix: .npz, .safetensors, .npy (one value), or, where `path` ends in "/", a folder (made
 * when it is not there) of output_0.pb, output_1.pb … in ONNX's test-data form. */
SONDE_API sonde_status sonde_values_save(const char *path, const char *const *names,
                                         sonde_value *const *values, size_t count,
                                         sonde_error *err);
/* Whether sonde_values_save knows a format for this path, before there are values to save. The
 * error names the suffixes. The place itself is not looked at. */
SONDE_API sonde_status sonde_values_can_save(const char *path, sonde_error *err);

typedef struct sonde_image_options {
    size_t struct_size;
    int width, height;             /* of the centre crop; 0 = 224 */
    int resize;                    /* shorter side before the crop; 0 = 256/224 of the crop's */
    int nhwc;                      /* [1, H, W, 3] instead of [1, 3, H, W] */
    int bgr;                       /* instead of RGB */
    int no_normalize;              /* without mean and deviation, given or not */
    const float *mean, *deviation; /* 3 each; NULL = ImageNet's for floats, none for integers */
    int no_mmap;                   /* as in sonde_load_options */
    sonde_dtype dtype;             /* of the tensor: a float or an integer type; UNDEFINED = f32 */
    float scale;                   /* 0 = 1/255 for floats, 1 for integers */
} sonde_image_options;

/* .jpg and .png where the library was built with them, .ppm always. A pixel's bytes become
 * (byte * scale - mean) / deviation; integers are rounded and kept within their type. So integers
 * are the bytes themselves unless the options say otherwise, and those of i8 are byte - 128. */
SONDE_API sonde_status sonde_image_load(sonde_context *context, const char *path,
                                        const sonde_image_options *options, sonde_value **value,
                                        sonde_error *err);

/* What these options do to an image, with the defaults filled in: for programs that prepare images
 * in the same way by themselves. options: NULL means defaults. */
typedef struct sonde_image_plan {
    size_t struct_size;
    int width, height; /* of the centre crop */
    int resize;        /* shorter side before the crop; an image never becomes smaller than
                          the crop */
    float mean[3], deviation[3]; /* of values / 255, whatever the scale: an element is
                                    (byte / 255 - mean) / deviation */
} sonde_image_plan;
SONDE_API sonde_status sonde_image_plan_get(const sonde_image_options *options,
                                            sonde_image_plan *plan, sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
