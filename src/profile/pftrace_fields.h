/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a .pftrace, once for those who write it and those who read it. A trace is a list of
 * Perfetto's TracePackets (field 1). What a viewer shows is in Perfetto's own fields; beside them a
 * packet may carry one of our records, in a field of the range Perfetto leaves to others, which
 * viewers skip. The records alone rebuild the profile. Numbers are never used twice for different
 * things: an old reader skips what it does not know. */
#ifndef SN_PROFILE_PFTRACE_FIELDS_H
#define SN_PROFILE_PFTRACE_FIELDS_H

enum { PF_TRACE_PACKET = 1 };

/* TracePacket */
enum {
    PF_PACKET_CLOCK_SNAPSHOT = 6,
    PF_PACKET_TIMESTAMP = 8,
    PF_PACKET_SEQUENCE_ID = 10,
    PF_PACKET_TRACK_EVENT = 11,
    PF_PACKET_INTERNED_DATA = 12,
    PF_PACKET_SEQUENCE_FLAGS = 13,
    PF_PACKET_DEFAULTS = 59,
    PF_PACKET_TRACK_DESCRIPTOR = 60,
    PF_PACKET_FIRST = 87,
    PF_PACKET_RECORD = 1953 /* ours */
};
enum { PF_SEQUENCE_CLEARED = 1, PF_SEQUENCE_NEEDS_STATE = 2 };

/* InternedData, and its entries */
enum {
    PF_INTERNED_CATEGORIES = 1,
    PF_INTERNED_NAMES = 2,
    PF_INTERNED_ANNOTATIONS = 3,
    PF_INTERNED_STRINGS = 29
};
enum { PF_ENTRY_ID = 1, PF_ENTRY_TEXT = 2 };

/* A record: exactly one of these. */
enum {
    PF_RECORD_FACTS = 1,
    PF_RECORD_STEP = 2,
    PF_RECORD_LIFE = 3,
    PF_RECORD_THREAD = 4,
    PF_RECORD_SPAN = 5,    /* the packet's timestamp is its start */
    PF_RECORD_COUNTER = 6, /* the packet's timestamp is its time */
    PF_RECORD_END = 7      /* nothing follows: the trace is whole */
};

enum {
    PF_FACTS_FORMAT = 1, /* of these records: PF_FORMAT */
    PF_FACTS_MODEL = 2,
    PF_FACTS_VERSION = 3,
    PF_FACTS_CPU = 4,
    PF_FACTS_CPU_LEVEL = 5,
    PF_FACTS_CORES = 6,
    PF_FACTS_THREADS = 7,
    PF_FACTS_LEVEL = 8,
    PF_FACTS_PID = 9,
    PF_FACTS_START_WALL_NS = 10,
    PF_FACTS_RECORD_NS = 11,
    PF_FACTS_DROPPED = 12,
    PF_FACTS_INSTANCE = 13,
    PF_FACTS_PEAK_GFLOPS = 14,
    PF_FACTS_PEAK_GBPS = 15,
    PF_FACTS_MEMORY = 16 /* packed, in the order of sn_prof_memory */
};
enum { PF_FORMAT = 1 };

enum {
    PF_STEP_TABLE = 1,
    PF_STEP_INDEX = 2,
    PF_STEP_OP_TYPE = 3,
    PF_STEP_NAME = 4,
    PF_STEP_POST_OP = 5,
    PF_STEP_ORIGIN = 6,
    PF_STEP_INPUT = 7,
    PF_STEP_OUTPUT = 8,
    PF_STEP_KERNEL = 9,
    PF_STEP_ATTRIBUTES = 10,
    PF_STEP_FLOPS = 11,
    PF_STEP_BYTES = 12,
    PF_STEP_BIND_NS = 13,
    PF_STEP_FLAGS = 14
};
enum { PF_STEP_FOLDED = 1, PF_STEP_DYNAMIC = 2, PF_STEP_CONTROL = 4 };
enum { PF_ORIGIN_NAME = 1, PF_ORIGIN_OP_TYPE = 2 };
enum {
    PF_TENSOR_NAME = 1,
    PF_TENSOR_DTYPE = 2,
    PF_TENSOR_DIMS = 3, /* packed; there for every tensor, scalars too */
    PF_TENSOR_TEXT = 4,
    PF_TENSOR_CONSTANT = 5,
    PF_TENSOR_ZEROS = 6
};

enum {
    PF_LIFE_TABLE = 1,
    PF_LIFE_FIRST = 2,
    PF_LIFE_LAST = 3,
    PF_LIFE_NAME = 4,
    PF_LIFE_OFFSET = 5,
    PF_LIFE_BYTES = 6,
    PF_LIFE_PLACE = 7
};
enum { PF_THREAD_ID = 1, PF_THREAD_OS_TID = 2, PF_THREAD_NAME = 3 };

enum {
    PF_SPAN_ID = 1,
    PF_SPAN_PARENT = 2,
    PF_SPAN_CAT = 3,
    PF_SPAN_THREAD = 4, /* threads and steps count from 0 in the order of their records */
    PF_SPAN_DUR_NS = 5,
    PF_SPAN_STEP = 6,
    PF_SPAN_RUN = 7,
    PF_SPAN_ITERATION = 8,
    PF_SPAN_WARMUP = 9,
    PF_SPAN_NAME_ID = 10, /* of InternedData's names; or the text itself: */
    PF_SPAN_NAME = 11,
    PF_SPAN_ARGS = 12
};
enum { PF_COUNTER_NAME_ID = 1, PF_COUNTER_NAME = 2, PF_COUNTER_VALUE = 3 };

#endif
