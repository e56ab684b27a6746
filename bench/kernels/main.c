/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels reach: layers of a few networks and matrix products through the drivers the
 * engine uses, in GFLOP/s and as a share of the arithmetic peak, which is measured beside every
 * layer. */
#include <stdlib.h>
#include <string.h>

#include "rows.h"

static const char usage[] =
    "usage: script/bench kernels [OPTION...] [WORD...]\n"
    "\n"
    "Measures the cases whose name contains one of the WORDs, or whose class is one of them\n"
    "(without WORDs: all cases): gemm/MxNxK, gemm/MxNxK/sparse90_4x1 (90 % of the blocks of 4\n"
    "outputs at one k are zero), conv/NETWORK/LAYER, attention/BATCHxHEADSxPOSITIONSxSIZE,\n"
    ".../windows (rows in windows of an image, with masks), CLASS/NAME (a small graph, run by a\n"
    "session; with its steps and GB/s). The peak is measured together with each case, with the "
    "same\n"
    "instructions and threads. The percentage of the peak is the median over many rounds, with\n"
    "its quartiles. A ! after them: other programs used the cores in nearly all rounds.\n"
    "\n"
    "  -t, --threads LIST   number of threads, such as 1 or 1,2; a list also shows the speedup\n"
    "  -c, --cpu LEVEL      instruction set, as SONDE_CPU: avx512, avx2, neon, baseline\n"
    "  -p, --precision P    of weights and images: f32 (default), bf16, int8\n"
    "  -r, --min-ms MS      time for each case and runner (default: 30)\n"
    "      --cold           measure with weights that are not in the L2 cache, as in a network\n"
    "      --winograd       also measure Winograd F(4x4, 3x3) where it is possible; it needs a\n"
    "                       quarter of the multiplications, but FLOPs are those of the direct\n"
    "                       convolution\n"
    "      --reference      also measure the plain C kernels\n"
    "      --rivals         also measure OpenBLAS and oneDNN if they are installed\n"
    "      --openblas FILE, --onednn FILE   paths of these libraries\n"
    "      --json FILE      write all results\n"
    "      --list           list the names of the cases, with their classes\n"
    "      --rows           measure every row of src/kernels/kernels.inc instead, or those whose\n"
    "                       name contains a WORD: GFLOP/s or GB/s, and the ratio to plain C\n"
    "      --quick          run each case once, or call each row once with tiny arrays, to see\n"
    "                       that it works\n";

typedef struct options {
    const char *cpu, *json, **words;
    int word_count;
    bool list, rows, quick;
} options;

void *bench_alloc(size_t bytes)
{
    void *p = aligned_alloc(SN_ALIGN, sn_round_up(bytes + SN_ALIGN, SN_ALIGN));
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memset(p, 0, bytes);
}

float *bench_floats(size_t bytes)
{
    float *p = bench_alloc(bytes);
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        p[i] = (float)((i * 2654435761u) >> 8 & 0xffff) / 65536.0f - 0.5f;
    return p;
}

void *bench_numbers(sn_dtype type, size_t bytes)
{
    if (type == SONDE_DTYPE_F32)
        return bench_floats(bytes);
    void *p = bench_alloc(bytes);
    for (size_t i = 0; type == SONDE_DTYPE_BF16 && i < bytes / sizeof(uint16_t); i++) /* 1 … 2 */
        ((uint16_t *)p)[i] = (uint16_t)(0x3f80u | (i * 2654435761u >> 8 & 0x7fu) | (i & 1) << 15);
    for (size_t i = 0; type == SONDE_DTYPE_I8 && i < bytes; i++)
        ((uint8_t *)p)[i] = (uint8_t)(i * 2654435761u >> 8);
    return p;
}

static void fail(const char *text, const char *word)
{
    fprintf(stderr, "%s: %s\n", word, text);
    exit(2);
}

static void read_threads(bench_setup *s, const char *text)
{
    for (const char *at = text;; at++) {
        char *end;
        const long n = strtol(at, &end, 10);
        const int last = s->thread_counts ? s->threads[s->thread_counts - 1] : 0;
        if (end == at || n <= last || n > 256 || s->thread_counts == BENCH_MAX_THREADS ||
            (*end && *end != ','))
            fail("expected up to four ascending numbers such as 1,2", text);
        s->threads[s->thread_counts++] = (int)n;
        if (!*end)
            return;
        at = end;
    }
}

static sn_dtype read_precision(const char *text)
{
    if (strcmp(text, "f32") == 0)
        return SONDE_DTYPE_F32;
    if (strcmp(text, "bf16") == 0)
        return SONDE_DTYPE_BF16;
    if (strcmp(text, "int8") != 0)
        fail("not a precision; it is f32, bf16 or int8", text);
    return SONDE_DTYPE_I8;
}

static bool is(const char *word, const char *short_name, const char *name)
{
    return strcmp(word, short_name) == 0 || strcmp(word, name) == 0;
}

static void read_options(int argc, char **argv, bench_setup *s, options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (is(a, "-h", "--help")) {
            fputs(usage, stdout);
            exit(0);
        }
        if (is(a, "--cold", "--cold"))
            s->cold = true;
        else if (is(a, "--reference", "--reference"))
            s->reference = true;
        else if (is(a, "--winograd", "--winograd"))
            s->winograd = true;
        else if (is(a, "--rivals", "--rivals"))
            s->rivals = true;
        else if (is(a, "--list", "--list"))
            o->list = true;
        else if (is(a, "--rows", "--rows"))
            o->rows = true;
        else if (is(a, "--quick", "--quick"))
            o->quick = true;
        else if (a[0] != '-')
            o->words[o->word_count++] = a;
        else if (!value)
            fail("unknown option, or its value is missing; see --help", a);
        else if (is(a, "-t", "--threads"))
            read_threads(s, argv[++i]);
        else if (is(a, "-c", "--cpu"))
            o->cpu = argv[++i];
        else if (is(a, "-r", "--min-ms"))
            s->min_ms = atof(argv[++i]);
        else if (is(a, "-p", "--precision"))
            s->type = read_precision(argv[++i]);
        else if (is(a, "--json", "--json"))
            o->json = argv[++i];
        else if (is(a, "--openblas", "--openblas"))
            s->openblas = argv[++i];
        else if (is(a, "--onednn", "--onednn"))
            s->onednn = argv[++i];
        else
            fail("unknown option; see --help", a);
    }
    s->rivals = s->rivals || s->openblas || s->onednn;
    if (s->thread_counts == 0)
        s->threads[s->thread_counts++] = 1;
    if (o->rows && (s->thread_counts > 1 || s->threads[0] > 1 || o->json || o->list))
        fail("measures on one thread and prints a table, nothing else", "--rows");
    if (o->quick && (o->json || o->list))
        fail("measures nothing", "--quick");
    if (s->type != SONDE_DTYPE_F32 && (s->rivals || s->winograd))
        fail("rivals and Winograd are measured in f32", "--precision");
}

static bool wanted(const bench_case *c, const options *o)
{
    for (int i = 0; i < o->word_count; i++) {
        if (strstr(c->name, o->words[i]) || strcmp(c->kind, o->words[i]) == 0)
            return true;
    }
    return o->word_count == 0;
}

/* False: nobody could run it. */
static bool bench_one(const bench_setup *s, const bench_case *c, bench_runner *runners,
                      bench_report *report)
{
    size_t n = 0;
    bool (*const engine)(const bench_setup *, int, uint32_t, const bench_case *, bench_runner *) =
        c->graph                    ? bench_session
        : c->attention.batch        ? bench_attend
        : s->type == SONDE_DTYPE_I8 ? bench_bytes
                                    : bench_engine;
    const bool rivals = s->rivals && !c->attention.batch && !c->graph;
    memset(runners, 0, BENCH_MAX_RUNNERS * sizeof *runners);
    for (int slot = 0; slot < s->thread_counts; slot++) {
        n += engine(s, slot, s->cpu.flags, c, &runners[n]);
        if (c->gemm.zeros)
            n += bench_sparse(s, slot, c, &runners[n]);
        if (s->winograd)
            n += bench_winograd(s, slot, c, &runners[n]);
        if (s->reference)
            n += engine(s, slot, 0, c, &runners[n]);
        if (rivals) {
            n += bench_openblas(s, slot, c, &runners[n]);
            n += bench_onednn(s, slot, c, &runners[n]);
        }
    }
    if (report) {
        bench_measure(s, runners, n);
        bench_report_case(report, c, runners, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (!report) {
            runners[i].run(runners[i].state);
            printf("%-36s %-9s %7d %s\n", c->name, runners[i].by, runners[i].threads,
                   runners[i].plan);
        }
        runners[i].free(runners[i].state);
    }
    return n > 0;
}

static int bench_all(const bench_setup *s, const options *o)
{
    bench_case c;
    if (o->rows)
        return bench_rows(s, o->words, o->word_count, o->quick) ? 0 : 1;
    size_t found = 0, ran = 0;
    bench_runner *runners = bench_alloc(BENCH_MAX_RUNNERS * sizeof *runners);
    bench_report *report = o->quick ? NULL : bench_report_open(s, o->json);
    for (size_t k = 0; bench_case_get(k, &c); k++) {
        if (!wanted(&c, o))
            continue;
        ran += bench_one(s, &c, runners, report);
        found++;
    }
    free(runners);
    if (report && !bench_report_close(report))
        fail("could not be written", o->json);
    if (found == 0)
        fputs("no case has such a name; --list shows them\n", stderr);
    return found && (!o->quick || ran == found) ? 0 : 1;
}

int main(int argc, char **argv)
{
    bench_setup s = {.min_ms = 30, .type = SONDE_DTYPE_F32};
    options o = {.cpu = getenv("SONDE_CPU"), .words = (const char **)bench_alloc((size_t)argc * 8)};
    bench_case c;
    sonde_error err;
    sn_allocator alloc;
    read_options(argc, argv, &s, &o);
    for (size_t k = 0; o.list && bench_case_get(k, &c); k++) {
        if (wanted(&c, &o))
            printf(*c.kind ? "%-36s %s\n" : "%s\n", c.name, c.kind);
    }
    s.level = o.cpu;
    sn_allocator_init_system(&alloc);
    bool ok = sn_cpu_detect(&s.cpu, o.cpu, &err) == SONDE_OK;
    if (ok)
        sn_cpu_request(&s.cpu);
    for (int i = 0; ok && i < s.thread_counts; i++)
        ok = sn_pool_create(&s.pool[i], s.threads[i], &alloc, &err) == SONDE_OK;
    if (!ok)
        fprintf(stderr, "%s\n", err.message);
    const int result = !ok ? 1 : o.list ? 0 : bench_all(&s, &o);
    for (int i = 0; i < s.thread_counts; i++)
        sn_pool_free(s.pool[i]);
    free(o.words);
    return result;
}
