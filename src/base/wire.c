/* SPDX-License-Identifier: Apache-2.0 */
/* The cursor. Every step compares with `end` before it reads; lengths are compared as sizes, never
 * added to pointers first, so a length near 2^64 cannot wrap. */
#include "base/wire.h"

#include <string.h>

bool sn_wire_varint(sn_wire *w, uint64_t *v)
{
    if (w->at < w->end && *w->at < 0x80) {
        *v = *w->at++;
        return true;
    }
    uint64_t r = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (w->at == w->end)
            return false;
        uint8_t b = *w->at++;
        if (shift == 63 && (b & 0x7E))
            return false;
        r |= (uint64_t)(b & 0x7F) << shift;
        if (!(b & 0x80)) {
            *v = r;
            return true;
        }
    }
    return false;
}

static bool fixed(sn_wire *w, size_t bytes, uint64_t *v)
{
    if (sn_wire_bytes(w) < bytes)
        return false;
    *v = 0;
    memcpy(v, w->at, bytes); /* little-endian, as every machine sonde runs on */
    w->at += bytes;
    return true;
}

/* The payload of a field whose tag has been read. */
static bool payload(sn_wire *w, sn_field *f)
{
    switch (f->tag & 7) {
    case SN_WIRE_VARINT:
        return sn_wire_varint(w, &f->num);
    case SN_WIRE_FIXED64:
        return fixed(w, 8, &f->num);
    case SN_WIRE_FIXED32:
        return fixed(w, 4, &f->num);
    case SN_WIRE_BYTES: {
        uint64_t n;
        if (!sn_wire_varint(w, &n) || n > sn_wire_bytes(w))
            return false;
        f->body = sn_wire_of(w->at, (size_t)n);
        w->at += n;
        return true;
    }
    default:
        return false;
    }
}

static bool tag(sn_wire *w, uint32_t *t)
{
    uint64_t v;
    if (!sn_wire_varint(w, &v) || v > UINT32_MAX || (v >> 3) == 0)
        return false;
    *t = (uint32_t)v;
    return true;
}

/* Skips to the end of a group whose start tag has been read; groups nest. */
static bool skip_group(sn_wire *w, uint32_t start)
{
    uint32_t open[SN_WIRE_MAX_DEPTH];
    size_t depth = 0;
    open[depth++] = start;
    while (depth) {
        sn_field f = {0};
        if (!tag(w, &f.tag))
            return false;
        if ((f.tag & 7) == SN_WIRE_GROUP) {
            if (depth == SN_WIRE_MAX_DEPTH)
                return false;
            open[depth++] = f.tag;
        } else if ((f.tag & 7) == SN_WIRE_GROUP_END) {
            if (f.tag >> 3 != open[--depth] >> 3)
                return false;
        } else if (!payload(w, &f)) {
            return false;
        }
    }
    return true;
}

sn_wire_status sn_wire_next(sn_wire *w, sn_field *f)
{
    while (w->at < w->end) {
        f->num = 0;
        f->body = (sn_wire){NULL, NULL};
        if (!tag(w, &f->tag))
            return SN_WIRE_BROKEN;
        if ((f->tag & 7) != SN_WIRE_GROUP)
            return payload(w, f) ? SN_WIRE_FIELD : SN_WIRE_BROKEN;
        if (!skip_group(w, f->tag))
            return SN_WIRE_BROKEN;
    }
    return SN_WIRE_END;
}

bool sn_wire_count(const sn_field *f, int elem, size_t *n)
{
    if ((f->tag & 7) != SN_WIRE_BYTES) {
        (*n)++;
        return true;
    }
    size_t bytes = sn_wire_bytes(&f->body), width = elem == SN_WIRE_FIXED32 ? 4 : 8;
    if (elem != SN_WIRE_VARINT) {
        *n += bytes / width;
        return bytes % width == 0;
    }
    sn_wire run = f->body;
    uint64_t v;
    while (run.at < run.end) {
        if (!sn_wire_varint(&run, &v))
            return false;
        (*n)++;
    }
    return true;
}

void sn_wire_iter_start(sn_wire_iter *it, const sn_field *f, int elem)
{
    *it = (sn_wire_iter){.run = f->body, .elem = elem, .num = f->num};
    it->single = (f->tag & 7) != SN_WIRE_BYTES;
}

bool sn_wire_iter_next(sn_wire_iter *it, uint64_t *num)
{
    if (it->single) {
        it->single = false;
        *num = it->num;
        return true;
    }
    if (it->run.at == it->run.end)
        return false;
    if (it->elem == SN_WIRE_VARINT)
        return sn_wire_varint(&it->run, num);
    return fixed(&it->run, it->elem == SN_WIRE_FIXED32 ? 4 : 8, num);
}
