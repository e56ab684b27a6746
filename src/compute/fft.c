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

bool sn_fft_sizes(int64_t n, size_t *table, size_t *scratch)
{
    if (n < 1 || n > (int64_t)1 << MAX_LENGTH_BITS)
        return false;
    const bool direct = smooth(n);
    const size_t m = (size_t)(direct ? n : chirp_length(n));
    *table = 2 * (direct ? m : 2 * m + (size_t)n);
    *scratch = 2 * (direct ? m : 2 * m);
    return true;
}

/* One stage: n = radix * rest numbers per transform, `stride` interleaved transforms. */
typedef struct stage {
    const double *roots;
    int64_t root_step; /* of e^(-2πi/n) in the table */
    int64_t root_count;
    int radix;
    int64_t rest, stride;
    double sign; /* imaginary parts of roots */
} stage;

static void butterfly_2(const stage *s, const double *x, double *y)
{
    const int64_t half = s->rest * s->stride;
    for (int64_t p = 0; p < s->rest; p++) {
        const double *w = s->roots + 2 * (p * s->root_step);
        const double wr = w[0], wi = s->sign * w[1];
        for (int64_t q = 0; q < s->stride; q++) {
            const double *a = x + 2 * (p * s->stride + q), *b = a + 2 * half;
            double *out = y + 2 * (2 * p * s->stride + q), *next = out + 2 * s->stride;
            const double dr = a[0] - b[0], di = a[1] - b[1];
            out[0] = a[0] + b[0];
            out[1] = a[1] + b[1];
            next[0] = dr * wr - di * wi;
            next[1] = dr * wi + di * wr;
        }
    }
}

static void butterfly_4(const stage *s, const double *x, double *y)
{
    const int64_t part = s->rest * s->stride;
    for (int64_t p = 0; p < s->rest; p++) {
        double w[6];
        for (int k = 1; k < 4; k++) {
            const double *r = s->roots + 2 * (k * p * s->root_step);
            w[2 * k - 2] = r[0];
            w[2 * k - 1] = s->sign * r[1];
        }
        for (int64_t q = 0; q < s->stride; q++) {
            const double *a = x + 2 * (p * s->stride + q), *b = a + 2 * part, *c = b + 2 * part,
                         *d = c + 2 * part;
            const double sr = a[0] + c[0], si = a[1] + c[1], tr = a[0] - c[0], ti = a[1] - c[1];
            const double ur = b[0] + d[0], ui = b[1] + d[1];
            /* -i (b - d), conjugated for the inverse */
            const double vr = s->sign * (b[1] - d[1]), vi = -s->sign * (b[0] - d[0]);
            const double r[8] = {sr + ur, si + ui, tr + vr, ti + vi,
                                 sr - ur, si - ui, tr - vr, ti - vi};
            double *out = y + 2 * (4 * p * s->stride + q);
            out[0] = r[0];
            out[1] = r[1];
            for (int k = 1; k < 4; k++) {
                out += 2 * s->stride;
                out[0] = r[2 * k] * w[2 * k - 2] - r[2 * k + 1] * w[2 * k - 1];
                out[1] = r[2 * k] * w[2 * k - 1] + r[2 * k + 1] * w[2 * k - 2];
            }
        }
    }
}

static void butterfly_any(const stage *s, const double *x, double *y)
{
    const int64_t part = s->rest * s->stride, turn = s->root_count / s->radix;
    for (int64_t p = 0; p < s->rest; p++) {
        for (int64_t q = 0; q < s->stride; q++) {
            const double *a = x + 2 * (p * s->stride + q);
            double *out = y + 2 * (s->radix * p * s->stride + q);
            for (int k = 0; k < s->radix; k++, out += 2 * s->stride) {
                double re = 0, im = 0;
                for (int j = 0; j < s->radix; j++) {
                    const double *w = s->roots + 2 * (turn * (j * k % s->radix));
                    const double *v = a + 2 * j * part, wi = s->sign * w[1];
                    re += v[0] * w[0] - v[1] * wi;
                    im += v[0] * wi + v[1] * w[0];
                }
                const double *w = s->roots + 2 * (k * p * s->root_step);
                const double wi = s->sign * w[1];
                out[0] = re * w[0] - im * wi;
                out[1] = re * wi + im * w[0];
            }
        }
    }
}

/* Length m with small factors; `roots` has m entries. */
static void stockham(int64_t m, const double *roots, double *x, double *spare, double sign)
{
    double *from = x, *to = spare;
    int64_t n = m, stride = 1;
    while (n > 1) {
        int radix = 0;
        for (size_t i = 0; i < sizeof radices / sizeof *radices && !radix; i++)
            if (n % radices[i] == 0)
                radix = radices[i];
        const stage s = {roots, m / n, m, radix, n / radix, stride, sign};
        if (radix == 2)
            butterfly_2(&s, from, to);
        else if (radix == 4)
            butterfly_4(&s, from, to);
        else
            butterfly_any(&s, from, to);
        double *swap = from;
        from = to;
        to = swap;
        n /= radix;
        stride *= radix;
    }
    if (from != x)
        memcpy(x, from, 2 * (size_t)m * sizeof *x);
}

static void fill_roots(double *w, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        const double angle = -2.0 * 3.14159265358979323846 * (double)k / (double)n;
        w[2 * k] = cos(angle);
        w[2 * k + 1] = sin(angle);
    }
}

void sn_fft_make(sn_fft *f, int64_t n, double *table, double *scratch)
{
    *f = (sn_fft){.n = n, .padded = smooth(n) ? 0 : chirp_length(n), .roots = table};
    fill_roots(table, f->padded ? f->padded : n);
    if (!f->padded)
        return;
    const int64_t m = f->padded;
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
    stockham(m, f->roots, f->spectrum, scratch, 1.0);
}

void sn_fft_run(const sn_fft *f, double *x, bool inverse, double *scratch)
{
    const double sign = inverse ? -1.0 : 1.0;
    if (!f->padded) {
        stockham(f->n, f->roots, x, scratch, sign);
        return;
    }
    const int64_t n = f->n, m = f->padded;
    double *a = scratch, *spare = scratch + 2 * m;
    memset(a, 0, 2 * (size_t)m * sizeof *a);
    /* The inverse is the forward transform of the conjugate, conjugated. */
    for (int64_t k = 0; k < n; k++) {
        const double re = x[2 * k], im = sign * x[2 * k + 1], cr = f->chirp[2 * k],
                     ci = f->chirp[2 * k + 1];
        a[2 * k] = re * cr - im * ci;
        a[2 * k + 1] = re * ci + im * cr;
    }
    stockham(m, f->roots, a, spare, 1.0);
    for (int64_t k = 0; k < m; k++) {
        const double re = a[2 * k], im = a[2 * k + 1], sr = f->spectrum[2 * k],
                     si = f->spectrum[2 * k + 1];
        a[2 * k] = re * sr - im * si;
        a[2 * k + 1] = re * si + im * sr;
    }
    stockham(m, f->roots, a, spare, -1.0);
    const double scale = 1.0 / (double)m;
    for (int64_t k = 0; k < n; k++) {
        const double re = a[2 * k] * scale, im = a[2 * k + 1] * scale;
        const double cr = f->chirp[2 * k], ci = f->chirp[2 * k + 1];
        x[2 * k] = re * cr - im * ci;
        x[2 * k + 1] = sign * (re * ci + im * cr);
    }
}
