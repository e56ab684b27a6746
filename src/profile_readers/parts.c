/* SPDX-License-Identifier: Apache-2.0 */
/* A file that was cut ends in a part that is cut, in the beginning of one that says nothing yet, or
 * between two: the others are whole. */
#include "profile_readers/parts.h"
#include "profile/left.h"

#include "profile/join.h"

static sonde_status read_next(sn_profile_parts *parts, sn_profile *p, sonde_error *err)
{
    const sn_profile_reader *row = parts->row;
    if (!row->read_part) {
        parts->last = (sn_profile_part){.from = 0, .to = parts->bytes};
        return row->read(parts->data, parts->bytes, p, err);
    }
    parts->last = (sn_profile_part){.from = parts->last.to, .facts_only = parts->facts_only};
    return row->read_part(&parts->last, parts->data, parts->bytes, p, err);
}

sonde_status sn_profile_parts_next(sn_profile_parts *parts, sn_profile **out, sonde_error *err)
{
    sn_profile *p = NULL;
    *out = NULL;
    if (parts->ended)
        return SONDE_OK;
    if (parts->n == SN_PROFILE_PARTS_MOST)
        return sn_fail(err, SONDE_LIMIT, "it has more than %d traces", SN_PROFILE_PARTS_MOST);
    SN_TRY(sn_profile_new(&p, parts->alloc, err));
    sonde_status st = read_next(parts, p, err);
    const bool beginning = parts->last.empty && parts->n;
    parts->ended = parts->last.to >= parts->bytes;
    if (beginning)
        st = SONDE_OK;
    else if (st == SONDE_OK)
        st = sn_profile_check(p, err);
    if (st == SONDE_OK)
        st = sn_left_tell(p, err);
    if (st == SONDE_OK && !beginning) {
        parts->n++;
        *out = p;
    } else {
        sn_profile_free(p);
    }
    parts->cut = beginning || (parts->ended && parts->n < parts->last.of);
    return st;
}

static sonde_status note_cut(sn_profile *p, sonde_error *err)
{
    const char *note = sn_arena_printf(&p->arena, "%s%sthe file ends before its last trace",
                                       p->note, *p->note ? "; " : "");
    if (!note)
        return sn_fail_memory(err, 1);
    p->note = note;
    return SONDE_OK;
}

/* `first` and those that follow it; takes it over. */
static sonde_status join_rest(sn_profile_parts *parts, sn_profile *first, sn_profile *next,
                              sn_profile **profile, sonde_error *err)
{
    sn_profile *all = NULL;
    *profile = NULL;
    sonde_status st = sn_profile_new(&all, parts->alloc, err);
    if (st != SONDE_OK) {
        sn_profile_free(first);
        sn_profile_free(next);
        return st;
    }
    st = sn_profile_join(all, first, err);
    while (next) {
        if (st == SONDE_OK)
            st = sn_profile_join(all, next, err);
        else
            sn_profile_free(next);
        next = NULL;
        if (st == SONDE_OK)
            st = sn_profile_parts_next(parts, &next, err);
    }
    if (st == SONDE_OK)
        st = sn_profile_join_end(all, err);
    if (st == SONDE_OK)
        st = sn_profile_check(all, err);
    if (st != SONDE_OK) {
        sn_profile_free(all);
        all = NULL;
    }
    *profile = all;
    return st;
}

sonde_status sn_profile_parts_join(const sn_profile_reader *row, const void *data, size_t bytes,
                                   sn_allocator *alloc, sn_profile **profile, sonde_error *err)
{
    sn_profile_parts parts = {.data = data, .bytes = bytes, .row = row, .alloc = alloc};
    sn_profile *first = NULL, *next = NULL;
    *profile = NULL;
    SN_TRY(sn_profile_parts_next(&parts, &first, err));
    sonde_status st = sn_profile_parts_next(&parts, &next, err);
    if (st == SONDE_OK && next)
        st = join_rest(&parts, first, next, &first, err);
    else if (st != SONDE_OK) {
        sn_profile_free(first);
        return st;
    }
    if (st == SONDE_OK && parts.cut)
        st = note_cut(first, err);
    if (st != SONDE_OK) {
        sn_profile_free(first);
        return st;
    }
    *profile = first;
    return SONDE_OK;
}
