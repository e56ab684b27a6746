/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels reach: every layer of a few networks through the same drivers the engine uses,
 * in GFLOP/s and as a share of the FMA peak measured on this core.
 *
 *     sonde_bench_kernels [-t THREADS] [-c CPU] [-l LIST] [-r MIN_MS]
 *
 * LIST: regnet, resnet, mobilenet, gemm, or all. Weights are packed beforehand. One buffer per
 * layer and direction; a list is run as a network is, layer after layer, so weights come from where
 * they lie between two inferences. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "compute/conv.h"
#include "compute/gemm.h"
#include "compute/packs.h"
#include "kernels/kernels.h"

static double peak_gflops(uint32_t flags)
{
    enum { ELEMS = 2048, ROUNDS = 20000 };
    static float x[ELEMS];
    const sn_kernels *k = sn_kernels_get(flags);
    double best = 0;
    volatile float sink = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t t = sn_now_ns();
        sink = sink + k->f32_peak(x, ELEMS, ROUNDS);
        best = fmax(best, 4.0 * ELEMS * ROUNDS / (double)(sn_now_ns() - t));
    }
    return best;
}

typedef struct layer {
    const char *label;
    int64_t c, oc, groups, image, kernel, stride;
    int count; /* how often the network has it */
    bool residual;
} layer;

static const layer regnet[] = {{"stem", 3, 32, 1, 224, 3, 2, 1, false},
                               {"s1 proj", 32, 32, 1, 112, 1, 2, 1, false},
                               {"s1 a", 32, 32, 1, 112, 1, 1, 1, false},
                               {"s1 b s2", 32, 32, 2, 112, 3, 2, 1, false},
                               {"s1 c", 32, 32, 1, 56, 1, 1, 1, true},
                               {"s2 proj", 32, 64, 1, 56, 1, 2, 1, false},
                               {"s2 a first", 32, 64, 1, 56, 1, 1, 1, false},
                               {"s2 b s2", 64, 64, 4, 56, 3, 2, 1, false},
                               {"s2 b", 64, 64, 4, 28, 3, 1, 1, false},
                               {"s2 1x1", 64, 64, 1, 28, 1, 1, 3, true},
                               {"s3 proj", 64, 160, 1, 28, 1, 2, 1, false},
                               {"s3 a first", 64, 160, 1, 28, 1, 1, 1, false},
                               {"s3 b s2", 160, 160, 10, 28, 3, 2, 1, false},
                               {"s3 b", 160, 160, 10, 14, 3, 1, 6, false},
                               {"s3 1x1", 160, 160, 1, 14, 1, 1, 13, true},
                               {"s4 proj", 160, 400, 1, 14, 1, 2, 1, false},
                               {"s4 a first", 160, 400, 1, 14, 1, 1, 1, false},
                               {"s4 b s2", 400, 400, 25, 14, 3, 2, 1, false},
                               {"s4 b", 400, 400, 25, 7, 3, 1, 11, false},
                               {"s4 1x1", 400, 400, 1, 7, 1, 1, 23, true},
                               {NULL, 0, 0, 0, 0, 0, 0, 0, false}};

static const layer resnet[] = {{"stem", 3, 64, 1, 224, 7, 2, 1, false},
                               {"s1 a first", 64, 64, 1, 56, 1, 1, 1, false},
                               {"s1 a", 256, 64, 1, 56, 1, 1, 2, false},
                               {"s1 b", 64, 64, 1, 56, 3, 1, 3, false},
                               {"s1 c", 64, 256, 1, 56, 1, 1, 4, true},
                               {"s2 a first", 256, 128, 1, 56, 1, 1, 1, false},
                               {"s2 b s2", 128, 128, 1, 56, 3, 2, 1, false},
                               {"s2 a", 512, 128, 1, 28, 1, 1, 3, false},
                               {"s2 b", 128, 128, 1, 28, 3, 1, 3, false},
                               {"s2 c", 128, 512, 1, 28, 1, 1, 4, true},
                               {"s2 proj", 256, 512, 1, 56, 1, 2, 1, false},
                               {"s3 a first", 512, 256, 1, 28, 1, 1, 1, false},
                               {"s3 b s2", 256, 256, 1, 28, 3, 2, 1, false},
                               {"s3 a", 1024, 256, 1, 14, 1, 1, 5, false},
                               {"s3 b", 256, 256, 1, 14, 3, 1, 5, false},
                               {"s3 c", 256, 1024, 1, 14, 1, 1, 6, true},
                               {"s3 proj", 512, 1024, 1, 28, 1, 2, 1, false},
                               {"s4 a first", 1024, 512, 1, 14, 1, 1, 1, false},
                               {"s4 b s2", 512, 512, 1, 14, 3, 2, 1, false},
                               {"s4 a", 2048, 512, 1, 7, 1, 1, 2, false},
                               {"s4 b", 512, 512, 1, 7, 3, 1, 2, false},
                               {"s4 c", 512, 2048, 1, 7, 1, 1, 3, true},
                               {"s4 proj", 1024, 2048, 1, 14, 1, 2, 1, false},
                               {NULL, 0, 0, 0, 0, 0, 0, 0, false}};

static const layer mobilenet[] = {{"stem", 3, 32, 1, 224, 3, 2, 1, false},
                                  {"dw1", 32, 32, 32, 112, 3, 1, 1, false},
                                  {"pw1", 32, 16, 1, 112, 1, 1, 1, false},
                                  {"pw2a", 16, 96, 1, 112, 1, 1, 1, false},
                                  {"dw2 s2", 96, 96, 96, 112, 3, 2, 1, false},
                                  {"pw2b", 96, 24, 1, 56, 1, 1, 1, false},
                                  {"pw3a", 24, 144, 1, 56, 1, 1, 2, false},
                                  {"dw3", 144, 144, 144, 56, 3, 1, 1, false},
                                  {"pw3b", 144, 24, 1, 56, 1, 1, 1, true},
                                  {"dw4 s2", 144, 144, 144, 56, 3, 2, 1, false},
                                  {"pw4b", 144, 32, 1, 28, 1, 1, 1, false},
                                  {"pw5a", 32, 192, 1, 28, 1, 1, 3, false},
                                  {"dw5", 192, 192, 192, 28, 3, 1, 2, false},
                                  {"pw5b", 192, 32, 1, 28, 1, 1, 2, true},
                                  {"dw6 s2", 192, 192, 192, 28, 3, 2, 1, false},
                                  {"pw6b", 192, 64, 1, 14, 1, 1, 1, false},
                                  {"pw7a", 64, 384, 1, 14, 1, 1, 4, false},
                                  {"dw7", 384, 384, 384, 14, 3, 1, 4, false},
                                  {"pw7b", 384, 64, 1, 14, 1, 1, 3, true},
                                  {"pw8b", 384, 96, 1, 14, 1, 1, 1, false},
                                  {"pw9a", 96, 576, 1, 14, 1, 1, 3, false},
                                  {"dw9", 576, 576, 576, 14, 3, 1, 2, false},
                                  {"pw9b", 576, 96, 1, 14, 1, 1, 2, true},
                                  {"dw10 s2", 576, 576, 576, 14, 3, 2, 1, false},
                                  {"pw10b", 576, 160, 1, 7, 1, 1, 1, false},
                                  {"pw11a", 160, 960, 1, 7, 1, 1, 3, false},
                                  {"dw11", 960, 960, 960, 7, 3, 1, 3, false},
                                  {"pw11b", 960, 160, 1, 7, 1, 1, 2, true},
                                  {"pw12b", 960, 320, 1, 7, 1, 1, 1, false},
                                  {"head", 320, 1280, 1, 7, 1, 1, 1, false},
                                  {NULL, 0, 0, 0, 0, 0, 0, 0, false}};

static const int64_t products[][3] = {
    {1, 1000, 400},  {1, 1000, 2048},  {128, 256, 256},    {128, 1024, 256}, {128, 256, 1024},
    {128, 768, 768}, {128, 3072, 768}, {128, 768, 3072},   {197, 768, 768},  {197, 3072, 768},
    {126, 768, 768}, {42, 384, 384},   {1008, 1024, 1024}, {3136, 64, 576},  {128, 128, 64}};

/* One layer made ready: as many copies of the weights as the network has. */
typedef struct ready {
    const layer *l;
    sn_conv_plan plan;
    float *x, *y, *z, *bias;
    float **w;
    double *best; /* of each copy */
    double ns;    /* their sum */
} ready;

typedef struct bench {
    sn_cpu cpu;
    sn_pool *pool;
    int threads;
    double peak, min_ns;
} bench;

static float *floats(size_t bytes)
{
    float *p = aligned_alloc(64, sn_round_up(bytes + 64, 64));
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        p[i] = (float)((i * 2654435761u) >> 8 & 0xffff) / 65536.0f - 0.5f;
    return p;
}

static size_t tensor_bytes(int64_t c, int64_t pixels, unsigned block)
{
    const int64_t b = block ? block : 1;
    return (size_t)((c + b - 1) / b * b * pixels) * sizeof(float);
}

static void make_ready(ready *r, const layer *l, const bench *b)
{
    const unsigned block = (unsigned)sn_cpu_block(b->cpu.flags);
    const int64_t pad = l->kernel / 2, out = (l->image + 2 * pad - l->kernel) / l->stride + 1;
    sn_conv_desc d = {.n = 1,
                      .c = l->c,
                      .oc = l->oc,
                      .groups = l->groups,
                      .in = {1, l->image, l->image},
                      .out = {1, out, out},
                      .kernel = {1, l->kernel, l->kernel},
                      .stride = {1, l->stride, l->stride},
                      .dilation = {1, 1, 1},
                      .pad = {0, pad, pad},
                      .in_block = l->c < block ? 0 : block,
                      .out_block = block,
                      .residual = l->residual,
                      .packed = true,
                      .act = {SN_ACT_RELU, {0, 0}}};
    sonde_error err;
    if (sn_conv_plan_make(&r->plan, &d, b->cpu.flags, b->cpu.l2_bytes, b->threads, &err)) {
        fprintf(stderr, "%s: %s\n", l->label, err.message);
        exit(1);
    }
    const int64_t wd[4] = {l->oc, l->c / l->groups, l->kernel, l->kernel};
    const sn_pack_format *f = sn_pack_get(sn_conv_pack_id(wd, 4, l->groups, d.in_block, block));
    size_t bytes = 0;
    f->bytes(wd, 4, l->groups, &bytes);
    r->l = l;
    r->x = floats(tensor_bytes(l->c, l->image * l->image, d.in_block));
    r->y = floats(tensor_bytes(l->oc, out * out, block));
    r->z = l->residual ? floats(tensor_bytes(l->oc, out * out, block)) : NULL;
    r->bias = floats((size_t)l->oc * sizeof(float));
    r->w = malloc((size_t)l->count * sizeof *r->w);
    r->best = malloc((size_t)l->count * sizeof *r->best);
    for (int i = 0; i < l->count; i++) {
        r->w[i] = floats(bytes);
        r->best[i] = INFINITY;
    }
}

static double run_layer(ready *r, sn_pool *pool)
{
    double sum = 0;
    for (int i = 0; i < r->l->count; i++) {
        uint64_t t = sn_now_ns();
        sn_conv_run(&r->plan, r->x, r->w[i], r->bias, r->z, r->y, NULL, pool);
        double ns = (double)(sn_now_ns() - t);
        r->best[i] = fmin(r->best[i], ns);
        sum += ns;
    }
    return sum;
}

static void bench_network(const char *name, const layer *layers, const bench *b)
{
    size_t n = 0;
    while (layers[n].label)
        n++;
    ready *r = calloc(n, sizeof *r);
    for (size_t i = 0; i < n; i++)
        make_ready(&r[i], &layers[i], b);
    double best = INFINITY, spent = 0, total_flops = 0, each = 0;
    for (int round = 0; round < 3 || spent < b->min_ns; round++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += run_layer(&r[i], b->pool);
        best = fmin(best, sum);
        spent += sum;
    }
    printf("%s, %d thread%s, %s\n", name, b->threads, b->threads == 1 ? "" : "s",
           sn_cpu_level_name(b->cpu.flags));
    for (size_t i = 0; i < n; i++) {
        const layer *l = r[i].l;
        double flops = (double)r[i].plan.flops * l->count;
        for (int k = 0; k < l->count; k++)
            r[i].ns += r[i].best[k];
        total_flops += flops;
        each += r[i].ns;
        printf("  %-11s %4d>%-4d g%-3d %3d %dx%d/%d x%-2d %8.1f us %7.1f GFLOP/s %5.1f %%  %s\n",
               l->label, (int)l->c, (int)l->oc, (int)l->groups, (int)l->image, (int)l->kernel,
               (int)l->kernel, (int)l->stride, l->count, r[i].ns / 1e3 / l->count, flops / r[i].ns,
               100 * flops / r[i].ns / b->peak / b->threads, r[i].plan.name);
        free(r[i].x), free(r[i].y), free(r[i].z), free(r[i].bias);
        for (int k = 0; k < l->count; k++)
            free(r[i].w[k]);
        free(r[i].w), free(r[i].best);
    }
    printf("  best round: %.3f ms, %.1f GFLOP/s, %.1f %% of peak; best of each layer: %.3f ms\n\n",
           best / 1e6, total_flops / best, 100 * total_flops / best / b->peak / b->threads,
           each / 1e6);
    free(r);
}

static void bench_products(const bench *b)
{
    printf("gemm (m n k), %d thread%s, %s\n", b->threads, b->threads == 1 ? "" : "s",
           sn_cpu_level_name(b->cpu.flags));
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const int64_t m = products[i][0], n = products[i][1], k = products[i][2];
        for (int packed = 1; packed >= 0; packed--) {
            sn_gemm_desc d = {.m = m,
                              .n = n,
                              .k = k,
                              .b_count = 1,
                              .packed = packed,
                              .has_c = true,
                              .c_n = 1,
                              .alpha = 1,
                              .beta = 1};
            sn_gemm_plan p;
            if (sn_gemm_plan_make(&p, &d, b->cpu.flags, b->cpu.l2_bytes, b->threads, NULL))
                exit(1);
            float *a = floats((size_t)(m * k) * 4), *y = floats((size_t)(m * n) * 4);
            float *w = floats(sn_gemm_packed_floats(n, k, p.block) * 4);
            float *c = floats((size_t)n * 4), *space = floats(p.pack_bytes);
            double best = INFINITY, spent = 0;
            for (int round = 0; round < 5 || spent < b->min_ns / 20; round++) {
                uint64_t t = sn_now_ns();
                sn_gemm_run(&p, a, w, c, NULL, y, space, b->pool);
                double ns = (double)(sn_now_ns() - t);
                best = fmin(best, ns);
                spent += ns;
            }
            printf("  %4d %4d %4d %-8s %9.1f us %7.1f GFLOP/s %5.1f %%  %s\n", (int)m, (int)n,
                   (int)k, packed ? "packed" : "dynamic", best / 1e3, (double)p.flops / best,
                   100 * (double)p.flops / best / b->peak / b->threads, p.name);
            free(a), free(y), free(w), free(c), free(space);
        }
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    bench b = {.threads = 1, .min_ns = 300e6};
    const char *cpu = NULL, *list = "all";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "-t") == 0)
            b.threads = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "-c") == 0)
            cpu = argv[i + 1];
        else if (strcmp(argv[i], "-l") == 0)
            list = argv[i + 1];
        else if (strcmp(argv[i], "-r") == 0)
            b.min_ns = atof(argv[i + 1]) * 1e6;
    }
    sonde_error err;
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    if (sn_cpu_detect(&b.cpu, cpu, &err) || sn_pool_create(&b.pool, b.threads, &alloc, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    b.peak = peak_gflops(b.cpu.flags);
    printf("%s, peak of one core %.1f GFLOP/s\n\n", b.cpu.model, b.peak);
    const bool all = strcmp(list, "all") == 0;
    if (all || strcmp(list, "regnet") == 0)
        bench_network("RegNet_x_400mf", regnet, &b);
    if (all || strcmp(list, "resnet") == 0)
        bench_network("ResNet-50", resnet, &b);
    if (all || strcmp(list, "mobilenet") == 0)
        bench_network("MobileNet v2", mobilenet, &b);
    if (all || strcmp(list, "gemm") == 0)
        bench_products(&b);
    sn_pool_free(b.pool);
    return 0;
}
