/* SPDX-License-Identifier: Apache-2.0 */
/* Losses against the formula of each label. */
#include "compute/loss.h"

#include "levels.h"

enum { OUTER = 3, CLASSES = 4, INNER = 5, N = OUTER * INNER };

static const sn_elems absent = {SONDE_DTYPE_UNDEFINED, NULL};

TEST(every_reduction_with_and_without_softmax_and_weights)
{
    for (int trial = 0; trial < 24; trial++) {
        const sn_loss l = {.reduction = (sn_loss_reduction)(trial % 3),
                           .softmax = trial / 3 % 2,
                           .ignores = trial / 6 % 2,
                           .ignored = 2,
                           .outer = OUTER,
                           .classes = CLASSES,
                           .inner = INNER};
        const bool weighted = trial / 12;
        double x[OUTER * CLASSES * INNER], y[N], logs[OUTER * CLASSES * INNER], w[CLASSES], each[N],
            sum = 0, total = 0;
        int32_t labels[N];
        int64_t bad;
        for (int i = 0; i < OUTER * CLASSES * INNER; i++)
            x[i] = (double)test_randf();
        for (int i = 0; i < CLASSES; i++)
            w[i] = 0.5 + i;
        for (int i = 0; i < N; i++)
            labels[i] = (int32_t)test_between(0, CLASSES - 1);
        CHECK(sn_loss_run(&l, (sn_elems){SONDE_DTYPE_F64, y}, (sn_elems){SONDE_DTYPE_F64, logs},
                          (sn_elems){SONDE_DTYPE_F64, x}, (sn_elems){SONDE_DTYPE_I32, labels},
                          weighted ? (sn_elems){SONDE_DTYPE_F64, w} : absent, &bad));
        for (int i = 0; i < N; i++) {
            const double *at = x + i / INNER * CLASSES * INNER + i % INNER;
            double norm = 0;
            for (int k = 0; k < CLASSES; k++)
                norm += exp(at[k * INNER]);
            norm = l.softmax ? log(norm) : 0;
            const double weight = l.ignores && labels[i] == 2 ? 0.0 : weighted ? w[labels[i]] : 1.0;
            each[i] = weight * (norm - at[labels[i] * INNER]);
            sum += each[i];
            total += weight;
            CHECK(fabs(logs[at - x] - (at[0] - norm)) < 1e-12);
            if (l.reduction == SN_LOSS_EACH)
                CHECK_MSG(fabs(y[i] - each[i]) < 1e-12, "trial %d, label %d", trial, i);
        }
        if (l.reduction != SN_LOSS_EACH)
            CHECK_MSG(fabs(y[0] - (l.reduction == SN_LOSS_SUM ? sum : sum / total)) < 1e-12,
                      "trial %d", trial);
    }
}

TEST(a_label_that_is_no_class_is_named)
{
    const sn_loss l = {.outer = 2, .classes = 3, .inner = 1};
    const float x[6] = {0};
    const int64_t labels[2] = {1, -3};
    int64_t bad = 0;
    CHECK(!sn_loss_run(&l, absent, absent, (sn_elems){SONDE_DTYPE_F32, (void *)(uintptr_t)x},
                       (sn_elems){SONDE_DTYPE_I64, (void *)(uintptr_t)labels}, absent, &bad));
    CHECK_EQ(bad, -3);
}

TEST(the_mean_of_nothing_is_nan)
{
    const sn_loss l = {.reduction = SN_LOSS_MEAN, .outer = 0, .classes = 3, .inner = 1};
    float y = 0;
    int64_t bad;
    CHECK(sn_loss_run(&l, (sn_elems){SONDE_DTYPE_F32, &y}, absent, absent, absent, absent, &bad));
    CHECK(isnan(y));
}

TEST_MAIN()
