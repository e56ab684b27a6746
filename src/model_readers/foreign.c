/* SPDX-License-Identifier: Apache-2.0 */
/* By signature, and where one signature stands for several things by a word near the beginning.
 * Only files that no reader knows come here, so a wrong guess costs nothing but a sentence. */
#include "model_readers/foreign.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { HEAD_BYTES = 65536, TEXT_BYTES = 256 };

/* The first row that fits; rows with a word stand before those without. */
static const struct {
    size_t at;
    const char *signature; /* the bytes at `at` */
    const char *word;      /* occurs in the head; NULL: need not */
    const char *text;
} known[] = {
    {0, "version https://git-lfs", NULL,
     "it is a Git LFS pointer; the model itself was not downloaded"},
    {0, "PK\x03\x04", "data.pkl",
     "it is a zip archive, most likely a model saved by PyTorch; use torch.onnx.export to convert "
     "it to ONNX"},
    {0, "PK\x03\x04", ".npy", "it is a zip archive of NumPy arrays (.npz)"},
    {0, "PK\x03\x04", NULL, "it is a zip archive"},
    {0, "\x80\x02\x8A\x0Al\xFC\x9C", NULL,
     "it is a PyTorch pickle, not protobuf; use torch.onnx.export to convert a PyTorch model to "
     "ONNX"},
    {0, "\x89HDF", NULL, "it is an HDF5 file"},
    {0, "\x1F\x8B", NULL, "it is compressed with gzip"},
    {0, "GGUF", NULL, "it is a GGUF file, as llama.cpp uses, not protobuf"},
    {0, "\x93NUMPY", NULL, "it is a NumPy array (.npy), not protobuf"},
    {4, "TFL3", NULL, "it is a TensorFlow Lite model (.tflite), not protobuf"},
    {4, "ORTM", NULL,
     "it is a model in ONNX Runtime's format (.ort), not protobuf; use the .onnx file from which "
     "it was converted"},
    {8, "{\"", "\"dtype\"",
     "it is a .safetensors file, not protobuf; such a file contains weights but no graph"},
    {0, "<", "ir_version",
     "it is a text or web page, most likely a model in ONNX's text syntax; onnx.save writes the "
     "binary form"},
    {0, "<", "<net ", "it is a text or web page, most likely OpenVINO's description of a model"},
    {0, "<", NULL, "it is a text or web page"},
    {0, "{", "irVersion",
     "it is JSON text, most likely an ONNX model; onnx.save writes the binary form"},
    {0, "{", NULL, "it is JSON text"},
};

static bool has_at(const uint8_t *data, size_t bytes, size_t at, const char *word)
{
    const size_t n = strlen(word);
    return bytes >= at && bytes - at >= n && memcmp(data + at, word, n) == 0;
}

/* Printable ASCII, or more than that: UTF-8 is left to whoever reads it. */
static bool is_text(const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if ((data[i] < ' ' && data[i] != '\n' && data[i] != '\r' && data[i] != '\t') ||
            data[i] == 0x7F)
            return false;
    return bytes > 0;
}

const char *sn_foreign_text(const void *data, size_t bytes)
{
    const size_t head = bytes < HEAD_BYTES ? bytes : HEAD_BYTES;
    if (bytes == 0)
        return "it is empty";
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        if (has_at(data, head, known[k].at, known[k].signature) &&
            (!known[k].word || memmem(data, head, known[k].word, strlen(known[k].word))))
            return known[k].text;
    if (!is_text(data, head < TEXT_BYTES ? head : TEXT_BYTES))
        return NULL;
    return memmem(data, head, "ir_version", strlen("ir_version"))
               ? "it is the text form of an ONNX model, not binary protobuf; onnx.save writes the "
                 "binary form"
               : "it is a text file, not protobuf";
}
