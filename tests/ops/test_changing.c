/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that somebody else changes while an operator reads them: between counting and writing lies
 * an allocation, and at each of those, in turn, the data becomes something else. Results may be
 * anything, memory is not left. */
#include "ops/op_test.h"

enum { GUARD = 64, ROUNDS = 12 };

static struct {
    int until; /* allocations before the change; negative: it has happened */
    void *data;
    size_t bytes;
    const void *other;
    int broken; /* blocks that were written past their end */
    void *mine[256];
    int n_mine;
} change;

static void *alloc_and_change(sn_allocator *self, size_t bytes)
{
    (void)self;
    if (change.until-- == 0)
        memcpy(change.data, change.other, change.bytes);
    uint8_t *p = aligned_alloc(SN_ALIGN, sn_round_up(bytes, SN_ALIGN) + GUARD);
    if (p && change.n_mine < 256) {
        memset(p + bytes, 0xA5, sn_round_up(bytes, SN_ALIGN) + GUARD - bytes);
        change.mine[change.n_mine++] = p;
    }
    return p;
}

static void free_and_look(sn_allocator *self, void *ptr, size_t bytes)
{
    (void)self;
    for (int k = 0; k < change.n_mine; k++) {
        if (change.mine[k] != ptr)
            continue;
        for (size_t i = bytes; i < sn_round_up(bytes, SN_ALIGN) + GUARD; i++)
            change.broken += ((uint8_t *)ptr)[i] != 0xA5;
        change.mine[k] = change.mine[--change.n_mine];
        break;
    }
    free(ptr);
}

/* From here on allocations count; after `until` of them input i holds `other`. */
static void change_after(int until, uint32_t i, const void *other)
{
    change.until = until;
    change.data = op.in[i].t.data;
    change.bytes = op.in[i].t.bytes;
    change.other = other;
}

static void begin(const char *type, int opset)
{
    op_begin(type, opset);
    op.alloc.alloc = alloc_and_change;
    op.alloc.free = free_and_look;
    change.until = -1;
    change.broken = change.n_mine = 0;
}

#define CHECK_KEPT_INSIDE()                                                                        \
    do {                                                                                           \
        op_end();                                                                                  \
        CHECK_MSG(change.broken == 0, "%s wrote past its output", op.type);                        \
    } while (0)

TEST(non_zero_of_a_changing_input_stays_inside_what_it_counted)
{
    static const float none[64] = {1},
                       all[64] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (int k = 0; k < ROUNDS; k++)
        for (int more = 0; more < 2; more++) {
            begin("NonZero", 13);
            memcpy(op_input(SONDE_DTYPE_F32, "8 8"), more ? none : all, sizeof all);
            change_after(k, 0, more ? all : none);
            CHECK_OK(op_run(1));
            const int64_t n = op.out[0].t.dims[1], *at = op_out(0);
            CHECK(n == 1 || n == 64);
            for (int64_t i = 0; i < 2 * n; i++)
                CHECK(at[i] >= 0 && at[i] < 8);
            CHECK_KEPT_INSIDE();
        }
}

TEST(compress_with_a_changing_condition_stays_inside_what_it_counted)
{
    static const uint8_t one[32] = {1}, all[32] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                                   1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (int k = 0; k < ROUNDS; k++)
        for (int more = 0; more < 2; more++)
            for (int axis = 0; axis < 3; axis++) { /* 2: none */
                begin("Compress", 11);
                float *x = op_input(SONDE_DTYPE_F32, axis == 1 ? "2 32" : "32 2");
                for (int i = 0; i < 64; i++)
                    x[i] = 5;
                memcpy(op_input(SONDE_DTYPE_BOOL, "32"), more ? one : all, sizeof all);
                if (axis < 2)
                    op_int("axis", axis);
                change_after(k, 1, more ? all : one);
                CHECK_OK(op_run(1));
                for (int64_t i = 0; i < sn_tensor_count(&op.out[0].t); i++)
                    CHECK(((const float *)op_out(0))[i] == 5);
                CHECK_KEPT_INSIDE();
            }
}

TEST(unique_of_a_changing_input_stays_inside_what_it_counted)
{
    static const float same[40] = {0},
                       different[40] = {9,  1,  8,  2,  7,  3,  6,  4,  5,  0,  11, 19, 12, 18, 13,
                                        17, 14, 16, 15, 10, 29, 21, 28, 22, 27, 23, 26, 24, 25, 20};
    for (int k = 0; k < ROUNDS; k++)
        for (int more = 0; more < 2; more++)
            for (int sorted = 0; sorted < 2; sorted++) {
                begin("Unique", 11);
                memcpy(op_input(SONDE_DTYPE_F32, "40"), more ? same : different, sizeof same);
                op_int("sorted", sorted);
                change_after(k, 0, more ? different : same);
                CHECK_OK(op_run(4));
                CHECK_KEPT_INSIDE();
            }
}

TEST(boxes_and_scores_that_change_keep_their_numbers_inside)
{
    static const float low[16], high[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    for (int k = 0; k < ROUNDS; k++)
        for (int more = 0; more < 2; more++) {
            begin("NonMaxSuppression", 11);
            op_input(SONDE_DTYPE_F32, "1 16 4");
            memset(op.in[0].t.data, 0, op.in[0].t.bytes);
            memcpy(op_input(SONDE_DTYPE_F32, "1 1 16"), more ? low : high, sizeof low);
            op_i64("1", 16);
            op_f32("1", 0.5f);
            op_f32("1", 0.5f);
            change_after(k, 1, more ? high : low);
            CHECK_OK(op_run(1));
            const int64_t n = op.out[0].t.dims[0], *found = op_out(0);
            CHECK(n <= 16);
            for (int64_t i = 0; i < n; i++)
                CHECK(found[3 * i + 2] >= 0 && found[3 * i + 2] < 16);
            CHECK_KEPT_INSIDE();
        }
}

TEST_MAIN()
