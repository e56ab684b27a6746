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
} sn_named_list;
void sn_named_init(sn_named_list *l, sn_allocator *alloc);
void sn_named_free(sn_named_list *l);
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
    bool nhwc, bgr, no_normalize;
    bool no_mmap;                /* read the file instead of mapping it */
    float mean[3], deviation[3]; /* used unless no_normalize */
} sn_image_options;
void sn_image_options_default(sn_image_options *o);
/* The shorter side of a picture before the crop. */
int sn_image_resize(const sn_image_options *o);
/* .jpg (libjpeg), .png (libpng), .ppm (built in): f32 tensor [1,3,H,W] or [1,H,W,3]. */
sonde_status sn_tensor_file_read_image(const char *path, const sn_image_options *o,
                                       sn_allocator *alloc, sn_slot *out, sonde_error *err);

#endif
