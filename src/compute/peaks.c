/* SPDX-License-Identifier: Apache-2.0 */
/* Each figure is the best of several trials: noise only ever takes away. Arithmetic in f32 is the
 * slot f32_peak on a few KiB of each thread's own, that of other types keeps to registers; reading
 * is f32_sum, which loads every byte once and adds less than a core can. A set that fits the
 * second-level cache is read by the thread it belongs to, larger ones in pieces by whoever comes
 * next, as operators do it. */
#include "compute/peaks.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "compute/tiles.h"
#include "kernels/kernels.h"

#define PEAK_ELEMS  ((size_t)2048)      /* 8 KiB: in every first-level cache */
#define PIECE_BYTES ((size_t)256 << 10) /* of a large set */
#define MEMORY_MIN  ((size_t)64 << 20)
#define MEMORY_MAX  ((size_t)512 << 20)
#define L3_MAX      ((size_t)64 << 20) /* enough to be out of any second-level cache */
#define MIN_TRIALS  4

typedef struct job {
    const sn_kernels *k;
    const float *data;
    size_t elems;  /* of the set; of one thread's own where each has its own */
    size_t stride; /* between the threads' own; 0: one set for all, in pieces */
    size_t rounds;
    int arithmetic;
    sn_product_peak_fn *products; /* not NULL: of these, in registers */
    _Atomic int sink;
} job;

/* Plain C is not measured. */
sn_peak_kernel sn_peaks_kernel(sn_arithmetic a, const sn_kernels *k)
{
    enum { HALF = 2 }; /* bytes of a bf16 */
    const double bytes = SN_ROWS_STEP, tile = (double)SN_ROWS_WEIGHTS * (double)SN_ROWS_TILE;
    const struct {
        sn_arithmetic arithmetic;
        sn_product_peak_fn *plain;
        sn_peak_kernel kernel;
    } all[] = {
        /* products of f16 have the rate of bf16, or are three of them */
        {SN_ARITH_I8, sn_i8_peak_ref, {k->i8_peak, k->i8_peak_name, bytes}},
        {SN_ARITH_BF16, sn_bf16_peak_ref, {k->bf16_peak, k->bf16_peak_name, bytes / (double)HALF}},
        {SN_ARITH_I8_TILES, sn_i8_tile_peak_ref, {k->i8_tile_peak, k->i8_tile_peak_name, tile}},
        {SN_ARITH_BF16_TILES,
         sn_bf16_tile_peak_ref,
         {k->bf16_tile_peak, k->bf16_tile_peak_name, tile / (double)HALF}},
        {SN_ARITH_F16_TILES,
         NULL,
         {k->f16_rows == sn_f16_rows_ref ? NULL : k->bf16_tile_peak, k->bf16_tile_peak_name,
          tile / (double)HALF}},
        {SN_ARITH_F32_SPLIT,
         NULL,
         {k->f16_rows == sn_f16_rows_ref ? NULL : k->bf16_tile_peak, k->bf16_tile_peak_name,
          tile / (double)HALF / (double)SN_SPLIT_STEPS}},
        {SN_ARITH_F16_SPLIT,
         sn_bf16_tile_peak_ref,
         {k->bf16_tile_peak, k->bf16_tile_peak_name,
          tile / (double)HALF / (double)SN_SPLIT_STEPS}}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].arithmetic == a && all[i].kernel.fn != all[i].plain)
            return all[i].kernel;
    return (sn_peak_kernel){.name = ""};
}

const char *sn_peaks_instructions(sn_arithmetic a, uint32_t cpu_flags)
{
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    const char *name = a == SN_ARITH_F32 ? k->f32_peak_name : sn_peaks_kernel(a, k).name;
    const char *last = strrchr(name, '_');
    return last ? last + 1 : "";
}

/* Whatever the bytes are: nobody reads the sums. */
static float multiply(const job *j)
{
    float sums[SN_ROWS_TILE * SN_ROWS_TILE];
    j->products(sums, j->data, j->data, j->rounds);
    return sums[0];
}

static void work(void *arg, size_t task, int worker)
{
    job *j = arg;
    const float *own = j->data + (size_t)worker * j->stride;
    float sum = 0;
    if (j->products) {
        sum = multiply(j);
    } else if (j->arithmetic) {
        sum = j->k->f32_peak(own, j->elems, j->rounds);
    } else if (j->stride) {
        for (size_t r = 0; r < j->rounds; r++)
            sum += j->k->f32_sum(own, j->elems);
    } else {
        const size_t piece = PIECE_BYTES / sizeof(float), at = task * piece;
        sum = j->k->f32_sum(j->data + at, at + piece < j->elems ? piece : j->elems - at);
    }
    atomic_store_explicit(&j->sink, sum > 0, memory_order_relaxed);
}

static double once(job *j, sn_pool *pool, size_t tasks)
{
    const uint64_t start = sn_now_ns();
    const sn_thread_hook hook = sn_tiles_hook(j->k);
    if (j->products)
        sn_pool_run_hooked(pool, tasks, work, j, &hook);
    else
        sn_pool_run(pool, tasks, work, j);
    const uint64_t ns = sn_now_ns() - start;
    return ns ? (double)ns : 1;
}

/* `amount` of one trial per nanosecond, at best; trials go on for `least_ns`. */
static double best_rate(job *j, sn_pool *pool, size_t tasks, double amount, double least_ns)
{
    double best = once(j, pool, tasks), spent = best;
    for (int i = 1; i < MIN_TRIALS || spent < least_ns; i++) {
        const double ns = once(j, pool, tasks);
        best = ns < best ? ns : best;
        spent += ns;
    }
    return amount / best;
}

/* Rounds that make a task last about 100 us, so that starting it does not show. */
static void set_rounds(job *j)
{
    j->rounds = 1;
    while (once(j, NULL, 1) < 1e5 && j->rounds < (size_t)1 << 24)
        j->rounds *= 2;
}

static double arithmetic(const sn_kernels *k, sn_pool *pool, const float *data)
{
    job j = {.k = k, .data = data, .elems = PEAK_ELEMS, .stride = PEAK_ELEMS, .arithmetic = 1};
    const size_t tasks = 8 * (size_t)sn_pool_threads(pool);
    set_rounds(&j);
    return best_rate(&j, pool, tasks, 4.0 * (double)(PEAK_ELEMS * j.rounds * tasks), 6e7);
}

static double products(const sn_kernels *k, sn_arithmetic a, sn_pool *pool, const float *data)
{
    const sn_peak_kernel p = sn_peaks_kernel(a, k);
    job j = {.k = k, .data = data, .products = p.fn};
    const size_t tasks = 8 * (size_t)sn_pool_threads(pool);
    if (!p.fn)
        return 0;
    set_rounds(&j);
    return best_rate(&j, pool, tasks, 2 * p.products * (double)(j.rounds * tasks), 3e7);
}

static double own_bandwidth(const sn_kernels *k, sn_pool *pool, const float *data, size_t bytes)
{
    const size_t elems = bytes / sizeof(float), tasks = 8 * (size_t)sn_pool_threads(pool);
    job j = {.k = k, .data = data, .elems = elems, .stride = elems};
    set_rounds(&j);
    return best_rate(&j, pool, tasks, (double)(bytes * j.rounds * tasks), 4e7);
}

static double shared_bandwidth(const sn_kernels *k, sn_pool *pool, const float *data, size_t bytes)
{
    job j = {.k = k, .data = data, .elems = bytes / sizeof(float)};
    return best_rate(&j, pool, (bytes + PIECE_BYTES - 1) / PIECE_BYTES, (double)bytes, 4e7);
}

static void fill(void *arg, size_t task, int worker)
{
    (void)worker;
    float *piece = (float *)arg + task * (PIECE_BYTES / sizeof(float));
    for (size_t i = 0; i < PIECE_BYTES / sizeof(float); i++)
        piece[i] = 0x1p-10f;
}

static size_t at_most(size_t n, size_t most)
{
    return n < most ? n : most;
}

/* Twice the third-level cache, within reason and a quarter of what is free. */
static size_t memory_set(const sn_cpu *cpu)
{
    size_t bytes = at_most(cpu->l3_bytes, MEMORY_MAX / 2) * 2;
    bytes = bytes < MEMORY_MIN ? MEMORY_MIN : bytes;
    const long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const size_t left = pages > 0 && page > 0 ? (size_t)pages / 4 * (size_t)page : bytes;
    return at_most(bytes, left) / PIECE_BYTES * PIECE_BYTES;
}

static void measure(const sn_cpu *cpu, sn_pool *pool, const float *data, size_t bytes,
                    sn_peaks *out)
{
    const sn_kernels *k = sn_kernels_get(cpu->flags);
    const size_t threads = (size_t)sn_pool_threads(pool);
    *out = (sn_peaks){.threads = (int)threads};
    for (int a = 0; a < SN_ARITH_COUNT; a++)
        out->gops[a] = products(k, (sn_arithmetic)a, pool, data);
    out->gops[SN_ARITH_F32] = arithmetic(k, pool, data);
    const size_t l2 = at_most(cpu->l2_bytes / 2, bytes / threads) / SN_ALIGN * SN_ALIGN;
    size_t l3 = at_most(cpu->l3_bytes / 2, L3_MAX);
    if (l3 <
        2 * threads * cpu->l2_bytes) /* large second-level caches: beyond them, if there is room */
        l3 = at_most(2 * threads * cpu->l2_bytes, cpu->l3_bytes);
    out->l2_gbps = own_bandwidth(k, pool, data, l2);
    out->l3_gbps = shared_bandwidth(k, pool, data, at_most(l3, bytes));
    if (bytes > cpu->l3_bytes)
        out->memory_gbps = shared_bandwidth(k, pool, data, bytes);
}

sonde_status sn_peaks_measure(const sn_cpu *cpu, sn_pool *pool, sn_allocator *alloc, sn_peaks *one,
                              sn_peaks *all, sonde_error *err)
{
    const size_t threads = (size_t)sn_pool_threads(pool);
    const size_t least =
        sn_round_up(threads * (PEAK_ELEMS * sizeof(float) + SN_ALIGN), PIECE_BYTES);
    size_t bytes = memory_set(cpu);
    bytes = bytes < least ? least : bytes;
    float *data = sn_alloc(alloc, bytes);
    while (!data && bytes / 2 >= least) {
        bytes = bytes / 2 / PIECE_BYTES * PIECE_BYTES;
        data = sn_alloc(alloc, bytes);
    }
    if (!data)
        return sn_fail_memory(err, bytes);
    sn_pool_run(pool, bytes / PIECE_BYTES, fill, data);
    measure(cpu, NULL, data, bytes, one);
    *all = *one;
    if (threads > 1)
        measure(cpu, pool, data, bytes, all);
    sn_free(alloc, data, bytes);
    return SONDE_OK;
}
