/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share: a format as a row of tensor_formats.inc, and its functions
 * over bytes in memory. Every reader is bounded: it reads within the bytes it got and allocates no
 * more than they justify. */
#ifndef SN_TENSOR_FILES_FORMATS_H
#define SN_TENSOR_FILES_FORMATS_H

#include <string.h>
#include <strings.h>

#include "tensor_files/tensor_files.h"

/* Bytes being put together. A failed append is remembered, so that only the end needs a check. */
typedef struct sn_bytes {
    sn_allocator *alloc;
    SN_VEC(uint8_t) v;
    bool failed;
} sn_bytes;
void sn_bytes_put(sn_bytes *b, const void *data, size_t bytes);
void sn_bytes_le(sn_bytes *b, uint64_t v, size_t bytes); /* little-endian number */
void sn_bytes_free(sn_bytes *b);

static inline uint64_t sn_get_le(const uint8_t *p, size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static inline bool sn_has_suffix(const char *path, const char *suffix)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    return dot && (!slash || dot > slash) && strcasecmp(dot, suffix) == 0;
}

/* `as` (may be NULL) decides where a format has no word for an element type. */
typedef struct sn_tensor_format {
    const char *suffix; /* ".npy" */
    sonde_status (*read)(const uint8_t *data, size_t bytes, const sn_type *as, sn_named_list *out,
                         sonde_error *err);
    sonde_status (*write)(const sn_named_list *l, sn_bytes *out, sonde_error *err);
} sn_tensor_format;

#define SN_TENSOR_FORMAT(symbol) extern const sn_tensor_format symbol;
#include "tensor_files/tensor_formats.inc"
#undef SN_TENSOR_FORMAT

/* Formats one by one, for archives of another format and for tests. */
sonde_status sn_npy_read(const uint8_t *data, size_t bytes, const sn_type *as, sn_allocator *alloc,
                         sn_slot *out, sonde_error *err);
/* Its dims, from its first bytes, of which there may be all; `whole` is how many it has. An error
 * if elements of that type and shape take other than the rest. */
typedef struct sn_npy_shape {
    int rank;
    int64_t dims[SN_MAX_RANK];
} sn_npy_shape;
enum { SN_NPY_HEAD = 65536 }; /* so many of the first bytes are enough */
sonde_status sn_npy_peek(const uint8_t *data, size_t bytes, size_t whole, sn_npy_shape *shape,
                         sonde_error *err);
sonde_status sn_npy_write(const sn_tensor *t, sn_bytes *out, sonde_error *err);
sonde_status sn_npz_read(const uint8_t *data, size_t bytes, const sn_type *as, sn_named_list *out,
                         sonde_error *err);
sonde_status sn_npz_write(const sn_named_list *l, sn_bytes *out, sonde_error *err);
sonde_status sn_safetensors_read(const uint8_t *data, size_t bytes, const sn_type *as,
                                 sn_named_list *out, sonde_error *err);
sonde_status sn_safetensors_write(const sn_named_list *l, sn_bytes *out, sonde_error *err);

/* A .pb of one value; `name` is what a value without one is called. */
sonde_status sn_pb_read(const char *path, const char *name, const sn_type *as, sn_named_list *out,
                        sonde_error *err);
/* Every .pb of a folder in natural order; and output_0.pb, … into one, which is made. */
sonde_status sn_pb_read_folder(const char *path, sn_named_list *out, sonde_error *err);
sonde_status sn_pb_write_folder(const char *path, const sn_named_list *l, sonde_error *err);

/* Files that store sub-byte elements as whole bytes: a tensor of int8 or uint8 that is really of
 * type `as`. Does nothing where that is not so; values out of range are an error. */
sonde_status sn_narrow_elements(sn_slot *s, const sn_type *as, sonde_error *err);

/* A decoded picture, three bytes a pixel, rows from the top. */
typedef struct sn_picture {
    int width, height;
    uint8_t *rgb;
    size_t bytes; /* of rgb, from alloc */
} sn_picture;
sonde_status sn_picture_decode(const uint8_t *data, size_t bytes, sn_allocator *alloc,
                               sn_picture *p, sonde_error *err);
void sn_picture_free(sn_picture *p, sn_allocator *alloc);
bool sn_is_image_path(const char *path);
/* An image in the size and layout that `as` asks for, as far as it tells. */
sonde_status sn_image_read(const char *path, const sn_type *as, sn_named_list *out,
                           sonde_error *err);
sonde_status sn_image_to_tensor(const sn_picture *p, const sn_image_options *o, sn_allocator *alloc,
                                sn_slot *out, sonde_error *err);

#endif
