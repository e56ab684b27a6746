/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor files: .npy, .npz, .safetensors, .pb (ONNX test data), and images as tensors. */
#ifndef SN_TENSOR_FILES_TENSOR_FILES_H
#define SN_TENSOR_FILES_TENSOR_FILES_H

#include "base/arena.h"
#include "graph/tensor.h"
#include "graph/type.h"

typedef struct sn_named {
    const char *name;
    sn_slot slot;
} sn_named;
typedef struct sn_named_list {
    sn_allocator *alloc;
    sn_arena arena; /* names */
    SN_VEC(sn_named) list;
    bool no_mmap; /* files it is filled from are read, not mapped */
    /* .npz and .safetensors: asked before an array is read or unpacked. NULL: all are wanted. */
    int (*wants)(void *user, const char *name, const int64_t *dims, size_t rank);
    void *wants_user;
} sn_named_list;
void sn_named_init(sn_named_list *l, sn_allocator *alloc);
void sn_named_free(sn_named_list *l);
/* Whether an array that a file has is to be read. */
bool sn_named_wants(const sn_named_list *l, const char *name, const int64_t *dims, int rank);
/* Moves `slot` in (the source becomes NONE). */
sonde_status sn_named_add(sn_named_list *l, const char *name, sn_slot *slot, sonde_error *err);

/* By suffix. Names: as in the file; "" for .npy and images. Bounded like the ONNX reader. `as` (may
 * be NULL) is the type expected, needed for .pb files of sequences and optionals. */
sonde_status sn_tensor_file_read(const char *path, const sn_type *as, sn_named_list *out,
                                 sonde_error *err);
/* .npy (one), .npz, .safetensors, or a folder path ending in "/" of output_k.pb. */
sonde_status sn_tensor_file_write(const char *path, const sn_named_list *l, sonde_error *err);
/* Whether the path has one of these forms; the error names them. */
sonde_status sn_tensor_file_can_write(const char *path, sonde_error *err);

typedef struct sn_image_options {
    int width, height; /* of the crop */
    int resize;        /* shorter side; 0: 256/224 of the crop's */
    bool nhwc, bgr;
    bool no_mmap;                /* read the file instead of mapping it */
    sn_dtype dtype;              /* of the tensor */
    float scale;                 /* of the bytes of a pixel; 0: they are divided by 255 */
    float mean[3], deviation[3]; /* an element is (byte * scale - mean) / deviation */
} sn_image_options;
/* Whether images become tensors of this type: floats of 16 bits and more, integers of 8 and more.
 */
bool sn_image_dtype(sn_dtype dtype);
/* What tensors of that type usually hold: floats are normalised as for ImageNet, integers are the
 * bytes of the picture, shifted by 128 where the type is signed and has 8 bits. */
void sn_image_options_default(sn_image_options *o, sn_dtype dtype);
/* As that, without ImageNet's mean and deviation. */
void sn_image_options_raw(sn_image_options *o, sn_dtype dtype);
/* What the options do to a byte divided by 255. */
float sn_image_mean(const sn_image_options *o, int channel);
float sn_image_deviation(const sn_image_options *o, int channel);
/* The shorter side of a picture before the crop. */
int sn_image_resize(const sn_image_options *o);
/* .jpg (libjpeg), .png (libpng), .ppm (built in): tensor [1,3,H,W] or [1,H,W,3]. NULL: of f32, as
 * the defaults say. */
sonde_status sn_tensor_file_read_image(const char *path, const sn_image_options *o,
                                       sn_allocator *alloc, sn_slot *out, sonde_error *err);

#endif
