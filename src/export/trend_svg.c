/* SPDX-License-Identifier: Apache-2.0 */
/* Trends as one SVG file that needs nothing else: colours follow the viewer's light or dark mode,
 * signs and words say what colours say. Entries stand side by side in their order, because commits
 * do not come at even times. Few far outliers would press all others into a line, so they are drawn
 * as triangles at the edge. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/date.h"
#include "export/trend.h"
#include "export/units.h"
#include "export/writer.h"

enum {
    WIDTH = 800,
    MARGIN = 16,
    LEFT = 84,
    RIGHT = 706, /* behind it the value of the last level */
    HEAD = 52,   /* title and machine */
    BAND = 34,   /* two rows of labels of changes */
    PLOT = 190,
    FOOT = 46,    /* dates */
    STRETCH = 22, /* below them, where points differ: which they are */
    PANEL = HEAD + BAND + PLOT + FOOT,
    LEGEND = 26,
    MOST_DOTS = 1200, /* entries that are drawn one by one */
    LONGEST = 84      /* characters of a text */
};

#define FENCE 4 /* quartile distances beyond which a value is far from all others */

static const char style[] =
    ".paper{fill:#fff}.ink{fill:#1a1f26}.faint{fill:#57606a}.bad{fill:#b3261e}.good{fill:#116b45}"
    "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif}"
    ".title{font-size:15px;font-weight:600}.mark{font-weight:600;paint-order:stroke;stroke:#fff;"
    "stroke-width:4px;stroke-linejoin:round}"
    ".grid{stroke:#d8dee4}.dot{fill:#0b62a8}.span{stroke:#0b62a8;stroke-opacity:.4;fill:none}"
    ".level{stroke:#1a1f26;stroke-width:2}.cut{stroke-width:1.5;stroke-dasharray:5 4}"
    ".cut.bad{stroke:#b3261e}.cut.good{stroke:#116b45}.cut.ink{stroke:#1a1f26}"
    "@media (prefers-color-scheme:dark){.paper{fill:#0f1419}.ink{fill:#e4e9ef}.faint{fill:#9aa6b2}"
    ".bad{fill:#ff8a80}.good{fill:#55c795}.mark{stroke:#0f1419}.grid{stroke:#2d3741}"
    ".dot{fill:#67b0ee}.span{stroke:#67b0ee}.level{stroke:#e4e9ef}.cut.bad{stroke:#ff8a80}"
    ".cut.good{stroke:#55c795}.cut.ink{stroke:#e4e9ef}}";

/* ------------------------------------------------------------------ words */
/* XML 1.0 has no control characters and not the two last ones of a plane; bytes that are not UTF-8
 * become U+FFFD. */
static void put_most_words(sn_writer *w, const char *s, size_t most)
{
    size_t shown = 0;
    for (s = s ? s : ""; *s; shown++) {
        const unsigned char c = (unsigned char)*s;
        if (shown == most) {
            sn_put(w, "\xE2\x80\xA6");
            return;
        }
        if (c == '&' || c == '<' || c == '>' || c == '"') {
            sn_put(w, c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&quot;");
            s++;
        } else if (c < 0x20 || c == 0x7F) {
            sn_put(w, " ");
            s++;
        } else if (strncmp(s, "\xEF\xBF\xBE", 3) == 0 || strncmp(s, "\xEF\xBF\xBF", 3) == 0) {
            sn_put(w, "\xEF\xBF\xBD");
            s += 3;
        } else {
            s += sn_put_char(w, s);
        }
    }
}

static void put_words(sn_writer *w, const char *s)
{
    put_most_words(w, s, LONGEST);
}

static void put_date(sn_writer *w, int64_t unix_ms)
{
    char text[40];
    const sn_date d = sn_date_of(unix_ms / 1000);
    if (unix_ms <= 0 || d.year > 9999)
        return;
    snprintf(text, sizeof text, "%04" PRId64 "-%02d-%02d", d.year, d.month, d.day);
    sn_put(w, text);
}

/* A hash as Git shortens it. */
static void put_commit(sn_writer *w, const char *commit)
{
    const size_t n = strlen(commit);
    if (n >= 12 && strspn(commit, "0123456789abcdef") == n)
        sn_put_bytes(w, commit, 10);
    else
        put_words(w, commit);
}

static bool is_shown(double v)
{
    return v >= 0 && v < INFINITY;
}

/* ------------------------------------------------------------------ one panel */
typedef struct panel {
    sn_writer *w;
    const sn_trend *t;
    double top; /* of the plot */
    double low, high;
    sn_time_unit unit;
    int decimals;
} panel;

static double x_of(const panel *p, double position)
{
    return (double)LEFT + (position + 0.5) / (double)p->t->n_points * (RIGHT - LEFT);
}

/* Inside of the plot, whatever the value. */
static double y_of(const panel *p, double v)
{
    const double share = (v - p->low) / (p->high - p->low);
    return p->top + (double)PLOT * (1 - fmin(fmax(share, 0), 1));
}

static void put_coordinate(sn_writer *w, const char *name, double v)
{
    sn_put(w, " ");
    sn_put(w, name);
    sn_put(w, "=\"");
    sn_put_fixed(w, v, 1);
    sn_put(w, "\"");
}

static void put_line(sn_writer *w, const char *class, double x1, double y1, double x2, double y2)
{
    sn_put(w, "<line class=\"");
    sn_put(w, class);
    sn_put(w, "\"");
    put_coordinate(w, "x1", x1);
    put_coordinate(w, "y1", y1);
    put_coordinate(w, "x2", x2);
    put_coordinate(w, "y2", y2);
    sn_put(w, "/>\n");
}

static void open_text(sn_writer *w, const char *class, const char *anchor, double x, double y)
{
    sn_put(w, "<text class=\"");
    sn_put(w, class);
    sn_put(w, "\" text-anchor=\"");
    sn_put(w, anchor);
    sn_put(w, "\"");
    put_coordinate(w, "x", x);
    put_coordinate(w, "y", y);
    sn_put(w, ">");
}

/* With as many decimals as the marks of the axis need, or more. */
static void put_value(const panel *p, double ms, int more)
{
    const int decimals = p->decimals + more;
    sn_put_fixed(p->w, ms * 1e6 / p->unit.ns, decimals > 9 ? 9 : decimals);
    sn_put(p->w, " ");
    sn_put(p->w, p->unit.name);
}

/* The value that a share `q` of all that are shown does not exceed; without sorting, so without
 * memory. */
static double quantile(const sn_trend *t, double low, double high, size_t shown, double q)
{
    for (int i = 0; i < 40 && high > low; i++) {
        const double middle = low + (high - low) / 2;
        size_t below = 0;
        for (size_t k = 0; k < t->n_points; k++)
            below += is_shown(t->points[k].value) && t->points[k].value <= middle;
        if ((double)below >= q * (double)shown)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* From where to where the axis goes: all usual values and all levels, with room for marks above. */
static void find_range(panel *p)
{
    const sn_trend *t = p->t;
    double least = INFINITY, most = 0;
    size_t shown = 0;
    for (size_t i = 0; i < t->n_points; i++)
        if (is_shown(t->points[i].value)) {
            least = fmin(least, t->points[i].value);
            most = fmax(most, t->points[i].value);
            shown++;
        }
    p->low = 0;
    p->high = 1;
    if (!shown)
        return;
    const double q1 = quantile(t, least, most, shown, 0.25),
                 q3 = quantile(t, least, most, shown, 0.75);
    const double spread = q3 > q1 ? q3 - q1 : q1 * 0.02;
    double low = fmax(least, q1 - FENCE * spread), high = fmin(most, q3 + FENCE * spread);
    for (size_t i = 0; i < t->n_levels; i++)
        if (is_shown(t->levels[i].value)) {
            low = fmin(low, t->levels[i].value - spread / 2);
            high = fmax(high, t->levels[i].value + spread / 2);
        }
    const double room = high > low ? 0.06 * (high - low) : high > 0 ? 0.05 * high : 1;
    p->low = fmax(0, low - 2 * room); /* values of levels may stand below */
    p->high = high + room;
}

static void put_axis(panel *p)
{
    const double span = p->high - p->low;
    p->unit = sn_time_unit_for(p->high * 1e6);
    const double rough = span * 1e6 / p->unit.ns / 5, size = pow(10, floor(log10(rough)));
    const double step = size * (rough > 5 * size   ? 10
                                : rough > 2 * size ? 5
                                : rough > size     ? 2
                                                   : 1);
    const double digits = -floor(log10(step) + 1e-9);
    p->decimals = digits > 0 ? (digits < 9 ? (int)digits : 9) : 0;
    const double first = ceil(p->low * 1e6 / p->unit.ns / step - 1e-9) * step;
    for (int i = 0; i < 12; i++) {
        const double ms = (first + i * step) * p->unit.ns / 1e6;
        if (!(ms <= p->high))
            break;
        put_line(p->w, "grid", LEFT, y_of(p, ms), RIGHT, y_of(p, ms));
        open_text(p->w, "faint", "end", LEFT - 8, y_of(p, ms) + 4);
        put_value(p, ms, 0);
        sn_put(p->w, "</text>\n");
    }
}

/* Dates below the first, the last and some between; commits below them. */
static void put_places(const panel *p)
{
    const size_t n = p->t->n_points, places = n < 4 ? n : 4;
    for (size_t k = 0; k < places; k++) {
        const size_t i = places > 1 ? k * (n - 1) / (places - 1) : 0;
        const sn_trend_point *point = &p->t->points[i];
        const char *anchor = k == 0 ? "start" : k + 1 == places ? "end" : "middle";
        const double x = k == 0            ? (double)LEFT
                         : k + 1 == places ? (double)RIGHT
                                           : x_of(p, (double)i);
        open_text(p->w, "faint", anchor, x, p->top + (double)PLOT + 17);
        put_date(p->w, point->at_unix_ms);
        sn_put(p->w, "</text>\n");
        open_text(p->w, "faint", anchor, x, p->top + (double)PLOT + 32);
        if (point->commit && *point->commit) {
            put_commit(p->w, point->commit);
        } else {
            sn_put(p->w, "#");
            sn_put_i64(p->w, point->id);
        }
        sn_put(p->w, "</text>\n");
    }
}

static bool is_joined(const sn_trend *t)
{
    return t->across && *t->across && t->n_points;
}

static const char *which_of(const sn_trend *t, size_t i)
{
    return t->points[i].which ? t->points[i].which : "";
}

/* Neighbours that are the same one have a line with its name below. Too few to hold a word have
 * none: hints name each point. */
static void put_stretches(const panel *p)
{
    enum { CHAR = 7, LEAST = 4 }; /* pixels; characters */
    const size_t n = p->t->n_points;
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && strcmp(which_of(p->t, to), which_of(p->t, from)) == 0;)
            to++;
        const double x1 = x_of(p, (double)from - 0.5) + 4, x2 = x_of(p, (double)to - 0.5) - 4;
        if (x2 - x1 < CHAR * LEAST)
            continue;
        put_line(p->w, "grid", x1, p->top + (double)PLOT + 40, x2, p->top + (double)PLOT + 40);
        open_text(p->w, "ink", "middle", (x1 + x2) / 2, p->top + (double)PLOT + 54);
        put_most_words(p->w, which_of(p->t, from), (size_t)((x2 - x1) / (double)CHAR));
        sn_put(p->w, "</text>\n");
    }
}

/* What a pointer over an entry reads. */
static void put_hint(const panel *p, const sn_trend_point *point)
{
    sn_put(p->w, "<title>");
    put_value(p, point->value, 2);
    if (point->high > point->low && is_shown(point->low) && is_shown(point->high)) {
        sn_put(p->w, " (");
        put_value(p, point->low, 2);
        sn_put(p->w, " \xE2\x80\xA6 ");
        put_value(p, point->high, 2);
        sn_put(p->w, ")");
    }
    sn_put(p->w, ", entry ");
    sn_put_i64(p->w, point->id);
    if (point->which && *point->which) {
        sn_put(p->w, ", ");
        put_words(p->w, point->which);
    }
    if (point->commit && *point->commit) {
        sn_put(p->w, ", ");
        put_commit(p->w, point->commit);
    }
    if (point->at_unix_ms > 0) {
        sn_put(p->w, ", ");
        put_date(p->w, point->at_unix_ms);
    }
    if (point->note && *point->note) {
        sn_put(p->w, ", ");
        put_words(p->w, point->note);
    }
    sn_put(p->w, "</title>");
}

static void put_dot(const panel *p, size_t i, double radius)
{
    const sn_trend_point *point = &p->t->points[i];
    const double x = x_of(p, (double)i), y = y_of(p, point->value);
    if (point->high > point->low && is_shown(point->low) && is_shown(point->high))
        put_line(p->w, "span", x, y_of(p, point->low), x, y_of(p, point->high));
    if (point->value > p->high || point->value < p->low) {
        const double base = point->value > p->high ? y + 8 : y - 8;
        sn_put(p->w, "<path class=\"dot\" d=\"M");
        sn_put_fixed(p->w, x, 1);
        sn_put(p->w, " ");
        sn_put_fixed(p->w, y, 1);
        sn_put(p->w, "L");
        sn_put_fixed(p->w, x - 4, 1);
        sn_put(p->w, " ");
        sn_put_fixed(p->w, base, 1);
        sn_put(p->w, "h8z\">");
        put_hint(p, point);
        sn_put(p->w, "</path>\n");
        return;
    }
    sn_put(p->w, "<circle class=\"dot\"");
    put_coordinate(p->w, "cx", x);
    put_coordinate(p->w, "cy", y);
    put_coordinate(p->w, "r", radius);
    sn_put(p->w, ">");
    put_hint(p, point);
    sn_put(p->w, "</circle>\n");
}

/* Of many entries, the least and the greatest for each pixel. */
static void put_columns(const panel *p)
{
    const size_t n = p->t->n_points, columns = RIGHT - LEFT;
    sn_put(p->w, "<path class=\"span\" d=\"");
    for (size_t c = 0; c < columns; c++) {
        const size_t from = (size_t)((double)n * (double)c / (double)columns);
        const size_t to = (size_t)((double)n * (double)(c + 1) / (double)columns);
        double least = INFINITY, most = -INFINITY;
        for (size_t i = from; i < to && i < n; i++)
            if (is_shown(p->t->points[i].value)) {
                least = fmin(least, p->t->points[i].value);
                most = fmax(most, p->t->points[i].value);
            }
        if (!(least <= most))
            continue;
        sn_put(p->w, "M");
        sn_put_fixed(p->w, (double)(LEFT + c) + 0.5, 1);
        sn_put(p->w, " ");
        sn_put_fixed(p->w, y_of(p, least) + 0.5, 1);
        sn_put(p->w, "V");
        sn_put_fixed(p->w, y_of(p, most) - 0.5, 1);
    }
    sn_put(p->w, "\"/>\n");
}

static void put_points(const panel *p)
{
    const size_t n = p->t->n_points;
    const double wide = (double)(RIGHT - LEFT) / (double)(n ? n : 1) * 0.35;
    if (n > MOST_DOTS) {
        put_columns(p);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (is_shown(p->t->points[i].value))
            put_dot(p, i, fmin(fmax(wide, 1.2), 3));
}

/* The base line of the value of a level: as near to its line as the points in the columns of the
 * text allow, above or below. Far outliers do not push it away: it has an edge in the colour of the
 * paper. */
static double label_y_of(const panel *p, const sn_trend_level *level, double x1, double x2)
{
    enum { ASCENT = 10, GAP = 5, FARTHEST = 34 };
    const double line = y_of(p, level->value), bottom = p->top + (double)PLOT;
    double above = line, below = line; /* edges of what is there */
    for (size_t i = level->from; i < level->to; i++) {
        const double x = x_of(p, (double)i), value = p->t->points[i].value;
        if (x < x1 || x > x2 || !is_shown(value) || value < p->low || value > p->high)
            continue;
        const double y = y_of(p, value);
        if (y < line && line - y < (double)FARTHEST)
            above = fmin(above, y - 3);
        else if (y > line && y - line < (double)FARTHEST)
            below = fmax(below, y + 3);
    }
    const bool room_above = above - (double)GAP - (double)ASCENT >= p->top,
               room_below = below + (double)GAP + (double)ASCENT <= bottom;
    const bool up = room_above && (!room_below || line - above <= below - line);
    return up ? above - (double)GAP : fmin(below + (double)GAP + (double)ASCENT, bottom - 2);
}

static void put_levels(const panel *p)
{
    enum { LABEL = 70 };
    for (size_t i = 0; i < p->t->n_levels; i++) {
        const sn_trend_level *level = &p->t->levels[i];
        if (level->from >= level->to || level->to > p->t->n_points || !is_shown(level->value))
            continue;
        const double x1 = x_of(p, (double)level->from - 0.5), x2 = x_of(p, (double)level->to - 0.5);
        const bool last = level->to == p->t->n_points;
        put_line(p->w, "level", x1, y_of(p, level->value), x2, y_of(p, level->value));
        if (last || x2 - x1 > (double)LABEL) {
            const double middle = (x1 + x2) / 2;
            open_text(p->w, "ink mark", last ? "start" : "middle", last ? RIGHT + 8 : middle,
                      last ? y_of(p, level->value) + 4
                           : label_y_of(p, level, middle - (double)LABEL / 2.0,
                                        middle + (double)LABEL / 2.0));
            put_value(p, level->value, 1);
            sn_put(p->w, "</text>\n");
        }
    }
}

/* "+5.2 %" with a minus sign as long as the plus. */
static void put_ratio(sn_writer *w, double ratio)
{
    const double percent = (ratio - 1) * 100, size = fabs(percent);
    sn_put(w, percent > 0 ? "\xE2\x96\xB2 +" : "\xE2\x96\xBC \xE2\x88\x92");
    sn_put_fixed(w, size, size < 99.95 ? 1 : 0);
    sn_put(w, " %");
}

static void put_changes(const panel *p)
{
    enum { ROWS = 2, LABEL = 84 };
    double used[ROWS] = {-1e9, -1e9}; /* where the last label of a row ends */
    for (size_t i = 0; i < p->t->n_points; i++) {
        const sn_trend_point *point = &p->t->points[i];
        if (!point->change)
            continue;
        const bool known = point->ratio > 0 && point->ratio < INFINITY;
        const char *side = !known ? "ink" : point->ratio > 1 ? "bad" : "good";
        char class[16] = "cut ";
        const double x = x_of(p, (double)i - 0.5);
        put_line(p->w, strcat(class, side), x, p->top - 4, x, p->top + (double)PLOT);
        const double middle = fmin(fmax(x, LEFT + LABEL / 2), RIGHT - LABEL / 2);
        for (int row = 0; row < ROWS; row++) {
            if (middle - (double)LABEL / 2.0 < used[row])
                continue;
            used[row] = middle + (double)LABEL / 2.0;
            char label[16] = "mark ";
            open_text(p->w, strcat(label, side), "middle", middle, p->top - 10 - 15 * row);
            if (known)
                put_ratio(p->w, point->ratio);
            else
                sn_put(p->w, "\xE2\x97\x86");
            sn_put(p->w, "</text>\n");
            break;
        }
    }
}

static void put_panel(sn_writer *w, const sn_trend *t, double top)
{
    panel p = {.w = w, .t = t, .top = top + (double)HEAD + (double)BAND};
    open_text(w, "ink title", "start", MARGIN, top + 24);
    put_words(w, t->title && *t->title ? t->title : "Trend");
    sn_put(w, "</text>\n");
    open_text(w, "faint", "start", MARGIN, top + 42);
    put_words(w, t->machine);
    sn_put(w, "</text>\n");
    if (!t->n_points) {
        open_text(w, "faint", "start", LEFT, p.top + PLOT / 2);
        sn_put(w, "There is no entry yet.</text>\n");
        return;
    }
    find_range(&p);
    put_axis(&p);
    put_points(&p);
    put_levels(&p);
    put_changes(&p);
    put_places(&p);
    if (is_joined(t))
        put_stretches(&p);
}

static double height_of(const sn_trend *t)
{
    return PANEL + (is_joined(t) ? STRETCH : 0);
}

sonde_status sn_trend_write_svg(const sn_trend *const *trends, size_t n, sn_sink *sink,
                                sonde_error *err)
{
    sn_writer w;
    double height = LEGEND, top = 0;
    for (size_t i = 0; i < n; i++)
        height += height_of(trends[i]);
    sn_writer_init(&w, sink);
    sn_put(&w, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"800\" height=\"");
    sn_put_fixed(&w, height, 0);
    sn_put(&w, "\" viewBox=\"0 0 800 ");
    sn_put_fixed(&w, height, 0);
    sn_put(&w, "\">\n<title>");
    put_words(&w, n == 1 && trends[0]->title ? trends[0]->title : "Trends");
    sn_put(&w, "</title>\n<style>");
    sn_put(&w, style);
    sn_put(&w, "</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
    for (size_t i = 0; i < n; i++) {
        put_panel(&w, trends[i], top);
        top += height_of(trends[i]);
    }
    open_text(&w, "faint", "start", MARGIN, height - 10);
    sn_put(&w,
           "Points: medians with 95 % intervals. Lines: levels. \xE2\x96\xB2 slower, \xE2\x96\xBC "
           "faster by more than noise.</text>\n</svg>\n");
    return sn_writer_finish(&w, err);
}
