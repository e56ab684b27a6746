/* SPDX-License-Identifier: Apache-2.0 */
/* Progressions and diagonals. */
#include "compute/generate.h"

#include "compute/element.h"
#include "compute/small_floats.h"

void sn_range_run(sonde_dtype t, void *y, int64_t n, const void *start, const void *delta)
{
    switch (t) {
#define FILL(NAME, T, U)                                                                           \
    case SONDE_DTYPE_##NAME: {                                                                     \
        const T first = *(const T *)start, step = *(const T *)delta;                               \
        T *out = y;                                                                                \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = (T)((U)first + (U)i * (U)step);                                               \
        return;                                                                                    \
    }
        FILL(I64, int64_t, uint64_t)
        FILL(I32, int32_t, uint32_t)
        FILL(I16, int16_t, uint32_t)
        FILL(F32, float, float)
        FILL(F64, double, double)
#undef FILL
    default:
        break;
    }
    const double first = sn_elem_f64(t, start, 0), step = sn_elem_f64(t, delta, 0);
    for (int64_t i = 0; i < n; i++)
        sn_elem_set_f64(t, y, i, first + (double)i * step);
}

void sn_eye_run(sonde_dtype t, void *y, int64_t rows, int64_t columns, int64_t diagonal)
{
    const int64_t k = diagonal;
    memset(y, 0, (size_t)(rows * columns) * sn_dtype_bytes(t));
    for (int64_t i = k < 0 ? (k < -rows ? rows : -k) : 0; i < rows; i++) {
        if (k >= columns - i)
            break;
        sn_elem_set_f64(t, y, i * columns + i + k, 1.0);
    }
}
