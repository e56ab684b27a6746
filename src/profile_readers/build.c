/* SPDX-License-Identifier: Apache-2.0 */
/* Order first: by start, then what is longer. Links that lead nowhere or forward are cut, so no
 * walk along them can run in circles. */
#include "profile_readers/build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "profile_readers/bounds.h"

void sn_build_init(sn_build *b, sn_profile *p)
{
    *b = (sn_build){.p = p};
    sn_map_init(&b->threads, p->alloc);
    sn_map_init(&b->steps, p->alloc);
}

void sn_build_free(sn_build *b)
{
    sn_map_free(&b->threads);
    sn_map_free(&b->steps);
    sn_vec_free(&b->key, b->p->alloc);
}

const char *sn_build_text(sn_build *b, sn_json_text text)
{
    if (!text.n)
        return "";
    size_t zeros = 0;
    for (size_t i = 0; i < text.n; i++)
        zeros += text.data[i] == 0;
    char *copy = sn_arena_alloc(&b->p->arena, text.n + 2 * zeros + 1, 1), *to = copy;
    b->failed |= !copy;
    if (!copy)
        return "";
    for (size_t i = 0; i < text.n; i++) {
        if (text.data[i])
            *to++ = text.data[i];
        else
            to = sn_utf8_put(to, 0xFFFD); /* a zero would end it, and two names be one */
    }
    *to = 0;
    return copy;
}

/* ------------------------------------------------------------------ threads and steps */
static char *keep(sn_build *b, const void *key, size_t n)
{
    char *copy = sn_arena_alloc(&b->p->arena, n + 1, 1);
    if (copy && n)
        memcpy(copy, key, n);
    return copy;
}

/* The number of a key in a map, given to it when it is new; UINT32_MAX: no memory. */
static uint32_t number(sn_build *b, sn_map *map, const void *key, size_t n, size_t next, bool *new)
{
    void *found = sn_map_get_n(map, key, n);
    *new = !found;
    if (found)
        return (uint32_t)((uintptr_t)found - 1);
    char *copy = next < UINT32_MAX - 1 ? keep(b, key, n) : NULL;
    if (!copy || !sn_map_put_n(map, copy, n, (void *)(uintptr_t)(next + 1), NULL)) {
        b->failed = true;
        return UINT32_MAX;
    }
    return (uint32_t)next;
}

uint32_t sn_build_thread(sn_build *b, sn_json_text key)
{
    bool is_new;
    size_t n = b->p->threads_seen.n;
    uint32_t index = number(b, &b->threads, key.data, key.n, n, &is_new);
    if (!is_new || index == UINT32_MAX)
        return index;
    sn_prof_thread thread = {.id = index + 1};
    const char *text = sn_build_text(b, key);
    char *end;
    long tid = strtol(text, &end, 10);
    thread.os_tid = *text && !*end ? tid : 0;
    char name[40];
    snprintf(name, sizeof name, "thread %" PRIu32, index + 1);
    thread.name = thread.os_tid ? sn_build_text(b, (sn_json_text){name, strlen(name)}) : text;
    if (!sn_vec_push(&b->p->threads_seen, b->p->alloc, thread))
        b->failed = true;
    return index;
}

void sn_build_key_begin(sn_build *b)
{
    b->key.n = 0;
}

void sn_build_key_add(sn_build *b, sn_json_text text)
{
    if (!sn_vec_append(&b->key, b->p->alloc, text.data, text.n) ||
        !sn_vec_push(&b->key, b->p->alloc, 0))
        b->failed = true;
}

sn_prof_step *sn_build_step(sn_build *b, uint32_t *index, bool *is_new)
{
    sn_profile *p = b->p;
    *index = number(b, &b->steps, b->key.data, b->key.n, p->steps.n, is_new);
    if (*index == UINT32_MAX)
        return NULL;
    sn_prof_step step = {.table = 1, .index = *index};
    step.op_type = step.name = step.post_op = step.kernel = step.attributes = "";
    if (*is_new && !sn_vec_push(&p->steps, p->alloc, step)) {
        b->failed = true;
        return NULL;
    }
    return &p->steps.data[*index];
}

sn_prof_span *sn_build_span(sn_build *b, sn_prof_cat cat)
{
    const sn_prof_span span = {
        .cat = cat, .step = UINT32_MAX, .name = "", .args = "", .category = ""};
    if (!sn_vec_push(&b->p->spans, b->p->alloc, span)) {
        b->failed = true;
        return NULL;
    }
    return &b->p->spans.data[b->p->spans.n - 1];
}

sonde_status sn_build_event(sn_build *b, const sn_json_event *e, sn_prof_cat cat, uint32_t step,
                            sonde_error *err)
{
    sn_prof_span *s = sn_build_span(b, cat);
    if (s) {
        s->start_ns = e->start_ns;
        s->dur_ns = e->dur_ns;
        s->thread = sn_build_thread(b, e->tid);
        s->step = step;
        s->name = step < b->p->steps.n ? b->p->steps.data[step].op_type : sn_build_text(b, e->name);
    }
    return b->failed ? sn_fail_memory(err, sizeof *s) : SONDE_OK;
}

/* ------------------------------------------------------------------ order */
typedef struct entry {
    sn_prof_span span;
    size_t at;
} entry;

static int rank(sn_prof_cat c)
{
    return c == SN_CAT_MODEL ? 0 : c == SN_CAT_ITERATION ? 1 : 2;
}

static int by_start(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->span.start_ns != y->span.start_ns)
        return x->span.start_ns < y->span.start_ns ? -1 : 1;
    if (x->span.dur_ns != y->span.dur_ns)
        return x->span.dur_ns > y->span.dur_ns ? -1 : 1;
    if (rank(x->span.cat) != rank(y->span.cat))
        return rank(x->span.cat) < rank(y->span.cat) ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

/* A file that was written in order keeps its own: it knows what is inside what. */
static sonde_status order(sn_profile *p, sn_build_links links, sonde_error *err)
{
    size_t n = p->spans.n;
    bool sorted = links == SN_BUILD_GIVEN;
    for (size_t i = 1; i < n && sorted; i++)
        sorted = p->spans.data[i - 1].start_ns <= p->spans.data[i].start_ns;
    if (sorted)
        return SONDE_OK;
    size_t bytes;
    entry *all = sn_size_mul(n, sizeof *all, &bytes) ? sn_alloc(p->alloc, bytes) : NULL;
    if (!all)
        return sn_fail_memory(err, n * sizeof *all);
    for (size_t i = 0; i < n; i++)
        all[i] = (entry){p->spans.data[i], i};
    if (n > 1)
        qsort(all, n, sizeof *all, by_start);
    for (size_t i = 0; i < n; i++)
        p->spans.data[i] = all[i].span;
    sn_free(p->alloc, all, bytes);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ links */
static sonde_status check_links(sn_profile *p, sonde_error *err)
{
    sn_prof_index index;
    SN_TRY(sn_prof_index_build(p, &index, err));
    for (size_t i = 0; i < p->spans.n; i++) {
        sn_prof_span *s = &p->spans.data[i];
        uint32_t parent = sn_prof_index_find(&index, s->parent);
        if (parent >= i)
            s->parent = 0;
        else if (s->cat == SN_CAT_THREAD && p->spans.data[parent].cat == SN_CAT_OPERATOR)
            s->step = p->spans.data[parent].step;
    }
    sn_prof_index_free(&index);
    return SONDE_OK;
}

/* Spans that others can lie in, per thread a stack of them. */
static bool holds(sn_prof_cat c)
{
    return c == SN_CAT_ITERATION || c == SN_CAT_OPERATOR || c == SN_CAT_USER;
}

/* Starts and durations are rounded apart where a file has whole microseconds: an end may be one too
 * late. More than that is overlap, which is no nesting. */
static bool contains(const sn_prof_span *up, const sn_prof_span *s)
{
    uint64_t end = up->start_ns + up->dur_ns;
    return s->start_ns < end && s->start_ns + s->dur_ns <= end + 1000;
}

static sonde_status link_by_time(sn_profile *p, sonde_error *err)
{
    size_t n = p->spans.n, threads = p->threads_seen.n;
    uint32_t *top = sn_alloc_zero(p->alloc, threads * sizeof *top);
    uint32_t *below = sn_alloc_zero(p->alloc, (n + 1) * sizeof *below);
    uint32_t iterations = 0;
    if (n >= UINT32_MAX - 1 || !top || !below) {
        sn_free(p->alloc, top, threads * sizeof *top);
        sn_free(p->alloc, below, (n + 1) * sizeof *below);
        return sn_fail_memory(err, (n + 1) * sizeof *below);
    }
    for (size_t i = 0; i < n; i++) {
        sn_prof_span *s = &p->spans.data[i];
        uint32_t *open = &top[s->thread];
        s->id = (uint32_t)i + 1;
        while (*open && !contains(&p->spans.data[*open - 1], s))
            *open = below[*open];
        s->parent = *open;
        const sn_prof_span *up = s->parent ? &p->spans.data[s->parent - 1] : NULL;
        s->run = up ? up->run : 0;
        s->iteration = up ? up->iteration : 0;
        if (s->cat == SN_CAT_ITERATION) {
            s->iteration = iterations;
            s->run = ++iterations;
        }
        if (holds(s->cat)) {
            below[s->id] = *open;
            *open = s->id;
        }
    }
    sn_free(p->alloc, top, threads * sizeof *top);
    sn_free(p->alloc, below, (n + 1) * sizeof *below);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ the whole */
/* What was left out on purpose is said, beside what else is missing. */
static sonde_status note_categories(sn_profile *p, sonde_error *err)
{
    char kept[SN_CATS_TEXT];
    if (!p->categories || p->categories == SN_CATS_ALL)
        return SONDE_OK;
    const char *note =
        sn_arena_printf(&p->arena, "%s%sthe file contains only spans of these categories: %s",
                        p->note, *p->note ? "; " : "", sn_prof_cats_text(p->categories, kept));
    if (!note)
        return sn_fail_memory(err, 1);
    p->note = note;
    return SONDE_OK;
}

sonde_status sn_build_finish(sn_build *b, sn_build_links links, bool zero, sonde_error *err)
{
    sn_profile *p = b->p;
    if (!p->threads_seen.n && !b->failed)
        sn_build_thread(b, (sn_json_text){"main", 4});
    if (b->failed)
        return sn_fail_memory(err, sizeof(sn_prof_span));
    sn_bounds_apply(p, zero);
    SN_TRY(note_categories(p, err));
    SN_TRY(order(p, links, err));
    if (links != SN_BUILD_GIVEN)
        return link_by_time(p, err);
    SN_TRY(check_links(p, err));
    return sn_profile_link_records(p, err); /* a trace written meanwhile could not know them */
}

sonde_status sn_build_loose(sn_build *b, sonde_error *err)
{
    size_t loose = 0;
    for (size_t i = 0; i < b->p->spans.n; i++)
        loose += b->p->spans.data[i].cat == SN_CAT_OPERATOR && !b->p->spans.data[i].run;
    if (!loose)
        return SONDE_OK;
    const char *note = sn_arena_printf(&b->p->arena,
                                       "%zu operators are in no run, or ran on a different thread "
                                       "than their run; they are in no row",
                                       loose);
    if (!note)
        return sn_fail_memory(err, 1);
    b->p->note = note;
    return SONDE_OK;
}
