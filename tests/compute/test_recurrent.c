/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers: what kernels of whole steps give, with packed and plain weights, against the
 * product and the passes over the gates that other cells take. tests/ops/test_recurrent.c has the
 * equations. */
#include <math.h>

#include "compute/recurrent.h"
#include "levels.h"
#include "packed.h"

typedef struct outputs {
    float *y, *yh, *yc;
    size_t n_y, n_state;
} outputs;

typedef struct inputs {
    float *x, *w, *r, *b, *h0, *c0;
    int32_t *lens; /* NULL: none */
} inputs;

static outputs run(const sn_recurrent_desc *given, const inputs *in, bool packed, bool with_y,
                   uint32_t flags, int threads, sn_pool *pool)
{
    sn_recurrent_desc d = *given;
    sn_recurrent_plan p;
    sonde_error err;
    const int64_t gates = sn_cell_gates(d.cell), wide = gates * d.hidden;
    outputs out = {.n_y = (size_t)(d.seq * d.dirs * d.batch * d.hidden),
                   .n_state = (size_t)(d.dirs * d.batch * d.hidden)};
    out.y = with_y ? random_floats(out.n_y) : NULL;
    out.yh = random_floats(out.n_state);
    out.yc = calloc(out.n_state + 1, sizeof(float));
    const unsigned format = sn_gemm_pack_id(SONDE_DTYPE_F32, flags);
    const int64_t w_dims[3] = {d.dirs, wide, d.input}, r_dims[3] = {d.dirs, wide, d.hidden};
    float *w = packed ? packed_weights(format, in->w, w_dims, 3, 1, flags) : NULL,
          *r = packed ? packed_weights(format, in->r, r_dims, 3, gates, flags) : NULL;
    d.w_packed = d.r_packed = packed;
    test_errors += sn_recurrent_plan_make(&p, &d, flags, 1 << 20, threads, &err) != SONDE_OK;
    void *space = aligned_alloc(64, sn_round_up(p.workspace.bytes + 64, 64));
    const sn_recurrent_call c = {.x = in->x,
                                 .w = packed ? w : in->w,
                                 .r = packed ? r : in->r,
                                 .b = in->b,
                                 .h0 = in->h0,
                                 .c0 = in->c0,
                                 .lens = in->lens,
                                 .y = out.y,
                                 .yh = out.yh,
                                 .yc = d.cell == SN_CELL_LSTM ? out.yc : NULL};
    test_errors += !sn_recurrent_run(&p, &c, space, pool);
    free(space), free(w), free(r);
    return out;
}

static void same(const char *what, const level *l, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; a && b && i < n && !test_errors; i++)
        CHECK_MSG(fabsf(a[i] - b[i]) < 2e-5f, "%s, %s: element %zu is %g, not %g", l->name, what, i,
                  (double)a[i], (double)b[i]);
}

static void compare(const sn_recurrent_desc *d, const level *l, int k, sn_pool *pool)
{
    const size_t wide = (size_t)(sn_cell_gates(d->cell) * d->hidden), dirs = (size_t)d->dirs,
                 state = dirs * (size_t)(d->batch * d->hidden);
    inputs in = {.x = random_floats((size_t)(d->seq * d->batch * d->input)),
                 .w = random_floats(dirs * wide * (size_t)d->input),
                 .r = random_floats(dirs * wide * (size_t)d->hidden),
                 .b = k % 3 ? random_floats(dirs * 2 * wide) : NULL,
                 .h0 = k % 4 ? random_floats(state) : NULL,
                 .c0 = k % 4 && d->cell == SN_CELL_LSTM ? random_floats(state) : NULL,
                 .lens = k % 5 == 1 ? calloc((size_t)d->batch, sizeof(int32_t)) : NULL};
    const int32_t length = (int32_t)test_between(0, d->seq); /* the same for all rows */
    for (int64_t b = 0; in.lens && b < d->batch; b++)
        in.lens[b] = length;
    sn_recurrent_desc parts = *d;
    parts.clip = 1e30f; /* a cell that no kernel has */
    const bool many = k % 2;
    const outputs want = run(&parts, &in, k % 3 == 1, true, l->flags, 1, NULL),
                  got = run(d, &in, k % 3 != 2, k % 7 != 3, l->flags, many ? 3 : 1,
                            many ? pool : NULL);
    same("Y", l, got.y, want.y, want.n_y);
    same("Y_h", l, got.yh, want.yh, want.n_state);
    same("Y_c", l, got.yc, want.yc, want.n_state);
    free(in.x), free(in.w), free(in.r), free(in.b), free(in.h0), free(in.c0), free(in.lens);
    free(got.y), free(got.yh), free(got.yc), free(want.y), free(want.yh), free(want.yc);
}

TEST(a_kernel_of_whole_steps_gives_what_its_parts_give)
{
    static const int64_t hidden[] = {1, 7, 16, 17, 24, 40, 64, 100};
    sn_allocator alloc;
    sn_pool *pool;
    sn_allocator_init_system(&alloc);
    CHECK_EQ(sn_pool_create(&pool, 3, &alloc, NULL), SONDE_OK);
    for (const level *l = levels(); l->name; l++)
        for (int k = 0; k < 48 && !test_errors; k++) {
            sn_recurrent_desc d = {.cell = k % 2 ? SN_CELL_LSTM : SN_CELL_GRU,
                                   .seq = test_between(1, 9),
                                   .batch = k % 3 ? 1 : test_between(2, 7),
                                   .input = test_between(1, 40),
                                   .hidden = hidden[k % 8],
                                   .dirs = 1 + k / 8 % 2,
                                   .reverse = k % 6 == 5,
                                   .batch_first = k % 9 > 5,
                                   .linear_before_reset = k % 4 != 2,
                                   .clip = INFINITY};
            for (int i = 0; i < 2 * SN_CELL_MAX_ACTS; i++)
                d.act[i / 3][i % 3].kind = i % 3 ? SN_GATE_TANH : SN_GATE_SIGMOID;
            compare(&d, l, k, pool);
        }
    sn_pool_free(pool);
}

TEST(two_directions_of_a_long_layer_run_on_two_threads)
{
    sn_allocator alloc;
    sn_pool *pool;
    sn_allocator_init_system(&alloc);
    CHECK_EQ(sn_pool_create(&pool, 3, &alloc, NULL), SONDE_OK);
    sn_recurrent_desc d = {.cell = SN_CELL_LSTM,
                           .seq = 60,
                           .batch = 2,
                           .input = 5,
                           .hidden = 40,
                           .dirs = 2,
                           .clip = INFINITY};
    for (int i = 0; i < 2 * SN_CELL_MAX_ACTS; i++)
        d.act[i / 3][i % 3].kind = i % 3 ? SN_GATE_TANH : SN_GATE_SIGMOID;
    sn_recurrent_plan p;
    sonde_error err;
    CHECK_EQ(sn_recurrent_plan_make(&p, &d, levels()->flags, 1 << 20, 3, &err), SONDE_OK);
    CHECK(p.at_once);
    for (int k = 1; k < 10; k += 2)
        compare(&d, levels(), k, pool);
    sn_pool_free(pool);
}

TEST_MAIN()
