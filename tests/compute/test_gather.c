/* SPDX-License-Identifier: Apache-2.0 */
/* Picking and replacing by index: negative indices, strides, rows of odd sizes, nothing at all. */
#include "compute/gather.h"

#include "compute/scatter.h"
#include "levels.h"

static sn_elems wide(const int64_t *p)
{
    return (sn_elems){SONDE_DTYPE_I64, (void *)(uintptr_t)p};
}
static sn_elems narrow(const int32_t *p)
{
    return (sn_elems){SONDE_DTYPE_I32, (void *)(uintptr_t)p};
}

TEST(rows_of_every_size_are_gathered_alone_and_in_threads)
{
    enum { DIM = 9, PICKED = 700 };
    static uint8_t x[3 * DIM * 250], y[3 * PICKED * 250];
    int64_t index[PICKED];
    int32_t small[PICKED];
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    sonde_error err;
    CHECK_OK(sn_pool_create(&pool, 3, &alloc, &err));
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (uint8_t)test_rand();
    for (int i = 0; i < PICKED; i++)
        small[i] = (int32_t)(index[i] = test_between(-DIM, DIM - 1));
    for (int64_t bytes = 1; bytes <= 250; bytes += bytes < 9 ? 1 : 47)
        for (int kind = 0; kind < 4; kind++) {
            const sn_gather_rows g = {
                .outer = 3, .dim = DIM, .n_index = PICKED, .row_bytes = bytes};
            memset(y, 0, sizeof y);
            sn_gather_rows_run(&g, y, x, kind % 2 ? narrow(small) : wide(index),
                               kind / 2 ? pool : NULL);
            for (int64_t r = 0; r < 3 * PICKED; r++) {
                const int64_t v = index[r % PICKED], row = r / PICKED * DIM + (v < 0 ? v + DIM : v);
                CHECK_MSG(memcmp(y + r * bytes, x + row * bytes, (size_t)bytes) == 0,
                          "row %lld of %lld bytes, kind %d", (long long)r, (long long)bytes, kind);
            }
        }
    sn_pool_free(pool);
}

TEST(indices_outside_are_named_and_never_read_with)
{
    const int64_t index[3] = {0, -4, 2};
    const uint16_t x[3] = {10, 11, 12};
    uint16_t y[3];
    sn_bad_index bad = {0};
    CHECK(!sn_indices_inside(wide(index), 3, 3, &bad));
    CHECK_EQ(bad.index, -4);
    CHECK_EQ(bad.dim, 3);
    CHECK(sn_indices_inside(wide(index), 1, 3, &bad));
    const sn_gather_rows g = {.outer = 1, .dim = 3, .n_index = 3, .row_bytes = 2};
    sn_gather_rows_run(&g, y, x, wide(index), NULL); /* as if it had changed since the look */
    CHECK(y[0] == 10 && y[1] == 10 && y[2] == 12);
    const sn_gather_rows none = {.outer = 0, .dim = 3, .n_index = 3, .row_bytes = 2};
    sn_gather_rows_run(&none, NULL, x, wide(index), NULL);
}

/* Indices [2, 2] into the rows of a [3, 4] tensor. */
static const sn_indexed_axis columns = {
    .elem_bytes = 4, .rank = 2, .dims = {2, 2}, .strides = {0, 1}, .dim = 3, .step = 4, .count = 4};

TEST(an_index_replaces_the_coordinate_of_its_axis)
{
    const int32_t index[4] = {2, -3, 1, -1};
    float x[12], y[4];
    sn_bad_index bad;
    for (int i = 0; i < 12; i++)
        x[i] = (float)i;
    CHECK(sn_gather_elements_run(&columns, y, x, narrow(index), &bad));
    CHECK(y[0] == 8 && y[1] == 1 && y[2] == 4 && y[3] == 9);
    const int32_t outside[4] = {2, 3, 1, 1};
    CHECK(!sn_gather_elements_run(&columns, y, x, narrow(outside), &bad));
    CHECK_EQ(bad.index, 3);
}

static float combined(sn_scatter how, float a, float b)
{
    switch (how) {
    case SN_SCATTER_ADD:
        return a + b;
    case SN_SCATTER_MUL:
        return a * b;
    case SN_SCATTER_MIN:
        return isnan(a) || a < b ? a : b;
    case SN_SCATTER_MAX:
        return isnan(a) || a > b ? a : b;
    default:
        return b;
    }
}

/* Rows of odd widths, several of them for one place, one with a NaN. */
static void scatter_rows(sn_scatter how, int64_t width, const level *l)
{
    enum { ROWS = 5, UPDATES = 9, MOST = 70 };
    static const int64_t index[UPDATES] = {4, 0, -1, 2, 2, 2, 0, -5, 1};
    float x[ROWS * MOST], y[ROWS * MOST], want[ROWS * MOST], updates[UPDATES * MOST];
    sn_bad_index bad;
    for (int64_t i = 0; i < ROWS * width; i++)
        want[i] = x[i] = test_randf();
    for (int64_t i = 0; i < UPDATES * width; i++)
        updates[i] = test_randf();
    updates[3 * width + width / 2] = NAN;
    for (int64_t i = 0; i < UPDATES * width; i++) {
        const int64_t row = index[i / width] + (index[i / width] < 0 ? ROWS : 0);
        float *to = &want[row * width + i % width];
        *to = combined(how, *to, updates[i]);
    }
    const sn_indexed_rows g = {.tuples = UPDATES,
                               .per_batch = UPDATES,
                               .depth = 1,
                               .dims = {ROWS},
                               .strides = {width},
                               .row = width,
                               .elem_bytes = sizeof(float)};
    const sn_scatter_data d = {.how = how,
                               .dtype = SONDE_DTYPE_F32,
                               .count = ROWS * width,
                               .y = y,
                               .x = x,
                               .updates = updates,
                               .index = wide(index),
                               .cpu_flags = l->flags};
    CHECK(sn_scatter_nd_run(&g, &d, &bad, NULL));
    for (int64_t i = 0; i < ROWS * width; i++)
        CHECK_MSG(y[i] == want[i] || (isnan(y[i]) && isnan(want[i])),
                  "%s, how %d, width %lld: element %lld is %g, not %g", l->name, (int)how,
                  (long long)width, (long long)i, (double)y[i], (double)want[i]);
}

TEST(rows_are_combined_in_order_at_every_level)
{
    for (const level *l = levels(); l->name; l++)
        for (int how = 0; how < SN_SCATTER_COUNT; how++)
            for (int64_t width = 1; width <= 70; width += 1 + width / 4)
                scatter_rows((sn_scatter)how, width, l);
}

TEST(updates_are_combined_in_order)
{
    static const struct {
        sn_scatter how;
        float want; /* of old 2, updates 3 and 0.5 */
    } rows[] = {{SN_SCATTER_REPLACE, 0.5f},
                {SN_SCATTER_ADD, 5.5f},
                {SN_SCATTER_MUL, 3.0f},
                {SN_SCATTER_MIN, 0.5f},
                {SN_SCATTER_MAX, 3.0f}};
    const int64_t index[4] = {0, 1, -3, 1}; /* the first column is hit twice */
    const float x[12] = {2, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}, updates[4] = {3, 1, 0.5f, 1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float y[12] = {0};
        sn_bad_index bad;
        const sn_scatter_data d = {.how = rows[i].how,
                                   .dtype = SONDE_DTYPE_F32,
                                   .count = 12,
                                   .y = y,
                                   .x = x,
                                   .updates = updates,
                                   .index = wide(index)};
        CHECK(sn_scatter_elements_run(&columns, &d, &bad, NULL));
        CHECK_MSG(y[0] == rows[i].want, "how %d: %g", (int)rows[i].how, (double)y[0]);
        CHECK(y[11] == 7);
    }
    CHECK(sn_scatter_supported(SN_SCATTER_REPLACE, SONDE_DTYPE_STRING));
    CHECK(!sn_scatter_supported(SN_SCATTER_ADD, SONDE_DTYPE_STRING));
    CHECK(sn_scatter_supported(SN_SCATTER_MAX, SONDE_DTYPE_BF16));
}

TEST(a_bad_index_leaves_the_result_alone)
{
    const int64_t index[4] = {0, 1, 2, 3};
    const float x[12] = {0}, updates[4] = {1, 1, 1, 1};
    float y[12] = {5};
    sn_bad_index bad;
    const sn_scatter_data d = {.dtype = SONDE_DTYPE_F32,
                               .count = 12,
                               .y = y,
                               .x = x,
                               .updates = updates,
                               .index = wide(index)};
    CHECK(!sn_scatter_elements_run(&columns, &d, &bad, NULL));
    CHECK_EQ(bad.index, 3);
    CHECK(y[0] == 5);
}

/* Tuples of 2 into [2 batches][3][2] rows of 5. */
static const sn_indexed_rows tuples = {.elem_bytes = 2,
                                       .depth = 2,
                                       .dims = {3, 2},
                                       .strides = {10, 5},
                                       .tuples = 4,
                                       .per_batch = 2,
                                       .batch_elems = 30,
                                       .row = 5};

TEST(tuples_name_rows_of_their_batch)
{
    const int64_t index[8] = {0, 1, -1, 0, 2, -1, 1, 0};
    const int64_t want[4] = {5, 20, 30 + 25, 30 + 10};
    uint16_t x[60], y[20];
    sn_bad_index bad;
    for (int i = 0; i < 60; i++)
        x[i] = (uint16_t)i;
    CHECK(sn_gather_nd_run(&tuples, y, x, wide(index), &bad));
    for (int t = 0; t < 4; t++)
        CHECK_MSG(memcmp(y + 5 * t, x + want[t], 10) == 0, "tuple %d", t);
    const int64_t outside[8] = {0, 1, -1, 2};
    CHECK(!sn_gather_nd_run(&tuples, y, x, wide(outside), &bad));
    CHECK(bad.index == 2 && bad.dim == 2);
}

TEST(rows_named_by_tuples_are_replaced_in_place)
{
    sn_indexed_rows g = tuples;
    const int64_t index[4] = {2, 1, 0, 0};
    const uint16_t updates[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    uint16_t y[30] = {0};
    sn_bad_index bad;
    g.tuples = g.per_batch = 2;
    const sn_scatter_data d = {.dtype = SONDE_DTYPE_U16,
                               .count = 30,
                               .y = y,
                               .x = y,
                               .updates = updates,
                               .index = wide(index)};
    CHECK(sn_scatter_nd_run(&g, &d, &bad, NULL));
    CHECK(memcmp(y + 25, updates, 10) == 0 && memcmp(y, updates + 5, 10) == 0);
    CHECK(y[10] == 0);
}

TEST(positions_go_round_the_end_of_a_row)
{
    const sn_scatter_positions p = {
        .batches = 2, .rows_per_batch = 1, .max = 4, .len = 3, .position_bytes = 1};
    const uint8_t updates[6] = {1, 2, 3, 4, 5, 6};
    const int64_t first[2] = {2, 0};
    uint8_t y[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    sn_scatter_positions_run(&p, y, updates, first);
    const uint8_t want[8] = {3, 9, 1, 2, 4, 5, 6, 9};
    CHECK(memcmp(y, want, 8) == 0);
    sn_scatter_positions_run(&p, y, updates, NULL);
    CHECK(y[0] == 1 && y[1] == 2 && y[2] == 3 && y[3] == 2);
}

TEST_MAIN()
