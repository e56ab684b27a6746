/* SPDX-License-Identifier: Apache-2.0 */
/* Stockham's transform in the type T: fft.c includes this once for each. NAME(x) makes the names.
 */

/* One stage: n = radix * rest numbers per transform, `stride` interleaved transforms. */
typedef struct NAME(stage) {
    const T *roots;
    int64_t root_step; /* of e^(-2πi/n) in the table */
    int64_t root_count;
    int radix;
    int64_t rest, stride;
    T sign; /* imaginary parts of roots */
} NAME(stage);

static void NAME(butterfly_2)(const NAME(stage) * s, const T *x, T *y)
{
    const int64_t half = s->rest * s->stride;
    for (int64_t p = 0; p < s->rest; p++) {
        const T *w = s->roots + 2 * (p * s->root_step);
        const T wr = w[0], wi = s->sign * w[1];
        for (int64_t q = 0; q < s->stride; q++) {
            const T *a = x + 2 * (p * s->stride + q), *b = a + 2 * half;
            T *out = y + 2 * (2 * p * s->stride + q), *next = out + 2 * s->stride;
            const T dr = a[0] - b[0], di = a[1] - b[1];
            out[0] = a[0] + b[0];
            out[1] = a[1] + b[1];
            next[0] = dr * wr - di * wi;
            next[1] = dr * wi + di * wr;
        }
    }
}

static void NAME(butterfly_4)(const NAME(stage) * s, const T *x, T *y)
{
    const int64_t part = s->rest * s->stride;
    for (int64_t p = 0; p < s->rest; p++) {
        T w[6];
        for (int k = 1; k < 4; k++) {
            const T *r = s->roots + 2 * (k * p * s->root_step);
            w[2 * k - 2] = r[0];
            w[2 * k - 1] = s->sign * r[1];
        }
        for (int64_t q = 0; q < s->stride; q++) {
            const T *a = x + 2 * (p * s->stride + q), *b = a + 2 * part, *c = b + 2 * part,
                    *d = c + 2 * part;
            const T sr = a[0] + c[0], si = a[1] + c[1], tr = a[0] - c[0], ti = a[1] - c[1];
            const T ur = b[0] + d[0], ui = b[1] + d[1];
            /* -i (b - d), conjugated for the inverse */
            const T vr = s->sign * (b[1] - d[1]), vi = -s->sign * (b[0] - d[0]);
            const T r[8] = {sr + ur, si + ui, tr + vr, ti + vi, sr - ur, si - ui, tr - vr, ti - vi};
            T *out = y + 2 * (4 * p * s->stride + q);
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

/* Output k of a butterfly, turned as the next stage wants it. */
static inline void NAME(put)(const NAME(stage) * s, T *out, int64_t p, int k, T re, T im)
{
    const T *w = s->roots + 2 * (k * p * s->root_step);
    const T wi = s->sign * w[1];
    out[2 * k * s->stride] = re * w[0] - im * wi;
    out[2 * k * s->stride + 1] = re * wi + im * w[0];
}

/* An odd radix up to 7. Outputs k and radix - k have the same real and the same imaginary sums,
 * added or subtracted; these take the sums and differences of inputs j and radix - j. */
static void NAME(butterfly_odd)(const NAME(stage) * s, const T *x, T *y)
{
    const int64_t part = s->rest * s->stride, turn = s->root_count / s->radix;
    const int half = s->radix / 2;
    for (int64_t p = 0; p < s->rest; p++) {
        for (int64_t q = 0; q < s->stride; q++) {
            const T *a = x + 2 * (p * s->stride + q);
            T *out = y + 2 * (s->radix * p * s->stride + q), plus[6], minus[6],
              sum[2] = {a[0], a[1]};
            for (int j = 0; j < half; j++) {
                const T *u = a + 2 * (j + 1) * part, *v = a + 2 * (s->radix - 1 - j) * part;
                for (int c = 0; c < 2; c++) {
                    plus[2 * j + c] = u[c] + v[c];
                    minus[2 * j + c] = u[c] - v[c];
                    sum[c] += plus[2 * j + c];
                }
            }
            out[0] = sum[0];
            out[1] = sum[1];
            for (int k = 1; k <= half; k++) {
                T even[2] = {a[0], a[1]}, turned[2] = {0, 0};
                for (int j = 0; j < half; j++) {
                    const T *w = s->roots + 2 * (turn * ((j + 1) * k % s->radix));
                    const T wi = s->sign * w[1];
                    even[0] += w[0] * plus[2 * j];
                    even[1] += w[0] * plus[2 * j + 1];
                    turned[0] -= wi * minus[2 * j + 1];
                    turned[1] += wi * minus[2 * j];
                }
                NAME(put)(s, out, p, k, even[0] + turned[0], even[1] + turned[1]);
                NAME(put)(s, out, p, s->radix - k, even[0] - turned[0], even[1] - turned[1]);
            }
        }
    }
}

/* Length m with small factors; `roots` has m entries. */
static void NAME(stockham)(int64_t m, const T *roots, T *x, T *spare, T sign)
{
    T *from = x, *to = spare;
    int64_t n = m, stride = 1;
    while (n > 1) {
        int radix = 0;
        for (size_t i = 0; i < sizeof radices / sizeof *radices && !radix; i++)
            if (n % radices[i] == 0)
                radix = radices[i];
        const NAME(stage) s = {roots, m / n, m, radix, n / radix, stride, sign};
        if (radix == 2)
            NAME(butterfly_2)(&s, from, to);
        else if (radix == 4)
            NAME(butterfly_4)(&s, from, to);
        else
            NAME(butterfly_odd)(&s, from, to);
        T *swap = from;
        from = to;
        to = swap;
        n /= radix;
        stride *= radix;
    }
    if (from != x)
        memcpy(x, from, 2 * (size_t)m * sizeof *x);
}
