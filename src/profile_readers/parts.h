/* SPDX-License-Identifier: Apache-2.0 */
/* The profiles of a file one by one: a joined .pftrace has several, every other file has one.
 *
 *     sn_profile_parts parts = {.data = …, .bytes = …, .row = …, .alloc = …};
 *     while (sn_profile_parts_next(&parts, &p, err) == SONDE_OK && p)
 *         …                      // bytes parts.last.from to parts.last.to; p is the caller's
 */
#ifndef SN_PROFILE_READERS_PARTS_H
#define SN_PROFILE_READERS_PARTS_H

#include "profile_readers/reader.h"

enum { SN_PROFILE_PARTS_MOST = 16384 }; /* in one file */

typedef struct sn_profile_parts {
    const void *data;
    size_t bytes;
    const sn_profile_reader *row;
    sn_allocator *alloc;
    bool facts_only; /* of a format of several parts: tables stay empty */
    sn_profile_part last;
    size_t n;
    bool ended, cut; /* cut: the file ends before the last profile, or in its beginning */
} sn_profile_parts;

/* The next one, checked; NULL: there are no more. Errors say where, not in which file. */
sonde_status sn_profile_parts_next(sn_profile_parts *parts, sn_profile **p, sonde_error *err);

/* All of them as one profile, joined where there are several. */
sonde_status sn_profile_parts_join(const sn_profile_reader *row, const void *data, size_t bytes,
                                   sn_allocator *alloc, sn_profile **profile, sonde_error *err);

#endif
