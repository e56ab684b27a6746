/* SPDX-License-Identifier: Apache-2.0 */
/* The wire form: a tag (field number and wire type) before every value, numbers seven bits a byte,
 * lengths before contents. A nested message's length is known only at its end; one byte is kept
 * free for it and the content is moved up where that is not enough, so the bytes are canonical. */
#include "export/proto.h"

#include <string.h>

#include "base/utf8.h"

enum { WIRE_FIXED64 = 1, WIRE_LENGTH = 2 };

void sn_proto_init(sn_proto *p, sn_allocator *alloc)
{
    *p = (sn_proto){.alloc = alloc};
}

void sn_proto_free(sn_proto *p)
{
    if (p->alloc)
        sn_vec_free(&p->bytes, p->alloc);
}

void sn_proto_reset(sn_proto *p)
{
    p->bytes.n = 0;
}

static void append(sn_proto *p, const void *data, size_t n)
{
    if (!n || !sn_proto_room(p, n))
        return;
    memcpy(p->bytes.data + p->bytes.n, data, n);
    p->bytes.n += n;
}

void sn_proto_packed(sn_proto *p, uint64_t v)
{
    if (sn_proto_room(p, SN_PROTO_LONGEST))
        p->bytes.n = (size_t)(sn_proto_number(p->bytes.data + p->bytes.n, v) - p->bytes.data);
}

static void tag(sn_proto *p, uint32_t field, unsigned wire)
{
    sn_proto_packed(p, (uint64_t)field << 3 | wire);
}

void sn_proto_int64(sn_proto *p, uint32_t field, int64_t v)
{
    sn_proto_varint(p, field, (uint64_t)v);
}

void sn_proto_fixed64(sn_proto *p, uint32_t field, uint64_t v)
{
    unsigned char little[8];
    for (int i = 0; i < 8; i++)
        little[i] = (unsigned char)(v >> (8 * i));
    tag(p, field, WIRE_FIXED64);
    append(p, little, sizeof little);
}

void sn_proto_double(sn_proto *p, uint32_t field, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    sn_proto_fixed64(p, field, bits);
}

void sn_proto_bytes(sn_proto *p, uint32_t field, const void *data, size_t n)
{
    tag(p, field, WIRE_LENGTH);
    sn_proto_packed(p, n);
    append(p, data, n);
}

void sn_proto_raw(sn_proto *p, const void *fields, size_t n)
{
    append(p, fields, n);
}

void sn_proto_text(sn_proto *p, uint32_t field, const char *text)
{
    const unsigned char *s = (const unsigned char *)(text ? text : "");
    size_t left = strlen((const char *)s), mark = sn_proto_begin(p, field);
    while (left) {
        size_t good = 0; /* a stretch that can be taken as it is */
        uint32_t code;
        for (size_t len; good < left && (len = sn_utf8_char(s + good, left - good, &code)) > 0;)
            good += len;
        append(p, s, good);
        if (good < left) {
            append(p, "\xEF\xBF\xBD", 3);
            good++;
        }
        s += good;
        left -= good;
    }
    sn_proto_end(p, mark);
}

size_t sn_proto_begin(sn_proto *p, uint32_t field)
{
    tag(p, field, WIRE_LENGTH);
    append(p, "", 1);
    return p->bytes.n;
}

void sn_proto_end(sn_proto *p, size_t mark)
{
    if (p->failed)
        return;
    unsigned char length[SN_PROTO_LONGEST];
    const size_t content = p->bytes.n - mark;
    const size_t n = (size_t)(sn_proto_number(length, content) - length);
    if (n == 1) { /* it fits into the byte that was kept free */
        p->bytes.data[mark - 1] = length[0];
        return;
    }
    append(p, length, n - 1); /* makes room */
    if (p->failed)
        return;
    memmove(p->bytes.data + mark - 1 + n, p->bytes.data + mark, content);
    memcpy(p->bytes.data + mark - 1, length, n);
}
