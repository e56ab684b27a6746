/* SPDX-License-Identifier: Apache-2.0 */
/* Progressions, diagonals, windows and mel banks: every type, edges, small sizes. */
#include "compute/generate.h"

#include "compute/element.h"
#include "compute/signal_tables.h"
#include "levels.h"

TEST(progressions_in_every_type)
{
    static const sonde_dtype types[] = {SONDE_DTYPE_I64, SONDE_DTYPE_I32,  SONDE_DTYPE_I16,
                                        SONDE_DTYPE_F32, SONDE_DTYPE_F64,  SONDE_DTYPE_F16,
                                        SONDE_DTYPE_U8,  SONDE_DTYPE_BF16, SONDE_DTYPE_I8};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        _Alignas(8) uint8_t start[8], delta[8], y[20 * 8];
        sn_elem_set_f64(types[t], start, 0, 3.0);
        sn_elem_set_f64(types[t], delta, 0, 2.0);
        sn_range_run(types[t], y, 20, start, delta);
        for (int i = 0; i < 20; i++)
            CHECK_MSG(sn_elem_f64(types[t], y, i) == 3.0 + 2.0 * i, "type %d, element %d",
                      (int)types[t], i);
        sn_range_run(types[t], NULL, 0, start, delta);
    }
    int32_t wraps[2];
    sn_range_run(SONDE_DTYPE_I32, wraps, 2, &(int32_t){INT32_MAX}, &(int32_t){1});
    CHECK(wraps[0] == INT32_MAX && wraps[1] == INT32_MIN);
}

TEST(diagonals_stay_inside_the_matrix)
{
    for (int64_t rows = 1; rows <= 4; rows++)
        for (int64_t columns = 1; columns <= 4; columns++)
            for (int64_t k = -6; k <= 6; k++) {
                float y[16];
                sn_eye_run(SONDE_DTYPE_F32, y, rows, columns, k);
                for (int64_t i = 0; i < rows * columns; i++)
                    CHECK_MSG(y[i] == (i % columns - i / columns == k ? 1.0f : 0.0f),
                              "%lld×%lld, diagonal %lld", (long long)rows, (long long)columns,
                              (long long)k);
            }
    double y[2];
    sn_eye_run(SONDE_DTYPE_F64, y, 1, 2, INT64_MIN);
    CHECK(y[0] == 0 && y[1] == 0);
    sn_eye_run(SONDE_DTYPE_F64, y, 1, 2, INT64_MAX);
    CHECK(y[0] == 0 && y[1] == 0);
}

TEST(symmetric_windows_are_symmetric_and_periodic_ones_one_longer)
{
    for (int kind = SN_WINDOW_HANN; kind <= SN_WINDOW_BLACKMAN; kind++) {
        double long_one[9], y[8];
        sn_window_run((sn_window_kind)kind, false, SONDE_DTYPE_F64, long_one, 9);
        sn_window_run((sn_window_kind)kind, true, SONDE_DTYPE_F64, y, 8);
        for (int i = 0; i < 9; i++)
            CHECK(fabs(long_one[i] - long_one[8 - i]) < 1e-12);
        CHECK(fabs(long_one[4] - 1.0) < 1e-12);
        CHECK(memcmp(y, long_one, sizeof y) == 0);
        sn_window_run((sn_window_kind)kind, false, SONDE_DTYPE_F64, y, 1);
        CHECK(y[0] == 1.0);
    }
}

TEST(mel_bands_rise_and_fall_between_their_edges)
{
    enum { ROWS = 65, BANDS = 10 };
    const sn_mel_bank m = {.rows = ROWS,
                           .bands = BANDS,
                           .dft_length = 128,
                           .sample_rate = 16000,
                           .low = 100,
                           .high = 7000};
    double y[ROWS * BANDS];
    sn_mel_bank_run(&m, SONDE_DTYPE_F64, y);
    for (int band = 0; band < BANDS; band++) {
        int top = -1, changes = 0;
        for (int r = 0; r < ROWS; r++) {
            CHECK(y[r * BANDS + band] >= 0 && y[r * BANDS + band] <= 1);
            if (top < 0 || y[r * BANDS + band] > y[top * BANDS + band])
                top = r;
        }
        CHECK_MSG(y[top * BANDS + band] == 1.0, "band %d", band);
        for (int r = 1; r < ROWS; r++)
            changes += (y[r * BANDS + band] > y[(r - 1) * BANDS + band]) != (r <= top) &&
                       y[r * BANDS + band] != y[(r - 1) * BANDS + band];
        CHECK_MSG(changes == 0, "band %d", band);
    }
    int32_t whole[ROWS * BANDS]; /* only the tops are left */
    sn_mel_bank_run(&m, SONDE_DTYPE_I32, whole);
    int ones = 0;
    for (int i = 0; i < ROWS * BANDS; i++)
        ones += whole[i];
    CHECK_EQ(ones, BANDS);
}

TEST_MAIN()
