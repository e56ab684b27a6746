/* SPDX-License-Identifier: Apache-2.0 */
/* "otherData" read back: what is not there, or is not what it should be, stays as it was. */
#include "profile_readers/chrome_facts.h"

#include <math.h>

#include "profile/chrome_keys.h"
#include "profile/left.h"

static uint64_t whole(sn_json *j)
{
    sn_json_num n;
    uint64_t v = 0;
    if (sn_json_number(j, &n))
        sn_json_scaled(n, 0, &v);
    return v;
}

/* "1700000000000000000" */
static uint64_t whole_text(sn_json_text text)
{
    sn_json n;
    sn_json_init(&n, text.data, text.n, NULL);
    return whole(&n);
}

static int small(sn_json *j)
{
    uint64_t v = whole(j);
    return v < INT32_MAX ? (int)v : INT32_MAX;
}

static double real(sn_json *j)
{
    sn_json_num n;
    return sn_json_number(j, &n) && !n.negative ? sn_json_double(n) : 0;
}

/* The next member of an object whose value is a number; others are skipped. */
static bool next_number(sn_json *j, sn_json_text *key)
{
    while (sn_json_member(j, key)) {
        if (sn_json_peek(j) == SN_JSON_NUMBER)
            return true;
        sn_json_skip(j);
    }
    return false;
}

sn_prof_hw sn_chrome_read_counts(sn_json *j)
{
    sn_prof_hw hw = {0};
    sn_json_text key;
    for (sn_json_object(j); next_number(j, &key);) {
        double unused, *to = &unused;
#define X(name) to = sn_json_is(key, #name) ? &hw.name : to;
        SN_CHROME_COUNTS(X)
#undef X
        *to = real(j);
    }
    return hw;
}

static void take_usage(sn_prof_usage *u, sn_json *j)
{
    sn_json_text key;
    u->known = true;
    for (sn_json_object(j); next_number(j, &key);) {
        uint64_t unused, *to = &unused;
#define X(name) to = sn_json_is(key, #name) ? &u->name : to;
        SN_CHROME_USAGE(X)
#undef X
        *to = whole(j);
    }
}

static void take_memory(sn_prof_memory *m, sn_json *j)
{
    sn_json_text key;
    for (sn_json_object(j); next_number(j, &key);) {
        uint64_t unused, *to = &unused;
#define X(name) to = sn_json_is(key, #name) ? &m->name : to;
        SN_CHROME_MEMORY(X)
#undef X
        *to = whole(j);
    }
}

static void take_peaks(sn_profile *p, sn_json *j)
{
    const struct {
        const char *key;
        double *to;
    } all[] = {{"gflops", &p->peak_gops[SN_ARITH_F32]}, {"gbps", &p->peak_gbps},
               {"l2_bytes", &p->caches[0].bytes},       {"l2_gbps", &p->caches[0].gbps},
               {"l3_bytes", &p->caches[1].bytes},       {"l3_gbps", &p->caches[1].gbps}};
    sn_json_text key;
    for (sn_json_object(j); next_number(j, &key);) {
        const double v = real(j);
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
            if (sn_json_is(key, all[k].key))
                *all[k].to = v;
        const sn_arithmetic a = sn_arithmetic_named(key.data, key.n);
        if (a != SN_ARITH_NONE)
            p->peak_gops[a] = v;
    }
}

/* ["operator", "user"] */
static void take_categories(sn_profile *p, sn_json *j)
{
    for (sn_json_array(j); sn_json_item(j);) {
        sn_json_text name = {"", 0};
        if (sn_json_peek(j) == SN_JSON_STRING)
            sn_json_string(j, &name);
        else
            sn_json_skip(j);
        const sn_prof_cat c = sn_prof_cat_named(name.data, name.n);
        if (c != SN_CAT_COUNT)
            p->categories |= 1u << c;
    }
}

static void take_fact_text(sn_build *b, sn_json_text key, sn_json *j)
{
    sn_profile *p = b->p;
    sn_json_text text;
    sn_json_string(j, &text);
    if (sn_json_is(key, "version"))
        p->version = sn_build_text(b, text);
    else if (sn_json_is(key, "model"))
        p->model_name = sn_build_text(b, text);
    else if (sn_json_is(key, "cpu"))
        p->cpu_model = sn_build_text(b, text);
    else if (sn_json_is(key, "cpu_level"))
        p->cpu_level = sn_build_text(b, text);
    else if (sn_json_is(key, "precision"))
        p->precision = sn_build_text(b, text);
    else if (sn_json_is(key, "counters_note"))
        p->counters_note = sn_build_text(b, text);
    else if (sn_json_is(key, "boot"))
        p->boot = sn_build_text(b, text);
    else if (sn_json_is(key, "start_time_ns"))
        p->start_wall_ns = whole_text(text);
    else if (sn_json_is(key, "start_mono_ns"))
        p->start_mono_ns = whole_text(text);
}

static void take_fact_number(sn_build *b, sn_json_text key, sn_json *j)
{
    sn_profile *p = b->p;
    if (sn_json_is(key, "cores"))
        p->cores = small(j);
    else if (sn_json_is(key, "threads"))
        p->threads = small(j);
    else if (sn_json_is(key, "level"))
        p->level = small(j);
    else if (sn_json_is(key, "dropped"))
        p->dropped = whole(j);
    else if (sn_json_is(key, "wall_error_ns"))
        p->wall_error_ns = whole(j);
    else if (sn_json_is(key, "instance"))
        p->instance = small(j);
    else if (sn_json_is(key, "pid"))
        p->pid = small(j);
    else if (sn_json_is(key, "profiler_ns_per_record"))
        p->record_ns = real(j);
    else
        sn_json_skip(j);
}

/* [{"tid": 100, "os_tid": 4242}] */
static void take_thread_ids(sn_build *b, sn_json *j)
{
    sn_json_text key;
    for (sn_json_array(j); sn_json_item(j);) {
        uint64_t tid = 0, os = 0;
        if (sn_json_peek(j) != SN_JSON_OBJECT) {
            sn_json_skip(j);
            continue;
        }
        for (sn_json_object(j); sn_json_member(j, &key);) {
            const bool number = sn_json_peek(j) == SN_JSON_NUMBER;
            if (number && sn_json_is(key, "tid"))
                tid = whole(j);
            else if (number && sn_json_is(key, "os_tid"))
                os = whole(j);
            else
                sn_json_skip(j);
        }
        if (tid >= SN_CHROME_FIRST_THREAD && tid - SN_CHROME_FIRST_THREAD < b->p->threads_seen.n &&
            os <= INT32_MAX)
            b->p->threads_seen.data[tid - SN_CHROME_FIRST_THREAD].os_tid = (long)os;
    }
}

/* [{"name": "c1", "op": "Constant"}] */
static void take_folded(sn_build *b, sn_json *j)
{
    sn_json_text key, name, op;
    for (sn_json_array(j); sn_json_item(j);) {
        name = op = (sn_json_text){"", 0};
        if (sn_json_peek(j) != SN_JSON_OBJECT) {
            sn_json_skip(j);
            continue;
        }
        for (sn_json_object(j); sn_json_member(j, &key);) {
            const bool text = sn_json_peek(j) == SN_JSON_STRING;
            if (text && sn_json_is(key, "name"))
                sn_json_string(j, &name);
            else if (text && sn_json_is(key, "op"))
                sn_json_string(j, &op);
            else
                sn_json_skip(j);
        }
        sn_prof_origin *origin = SN_NEW(&b->p->arena, sn_prof_origin);
        sn_prof_step step = {.table = 1, .index = UINT32_MAX, .folded = true};
        step.post_op = step.kernel = step.attributes = "";
        step.name = sn_build_text(b, name);
        step.op_type = sn_build_text(b, op);
        if (origin)
            *origin = (sn_prof_origin){step.name, step.op_type};
        step.origins = origin;
        step.n_origins = origin ? 1 : 0;
        b->failed |= !origin || !sn_vec_push(&b->p->steps, b->p->alloc, step);
    }
}

/* Up to `most` numbers of an array; true when there are just as many. */
static bool numbers(sn_json *j, uint64_t *to, size_t most)
{
    size_t n = 0;
    if (sn_json_peek(j) != SN_JSON_ARRAY) {
        sn_json_skip(j);
        return false;
    }
    for (sn_json_array(j); sn_json_item(j); n++)
        if (n < most && sn_json_peek(j) == SN_JSON_NUMBER)
            to[n] = whole(j);
        else
            sn_json_skip(j);
    return n == most;
}

/* [[table, index, first span]]: the steps that were made of events. */
static void take_steps(sn_build *b, sn_json *j)
{
    sn_profile *p = b->p;
    sn_prof_index index;
    if (sn_prof_index_build(p, &index, NULL) != SONDE_OK) {
        b->failed = true;
        sn_json_skip(j);
        return;
    }
    for (sn_json_array(j); sn_json_item(j);) {
        uint64_t at[3] = {0};
        if (!numbers(j, at, 3) || at[0] > UINT32_MAX || at[1] > UINT32_MAX || at[2] > UINT32_MAX)
            continue;
        const uint32_t span = sn_prof_index_find(&index, (uint32_t)at[2]);
        const uint32_t step = span == UINT32_MAX ? UINT32_MAX : p->spans.data[span].step;
        if (step < p->steps.n) {
            p->steps.data[step].table = (uint32_t)at[0];
            p->steps.data[step].index = (uint32_t)at[1];
        }
    }
    sn_prof_index_free(&index);
}

/* A number too large for its field is cut, as readers of other formats do. */
static void take_life_number(sn_prof_life *life, sn_json_text key, uint64_t v)
{
    const uint32_t small_v = v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
    if (sn_json_is(key, "table"))
        life->table = small_v;
    else if (sn_json_is(key, "first"))
        life->first = small_v;
    else if (sn_json_is(key, "last"))
        life->last = small_v;
    else if (sn_json_is(key, "offset"))
        life->offset = v;
    else if (sn_json_is(key, "bytes"))
        life->bytes = v;
}

/* [{"name": "x", "table": 1, "first": 0, "last": 2, "offset": 0, "bytes": 64, "place": "arena"}] */
static void take_lives(sn_build *b, sn_json *j)
{
    sn_json_text key, text;
    for (sn_json_array(j); sn_json_item(j);) {
        sn_prof_life life = {.name = "", .place = SN_LIFE_DYNAMIC};
        if (sn_json_peek(j) != SN_JSON_OBJECT) {
            sn_json_skip(j);
            continue;
        }
        for (sn_json_object(j); sn_json_member(j, &key);) {
            const sn_json_kind kind = sn_json_peek(j);
            if (kind == SN_JSON_NUMBER) {
                take_life_number(&life, key, whole(j));
            } else if (kind == SN_JSON_STRING && sn_json_string(j, &text)) {
                if (sn_json_is(key, "name"))
                    life.name = sn_build_text(b, text);
                else if (sn_json_is(key, "place"))
                    life.place = sn_prof_place_named(text.data, text.n);
            } else {
                sn_json_skip(j);
            }
        }
        b->failed |= !sn_vec_push(&b->p->lives, b->p->alloc, life);
    }
}

static void take_array(sn_build *b, sn_json_text key, sn_json *j)
{
    if (sn_json_is(key, "thread_ids"))
        take_thread_ids(b, j);
    else if (sn_json_is(key, "folded_nodes"))
        take_folded(b, j);
    else if (sn_json_is(key, "categories"))
        take_categories(b->p, j);
    else if (sn_json_is(key, "steps"))
        take_steps(b, j);
    else if (sn_json_is(key, "lives"))
        take_lives(b, j);
    else
        sn_json_skip(j);
}

/* {"host": "a"}; what is no label is left out. */
static void take_labels(sn_build *b, sn_json *j)
{
    sn_json_text key, value;
    for (sn_json_object(j); sn_json_member(j, &key);) {
        const char *name = sn_build_text(b, key);
        if (sn_json_peek(j) != SN_JSON_STRING)
            sn_json_skip(j);
        else if (sn_json_string(j, &value))
            b->failed |= sn_labels_put(&b->p->labels, name, sn_build_text(b, value), NULL) ==
                         SONDE_OUT_OF_MEMORY;
    }
}

/* As real(), and below 0, too: what remains of a run may be. */
static double any_real(sn_json *j)
{
    sn_json_num n;
    if (!sn_json_number(j, &n))
        return 0;
    const bool negative = n.negative;
    n.negative = false;
    return negative ? -sn_json_double(n) : sn_json_double(n);
}

/* Numbers of an array; how many there are, of which the first `most` are taken. */
static size_t reals(sn_json *j, double *to, size_t most)
{
    size_t n = 0;
    for (sn_json_array(j); sn_json_item(j); n++)
        if (n < most && sn_json_peek(j) == SN_JSON_NUMBER)
            to[n] = any_real(j);
        else
            sn_json_skip(j);
    return n;
}

/* [calls, total, quantiles …], behind the first span where it is of a step. */
static void take_left_step(sn_build *b, const sn_prof_index *index, uint32_t step, sn_json *j)
{
    double all[3 + SN_LEFT_POINTS] = {0};
    sn_profile *p = b->p;
    const size_t more = index ? 1 : 0;
    if (sn_json_peek(j) != SN_JSON_ARRAY) {
        sn_json_skip(j);
        return;
    }
    if (reals(j, all, sizeof all / sizeof *all) != 2 + SN_LEFT_POINTS + more)
        return;
    sn_prof_left_step s = {.step = step, .calls = all[more], .total_ns = all[more + 1]};
    memcpy(s.points, all + more + 2, sizeof s.points);
    if (index) {
        const bool id = all[0] > 0 && all[0] < (double)UINT32_MAX;
        const uint32_t span = id ? sn_prof_index_find(index, (uint32_t)all[0]) : UINT32_MAX;
        s.step = span == UINT32_MAX ? UINT32_MAX : p->spans.data[span].step;
        if (s.step >= p->steps.n)
            return;
    }
    b->failed |= !sn_vec_push(&p->left.steps, p->alloc, s);
}

static void take_left_array(sn_build *b, sn_json_text key, sn_json *j)
{
    sn_profile *p = b->p;
    sn_prof_index index;
    if (sn_json_is(key, "memory")) {
        take_left_step(b, NULL, SN_LEFT_MEMORY, j);
    } else if (sn_json_is(key, "other")) {
        take_left_step(b, NULL, SN_LEFT_OTHER, j);
    } else if (sn_json_is(key, "steps") && sn_prof_index_build(p, &index, NULL) == SONDE_OK) {
        for (sn_json_array(j); sn_json_item(j);)
            take_left_step(b, &index, 0, j);
        sn_prof_index_free(&index);
    } else if (sn_json_is(key, "wall_ns")) {
        for (sn_json_array(j); sn_json_item(j);)
            if (sn_json_peek(j) == SN_JSON_NUMBER)
                b->failed |= !sn_vec_push(&p->left.wall_ns, p->alloc, any_real(j));
            else
                sn_json_skip(j);
    } else {
        sn_json_skip(j);
    }
}

static void take_left(sn_build *b, sn_json *j)
{
    sn_prof_left *l = &b->p->left;
    sn_json_text key;
    l->wall_ns.n = l->steps.n = 0;
    for (sn_json_object(j); sn_json_member(j, &key);) {
        const sn_json_kind kind = sn_json_peek(j);
        if (kind == SN_JSON_ARRAY)
            take_left_array(b, key, j);
        else if (kind == SN_JSON_NUMBER && sn_json_is(key, "warmups"))
            l->warmups = whole(j);
        else if (kind == SN_JSON_NUMBER && sn_json_is(key, "cost_ns"))
            l->cost_ns = real(j);
        else if (kind == SN_JSON_NUMBER && sn_json_is(key, "first_ns"))
            l->first_ns = whole(j);
        else if (kind == SN_JSON_NUMBER && sn_json_is(key, "last_ns"))
            l->last_ns = whole(j);
        else
            sn_json_skip(j);
    }
    sn_left_sort(b->p);
}

static void take_object(sn_build *b, sn_json_text key, sn_json *j)
{
    if (sn_json_is(key, "memory"))
        take_memory(&b->p->memory, j);
    else if (sn_json_is(key, "usage"))
        take_usage(&b->p->usage, j);
    else if (sn_json_is(key, "peaks"))
        take_peaks(b->p, j);
    else if (sn_json_is(key, "labels"))
        take_labels(b, j);
    else if (sn_json_is(key, "left_out"))
        take_left(b, j);
    else
        sn_json_skip(j);
}

/* null says that the writer did not know either. */
static void take_other(sn_profile *p, sn_json_text key, sn_json *j)
{
    if (sn_json_peek(j) == SN_JSON_NULL && sn_json_is(key, "profiler_ns_per_record"))
        p->record_ns = NAN;
    sn_json_skip(j);
}

void sn_chrome_read_facts(sn_build *b, sn_json *j)
{
    sn_json_text key;
    if (sn_json_peek(j) != SN_JSON_OBJECT) {
        sn_json_skip(j);
        return;
    }
    for (sn_json_object(j); sn_json_member(j, &key);) {
        const sn_json_kind kind = sn_json_peek(j);
        if (kind == SN_JSON_STRING)
            take_fact_text(b, key, j);
        else if (kind == SN_JSON_NUMBER)
            take_fact_number(b, key, j);
        else if (kind == SN_JSON_ARRAY)
            take_array(b, key, j);
        else if (kind == SN_JSON_OBJECT)
            take_object(b, key, j);
        else
            take_other(b->p, key, j);
    }
}
