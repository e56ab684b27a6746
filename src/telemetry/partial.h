/* SPDX-License-Identifier: Apache-2.0 */
/* What a collector says in the body of a reply. */
#ifndef SN_TELEMETRY_PARTIAL_H
#define SN_TELEMETRY_PARTIAL_H

#include "base/alloc.h"

/* Of a success: {"partialSuccess":{"rejectedSpans":"2","errorMessage":"…"}}. 0 and "" where it says
 * nothing, or nothing that can be read. */
void sn_partial_read(const char *body, size_t bytes, sn_allocator *alloc, uint64_t *rejected,
                     char *message, size_t room);
/* Of a failure: {"message":"…"}, else the text itself; "" for none. Only what can be printed. */
void sn_refusal_read(const char *body, size_t bytes, sn_allocator *alloc, char *message,
                     size_t room);

#endif
