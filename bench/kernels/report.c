/* SPDX-License-Identifier: Apache-2.0 */
/* The figures as lines on the terminal, a sum for each network, and all of them as JSON. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "compute/peaks.h"

/* What the cases of a group add up to, for one runner. */
typedef struct sum {
    const char *by;
    int threads;
    size_t cases;
    double ns, flops, peak_ns; /* of the whole network; peak_ns: at the peak */
} sum;

struct bench_report {
    FILE *json;
    bool first;
    const char *group;
    bool network; /* it is one, of which the layers are summed up */
    size_t cases; /* of the group */
    sum sums[BENCH_MAX_RUNNERS];
    size_t sum_count;
};

static void json_spread(FILE *f, const char *name, bench_spread s)
{
    fprintf(f, ", \"%s\": {\"median\": %.5g, \"low\": %.5g, \"high\": %.5g}", name, s.median, s.low,
            s.high);
}

/* Of the fastest products in the setup's precision, on one thread. */
static double peak_of(const bench_setup *s, sn_arithmetic *of)
{
    const bool f32 = s->type == SONDE_DTYPE_F32;
    *of = sn_arithmetic_of(s->type, !f32);
    double peak = f32 || *sn_peaks_instructions(*of, s->cpu.flags) ? bench_peak(s, *of) : 0;
    if (peak > 0)
        return peak;
    *of = sn_arithmetic_of(s->type, false);
    if (!*sn_peaks_instructions(*of, s->cpu.flags))
        *of = SN_ARITH_F32;
    return bench_peak(s, *of);
}

bench_report *bench_report_open(const bench_setup *s, const char *json)
{
    sn_arithmetic of;
    const double peak = peak_of(s, &of);
    bench_report *r = bench_alloc(sizeof *r);
    r->first = true;
    r->group = "";
    printf("%s, %s, peak of one core %.1f GFLOP/s (%s); weights %s\n", s->cpu.model,
           sn_cpu_level_name(s->cpu.flags), peak, sn_arithmetic_name(of),
           s->cold ? "from beyond the second-level cache" : "where the last run left them");
    printf("%-36s %-9s %s %10s %8s %7s %-15s %s\n", "case", "by", "threads", "us", "GFLOP/s",
           "of peak", "(quartiles)", "speed-up, kernel");
    if (json) {
        r->json = fopen(json, "w");
        if (!r->json) {
            perror(json);
            exit(1);
        }
        fprintf(r->json,
                "{\"schema\": \"sonde.kernels/1\", \"cpu\": \"%s\", \"level\": \"%s\", "
                "\"peak_gflops\": %.5g, \"cold\": %s, \"cases\": [",
                s->cpu.model, sn_cpu_level_name(s->cpu.flags), peak, s->cold ? "true" : "false");
    }
    return r;
}

static void end_group(bench_report *r)
{
    for (size_t i = 0; i < r->sum_count && r->cases > 1 && r->network; i++) {
        const sum *s = &r->sums[i];
        if (s->cases == r->cases)
            printf("%-36s %-9s %7d %10.1f %8.1f %6.1f%%\n", r->group, s->by, s->threads,
                   s->ns / 1e3, s->flops / s->ns, 100 * s->peak_ns / s->ns);
    }
    r->sum_count = r->cases = 0;
}

static void add(bench_report *r, const bench_case *c, const bench_runner *b, double flops,
                double ns, double share)
{
    sum *s = r->sums;
    while (s < r->sums + r->sum_count && (s->threads != b->threads || strcmp(s->by, b->by) != 0))
        s++;
    if (s == r->sums + r->sum_count) {
        *s = (sum){.by = b->by, .threads = b->threads};
        r->sum_count++;
    }
    s->cases++;
    s->ns += ns * c->count;
    s->flops += flops * c->count;
    s->peak_ns += ns * share * c->count;
}

/* The first runner that is the same on fewer threads, or dense where this one is sparse. */
static const bench_runner *slower(const bench_runner *runners, const bench_runner *r)
{
    for (; runners < r; runners++) {
        if (runners->threads < r->threads && strcmp(runners->by, r->by) == 0)
            return runners;
        if (runners->threads == r->threads && strcmp(r->by, "sparse") == 0 &&
            strcmp(runners->by, "sonde") == 0)
            return runners;
    }
    return NULL;
}

static void json_runner(FILE *f, const bench_runner *b, double flops, double least,
                        bench_spread share, const bench_spread *speedup)
{
    const bench_spread ns = bench_spread_of(b->ns, b->rounds);
    fprintf(f,
            "{\"by\": \"%s\", \"threads\": %d, \"kernel\": \"%s\", \"rounds\": %zu, "
            "\"disturbed\": %zu, \"runs_per_round\": %zu, \"least_ns\": %.6g, \"gflops\": %.5g",
            b->by, b->threads, b->plan, b->rounds, b->disturbed, b->inner, least, flops / least);
    json_spread(f, "ns", ns);
    json_spread(f, "peak_gflops", bench_spread_of(b->peak, b->rounds));
    json_spread(f, "share_of_peak", share);
    if (b->bytes > 0)
        fprintf(f, ", \"flops\": %.12g, \"gbytes_per_s\": %.5g", flops, b->bytes / least);
    if (speedup)
        json_spread(f, "speedup", *speedup);
    fprintf(f, "}");
}

void bench_report_case(bench_report *r, const bench_case *c, const bench_runner *runners, size_t n)
{
    if (strcmp(r->group, c->group) != 0) {
        end_group(r);
        r->group = c->group;
        r->network = c->is_conv;
    }
    r->cases++;
    if (r->json)
        fprintf(r->json,
                "%s\n{\"name\": \"%s\", \"class\": \"%s\", \"flops\": %.12g, \"count\": %d, "
                "\"results\": [",
                r->first ? "" : ",", c->name, c->kind, c->flops, c->count);
    r->first = false;
    for (size_t i = 0; i < n; i++) {
        const bench_runner *b = &runners[i], *one = slower(runners, b);
        const double flops = c->flops > 0 ? c->flops : b->flops;
        const bench_spread share = bench_share(b, flops);
        const bench_spread faster = one ? bench_speedup(one, b) : (bench_spread){0};
        const double least = bench_least(b->ns, b->rounds);
        char quartiles[32], times[40] = "";
        snprintf(quartiles, sizeof quartiles, "(%.1f-%.1f)%s", 100 * share.low, 100 * share.high,
                 b->rounds < b->disturbed + BENCH_GOOD_ROUNDS ? "!" : "");
        if (one)
            snprintf(times, sizeof times, "%.2fx (%.2f-%.2f) ", faster.median, faster.low,
                     faster.high);
        printf("%-36s %-9s %7d %10.1f %8.1f %6.1f%% %-15s %s%s", i == 0 ? c->name : "", b->by,
               b->threads, least / 1e3, flops / least, 100 * share.median, quartiles, times,
               b->plan);
        printf(b->bytes / least >= 0.05 ? ", %.1f GB/s\n" : "\n", b->bytes / least);
        add(r, c, b, flops, least, share.median);
        if (r->json) {
            fprintf(r->json, "%s", i ? ",\n " : "\n ");
            json_runner(r->json, b, flops, least, share, one ? &faster : NULL);
        }
    }
    fflush(stdout);
    if (r->json)
        fprintf(r->json, "]}");
}

bool bench_report_close(bench_report *r)
{
    end_group(r);
    bool ok = true;
    if (r->json) {
        fprintf(r->json, "\n]}\n");
        ok = !ferror(r->json);
        ok = fclose(r->json) == 0 && ok;
    }
    free(r);
    return ok;
}
