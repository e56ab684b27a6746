/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison on the terminal: the outputs, the first operator over the bound, the operators that
 * add most error, the layers to leave in float; with --all every tensor. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/parts.h"

typedef struct table {
    const sonde_accuracy *accuracy;
    sonde_accuracy_summary summary;
    bool locals; /* a column for errors of operators alone */
    bool layers; /* a column for what layers do to the outputs */
} table;

static sonde_accuracy_tensor row_of(const table *t, int64_t index)
{
    sonde_accuracy_tensor row = SONDE_INIT(sonde_accuracy_tensor);
    (void)sonde_accuracy_tensor_get(t->accuracy, (size_t)index, &row, NULL);
    return row;
}

/* ------------------------------------------------------------------ cells */
static void put_db(double db)
{
    if (isnan(db))
        printf("  %9s", "-");
    else if (isinf(db))
        printf("  %9s", db > 0 ? "equal" : "-inf");
    else
        printf("  %9.1f", db);
}

static double db_of_power(double power)
{
    return power > 0 ? -10 * log10(power) : isnan(power) ? NAN : INFINITY;
}

static void put_error(const sonde_accuracy_tensor *r)
{
    const sonde_accuracy_error *e = &r->error;
    if (r->different || !r->samples) {
        if (r->different)
            printf("  %s in A, %s in B", r->type_a, r->type_b);
        else
            printf("  not compared: %s", r->missing ? "B returns no such value" : "no sample");
        return;
    }
    if (r->exact) {
        printf("  %llu of %llu elements differ", (unsigned long long)e->mismatches,
               (unsigned long long)e->elements);
        return;
    }
    put_db(e->sqnr_db);
    printf("  %9.3g  %9.3g  %9.3g", e->max_abs, e->mean_abs, e->relative);
    if (isnan(e->cosine))
        printf("  %9s", "-");
    else
        printf("  %9.6f", e->cosine);
}

static void put_odd(const sonde_accuracy_error *e)
{
    if (e->nan_a || e->nan_b || e->inf_a || e->inf_b)
        printf("  [NaN %llu/%llu, inf %llu/%llu]", (unsigned long long)e->nan_a,
               (unsigned long long)e->nan_b, (unsigned long long)e->inf_a,
               (unsigned long long)e->inf_b);
}

static void put_row(const table *t, int64_t index, int width, bool node)
{
    const sonde_accuracy_tensor r = row_of(t, index);
    char *name = cell(node ? r.node : r.name, width), *op = cell(r.op_type, 18);
    printf("  %s  %s", name, op);
    free(name);
    free(op);
    const bool compared = r.samples && !r.different;
    if (t->locals && compared)
        put_db(!r.local_known       ? NAN
               : r.local.not_finite ? -INFINITY
               : r.exact            ? (r.local.mismatches ? -INFINITY : INFINITY)
                                    : r.local.sqnr_db);
    if (t->layers && compared)
        put_db(db_of_power(r.at_outputs));
    put_error(&r);
    put_odd(&r.error);
    printf("\n");
}

static void put_titles(const table *t, int width, const char *first)
{
    printf("  %-*s  %-18s", width, first, "operator");
    if (t->locals)
        printf("  %9s", "alone dB");
    if (t->layers)
        printf("  %9s", "output dB");
    printf("  %9s  %9s  %9s  %9s  %9s\n", "SQNR dB", "max", "mean", "relative", "cosine");
}

/* ------------------------------------------------------------------ parts */
static int name_width(const table *t, const int64_t *rows, size_t n, bool node)
{
    int longest = 8;
    for (size_t i = 0; i < n; i++) {
        const sonde_accuracy_tensor r = row_of(t, rows[i]);
        char *name = printable(node ? r.node : r.name);
        const int w = display_width(name);
        longest = w > longest ? w : longest;
        free(name);
    }
    return column_width(longest < 60 ? longest : 60, 24 + 55 + 11 * t->locals + 11 * t->layers);
}

static void put_rows(const table *t, const char *title, const char *first, const int64_t *rows,
                     size_t n, bool node)
{
    const int width = name_width(t, rows, n, node);
    printf("\n%s\n", title);
    put_titles(t, width, first);
    for (size_t i = 0; i < n; i++)
        put_row(t, rows[i], width, node);
}

static void put_heading(const table *t)
{
    const sonde_accuracy_summary *s = &t->summary;
    char *a = printable(s->label_a), *b = printable(s->label_b), *note = printable(s->note);
    printf("A: %s\nB: %s\n", a, b);
    printf("%llu sample%s; %zu tensors in both, %zu only in A%s\n", (unsigned long long)s->samples,
           s->samples == 1 ? "" : "s", s->shared, s->only_a,
           s->complete ? "" : "; interrupted before all were compared");
    if (*note)
        printf("note: %s\n", note);
    free(a);
    free(b);
    free(note);
}

static char *bound_text(const sonde_accuracy_bound *b)
{
    return b->sqnr_db > 0   ? text_of("%g dB", b->sqnr_db)
           : b->max_abs > 0 ? text_of("%g", b->max_abs)
                            : text_of("%g %%", b->relative * 100);
}

static void put_inside(const sonde_accuracy_tensor *r)
{
    if (!*r->inside)
        return;
    char *inside = printable(r->inside);
    printf("  inside: %s\n", inside);
    free(inside);
}

static void put_first(const table *t)
{
    char *bound = bound_text(&t->summary.bound);
    if (t->summary.first < 0) {
        printf("\nno tensor is over the bound of %s\n", bound);
    } else {
        const sonde_accuracy_tensor r = row_of(t, t->summary.first);
        char *name = printable(r.name), *node = printable(r.node);
        printf("\nfirst over the bound of %s: %s '%s', tensor '%s'%s\n", bound, r.op_type, node,
               name, r.control_flow ? " (control flow: the cause may be inside its body)" : "");
        put_inside(&r);
        free(name);
        free(node);
    }
    free(bound);
}

static size_t collect(const table *t, int64_t (*which)(const sonde_accuracy *, size_t), size_t most,
                      int64_t **rows)
{
    size_t n = 0;
    *rows = need(calloc(t->summary.shared + 1, sizeof **rows));
    while (n < most && which(t->accuracy, n) >= 0) {
        (*rows)[n] = which(t->accuracy, n);
        n++;
    }
    return n;
}

static double power_of(const table *t, int64_t index)
{
    const sonde_accuracy_tensor r = row_of(t, index);
    if (!r.local_known)
        return r.added;
    return r.exact || r.local.not_finite ? INFINITY : r.local.relative * r.local.relative;
}

/* What is a millionth of the worst is rounding. */
static void put_worst(const table *t, size_t most)
{
    int64_t *rows;
    size_t n = collect(t, sonde_accuracy_worst, most, &rows);
    double worst = 0;
    for (size_t i = 0; i < n; i++)
        worst = isfinite(power_of(t, rows[i])) ? fmax(worst, power_of(t, rows[i])) : worst;
    while (n && power_of(t, rows[n - 1]) < 1e-6 * worst)
        n--;
    if (n)
        put_rows(t,
                 t->locals ? "operators that add most error (alone: with A's tensors as inputs)"
                           : "operators that add most error",
                 "node", rows, n, true);
    free(rows);
}

/* The largest relative errors first; the same ones as in the files. */
static int by_relative(const void *a, const void *b)
{
    const sonde_accuracy_weight *x = a, *y = b;
    return (x->error.relative < y->error.relative) - (x->error.relative > y->error.relative);
}

static void put_weight(const sonde_accuracy_weight *w)
{
    char *name = printable(w->name), *node = printable(w->node);
    const sonde_accuracy_error *e = &w->error;
    printf("  %s  %s", name, w->type);
    if (*node)
        printf(", of %s '%s'", w->op_type, node);
    if (w->exact || e->not_finite)
        printf(": %llu of %llu elements differ", (unsigned long long)e->mismatches,
               (unsigned long long)e->elements);
    else
        printf(": %.1f dB, largest difference %.3g", e->sqnr_db, e->max_abs);
    printf("\n");
    free(name);
    free(node);
}

static void put_weights(const table *t, size_t most)
{
    const size_t n = t->summary.weights;
    if (!n)
        return;
    sonde_accuracy_weight *all = need(calloc(n, sizeof *all));
    for (size_t i = 0; i < n; i++) {
        all[i].struct_size = sizeof all[i];
        (void)sonde_accuracy_weight_get(t->accuracy, i, &all[i], NULL);
    }
    qsort(all, n, sizeof *all, by_relative);
    printf("\n%zu weight%s\n", n, n == 1 ? " differs:" : "s differ:");
    for (size_t i = 0; i < n && i < most; i++)
        put_weight(&all[i]);
    if (n > most)
        printf("  and %zu more, which --json and --csv name\n", n - most);
    free(all);
}

/* Nothing but rounding, or not even that. */
static void put_agreement(const table *t)
{
    bool equal = true;
    for (size_t i = 0; i < t->summary.shared && equal; i++)
        equal = row_of(t, (int64_t)i).error.mismatches == 0;
    if (t->summary.agree && t->summary.complete)
        printf("\nA and B agree: %s\n",
               equal ? "every tensor is equal" : "they differ by rounding alone");
}

static void put_layers(const table *t)
{
    int64_t *rows;
    const size_t n = collect(t, sonde_accuracy_leave_in_float, SIZE_MAX, &rows);
    if (!t->summary.quantized || !t->layers || !t->summary.complete) {
        free(rows);
        return;
    }
    if (n)
        printf("\nleave in float:\n");
    else
        printf("\nno layer stands out: none is worth leaving in float\n");
    for (size_t i = 0; i < n; i++) {
        const sonde_accuracy_tensor r = row_of(t, rows[i]);
        char *node = printable(r.layer);
        printf("  %s: alone %.1f dB at the outputs\n", node, db_of_power(r.at_outputs));
        free(node);
    }
    free(rows);
}

static void put_outputs(const table *t, bool all)
{
    int64_t *rows = need(calloc(t->summary.shared + 1, sizeof *rows));
    size_t n = 0;
    for (size_t i = 0; i < t->summary.shared; i++)
        if (all || row_of(t, (int64_t)i).output)
            rows[n++] = (int64_t)i;
    if (n)
        put_rows(t, all ? "tensors" : "outputs", "tensor", rows, n, false);
    free(rows);
}

int compare_table(const table_of *what)
{
    table t = {.accuracy = what->accuracy, .summary = SONDE_INIT(sonde_accuracy_summary)};
    sonde_error err;
    if (sonde_accuracy_summary_get(t.accuracy, &t.summary, &err))
        return fail("%s", err.message);
    for (size_t i = 0; i < t.summary.shared; i++) {
        const sonde_accuracy_tensor r = row_of(&t, (int64_t)i);
        t.locals |= r.local_known;
        t.layers |= !isnan(r.at_outputs);
    }
    put_heading(&t);
    put_outputs(&t, what->all);
    put_first(&t);
    put_worst(&t, what->top);
    put_weights(&t, what->top);
    put_layers(&t);
    put_agreement(&t);
    return EXIT_OK;
}
