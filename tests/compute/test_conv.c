/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution drivers against a naive sum in double precision, over many shapes and every CPU
 * level. */
#include <math.h>

#include "compute/conv_rows.h"
#include "compute/conv_tiles.h"
#include "compute/packs.h"
#include "compute/variant.h"
#include "levels.h"
#include "packed.h"

static double activation(const sn_act *a, double v)
{
    double s = 1.0 / (1.0 + exp(-v));
    switch (a->kind) {
    case SN_ACT_RELU:
        return v < 0 ? 0 : v;
    case SN_ACT_CLIP:
        return v < (double)a->params[0]   ? (double)a->params[0]
               : v > (double)a->params[1] ? (double)a->params[1]
                                          : v;
    case SN_ACT_SIGMOID:
        return s;
    case SN_ACT_SILU:
        return v * s;
    default:
        return v;
    }
}

/* One output element and the sum of absolute products, the scale of its rounding error. */
static double naive(const sn_conv_desc *d, const float *x, const float *w, const float *bias,
                    const float *z, int64_t n, int64_t oc, const int64_t o[3], double *scale)
{
    const int64_t icg = d->c / d->groups, group = oc / (d->oc / d->groups);
    const int64_t plane = d->in[0] * d->in[1] * d->in[2];
    double sum = bias ? (double)bias[oc] : 0;
    *scale = fabs(sum);
    for (int64_t c = 0; c < icg; c++)
        for (int64_t k0 = 0; k0 < d->kernel[0]; k0++)
            for (int64_t k1 = 0; k1 < d->kernel[1]; k1++)
                for (int64_t k2 = 0; k2 < d->kernel[2]; k2++) {
                    const int64_t i0 = o[0] * d->stride[0] - d->pad[0] + k0 * d->dilation[0];
                    const int64_t i1 = o[1] * d->stride[1] - d->pad[1] + k1 * d->dilation[1];
                    const int64_t i2 = o[2] * d->stride[2] - d->pad[2] + k2 * d->dilation[2];
                    if (i0 < 0 || i0 >= d->in[0] || i1 < 0 || i1 >= d->in[1] || i2 < 0 ||
                        i2 >= d->in[2])
                        continue;
                    double a = (double)x[(n * d->c + group * icg + c) * plane +
                                         (i0 * d->in[1] + i1) * d->in[2] + i2];
                    double b =
                        (double)w[(((oc * icg + c) * d->kernel[0] + k0) * d->kernel[1] + k1) *
                                      d->kernel[2] +
                                  k2];
                    sum += a * b;
                    *scale += fabs(a * b);
                }
    if (z) {
        double v = (double)z[((n * d->oc + oc) * d->out[0] + o[0]) * d->out[1] * d->out[2] +
                             o[1] * d->out[2] + o[2]];
        sum += v;
        *scale += fabs(v);
    }
    return activation(&d->act, sum);
}

static bool set_out(sn_conv_desc *d, const int64_t pad_end[3])
{
    for (int i = 0; i < 3; i++) {
        int64_t room = d->in[i] + d->pad[i] + pad_end[i] - (d->kernel[i] - 1) * d->dilation[i] - 1;
        if (room < 0)
            return false;
        d->out[i] = room / d->stride[i] + 1;
    }
    return true;
}

static const char *describe(const sn_conv_desc *d, const char *cpu)
{
    static char text[400];
    snprintf(text, sizeof text,
             "%s: n %d c %d oc %d g %d in %dx%dx%d out %dx%dx%d k %dx%dx%d s %d,%d,%d d %d,%d,%d "
             "pad %d,%d,%d blocks %u>%u act %d res %d packed %d",
             cpu, (int)d->n, (int)d->c, (int)d->oc, (int)d->groups, (int)d->in[0], (int)d->in[1],
             (int)d->in[2], (int)d->out[0], (int)d->out[1], (int)d->out[2], (int)d->kernel[0],
             (int)d->kernel[1], (int)d->kernel[2], (int)d->stride[0], (int)d->stride[1],
             (int)d->stride[2], (int)d->dilation[0], (int)d->dilation[1], (int)d->dilation[2],
             (int)d->pad[0], (int)d->pad[1], (int)d->pad[2], d->in_block, d->out_block,
             (int)d->act.kind, d->residual, d->packed);
    return text;
}

static void round_to(sonde_dtype type, float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t h;
        sn_store_f32(0, type, &h, x + i, 1, (sn_rounding){0});
        sn_load_f32(0, type, x + i, &h, 1);
    }
}

static uint16_t *to_halves(sonde_dtype type, const float *x, int64_t n)
{
    uint16_t *y = malloc((size_t)n * sizeof *y + 1);
    sn_store_f32(0, type ? type : SONDE_DTYPE_BF16, y, x, (size_t)n, (sn_rounding){0});
    return y;
}

/* Images that the plan has in 16 bits are put there and taken from there. */
static void run_stored(const sn_conv_plan *p, const float *x, int64_t nx, const void *w,
                       const float *bias, const float *z, float *y, int64_t ny, void *space,
                       sn_pool *pool)
{
    const sn_conv_desc *d = &p->d;
    uint16_t *xh = to_halves(d->x_half, x, nx), *zh = z ? to_halves(d->z_half, z, ny) : NULL;
    uint16_t *yh = malloc((size_t)ny * sizeof *yh + 1);
    const void *xs = d->x_half ? (const void *)xh : x, *zs = z && d->z_half ? (const void *)zh : z;
    sn_conv_run(p, xs, w, bias, zs, d->y_half ? (float *)(void *)yh : y, space, pool);
    if (z && d->y_half == d->z_half) { /* y may be z */
        const size_t bytes = (size_t)ny * (d->y_half ? sizeof *yh : sizeof *y);
        float *both = malloc(bytes + 1);
        memcpy(both, zs, bytes);
        sn_conv_run(p, xs, w, bias, both, both, space, pool);
        CHECK_MSG(memcmp(both, d->y_half ? (const void *)yh : y, bytes) == 0, "%s", p->name);
        free(both);
    }
    if (d->y_half)
        sn_load_f32(0, d->y_half, y, yh, (size_t)ny);
    free(xh), free(zh), free(yh);
}

/* Runs d on one level and compares every element; padding lanes must be zero. */
static void check(const sn_conv_desc *d, const level *lv, bool with_bias, int threads,
                  sn_pool *pool)
{
    sonde_error err = {0};
    const int64_t in = d->in[0] * d->in[1] * d->in[2], out = d->out[0] * d->out[1] * d->out[2];
    const int64_t taps = d->kernel[0] * d->kernel[1] * d->kernel[2];
    float *x = random_floats((size_t)(d->n * d->c * in));
    float *w = random_floats((size_t)(d->oc * (d->c / d->groups) * taps));
    float *bias = with_bias ? random_floats((size_t)d->oc) : NULL;
    float *z = d->residual ? random_floats((size_t)(d->n * d->oc * out)) : NULL;
    const int64_t ob = d->out_block ? d->out_block : 1;
    const int64_t out_all = d->n * ((d->oc + ob - 1) / ob * ob) * out;
    float *y = random_floats((size_t)out_all);
    if (d->z_half && z)
        round_to(d->z_half, z, d->n * d->oc * out);
    float *zb = z && d->out_block ? to_blocked(z, d->n, d->oc, out, d->out_block) : z;
    float *wp = w;
    const bool in_bf16 = d->tiles && d->w_dtype == SONDE_DTYPE_BF16;
    const bool in_f16 = d->tiles && d->f16 && sn_pack_has_f16_tiles(lv->flags);
    if (in_bf16 || in_f16 || d->x_half) /* as the driver rounds it */
        for (int i = 0; i < 2; i++)     /* a plain image of f16, for tiles of bf16 */
            round_to(i == 0 && d->x_half ? d->x_half
                     : in_f16            ? SONDE_DTYPE_F16
                     : in_bf16           ? SONDE_DTYPE_BF16
                                         : d->x_half,
                     x, d->n * d->c * in);
    float *xb = d->in_block ? to_blocked(x, d->n, d->c, in, d->in_block) : x;
    const int64_t wd[4] = {d->oc, d->c / d->groups, d->kernel[1], d->kernel[2]};
    const int64_t wd5[5] = {d->oc, d->c / d->groups, d->kernel[0], d->kernel[1], d->kernel[2]};
    if (d->tiles && d->out_block == 0) {
        wp = packed_rounded(sn_conv_rows_pack_id(d->w_dtype, wd5, 5, d->groups, lv->flags), w,
                            (size_t)(d->oc * wd[1] * taps), wd5, 5, d->groups, lv->flags);
        CHECK(wp != NULL);
    } else if (d->tiles) {
        wp = packed_rounded(
            sn_conv_tiles_pack_id(d->w_dtype, wd, 4, d->groups, d->in_block, d->out_block,
                                  lv->flags),
            w, (size_t)(d->oc * wd[1] * taps), wd, 4,
            sn_conv_tiles_pack_arg(d->groups, d->in_block == 0, d->kernel[2], d->dilation[2]),
            lv->flags);
        CHECK(wp != NULL);
    } else if (d->packed) {
        const bool deep = d->in[0] > 1 || d->kernel[0] > 1;
        const int64_t *dims = deep ? wd5 : wd;
        wp = packed_rounded(
            sn_conv_pack_id(d->w_dtype ? d->w_dtype : SONDE_DTYPE_F32, dims, deep ? 5 : 4,
                            d->groups, d->in_block, d->out_block, lv->flags),
            w, (size_t)(d->oc * wd[1] * taps), dims, deep ? 5 : 4, d->groups, lv->flags);
        CHECK(wp != NULL);
    }
    sn_conv_plan p;
    CHECK_OK(sn_conv_plan_make(&p, d, lv->flags, 1 << 16, threads, &err));
    void *space = aligned_alloc(64, sn_round_up(p.workspace.bytes + 64, 64));
    memset(space, 0xff, p.workspace.bytes); /* NaN: what was there before counts for nothing */
    const int64_t cb = d->in_block ? d->in_block : 1;
    run_stored(&p, xb, d->n * ((d->c + cb - 1) / cb * cb) * in, wp, bias, zb, y, out_all, space,
               pool);
    int bad = 0;
    /* Winograd mixes the pixels of a patch: what counts is the largest sum there is. */
    double top = 0;
    for (int64_t i = 0; d->winograd && i < d->n * d->oc * out; i++) {
        const int64_t pixel = i % out, row = pixel / d->out[2];
        const int64_t o[3] = {row / d->out[1], row % d->out[1], pixel % d->out[2]};
        double scale;
        naive(d, x, w, bias, z, i / out / d->oc, i / out % d->oc, o, &scale);
        top = fmax(top, scale);
    }
    /* Where f16 is split: 16 bits of each number, but for the product of the last eight. */
    const double split = d->tiles && !in_bf16 && !in_f16 ? 2.0 / 65536 : 4e-6;
    const double bound = d->winograd == 4 ? 4e-6 : d->winograd == 2 ? 1e-6 : split;
    for (int64_t n = 0; n < d->n && bad < 3; n++)
        for (int64_t oc = 0; oc < d->oc && bad < 3; oc++)
            for (int64_t i = 0; i < out && bad < 3; i++) {
                const int64_t o[3] = {i / d->out[2] / d->out[1], i / d->out[2] % d->out[1],
                                      i % d->out[2]};
                double scale, want = naive(d, x, w, bias, z, n, oc, o, &scale);
                float got = d->out_block ? blocked_at(y, d->oc, out, d->out_block, n, oc, i)
                                         : y[(n * d->oc + oc) * out + i];
                const bool rough = in_bf16 && d->act.kind == SN_ACT_SILU;
                const double rounding = d->y_half == SONDE_DTYPE_F16 ? fabs(want) / 2048 + 0x1p-24
                                        : d->y_half                  ? fabs(want) / 256
                                        : rough                      ? fabs(want) / 4096
                                                                     : 0;
                if (!(fabs((double)got - want) <= bound * (fmax(scale, top) + 1) + rounding)) {
                    test_errors++;
                    bad++;
                    fprintf(stderr, "%s %s: image %d channel %d pixel %d: %g, expected %g\n",
                            describe(d, lv->name), p.name, (int)n, (int)oc, (int)i, (double)got,
                            want);
                }
            }
    if (d->out_block) {
        const int64_t all = (d->oc + ob - 1) / ob * ob;
        for (int64_t n = 0; n < d->n && !bad; n++)
            for (int64_t oc = d->oc; oc < all && !bad; oc++)
                for (int64_t i = 0; i < out && !bad; i++)
                    if (blocked_at(y, all, out, d->out_block, n, oc, i) != 0.0f) {
                        test_errors++;
                        bad++;
                        fprintf(stderr, "%s: padding lane %d of pixel %d is not zero\n",
                                describe(d, lv->name), (int)oc, (int)i);
                    }
    }
    if (xb != x)
        free(xb);
    if (zb != z)
        free(zb);
    if (wp != w)
        free(wp);
    free(x), free(w), free(bias), free(z), free(y), free(space);
}

static sn_act random_act(void)
{
    static const sn_act acts[] = {{SN_ACT_NONE, {0, 0}},     {SN_ACT_RELU, {0, 0}},
                                  {SN_ACT_CLIP, {0.25f, 1}}, {SN_ACT_SIGMOID, {0, 0}},
                                  {SN_ACT_SILU, {1, 0}},     {SN_ACT_CLIP, {-1, 6}}};
    return acts[test_rand() % 6];
}

static void random_window(sn_conv_desc *d, int axis, int64_t in_max, int64_t k_max,
                          int64_t pad_end[3])
{
    d->in[axis] = test_between(1, in_max);
    d->kernel[axis] = test_between(1, k_max);
    d->stride[axis] = test_between(1, 3);
    d->dilation[axis] = test_rand() % 3 ? 1 : 2;
    d->pad[axis] = test_between(0, d->kernel[axis]);
    pad_end[axis] = test_between(0, d->kernel[axis]);
}

static const sn_conv_desc unit = {.n = 1,
                                  .c = 1,
                                  .oc = 1,
                                  .groups = 1,
                                  .in = {1, 1, 1},
                                  .kernel = {1, 1, 1},
                                  .stride = {1, 1, 1},
                                  .dilation = {1, 1, 1}};

TEST(direct_convolution_of_random_shapes_matches_the_naive_sum)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const unsigned block = sn_conv_block(lv->flags);
        for (int i = 0; i < 250 && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.n = test_between(1, 2);
            d.variant = (unsigned)test_between(0, SN_VARIANTS);
            d.c = test_between(1, 40);
            d.oc = test_between(1, 75);
            random_window(&d, 1, 12, 4, pad_end);
            random_window(&d, 2, i % 5 ? 17 : 60, 5, pad_end);
            if (i % 6 == 1) { /* a line */
                d.in[1] = d.kernel[1] = d.stride[1] = d.dilation[1] = 1;
                d.pad[1] = pad_end[1] = 0;
            }
            if (i % 6 == 3) /* a volume */
                random_window(&d, 0, 4, 3, pad_end);
            if (i % 4 == 0) { /* 1×1 at stride 1 */
                for (int a = 1; a < 3; a++) {
                    d.kernel[a] = d.stride[a] = d.dilation[a] = 1;
                    d.pad[a] = pad_end[a] = 0;
                }
            }
            if (i % 3 == 0) { /* groups of whole blocks, or narrow ones that are merged */
                static const int64_t widths[] = {16, 32, 8, 4, 24, 2};
                const int64_t width = widths[test_rand() % 6];
                d.groups = test_between(2, width < 16 ? 32 / width + 1 : 5);
                d.c = d.oc = width * d.groups;
            }
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = test_rand() % 2;
            d.w_dtype = d.packed ? weight_dtype(test_rand()) : 0;
            d.out_block = block;
            d.in_block = i % 7 == 0 && d.groups == 1 ? 0 : block;
            const int64_t wd[4] = {d.oc, d.c / d.groups, d.kernel[1], d.kernel[2]};
            if (!set_out(&d, pad_end) || !sn_conv_can_block(wd, 4, d.groups, block, !d.in_block))
                continue;
            check(&d, lv, test_rand() % 2, 2, i % 2 ? pool : NULL);
        }
    }
    sn_pool_free(pool);
}

enum { TILES_BLOCK = 16 };

TEST(convolution_by_tiles_matches_the_naive_sum_of_rounded_numbers)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const int cases = sn_pack_has_image_tiles(lv->flags) ? 250 : 25; /* plain C is slow */
        for (int i = 0; i < cases && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.n = test_between(1, 2);
            d.c = test_between(1, i % 3 ? 40 : 90);
            d.oc = test_between(1, 90);
            random_window(&d, 1, 12, 4, pad_end);
            random_window(&d, 2, i % 5 ? 17 : 60, i % 11 ? 5 : 40, pad_end);
            if (i % 11 == 0) { /* a long kernel, which takes the naive sum long */
                d.c = test_between(1, 9);
                d.oc = test_between(1, 20);
            }
            if (i % 4 == 0) /* 1×1 at stride 1 */
                for (int a = 1; a < 3; a++) {
                    d.kernel[a] = d.stride[a] = d.dilation[a] = 1;
                    d.pad[a] = pad_end[a] = 0;
                }
            if (i % 3 == 0 && i % 11 != 0) { /* groups of whole blocks, or narrow ones */
                static const int64_t widths[] = {16, 32, 8, 4, 24, 2, 112};
                const int64_t width = widths[test_rand() % 7];
                d.groups = test_between(2, width < 16 ? 32 / width + 1 : 5);
                d.c = d.oc = width * d.groups;
            }
            if (i % 3 == 1 && i % 2)
                d.c = test_between(1, TILES_BLOCK - 1);
            if (i % 50 == 13) /* no images */
                d.n = 0;
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = d.tiles = true;
            d.w_dtype = test_rand() % 2 ? SONDE_DTYPE_BF16 : SONDE_DTYPE_F16;
            d.out_block = TILES_BLOCK;
            d.in_block = d.groups == 1 && d.c < TILES_BLOCK && i % 8 ? 0 : TILES_BLOCK;
            d.f16 = d.w_dtype == SONDE_DTYPE_F16 && test_rand() % 3;
            if (d.w_dtype == SONDE_DTYPE_BF16 || d.f16) { /* any of them so in memory */
                d.x_half = test_rand() % 2 ? 0 : d.in_block ? d.w_dtype : SONDE_DTYPE_F16;
                d.z_half = d.residual && test_rand() % 2 ? d.w_dtype : 0;
                d.y_half = test_rand() % 2 ? d.w_dtype : 0;
            }
            const int64_t wd[4] = {d.oc, d.c / d.groups, d.kernel[1], d.kernel[2]};
            if (set_out(&d, pad_end) && sn_conv_tiles_pack_id(d.w_dtype, wd, 4, d.groups,
                                                              d.in_block, d.out_block, lv->flags))
                check(&d, lv, test_rand() % 2, 2, i % 2 ? pool : NULL);
        }
    }
    sn_pool_free(pool);
}

/* A step of narrow pixels reads more pixels than its own, with weights of zero: what is not finite
 * there must not get into the sum. */
TEST(infinities_do_not_leave_their_windows)
{
    enum { SIZE = 9, PIXELS = SIZE * SIZE };
    sonde_error err = {0};
    for (const level *lv = levels(); lv->name; lv++)
        for (int i = 0; i < 4; i++) {
            sn_conv_desc d = unit;
            const bool plain = i % 2;
            const int64_t pad_end[3] = {0, 1, 1}, c = plain ? 3 : TILES_BLOCK;
            const int64_t wd[4] = {TILES_BLOCK, c, 3, 3};
            d.c = c;
            d.oc = d.out_block = TILES_BLOCK;
            d.in_block = plain ? 0 : TILES_BLOCK;
            d.packed = d.tiles = true;
            d.w_dtype = i / 2 ? SONDE_DTYPE_BF16 : SONDE_DTYPE_F16;
            for (int a = 1; a < 3; a++) {
                d.in[a] = SIZE;
                d.kernel[a] = 3;
                d.pad[a] = 1;
            }
            CHECK(set_out(&d, pad_end));
            float *x = random_floats((size_t)(c * PIXELS)),
                  *w = random_floats((size_t)(16 * c * 9));
            float y[PIXELS * TILES_BLOCK];
            const int64_t at = 4 * SIZE + 4; /* in the middle */
            x[plain ? PIXELS + at : at * TILES_BLOCK + 5] = INFINITY;
            void *packed = packed_rounded(
                sn_conv_tiles_pack_id(d.w_dtype, wd, 4, 1, d.in_block, d.out_block, lv->flags), w,
                (size_t)(16 * c * 9), wd, 4, sn_conv_tiles_pack_arg(1, plain, 3, 1), lv->flags);
            sn_conv_plan p;
            CHECK_OK(sn_conv_plan_make(&p, &d, lv->flags, 1 << 20, 1, &err));
            void *space = aligned_alloc(64, sn_round_up(p.workspace.bytes + 64, 64));
            sn_conv_run(&p, x, packed, NULL, NULL, y, space, NULL);
            for (int j = 0; j < PIXELS; j++) {
                const bool near = abs(j / SIZE - 4) <= 1 && abs(j % SIZE - 4) <= 1;
                CHECK_MSG(isfinite(y[j * TILES_BLOCK]) != near, "%s: pixel %d is %g", lv->name, j,
                          (double)y[j * TILES_BLOCK]);
            }
            free(x), free(w), free(packed), free(space);
        }
}

TEST(gates_are_factors_of_the_input_before_it_is_rounded)
{
    enum { IMAGES = 2, C = 40, LANES = 48, OC = 20, OUT_LANES = 32, PIXELS = 50 };
    sonde_error err = {0};
    for (const level *lv = levels(); lv->name; lv++) {
        sn_conv_desc d = unit;
        const int64_t wd[4] = {OC, C, 1, 1};
        d.n = IMAGES;
        d.c = C;
        d.oc = OC;
        d.in_block = d.out_block = TILES_BLOCK;
        d.packed = d.tiles = true;
        d.w_dtype = lv->flags % 2 ? SONDE_DTYPE_BF16 : SONDE_DTYPE_F16;
        d.in[1] = 5;
        d.in[2] = 10;
        CHECK(set_out(&d, (const int64_t[3]){0}));
        float *x = random_floats(IMAGES * C * PIXELS), *w = random_floats(OC * C);
        float *gates = calloc(IMAGES * LANES, sizeof *gates), want[IMAGES * OUT_LANES * PIXELS];
        for (int i = 0; i < IMAGES * LANES; i++)
            gates[i] = i % LANES < C ? test_randf() : 0;
        float *xb = to_blocked(x, IMAGES, C, PIXELS, TILES_BLOCK), y[IMAGES * OUT_LANES * PIXELS];
        void *packed = packed_rounded(
            sn_conv_tiles_pack_id(d.w_dtype, wd, 4, 1, TILES_BLOCK, TILES_BLOCK, lv->flags), w,
            OC * C, wd, 4, sn_conv_tiles_pack_arg(1, false, 1, 1), lv->flags);
        sn_conv_plan p;
        CHECK_OK(sn_conv_plan_make(&p, &d, lv->flags, 1 << 20, 1, &err));
        void *space = aligned_alloc(64, sn_round_up(p.workspace.bytes + 64, 64));
        const sn_conv_call c = {.p = &p, .w = packed, .x = xb, .y = y, .workspace = space};
        sn_conv_tiles_run(&c, &(sn_conv_gates){gates, LANES}, NULL);
        for (int i = 0; i < IMAGES * C * PIXELS; i++)
            x[i] *= gates[i / PIXELS / C * LANES + i / PIXELS % C];
        float *scaled = to_blocked(x, IMAGES, C, PIXELS, TILES_BLOCK);
        sn_conv_run(&p, scaled, packed, NULL, NULL, want, space, NULL);
        for (int i = 0; i < IMAGES * OUT_LANES * PIXELS; i++)
            CHECK_MSG(y[i] == want[i], "%s: element %d is %g, expected %g", lv->name, i,
                      (double)y[i], (double)want[i]);
        free(x), free(w), free(gates), free(xb), free(packed), free(space), free(scaled);
    }
}

/* Most pixels miss taps, and few miss the same ones. */
TEST(long_kernels_and_large_dilations_match_the_naive_sum)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const unsigned block = sn_conv_block(lv->flags);
        for (int i = 0; i < 60 && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.variant = (unsigned)test_between(0, SN_VARIANTS);
            d.groups = i % 3 ? 1 : 2;
            d.c = d.groups == 1 ? test_between(1, 20) : d.groups * block;
            d.oc = d.groups == 1 ? test_between(1, 40) : d.groups * block;
            for (int a = i % 2 ? 1 : 2; a < 3; a++) { /* a line, or an image */
                const bool dilated = i % 4 > 1;
                d.in[a] = test_between(1, i % 2 ? 12 : 40);
                d.kernel[a] = dilated ? 3 : test_between(5, i % 2 ? 7 : 40);
                d.dilation[a] = dilated ? test_between(2, 20) : 1;
                d.stride[a] = i % 5 ? 1 : test_between(1, 3);
                d.pad[a] = test_between(0, d.kernel[a] * d.dilation[a] / 2);
                pad_end[a] = test_between(0, d.kernel[a] * d.dilation[a] / 2);
            }
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = true;
            d.w_dtype = weight_dtype(test_rand());
            d.out_block = block;
            d.in_block = i % 7 == 0 && d.groups == 1 ? 0 : block;
            if (set_out(&d, pad_end))
                check(&d, lv, test_rand() % 2, 2, i % 2 ? pool : NULL);
        }
    }
    sn_pool_free(pool);
}

TEST(winograd_stays_within_its_bound_on_random_shapes)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const unsigned block = sn_conv_block(lv->flags);
        for (int i = 0; i < 60 && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.n = test_between(1, 2);
            d.variant = (unsigned)test_between(0, SN_VARIANTS);
            d.groups = i % 3 ? 1 : 2;
            d.c = d.groups == 1 ? test_between(1, 70) : d.groups * block * test_between(1, 2);
            d.oc = d.groups == 1 ? test_between(1, 75) : d.groups * block * test_between(1, 3);
            for (int a = 1; a < 3; a++) {
                d.kernel[a] = 3;
                d.dilation[a] = i % 4 ? 1 : test_between(1, 5);
                d.in[a] = test_between(1, 19);
                d.pad[a] = test_between(0, 3 * d.dilation[a]);
                pad_end[a] = test_between(0, 3 * d.dilation[a]);
            }
            if (i % 5 == 1) /* a volume */
                random_window(&d, 0, 4, 3, pad_end);
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = true;
            d.w_dtype = weight_dtype(test_rand());
            d.winograd = i % 2 ? 4 : 2;
            d.in_block = d.out_block = block;
            if (set_out(&d, pad_end) && d.dilation[1] <= d.out[1] && d.dilation[2] <= d.out[2])
                check(&d, lv, test_rand() % 2, i % 2 + 1, i % 2 ? pool : NULL);
        }
    }
    sn_pool_free(pool);
}

/* A convolution that may choose takes Winograd's F(m×m), or for 0 the direct way. */
static void check_way(int m, int64_t channels, int64_t groups, int64_t image, int64_t images,
                      int64_t stride)
{
    sonde_error err = {0};
    sn_conv_desc d = unit;
    sn_conv_plan p;
    sn_cpu cpu;
    CHECK(sn_cpu_detect(&cpu, NULL, NULL) == SONDE_OK);
    d.n = images;
    d.c = d.oc = channels;
    d.groups = groups;
    d.packed = true;
    d.winograd = SN_CONV_FREE;
    d.in_block = d.out_block = sn_conv_block(cpu.flags);
    for (int a = 1; a < 3; a++) {
        d.in[a] = image;
        d.kernel[a] = 3;
        d.pad[a] = 1;
        d.stride[a] = stride;
    }
    CHECK(set_out(&d, (const int64_t[3]){0, 1, 1}));
    CHECK_OK(sn_conv_plan_make(&p, &d, cpu.flags, 1 << 20, 2, &err));
    CHECK_EQ(p.d.winograd, m);
    CHECK_EQ(p.kind, m ? SN_CONV_WINOGRAD : SN_CONV_DIRECT);
}

TEST(winograd_is_chosen_where_it_saves_more_than_its_transforms_cost)
{
    check_way(4, 64, 1, 56, 1, 1);
    check_way(4, 448, 4, 28, 1, 1);
    check_way(4, 256, 1, 14, 1, 1);
    check_way(0, 512, 1, 4, 1, 1);  /* one patch is too little for the weights … */
    check_way(4, 512, 1, 4, 16, 1); /* … sixteen images have enough */
    check_way(0, 64, 1, 1, 1, 1);
    check_way(0, 64, 1, 56, 1, 2);
}

TEST(narrow_groups_go_by_planes_where_merging_them_is_more_work)
{
    static const struct {
        int64_t in, out; /* of a group */
        bool planes[2];  /* 3×3 and 1×1 */
    } cases[] = {{1, 1, {true, true}},     {1, 2, {true, true}},     {1, 3, {true, true}},
                 {2, 2, {true, true}},     {3, 3, {true, true}},     {4, 4, {true, false}},
                 {5, 5, {true, true}},     {6, 6, {true, true}},     {8, 8, {true, false}},
                 {4, 1, {true, true}},     {12, 12, {true, false}},  {24, 24, {true, false}},
                 {16, 16, {false, false}}, {32, 32, {false, false}}, {16, 32, {false, false}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int k = 0; k < 2; k++) {
            const int64_t size = k == 0 ? 3 : 1, groups = 48;
            const int64_t w[4] = {cases[i].out * groups, cases[i].in, size, size};
            CHECK_MSG(sn_conv_by_planes(w, 4, groups, 16) == cases[i].planes[k],
                      "%d to %d channels, %dx%d", (int)cases[i].in, (int)cases[i].out, (int)size,
                      (int)size);
            CHECK(sn_conv_can_block(w, 4, groups, 16, false));
        }
    CHECK(!sn_conv_by_planes((const int64_t[]){64, 64, 3, 3}, 4, 1, 16));     /* one group */
    CHECK(!sn_conv_by_planes((const int64_t[]){96, 1, 65, 3, 3}, 5, 96, 16)); /* too many planes */
}

/* Every lane of every plane is a channel of its own group, and each of them is there once. */
TEST(planes_hold_every_channel_of_a_group_once)
{
    for (int i = 0; i < 2000 && !test_errors; i++) {
        const unsigned block = i % 2 ? 16 : 8;
        const int64_t in = test_between(1, 12), each = test_between(1, 24);
        const int64_t groups = test_between(2, 40), w[2] = {each * groups, in};
        if (sn_conv_plane_room(w, groups, block) > SN_CONV_MAX_PLANES)
            continue;
        for (int64_t b = 0; b * block < w[0]; b++) {
            sn_f32_plane planes[SN_CONV_MAX_PLANES];
            bool seen[16][12] = {{false}};
            const int64_t n = sn_conv_planes(w, groups, block, b, planes);
            int64_t found = 0, low = INT64_MAX, high = 0;
            CHECK(n <= sn_conv_plane_room(w, groups, block));
            for (int64_t q = 0; q < n; q++)
                for (unsigned l = 0; l < block; l++) {
                    const int32_t lane = planes[q].lane[l];
                    if (lane < 0)
                        continue;
                    const int64_t o = b * block + l, from = planes[q].at[lane / (int32_t)block];
                    const int64_t channel = from * block + lane % (int32_t)block;
                    const int64_t j = channel - o / each * in;
                    CHECK(o < w[0] && j >= 0 && j < in && !seen[l][j]);
                    seen[l][j] = true;
                    found++;
                    low = from < low ? from : low;
                    high = from > high ? from : high;
                }
            CHECK_EQ(found, in * sn_min(block, w[0] - b * block));
            CHECK_EQ(low, planes[0].at[0]);
            CHECK(high - low < sn_conv_plane_blocks(w, groups, block));
        }
    }
}

TEST(depthwise_convolution_of_random_shapes_matches_the_naive_sum)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        for (int i = 0; i < 150 && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.n = test_between(1, 2);
            d.variant = (unsigned)test_between(0, SN_VARIANTS);
            d.c = d.oc = d.groups = test_between(2, 50);
            const bool stored = i % 3 == 0; /* in memory as halves, in several bands of rows */
            random_window(&d, 1, stored ? 40 : 12, 5, pad_end);
            random_window(&d, 2, 30, 5, pad_end);
            const sonde_dtype half = i % 2 ? SONDE_DTYPE_F16 : SONDE_DTYPE_BF16;
            d.x_half = stored && test_rand() % 3 ? half : 0;
            d.y_half = stored && test_rand() % 3 ? half : 0;
            if (i % 2) { /* the windows that have a kernel of their own */
                d.kernel[1] = d.kernel[2] = 1 + 2 * test_between(1, 3);
                d.stride[1] = d.stride[2] = test_between(1, 2);
                d.dilation[1] = d.dilation[2] = 1;
            }
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = test_rand() % 2;
            d.w_dtype = d.packed ? weight_dtype(test_rand()) : 0;
            d.in_block = d.out_block = sn_conv_block(lv->flags);
            if (set_out(&d, pad_end))
                check(&d, lv, test_rand() % 2, 2, i % 3 ? NULL : pool);
        }
    }
    sn_pool_free(pool);
}

TEST(convolution_in_narrow_groups_of_random_shapes_matches_the_naive_sum)
{
    static const int64_t widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 20, 24, 1, 1, 4};
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const unsigned block = sn_conv_block(lv->flags);
        for (int i = 0; i < 400 && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            const int64_t in = widths[test_rand() % 14];
            const int64_t out = i % 3 ? in : widths[test_rand() % 12];
            d.n = test_between(1, 2);
            d.variant = (unsigned)test_between(0, SN_VARIANTS);
            d.groups = test_between(2, 60 / (in > out ? in : out) + 3);
            d.c = d.groups * in;
            d.oc = d.groups * out;
            random_window(&d, 1, i % 5 == 0 ? 30 : 9, 5, pad_end);
            random_window(&d, 2, 20, 5, pad_end);
            if (i % 2) { /* the windows that have a kernel of their own */
                d.kernel[1] = d.kernel[2] = 1 + 2 * test_between(0, 3);
                d.stride[1] = d.stride[2] = test_between(1, 2);
                d.dilation[1] = d.dilation[2] = d.stride[1] == 1 ? test_between(1, 3) : 1;
            }
            if (i % 7 == 3) /* a line */
                d.in[1] = d.kernel[1] = d.stride[1] = 1, d.pad[1] = pad_end[1] = 0;
            if (i % 7 == 5) /* a volume */
                random_window(&d, 0, 4, 3, pad_end);
            const sonde_dtype half = i % 2 ? SONDE_DTYPE_F16 : SONDE_DTYPE_BF16;
            const bool deep = d.in[0] > 1 || d.kernel[0] > 1;
            const int64_t wd[5] = {d.oc, in, d.kernel[1], d.kernel[2]};
            const int64_t wd5[5] = {d.oc, in, d.kernel[0], d.kernel[1], d.kernel[2]};
            if (i % 4 == 0 && i % 7 != 5 && sn_conv_stores_planes(wd, 4, d.groups, block)) {
                d.x_half = test_rand() % 3 ? half : 0;
                d.y_half = test_rand() % 3 ? half : 0;
            }
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = d.x_half || d.y_half || test_rand() % 2;
            d.w_dtype = d.packed ? weight_dtype(test_rand()) : 0;
            d.in_block = d.out_block = block;
            if (set_out(&d, pad_end) &&
                sn_conv_by_planes(deep ? wd5 : wd, deep ? 5 : 4, d.groups, block))
                check(&d, lv, test_rand() % 2, 2, i % 3 ? NULL : pool);
        }
    }
    sn_pool_free(pool);
}

TEST(plain_convolution_of_one_to_three_dims_matches_the_naive_sum)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        for (int i = 0; i < 150 && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.n = test_between(1, 2);
            d.groups = i % 3 ? 1 : test_between(2, 4);
            d.c = d.groups * test_between(1, 9);
            d.oc = d.groups * test_between(1, 20);
            for (int a = i % 3; a < 3; a++)
                random_window(&d, a, a == 2 ? 40 : 6, 4, pad_end);
            d.act = random_act();
            d.residual = test_rand() % 2;
            if (set_out(&d, pad_end))
                check(&d, lv, test_rand() % 2, 2, i % 2 ? pool : NULL);
        }
    }
    sn_pool_free(pool);
}

TEST(plain_convolution_in_bf16_matches_the_naive_sum_of_rounded_numbers)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const int cases = sn_pack_has_tiles(lv->flags) ? 200 : 20; /* plain C is slow */
        for (int i = 0; i < cases && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.n = i % 50 == 13 ? 0 : test_between(1, 3);
            d.groups = i % 3 ? 1 : test_between(2, 4);
            d.c = d.groups * test_between(1, i % 5 ? 9 : 40);
            d.oc = d.groups * test_between(1, i % 4 ? 20 : 70);
            if (i % 8 == 5) /* depthwise */
                d.c = d.oc = d.groups = test_between(2, 20);
            for (int a = i % 3; a < 3; a++)
                random_window(&d, a, a == 2 ? (i % 7 ? 40 : 700) : 7, a == 2 && i % 9 == 0 ? 30 : 3,
                              pad_end);
            if (i % 7 == 0 && i % 3 < 2) /* many pixels of few lines, which the naive sum allows */
                d.in[1] = 1, d.kernel[1] = 1, d.pad[1] = pad_end[1] = 0, d.stride[1] = 1;
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = d.tiles = true;
            d.w_dtype = SONDE_DTYPE_BF16;
            if (set_out(&d, pad_end))
                check(&d, lv, test_rand() % 2, 2, i % 2 ? pool : NULL);
        }
    }
    sn_pool_free(pool);
}

/* Rows that fill tiles read those of the next group, and pixels of the next line: both are left
 * out, whatever they are. */
TEST(infinities_in_plain_tensors_stay_in_their_windows_and_groups)
{
    enum { C = 6, OC = 10, IN = 40 };
    for (const level *lv = levels(); lv->name; lv++) {
        sn_conv_desc d = unit;
        const int64_t pad_end[3] = {0, 0, 1};
        d.c = C, d.oc = OC, d.groups = 2, d.in[2] = IN, d.kernel[2] = 3, d.pad[2] = 1;
        d.packed = d.tiles = true;
        d.w_dtype = SONDE_DTYPE_BF16;
        CHECK(set_out(&d, pad_end));
        float *x = random_floats(C * IN), *w = random_floats(OC * C / 2 * 3), y[OC * IN];
        x[IN + 17] = INFINITY; /* channel 1, of the first group */
        const int64_t wd[3] = {OC, C / 2, 3};
        void *packed = packed_rounded(sn_conv_rows_pack_id(SONDE_DTYPE_BF16, wd, 3, 2, lv->flags),
                                      w, OC * C / 2 * 3, wd, 3, 2, lv->flags);
        CHECK(packed != NULL);
        sn_conv_plan p;
        sonde_error err = {0};
        CHECK_OK(sn_conv_plan_make(&p, &d, lv->flags, 1 << 16, 1, &err));
        void *space = aligned_alloc(64, sn_round_up(p.workspace.bytes + 64, 64));
        sn_conv_run(&p, x, packed, NULL, NULL, y, space, NULL);
        for (int i = 0; i < OC * IN; i++) {
            const bool reads = i / IN < OC / 2 && i % IN >= 16 && i % IN <= 18;
            CHECK_MSG(isfinite(y[i]) != reads, "%s: channel %d pixel %d is %g", lv->name, i / IN,
                      i % IN, (double)y[i]);
        }
        free(x), free(w), free(packed), free(space);
    }
}

TEST(layers_of_known_networks_match_the_naive_sum)
{
    static const int64_t layers[][7] = {/* c, oc, groups, image, kernel, stride, pad */
                                        {3, 32, 1, 32, 3, 2, 1},   {3, 64, 1, 30, 7, 2, 3},
                                        {32, 32, 2, 28, 3, 2, 1},  {64, 64, 4, 14, 3, 1, 1},
                                        {48, 160, 1, 14, 1, 2, 0}, {400, 400, 25, 7, 3, 1, 1},
                                        {80, 400, 1, 7, 1, 1, 0},  {64, 80, 1, 7, 3, 1, 1}};
    for (const level *lv = levels(); lv->name; lv++) {
        for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
            const int64_t *l = layers[i];
            const int64_t pad_end[3] = {0, l[6], l[6]};
            sn_conv_desc d = unit;
            d.c = l[0];
            d.oc = l[1];
            d.groups = l[2];
            d.packed = true;
            d.w_dtype = weight_dtype(test_rand());
            d.act.kind = SN_ACT_RELU;
            d.out_block = sn_conv_block(lv->flags);
            d.in_block = l[0] == 3 ? 0 : d.out_block;
            for (int a = 1; a < 3; a++) {
                d.in[a] = l[3];
                d.kernel[a] = l[4];
                d.stride[a] = l[5];
                d.pad[a] = l[6];
            }
            CHECK(set_out(&d, pad_end));
            check(&d, lv, true, 2, NULL);
        }
    }
}

TEST_MAIN()
