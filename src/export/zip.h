/* SPDX-License-Identifier: Apache-2.0 */
/* A zip archive as a stream: entries one after the other, each written piece by piece without its
 * size being known beforehand. No zip64: what would grow past 4 GiB is refused. */
#ifndef SN_EXPORT_ZIP_H
#define SN_EXPORT_ZIP_H

#include "base/vec.h"
#include "export/deflate.h"

typedef struct sn_zip_entry {
    const char *name;
    uint64_t at, bytes, packed_bytes;
    uint32_t crc;
} sn_zip_entry;

typedef struct sn_zip {
    sn_sink *to;
    sn_allocator *alloc;
    SN_VEC(sn_zip_entry) entries;
    uint64_t at; /* bytes written so far */
    bool out_of_memory;
    sn_deflate data; /* of the open entry */
} sn_zip;

/* Not to be moved afterwards. */
void sn_zip_init(sn_zip *z, sn_sink *to, sn_allocator *alloc);
/* Opens an entry; its content goes to the sink that is returned. `name` must outlive the archive.
 */
sn_sink *sn_zip_begin(sn_zip *z, const char *name);
void sn_zip_end(sn_zip *z);
/* Writes the directory and frees; says what went wrong on the way, if anything did. */
sonde_status sn_zip_finish(sn_zip *z, sonde_error *err);

#endif
