/* SPDX-License-Identifier: Apache-2.0 */
/* Models from files and to files. The content picks the reader; the name of a file only helps where
 * the content tells nothing. README.md tells how to add a format. */
#ifndef SN_MODEL_READERS_MODEL_READERS_H
#define SN_MODEL_READERS_MODEL_READERS_H

#include "model_readers/reader.h"

typedef struct sn_model_options {
    bool no_mmap;
    const char *external_dir; /* of data beside the model; NULL: the model's folder */
} sn_model_options;

/* The result has gone through sn_model_finish. `opt` may be NULL. */
sonde_status sn_model_load_file(sn_context *ctx, const char *path, const sn_model_options *opt,
                                sn_model **m, sonde_error *err);
/* `data` is not copied: it must outlive the model, or `owner` (a buffer, may be NULL) keeps it. */
sonde_status sn_model_load_memory(sn_context *ctx, const void *data, size_t bytes, sn_buffer *owner,
                                  const sn_model_options *opt, sn_model **m, sonde_error *err);

/* save.c: in the format that the path ends in, otherwise as ONNX. `opt` may be NULL. The model and
 * a file of weights beside it are put in their places when both are whole, the weights first. */
sonde_status sn_model_save_file(const sn_model *m, const sn_graph *g, const char *path,
                                const sn_model_save_options *opt, sonde_error *err);
/* Whether the path ends as files of a format that can be written do. */
bool sn_model_can_save_as(const char *path);

/* The list, for those who show it or walk it. */
const sn_model_reader *sn_model_reader_row(size_t k); /* NULL past the end */
/* Which of n rows reads these bytes; an error says what the file looks like, and which formats
 * can be read. When no row knows the content, the row that the name points to, or the only row
 * there is, takes it all the same: its own error tells more. */
sonde_status sn_model_reader_choose(const sn_model_reader *const *rows, size_t n,
                                    const sn_model_source *src, const sn_model_reader **row,
                                    sonde_error *err);

#endif
