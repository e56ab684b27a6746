/* SPDX-License-Identifier: Apache-2.0 */
/* Infinities and NaN reach those results that they belong to and no others, whichever way a
 * convolution goes, on every CPU level. */
#include "conv_naive.h"

enum { TILES_BLOCK = SN_ROWS_TILE };

typedef void change_fn(sn_conv_desc *d, const level *lv, int64_t pad_end[3], int i);

/* Random shapes, of which `change` makes the kind that is tested, with few odd numbers or with
 * many. */
static void check_many(int cases, change_fn *change)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++)
        for (int i = 0; i < cases && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.n = test_between(1, 2);
            d.variant = (unsigned)test_between(0, SN_VARIANTS);
            random_window(&d, 1, 12, 4, pad_end);
            random_window(&d, 2, 20, 4, pad_end);
            if (i % 6 == 5) /* a volume */
                random_window(&d, 0, 4, 3, pad_end);
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = true;
            d.in_block = d.out_block = sn_conv_block(lv->flags);
            change(&d, lv, pad_end, i);
            if (!set_out(&d, pad_end) ||
                (d.winograd && (d.dilation[1] > d.out[1] || d.dilation[2] > d.out[2])))
                continue;
            const int64_t w[4] = {d.oc, d.c / d.groups, d.kernel[1], d.kernel[2]};
            if (d.tiles && d.out_block &&
                !sn_conv_tiles_pack_id(d.w_dtype, w, 4, d.groups, d.in_block, d.out_block,
                                       lv->flags))
                continue;
            check_with(&d, lv, test_rand() % 2, i % 2 + 1, i % 2 ? pool : NULL, i % 3 ? 1 : 9);
        }
    sn_pool_free(pool);
}

static void one_group(sn_conv_desc *d, const level *lv, int64_t pad_end[3], int i)
{
    (void)lv, (void)pad_end;
    d->c = test_between(1, 40);
    d->oc = test_between(1, 50);
    d->w_dtype = weight_dtype(test_rand());
    if (i % 4 == 0)
        d->in_block = 0;
}

static void some_groups(sn_conv_desc *d, const level *lv, int64_t pad_end[3], int i)
{
    static const int64_t widths[] = {1, 2, 4, 8, 12, 16, 24, 4, 8};
    (void)lv;
    const int64_t in = widths[test_rand() % 9], out = i % 3 ? in : widths[test_rand() % 9];
    d->groups = test_between(2, 60 / sn_max(in, out) + 3);
    d->c = d->groups * in;
    d->oc = d->groups * out;
    d->w_dtype = weight_dtype(test_rand());
    if (i % 4 == 1)
        for (int a = 1; a < 3; a++) { /* 1×1, where merged groups are fewer products */
            d->kernel[a] = d->stride[a] = d->dilation[a] = 1;
            d->pad[a] = pad_end[a] = 0;
        }
    if (i % 7 == 3) { /* a line */
        d->in[1] = d->kernel[1] = d->stride[1] = 1;
        d->pad[1] = pad_end[1] = 0;
    }
    const int64_t w[5] = {d->oc, in, d->kernel[0], d->kernel[1], d->kernel[2]};
    if (!sn_conv_can_block(w, 5, d->groups, d->out_block, false)) {
        d->in_block = d->out_block = 0;
        d->packed = false;
        d->w_dtype = 0;
    }
}

static void by_winograd(sn_conv_desc *d, const level *lv, int64_t pad_end[3], int i)
{
    const int64_t block = sn_conv_block(lv->flags);
    d->groups = i % 3 ? 1 : 2;
    d->c = d->groups == 1 ? test_between(1, 40) : 2 * block * test_between(1, 2);
    d->oc = d->groups == 1 ? test_between(1, 50) : 2 * block * test_between(1, 3);
    for (int a = 1; a < 3; a++) {
        d->kernel[a] = 3;
        d->stride[a] = 1;
        d->dilation[a] = i % 4 ? 1 : test_between(1, 3);
        d->in[a] = test_between(1, 19);
        d->pad[a] = test_between(0, 2 * d->dilation[a]);
        pad_end[a] = test_between(0, 2 * d->dilation[a]);
    }
    d->w_dtype = weight_dtype(test_rand());
    d->winograd = i % 2 ? 4 : 2;
}

static void plain(sn_conv_desc *d, const level *lv, int64_t pad_end[3], int i)
{
    (void)lv, (void)pad_end;
    d->groups = i % 3 ? 1 : test_between(1, 5);
    d->c = d->groups * test_between(1, 7);
    d->oc = d->groups * test_between(1, 7);
    d->in_block = d->out_block = 0;
    d->packed = false;
}

static void by_tiles(sn_conv_desc *d, const level *lv, int64_t pad_end[3], int i)
{
    static const int64_t widths[] = {16, 32, 8, 4, 24, 2, 8};
    const int64_t width = widths[test_rand() % 7];
    (void)lv;
    d->in[0] = d->kernel[0] = d->stride[0] = d->dilation[0] = 1;
    d->pad[0] = pad_end[0] = 0;
    d->groups = i % 4 ? test_between(2, width < 16 ? 32 / width + 1 : 5) : 1;
    d->c = d->oc = i % 4 ? width * d->groups : test_between(1, 50);
    d->tiles = true;
    d->w_dtype = i % 3 == 0 ? SONDE_DTYPE_F32 : i % 3 == 1 ? SONDE_DTYPE_BF16 : SONDE_DTYPE_F16;
    d->f16 = d->w_dtype == SONDE_DTYPE_F16 && i % 2;
    d->out_block = TILES_BLOCK;
    d->in_block = d->groups == 1 && d->c < TILES_BLOCK ? 0 : TILES_BLOCK;
}

TEST(what_is_not_finite_stays_in_its_window)
{
    check_many(100, one_group);
}
TEST(what_is_not_finite_stays_in_its_group)
{
    check_many(300, some_groups);
}
TEST(what_is_not_finite_stays_in_its_window_by_winograd)
{
    check_many(80, by_winograd);
}
TEST(what_is_not_finite_stays_in_its_window_of_plain_tensors)
{
    check_many(100, plain);
}
TEST(what_is_not_finite_stays_in_its_group_by_tiles)
{
    check_many(40, by_tiles);
}

TEST_MAIN()
