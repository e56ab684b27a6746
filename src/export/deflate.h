/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that turns bytes into a deflate stream (RFC 1951) in front of another sink. Nothing is
 * compressed: blocks are "stored", which every inflater reads and no library is needed to write.
 * Used inside gzip and zip, whose trailers want the check sum and the sizes it keeps. */
#ifndef SN_EXPORT_DEFLATE_H
#define SN_EXPORT_DEFLATE_H

#include "export/export.h"

typedef struct sn_deflate {
    sn_sink sink; /* write here */
    sn_sink *to;
    uint32_t crc;
    uint64_t bytes_in, bytes_out;
    size_t n;
    unsigned char block[8192];
} sn_deflate;

/* Not to be moved afterwards: the sink points at it. */
void sn_deflate_init(sn_deflate *d, sn_sink *to);
void sn_deflate_finish(sn_deflate *d); /* the last block; a failure is seen in to->failed */

/* The same inside a gzip file (RFC 1952): header now, trailer at the end. */
void sn_gzip_init(sn_deflate *d, sn_sink *to);
void sn_gzip_finish(sn_deflate *d);

/* Little-endian numbers, as zip and gzip want them. */
void sn_put_le(unsigned char *to, uint64_t v, int bytes);

#endif
