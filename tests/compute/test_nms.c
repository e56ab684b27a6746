/* SPDX-License-Identifier: Apache-2.0 */
/* Which boxes stay: order of scores, overlaps, thresholds, limits. */
#include "compute/nms.h"

#include "test.h"

TEST(the_best_box_of_each_heap_stays)
{
    /* Two heaps of boxes, corners in either order; the last box lies alone. */
    const float boxes[6][4] = {{0, 0, 1, 1},   {1, 1.1f, 0, 0.1f},   {0, -0.1f, 1, 0.9f},
                               {0, 10, 1, 11}, {0, 10.1f, 1, 11.1f}, {0, 100, 1, 101}};
    const float scores[6] = {0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f};
    sn_ranked items[6];
    sn_nms p = {.limit = 10, .overlap = 0.5f};
    CHECK_EQ(sn_nms_select(&p, boxes[0], scores, 6, items), 3);
    CHECK(items[0].index == 3 && items[1].index == 0 && items[2].index == 5);
    p.limit = 2;
    CHECK_EQ(sn_nms_select(&p, boxes[0], scores, 6, items), 2);
    p.limit = 10;
    p.has_score = true;
    p.score = 0.3f; /* not above itself */
    CHECK_EQ(sn_nms_select(&p, boxes[0], scores, 6, items), 2);
    p.overlap = 1.0f; /* nothing overlaps by more than all of it */
    CHECK_EQ(sn_nms_select(&p, boxes[0], scores, 6, items), 5);
    CHECK_EQ(sn_nms_select(&p, NULL, NULL, 0, items), 0);
}

TEST(centres_and_sizes_are_the_same_boxes)
{
    const float boxes[3][4] = {{0.5f, 0.5f, 1, 1}, {0.6f, 0.5f, 1, 1}, {5.5f, 0.5f, 1, 1}};
    const float scores[3] = {0.5f, 0.5f, 0.5f}; /* of equal scores the first counts */
    sn_ranked items[3];
    const sn_nms p = {.center = true, .limit = 3, .overlap = 0.5f};
    CHECK_EQ(sn_nms_select(&p, boxes[0], scores, 3, items), 2);
    CHECK(items[0].index == 0 && items[1].index == 2);
}

TEST(sorting_is_best_first_and_stable)
{
    for (int64_t n = 0; n < 40; n++) {
        sn_ranked items[40];
        for (int64_t i = 0; i < n; i++)
            items[i] = (sn_ranked){test_rand() % 7, i};
        sn_ranked_sort(items, n);
        for (int64_t i = 1; i < n; i++)
            CHECK(sn_ranked_worse(&items[i], &items[i - 1]));
    }
}

TEST_MAIN()
