/* SPDX-License-Identifier: Apache-2.0 */
/* Plots of the results, drawn without help from anyone: `x.svg` has all panels, `x.violins.svg` one
 * of them, and a .png is made of the same drawing where a converter is installed. */
#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/draw.h"

extern char **environ;

static const struct {
    const char *name;
    void (*draw)(drawing *d, const bench_results *r);
} panels[] = {
    {"latency", plot_bars},  {"violins", plot_violins}, {"program", plot_program},
    {"memory", plot_memory}, {"scaling", plot_scaling},
};
enum { PANELS = sizeof panels / sizeof panels[0] };

const char *plot_table_name(const bench_result *first)
{
    static char buf[320];
    const char *model = is_zoo(first->model) ? first->model + 4 : first->model;
    int n = snprintf(buf, sizeof buf, "%.200s, %d thread%s", model, first->threads,
                     first->threads == 1 ? "" : "s");
    if (first->batch != 1 && n > 0 && (size_t)n < sizeof buf)
        n += snprintf(buf + n, sizeof buf - (size_t)n, ", batch %lld", (long long)first->batch);
    if (first->instances > 1 && n > 0 && (size_t)n < sizeof buf)
        snprintf(buf + n, sizeof buf - (size_t)n, ", %d instances", first->instances);
    return buf;
}

double plot_quantile(const bench_series *s, double q)
{
    if (s->n == 0)
        return 0;
    double *sorted = need(malloc(s->n * sizeof *sorted));
    memcpy(sorted, s->value, s->n * sizeof *sorted);
    sort_samples(sorted, s->n);
    const double value = percentile(sorted, s->n, q);
    free(sorted);
    return value;
}

/* "runs/x.violins.svg" ► 1; PANELS: no panel is named, all are drawn. */
static size_t named_panel(const char *path)
{
    for (size_t i = 0; i < PANELS; i++)
        for (int k = 0; k < 2; k++) {
            char suffix[40];
            snprintf(suffix, sizeof suffix, ".%s%s", panels[i].name, k ? ".png" : ".svg");
            if (ends_with(path, suffix))
                return i;
        }
    return PANELS;
}

static char *drawn(const bench_results *r, const char *path)
{
    drawing d = {.y = 0};
    const size_t only = named_panel(path);
    for (size_t i = 0; i < PANELS; i++)
        if (only == PANELS || only == i)
            panels[i].draw(&d, r);
    if (d.y == 0) {
        draw_heading(&d, only == PANELS ? "sonde bench" : panels[only].name,
                     "There are no measurements to draw.");
    } else {
        char words[320];
        const bench_machine *m = &r->machine;
        snprintf(words, sizeof words, "%.120s, %d of %d cores, sonde %.20s, %.20s",
                 m->cpu ? m->cpu : "", m->usable_cores, m->cores, m->version ? m->version : "",
                 m->date ? m->date : "");
        d.y += 8;
        draw_text(&d, DRAW_MARGIN, d.y + 12, "tick", "start",
                  draw_fitted(words, DRAW_WIDTH - 2 * DRAW_MARGIN, 11));
        d.y += 14;
    }
    return draw_finish(&d, "sonde bench");
}

/* The exit code of a program given by name, or -1 when it cannot be run. */
static int run_program(char *const *argv)
{
    pid_t pid;
    int status;
    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0)
        return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status) : -1;
}

static int convert(const char *svg, const char *png)
{
    char *const from = (char *)(uintptr_t)svg, *const to = (char *)(uintptr_t)png;
    char *out = text_of("--export-filename=%s", png);
    char *const tries[][8] = {
        {"rsvg-convert", "-z", "2", "-o", to, from, NULL},
        {"resvg", "--zoom", "2", from, to, NULL},
        {"inkscape", "--export-type=png", "--export-dpi=192", out, from, NULL},
        {"magick", "-density", "192", from, to, NULL},
    };
    int code = -1;
    for (size_t i = 0; i < sizeof tries / sizeof tries[0] && code != 0; i++)
        code = run_program(tries[i]);
    free(out);
    if (code == 0)
        return EXIT_OK;
    return fail("cannot write '%s': converting SVG to PNG needs rsvg-convert, resvg, inkscape or "
                "magick; the plot is in '%s'",
                png, svg);
}

int bench_plot(const bench_results *results, const char *path)
{
    char *file = drawn(results, path);
    if (!ends_with(path, ".png")) {
        const int code = write_text(path, file, strlen(file));
        free(file);
        return code;
    }
    char *svg = text_of("%.*s.svg", (int)strlen(path) - 4, path);
    const bool had = is_file(svg);
    int code = write_text(svg, file, strlen(file));
    if (code == EXIT_OK)
        code = convert(svg, path);
    if (code == EXIT_OK && !had)
        (void)remove(svg);
    free(svg);
    free(file);
    return code;
}
