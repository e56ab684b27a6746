/* SPDX-License-Identifier: Apache-2.0 */
/* One model format: a row of model_readers.inc, and what it is given to read. Opening files, the
 * choice of the row, checking and sorting the graph that was read (sn_model_finish) and putting the
 * file's name before an error are done once, in model_readers.c. */
#ifndef SN_MODEL_READERS_READER_H
#define SN_MODEL_READERS_READER_H

#include "graph/model.h"

/* The bytes of a model, and where they come from. The model owns them: constants may stay views. */
typedef struct sn_model_source {
    const void *data; /* never NULL */
    size_t bytes;
    const char *path; /* NULL: bytes in memory. A hint only; the content decides */
    const char *dir;  /* where files beside the model lie, "" = here; NULL: there are none */
    bool no_mmap;     /* such files are read, not mapped */
} sn_model_source;

/* How a model is saved; what a format has no use for it ignores. */
typedef struct sn_model_save_options {
    bool external;             /* weights in a file of their own beside the model */
    const char *external_name; /* of that file; NULL: the model's with ".data" behind it */
    uint64_t
        inline_bytes;     /* models of more bytes have such a file, too; 0: what the format holds */
    const sn_map *sparse; /* keys: addresses of tensors to write as sparse ones; may be NULL */
    /* The model that this one was made of: its files are not to be destroyed. NULL: itself. */
    const struct sn_model *source;
} sn_model_save_options;

/* Takes a piece of what is written; false stops. */
typedef bool (*sn_model_write_fn)(void *user, const void *data, size_t bytes);

/* The file and, for weights, the one beside it. */
typedef struct sn_model_sink {
    sn_model_write_fn write, write_data;
    void *user;
    const char *data_name; /* what the model calls the second file */
} sn_model_sink;

typedef struct sn_model_reader {
    const char *name;   /* "ONNX": what people call the format, for messages */
    const char *suffix; /* ".onnx": how its files usually end */
    /* Whether the content may be one. It must say yes to everything `read` can read, and it is
     * called with any bytes whatever. */
    bool (*sniff)(const sn_model_source *src);
    /* Fills an empty model from bytes nobody has checked: every size is bounded before it is used.
     * Errors say what is wrong and where in the model, not in which file. */
    sonde_status (*read)(const sn_model_source *src, sn_model *m, sonde_error *err);
    /* The graph `g` of the model as a file; NULL: this format cannot be written. */
    sonde_status (*write)(const sn_model *m, const sn_graph *g, const sn_model_sink *sink,
                          const sn_model_save_options *opt, sonde_error *err);
} sn_model_reader;

#define SN_MODEL_READER(symbol) extern const sn_model_reader symbol;
#include "model_readers/model_readers.inc"
#undef SN_MODEL_READER

#endif
