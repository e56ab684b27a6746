/* SPDX-License-Identifier: Apache-2.0 */
/* Saving models as ONNX files. An ONNX file has at most 2 GiB: the weights of a larger model are
 * saved in a second file beside it ("external data"), which every ONNX runtime finds there.
 *
 *     sonde_save_options o = SONDE_INIT(sonde_save_options);
 *     o.external_data = 1;
 *     sonde_model_save_with(model, "out.onnx", &o, &err); // out.onnx and out.onnx.data
 *
 * Both files are put in their places when both are complete. An existing model may be replaced by
 * itself. Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_SAVE_H
#define SONDE_EXPERIMENTAL_SAVE_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sonde_save_options {
    size_t struct_size;
    int external_data;         /* weights in a second file, however small the model is */
    const char *external_name; /* of that file, in the folder of the model; NULL: the model's with
                                  ".data" behind it */
    uint64_t inline_bytes;     /* models of more bytes get a second file; 0: 2 GiB, the most */
} sonde_save_options;

/* Writes the model as it was read (functions inlined) to an ONNX file. `options` may be NULL. */
SONDE_API sonde_status sonde_model_save_with(const sonde_model *model, const char *path,
                                             const sonde_save_options *options, sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
