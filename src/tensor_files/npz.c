/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npz: a zip archive of .npy files. The central directory is the truth, as for every zip
 * tool; entries are stored or deflated (with zlib), sizes may be 64-bit. Entries may not overlap,
 * and none may unpack to more than deflate can hold; that is still a thousand times its bytes, so
 * whoever knows what a model takes says which arrays are wanted, and others are not unpacked. */
#include <stdio.h>
#include <string.h>

#include "base/crc32.h"
#include "tensor_files/formats.h"

#ifdef SONDE_HAVE_ZLIB
#include <zlib.h>
#endif

enum {
    LOCAL_SIG = 0x04034b50,
    CENTRAL_SIG = 0x02014b50,
    END_SIG = 0x06054b50,
    END64_SIG = 0x06064b50,
    LOCATOR64_SIG = 0x07064b50,
    LOCAL_BYTES = 30,
    CENTRAL_BYTES = 46,
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR64_BYTES = 20,
};
#define DEFLATE_MAX_RATIO 1032u /* of deflate itself: 258 bytes from two bits */

typedef struct zip {
    const uint8_t *data;
    size_t bytes;
    uint64_t entries, directory, directory_bytes;
    size_t spent; /* compressed bytes of the entries so far */
    sonde_error *err;
} zip;

typedef struct zip_entry {
    const uint8_t *name;
    size_t name_bytes;
    unsigned method, flags;
    uint32_t crc;
    uint64_t packed, unpacked, offset;
} zip_entry;

static sonde_status broken(zip *z, const char *why)
{
    return sn_fail(z->err, SONDE_INVALID_ARGUMENT, "the .npz archive is invalid: %s", why);
}

static bool within(const zip *z, uint64_t offset, uint64_t bytes)
{
    return offset <= z->bytes && bytes <= z->bytes - offset;
}

/* ---- the directory ---- */

/* The 64-bit end record, where the plain one has no room for its numbers. */
static sonde_status find_end64(zip *z, size_t end)
{
    if (end < LOCATOR64_BYTES || sn_get_le(z->data + end - LOCATOR64_BYTES, 4) != LOCATOR64_SIG)
        return broken(z, "its 64-bit directory is missing");
    uint64_t at = sn_get_le(z->data + end - LOCATOR64_BYTES + 8, 8);
    if (!within(z, at, END64_BYTES) || sn_get_le(z->data + at, 4) != END64_SIG)
        return broken(z, "its 64-bit directory is missing");
    z->entries = sn_get_le(z->data + at + 32, 8);
    z->directory_bytes = sn_get_le(z->data + at + 40, 8);
    z->directory = sn_get_le(z->data + at + 48, 8);
    return SONDE_OK;
}

static sonde_status find_directory(zip *z)
{
    if (z->bytes < END_BYTES)
        return broken(z, "it has no directory");
    size_t last = z->bytes - END_BYTES, lowest = last > 65535 ? last - 65535 : 0;
    for (size_t at = last + 1; at-- > lowest;) {
        const uint8_t *p = z->data + at;
        if (sn_get_le(p, 4) != END_SIG || sn_get_le(p + 20, 2) != last - at)
            continue; /* the comment must reach to the end of the file */
        z->entries = sn_get_le(p + 10, 2);
        z->directory_bytes = sn_get_le(p + 12, 4);
        z->directory = sn_get_le(p + 16, 4);
        if (z->entries == UINT16_MAX || z->directory_bytes == UINT32_MAX ||
            z->directory == UINT32_MAX)
            SN_TRY(find_end64(z, at));
        return within(z, z->directory, z->directory_bytes)
                   ? SONDE_OK
                   : broken(z, "its directory is outside the file");
    }
    return broken(z, "it has no directory");
}

/* 64-bit numbers of an entry live in an extra field, in this order, each only where needed. */
static bool read_extra64(const uint8_t *p, size_t n, zip_entry *e)
{
    uint64_t *fields[] = {&e->unpacked, &e->packed, &e->offset};
    while (n >= 4) {
        size_t id = (size_t)sn_get_le(p, 2), size = (size_t)sn_get_le(p + 2, 2);
        p += 4, n -= 4;
        if (size > n)
            return false;
        if (id == 1) {
            const uint8_t *q = p;
            size_t left = size;
            for (size_t k = 0; k < 3; k++) {
                if (*fields[k] != UINT32_MAX)
                    continue;
                if (left < 8)
                    return false;
                *fields[k] = sn_get_le(q, 8);
                q += 8, left -= 8;
            }
            return true;
        }
        p += size, n -= size;
    }
    return true;
}

/* The entry at *at of the directory; moves *at behind it. */
static sonde_status next_entry(zip *z, uint64_t *at, zip_entry *e)
{
    uint64_t end = z->directory + z->directory_bytes;
    const uint8_t *p = z->data + *at;
    if (end - *at < CENTRAL_BYTES || sn_get_le(p, 4) != CENTRAL_SIG)
        return broken(z, "its directory is truncated");
    size_t name = (size_t)sn_get_le(p + 28, 2), extra = (size_t)sn_get_le(p + 30, 2);
    size_t comment = (size_t)sn_get_le(p + 32, 2);
    if (end - *at - CENTRAL_BYTES < name + extra + comment)
        return broken(z, "its directory is truncated");
    *e = (zip_entry){
        .name = p + CENTRAL_BYTES,
        .name_bytes = name,
        .flags = (unsigned)sn_get_le(p + 8, 2),
        .method = (unsigned)sn_get_le(p + 10, 2),
        .crc = (uint32_t)sn_get_le(p + 16, 4),
        .packed = sn_get_le(p + 20, 4),
        .unpacked = sn_get_le(p + 24, 4),
        .offset = sn_get_le(p + 42, 4),
    };
    if (!read_extra64(p + CENTRAL_BYTES + name, extra, e))
        return broken(z, "an entry has an invalid 64-bit size");
    *at += CENTRAL_BYTES + name + extra + comment;
    return SONDE_OK;
}

/* ---- entries ---- */

static sonde_status entry_data(zip *z, const zip_entry *e, const uint8_t **data)
{
    if (e->flags & 1)
        return sn_fail(z->err, SONDE_UNSUPPORTED, "the .npz archive is encrypted");
    if (!within(z, e->offset, LOCAL_BYTES) || sn_get_le(z->data + e->offset, 4) != LOCAL_SIG)
        return broken(z, "an entry is outside the file");
    const uint8_t *p = z->data + e->offset;
    uint64_t start = e->offset + LOCAL_BYTES + sn_get_le(p + 26, 2) + sn_get_le(p + 28, 2);
    if (!within(z, start, e->packed))
        return broken(z, "an entry is truncated");
    /* Honest entries do not overlap, so together they are no larger than the file. */
    if (!sn_size_add(z->spent, (size_t)e->packed, &z->spent) || z->spent > z->bytes)
        return broken(z, "its entries overlap");
    *data = z->data + start;
    return SONDE_OK;
}

#ifdef SONDE_HAVE_ZLIB
/* The first m bytes of what n unpack to; *ends: and there are no more. */
static bool inflate_first(const uint8_t *src, size_t n, uint8_t *dst, size_t m, bool *ends)
{
    z_stream s = {0};
    if (inflateInit2(&s, -MAX_WBITS) != Z_OK)
        return false;
    int rc = Z_OK;
    /* zlib counts in 32 bits: both sides go in pieces. */
    while (rc == Z_OK) {
        uInt in = n > 1u << 30 ? 1u << 30 : (uInt)n, out = m > 1u << 30 ? 1u << 30 : (uInt)m;
        s.next_in = (Bytef *)(uintptr_t)src, s.avail_in = in;
        s.next_out = dst, s.avail_out = out;
        rc = inflate(&s, Z_NO_FLUSH);
        size_t took = in - s.avail_in, gave = out - s.avail_out;
        src += took, n -= took, dst += gave, m -= gave;
        if (rc == Z_OK && !took && !gave)
            break;
    }
    inflateEnd(&s);
    *ends = rc == Z_STREAM_END;
    return m == 0 && (rc == Z_STREAM_END || rc == Z_OK || rc == Z_BUF_ERROR);
}
#endif

/* The first `bytes` bytes of an entry, at most all, which the caller frees. */
static sonde_status unpack(zip *z, const zip_entry *e, const uint8_t *data, size_t bytes,
                           sn_allocator *alloc, uint8_t **out)
{
    *out = NULL;
#ifdef SONDE_HAVE_ZLIB
    bool ends = false;
    if (e->unpacked / DEFLATE_MAX_RATIO > e->packed)
        return broken(z, "an entry has an implausible uncompressed size");
    uint8_t *buf = sn_alloc(alloc, bytes);
    if (!buf)
        return sn_fail_memory(z->err, bytes);
    if (!inflate_first(data, (size_t)e->packed, buf, bytes, &ends) ||
        (bytes == e->unpacked && !ends)) {
        sn_free(alloc, buf, bytes);
        return broken(z, "an entry cannot be decompressed");
    }
    *out = buf;
    return SONDE_OK;
#else
    (void)e, (void)data, (void)bytes, (void)alloc;
    return sn_fail(
        z->err, SONDE_UNSUPPORTED,
        "the .npz archive is compressed and this build has no zlib; write it with numpy.savez");
#endif
}

static sonde_status entry_name(const zip_entry *e, sn_named_list *out, const char **name,
                               sonde_error *err)
{
    size_t n = e->name_bytes;
    if (n >= 4 && memcmp(e->name + n - 4, ".npy", 4) == 0)
        n -= 4;
    if (memchr(e->name, 0, n))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "an entry's name contains a zero byte");
    *name = sn_arena_strndup(&out->arena, (const char *)e->name, n);
    return *name ? SONDE_OK : sn_fail_memory(err, n);
}

/* Nothing is unpacked but the header of an array until it is clear that its size is that of its
 * elements, and that somebody wants it. */
static sonde_status look_at_entry(zip *z, const zip_entry *e, const uint8_t *data, const char *name,
                                  sn_named_list *out, bool *wanted)
{
    uint8_t *head = NULL;
    const size_t bytes = e->unpacked < SN_NPY_HEAD ? (size_t)e->unpacked : SN_NPY_HEAD;
    sn_npy_shape shape;
    if (e->method == 8)
        SN_TRY(unpack(z, e, data, bytes, out->alloc, &head));
    const sonde_status st =
        sn_npy_peek(head ? head : data, bytes, (size_t)e->unpacked, &shape, z->err);
    if (head)
        sn_free(out->alloc, head, bytes);
    *wanted = st == SONDE_OK && sn_named_wants(out, name, shape.dims, shape.rank);
    return st;
}

static sonde_status read_wanted(zip *z, const zip_entry *e, const uint8_t *data, const char *name,
                                const sn_type *as, sn_named_list *out)
{
    uint8_t *unpacked = NULL;
    sn_slot slot = {0};
    if (e->method == 8) {
        SN_TRY(unpack(z, e, data, (size_t)e->unpacked, out->alloc, &unpacked));
        data = unpacked;
    }
    sonde_status st = sn_crc32(0, data, (size_t)e->unpacked) == e->crc
                          ? sn_npy_read(data, (size_t)e->unpacked, as, out->alloc, &slot, z->err)
                          : broken(z, "a checksum does not match");
    if (st == SONDE_OK)
        st = sn_named_add(out, name, &slot, z->err);
    sn_slot_clear(&slot);
    if (unpacked)
        sn_free(out->alloc, unpacked, (size_t)e->unpacked);
    return st;
}

static sonde_status read_entry(zip *z, const zip_entry *e, const sn_type *as, sn_named_list *out)
{
    const uint8_t *data = NULL;
    const char *name = NULL;
    bool wanted = false;
    if (e->name_bytes && e->name[e->name_bytes - 1] == '/')
        return SONDE_OK; /* a folder */
    SN_TRY(entry_data(z, e, &data));
    if (e->method != 8 && (e->method != 0 || e->packed != e->unpacked))
        return sn_fail(z->err, SONDE_UNSUPPORTED,
                       "the .npz archive uses compression method %u, which is not supported",
                       e->method);
    SN_TRY(entry_name(e, out, &name, z->err));
    sonde_status st = look_at_entry(z, e, data, name, out, &wanted);
    if (st == SONDE_OK && wanted)
        st = read_wanted(z, e, data, name, as, out);
    if (st != SONDE_OK && st != SONDE_OUT_OF_MEMORY)
        sn_error_prefix(z->err, "array '%.200s'", name);
    return st;
}

sonde_status sn_npz_read(const uint8_t *data, size_t bytes, const sn_type *as, sn_named_list *out,
                         sonde_error *err)
{
    zip z = {.data = data, .bytes = bytes, .err = err};
    SN_TRY(find_directory(&z));
    uint64_t at = z.directory;
    for (uint64_t k = 0; k < z.entries; k++) {
        zip_entry e;
        SN_TRY(next_entry(&z, &at, &e));
        SN_TRY(read_entry(&z, &e, as, out));
    }
    return SONDE_OK;
}

/* ---- writing: stored entries ---- */

/* The fields a local header and a directory entry have in common. */
static void put_common(sn_bytes *out, uint32_t crc, uint64_t size, size_t name_bytes)
{
    sn_bytes_le(out, 20, 2);       /* version needed */
    sn_bytes_le(out, 1u << 11, 2); /* names are UTF-8 */
    sn_bytes_le(out, 0, 2);        /* stored */
    sn_bytes_le(out, 0, 2);        /* midnight */
    sn_bytes_le(out, 33, 2);       /* 1 January 1980: the same archive for the same values */
    sn_bytes_le(out, crc, 4);
    sn_bytes_le(out, size, 4);
    sn_bytes_le(out, size, 4);
    sn_bytes_le(out, name_bytes, 2);
}

static sonde_status put_entry(const sn_named *n, size_t k, sn_bytes *out, sn_bytes *directory,
                              sonde_error *err)
{
    char fallback[32];
    const char *name = n->name;
    if (n->slot.kind != SN_KIND_TENSOR)
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "'%.200s' is not a tensor; write a folder of .pb files", n->name);
    if (!name[0]) {
        snprintf(fallback, sizeof fallback, "arr_%zu", k);
        name = fallback;
    }
    size_t name_bytes = strlen(name) + 4, offset = out->v.n;
    if (name_bytes > UINT16_MAX)
        return sn_fail(err, SONDE_LIMIT, "the name '%.60s…' is too long for a .npz archive", name);
    sn_bytes npy = {.alloc = out->alloc};
    sonde_status st = sn_npy_write(&n->slot.t, &npy, err);
    if (st == SONDE_OK && npy.failed)
        st = sn_fail_memory(err, n->slot.t.bytes);
    if (st == SONDE_OK) {
        uint32_t crc = sn_crc32(0, npy.v.data, npy.v.n);
        sn_bytes_le(out, LOCAL_SIG, 4);
        put_common(out, crc, npy.v.n, name_bytes);
        sn_bytes_le(out, 0, 2); /* no extra field */
        sn_bytes_put(out, name, name_bytes - 4);
        sn_bytes_put(out, ".npy", 4);
        sn_bytes_put(out, npy.v.data, npy.v.n);
        sn_bytes_le(directory, CENTRAL_SIG, 4);
        sn_bytes_le(directory, 20, 2); /* made by */
        put_common(directory, crc, npy.v.n, name_bytes);
        sn_bytes_le(directory, 0, 2 + 2 + 2); /* extra, comment, disk */
        sn_bytes_le(directory, 0, 2 + 4);     /* attributes */
        sn_bytes_le(directory, offset, 4);
        sn_bytes_put(directory, name, name_bytes - 4);
        sn_bytes_put(directory, ".npy", 4);
        if (out->v.n > UINT32_MAX)
            st = sn_fail(err, SONDE_LIMIT,
                         "the values are too large for a .npz archive (4 GiB); "
                         "use .safetensors");
    }
    sn_bytes_free(&npy);
    return st;
}

sonde_status sn_npz_write(const sn_named_list *l, sn_bytes *out, sonde_error *err)
{
    sn_bytes directory = {.alloc = out->alloc};
    sonde_status st = SONDE_OK;
    if (l->list.n >= UINT16_MAX)
        return sn_fail(err, SONDE_LIMIT, "a .npz archive can have at most 65534 arrays");
    for (size_t k = 0; k < l->list.n && st == SONDE_OK; k++)
        st = put_entry(&l->list.data[k], k, out, &directory, err);
    if (st == SONDE_OK) {
        size_t offset = out->v.n;
        sn_bytes_put(out, directory.v.data, directory.v.n);
        sn_bytes_le(out, END_SIG, 4);
        sn_bytes_le(out, 0, 4); /* disks */
        sn_bytes_le(out, l->list.n, 2);
        sn_bytes_le(out, l->list.n, 2);
        sn_bytes_le(out, directory.v.n, 4);
        sn_bytes_le(out, offset, 4);
        sn_bytes_le(out, 0, 2); /* comment */
        out->failed |= directory.failed;
    }
    sn_bytes_free(&directory);
    return st;
}

const sn_tensor_format sn_tensor_format_npz = {".npz", sn_npz_read, sn_npz_write};
