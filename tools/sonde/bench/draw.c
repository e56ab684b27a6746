/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and words of an SVG drawing. Everything a viewer needs is in the file: no script, no font,
 * no style from elsewhere, so that it looks the same in a browser, a paper and a converter. */
#include <string.h>

#include "bench/draw.h"

/* Colors that people who see fewer of them can tell apart (after Okabe and Ito); sonde's own is the
 * first. */
static const char *const colors[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                     "#56b4e9", "#d55e00", "#7f7f7f", "#b8a400"};
enum { COLORS = sizeof colors / sizeof colors[0] };

static const char style[] =
    "text{font-family:Helvetica,Arial,'Liberation Sans','DejaVu Sans',sans-serif;fill:#222}"
    ".title{font-size:16px;font-weight:bold}"
    ".note{font-size:12px;fill:#555}"
    ".group{font-size:13px;font-weight:bold;fill:#333}"
    ".label{font-size:13px}"
    ".value{font-size:12px}"
    ".absent{font-size:12px;fill:#777;font-style:italic}"
    ".tick{font-size:11px;fill:#555}"
    ".grid{stroke:#e3e3e3;stroke-width:1}"
    ".axis{stroke:#888;stroke-width:1}"
    ".spread{stroke:#222;stroke-width:1.3}"
    ".median{stroke:#fff;stroke-width:2}"
    ".ideal{stroke:#aaa;stroke-width:1.2;stroke-dasharray:5 4}";

void draw_rect(drawing *d, double x, double y, double w, double h, const char *color)
{
    text_add(&d->body, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"/>\n",
             x, y, w > 0 ? w : 0, h, color);
}

void draw_line(drawing *d, double x0, double y0, double x1, double y1, const char *class)
{
    text_add(&d->body, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x0,
             y0, x1, y1, class);
}

static void put_escaped(text *t, const char *words)
{
    for (const char *c = words; *c; c++) {
        if (*c == '<')
            text_add(t, "&lt;");
        else if (*c == '>')
            text_add(t, "&gt;");
        else if (*c == '&')
            text_add(t, "&amp;");
        else if ((unsigned char)*c >= 0x20)
            text_add(t, "%c", *c);
    }
}

void draw_text(drawing *d, double x, double y, const char *class, const char *anchor,
               const char *words)
{
    text_add(&d->body, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y, class,
             anchor);
    put_escaped(&d->body, words);
    text_add(&d->body, "</text>\n");
}

/* Thousandths of the font's size, as the wider ones of the sans-serif fonts have them: which of
 * them a viewer takes is not known. */
static double advance(unsigned char c)
{
    if (c >= 0x80)
        return (c & 0xC0) == 0x80 ? 0 : 640; /* the first byte of a character stands for it */
    if (strchr("iljI|.,:;'!", c))
        return 310;
    if (strchr("frt()[]-/ \"", c))
        return 400;
    if (strchr("mwMW@%", c))
        return 960;
    return c >= 'A' && c <= 'Z' ? 740 : 630;
}

double draw_width(const char *words, double size)
{
    double sum = 0;
    for (const char *c = words; *c; c++)
        sum += advance((unsigned char)*c);
    return sum * size / 1000;
}

const char *draw_fitted(const char *words, double width, double size)
{
    static char buf[512];
    if (draw_width(words, size) <= width && strlen(words) < sizeof buf) {
        snprintf(buf, sizeof buf, "%s", words);
        return buf;
    }
    double left = width - draw_width("\xE2\x80\xA6", size);
    size_t n = 0;
    while (words[n] && n < sizeof buf - 5) {
        left -= advance((unsigned char)words[n]) * size / 1000;
        if (left < 0)
            break;
        n++;
    }
    while (n > 0 && ((unsigned char)words[n] & 0xC0) == 0x80) /* not inside a character */
        n--;
    snprintf(buf, sizeof buf, "%.*s\xE2\x80\xA6", (int)n, words);
    return buf;
}

void draw_heading(drawing *d, const char *title, const char *note)
{
    d->y += 16;
    draw_text(d, DRAW_MARGIN, d->y + 14, "title", "start", title);
    draw_text(d, DRAW_MARGIN, d->y + 33, "note", "start", note);
    d->y += 44;
}

char *draw_finish(drawing *d, const char *title)
{
    text file = {NULL, 0, 0};
    const double height = d->y + (double)DRAW_MARGIN;
    text_add(&file,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
             "viewBox=\"0 0 %d %.0f\" role=\"img\">\n<title>",
             DRAW_WIDTH, height, DRAW_WIDTH, height);
    put_escaped(&file, title);
    text_add(&file,
             "</title>\n<style>%s</style>\n<rect width=\"100%%\" height=\"100%%\" "
             "fill=\"#fff\"/>\n",
             style);
    if (d->body.data)
        text_add(&file, "%s", d->body.data);
    text_add(&file, "</svg>\n");
    text_free(&d->body);
    return file.data;
}

const char *draw_color(const bench_results *r, const bench_result *of)
{
    size_t nth = 0;
    for (size_t i = 0; i < r->n && strcmp(r->items[i].runtime, of->runtime) != 0; i++) {
        bool new = true;
        for (size_t k = 0; k < i && new; k++)
            new = strcmp(r->items[k].runtime, r->items[i].runtime) != 0;
        nth += new;
    }
    return colors[nth % COLORS];
}
