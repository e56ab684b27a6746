/* SPDX-License-Identifier: Apache-2.0 */
/* What sonde quantize tells at its end: what was quantised, what not and why, sizes, agreement with
 * the float model, and whether it pays on this machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantize.h"

/* Nodes of one type with the same fate. */
typedef struct fate {
    sonde_quantized_row row;
    size_t nodes;
    uint64_t before, after;
} fate;

typedef struct fates {
    fate *list;
    size_t n;
} fates;

static bool same(const fate *f, const sonde_quantized_row *r)
{
    return strcmp(f->row.op_type, r->op_type) == 0 && strcmp(f->row.made, r->made) == 0 &&
           strcmp(f->row.why, r->why) == 0;
}

static int by_made(const void *a, const void *b)
{
    const fate *x = a, *y = b;
    const bool fx = strcmp(x->row.made, "float") == 0, fy = strcmp(y->row.made, "float") == 0;
    if (fx != fy)
        return fx - fy;
    if (x->before != y->before)
        return x->before > y->before ? -1 : 1;
    if (x->nodes != y->nodes)
        return x->nodes > y->nodes ? -1 : 1;
    const int by_type = strcmp(x->row.op_type, y->row.op_type);
    return by_type ? by_type : strcmp(x->row.why, y->row.why);
}

static int collect(const sonde_quantized *made, fates *all)
{
    for (size_t i = 0; i < sonde_quantized_count(made); i++) {
        sonde_quantized_row r = SONDE_INIT(sonde_quantized_row);
        sonde_error err;
        if (sonde_quantized_row_get(made, i, &r, &err))
            return fail("%s", err.message);
        size_t k = 0;
        while (k < all->n && !same(&all->list[k], &r))
            k++;
        if (k == all->n) {
            all->list = grow(all->list, all->n, sizeof *all->list);
            all->list[all->n++] = (fate){.row = r};
        }
        all->list[k].nodes++;
        all->list[k].before += r.bytes_before;
        all->list[k].after += r.bytes_after;
    }
    qsort(all->list, all->n, sizeof *all->list, by_made);
    return EXIT_OK;
}

static void print_fates(const fates *all)
{
    int width = 0;
    for (size_t i = 0; i < all->n; i++)
        if ((int)strlen(all->list[i].row.op_type) > width)
            width = (int)strlen(all->list[i].row.op_type);
    printf("%-*s  %5s  %-5s  %10s  %10s\n", width, "", "nodes", "made", "before", "after");
    for (size_t i = 0; i < all->n; i++) {
        const fate *f = &all->list[i];
        char *type = printable(f->row.op_type);
        printf("%-*s  %5zu  %s", width, type, f->nodes, f->row.made);
        const int gap = 5 - (int)strlen(f->row.made);
        if (f->before)
            printf("%*s  %10s  %10s", gap, "", bytes_text(f->before), bytes_text(f->after));
        else if (*f->row.why)
            printf("%*s  %22s", gap, "", "");
        printf("%s%s\n", *f->row.why ? "  " : "", f->row.why);
        free(type);
    }
}

static int print_nodes(const sonde_quantized *made)
{
    for (size_t i = 0; i < sonde_quantized_count(made); i++) {
        sonde_quantized_row r = SONDE_INIT(sonde_quantized_row);
        sonde_error err;
        if (sonde_quantized_row_get(made, i, &r, &err))
            return fail("%s", err.message);
        char *name = printable(r.node), *type = printable(r.op_type);
        printf("%-5s  %-20s  %s", r.made, type, name);
        if (*r.weight_shape)
            printf("  [%s] %s, weights %.1f dB", r.weight_shape, r.why, r.weight_sqnr_db);
        else if (*r.why)
            printf("  %s", r.why);
        printf("\n");
        free(name);
        free(type);
    }
    printf("\n");
    return EXIT_OK;
}

static void print_speed(const sonde_quantized_speed *s)
{
    const double ratio = s->after_ms > 0 ? s->before_ms / s->after_ms : 0;
    if (!s->runs)
        return;
    printf("on this machine: before %s, after %s", time_text(s->before_ms), time_text(s->after_ms));
    if (ratio >= 1.05)
        printf(": %.2f times as fast\n", ratio);
    else if (ratio > 0.95)
        printf(": about as fast; it pays in size only\n");
    else
        printf(": %.2f times as slow; it does not pay in time here\n", 1 / ratio);
}

static void print_summary(const quantize_options *o, const sonde_quantized_info *i,
                          const sonde_quantized_speed *speed)
{
    printf("\n%zu of %zu products and convolutions quantised; constants %s, before %s (%.0f %%)\n",
           i->products_quantized, i->products, bytes_text(i->weight_bytes_after),
           bytes_text(i->weight_bytes_before),
           i->weight_bytes_before
               ? 100.0 * (double)i->weight_bytes_after / (double)i->weight_bytes_before
               : 100.0);
    if (i->opset_after != i->opset_before)
        printf("opset raised from %lld to %lld\n", (long long)i->opset_before,
               (long long)i->opset_after);
    if (i->widened)
        printf(
            "the model computed in f16; what stays in float is f32 now, inputs and outputs are as "
            "before\n");
    if (o->equalize)
        printf("%zu pairs of layers equalised\n", i->equalized);
    if (i->left_for_goal)
        printf("%zu layer%s left in float for the goal of %g dB\n", i->left_for_goal,
               i->left_for_goal == 1 ? "" : "s", i->goal_db);
    if (i->body_products > i->body_products_quantized)
        printf("%zu of %zu products in bodies of Loop, If or Scan stay in float%s\n",
               i->body_products - i->body_products_quantized, i->body_products,
               o->dynamic || o->weights_only
                   ? ""
                   : ": nothing is calibrated there; --dynamic and --weights-only quantise them");
    if (isinf(i->sqnr_db)) {
        printf("%zu samples: %s", i->samples,
               i->sqnr_db > 0
                   ? "outputs are equal"
                   : "the outputs of the quantised model are not finite, or should be 0");
    } else if (!isnan(i->sqnr_db)) {
        printf("%zu samples: outputs agree to %.1f dB SQNR", i->samples, i->sqnr_db);
    }
    if (!isnan(i->sqnr_db)) {
        if (!isnan(i->top1_agreement))
            printf(", the largest score is the same in %.1f %%", 100 * i->top1_agreement);
        printf("\n");
    }
    print_speed(speed);
}

/* ------------------------------------------------------------------ JSON */
static void add_number(text *t, const char *name, double x)
{
    if (isfinite(x))
        text_add(t, ",\"%s\":%.6g", name, x);
    else
        text_add(t, ",\"%s\":null", name);
}

static void add_row(text *t, const sonde_quantized_row *r, bool first)
{
    text_add(t, "%s{\"node\":", first ? "" : ",");
    text_json(t, r->node);
    text_add(t, ",\"op_type\":");
    text_json(t, r->op_type);
    text_add(t, ",\"made\":\"%s\",\"why\":", r->made);
    text_json(t, r->why);
    text_add(t, ",\"weight_shape\":\"%s\",\"bytes_before\":%llu,\"bytes_after\":%llu",
             r->weight_shape, (unsigned long long)r->bytes_before,
             (unsigned long long)r->bytes_after);
    add_number(t, "weight_sqnr_db", r->weight_sqnr_db);
    text_add(t, "}");
}

static int write_json(const quantize_options *o, const sonde_quantized *made,
                      const sonde_quantized_info *i, const sonde_quantized_speed *speed,
                      size_t skipped)
{
    text t = {.n = 0};
    text_add(&t, "{\"schema\":\"sonde.quantize/1\",\"model\":");
    text_json(&t, o->setup.common.rest.items[0]);
    text_add(&t, ",\"output\":");
    text_json(&t, o->output);
    text_add(&t, ",\"kind\":\"%s\"",
             o->dynamic        ? "dynamic"
             : o->weights_only ? "weights"
                               : "static");
    text_add(&t, ",\"products\":%zu,\"products_quantized\":%zu,\"nodes_quantized\":%zu",
             i->products, i->products_quantized, i->nodes_quantized);
    text_add(&t, ",\"weight_bytes_before\":%llu,\"weight_bytes_after\":%llu",
             (unsigned long long)i->weight_bytes_before, (unsigned long long)i->weight_bytes_after);
    text_add(&t, ",\"opset_before\":%lld,\"opset_after\":%lld,\"equalized\":%zu,\"samples\":%zu",
             (long long)i->opset_before, (long long)i->opset_after, i->equalized, i->samples);
    text_add(&t, ",\"skipped\":%zu", skipped);
    add_number(&t, "sqnr_db", i->sqnr_db);
    add_number(&t, "top1_agreement", i->top1_agreement);
    text_add(&t, ",\"goal_missed\":%s,\"left_for_goal\":%zu", i->goal_missed ? "true" : "false",
             i->left_for_goal);
    text_add(&t, ",\"widened\":%s", i->widened ? "true" : "false");
    text_add(&t, ",\"body_products\":%zu,\"body_products_quantized\":%zu", i->body_products,
             i->body_products_quantized);
    add_number(&t, "before_ms", speed->runs ? speed->before_ms : (double)NAN);
    add_number(&t, "after_ms", speed->runs ? speed->after_ms : (double)NAN);
    text_add(&t, ",\"nodes\":[");
    int code = EXIT_OK;
    for (size_t k = 0; k < sonde_quantized_count(made) && !code; k++) {
        sonde_quantized_row r = SONDE_INIT(sonde_quantized_row);
        sonde_error err;
        if (sonde_quantized_row_get(made, k, &r, &err))
            code = fail("%s", err.message);
        else
            add_row(&t, &r, k == 0);
    }
    text_add(&t, "]}\n");
    if (!code)
        code = write_text(o->json, t.data, t.n);
    text_free(&t);
    return code;
}

int quantize_show(const quantize_options *o, const sonde_quantized *made,
                  const sonde_quantized_info *info, const sonde_quantized_speed *speed,
                  size_t skipped)
{
    const bool json_only = o->json && strcmp(o->json, "-") == 0;
    int code = EXIT_OK;
    if (!o->setup.common.quiet && !json_only) {
        fates all = {.n = 0};
        if (o->setup.common.verbose)
            code = print_nodes(made);
        if (!code)
            code = collect(made, &all);
        if (!code) {
            print_fates(&all);
            print_summary(o, info, speed);
            print_skipped(skipped, 0, "files");
        }
        free(all.list);
    }
    return !code && o->json ? write_json(o, made, info, speed, skipped) : code;
}
