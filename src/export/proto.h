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

void sn_proto_init(sn_proto *p, sn_allocator *alloc);
void sn_proto_free(sn_proto *p);
void sn_proto_reset(sn_proto *p); /* empty again; keeps its memory and `failed` */

void sn_proto_varint(sn_proto *p, uint32_t field, uint64_t v); /* uint32/64, bool, enum */
void sn_proto_int64(sn_proto *p, uint32_t field, int64_t v);   /* int32/64: negative takes ten */
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
