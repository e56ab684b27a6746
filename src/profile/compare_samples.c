/* SPDX-License-Identifier: Apache-2.0 */
/* Times of a computer are skewed, have outliers and several levels, so nothing here assumes any
 * distribution. The change is the ratio of medians; its limits follow from those of both medians
 * (median.h), put together on the scale of logarithms by the method of variance estimates recovery
 * (Donner and Zou, "Closed-form confidence intervals for functions of the normal mean and standard
 * deviation", 2012): the distance of each limit from its median, squared and added. Of profiles
 * that were recorded in turns it is the median of the turns' ratios. Either way one interval says
 * all: the verdict looks at it, and p is the chance at which it would end at 1. */
#include <math.h>
#include <string.h>

#include "base/chance.h"
#include "profile/compare.h"
#include "profile/median.h"

const char *sn_verdict_name(sn_verdict v)
{
    static const char *const names[] = {"same", "faster", "slower", "unclear", "new", "gone"};
    return (unsigned)v < sizeof names / sizeof names[0] ? names[v] : "unknown";
}

/* Two medians, or (m NULL) the median of logarithms of ratios. */
typedef struct pair {
    const sn_median *a, *b;
} pair;

/* For too few values for limits of both medians: that all of the one set lie above all of the other
 * has a chance of two in (n + m choose n), which is small for few already. Limits are then the
 * ratios of the least to the greatest value of the other side. */
static void outer_limits(const pair *p, double z, double *low, double *high)
{
    const double n = (double)p->a->n / p->a->inflation, m = (double)p->b->n / p->b->inflation;
    const double choices = exp(lgamma(n + m + 1) - lgamma(n + 1) - lgamma(m + 1));
    const double least_a = p->a->sorted[0], least_b = p->b->sorted[0];
    const bool enough = sn_chance_tail(z) * choices >= 1;
    *low = enough && least_b > 0 ? log(least_b / p->a->sorted[p->a->n - 1]) : -INFINITY;
    *high = enough && least_a > 0 ? log(p->b->sorted[p->b->n - 1] / least_a) : INFINITY;
}

/* The limits of log(ratio) at z standard deviations. */
static void limits(const pair *p, double z, double *low, double *high)
{
    double a[2], b[2];
    sn_median_limits(p->a, z, &a[0], &a[1]);
    if (!p->b) {
        *low = a[0];
        *high = a[1];
        return;
    }
    sn_median_limits(p->b, z, &b[0], &b[1]);
    if (isinf(a[0]) || isinf(b[0])) {
        outer_limits(p, z, low, high);
        return;
    }
    const double ratio = log(p->b->value / p->a->value);
    *low = b[0] > 0 ? ratio - hypot(log(p->b->value / b[0]), log(a[1] / p->a->value)) : -INFINITY;
    *high = a[0] > 0 ? ratio + hypot(log(b[1] / p->b->value), log(p->a->value / a[0])) : INFINITY;
}

/* The limits move apart as z grows: the z at which 0 is one of them. */
static double chance_of(const pair *p)
{
    double from = 0, to = 40, low, high;
    for (int i = 0; i < 40; i++) {
        const double z = (from + to) / 2;
        limits(p, z, &low, &high);
        if (low > 0 || high < 0)
            from = z;
        else
            to = z;
    }
    return fmin(1, 2 * sn_chance_tail(from));
}

static sn_verdict judge(const sn_change *c)
{
    if (c->low > 1 && c->ratio >= 1 + SN_COMPARE_EFFECT)
        return SN_VERDICT_SLOWER;
    if (c->high < 1 && c->ratio <= 1 / (1 + SN_COMPARE_EFFECT))
        return SN_VERDICT_FASTER;
    const bool close = c->low >= 1 / (1 + SN_COMPARE_CLOSE) && c->high <= 1 + SN_COMPARE_CLOSE;
    return close ? SN_VERDICT_SAME : SN_VERDICT_UNCLEAR;
}

static void measure(const pair *p, double log_ratio, double error, sn_change *out)
{
    double low, high;
    out->ratio = exp(log_ratio);
    limits(p, -sn_chance_quantile(error / 2), &low, &high);
    out->low = exp(low);
    out->high = exp(high);
    out->p = chance_of(p);
    out->verdict = judge(out);
}

/* Both sides have values. False: their medians say all that can be said. */
static bool can_divide(const sn_median *a, const sn_median *b, sn_change *out)
{
    out->old_median = a->value;
    out->new_median = b->value;
    if (a->value > 0 && b->value > 0)
        return true;
    if (a->value == b->value)
        out->verdict = SN_VERDICT_SAME; /* both too short to be measured */
    return false;
}

/* False: nothing is left to be compared. */
static bool begin(sn_median *a, const double *old, size_t n, sn_median *b, const double *now,
                  size_t m, double *room, sn_change *out)
{
    *out = (sn_change){.ratio = 1, .low = 0, .high = INFINITY, .p = 1};
    out->verdict = SN_VERDICT_UNCLEAR;
    if (n)
        sn_median_make(a, old, room, n);
    if (m)
        sn_median_make(b, now, room + n, m);
    if (n && m)
        return can_divide(a, b, out);
    out->old_median = n ? a->value : 0;
    out->new_median = m ? b->value : 0;
    if (n || m)
        out->verdict = n ? SN_VERDICT_GONE : SN_VERDICT_NEW;
    return false;
}

void sn_compare_samples(const double *old, size_t n, const double *now, size_t m, double error,
                        double *room, sn_change *out)
{
    sn_median a, b;
    if (!begin(&a, old, n, &b, now, m, room, out))
        return;
    const pair p = {&a, &b};
    out->ratio = b.value / a.value;
    if (n >= SN_COMPARE_FEWEST && m >= SN_COMPARE_FEWEST)
        measure(&p, log(out->ratio), error, out);
}

void sn_compare_turns(const double *old, size_t n, const double *now, size_t m,
                      const double *ratios, size_t turns, double error, double *room,
                      sn_change *out)
{
    sn_median a, b, of_ratios;
    if (!begin(&a, old, n, &b, now, m, room, out))
        return;
    sn_median_make(&of_ratios, ratios, room, turns);
    if (!isfinite(of_ratios.value)) {
        sn_compare_samples(old, n, now, m, error, room, out);
        return;
    }
    const pair p = {&of_ratios, NULL};
    out->turns = turns;
    measure(&p, of_ratios.value, error, out);
}
