/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX files as a row of the list; src/onnx does the work. */
#include "onnx/onnx.h"

#include "base/wire.h"
#include "model_readers/reader.h"

/* A protobuf message has no signature, its fields come in any order and unknown ones are skipped:
 * whatever is a message from the first byte to the last may be a model. The walk skips the contents
 * of fields, so it touches little of a large file. */
static bool sniff(const sn_model_source *src)
{
    sn_wire w = sn_wire_of(src->data, src->bytes);
    sn_wire_status got;
    sn_field f;
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD)
        continue;
    return src->bytes > 0 && got == SN_WIRE_END;
}

static sonde_status read_model(const sn_model_source *src, sn_model *m, sonde_error *err)
{
    const sn_onnx_options opt = {.dir = src->dir, .no_mmap = src->no_mmap};
    return sn_onnx_read(m, src->data, src->bytes, &opt, err);
}

static sonde_status write_model(const sn_model *m, const sn_graph *g, const sn_model_sink *sink,
                                const sn_model_save_options *opt, sonde_error *err)
{
    const sn_onnx_sink to = {.write = sink->write,
                             .write_data = sink->write_data,
                             .user = sink->user,
                             .location = sink->data_name,
                             .external = opt->external,
                             .inline_bytes = opt->inline_bytes,
                             .sparse = opt->sparse};
    return sn_onnx_write(m, g, &to, err);
}

const sn_model_reader sn_model_reader_onnx = {
    .name = "ONNX",
    .suffix = ".onnx",
    .sniff = sniff,
    .read = read_model,
    .write = write_model,
};
