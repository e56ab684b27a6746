/* SPDX-License-Identifier: Apache-2.0 */
/* One kind of file that profiles are read from: a row of profile_readers.inc. */
#ifndef SN_PROFILE_READERS_READER_H
#define SN_PROFILE_READERS_READER_H

#include "profile/profile.h"

enum { SN_PROFILE_READER_HEAD = 65536 };

typedef struct sn_profile_part {
    size_t from, to; /* bytes of the file: set by the caller, and by the reader */
    bool facts_only; /* the caller wants no steps, spans, counters and lives */
    uint32_t of;     /* so many in the file; 0: it does not say */
    bool empty;      /* there was none, only its beginning: the file ends there */
} sn_profile_part;

typedef struct sn_profile_reader {
    const char *name; /* "a Perfetto trace of sonde": what it reads, for messages */
    /* Whether the file looks like one; `head` is its beginning, at most SN_PROFILE_READER_HEAD
     * bytes. */
    bool (*sniff)(const char *head, size_t bytes);
    /* Fills an empty profile. Errors say what and where ("… (byte 17)"), not in which file. */
    sonde_status (*read)(const void *data, size_t bytes, sn_profile *p, sonde_error *err);
    /* Instead of it, of a format whose files may hold several profiles one behind the other: the
     * one that begins at `from`. */
    sonde_status (*read_part)(sn_profile_part *part, const void *data, size_t bytes, sn_profile *p,
                              sonde_error *err);
} sn_profile_reader;

#define SN_PROFILE_READER(symbol) extern const sn_profile_reader symbol;
#include "profile_readers/profile_readers.inc"
#undef SN_PROFILE_READER

/* For sniffing (sniff.c): whether `word` occurs in the bytes. */
bool sn_profile_sniff_has(const char *head, size_t bytes, const char *word);
/* The first byte that is not white space; 0: none. */
char sn_profile_sniff_first(const char *head, size_t bytes);

#endif
