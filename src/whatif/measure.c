/* SPDX-License-Identifier: Apache-2.0 */
/* A scenario is measured in turns with "now": a round of one, a round of the other. The clock of a
 * machine changes with its temperature and with what else runs on it, and what takes 10 % more then
 * does so for both. So what counts is a round divided by the round of "now" beside it, and the mean
 * is taken over the middle half of the rounds by that ratio. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "whatif/whatif.h"

/* The smallest and the largest of six contain the median with 97 % probability. */
enum { ROUNDS = 6 };

void sn_measured_init(sn_measured *m, sn_allocator *alloc)
{
    *m = (sn_measured){.alloc = alloc};
    sn_arena_init(&m->arena, alloc);
}

void sn_measured_free(sn_measured *m)
{
    sn_vec_free(&m->steps, m->alloc);
    sn_vec_free(&m->ratios, m->alloc);
    sn_arena_free(&m->arena);
}

/* ------------------------------------------------------------------ from rounds to figures */
static int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool copy_step(sn_measured *m, const sn_whatif_step *from)
{
    sn_whatif_step s = *from;
    const char **const texts[] = {&s.name, &s.op_type, &s.shapes, &s.weight, &s.how};
    uint32_t *nodes = SN_NEW_N(&m->arena, uint32_t, s.n_nodes + 1);
    if (!nodes)
        return false;
    for (uint32_t i = 0; i < s.n_nodes; i++)
        nodes[i] = from->nodes[i];
    for (int k = 0; k < 5; k++)
        if (!(*texts[k] = sn_arena_strdup(&m->arena, *texts[k])))
            return false;
    s.nodes = nodes;
    s.ns = 0;
    return sn_vec_push(&m->steps, m->alloc, s);
}

/* What counts of a subject's rounds: `clock` are those of "now" beside them. */
typedef struct counted {
    const sn_subject *s;
    const sn_round *clock;
} counted;

static void add_round(const counted *c, size_t round, double weight, sn_measured *m)
{
    const sn_subject *s = c->s;
    const size_t end =
        round + 1 < s->rounds.n ? s->rounds.data[round + 1].first_part : s->round_parts.n;
    for (size_t i = s->rounds.data[round].first_part; i < end; i++)
        m->steps.data[s->round_parts.data[i].step].ns += s->round_parts.data[i].ns * weight;
}

/* `keys` decides which rounds are in the middle; it is sorted. */
static void average(const counted *c, const double *key_of, double *keys, sn_measured *m)
{
    const size_t n = c->s->rounds.n;
    qsort(keys, n, sizeof *keys, by_number);
    const double least = keys[n / 4], most = keys[n - 1 - n / 4];
    double taken = 0;
    for (size_t i = 0; i < n; i++)
        if (key_of[i] >= least && key_of[i] <= most) {
            m->now_ns += c->clock[i].ns;
            taken++;
        }
    m->now_ns /= taken;
    for (size_t i = 0; i < n; i++)
        if (key_of[i] >= least && key_of[i] <= most)
            add_round(c, i, m->now_ns / c->clock[i].ns / taken, m);
    for (size_t i = 0; i < m->steps.n; i++)
        m->total_ns += m->steps.data[i].ns;
}

static const char *name_of_machine(sn_arena *arena)
{
    char name[256] = "";
    if (gethostname(name, sizeof name - 1) != 0)
        name[0] = 0;
    for (char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    return sn_arena_strdup(arena, name);
}

static sonde_status fill(const sn_subject *s, sn_measured *m, sonde_error *err)
{
    m->weight_bytes = s->weight_bytes;
    m->peak_bytes = s->peak_bytes;
    m->changed = s->changed;
    m->at_s = (int64_t)(sn_wall_ns() / 1000000000u);
    m->host = name_of_machine(&m->arena);
    if (!m->host)
        return sn_fail_memory(err, 1);
    for (size_t i = 0; i < s->rounds.n; i++)
        m->runs += s->rounds.data[i].runs;
    for (size_t i = 0; i < s->steps.n; i++)
        if (!copy_step(m, &s->steps.data[i]))
            return sn_fail_memory(err, sizeof(sn_whatif_step));
    return SONDE_OK;
}

sonde_status sn_measured_take(sn_measured *m, const sn_subject *s, const sn_round *clock,
                              sonde_error *err)
{
    const counted c = {s, clock};
    const size_t n = s->rounds.n;
    double *keys = SN_NEW_N(&m->arena, double, n);
    if (!keys || !sn_vec_reserve(&m->ratios, m->alloc, n))
        return sn_fail_memory(err, n * sizeof(double));
    SN_TRY(fill(s, m, err));
    for (size_t i = 0; i < n; i++)
        keys[i] = m->ratios.data[m->ratios.n++] = clock[i].ns / s->rounds.data[i].ns;
    average(&c, keys, m->ratios.data, m);
    return SONDE_OK;
}

sonde_status sn_whatif_measure_now(const sn_subject *now, sn_measured *m, sonde_error *err)
{
    const size_t n = now->rounds.n;
    double *lengths = SN_NEW_N(&m->arena, double, 2 * n);
    if (!lengths || !sn_vec_push(&m->ratios, m->alloc, 1.0))
        return sn_fail_memory(err, n * sizeof(double));
    SN_TRY(fill(now, m, err));
    for (size_t i = 0; i < n; i++)
        lengths[i] = lengths[n + i] = now->rounds.data[i].ns;
    sn_round *even = SN_NEW_N(&m->arena, sn_round, n); /* its own clock: all rounds count alike */
    if (!even)
        return sn_fail_memory(err, n * sizeof *even);
    for (size_t i = 0; i < n; i++)
        even[i].ns = 1;
    average(&(counted){now, even}, lengths, lengths + n, m);
    m->now_ns = m->total_ns;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ rounds */
/* How many of the given runs belong to a round; 0: as many as time allows. */
static size_t runs_of(const sn_whatif_case *k, size_t rounds, size_t round)
{
    const size_t runs = (size_t)k->runs;
    return runs * (round + 1) / rounds - runs * round / rounds;
}

static size_t rounds_of(const sn_whatif_case *k)
{
    return k->runs > 0 && k->runs < ROUNDS ? (size_t)k->runs : ROUNDS;
}

sonde_status sn_whatif_run_alone(sn_subject *s, sonde_error *err)
{
    const size_t n = rounds_of(&s->k);
    for (size_t i = 0; i < n; i++)
        SN_TRY(sn_subject_round(s, runs_of(&s->k, n, i), (double)i / (double)n,
                                (double)(i + 1) / (double)n, err));
    return SONDE_OK;
}

/* Every second time the other begins: what changes steadily does the same to both. */
static sonde_status take_turns(const sn_whatif_case *k, sn_subject *s, sn_subject *now,
                               sonde_error *err)
{
    const size_t n = rounds_of(k);
    const double share = 0.5 / (double)n; /* of one round of one of both */
    for (size_t i = 0; i < n; i++) {
        const double done = 2 * share * (double)i;
        sn_subject *const order[] = {i % 2 ? s : now, i % 2 ? now : s};
        SN_TRY(sn_subject_round(order[0], runs_of(k, n, i), done, done + share, err));
        SN_TRY(sn_subject_round(order[1], runs_of(k, n, i), done + share, done + 2 * share, err));
    }
    return SONDE_OK;
}

sonde_status sn_whatif_measure(const sn_whatif_case *k, sn_subject *now, sn_measured *m,
                               sonde_error *err)
{
    sn_subject s = {.alloc = NULL};
    const size_t before = now->rounds.n;
    sonde_status st = sn_subject_open(&s, k, m->alloc, err);
    if (st == SONDE_OK)
        st = take_turns(k, &s, now, err);
    if (st == SONDE_OK)
        st = sn_measured_take(m, &s, now->rounds.data + before, err);
    sn_subject_close(&s);
    return st;
}

/* Ranks from the binomial distribution, by its normal approximation: n/2 ± 0.98 √n. */
void sn_median_interval(const double *sorted, size_t n, double *low, double *high)
{
    const double reach = 0.98 * sqrt((double)n), middle = (double)n / 2;
    const double first = floor(middle - reach), last = ceil(middle + reach);
    *low = sorted[first > 0 ? (size_t)first : 0];
    *high = sorted[last < (double)n - 1 ? (size_t)last : n - 1];
}
