/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol-buffer messages, field by field, into a buffer that grows. Meant for streams of many
 * small top-level messages: fill, hand the bytes on, reset, fill again. Out of memory sets `failed`
 * and every later call does nothing, so that only the end has to look. */
#ifndef SN_EXPORT_PROTO_H
#define SN_EXPORT_PROTO_H

#include "base/vec.h"

typedef struct sn_proto {
    sn_allocator *alloc;
    SN_VEC(unsigned char) bytes;
    bool failed;
} sn_proto;

enum { SN_PROTO_LONGEST = 10 }; /* bytes of a number */

void sn_proto_init(sn_proto *p, sn_allocator *alloc);
void sn_proto_free(sn_proto *p);
void sn_proto_reset(sn_proto *p); /* empty again; keeps its memory and `failed` */

/* Room for n more bytes; false when there is no memory, now or before. */
static inline bool sn_proto_room(sn_proto *p, size_t n)
{
    if (!p->failed && !sn_vec_reserve(&p->bytes, p->alloc, n))
        p->failed = true;
    return !p->failed;
}

/* Seven bits a byte; returns the end. */
static inline unsigned char *sn_proto_number(unsigned char *to, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *to++ = (unsigned char)(v | 0x80);
    *to++ = (unsigned char)v;
    return to;
}

/* uint32/64, bool, enum. In line, as traces of millions of events are made of these: a tag that
 * the compiler knows is one store. */
static inline void sn_proto_varint(sn_proto *p, uint32_t field, uint64_t v)
{
    if (!sn_proto_room(p, 2 * SN_PROTO_LONGEST))
        return;
    unsigned char *to = p->bytes.data + p->bytes.n;
    to = sn_proto_number(to, (uint64_t)field << 3);
    p->bytes.n = (size_t)(sn_proto_number(to, v) - p->bytes.data);
}

void sn_proto_int64(sn_proto *p, uint32_t field, int64_t v); /* int32/64: negative takes ten */
void sn_proto_fixed64(sn_proto *p, uint32_t field, uint64_t v);
void sn_proto_double(sn_proto *p, uint32_t field, double v);
void sn_proto_bytes(sn_proto *p, uint32_t field, const void *data, size_t n);
/* Fields that were encoded before, as they are. */
void sn_proto_raw(sn_proto *p, const void *fields, size_t n);
/* A string field must be UTF-8: bytes that are not become U+FFFD. NULL is "". */
void sn_proto_text(sn_proto *p, uint32_t field, const char *text);

/* A nested message: what is written between begin and end(mark) is its content. They nest. */
size_t sn_proto_begin(sn_proto *p, uint32_t field);
void sn_proto_end(sn_proto *p, size_t mark);
/* Inside begin and end of a packed repeated field: one element. */
void sn_proto_packed(sn_proto *p, uint64_t v);

#endif
