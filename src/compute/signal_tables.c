/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas of the ONNX reference; edges of mel bands are whole bins. */
#include "compute/signal_tables.h"

#include <math.h>

#include "compute/element.h"
#include "compute/small_floats.h"

#define PI 3.14159265358979323846

void sn_window_run(sn_window_kind kind, bool periodic, sonde_dtype t, void *y, int64_t n)
{
    const double span = (double)(periodic ? n : n - 1), step = span > 0 ? 2.0 * PI / span : 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double a = step * (double)i, half = sin(a / 2);
        double v = 1.0; /* a symmetric window of one */
        if (span > 0)
            v = kind == SN_WINDOW_HANN      ? half * half
                : kind == SN_WINDOW_HAMMING ? 25.0 / 46.0 - 21.0 / 46.0 * cos(a)
                                            : 0.42 - 0.5 * cos(a) + 0.08 * cos(2 * a);
        sn_elem_set_f64(t, y, i, v);
    }
}

typedef struct mel_scale {
    double low, step, length, rate, limit;
} mel_scale;

/* Spectrogram bin of mel band edge i, cut to what can matter. */
static int64_t mel_bin(const mel_scale *m, int64_t i)
{
    const double hertz = 700.0 * (pow(10.0, ((double)i * m->step + m->low) / 2595.0) - 1.0);
    const double bin = floor((m->length + 1.0) * hertz / m->rate);
    if (!(bin >= -1.0))
        return -1;
    return bin > m->limit ? (int64_t)m->limit : (int64_t)bin;
}

void sn_mel_bank_run(const sn_mel_bank *b, sonde_dtype t, void *y)
{
    const int64_t rows = b->rows, bands = b->bands;
    mel_scale m = {.low = 2595.0 * log10(1.0 + b->low / 700.0),
                   .length = b->dft_length,
                   .rate = b->sample_rate,
                   .limit = 4.0 * (double)rows + 4.0};
    m.step = (2595.0 * log10(1.0 + b->high / 700.0) - m.low) / (double)(bands + 2);
    memset(y, 0, (size_t)(rows * bands) * sn_dtype_bytes(t));
    for (int64_t band = 0; band < bands; band++) {
        const int64_t left = mel_bin(&m, band), center = mel_bin(&m, band + 1),
                      right = mel_bin(&m, band + 2);
        if (left == center && center >= 0 && center < rows)
            sn_elem_set_f64(t, y, center * bands + band, 1.0);
        for (int64_t j = left > 0 ? left : 0; left < center && j <= center && j < rows; j++)
            sn_elem_set_f64(t, y, j * bands + band, (double)(j - left) / (double)(center - left));
        for (int64_t j = center > 0 ? center : 0; j < right && j < rows; j++)
            sn_elem_set_f64(t, y, j * bands + band, (double)(right - j) / (double)(right - center));
    }
}
