/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded cursor over protobuf's wire format: it never reads past `end`, never copies, and knows
 * no message. A message parser is a loop over sn_wire_next with a switch on the tag, which joins
 * field number and wire type: a field of an unknown number or an unexpected type falls into
 * `default` and is skipped, as protobuf does. */
#ifndef SN_BASE_WIRE_H
#define SN_BASE_WIRE_H

#include "base/status.h"

enum {
    SN_WIRE_VARINT = 0,
    SN_WIRE_FIXED64 = 1,
    SN_WIRE_BYTES = 2,
    SN_WIRE_GROUP = 3,
    SN_WIRE_GROUP_END = 4,
    SN_WIRE_FIXED32 = 5
};

/* Case labels: SN_INT(2) is field 2 as a varint, SN_LEN(1) field 1 as bytes or a message. */
#define SN_TAG(number, type) (((uint32_t)(number) << 3) | (uint32_t)(type))
#define SN_INT(number)       SN_TAG(number, SN_WIRE_VARINT)
#define SN_LEN(number)       SN_TAG(number, SN_WIRE_BYTES)
#define SN_F32(number)       SN_TAG(number, SN_WIRE_FIXED32)
#define SN_F64(number)       SN_TAG(number, SN_WIRE_FIXED64)

/* How deep messages may nest (graphs in graphs, types of types, values in values, unknown groups):
 * far above any real model, far below what a stack can take. */
#define SN_WIRE_MAX_DEPTH 64

typedef struct sn_wire {
    const uint8_t *at, *end;
} sn_wire;

typedef struct sn_field {
    uint32_t tag;
    uint64_t num; /* varint, fixed32 and fixed64 */
    sn_wire body; /* bytes and messages */
} sn_field;

static inline sn_wire sn_wire_of(const void *data, size_t bytes)
{
    const uint8_t *p = data;
    return (sn_wire){p, p + bytes};
}
static inline size_t sn_wire_bytes(const sn_wire *w)
{
    return (size_t)(w->end - w->at);
}

/* False when the bytes end inside the number or it has more than 64 bits. */
bool sn_wire_varint(sn_wire *w, uint64_t *v);

typedef enum sn_wire_status {
    SN_WIRE_END = 0,
    SN_WIRE_FIELD = 1,
    SN_WIRE_BROKEN = -1
} sn_wire_status;
/* The next field; groups are skipped whole and not reported. */
sn_wire_status sn_wire_next(sn_wire *w, sn_field *f);

/* Elements of one repeated number field, packed (a BYTES field) or not. `elem` is the wire type of
 * an element. sn_wire_count adds up how many there are: false when a packed run is broken. */
bool sn_wire_count(const sn_field *f, int elem, size_t *n);
/* Calls for every element of `f` in order, as raw 64-bit numbers. Only after sn_wire_count agreed.
 */
typedef struct sn_wire_iter {
    sn_wire run;
    int elem;
    bool single;
    uint64_t num;
} sn_wire_iter;
void sn_wire_iter_start(sn_wire_iter *it, const sn_field *f, int elem);
bool sn_wire_iter_next(sn_wire_iter *it, uint64_t *num);

static inline float sn_wire_float(uint64_t num)
{
    uint32_t bits = (uint32_t)num;
    float f;
    __builtin_memcpy(&f, &bits, sizeof f);
    return f;
}

#endif
