/* SPDX-License-Identifier: Apache-2.0 */
/* Every row of kernels.inc alone, on one thread and data in the first caches: the list says what
 * there is to measure. Rows of one slot take turns, so that their ratios hold although the clock
 * changes; they are told in GFLOP/s, or in GB/s read and written where memory is what they are
 * about. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rows.h"

/* What the list calls the geometries, row by row. */
static const char *const geometries[] = {
#define SN_KERNEL(slot, flags, symbol, ulp, geometry) #geometry,
#include "kernels/kernels.inc"
#undef SN_KERNEL
};

/* "avx512+vnni"; "-" for plain C. */
static void flags_text(uint32_t flags, char *text, size_t bytes)
{
    size_t n = 0;
    snprintf(text, bytes, "-");
#define SN_INSTRUCTION_SET(name, bit, word, architecture, used, ...)                               \
    if ((flags & SN_CPU_##name) && n < bytes)                                                      \
        n += (size_t)snprintf(text + n, bytes - n, "%s%s", n ? "+" : "", word);
#include "base/instruction_sets.inc"
#undef SN_INSTRUCTION_SET
}

static bool can_run(const bench_setup *s, const sn_kernel_row *row)
{
    return !(row->flags & ~s->cpu.flags) && (!(row->flags & SN_CPU_AMX) || sn_cpu_request_amx());
}

static bool wanted(const sn_kernel_row *row, const char *const *words, int word_count)
{
    for (int i = 0; i < word_count; i++)
        if (strstr(row->name, words[i]) || strstr(row->slot->name, words[i]))
            return true;
    return word_count == 0;
}

static void run(void *state)
{
    bench_row *r = state;
    r->call(r);
}

static void run_once(bench_runner *b)
{
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    b->run(b->state);
    clock_gettime(CLOCK_MONOTONIC, &to);
    const double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    b->ns[0] = ns > 1 ? ns : 1;
    b->rounds = b->inner = 1;
}

static double amount(const bench_row *r)
{
    return r->flops > 0 ? r->flops : r->bytes;
}

/* A wider block is more work in a call: the ratio is that of the speeds. */
static void print_row(const bench_runner *b, const bench_runner *reference)
{
    const bench_row *r = b->state;
    const double more = amount(r) / amount(reference->state);
    printf(" %9.2f %-7s %9.2fx\n", amount(r) / bench_least(b->ns, b->rounds),
           r->flops > 0 ? "GFLOP/s" : "GB/s", more * bench_speedup(reference, b).median);
}

/* The rows of one slot, of which `first` is the reference; returns how many were called. */
static size_t bench_slot(const bench_setup *s, size_t first, const char *const *words,
                         int word_count, bool quick, bench_runner *runners)
{
    const sn_kernel_slot *slot = sn_kernel_row_get(first)->slot;
    bench_row rows[BENCH_MAX_RUNNERS];
    size_t listed[BENCH_MAX_RUNNERS], n = 0;
    bool any = false;
    for (size_t k = first; sn_kernel_row_get(k); k++) {
        const sn_kernel_row *row = sn_kernel_row_get(k);
        if (row->slot != slot || (k != first && !wanted(row, words, word_count)))
            continue; /* without the reference there is no ratio */
        if (n == BENCH_MAX_RUNNERS) {
            fprintf(stderr, "%s: more than %d rows\n", slot->name, BENCH_MAX_RUNNERS);
            exit(1);
        }
        any |= wanted(row, words, word_count);
        rows[n] = (bench_row){.row = row, .quick = quick};
        listed[n++] = k;
    }
    if (!any)
        return 0;
    size_t called = 0;
    memset(runners, 0, BENCH_MAX_RUNNERS * sizeof *runners);
    for (size_t i = 0; i < n; i++) {
        if (!can_run(s, rows[i].row))
            continue;
        bench_row_prepare(&rows[i]);
        runners[called++] = (bench_runner){.threads = 1, .run = run, .state = &rows[i]};
        if (quick)
            run_once(&runners[called - 1]);
    }
    if (!quick)
        bench_measure(s, runners, called);
    for (size_t i = 0, at = 0; i < n; i++) {
        char flags[64];
        flags_text(rows[i].row->flags, flags, sizeof flags);
        printf("%-18s %-26s %-12s %-10s", slot->name, rows[i].row->name, flags,
               geometries[listed[i]]);
        if (at < called && runners[at].state == &rows[i])
            print_row(&runners[at++], &runners[0]);
        else
            printf(" not with these instruction sets\n");
        bench_row_free(&rows[i]);
    }
    fflush(stdout);
    return called;
}

size_t bench_rows(const bench_setup *s, const char *const *words, int word_count, bool quick)
{
    size_t called = 0, listed = 0;
    bench_runner *runners = bench_alloc(BENCH_MAX_RUNNERS * sizeof *runners);
    printf("%s, %s%s\n", s->cpu.model, sn_cpu_level_name(s->cpu.flags),
           quick ? "; one call each: the figures mean nothing" : "");
    printf("%-18s %-26s %-12s %-10s %9s %-7s %s\n", "slot", "kernel", "needs", "geometry", "speed",
           "", "of plain C");
    for (size_t k = 0; sn_kernel_row_get(k); k++) {
        listed++;
        size_t first = 0;
        while (sn_kernel_row_get(first)->slot != sn_kernel_row_get(k)->slot)
            first++;
        if (first == k)
            called += bench_slot(s, k, words, word_count, quick, runners);
    }
    free(runners);
    printf("%zu of %zu rows\n", called, listed);
    return called;
}
