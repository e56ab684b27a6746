/* SPDX-License-Identifier: Apache-2.0 */
/* See fft.h. Stockham's form needs no bit reversal: each stage reads one buffer and writes the
 * other, so any mix of radices works. */
#include "compute/fft.h"

#include <math.h>
#include <string.h>

enum { MAX_LENGTH_BITS = 40 };

static const int radices[] = {4, 2, 3, 5, 7};

static bool smooth(int64_t n)
{
    for (size_t i = 0; i < sizeof radices / sizeof *radices; i++)
        while (n % radices[i] == 0)
            n /= radices[i];
    return n == 1;
}

static int64_t chirp_length(int64_t n)
{
    int64_t m = 1;
    while (m < 2 * n - 1)
        m *= 2;
    return m;
}

bool sn_fft_plan(sn_fft *f, int64_t n, bool single)
{
    if (n < 1 || n > (int64_t)1 << MAX_LENGTH_BITS)
        return false;
    const int64_t padded = smooth(n) ? 0 : chirp_length(n);
    *f = (sn_fft){.n = n, .padded = padded, .single = single && !padded};
    const size_t elem_bytes = f->single ? sizeof(float) : sizeof(double);
    f->table_elems = 2 * (size_t)(padded ? 2 * padded + n : n);
    f->line = sn_carve(&f->workspace, f->single ? 2 * n : 2 * padded, elem_bytes);
    f->spare = sn_carve(&f->workspace, 2 * (padded ? padded : n), elem_bytes);
    return true;
}

#define T       double
#define NAME(x) x##_f64
#include "compute/fft.tmpl.h"
#undef T
#undef NAME
#define T       float
#define NAME(x) x##_f32
#include "compute/fft.tmpl.h"
#undef T
#undef NAME

static void fill_roots(double *w, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        const double angle = -2.0 * 3.14159265358979323846 * (double)k / (double)n;
        w[2 * k] = cos(angle);
        w[2 * k + 1] = sin(angle);
    }
}

/* Tables in float, in place: number k lies before what it is made of. */
static float *narrow(double *x, int64_t n)
{
    float *y = (float *)(void *)x;
    for (int64_t k = 0; k < 2 * n; k++) {
        const double wide = x[k];
        memcpy(&y[k], &(float){(float)wide}, sizeof *y);
    }
    return y;
}

void sn_fft_make(sn_fft *f, double *table, void *workspace)
{
    const int64_t n = f->n, m = f->padded;
    f->roots = table;
    fill_roots(table, m ? m : n);
    f->roots_f32 = f->single ? narrow(table, n) : NULL;
    if (!m)
        return;
    f->spectrum = table + 2 * m;
    f->chirp = f->spectrum + 2 * m;
    memset(f->spectrum, 0, 2 * (size_t)m * sizeof *table);
    int64_t square = 0; /* k² mod 2n, so that the angle stays small and exact */
    for (int64_t k = 0; k < n; k++) {
        const double angle = -3.14159265358979323846 * (double)square / (double)n;
        f->chirp[2 * k] = cos(angle);
        f->chirp[2 * k + 1] = sin(angle);
        square = (square + 2 * k + 1) % (2 * n);
        const int64_t mirror = k ? m - k : 0;
        f->spectrum[2 * k] = f->spectrum[2 * mirror] = f->chirp[2 * k];
        f->spectrum[2 * k + 1] = f->spectrum[2 * mirror + 1] = -f->chirp[2 * k + 1];
    }
    stockham_f64(m, f->roots, f->spectrum, sn_piece_at(workspace, f->spare), 1.0);
}

void sn_fft_run(const sn_fft *f, double *x, bool inverse, void *workspace)
{
    const double sign = inverse ? -1.0 : 1.0;
    if (f->single) {
        float *line = sn_piece_at(workspace, f->line);
        for (int64_t k = 0; k < 2 * f->n; k++)
            line[k] = (float)x[k];
        stockham_f32(f->n, f->roots_f32, line, sn_piece_at(workspace, f->spare), (float)sign);
        for (int64_t k = 0; k < 2 * f->n; k++)
            x[k] = (double)line[k];
        return;
    }
    double *spare = sn_piece_at(workspace, f->spare);
    if (!f->padded) {
        stockham_f64(f->n, f->roots, x, spare, sign);
        return;
    }
    const int64_t n = f->n, m = f->padded;
    double *a = sn_piece_at(workspace, f->line);
    memset(a, 0, 2 * (size_t)m * sizeof *a);
    /* The inverse is the forward transform of the conjugate, conjugated. */
    for (int64_t k = 0; k < n; k++) {
        const double re = x[2 * k], im = sign * x[2 * k + 1], cr = f->chirp[2 * k],
                     ci = f->chirp[2 * k + 1];
        a[2 * k] = re * cr - im * ci;
        a[2 * k + 1] = re * ci + im * cr;
    }
    stockham_f64(m, f->roots, a, spare, 1.0);
    for (int64_t k = 0; k < m; k++) {
        const double re = a[2 * k], im = a[2 * k + 1], sr = f->spectrum[2 * k],
                     si = f->spectrum[2 * k + 1];
        a[2 * k] = re * sr - im * si;
        a[2 * k + 1] = re * si + im * sr;
    }
    stockham_f64(m, f->roots, a, spare, -1.0);
    const double scale = 1.0 / (double)m;
    for (int64_t k = 0; k < n; k++) {
        const double re = a[2 * k] * scale, im = a[2 * k + 1] * scale;
        const double cr = f->chirp[2 * k], ci = f->chirp[2 * k + 1];
        x[2 * k] = re * cr - im * ci;
        x[2 * k + 1] = sign * (re * ci + im * cr);
    }
}
