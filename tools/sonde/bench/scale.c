/* SPDX-License-Identifier: Apache-2.0 */
/* Scales: round numbers at the ticks (1, 2 or 5 times a power of ten), and units that keep them
 * short. */
#include <math.h>

#include "bench/draw.h"

static char *turn(void)
{
    static char buffers[8][40];
    static unsigned next;
    return buffers[next++ % 8];
}

scale scale_make(double low, double high, double from, double to, int ticks)
{
    if (!(high > low))
        high = low + 1;
    const double rough = (high - low) / ticks, power = pow(10, floor(log10(rough)));
    const double factor = rough / power;
    const double step = power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
    return (scale){.low = floor(low / step + 1e-9) * step,
                   .high = ceil(high / step - 1e-9) * step,
                   .step = step,
                   .from = from,
                   .to = to};
}

double scale_at(const scale *s, double value)
{
    return s->from + (value - s->low) / (s->high - s->low) * (s->to - s->from);
}

const char *scale_tick(const scale *s, double value)
{
    char *buf = turn();
    const double digits = -floor(log10(s->step) + 1e-9);
    snprintf(buf, 40, "%.*f", digits > 0 ? (int)fmin(digits, 9) : 0, value);
    return buf;
}

const char *short_number(double value)
{
    char *buf = turn();
    const double size = fabs(value);
    const int digits = size >= 99.95 || size == 0 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    snprintf(buf, 40, "%.*f", digits, value);
    return buf;
}

void draw_scale(drawing *d, const scale *s, double top, double bottom, const char *name)
{
    const int n = (int)((s->high - s->low) / s->step + 0.5);
    for (int k = 0; k <= n; k++) {
        const double value = s->low + k * s->step, x = scale_at(s, value);
        draw_line(d, x, top, x, bottom + 4, k == 0 ? "axis" : "grid");
        draw_text(d, x, bottom + 17, "tick", "middle", scale_tick(s, value));
    }
    draw_text(d, s->to + draw_width(scale_tick(s, s->high), 11) / 2 + 6, bottom + 17, "tick",
              "start", name);
}

shown_unit unit_of_bytes(double largest_bytes)
{
    return largest_bytes >= 5e9 ? (shown_unit){1e9, "GB", 1} : (shown_unit){1e6, "MB", 1};
}
