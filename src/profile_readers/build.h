/* SPDX-License-Identifier: Apache-2.0 */
/* From events to a profile: what readers of profiles share. Threads and steps are found again by a
 * key, spans are collected in any order and with any zero of time; sn_build_finish makes the tables
 * what profile.h promises. */
#ifndef SN_PROFILE_READERS_BUILD_H
#define SN_PROFILE_READERS_BUILD_H

#include "base/map.h"
#include "profile/profile.h"
#include "profile_readers/events.h"

typedef struct sn_build {
    sn_profile *p;
    sn_map threads, steps; /* key ► 1 + index */
    SN_VEC(char) key;
    bool failed; /* out of memory */
} sn_build;

void sn_build_init(sn_build *b, sn_profile *p);
void sn_build_free(sn_build *b);

/* A copy in the profile; "" and `failed` when out of memory. */
const char *sn_build_text(sn_build *b, sn_json_text text);

/* A thread by what the file calls it; a number is taken for the system's. */
uint32_t sn_build_thread(sn_build *b, sn_json_text key);

/* A step by its key: begin, add the texts that tell it from others, look. SONDE_OK with *index; a
 * new step has its texts set to "" and is to be filled in. */
void sn_build_key_begin(sn_build *b);
void sn_build_key_add(sn_build *b, sn_json_text text);
sn_prof_step *sn_build_step(sn_build *b, uint32_t *index, bool *is_new); /* NULL: no memory */

/* An empty span of that category, to be filled in; NULL: no memory. */
sn_prof_span *sn_build_span(sn_build *b, sn_prof_cat cat);
/* A span of an event and its step (UINT32_MAX: none), named after the step's type or the event. */
sonde_status sn_build_event(sn_build *b, const sn_json_event *e, sn_prof_cat cat, uint32_t step,
                            sonde_error *err);

typedef enum sn_build_links {
    SN_BUILD_GIVEN,  /* spans have ids and parents */
    SN_BUILD_BY_TIME /* they are found: inside what a span ran on its thread */
} sn_build_links;
/* `zero`: subtract the earliest start from all. */
sonde_status sn_build_finish(sn_build *b, sn_build_links links, bool zero, sonde_error *err);
/* After linking by time: a note when operators lie in no run, because they ran on other threads. */
sonde_status sn_build_loose(sn_build *b, sonde_error *err);

#endif
