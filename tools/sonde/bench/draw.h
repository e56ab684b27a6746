/* SPDX-License-Identifier: Apache-2.0 */
/* What plots are made of: shapes and words of an SVG drawing, and scales with round numbers. A
 * drawing grows downwards, panel after panel; its height is known at the end. */
#ifndef SONDE_BENCH_DRAW_H
#define SONDE_BENCH_DRAW_H

#include "bench/bench.h"
#include "tool.h"

enum { DRAW_WIDTH = 760, DRAW_MARGIN = 24, DRAW_ROOM_FOR_VALUES = 128 };

typedef struct drawing {
    text body;
    double y; /* the next panel begins here */
} drawing;

/* ---- draw.c ---- */
/* Styles are classes of the drawing: "title", "note", "label", "value", "tick", "grid", "axis" … */
void draw_rect(drawing *d, double x, double y, double w, double h, const char *color);
void draw_line(drawing *d, double x0, double y0, double x1, double y1, const char *style);
/* `anchor`: "start", "middle", "end". Characters a drawing may not have are left out. */
void draw_text(drawing *d, double x, double y, const char *style, const char *anchor,
               const char *words);
/* As wide as the words will be, about, in a sans-serif font of `size` px. */
double draw_width(const char *words, double size);
/* `words` cut to `width` with an ellipsis, in one static buffer. */
const char *draw_fitted(const char *words, double width, double size);
/* The title of a panel and what it shows, in a line below. */
void draw_heading(drawing *d, const char *title, const char *note);
/* The whole file, from malloc; frees the drawing's own memory. */
char *draw_finish(drawing *d, const char *title);

/* A runtime's color: the same in all panels. */
const char *draw_color(const bench_results *r, const bench_result *of);

/* ---- scale.c ---- */
typedef struct scale {
    double low, high, step; /* values; both ends are multiples of the step */
    double from, to;        /* where they lie in the drawing */
} scale;
/* Ends and steps of round numbers around low…high with about `ticks` of them. */
scale scale_make(double low, double high, double from, double to, int ticks);
double scale_at(const scale *s, double value);
/* The value at a tick with the decimals its step needs, in one of a few static buffers. */
const char *scale_tick(const scale *s, double value);
/* Three digits that matter: "8.61", "19.2", "1234"; in one of a few static buffers. */
const char *short_number(double value);
/* The scale below a panel, with lines up to `top` at every tick and its unit. */
void draw_scale(drawing *d, const scale *s, double top, double bottom, const char *name);

shown_unit unit_of_bytes(double largest_bytes);

/* ---- the panels ---- */
/* "regnet_x_400mf, 2 threads, batch 8": what a table's rows have in common. In a static buffer. */
const char *plot_table_name(const bench_result *first);
/* The quantile q of a series by linear interpolation; 0 when it is empty. */
double plot_quantile(const bench_series *s, double q);
void plot_bars(drawing *d, const bench_results *r);    /* plot_bars.c */
void plot_program(drawing *d, const bench_results *r); /* plot_bars.c */
void plot_memory(drawing *d, const bench_results *r);  /* plot_bars.c */
void plot_violins(drawing *d, const bench_results *r); /* plot_violins.c */
void plot_scaling(drawing *d, const bench_results *r); /* plot_scaling.c */

#endif
