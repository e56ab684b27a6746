/* SPDX-License-Identifier: Apache-2.0 */
/* Packets and interned texts: what all parts of a .pftrace are written with. All packets of a trace
 * come from one sequence. */
#include "export/pftrace_stream.h"
#include "export/pftrace_writer.h"

enum { MAX_NAMES = 65536 }; /* interned; further ones are written where they are used */

bool sn_pftrace_flush(sn_pftrace *t)
{
    if (t->out.bytes.n && !t->out.failed)
        sn_sink_write(t->sink, t->out.bytes.data, t->out.bytes.n);
    sn_proto_reset(&t->out);
    return sn_pf_good(t);
}

size_t sn_pf_packet(sn_pftrace *t)
{
    size_t packet = sn_proto_begin(&t->out, SN_PF_TRACE_PACKET);
    sn_proto_varint(&t->out, SN_PF_PACKET_SEQUENCE_ID, t->sequence);
    return packet;
}

size_t sn_pf_packet_at(sn_pftrace *t, uint64_t ns)
{
    size_t packet = sn_pf_packet(t);
    sn_proto_varint(&t->out, SN_PF_PACKET_SEQUENCE_FLAGS, SN_PF_SEQUENCE_NEEDS_STATE);
    sn_proto_varint(&t->out, SN_PF_PACKET_TIMESTAMP, ns);
    return packet;
}

bool sn_pf_packet_end(sn_pftrace *t, size_t packet)
{
    sn_proto_end(&t->out, packet);
    if (t->out.bytes.n >= SN_PF_BUFFER_BYTES)
        return sn_pftrace_flush(t);
    return sn_pf_good(t);
}

void sn_pf_put_entry(sn_proto *p, uint32_t field, uint32_t id, const char *text)
{
    size_t entry = sn_proto_begin(p, field);
    sn_proto_varint(p, SN_PF_ENTRY_ID, id);
    sn_proto_text(p, SN_PF_ENTRY_TEXT, text);
    sn_proto_end(p, entry);
}

uint32_t sn_pf_intern(sn_pftrace *t, sn_map *map, uint32_t *count, uint32_t field, const char *text)
{
    text = text ? text : "";
    void *found = sn_map_get(map, text);
    if (found)
        return (uint32_t)(uintptr_t)found;
    if (*count >= MAX_NAMES)
        return 0;
    char *key = sn_arena_strdup(&t->arena, text);
    if (!key || !sn_map_put(map, key, (void *)(uintptr_t)(*count + 1), NULL)) {
        t->failed = true;
        return 0;
    }
    size_t packet = sn_pf_packet(t);
    sn_proto_varint(&t->out, SN_PF_PACKET_SEQUENCE_FLAGS, SN_PF_SEQUENCE_NEEDS_STATE);
    size_t data = sn_proto_begin(&t->out, SN_PF_PACKET_INTERNED_DATA);
    sn_pf_put_entry(&t->out, field, ++*count, text);
    sn_proto_end(&t->out, data);
    sn_pf_packet_end(t, packet);
    return *count;
}
