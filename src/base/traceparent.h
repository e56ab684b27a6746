/* SPDX-License-Identifier: Apache-2.0 */
/* The trace that a caller is in, as W3C Trace Context writes it in the header `traceparent`:
 * "00-<trace id, 32 hex digits>-<span id, 16>-<flags, 2>". */
#ifndef SN_BASE_TRACEPARENT_H
#define SN_BASE_TRACEPARENT_H

#include <stdbool.h>
#include <stdint.h>

enum { SN_CALLER_SAMPLED = 1, SN_TRACEPARENT_TEXT = 56 };

typedef struct sn_caller {
    uint8_t trace_id[16], span_id[8];
    uint8_t flags; /* bit 0: the caller records its part of the trace */
} sn_caller;

/* False, and *out is zero: the text is not one that the standard allows to use (NULL too). Texts of
 * later versions are read as far as this version goes. */
bool sn_traceparent_parse(const char *text, sn_caller *out);
/* In version 00; returns `text`. */
const char *sn_traceparent_text(const sn_caller *caller, char text[SN_TRACEPARENT_TEXT]);

#endif
