/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the file. The arguments of an event are checked when the event is read, and read
 * when somebody wants them. */
#include "profile_readers/events.h"

#include <string.h>

/* A number or a text, as it stands there. */
static void read_name_of_thread(sn_json *j, sn_json_text *out)
{
    if (sn_json_peek(j) == SN_JSON_STRING) {
        sn_json_string(j, out);
        return;
    }
    const uint8_t *from = j->at;
    if (sn_json_skip(j))
        *out = (sn_json_text){(const char *)from, (size_t)(j->at - from)};
}

/* A text or anything else that is no number is an error of the file; a number that is negative or
 * beyond all times is not counted. */
static bool read_us(sn_json *j, uint64_t *ns)
{
    sn_json_num n;
    return sn_json_number(j, &n) && sn_json_scaled(n, 3, ns);
}

static void read_text(sn_json *j, sn_json_text *out)
{
    if (sn_json_peek(j) == SN_JSON_STRING)
        sn_json_string(j, out);
    else
        sn_json_skip(j);
}

static void read_event(sn_json *j, sn_json_event *e)
{
    sn_json_text key, phase = {"", 0};
    const sn_json_text none = {"", 0};
    *e = (sn_json_event){.name = none, .category = none, .pid = none, .tid = none};
    for (sn_json_object(j); sn_json_member(j, &key);) {
        if (sn_json_is(key, "name")) {
            read_text(j, &e->name);
        } else if (sn_json_is(key, "cat")) {
            read_text(j, &e->category);
        } else if (sn_json_is(key, "ph")) {
            read_text(j, &phase);
            e->phase = phase.n == 1 ? phase.data[0] : 0;
        } else if (sn_json_is(key, "pid")) {
            read_name_of_thread(j, &e->pid);
        } else if (sn_json_is(key, "tid")) {
            read_name_of_thread(j, &e->tid);
        } else if (sn_json_is(key, "ts")) {
            e->timed = read_us(j, &e->start_ns);
        } else if (sn_json_is(key, "dur")) {
            read_us(j, &e->dur_ns);
        } else if (sn_json_is(key, "args") && sn_json_peek(j) == SN_JSON_OBJECT) {
            e->has_args = true;
            e->args = *j;
            sn_json_skip(j);
        } else {
            sn_json_skip(j);
        }
    }
}

static sonde_status read_events(sn_json *j, const sn_event_handler *to, sonde_error *err)
{
    for (sn_json_array(j); sn_json_item(j);) {
        sn_json_event e;
        read_event(j, &e);
        if (j->problem)
            break;
        SN_TRY(to->event(to->user, &e, err));
        sn_arena_reset(j->arena);
    }
    return SONDE_OK;
}

sonde_status sn_events_read(const void *data, size_t bytes, sn_arena *scratch,
                            const sn_event_handler *to, sonde_error *err)
{
    sn_json j;
    sn_json_init(&j, data, bytes, scratch);
    if (sn_json_peek(&j) == SN_JSON_ARRAY) {
        SN_TRY(read_events(&j, to, err));
    } else {
        sn_json_text key;
        for (sn_json_object(&j); sn_json_member(&j, &key);) {
            if (sn_json_is(key, "traceEvents"))
                SN_TRY(read_events(&j, to, err));
            else if (to->member)
                to->member(to->user, key, &j);
            else
                sn_json_skip(&j);
        }
    }
    sn_json_end(&j);
    return sn_json_status(&j, err);
}
