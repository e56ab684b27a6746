/* SPDX-License-Identifier: Apache-2.0 */
/* A stored block is one byte (last or not), its length, the length's complement and the bytes. */
#include "export/deflate.h"

#include <string.h>

#include "base/crc32.h"

enum { BLOCK_HEADER = 5 };

void sn_put_le(unsigned char *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(v >> (8 * i));
}

static bool put_block(sn_deflate *d, bool last)
{
    unsigned char header[BLOCK_HEADER] = {last ? 1 : 0};
    sn_put_le(header + 1, d->n, 2);
    sn_put_le(header + 3, ~(uint64_t)d->n, 2);
    sn_sink_write(d->to, header, sizeof header);
    const bool fine = sn_sink_write(d->to, d->block, d->n);
    d->bytes_out += sizeof header + d->n;
    d->n = 0;
    return fine;
}

static bool take(sn_sink *sink, const void *data, size_t bytes)
{
    sn_deflate *d = sink->user;
    const unsigned char *s = data;
    d->crc = sn_crc32(d->crc, data, bytes);
    d->bytes_in += bytes;
    while (bytes) {
        size_t part = sizeof d->block - d->n;
        part = part < bytes ? part : bytes;
        memcpy(d->block + d->n, s, part);
        d->n += part;
        s += part;
        bytes -= part;
        if (d->n == sizeof d->block && !put_block(d, false))
            return false;
    }
    return true;
}

void sn_deflate_init(sn_deflate *d, sn_sink *to)
{
    d->sink = (sn_sink){.write = take, .user = d};
    d->to = to;
    d->crc = 0;
    d->bytes_in = d->bytes_out = 0;
    d->n = 0;
}

void sn_deflate_finish(sn_deflate *d)
{
    put_block(d, true);
}

void sn_gzip_init(sn_deflate *d, sn_sink *to)
{
    /* deflate; no flags, no time (the same profile gives the same bytes), any system */
    static const unsigned char header[10] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255};
    sn_sink_write(to, header, sizeof header);
    sn_deflate_init(d, to);
}

void sn_gzip_finish(sn_deflate *d)
{
    unsigned char trailer[8];
    sn_deflate_finish(d);
    sn_put_le(trailer, d->crc, 4);
    sn_put_le(trailer + 4, d->bytes_in, 4);
    sn_sink_write(d->to, trailer, sizeof trailer);
}
