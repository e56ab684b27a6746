/* SPDX-License-Identifier: Apache-2.0 */
/* Importers: bytes ► profile. One file each, one row in importers.inc; the content picks one, the
 * name of the file does not matter. Files come from anywhere: an importer trusts no number in them,
 * and what it hands over keeps every promise of profile.h. */
#ifndef SN_IMPORT_IMPORT_H
#define SN_IMPORT_IMPORT_H

#include "profile/profile.h"

typedef struct sn_importer {
    const char *name; /* "a Perfetto trace of sonde": what it reads, for messages */
    /* Whether the file looks like one; `head` is its beginning, at most SN_IMPORT_HEAD bytes. */
    bool (*sniff)(const char *head, size_t bytes);
    /* Fills an empty profile. Errors say what and where ("… (byte 17)"), not in which file. */
    sonde_status (*read)(const void *data, size_t bytes, sn_profile *p, sonde_error *err);
} sn_importer;

#define SN_IMPORTER(symbol) extern const sn_importer symbol;
#include "import/importers.inc"
#undef SN_IMPORTER

enum { SN_IMPORT_HEAD = 65536 };

const sn_importer *sn_importer_row(size_t k); /* NULL past the end */
/* With that importer, whatever the content looks like. What it read is checked: an importer that
 * breaks a promise, and a file that contradicts itself, is an error here, not a crash elsewhere. */
sonde_status sn_import_with(const sn_importer *row, const void *data, size_t bytes,
                            sn_allocator *alloc, sn_profile **profile, sonde_error *err);
/* `name` stands for the file in messages. */
sonde_status sn_import_bytes(const void *data, size_t bytes, const char *name, sn_allocator *alloc,
                             sn_profile **profile, sonde_error *err);
/* `map`: the file is mapped, not read. */
sonde_status sn_import_file(const char *path, bool map, sn_allocator *alloc, sn_profile **profile,
                            sonde_error *err);

/* For sniffing: whether `word` occurs in the bytes. */
bool sn_import_has(const char *head, size_t bytes, const char *word);
/* The first byte that is not white space; 0: none. */
char sn_import_first(const char *head, size_t bytes);

#endif
