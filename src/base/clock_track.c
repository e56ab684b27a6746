/* SPDX-License-Identifier: Apache-2.0 */
/* An error of less than a microsecond is let be: reading both clocks is not much better, and every
 * line is one more to look through. A larger one is taken back over a tenth of a second, by a line
 * that is a little steeper or flatter, and a straight one behind it, whenever the next look comes.
 * After a leap, as of a machine that was suspended, the clock is followed at once if it went ahead,
 * and rates are taken from there on. */
#include "base/clock_track.h"

#include <string.h>

#define LET_BE_NS 1e3
#define OVER_NS   1e8
#define LEAP_NS   1e8
#define MOST_BENT 0.5 /* of the rate */

void sn_clock_track_init(sn_clock_track *t, const sn_clock *c)
{
    t->first = *c;
    t->n = 1;
    t->lines[0] = (sn_clock_line){c->base_ticks, c->base_ns, c->ns_per_tick};
}

static uint64_t on_line(const sn_clock_line *l, uint64_t ticks)
{
    return l->ns + (uint64_t)(int64_t)((double)(int64_t)(ticks - l->ticks) * l->ns_per_tick);
}

uint64_t sn_clock_track_ns(const sn_clock_track *t, uint64_t ticks)
{
    int k = t->n - 1; /* most are of the last line */
    while (k > 0 && (int64_t)(ticks - t->lines[k].ticks) < 0)
        k--;
    return on_line(&t->lines[k], ticks);
}

/* The oldest line goes: records that old are rare, and the next one is a good guess. */
static void add(sn_clock_track *t, sn_clock_line line)
{
    if (t->n == SN_CLOCK_LINES)
        memmove(t->lines, t->lines + 1, (size_t)--t->n * sizeof *t->lines);
    t->lines[t->n++] = line;
}

/* The line for so many ticks from here on, then one with the rate that is known by now. */
static void add_bent(sn_clock_track *t, uint64_t ticks, uint64_t ns, double error)
{
    const double rate = t->first.ns_per_tick;
    double bend = error / OVER_NS;
    bend = bend < -MOST_BENT ? -MOST_BENT : bend > MOST_BENT ? MOST_BENT : bend;
    const sn_clock_line bent = {ticks, ns, rate * (1 + bend)};
    const uint64_t end = ticks + (uint64_t)(OVER_NS / rate);
    add(t, bent);
    add(t, (sn_clock_line){end, on_line(&bent, end), rate});
}

void sn_clock_track_follow(sn_clock_track *t, uint64_t ticks, uint64_t ns)
{
    sn_clock *c = &t->first;
    const uint64_t said = sn_clock_track_ns(t, ticks);
    const double error = (double)(int64_t)(ns - said);
    const bool leap = error > LEAP_NS || error < -LEAP_NS;
    const bool past = (int64_t)(ticks - c->base_ticks) <= 0 || ns <= c->base_ns;
    if (past || (error > -LET_BE_NS && error < LET_BE_NS))
        return;
    while (t->n > 1 && (int64_t)(t->lines[t->n - 1].ticks - ticks) >= 0)
        t->n--; /* they have not begun */
    if (leap)
        *c = (sn_clock){ticks, ns, c->ns_per_tick};
    else
        c->ns_per_tick = (double)(ns - c->base_ns) / (double)(ticks - c->base_ticks);
    if (leap && error > 0)
        add(t, (sn_clock_line){ticks, ns, c->ns_per_tick});
    else
        add_bent(t, ticks, said, error);
}
