/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a buffer begins its block, so binding what lies from there on binds whole huge
 * pages. */
#include "plan/memory_nodes.h"

#include <errno.h>
#include <string.h>

#include "base/affinity.h"

/* The kernel keeps a record of each range: few pages are not worth one. */
#define LEAST_BYTES ((size_t)64 << 10)

static bool takes_part(const sn_program *p, const sn_buffer *b)
{
    return b && p->memory && b->bytes >= LEAST_BYTES && !b->release;
}

static uint8_t *block_of(const sn_buffer *b)
{
    return (uint8_t *)(uintptr_t)b;
}

static size_t block_bytes(const sn_buffer *b)
{
    return (size_t)((uint8_t *)b->data - block_of(b)) + b->bytes;
}

void sn_program_bind_buffer(const sn_program *p, sn_buffer *b)
{
    char nodes[64];
    sn_context *ctx = p->ctx;
    if (!takes_part(p, b) || sn_memory_bind(block_of(b), block_bytes(b), p->memory))
        return;
    const int why = errno;
    int none = 0;
    if (atomic_compare_exchange_strong(&ctx->memory_refused, &none, why))
        sn_log_write(&ctx->log, SN_LOG_WARN,
                     "memory is not bound to node %s, because the system refuses it: %s; it lies "
                     "where the threads that write it first run",
                     sn_id_set_text(p->memory, nodes, sizeof nodes), strerror(why));
}

void sn_program_unbind_buffer(const sn_program *p, sn_buffer *b)
{
    if (takes_part(p, b) && !atomic_load_explicit(&p->ctx->memory_refused, memory_order_relaxed))
        sn_memory_unbind(block_of(b), block_bytes(b));
}
