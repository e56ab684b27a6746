/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks in front of sinks: gzip, really compressed where zlib is there, and base64. What the report
 * page carries goes through both. */
#ifndef SN_EXPORT_PRESSED_H
#define SN_EXPORT_PRESSED_H

#include "export/export.h"

typedef struct sn_pressed sn_pressed;
/* Write to sn_pressed_sink; finish writes the rest and frees. */
sonde_status sn_pressed_open(sn_pressed **z, sn_sink *to, sn_allocator *alloc, sonde_error *err);
sn_sink *sn_pressed_sink(sn_pressed *z);
sonde_status sn_pressed_finish(sn_pressed *z, sonde_error *err);

typedef struct sn_base64 {
    sn_sink sink; /* write here */
    sn_sink *to;
    size_t n;
    unsigned char left[3]; /* bytes that wait for the rest of their group */
} sn_base64;
/* Not to be moved afterwards: the sink points at it. */
void sn_base64_init(sn_base64 *b, sn_sink *to);
void sn_base64_finish(sn_base64 *b); /* the last group; a failure is seen in to->failed */

#endif
