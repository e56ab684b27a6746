/* SPDX-License-Identifier: Apache-2.0 */
/* Files of trace events, as Chrome introduced them and others write them: an array of objects, or
 * an object whose member "traceEvents" is one. Events are handed over one by one. */
#ifndef SN_PROFILE_READERS_EVENTS_H
#define SN_PROFILE_READERS_EVENTS_H

#include "base/json.h"

typedef struct sn_json_event {
    char phase; /* 'X' a span, 'M' metadata, 'C' a counter …; 0: none */
    sn_json_text name, category, pid, tid; /* "" when missing; numbers as they are written */
    bool timed;                            /* has a time; negative ones count as none */
    uint64_t start_ns, dur_ns;
    bool has_args;
    sn_json args; /* a cursor before the object */
} sn_json_event;

typedef struct sn_event_handler {
    sonde_status (*event)(void *user, const sn_json_event *e, sonde_error *err);
    /* A member beside "traceEvents"; reads its value or skips it. NULL: all are skipped. */
    void (*member)(void *user, sn_json_text key, sn_json *value);
    void *user;
} sn_event_handler;

/* Texts of an event live until the next one, in `scratch`. */
sonde_status sn_events_read(const void *data, size_t bytes, sn_arena *scratch,
                            const sn_event_handler *to, sonde_error *err);

#endif
