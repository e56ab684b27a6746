/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a .pftrace, once for those who write it and those who read it. A trace is a list
 * of Perfetto's TracePackets (field 1). What a viewer shows is in Perfetto's own fields; beside
 * them a packet may carry one of our records, in a field of the range Perfetto leaves to others,
 * which viewers skip. The records alone rebuild the profile. Numbers are never used twice for
 * different things: an old reader skips what it does not know. */
#ifndef SN_PROFILE_PFTRACE_FIELDS_H
#define SN_PROFILE_PFTRACE_FIELDS_H

enum { SN_PF_TRACE_PACKET = 1 };

/* TracePacket */
enum {
    SN_PF_PACKET_CLOCK_SNAPSHOT = 6,
    SN_PF_PACKET_TIMESTAMP = 8,
    SN_PF_PACKET_SEQUENCE_ID = 10,
    SN_PF_PACKET_TRACK_EVENT = 11,
    SN_PF_PACKET_INTERNED_DATA = 12,
    SN_PF_PACKET_SEQUENCE_FLAGS = 13,
    SN_PF_PACKET_DEFAULTS = 59,
    SN_PF_PACKET_TRACK_DESCRIPTOR = 60,
    SN_PF_PACKET_FIRST = 87,
    SN_PF_PACKET_RECORD = 1953 /* ours */
};
enum { SN_PF_SEQUENCE_CLEARED = 1, SN_PF_SEQUENCE_NEEDS_STATE = 2 };

/* InternedData, and its entries */
enum {
    SN_PF_INTERNED_CATEGORIES = 1,
    SN_PF_INTERNED_NAMES = 2,
    SN_PF_INTERNED_ANNOTATIONS = 3,
    SN_PF_INTERNED_STRINGS = 29
};
enum { SN_PF_ENTRY_ID = 1, SN_PF_ENTRY_TEXT = 2 };

/* A record: exactly one of these. */
enum {
    SN_PF_RECORD_FACTS = 1,
    SN_PF_RECORD_STEP = 2,
    SN_PF_RECORD_LIFE = 3,
    SN_PF_RECORD_THREAD = 4,
    SN_PF_RECORD_SPAN = 5,    /* the packet's timestamp is its start */
    SN_PF_RECORD_COUNTER = 6, /* the packet's timestamp is its time */
    SN_PF_RECORD_END = 7,     /* nothing follows: the trace is whole */
    SN_PF_RECORD_COUNTS = 8,  /* of a step told before: replaces what it said */
    SN_PF_RECORD_LEFT = 9     /* of runs whose spans were left out; once at most, behind steps */
};

enum {
    SN_PF_FACTS_FORMAT = 1, /* of these records: SN_PF_FORMAT */
    SN_PF_FACTS_MODEL = 2,
    SN_PF_FACTS_VERSION = 3,
    SN_PF_FACTS_CPU = 4,
    SN_PF_FACTS_CPU_LEVEL = 5,
    SN_PF_FACTS_CORES = 6,
    SN_PF_FACTS_THREADS = 7,
    SN_PF_FACTS_LEVEL = 8,
    SN_PF_FACTS_PID = 9,
    SN_PF_FACTS_START_WALL_NS = 10,
    SN_PF_FACTS_RECORD_NS = 11,
    SN_PF_FACTS_DROPPED = 12,
    SN_PF_FACTS_INSTANCE = 13,
    SN_PF_FACTS_PEAK_GFLOPS = 14, /* of f32 */
    SN_PF_FACTS_PEAK_GBPS = 15,
    SN_PF_FACTS_MEMORY = 16,   /* packed, in the order of sn_prof_memory */
    SN_PF_FACTS_L2_BYTES = 17, /* caches[0] and caches[1] of the profile */
    SN_PF_FACTS_L2_GBPS = 18,
    SN_PF_FACTS_L3_BYTES = 19,
    SN_PF_FACTS_L3_GBPS = 20,
    SN_PF_FACTS_USAGE = 21, /* packed, in the order of sn_prof_usage; absent: not known */
    SN_PF_FACTS_COUNTERS_NOTE = 22,
    SN_PF_FACTS_CATEGORIES = 23, /* a set of sn_prof_cat: the spans of others were left out */
    SN_PF_FACTS_PRECISION = 24,
    SN_PF_FACTS_PEAK = 25,          /* of other arithmetic than f32, one each */
    SN_PF_FACTS_LABEL = 26,         /* one each */
    SN_PF_FACTS_START_MONO_NS = 27, /* the monotonic clock at ns 0, and whose clock it is: */
    SN_PF_FACTS_BOOT = 28,
    SN_PF_FACTS_WALL_ERROR_NS = 29,
    SN_PF_FACTS_NOTE = 30,  /* what was missing already when the trace was joined to others, or was
                               never  written */
    SN_PF_FACTS_TRACES = 31 /* how many there are in the joined file */
};
enum { SN_PF_LABEL_KEY = 1, SN_PF_LABEL_VALUE = 2 };
enum { SN_PF_PEAK_ARITHMETIC = 1, SN_PF_PEAK_GOPS = 2 };
/* A joined file (sonde merge) is traces one behind the other, each with everything a trace has, its
 * own sequence and its own numbers; a cleared sequence begins the next. Readers of format 1 know of
 * one trace only, so that the traces of such a file have format 2. */
enum { SN_PF_FORMAT = 1, SN_PF_FORMAT_JOINED = 2 };

enum {
    SN_PF_STEP_TABLE = 1,
    SN_PF_STEP_INDEX = 2,
    SN_PF_STEP_OP_TYPE = 3,
    SN_PF_STEP_NAME = 4,
    SN_PF_STEP_POST_OP = 5,
    SN_PF_STEP_ORIGIN = 6,
    SN_PF_STEP_INPUT = 7,
    SN_PF_STEP_OUTPUT = 8,
    SN_PF_STEP_KERNEL = 9,
    SN_PF_STEP_ATTRIBUTES = 10,
    SN_PF_STEP_FLOPS = 11,
    SN_PF_STEP_BYTES = 12,
    SN_PF_STEP_BIND_NS = 13,
    SN_PF_STEP_FLAGS = 14,
    SN_PF_STEP_COUNTS = 15,
    SN_PF_STEP_ARITHMETIC = 16, /* its name */
    SN_PF_STEP_THREADS = 17
};
enum { SN_PF_STEP_FOLDED = 1, SN_PF_STEP_DYNAMIC = 2, SN_PF_STEP_CONTROL = 4 };
enum { SN_PF_COUNTS_STEP = 1, SN_PF_COUNTS_COUNTS = 2 };
enum {
    SN_PF_HW_CALLS = 1,
    SN_PF_HW_CYCLES = 2,
    SN_PF_HW_INSTRUCTIONS = 3,
    SN_PF_HW_CACHE_MISSES = 4,
    SN_PF_HW_BRANCH_MISSES = 5
};
enum { SN_PF_ORIGIN_NAME = 1, SN_PF_ORIGIN_OP_TYPE = 2 };
enum {
    SN_PF_TENSOR_NAME = 1,
    SN_PF_TENSOR_DTYPE = 2,
    SN_PF_TENSOR_DIMS = 3, /* packed; there for every tensor, scalars too */
    SN_PF_TENSOR_TEXT = 4,
    SN_PF_TENSOR_CONSTANT = 5,
    SN_PF_TENSOR_ZEROS = 6,
    SN_PF_TENSOR_VALUE = 7,
    SN_PF_TENSOR_PORT = 8,
    SN_PF_TENSOR_PORT_DIMS = 9 /* packed; there where they are not DIMS */
};

enum {
    SN_PF_LIFE_TABLE = 1,
    SN_PF_LIFE_FIRST = 2,
    SN_PF_LIFE_LAST = 3,
    SN_PF_LIFE_NAME = 4,
    SN_PF_LIFE_OFFSET = 5,
    SN_PF_LIFE_BYTES = 6,
    SN_PF_LIFE_PLACE = 7
};
enum {
    SN_PF_LEFT_WARMUPS = 1,
    SN_PF_LEFT_COST_NS = 2,
    SN_PF_LEFT_FIRST_NS = 3,
    SN_PF_LEFT_LAST_NS = 4,
    SN_PF_LEFT_WALL_NS = 5, /* packed doubles */
    SN_PF_LEFT_STEP = 6     /* one each */
};
enum {
    SN_PF_LEFT_STEP_STEP = 1, /* the number of the step, or SN_LEFT_MEMORY, SN_LEFT_OTHER */
    SN_PF_LEFT_STEP_CALLS = 2,
    SN_PF_LEFT_STEP_TOTAL_NS = 3,
    SN_PF_LEFT_STEP_POINTS = 4 /* packed doubles */
};
enum { SN_PF_THREAD_ID = 1, SN_PF_THREAD_OS_TID = 2, SN_PF_THREAD_NAME = 3 };

enum {
    SN_PF_SPAN_ID = 1,
    SN_PF_SPAN_PARENT = 2,
    SN_PF_SPAN_CAT = 3,
    SN_PF_SPAN_THREAD = 4, /* threads and steps count from 0 in the order of their records */
    SN_PF_SPAN_DUR_NS = 5,
    SN_PF_SPAN_STEP = 6,
    SN_PF_SPAN_RUN = 7,
    SN_PF_SPAN_ITERATION = 8,
    SN_PF_SPAN_WARMUP = 9,
    SN_PF_SPAN_NAME_ID = 10, /* of InternedData's names; or the text itself: */
    SN_PF_SPAN_NAME = 11,
    SN_PF_SPAN_ARGS = 12,
    SN_PF_SPAN_BOUND = 13,
    SN_PF_SPAN_INSTANCE = 14,
    SN_PF_SPAN_CATEGORY = 15 /* a scope's own */
};
enum {
    SN_PF_COUNTER_NAME_ID = 1,
    SN_PF_COUNTER_NAME = 2,
    SN_PF_COUNTER_VALUE = 3,
    SN_PF_COUNTER_STEP = 4
};

#endif
