/* SPDX-License-Identifier: Apache-2.0 */
/* From steps to the rows of a summary: what a view needs that shows both. */
#include "base/map.h"
#include "profile/keys.h"

typedef struct rows_by_key {
    sn_map map; /* key ► 1 + row */
    sn_prof_text text;
    sn_arena arena;
} rows_by_key;

static sonde_status add_rows(rows_by_key *r, const sn_profile *p, sn_prof_key key,
                             const sn_prof_summary *s, sonde_error *err)
{
    for (size_t i = 0; i < s->rows.n; i++) {
        const uint32_t step = s->rows.data[i].step;
        if (step >= p->steps.n)
            continue;
        sn_prof_key_of(&r->text, &p->steps.data[step], key);
        const size_t n = r->text.b.n;
        const char *own =
            r->text.failed ? NULL : sn_arena_strndup(&r->arena, n ? r->text.b.data : "", n);
        if (!own || !sn_map_put_n(&r->map, own, n, (void *)(uintptr_t)(i + 1), NULL))
            return sn_fail_memory(err, n);
    }
    return SONDE_OK;
}

static sonde_status find_rows(rows_by_key *r, const sn_profile *p, sn_prof_key key, uint32_t *rows,
                              sonde_error *err)
{
    for (size_t i = 0; i < p->steps.n; i++) {
        sn_prof_key_of(&r->text, &p->steps.data[i], key);
        if (r->text.failed)
            return sn_fail_memory(err, r->text.b.n);
        const void *found = sn_map_get_n(&r->map, r->text.b.n ? r->text.b.data : "", r->text.b.n);
        rows[i] = found ? (uint32_t)((uintptr_t)found - 1) : UINT32_MAX;
    }
    return SONDE_OK;
}

sonde_status sn_profile_step_rows(const sn_profile *p, sn_prof_key key, const sn_prof_summary *s,
                                  uint32_t *rows, sonde_error *err)
{
    rows_by_key r = {.text = {.alloc = p->alloc}};
    sn_map_init(&r.map, p->alloc);
    sn_arena_init(&r.arena, p->alloc);
    sonde_status st = add_rows(&r, p, key, s, err);
    if (st == SONDE_OK)
        st = find_rows(&r, p, key, rows, err);
    sn_map_free(&r.map);
    sn_arena_free(&r.arena);
    sn_vec_free(&r.text.b, p->alloc);
    return st;
}
