/* SPDX-License-Identifier: Apache-2.0 */
/* Entries carry method 8 (deflate, of stored blocks) and their sizes behind the data: with a size
 * that is not known beforehand, readers that do not seek accept nothing else. Dates are the
 * format's first day, so the same content gives the same file. */
#include "export/zip.h"

#include <string.h>

enum {
    LOCAL_HEADER = 30,
    DIRECTORY_ENTRY = 46,
    DIRECTORY_END = 22,
    VERSION = 20,              /* 2.0: deflate */
    SIZES_BEHIND_UTF8 = 0x808, /* flags */
    DEFLATE = 8,
    FIRST_DAY = 0x21 /* 1980-01-01 */
};
#define LIMIT_BYTES 0xFFFFFFFFu

static void put(sn_zip *z, const void *data, size_t n)
{
    sn_sink_write(z->to, data, n);
    z->at += n;
}

void sn_zip_init(sn_zip *z, sn_sink *to, sn_allocator *alloc)
{
    z->to = to;
    z->alloc = alloc;
    z->entries.data = NULL;
    z->entries.n = z->entries.cap = 0;
    z->at = 0;
    z->out_of_memory = false;
}

sn_sink *sn_zip_begin(sn_zip *z, const char *name)
{
    const sn_zip_entry entry = {.name = name, .at = z->at};
    if (!z->out_of_memory && !sn_vec_push(&z->entries, z->alloc, entry))
        z->out_of_memory = true;
    unsigned char h[LOCAL_HEADER] = {'P', 'K', 3, 4};
    sn_put_le(h + 4, VERSION, 2);
    sn_put_le(h + 6, SIZES_BEHIND_UTF8, 2);
    sn_put_le(h + 8, DEFLATE, 2);
    sn_put_le(h + 12, FIRST_DAY, 2);
    sn_put_le(h + 26, strlen(name), 2);
    put(z, h, sizeof h);
    put(z, name, strlen(name));
    sn_deflate_init(&z->data, z->to);
    return &z->data.sink;
}

void sn_zip_end(sn_zip *z)
{
    sn_deflate_finish(&z->data);
    z->at += z->data.bytes_out;
    unsigned char behind[16] = {'P', 'K', 7, 8};
    sn_put_le(behind + 4, z->data.crc, 4);
    sn_put_le(behind + 8, z->data.bytes_out, 4);
    sn_put_le(behind + 12, z->data.bytes_in, 4);
    put(z, behind, sizeof behind);
    if (z->out_of_memory)
        return;
    sn_zip_entry *e = &z->entries.data[z->entries.n - 1];
    e->crc = z->data.crc;
    e->bytes = z->data.bytes_in;
    e->packed_bytes = z->data.bytes_out;
}

static void put_directory_entry(sn_zip *z, const sn_zip_entry *e)
{
    unsigned char h[DIRECTORY_ENTRY] = {'P', 'K', 1, 2};
    sn_put_le(h + 4, VERSION, 2);
    sn_put_le(h + 6, VERSION, 2);
    sn_put_le(h + 8, SIZES_BEHIND_UTF8, 2);
    sn_put_le(h + 10, DEFLATE, 2);
    sn_put_le(h + 14, FIRST_DAY, 2);
    sn_put_le(h + 16, e->crc, 4);
    sn_put_le(h + 20, e->packed_bytes, 4);
    sn_put_le(h + 24, e->bytes, 4);
    sn_put_le(h + 28, strlen(e->name), 2);
    sn_put_le(h + 42, e->at, 4);
    put(z, h, sizeof h);
    put(z, e->name, strlen(e->name));
}

sonde_status sn_zip_finish(sn_zip *z, sonde_error *err)
{
    const uint64_t directory = z->at;
    const size_t n = z->entries.n;
    for (size_t i = 0; i < n; i++)
        put_directory_entry(z, &z->entries.data[i]);
    unsigned char end[DIRECTORY_END] = {'P', 'K', 5, 6};
    sn_put_le(end + 8, n, 2);
    sn_put_le(end + 10, n, 2);
    sn_put_le(end + 12, z->at - directory, 4);
    sn_put_le(end + 16, directory, 4);
    put(z, end, sizeof end);
    sn_vec_free(&z->entries, z->alloc);
    if (z->to->failed)
        return sn_fail(err, SONDE_IO, "writing the profile failed");
    if (z->out_of_memory)
        return sn_fail_memory(err, sizeof(sn_zip_entry));
    if (z->at > LIMIT_BYTES || n > UINT16_MAX)
        return sn_fail(err, SONDE_LIMIT,
                       "a workbook can have at most 4 GiB, not %llu bytes; use .csv instead",
                       (unsigned long long)z->at);
    return SONDE_OK;
}
