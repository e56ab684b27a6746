/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of the sources, which are read a second time for it. A trace that is still being
 * written may have grown since the first look: what was there then is what counts. */
#include "merge/merge.h"

#include "export/pftrace_sections.h"
#include "profile/join.h"
#include "profile_readers/profile_readers.h"

/* Parts of a joined file follow one another more often than not: it stays open. */
static sonde_status open_source(sn_merge *m, const sn_merge_source *s, sonde_error *err)
{
    if (m->last && strcmp(m->last, s->path) == 0)
        return SONDE_OK;
    if (m->last)
        sn_file_close(&m->open);
    m->last = NULL;
    SN_TRY(sn_file_open(&m->open, s->path, m->map, m->alloc, err));
    m->last = s->path;
    return SONDE_OK;
}

sonde_status sn_merge_read(sn_merge *m, size_t i, sn_profile **profile, sonde_error *err)
{
    const sn_merge_source *s = &m->sources.data[i];
    *profile = NULL;
    SN_TRY(open_source(m, s, err));
    if (m->open.bytes < s->part.to)
        return sn_fail(err, SONDE_IO, "'%s' has become shorter while it was read", s->path);
    sn_profile_parts parts = {
        .data = m->open.data + s->part.from, .bytes = s->part.to - s->part.from, .alloc = m->alloc};
    parts.row = sn_profile_reader_of(parts.data, parts.bytes, s->path, err);
    if (!parts.row)
        return SONDE_INVALID_ARGUMENT;
    const sonde_status st = sn_profile_parts_next(&parts, profile, err);
    if (st != SONDE_OK) {
        sn_error_prefix(err, "cannot read '%s'", s->path);
        return st;
    }
    (*profile)->start_wall_ns = s->aligned_ns;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ a joined trace */
static sonde_status write_all(void *user, sn_sink *sink, sonde_error *err)
{
    sn_merge *m = user;
    sn_pftrace_sections sections;
    sn_pftrace_sections_init(&sections, m->sources.n, m->alloc);
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < m->sources.n && st == SONDE_OK; i++) {
        sn_profile *p = NULL;
        sn_pftrace_section section;
        st = sn_merge_read(m, i, &p, err);
        if (st == SONDE_OK)
            st = sn_pftrace_sections_next(&sections, p, &section, err);
        if (st == SONDE_OK)
            st = sn_pftrace_write(p, &section, sink, err);
        sn_profile_free(p);
    }
    sn_pftrace_sections_free(&sections);
    return st;
}

sonde_status sn_merge_save(sn_merge *m, const char *path, sonde_error *err)
{
    return sn_export_file_by(path, write_all, m, err);
}

/* ------------------------------------------------------------------ in memory */
sonde_status sn_merge_join(sn_merge *m, sn_profile **profile, sonde_error *err)
{
    sn_profile *all = NULL, *p = NULL;
    *profile = NULL;
    if (m->sources.n == 1)
        return sn_merge_read(m, 0, profile, err);
    SN_TRY(sn_profile_new(&all, m->alloc, err));
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < m->sources.n && st == SONDE_OK; i++) {
        st = sn_merge_read(m, i, &p, err);
        if (st == SONDE_OK)
            st = sn_profile_join(all, p, err);
    }
    if (st == SONDE_OK)
        st = sn_profile_join_end(all, err);
    if (st == SONDE_OK)
        st = sn_profile_check(all, err);
    if (st != SONDE_OK) {
        sn_profile_free(all);
        return st;
    }
    *profile = all;
    return SONDE_OK;
}

sonde_status sn_merge_figures(sn_merge *m, sn_fleet *fleet, sonde_error *err)
{
    for (size_t i = 0; i < m->sources.n; i++) {
        sn_profile *p = NULL;
        SN_TRY(sn_merge_read(m, i, &p, err));
        const sonde_status st = sn_fleet_add(fleet, p, err);
        sn_profile_free(p);
        SN_TRY(st);
    }
    return SONDE_OK;
}
