/* SPDX-License-Identifier: Apache-2.0 */
/* From a histogram to a range. All methods but the first cut off the outermost values, which are
 * few and make the steps of all others wide. The candidates are the same for each: a threshold t
 * between an eighth of the largest magnitude and the whole of it, and the range from -t to t as far
 * as there are values. Zero is always inside, because padding and Relu need it exactly. */
#include <math.h>
#include <string.h>

#include "shrink/quantizer.h"

enum { LEVELS = 256, CANDIDATES = 224 };

typedef struct histogram {
    const uint64_t *bins;
    double low, width; /* of the first bin, of each */
    uint64_t total;
} histogram;

static double centre(const histogram *h, int bin)
{
    return h->low + ((double)bin + 0.5) * h->width;
}

/* ------------------------------------------------------------------ percentile */
static void percentile(const histogram *h, double percent, double *low, double *high)
{
    const double outside = (double)h->total * (1.0 - percent / 100.0) / 2.0;
    uint64_t below = 0, above = 0;
    int first = 0, last = SN_Q_BINS - 1;
    while (first < last && (double)(below + h->bins[first]) <= outside)
        below += h->bins[first++];
    while (last > first && (double)(above + h->bins[last]) <= outside)
        above += h->bins[last--];
    *low = h->low + (double)first * h->width;
    *high = h->low + (double)(last + 1) * h->width;
}

/* ------------------------------------------------------------------ costs of a range */
/* The squared error: that of values outside of the range, and a twelfth of a squared step inside.
 */
static double squared_error(const histogram *h, double low, double high)
{
    const double step = (high - low) / (LEVELS - 1);
    double sum = 0;
    for (int i = 0; i < SN_Q_BINS; i++) {
        if (!h->bins[i])
            continue;
        const double x = centre(h, i);
        const double d = x < low ? low - x : x > high ? x - high : 0;
        sum += (double)h->bins[i] * (d * d + step * step / 12);
    }
    return sum;
}

/* Kullback and Leibler's divergence between the values, with those outside moved to the ends, and
 * the same after they were rounded to 256 levels. The bin of zero is left out: Relu makes many
 * zeros, and they are exact in every range. Bins differ from their neighbours by chance, too, which
 * looks like information that wide levels lose; half a unit for each bin beyond one per level is
 * what that comes to on average, whatever the number of values. */
static double divergence(const histogram *h, double low, double high)
{
    double level[LEVELS] = {0}, used[LEVELS] = {0}, outside[2] = {0, 0}, sum = 0, chance = 0;
    const double scale = (LEVELS - 1) / (high - low);
    const int zero = (int)(-h->low / h->width);
    int first = -1, last = -1;
    for (int i = 0; i < SN_Q_BINS; i++) {
        const double x = centre(h, i), n = i == zero ? 0 : (double)h->bins[i];
        if (x < low || x > high) {
            outside[x > high] += n;
            continue;
        }
        if (n <= 0)
            continue;
        const int k = (int)((x - low) * scale + 0.5);
        first = first < 0 ? i : first;
        last = i;
        level[k] += n;
        used[k]++;
    }
    if (first < 0)
        return INFINITY;
    for (int i = first; i <= last; i++) {
        if (i == zero || !h->bins[i])
            continue;
        const int k = (int)((centre(h, i) - low) * scale + 0.5);
        const double p =
            (double)h->bins[i] + (i == first ? outside[0] : 0) + (i == last ? outside[1] : 0);
        sum += p * log(p / (level[k] / used[k]));
        chance += 0.5;
    }
    for (int k = 0; k < LEVELS; k++)
        chance -= used[k] > 0 ? 0.5 : 0;
    return sum - chance;
}

static void search(const histogram *h, double (*cost)(const histogram *, double, double),
                   double *low, double *high)
{
    const double min = *low, max = *high, most = fmax(-min, max);
    double best = INFINITY;
    for (int k = CANDIDATES; k > 0; k--) {
        const double t = most * (0.125 + 0.875 * k / (double)CANDIDATES);
        const double a = fmax(min, -t), b = fmin(max, t);
        const double c = cost(h, a, b);
        if (c < best) {
            best = c;
            *low = a;
            *high = b;
        }
    }
}

void sn_q_choose_range(sonde_calibration method, double percent, const uint64_t *bins, double low,
                       double high, float *chosen_low, float *chosen_high)
{
    histogram h = {.bins = bins, .low = low, .width = (high - low) / (double)SN_Q_BINS};
    double a = fmin(low, 0), b = fmax(high, 0);
    for (int i = 0; bins && i < SN_Q_BINS; i++)
        h.total += bins[i];
    if (bins && h.total && h.width > 0) {
        if (method == SONDE_CALIBRATION_PERCENTILE)
            percentile(&h, percent, &a, &b);
        else if (method == SONDE_CALIBRATION_ENTROPY)
            search(&h, divergence, &a, &b);
        else if (method != SONDE_CALIBRATION_MINMAX)
            search(&h, squared_error, &a, &b);
    }
    *chosen_low = (float)fmin(a, 0);
    *chosen_high = (float)fmax(b, 0);
}
