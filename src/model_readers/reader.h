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

/* Takes a piece of what is written; false stops. */
typedef bool (*sn_model_write_fn)(void *user, const void *data, size_t bytes);

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
    sonde_status (*write)(const sn_model *m, const sn_graph *g, sn_model_write_fn write, void *user,
                          sonde_error *err);
} sn_model_reader;

#define SN_MODEL_READER(symbol) extern const sn_model_reader symbol;
#include "model_readers/model_readers.inc"
#undef SN_MODEL_READER

#endif
