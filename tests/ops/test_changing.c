/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that somebody else changes while an operator reads them: between counting and writing lies
 * an allocation, and at each of those, in turn, the data becomes something else. Results may be
 * anything, memory is not left. */
#include "ops/one_node.h"

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
static void change_after(one_node *c, int until, uint32_t i, const void *other)
{
    change.until = until;
    change.data = c->in[i].t.data;
    change.bytes = c->in[i].t.bytes;
    change.other = other;
}

static void begin(one_node *c, const char *type, int opset, uint32_t n_in, uint32_t n_out)
{
    node_begin(c, type, opset, n_in, n_out);
    c->alloc.alloc = alloc_and_change;
    c->alloc.free = free_and_look;
    change.until = -1;
    change.broken = change.n_mine = 0;
}

/* Ends the test of `type`. */
#define CHECK_KEPT_INSIDE(c, type)                                                                 \
    do {                                                                                           \
        node_end(c);                                                                               \
        CHECK_MSG(change.broken == 0, "%s wrote past its output", type);                           \
    } while (0)

TEST(non_zero_of_a_changing_input_stays_inside_what_it_counted)
{
    one_node c;
    static const float none[64] = {1},
                       all[64] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (int k = 0; k < ROUNDS; k++)
        for (int more = 0; more < 2; more++) {
            begin(&c, "NonZero", 13, 1, 1);
            memcpy(node_room(&c, 0, SONDE_DTYPE_F32, SHAPE(8, 8)), more ? none : all, sizeof all);
            change_after(&c, k, 0, more ? all : none);
            NODE_CHECK(&c, node_run(&c));
            const int64_t n = c.out[0].t.dims[1], *at = c.out[0].t.data;
            CHECK(n == 1 || n == 64);
            for (int64_t i = 0; i < 2 * n; i++)
                CHECK(at[i] >= 0 && at[i] < 8);
            CHECK_KEPT_INSIDE(&c, "NonZero");
        }
}

TEST(compress_with_a_changing_condition_stays_inside_what_it_counted)
{
    static const int64_t wide[2] = {2, 32}, high[2] = {32, 2};
    one_node c;
    static const uint8_t one[32] = {1}, all[32] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                                   1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (int k = 0; k < ROUNDS; k++)
        for (int more = 0; more < 2; more++)
            for (int axis = 0; axis < 3; axis++) { /* 2: none */
                begin(&c, "Compress", 11, 2, 1);
                float *x = node_room(&c, 0, SONDE_DTYPE_F32, 2, axis == 1 ? wide : high);
                for (int i = 0; i < 64; i++)
                    x[i] = 5;
                memcpy(node_room(&c, 1, SONDE_DTYPE_BOOL, SHAPE(32)), more ? one : all, sizeof all);
                if (axis < 2)
                    node_int(&c, "axis", axis);
                change_after(&c, k, 1, more ? all : one);
                NODE_CHECK(&c, node_run(&c));
                for (int64_t i = 0; i < sn_tensor_count(&c.out[0].t); i++)
                    CHECK(((const float *)c.out[0].t.data)[i] == 5);
                CHECK_KEPT_INSIDE(&c, "Compress");
            }
}

TEST(unique_of_a_changing_input_stays_inside_what_it_counted)
{
    one_node c;
    static const float same[40] = {0},
                       different[40] = {9,  1,  8,  2,  7,  3,  6,  4,  5,  0,  11, 19, 12, 18, 13,
                                        17, 14, 16, 15, 10, 29, 21, 28, 22, 27, 23, 26, 24, 25, 20};
    for (int k = 0; k < ROUNDS; k++)
        for (int more = 0; more < 2; more++)
            for (int sorted = 0; sorted < 2; sorted++) {
                begin(&c, "Unique", 11, 1, 4);
                memcpy(node_room(&c, 0, SONDE_DTYPE_F32, SHAPE(40)), more ? same : different,
                       sizeof same);
                node_int(&c, "sorted", sorted);
                change_after(&c, k, 0, more ? different : same);
                NODE_CHECK(&c, node_run(&c));
                CHECK_KEPT_INSIDE(&c, "Unique");
            }
}

TEST(boxes_and_scores_that_change_keep_their_numbers_inside)
{
    one_node c;
    static const float low[16], high[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    for (int k = 0; k < ROUNDS; k++)
        for (int more = 0; more < 2; more++) {
            begin(&c, "NonMaxSuppression", 11, 5, 1);
            node_room(&c, 0, SONDE_DTYPE_F32, SHAPE(1, 16, 4));
            memset(c.in[0].t.data, 0, c.in[0].t.bytes);
            memcpy(node_room(&c, 1, SONDE_DTYPE_F32, SHAPE(1, 1, 16)), more ? low : high,
                   sizeof low);
            node_i64(&c, 2, SHAPE(1), 16);
            node_f32(&c, 3, SHAPE(1), 0.5f);
            node_f32(&c, 4, SHAPE(1), 0.5f);
            change_after(&c, k, 1, more ? high : low);
            NODE_CHECK(&c, node_run(&c));
            const int64_t n = c.out[0].t.dims[0], *found = c.out[0].t.data;
            CHECK(n <= 16);
            for (int64_t i = 0; i < n; i++)
                CHECK(found[3 * i + 2] >= 0 && found[3 * i + 2] < 16);
            CHECK_KEPT_INSIDE(&c, "NonMaxSuppression");
        }
}

TEST_MAIN()
