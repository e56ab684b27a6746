/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions whose weights are sparse against the dense driver, over many shapes, layouts and
 * every CPU level; and when they are chosen. */
#include <math.h>

#include "compute/conv_sparse.h"
#include "compute/packs.h"
#include "compute/sparse.h"
#include "levels.h"
#include "packed.h"

/* One problem in plain tensors, and what the dense driver makes of it. */
typedef struct problem {
    sn_conv_desc d;
    int64_t in, out, nx, ny, nw; /* pixels; elements */
    float *x, *w, *bias, *z, *want, *scale;
} problem;

static float *run_dense(const problem *p, const float *x, const float *w, const float *bias,
                        const float *z, const sn_act *act)
{
    sn_conv_desc d = p->d;
    sn_conv_plan plan;
    sonde_error err = {0};
    d.sparse = 0;
    d.packed = false;
    d.in_block = d.out_block = 0;
    d.act = *act;
    if (sn_conv_plan_make(&plan, &d, 0, 1 << 16, 1, &err)) {
        test_errors++;
        return NULL;
    }
    void *space = aligned_alloc(64, sn_round_up(plan.workspace.bytes + 64, 64));
    float *y = malloc((size_t)p->ny * sizeof *y + 1);
    sn_conv_run(&plan, x, w, bias, z, y, space, NULL);
    free(space);
    return y;
}

static void make_absolute(float *x, int64_t n)
{
    for (int64_t i = 0; x && i < n; i++)
        x[i] = fabsf(x[i]);
}

static float *copy_of(const float *x, int64_t n)
{
    float *y = x ? malloc((size_t)n * sizeof *y + 1) : NULL;
    if (y)
        memcpy(y, x, (size_t)n * sizeof *y);
    return y;
}

/* Blocks of four filters, or one, at one k become zero. */
static void prune(const problem *p, int percent)
{
    const int64_t k = p->nw / p->d.oc, each = p->d.sparse;
    for (int64_t o = 0; o < p->d.oc; o += each)
        for (int64_t i = 0; i < k; i++)
            if (test_between(0, 99) < percent)
                for (int64_t a = o; a < o + each && a < p->d.oc; a++)
                    p->w[a * k + i] = test_rand() % 2 ? 0.0f : -0.0f;
}

static bool set_window(sn_conv_desc *d, int axis, int i)
{
    const int64_t kernel = i % 3 == 0 ? 1 : test_between(1, 4);
    d->in[axis] = test_between(1, i % 5 ? 13 : 40);
    d->kernel[axis] = kernel;
    d->stride[axis] = i % 4 ? test_between(1, 3) : 1;
    d->dilation[axis] = test_rand() % 3 ? 1 : 2;
    d->pad[axis] = i % 3 ? test_between(0, kernel) : 0;
    const int64_t end = i % 3 ? test_between(0, kernel) : 0;
    const int64_t room = d->in[axis] + d->pad[axis] + end - (kernel - 1) * d->dilation[axis] - 1;
    d->out[axis] = room < 0 ? 0 : room / d->stride[axis] + 1;
    return room >= 0;
}

static bool random_problem(problem *p, int i)
{
    static const sn_act acts[] = {{SN_ACT_NONE, {0, 0}},
                                  {SN_ACT_RELU, {0, 0}},
                                  {SN_ACT_CLIP, {0.25f, 1}},
                                  {SN_ACT_SILU, {1, 0}}};
    *p = (problem){.d = {.n = test_between(1, 3),
                         .c = test_between(1, 40),
                         .oc = test_between(1, i % 6 ? 75 : 200),
                         .groups = 1,
                         .in = {1, 1, 1},
                         .out = {1, 1, 1},
                         .kernel = {1, 1, 1},
                         .stride = {1, 1, 1},
                         .dilation = {1, 1, 1},
                         .packed = true,
                         .sparse = i % 4 == 2 ? 1 : SN_SPARSE_PANEL,
                         .act = acts[test_rand() % 4],
                         .residual = test_rand() % 2}};
    sn_conv_desc *d = &p->d;
    for (int axis = i % 7 == 0 ? 0 : i % 7 == 1 ? 2 : 1; axis < 3; axis++)
        if (!set_window(d, axis, i))
            return false;
    p->in = d->in[0] * d->in[1] * d->in[2];
    p->out = d->out[0] * d->out[1] * d->out[2];
    p->nx = d->n * d->c * p->in;
    p->ny = d->n * d->oc * p->out;
    p->nw = d->oc * d->c * d->kernel[0] * d->kernel[1] * d->kernel[2];
    p->x = random_floats((size_t)p->nx);
    p->w = random_floats((size_t)p->nw);
    p->bias = test_rand() % 2 ? random_floats((size_t)d->oc) : NULL;
    p->z = d->residual ? random_floats((size_t)p->ny) : NULL;
    prune(p, (int)test_between(0, 100));
    return true;
}

/* What is expected, and how large a sum is without its signs. */
static void expect(problem *p)
{
    const sn_act none = {SN_ACT_NONE, {0, 0}};
    float *x = copy_of(p->x, p->nx), *w = copy_of(p->w, p->nw), *z = copy_of(p->z, p->ny);
    float *bias = copy_of(p->bias, p->d.oc);
    make_absolute(x, p->nx), make_absolute(w, p->nw), make_absolute(z, p->ny);
    make_absolute(bias, p->d.oc);
    p->want = run_dense(p, p->x, p->w, p->bias, p->z, &p->d.act);
    p->scale = run_dense(p, x, w, bias, z, &none);
    free(x), free(w), free(z), free(bias);
}

static void free_problem(problem *p)
{
    free(p->x), free(p->w), free(p->bias), free(p->z), free(p->want), free(p->scale);
}

static bool near(float got, float want, float scale)
{
    if (!isfinite(want))
        return isnan(want) ? isnan(got) : got == want;
    return fabsf(got - want) <= 4e-6f * (scale + 1);
}

static void compare(const problem *p, const sn_conv_plan *plan, const float *y, const char *cpu)
{
    const sn_conv_desc *d = &plan->d;
    int bad = 0;
    for (int64_t i = 0; i < p->ny && !bad; i++) {
        const int64_t n = i / p->out / d->oc, oc = i / p->out % d->oc, at = i % p->out;
        const float got =
            d->out_block ? blocked_at(y, d->oc, p->out, d->out_block, n, oc, at) : y[i];
        bad = !near(got, p->want[i], p->scale[i]);
        CHECK_MSG(!bad, "%s %s: image %d channel %d pixel %d: %g, expected %g", cpu, plan->name,
                  (int)n, (int)oc, (int)at, (double)got, (double)p->want[i]);
    }
    const int64_t block = sn_max(d->out_block, 1), all = sn_ceil_div(d->oc, block) * block;
    for (int64_t i = 0; i < d->n * (all - d->oc) * p->out && !bad; i++) {
        const int64_t n = i / p->out / (all - d->oc), oc = d->oc + i / p->out % (all - d->oc);
        bad = blocked_at(y, all, p->out, d->out_block, n, oc, i % p->out) != 0.0f;
        CHECK_MSG(!bad, "%s %s: padding lane %d is not zero", cpu, plan->name, (int)oc);
    }
}

static void check(const problem *p, const level *lv, unsigned in_block, unsigned out_block,
                  sn_pool *pool)
{
    sn_conv_desc d = p->d;
    sonde_error err = {0};
    const int64_t dims[5] = {d.oc, d.c, d.kernel[0], d.kernel[1], d.kernel[2]};
    const sn_sparse_source source = {p->w, SONDE_DTYPE_F32, p->nw / d.oc, d.oc, true};
    d.in_block = in_block;
    d.out_block = out_block;
    d.entries = sn_sparse_blocks(&source, (int)d.sparse, 1);
    void *w = packed_weights(d.sparse == 1 ? SN_PACK_F32_SPARSE1 : SN_PACK_F32_SPARSE4, p->w, dims,
                             5, sn_sparse_arg(SN_SPARSE_FILTERS, d.entries), lv->flags);
    sn_conv_plan plan;
    CHECK_OK(sn_conv_plan_make(&plan, &d, lv->flags, 1 << 15, pool ? 2 : 1, &err));
    void *space = aligned_alloc(64, sn_round_up(plan.workspace.bytes + 64, 64));
    memset(space, 0xff, plan.workspace.bytes); /* NaN: what was there before counts for nothing */
    float *x = in_block ? to_blocked(p->x, d.n, d.c, p->in, in_block) : p->x;
    float *z = p->z && out_block ? to_blocked(p->z, d.n, d.oc, p->out, out_block) : p->z;
    const int64_t block = sn_max(out_block, 1);
    const int64_t all = d.n * sn_ceil_div(d.oc, block) * block * p->out;
    float *y = random_floats((size_t)all);
    sn_conv_run(&plan, x, w, p->bias, z, y, space, pool);
    compare(p, &plan, y, lv->name);
    if (z) { /* y may be z */
        memcpy(y, z, (size_t)all * sizeof *y);
        sn_conv_run(&plan, x, w, p->bias, y, y, space, pool);
        compare(p, &plan, y, lv->name);
    }
    if (x != p->x)
        free(x);
    if (z != p->z)
        free(z);
    free(w), free(space), free(y);
}

TEST(sparse_convolution_of_random_shapes_matches_the_dense_one)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const unsigned block = sn_conv_block(lv->flags);
        for (int i = 0; i < 60 && !test_errors; i++) {
            problem p;
            if (!random_problem(&p, i))
                continue;
            if (i % 10 == 9) /* numbers that are not finite meet zeros that are not there */
                p.x[(uint64_t)test_rand() % (uint64_t)p.nx] = i % 20 == 9 ? INFINITY : NAN;
            expect(&p);
            const bool flat = p.d.in[0] == 1 && p.d.kernel[0] == 1; /* blocks are of images */
            check(&p, lv, flat && i % 2 ? block : 0, flat && i % 4 < 3 ? block : 0,
                  i % 3 ? pool : NULL);
            free_problem(&p);
        }
    }
    sn_pool_free(pool);
}

TEST(sparse_convolutions_are_chosen_where_zeros_are_many)
{
    sn_conv_sparse_case c = {.out = {1, 14, 14},
                             .oc = 256,
                             .ic = 1024,
                             .kernel = {1, 1, 1},
                             .stride = {1, 1, 1},
                             .dilation = {1, 1, 1}};
    const int64_t all = c.oc / 4 * c.ic;
    c.entries = all / 10;
    CHECK(sn_conv_sparse_pays(&c));
    c.entries = all;
    CHECK(!sn_conv_sparse_pays(&c));
    c.entries = all / 10;
    c.tiles = true; /* products in bf16 are faster than that */
    CHECK(!sn_conv_sparse_pays(&c));
    c.tiles = false;
    c.out[1] = -1; /* sizes that are not known: of all that are usual */
    CHECK(sn_conv_sparse_pays(&c));
    c.out[1] = 0;
    CHECK(!sn_conv_sparse_pays(&c));
    c.out[1] = c.out[2] = 1; /* a single pixel fills no vector */
    CHECK(!sn_conv_sparse_pays(&c));
    /* Few channels: what is copied takes longer than what is saved. */
    c = (sn_conv_sparse_case){.out = {1, 56, 56},
                              .oc = 4,
                              .ic = 64,
                              .kernel = {1, 1, 1},
                              .stride = {1, 1, 1},
                              .dilation = {1, 1, 1}};
    CHECK(!sn_conv_sparse_pays(&c));
}

TEST(a_sparse_convolution_that_is_too_large_is_refused)
{
    sonde_error err = {0};
    sn_conv_plan p;
    sn_conv_desc d = {.n = 1,
                      .c = 1 << 20,
                      .oc = 4,
                      .groups = 1,
                      .in = {1, 1 << 20, 1 << 20},
                      .out = {1, 1 << 20, 1 << 20},
                      .kernel = {1, 1, 1},
                      .stride = {1, 1, 1},
                      .dilation = {1, 1, 1},
                      .packed = true,
                      .sparse = SN_SPARSE_PANEL};
    CHECK(sn_conv_plan_make(&p, &d, 0, 1 << 20, 1, &err) == SONDE_LIMIT);
}

TEST_MAIN()
