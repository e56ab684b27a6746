/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a .pftrace writer, for the files it is made of, from the top: slices and steps
 * (pftrace_stream.c), tracks and lanes (pftrace_tracks.c), what viewers skip (pftrace_records.c),
 * packets (pftrace_packets.c). */
#ifndef SN_EXPORT_PFTRACE_WRITER_H
#define SN_EXPORT_PFTRACE_WRITER_H

#include "base/map.h"
#include "export/pftrace_stream.h"
#include "export/proto.h"
#include "profile/pftrace_fields.h"

/* Perfetto's numbers that only a writer needs. */
enum {
    SN_PF_EVENT_CATEGORY_IDS = 3,
    SN_PF_EVENT_ANNOTATIONS = 4,
    SN_PF_EVENT_TYPE = 9,
    SN_PF_EVENT_NAME_ID = 10,
    SN_PF_EVENT_TRACK = 11,
    SN_PF_EVENT_CATEGORY = 22,
    SN_PF_EVENT_NAME = 23,
    SN_PF_EVENT_VALUE = 44,
    SN_PF_EVENT_FLOWS = 47
};
enum { SN_PF_SLICE_BEGIN = 1, SN_PF_SLICE_END = 2, SN_PF_INSTANT = 3, SN_PF_COUNTER = 4 };

/* Names of annotations have fixed numbers: their place in this list, from 1. */
#define SN_PF_ANNOTATIONS(X)                                                                       \
    X(op)                                                                                          \
    X(post_op)                                                                                     \
    X(nodes)                                                                                       \
    X(kernel)                                                                                      \
    X(input_tensor_name)                                                                           \
    X(input_type)                                                                                  \
    X(input_shape)                                                                                 \
    X(output_tensor_name)                                                                          \
    X(output_type)                                                                                 \
    X(output_shape)                                                                                \
    X(attributes)                                                                                  \
    X(flops)                                                                                       \
    X(bytes)                                                                                       \
    X(args_string)                                                                                 \
    X(reshape_time)                                                                                \
    X(forward_time)                                                                                \
    X(iteration)                                                                                   \
    X(warmup)                                                                                      \
    X(run)                                                                                         \
    X(span_id)                                                                                     \
    X(parent_span_id)                                                                              \
    X(model)                                                                                       \
    X(args)                                                                                        \
    X(version)                                                                                     \
    X(node)                                                                                        \
    X(instance)                                                                                    \
    X(cpu)                                                                                         \
    X(cpu_level)                                                                                   \
    X(cores)                                                                                       \
    X(threads)                                                                                     \
    X(precision) X(level) X(start_time_ns) X(profiler_ns_per_record) X(arithmetic) X(traceparent)
enum {
    SN_PF_NOTE_NONE,
#define X(name) SN_PF_NOTE_##name,
    SN_PF_ANNOTATIONS(X)
#undef X
};

typedef struct sn_pf_lane {
    uint64_t uuid;
    uint64_t last_start;   /* of what was written to it */
    uint32_t instance;     /* whose iterations they are; 0 for other lanes */
    SN_VEC(uint64_t) ends; /* of the slices open at last_start, outermost first */
} sn_pf_lane;

typedef struct sn_pf_lanes { /* tracks of one kind, opened as they are needed */
    SN_VEC(sn_pf_lane) list;
} sn_pf_lanes;

typedef struct sn_pf_thread {
    const char *name;
    uint64_t uuid; /* of its track */
    sn_pf_lanes work, user;
} sn_pf_thread;

typedef struct sn_pf_step {
    const char *op_type;
    uint32_t name_id; /* of its title; 0: not interned */
    const char *title;
    const unsigned char *notes; /* its annotations, ready to be copied */
    size_t notes_bytes;
    const unsigned char *share; /* those of a thread's share of it */
    size_t share_bytes;
    uint64_t bind_ns;
} sn_pf_step;

struct sn_pftrace {
    sn_allocator *alloc;
    sn_arena arena;
    sn_sink *sink;
    sn_proto out;                    /* packets not yet handed on */
    sn_proto scratch;                /* annotations of a step */
    sn_map names, strings, counters; /* text ► number; counters: name ► uuid index */
    uint32_t n_names, n_strings;
    uint64_t base_uuid; /* of this trace; tracks add their number to it */
    uint64_t n_uuids;
    uint64_t process; /* its track */
    const char *model;
    int64_t pid;         /* shown to viewers */
    uint32_t sequence;   /* of the packets */
    uint32_t of;         /* so many traces in the file; 0: it is no joined one */
    uint32_t categories; /* a set: what is shown and kept */
    SN_VEC(long) tids;   /* already used for a thread's track */
    SN_VEC(sn_pf_thread) threads;
    SN_VEC(sn_pf_step) steps;
    sn_pf_lanes model_lanes, iteration_lanes;
    bool failed; /* out of memory */
};

/* ---- pftrace_packets.c ---- */
enum { SN_PF_BUFFER_BYTES = 65536 }; /* handed to the sink when they are full */
/* Nothing has failed so far. */
static inline bool sn_pf_good(const sn_pftrace *t)
{
    return !t->failed && !t->out.failed && !t->sink->failed;
}
/* A packet begins and ends; in between its fields. Times are given to sn_pf_packet_at. */
size_t sn_pf_packet(sn_pftrace *t);
size_t sn_pf_packet_at(sn_pftrace *t, uint64_t ns);
bool sn_pf_packet_end(sn_pftrace *t, size_t packet);
/* The number of a text among interned ones, written to the trace when it is new; 0: not interned,
 * because there are too many or memory is out. Not inside a packet. */
uint32_t sn_pf_intern(sn_pftrace *t, sn_map *map, uint32_t *count, uint32_t field,
                      const char *text);
/* One interned text with its number, into the field of an open packet. */
void sn_pf_put_entry(sn_proto *p, uint32_t field, uint32_t id, const char *text);

/* ---- pftrace_tracks.c ---- */
/* `name` NULL: after the model. */
void sn_pf_open_process(sn_pftrace *t, const sn_profile *facts, const char *name);
bool sn_pf_open_thread(sn_pftrace *t, const sn_prof_thread *thread);
uint64_t sn_pf_open_counter(sn_pftrace *t, const char *name); /* uuid of its track */
/* The track a span is shown on, opened if need be; 0 when memory is out. *end_ns is when it ends
 * there: earlier than it did only where a hundred others cut through it. */
uint64_t sn_pf_track_of(sn_pftrace *t, const sn_prof_span *span, uint64_t *end_ns);
void sn_pf_tracks_free(sn_pftrace *t);

/* ---- pftrace_records.c ---- */
/* Each writes the field SN_PF_PACKET_RECORD into an open packet. */
/* `of`: traces in a joined file; 0: it is no joined one. */
void sn_pf_record_facts(sn_proto *p, const sn_profile *facts, uint32_t of);
void sn_pf_record_thread(sn_proto *p, const sn_prof_thread *thread);
void sn_pf_record_step(sn_proto *p, const sn_prof_step *step);
void sn_pf_record_counts(sn_proto *p, uint32_t step, const sn_prof_hw *hw);
void sn_pf_record_life(sn_proto *p, const sn_prof_life *life);
void sn_pf_record_left(sn_proto *p, const sn_prof_left *left);
void sn_pf_record_span(sn_proto *p, const sn_prof_span *span, uint32_t name_id, const char *name);
void sn_pf_record_counter(sn_proto *p, const sn_prof_counter *counter, uint32_t name_id);
void sn_pf_record_end(sn_proto *p);

#endif
