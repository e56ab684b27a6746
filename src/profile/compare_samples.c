/* SPDX-License-Identifier: Apache-2.0 */
/* Times of a computer are skewed and have outliers, so nothing here assumes a normal distribution.
 * Whether two sets differ: Mann–Whitney's rank test, with the correction for ties that clocks of
 * whole microseconds need. By how much: the ratio of medians; its interval follows from the
 * standard errors of the two medians, read off their order statistics (McKean and Schrader 1984),
 * on the scale of logarithms (Price and Bonett 2002). */
#include <math.h>
#include <stdlib.h>

#include "profile/compare.h"

#define Z95 1.959963984540054

const char *sn_verdict_name(sn_verdict v)
{
    static const char *const names[] = {"same", "faster", "slower", "unclear", "new", "gone"};
    return (unsigned)v < sizeof names / sizeof names[0] ? names[v] : "unknown";
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *sorted, size_t n)
{
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* Half the distance between the two samples that enclose the median with 95 % confidence. */
static double median_error(const double *sorted, size_t n)
{
    double below = floor(((double)n + 1) / 2 - Z95 * sqrt((double)n / 4) + 0.5);
    size_t c = below < 1 ? 1 : (size_t)below;
    return (sorted[n - c] - sorted[c - 1]) / (2 * Z95);
}

/* Two-sided probability, from ranks over both sets; equal values share the mean of their ranks. */
static double rank_test(const double *a, size_t n, const double *b, size_t m)
{
    double ranks = 0, ties = 0, total = (double)n + (double)m;
    size_t i = 0, j = 0;
    while (i < n || j < m) {
        double v = j == m || (i < n && a[i] <= b[j]) ? a[i] : b[j];
        size_t from = i + j, in_a = i;
        while (i < n && a[i] == v)
            i++;
        while (j < m && b[j] == v)
            j++;
        double equal = (double)(i + j - from);
        ranks += (double)(i - in_a) * ((double)from + (equal + 1) / 2);
        ties += equal * (equal * equal - 1);
    }
    double nm = (double)n * (double)m, u = ranks - (double)n * ((double)n + 1) / 2;
    double variance = nm / 12 * ((total + 1) - ties / (total * (total - 1)));
    if (!(variance > 0))
        return 1; /* all are equal */
    double z = (fabs(u - nm / 2) - 0.5) / sqrt(variance);
    return z > 0 ? erfc(z / sqrt(2)) : 1;
}

static sn_verdict judge(const sn_change *c)
{
    bool differs = c->p < SN_COMPARE_P && (c->low > 1 || c->high < 1);
    if (differs && c->ratio >= 1 + SN_COMPARE_EFFECT)
        return SN_VERDICT_SLOWER;
    if (differs && c->ratio <= 1 / (1 + SN_COMPARE_EFFECT))
        return SN_VERDICT_FASTER;
    bool close = c->low >= 1 / (1 + SN_COMPARE_CLOSE) && c->high <= 1 + SN_COMPARE_CLOSE;
    return close ? SN_VERDICT_SAME : SN_VERDICT_UNCLEAR;
}

void sn_compare_samples(double *old, size_t n, double *now, size_t m, sn_change *out)
{
    *out = (sn_change){.ratio = 1, .low = 0, .high = INFINITY, .p = 1};
    out->verdict = SN_VERDICT_UNCLEAR;
    if (n) {
        qsort(old, n, sizeof *old, ascending);
        out->old_median = median(old, n);
    }
    if (m) {
        qsort(now, m, sizeof *now, ascending);
        out->new_median = median(now, m);
    }
    if (n == 0 || m == 0) {
        if (n || m)
            out->verdict = n ? SN_VERDICT_GONE : SN_VERDICT_NEW;
        return;
    }
    double before = out->old_median, after = out->new_median;
    out->p = rank_test(old, n, now, m);
    if (!(before > 0) || !(after > 0)) {
        if (before == after && out->p >= SN_COMPARE_P)
            out->verdict = SN_VERDICT_SAME; /* both too short to be measured */
        return;
    }
    out->ratio = after / before;
    if (n < SN_COMPARE_FEWEST || m < SN_COMPARE_FEWEST)
        return;
    double e1 = median_error(old, n) / before, e2 = median_error(now, m) / after;
    double width = exp(Z95 * sqrt(e1 * e1 + e2 * e2));
    out->low = out->ratio / width;
    out->high = out->ratio * width;
    out->verdict = judge(out);
}
