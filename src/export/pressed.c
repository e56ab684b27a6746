/* SPDX-License-Identifier: Apache-2.0 */
/* gzip by zlib (RFC 1952), or by stored blocks where the build has none: every reader takes both.
 */
#include "export/pressed.h"

#include "export/deflate.h"

#ifdef SONDE_HAVE_ZLIB
#include <zlib.h>

enum { OUT_BYTES = 32768, HEAD_BYTES = 64 }; /* a head keeps what zlib takes aligned */

struct sn_pressed {
    sn_sink sink, *to;
    sn_allocator *alloc;
    z_stream z;
    unsigned char out[OUT_BYTES];
};

/* zlib frees without telling the size, so it stands before the block. */
static void *take(void *user, uInt n, uInt bytes)
{
    const size_t size = (size_t)n * bytes + HEAD_BYTES;
    char *block = sn_alloc(user, size);
    if (!block)
        return NULL;
    *(size_t *)block = size;
    return block + HEAD_BYTES;
}

static void give(void *user, void *at)
{
    char *block = (char *)at - HEAD_BYTES;
    sn_free(user, block, *(size_t *)block);
}

/* Deflates what is there, as far as `flush` demands. */
static bool deflate_some(sn_pressed *z, int flush)
{
    int rc;
    do {
        z->z.next_out = z->out;
        z->z.avail_out = OUT_BYTES;
        rc = deflate(&z->z, flush);
        if (rc == Z_STREAM_ERROR || !sn_sink_write(z->to, z->out, OUT_BYTES - z->z.avail_out))
            return false;
    } while (z->z.avail_out == 0 || (flush == Z_FINISH && rc == Z_OK));
    return true;
}

static bool write_pressed(sn_sink *sink, const void *data, size_t bytes)
{
    sn_pressed *z = sink->user;
    const unsigned char *at = data;
    while (bytes) { /* zlib counts in 32 bits */
        const uInt part = bytes > 1u << 30 ? 1u << 30 : (uInt)bytes;
        z->z.next_in = (Bytef *)(uintptr_t)at;
        z->z.avail_in = part;
        if (!deflate_some(z, Z_NO_FLUSH))
            return false;
        at += part;
        bytes -= part;
    }
    return true;
}

sonde_status sn_pressed_open(sn_pressed **out, sn_sink *to, sn_allocator *alloc, sonde_error *err)
{
    sn_pressed *z = sn_alloc(alloc, sizeof *z);
    *out = z;
    if (!z)
        return sn_fail_memory(err, sizeof *z);
    *z = (sn_pressed){.sink = {.write = write_pressed, .user = z},
                      .to = to,
                      .alloc = alloc,
                      .z = {.zalloc = take, .zfree = give, .opaque = alloc}};
    /* 16 + 15: a gzip header. Level 5 is half as large as level 1 at twice its time. */
    if (deflateInit2(&z->z, 5, Z_DEFLATED, 16 + 15, 9, Z_DEFAULT_STRATEGY) == Z_OK)
        return SONDE_OK;
    sn_free(alloc, z, sizeof *z);
    *out = NULL;
    return sn_fail_memory(err, sizeof *z);
}

sonde_status sn_pressed_finish(sn_pressed *z, sonde_error *err)
{
    const bool done = !z->sink.failed && deflate_some(z, Z_FINISH) && !z->to->failed;
    deflateEnd(&z->z);
    sn_free(z->alloc, z, sizeof *z);
    return done ? SONDE_OK : sn_fail(err, SONDE_IO, "the output could not be written");
}
#else
struct sn_pressed {
    sn_deflate stored;
    sn_allocator *alloc;
};

sonde_status sn_pressed_open(sn_pressed **out, sn_sink *to, sn_allocator *alloc, sonde_error *err)
{
    sn_pressed *z = sn_alloc(alloc, sizeof *z);
    *out = z;
    if (!z)
        return sn_fail_memory(err, sizeof *z);
    z->alloc = alloc;
    sn_gzip_init(&z->stored, to);
    return SONDE_OK;
}

sonde_status sn_pressed_finish(sn_pressed *z, sonde_error *err)
{
    sn_gzip_finish(&z->stored);
    const bool done = !z->stored.to->failed;
    sn_free(z->alloc, z, sizeof *z);
    return done ? SONDE_OK : sn_fail(err, SONDE_IO, "the output could not be written");
}
#endif

sn_sink *sn_pressed_sink(sn_pressed *z)
{
#ifdef SONDE_HAVE_ZLIB
    return &z->sink;
#else
    return &z->stored.sink;
#endif
}

/* ------------------------------------------------------------------ base64 (RFC 4648) */
static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void group(const unsigned char in[3], char out[4])
{
    out[0] = digits[in[0] >> 2];
    out[1] = digits[(in[0] & 3) << 4 | in[1] >> 4];
    out[2] = digits[(in[1] & 15) << 2 | in[2] >> 6];
    out[3] = digits[in[2] & 63];
}

static bool write_base64(sn_sink *sink, const void *data, size_t bytes)
{
    sn_base64 *b = sink->user;
    const unsigned char *at = data;
    char out[4096];
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) {
        b->left[b->n++] = at[i];
        if (b->n < 3)
            continue;
        group(b->left, out + n);
        b->n = 0;
        n += 4;
        if (n == sizeof out) {
            if (!sn_sink_write(b->to, out, n))
                return false;
            n = 0;
        }
    }
    return sn_sink_write(b->to, out, n);
}

void sn_base64_init(sn_base64 *b, sn_sink *to)
{
    *b = (sn_base64){.sink = {.write = write_base64, .user = b}, .to = to};
}

void sn_base64_finish(sn_base64 *b)
{
    char out[4];
    if (!b->n)
        return;
    memset(b->left + b->n, 0, 3 - b->n);
    group(b->left, out);
    memset(out + b->n + 1, '=', 3 - b->n);
    sn_sink_write(b->to, out, sizeof out);
    b->n = 0;
}
