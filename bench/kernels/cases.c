/* SPDX-License-Identifier: Apache-2.0 */
/* cases.inc and graphs.inc as one list, with names, classes and amounts of work. */
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "graphs.h"

typedef struct row {
    const char *network, *layer; /* NULL: a product */
    bench_gemm gemm;
    bench_conv conv;
    int count;
    bench_attention attention;
} row;

static const row rows[] = {
#define BENCH_GEMM(m, n, k, packed) {NULL, NULL, {m, n, k, packed, 0, 0, 0}, {0}, 1, {0}},
#define BENCH_SPARSE(m, n, k, zeros, outputs, ks)                                                  \
    {NULL, NULL, {m, n, k, true, zeros, outputs, ks}, {0}, 1, {0}},
#define BENCH_CONV(network, layer, in, out, groups, image, kernel, stride, count, residual)        \
    {network, layer, {0}, {in, out, groups, image, kernel, stride, residual, 1}, count, {0}},
#define BENCH_DILATED(network, layer, in, out, image, kernel, dilation, count)                     \
    {network, layer, {0}, {in, out, 1, image, kernel, 1, false, dilation}, count, {0}},
#define BENCH_ATTENTION(batch, heads, len, head, windows)                                          \
    {NULL, NULL, {0}, {0}, 1, {batch, heads, len, head, windows}},
#include "cases.inc"
#undef BENCH_GEMM
#undef BENCH_SPARSE
#undef BENCH_CONV
#undef BENCH_DILATED
#undef BENCH_ATTENTION
};

static const char *kind_of_conv(const bench_conv *c)
{
    const int64_t in = c->in / c->groups, out = c->out / c->groups;
    if (c->groups > 1 && in == 1 && out > 1)
        return "multiplier";
    if (c->groups > 1 && in > 1 && in < 16)
        return "narrow_groups";
    return c->dilation > 8 ? "dilated" : "";
}

static const char *kind_of_product(const bench_gemm *g)
{
    if (g->zeros || !g->packed)
        return "";
    if (g->m == 1)
        return "one_row";
    return g->m >= 49 && g->m <= 200 && (g->k <= 256 || g->n <= 256) ? "small_products" : "";
}

static bool graph_case(size_t k, bench_case *out)
{
    const bench_graph *g = bench_graph_get(k);
    if (!g)
        return false;
    *out = (bench_case){.kind = g->kind, .group = g->kind, .graph = g, .count = 1};
    snprintf(out->name, sizeof out->name, "%s/%s", g->kind, g->layer);
    return true;
}

bool bench_case_get(size_t k, bench_case *out)
{
    const size_t drivers = sizeof rows / sizeof rows[0];
    if (k >= drivers)
        return graph_case(k - drivers, out);
    const row *r = &rows[k];
    *out = (bench_case){.group = r->network           ? r->network
                                 : r->attention.batch ? "attention"
                                                      : "gemm",
                        .kind = r->network             ? kind_of_conv(&r->conv)
                                : r->attention.windows ? "windows"
                                : r->attention.batch   ? ""
                                                       : kind_of_product(&r->gemm),
                        .is_conv = r->network != NULL,
                        .gemm = r->gemm,
                        .conv = r->conv,
                        .attention = r->attention,
                        .count = r->count};
    if (out->is_conv) {
        const bench_conv *c = &r->conv;
        const int64_t to = (c->image + 2 * (c->kernel / 2) - c->kernel) / c->stride + 1;
        snprintf(out->name, sizeof out->name, "conv/%s/%s", r->network, r->layer);
        out->flops = 2.0 * (double)(c->out * (c->in / c->groups) * c->kernel * c->kernel * to * to);
    } else if (r->attention.batch) {
        const bench_attention *a = &r->attention;
        snprintf(out->name, sizeof out->name, "attention/%dx%dx%dx%d%s", (int)a->batch,
                 (int)a->heads, (int)a->len, (int)a->head, a->windows ? "/windows" : "");
        out->flops = 4.0 * (double)(a->batch * a->heads * a->len * a->len * a->head);
    } else {
        const bench_gemm *g = &r->gemm;
        snprintf(out->name, sizeof out->name, "gemm/%dx%dx%d%s", (int)g->m, (int)g->n, (int)g->k,
                 g->packed ? "" : "/dynamic");
        const size_t n = strlen(out->name);
        if (g->zeros)
            snprintf(out->name + n, sizeof out->name - n, "/sparse%d_%dx%d", g->zeros, g->outputs,
                     g->ks);
        out->flops = 2.0 * (double)(g->m * g->n * g->k);
    }
    return true;
}
