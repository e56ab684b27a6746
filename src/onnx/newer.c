/* SPDX-License-Identifier: Apache-2.0 */
/* A model of an IR version newer than we know is read all the same: what it uses is mostly old.
 * What nobody here has heard of must not go by in silence, though, so such a file is walked once
 * more and every field that is not in the tables below is named in a warning. */
#include "onnx/reader.h"

enum { MOST_WARNINGS = 16 };

typedef enum message {
    NONE, /* numbers, texts, or bytes */
    MODEL,
    GRAPH,
    NODE,
    FUNCTION,
    ATTRIBUTE,
    TENSOR,
    SPARSE,
    VALUE,
    TYPE,
    TENSOR_TYPE,
    ELEMENT, /* Sequence and Optional */
    MAP,
    OPAQUE,
    SHAPE,
    DIMENSION,
    OPSET,
    ENTRY,
    MESSAGES
} message;

/* Fields up to 31, as a set. */
#define F(n)     (UINT32_C(1) << (n))
#define UP_TO(n) (F((n) + 1) - F(1))

static const struct {
    const char *name;
    uint32_t fields;
    struct {
        uint8_t field, message;
    } inner[10]; /* of the known fields; the others hold no messages that may have grown */
} messages[MESSAGES] = {
    [MODEL] = {"ModelProto",
               UP_TO(8) | F(14) | F(20) | F(25) | F(26),
               {{7, GRAPH}, {8, OPSET}, {14, ENTRY}, {25, FUNCTION}}},
    [GRAPH] = {"GraphProto",
               F(1) | F(2) | F(5) | (UP_TO(16) - UP_TO(9)),
               {{1, NODE}, {5, TENSOR}, {11, VALUE}, {12, VALUE}, {13, VALUE}, {15, SPARSE}}},
    [NODE] = {"NodeProto", UP_TO(10), {{5, ATTRIBUTE}, {9, ENTRY}}},
    [FUNCTION] = {"FunctionProto",
                  F(1) | (UP_TO(14) - UP_TO(3)),
                  {{7, NODE}, {9, OPSET}, {11, ATTRIBUTE}, {12, VALUE}, {14, ENTRY}}},
    [ATTRIBUTE] = {"AttributeProto",
                   UP_TO(11) | (UP_TO(15) - UP_TO(12)) | (UP_TO(23) - UP_TO(19)),
                   {{5, TENSOR},
                    {6, GRAPH},
                    {10, TENSOR},
                    {11, GRAPH},
                    {14, TYPE},
                    {15, TYPE},
                    {22, SPARSE},
                    {23, SPARSE}}},
    [TENSOR] = {"TensorProto", UP_TO(14) | F(16), {{13, ENTRY}, {16, ENTRY}}},
    [SPARSE] = {"SparseTensorProto", UP_TO(3), {{1, TENSOR}, {2, TENSOR}}},
    [VALUE] = {"ValueInfoProto", UP_TO(4), {{2, TYPE}, {4, ENTRY}}},
    [TYPE] =
        {"TypeProto",
         F(1) | (UP_TO(9) - UP_TO(3)),
         {{1, TENSOR_TYPE}, {4, ELEMENT}, {5, MAP}, {7, OPAQUE}, {8, TENSOR_TYPE}, {9, ELEMENT}}},
    [TENSOR_TYPE] = {"TypeProto.Tensor", UP_TO(2), {{2, SHAPE}}},
    [ELEMENT] = {"TypeProto.Sequence", UP_TO(1), {{1, TYPE}}},
    [MAP] = {"TypeProto.Map", UP_TO(2), {{2, TYPE}}},
    [OPAQUE] = {"TypeProto.Opaque", UP_TO(3), {{0, NONE}}},
    [SHAPE] = {"TensorShapeProto", UP_TO(1), {{1, DIMENSION}}},
    [DIMENSION] = {"TensorShapeProto.Dimension", UP_TO(3), {{0, NONE}}},
    [OPSET] = {"OperatorSetIdProto", UP_TO(2), {{0, NONE}}},
    [ENTRY] = {"StringStringEntryProto", UP_TO(2), {{0, NONE}}},
};

typedef struct found {
    sn_onnx_reader *r;
    int n;
    struct {
        message in;
        uint32_t field;
    } seen[MOST_WARNINGS];
} found;

static void tell(found *f, message in, uint32_t field)
{
    for (int i = 0; i < f->n; i++)
        if (f->seen[i].in == in && f->seen[i].field == field)
            return;
    if (f->n == MOST_WARNINGS)
        return;
    f->seen[f->n].in = in;
    f->seen[f->n++].field = field;
    sn_log_write(&f->r->m->ctx->log, SN_LOG_WARN,
                 "field %u of %s is unknown to this version and is ignored", field,
                 messages[in].name);
}

static message inner_of(message in, uint32_t field)
{
    for (size_t i = 0; i < sizeof messages[in].inner / sizeof messages[in].inner[0]; i++)
        if (messages[in].inner[i].message != NONE && messages[in].inner[i].field == field)
            return (message)messages[in].inner[i].message;
    return NONE;
}

/* Broken bytes and too deep nesting are the reader's to refuse. */
static void look(found *f, sn_wire w, message in, unsigned depth)
{
    sn_field field;
    while (sn_wire_next(&w, &field) == SN_WIRE_FIELD) {
        const uint32_t number = field.tag >> 3;
        const message inner = (field.tag & 7) == SN_WIRE_BYTES ? inner_of(in, number) : NONE;
        if (number > 31 || !(messages[in].fields & F(number)))
            tell(f, in, number);
        else if (inner != NONE && depth < SN_WIRE_MAX_DEPTH)
            look(f, field.body, inner, depth + 1);
    }
}

void sn_onnx_reader_tell_unknown(sn_onnx_reader *r, sn_wire model)
{
    found f = {.r = r};
    look(&f, model, MODEL, 0);
}
