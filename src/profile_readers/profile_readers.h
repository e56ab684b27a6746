/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of saved profiles: bytes ► profile. One file each, one row in profile_readers.inc; the
 * content picks one, the name of the file does not matter. Files come from anywhere: a reader
 * trusts no number in them, and what it hands over keeps every promise of profile.h. */
#ifndef SN_PROFILE_READERS_PROFILE_READERS_H
#define SN_PROFILE_READERS_PROFILE_READERS_H

#include "profile_readers/reader.h"

const sn_profile_reader *sn_profile_reader_row(size_t k); /* NULL past the end */
/* With that reader, whatever the content looks like. What it read is checked: a reader that
 * breaks a promise, and a file that contradicts itself, is an error here, not a crash elsewhere. */
sonde_status sn_profile_read_with(const sn_profile_reader *row, const void *data, size_t bytes,
                                  sn_allocator *alloc, sn_profile **profile, sonde_error *err);
/* `name` stands for the file in messages. */
sonde_status sn_profile_read_bytes(const void *data, size_t bytes, const char *name,
                                   sn_allocator *alloc, sn_profile **profile, sonde_error *err);
/* The reader of a file by its beginning; NULL, with an error: none knows it. */
const sn_profile_reader *sn_profile_reader_of(const void *data, size_t bytes, const char *name,
                                              sonde_error *err);
/* `map`: the file is mapped, not read. */
sonde_status sn_profile_read_file(const char *path, bool map, sn_allocator *alloc,
                                  sn_profile **profile, sonde_error *err);

#endif
