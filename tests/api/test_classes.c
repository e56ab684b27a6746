/* SPDX-License-Identifier: Apache-2.0 */
/* Where the scores of classes lie in an output. */
#include "sonde/experimental/compare.h"
#include "sonde/sonde.h"
#include "test.h"

static sonde_classes classes_of(sonde_dtype dtype, size_t rank, const int64_t *dims, int64_t *rows,
                                int64_t *classes)
{
    static const char zeros[4096];
    sonde_error err;
    sonde_value *v = NULL;
    size_t bytes = sonde_dtype_bytes(dtype);
    for (size_t k = 0; k < rank; k++)
        bytes *= (size_t)dims[k];
    if (bytes > sizeof zeros ||
        sonde_tensor_create(NULL, dtype, dims, rank, bytes ? zeros : NULL, bytes, &v, &err))
        return (sonde_classes)-1;
    const sonde_classes form = sonde_value_classes(v, rows, classes);
    sonde_value_release(v);
    return form;
}

TEST(classes_lie_in_the_one_axis_that_is_wide)
{
    static const struct {
        size_t rank;
        int64_t dims[5];
        sonde_classes form;
        int64_t rows, classes;
    } cases[] = {
        {1, {5}, SONDE_CLASSES_SAMPLES, 1, 5},
        {2, {1, 5}, SONDE_CLASSES_SAMPLES, 1, 5},
        {2, {3, 5}, SONDE_CLASSES_SAMPLES, 3, 5},
        {3, {3, 5, 1}, SONDE_CLASSES_SAMPLES, 3, 5},
        {3, {3, 1, 5}, SONDE_CLASSES_SAMPLES, 3, 5},
        {4, {3, 5, 1, 1}, SONDE_CLASSES_SAMPLES, 3, 5},
        {4, {3, 1, 1, 5}, SONDE_CLASSES_SAMPLES, 3, 5},
        {5, {2, 1, 1, 5, 1}, SONDE_CLASSES_SAMPLES, 2, 5},
        {3, {2, 3, 5}, SONDE_CLASSES_POSITIONS, 6, 5},
        {4, {1, 21, 4, 4}, SONDE_CLASSES_NONE, 0, 0},
        {2, {5, 1}, SONDE_CLASSES_NONE, 0, 0},
        {1, {1}, SONDE_CLASSES_NONE, 0, 0},
        {0, {0}, SONDE_CLASSES_NONE, 0, 0},
        {2, {0, 5}, SONDE_CLASSES_NONE, 0, 0},
        {2, {5, 0}, SONDE_CLASSES_NONE, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t rows = -1, classes = -1;
        const sonde_classes form =
            classes_of(SONDE_DTYPE_F32, cases[i].rank, cases[i].dims, &rows, &classes);
        CHECK_MSG(form == cases[i].form && rows == cases[i].rows && classes == cases[i].classes,
                  "case %zu: form %d, %lld rows of %lld classes", i, (int)form, (long long)rows,
                  (long long)classes);
    }
}

TEST(scores_are_floats_or_rows_of_integers)
{
    const int64_t row[2] = {1, 7};
    CHECK_EQ(classes_of(SONDE_DTYPE_F16, 2, row, NULL, NULL), SONDE_CLASSES_SAMPLES);
    CHECK_EQ(classes_of(SONDE_DTYPE_U8, 2, row, NULL, NULL), SONDE_CLASSES_SAMPLES);
    CHECK_EQ(classes_of(SONDE_DTYPE_I64, 1, &row[1], NULL, NULL), SONDE_CLASSES_NONE);
    CHECK_EQ(classes_of(SONDE_DTYPE_BOOL, 2, row, NULL, NULL), SONDE_CLASSES_NONE);
    CHECK_EQ(sonde_value_classes(NULL, NULL, NULL), SONDE_CLASSES_NONE);
}

TEST_MAIN()
