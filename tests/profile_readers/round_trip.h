/* SPDX-License-Identifier: Apache-2.0 */
/* A profile that has something in every table, written by an exporter and read again. */
#ifndef SONDE_TESTS_IMPORT_ROUND_TRIP_H
#define SONDE_TESTS_IMPORT_ROUND_TRIP_H

#include "export/memory_sink.h"
#include "profile_readers/profile_readers.h"

static inline void push_counter(sn_profile *p, uint64_t at, const char *name, double value,
                                uint32_t step)
{
    sn_prof_counter c = {.at_ns = at, .name = name, .value = value, .step = step};
    if (!sn_vec_push(&p->counters, p->alloc, c))
        abort();
}

/* syn_tiny with worker slices, a user scope, executor work, counters, lives, facts, a folded step
 * and names that need care. */
static inline sn_profile *rich_profile(sn_allocator *alloc)
{
    sn_profile *p = syn_tiny(alloc);
    p->level = 3;
    p->record_ns = 40.25;
    p->dropped = 3;
    p->instance = 2;
    p->peak_gops[SN_ARITH_F32] = 123.5;
    p->peak_gops[SN_ARITH_BF16_TILES] = 2500.25;
    p->peak_gops[SN_ARITH_I8] = 700.5;
    p->peak_gbps = 20.25;
    p->caches[0] = (sn_prof_cache){1 << 20, 400.5};
    p->caches[1] = (sn_prof_cache){32 << 20, 100.125};
    p->usage = (sn_prof_usage){true, UINT64_C(1) << 40, 7, 2, 11, 3};
    p->counters_note = "no \"counters\" here";
    p->boot = "7ef75726-c6bf-4546-ad72-8aae12270525 time:[1]";
    p->start_mono_ns = UINT64_C(1234567890123456789);
    p->wall_error_ns = 1500000;
    if (sn_labels_put(&p->labels, "host", "box \"1\", \xC3\xBC\n", NULL) ||
        sn_labels_put(&p->labels, "worker", "17", NULL) ||
        sn_labels_put(&p->labels, "odd\\key=", ",", NULL))
        abort();
    p->memory =
        (sn_prof_memory){.mapped = 1, .held = 5u << 20, .rss = UINT64_C(7) << 30, .rss_file = 9};
    sn_prof_step *conv = &p->steps.data[0];
    conv->name = "conv \"1\", \xC3\xBC\n";
    conv->dynamic = true;
    conv->arithmetic = SN_ARITH_BF16_TILES;
    conv->hw = (sn_prof_hw){3, 6e9, 12000000001, 5, 7};
    sn_prof_tensor *in = (sn_prof_tensor *)(uintptr_t)conv->inputs;
    in[1].constant = true;
    in[1].zeros = 0.25;
    in[0].zeros = -1;
    in[0].port = "picture";
    in[0].port_rank = 2;
    in[0].port_dims = (const int64_t *)memcpy(SN_NEW_N(&p->arena, int64_t, 2), (int64_t[]){3, 16},
                                              2 * sizeof(int64_t));
    conv->threads = 3;
    uint32_t folded = syn_step(p, "Constant", "c0", "", "");
    p->steps.data[folded].folded = true;
    uint32_t scalar = syn_step(p, "Loop", "", "", "");
    p->steps.data[scalar].control = true;
    sn_prof_tensor *odd = SN_NEW_N(&p->arena, sn_prof_tensor, 2);
    odd[0] = (sn_prof_tensor){.name = "n", .dtype = "i64", .rank = 0, .dims = conv->inputs[0].dims};
    odd[1] = (sn_prof_tensor){.name = "s", .dtype = "", .rank = -1, .text = "seq(f32[?])"};
    p->steps.data[scalar].inputs = odd;
    p->steps.data[scalar].n_inputs = 2;
    sn_prof_span *s = syn_span(p, SN_CAT_ITERATION, 0, 60 * MS, 9 * MS, "Iteration2");
    s->iteration = 2;
    s->run = 4;
    s->instance = 3;
    uint32_t it = s->id, op = syn_op(p, it, 60 * MS + 10, 5 * MS, 0);
    p->spans.data[p->spans.n - 1].instance = 3;
    for (uint32_t k = 0; k < 2; k++) {
        s = syn_span(p, SN_CAT_THREAD, op, 60 * MS + 20 + k, 4 * MS, "slice");
        s->thread = k;
        s->step = 0;
        s->run = 4;
        s->iteration = 2;
    }
    syn_span(p, SN_CAT_EXECUTOR, it, 65 * MS + 20, MS, "bind: tiny");
    s = syn_span(p, SN_CAT_USER, 0, 66 * MS + 20, MS, "decode");
    s->args = "token=5";
    s->thread = 1;
    syn_op(p, it, 67 * MS + 20, MS, scalar);
    push_counter(p, 5, SN_COUNTER_USED, 1048576, 0);
    push_counter(p, 60 * MS, SN_COUNTER_USED, 0.125, UINT32_MAX);
    push_counter(p, 60 * MS, "other", -3e300, 1);
    const sn_prof_life lives[] = {
        {1, 0, 1, "y", 64, 4096, SN_LIFE_WORKSPACE},
        {1, 0, 3, "\"odd\", \xC3\xBC\n", 0, UINT64_C(1) << 52, SN_LIFE_ARENA},
        {7, 2, 2, "", 0, 0, SN_LIFE_DYNAMIC}};
    for (size_t i = 0; i < 3; i++)
        if (!sn_vec_push(&p->lives, alloc, lives[i]))
            abort();
    return p;
}

static inline bool same_lives(const sn_profile *p, const sn_profile *q)
{
    bool same = p->lives.n == q->lives.n;
    for (size_t i = 0; i < p->lives.n && same; i++) {
        const sn_prof_life *x = &p->lives.data[i], *y = &q->lives.data[i];
        same = x->table == y->table && x->first == y->first && x->last == y->last &&
               strcmp(x->name, y->name) == 0 && x->offset == y->offset && x->bytes == y->bytes &&
               x->place == y->place;
    }
    return same;
}

/* What was counted and measured beside the spans. */
static inline bool same_counts(const sn_prof_hw *a, const sn_prof_hw *b)
{
    return a->calls == b->calls && a->cycles == b->cycles && a->instructions == b->instructions &&
           a->cache_misses == b->cache_misses && a->branch_misses == b->branch_misses;
}

static inline bool same_machine(const sn_profile *a, const sn_profile *b)
{
    const sn_prof_usage *x = &a->usage, *y = &b->usage;
    bool same = a->peak_gbps == b->peak_gbps;
    for (int k = 0; k < SN_ARITH_COUNT; k++)
        same &= a->peak_gops[k] == b->peak_gops[k];
    for (int k = 0; k < 2; k++)
        same &= a->caches[k].bytes == b->caches[k].bytes && a->caches[k].gbps == b->caches[k].gbps;
    return same && x->known == y->known && x->cpu_ns == y->cpu_ns &&
           x->minor_faults == y->minor_faults && x->major_faults == y->major_faults &&
           x->voluntary == y->voluntary && x->involuntary == y->involuntary &&
           strcmp(a->counters_note, b->counters_note) == 0 &&
           memcmp(&a->memory, &b->memory, sizeof a->memory) == 0;
}

/* What joins a profile with others. */
static inline bool same_origin(const sn_profile *a, const sn_profile *b)
{
    bool same = strcmp(a->boot, b->boot) == 0 && a->start_mono_ns == b->start_mono_ns &&
                a->wall_error_ns == b->wall_error_ns && a->labels.list.n == b->labels.list.n;
    for (size_t i = 0; i < a->labels.list.n && same; i++)
        same = strcmp(a->labels.list.data[i].key, b->labels.list.data[i].key) == 0 &&
               strcmp(a->labels.list.data[i].value, b->labels.list.data[i].value) == 0;
    return same;
}

static inline bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

#endif
