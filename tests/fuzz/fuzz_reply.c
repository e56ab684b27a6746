/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the reply of a collector, in pieces whose sizes the first byte says. The same bytes
 * in one piece must read the same; what is a reply is read as one of OTLP, too. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "telemetry/http_reply.h"
#include "telemetry/partial.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sn_reply_state read_all(sn_reply *r, const uint8_t *data, size_t size, size_t step)
{
    sn_reply_state state = SN_REPLY_MORE;
    sn_reply_init(r);
    for (size_t i = 0; i < size && state == SN_REPLY_MORE; i += step) {
        const size_t n = size - i < step ? size - i : step;
        uint8_t *piece = malloc(n); /* of exactly this size, so that one byte more is seen */
        if (!piece)
            exit(0);
        memcpy(piece, data + i, n);
        state = sn_reply_feed(r, piece, n);
        free(piece);
    }
    return state == SN_REPLY_MORE ? sn_reply_close(r) : state;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sn_reply whole, parts;
    char message[300];
    uint64_t rejected;
    sn_allocator alloc;
    if (size < 1)
        return 0;
    const sn_reply_state one = read_all(&whole, data + 1, size - 1, size);
    const sn_reply_state many = read_all(&parts, data + 1, size - 1, 1u + data[0]);
    if (one != many || one == SN_REPLY_MORE || whole.status != parts.status ||
        whole.body_bytes != parts.body_bytes ||
        memcmp(whole.body, parts.body, whole.body_bytes) != 0 ||
        (one == SN_REPLY_BAD) != (whole.problem != NULL))
        __builtin_trap();
    sn_allocator_init_system(&alloc);
    sn_partial_read(whole.body, whole.body_bytes, &alloc, &rejected, message, sizeof message);
    for (const char *c = message; *c; c++)
        if (*c < ' ' || *c > '~')
            __builtin_trap();
    sn_refusal_read(whole.body, whole.body_bytes, &alloc, message, sizeof message);
    for (const char *c = message; *c; c++)
        if (*c < ' ' || *c > '~')
            __builtin_trap();
    return 0;
}
