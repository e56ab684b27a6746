/* SPDX-License-Identifier: Apache-2.0 */
/* What makes two steps the same row, and what that row is called. Internal to this room. */
#ifndef SN_PROFILE_KEYS_H
#define SN_PROFILE_KEYS_H

#include "profile/profile.h"

/* A growable text; after a failed append it stays `failed`. */
typedef struct sn_prof_text {
    SN_VEC(char) b;
    sn_allocator *alloc;
    bool failed;
} sn_prof_text;

/* Replaces the text by the bytes that identify the row of `s` under `key` (may contain NULs). */
void sn_prof_key_of(sn_prof_text *t, const sn_prof_step *s, sn_prof_key key);
/* Fills the texts of a new row from its first step; false when out of memory. */
bool sn_prof_row_name(sn_prof_row *row, const sn_prof_step *s, sn_prof_key key, sn_prof_text *t,
                      sn_arena *arena);
/* Elements of all tensor inputs together. */
double sn_prof_step_input_elems(const sn_prof_step *s);

#endif
