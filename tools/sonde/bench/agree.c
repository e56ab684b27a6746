/* SPDX-License-Identifier: Apache-2.0 */
/* A fast wrong answer is no answer: every runtime saves its outputs for the same inputs once, and
 * they are compared with those of sonde, or of the first that has any. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/parts.h"
#include "sonde/experimental/compare.h"
#include "sonde/experimental/tensor_file.h"

char *bench_outputs_path(size_t which)
{
    char *name = text_of("outputs_%zu.npz", which), *path = scratch_path(name);
    free(name);
    return path;
}

static sonde_value_set *read_outputs(size_t which, sonde_error *err)
{
    sonde_value_set *set = NULL;
    char *path = bench_outputs_path(which);
    if (access(path, R_OK) != 0)
        snprintf(err->message, sizeof err->message, "the runtime saved no outputs");
    else if (sonde_values_load_with(NULL, path, &unmapped, &set, err))
        set = NULL;
    unlink(path); /* the next table must not find it */
    free(path);
    return set;
}

static double largest_difference(const sonde_value *a, const sonde_value *b)
{
    enum { BATCH = 1024 };
    double x[BATCH], y[BATCH], most = 0;
    size_t n = 0;
    for (int64_t at = 0; (n = sonde_tensor_read(a, at, BATCH, x)) > 0; at += (int64_t)n) {
        if (sonde_tensor_read(b, at, n, y) != n)
            return NAN;
        for (size_t i = 0; i < n; i++) {
            const bool same = x[i] == y[i] || (isnan(x[i]) && isnan(y[i]));
            const double d = same ? 0 : fabs(x[i] - y[i]);
            if (isnan(d))
                return NAN;
            most = d > most ? d : most;
        }
    }
    return most;
}

/* What runtimes that round at other places may differ by: few bits are soon lost, and a quantised
 * number is off by a step where its sum lies between two. */
static void loosen(sonde_dtype dtype, double *rtol, double *atol)
{
    if (dtype == SONDE_DTYPE_F16)
        *rtol = fmax(*rtol, 1e-2);
    else if (dtype == SONDE_DTYPE_BF16)
        *rtol = fmax(*rtol, 5e-2);
    else if (dtype == SONDE_DTYPE_I8 || dtype == SONDE_DTYPE_U8)
        *atol = fmax(*atol, 1);
}

/* Outputs count as equal within rtol of the largest number around, as rounding errors of a sum are
 * as large as its largest term, however small the sum is. */
static bool near(const sonde_value *got, const sonde_value *expected, double rtol, double atol,
                 sonde_error *err)
{
    summary s;
    loosen(sonde_tensor_dtype(expected), &rtol, &atol);
    const double scale = summarize(expected, &s) ? fmax(fabs(s.min), fabs(s.max)) : 0;
    return sonde_value_compare(got, expected, rtol, isfinite(scale) ? atol + rtol * scale : atol,
                               err) == SONDE_OK;
}

static void compare(bench_result *r, const sonde_value_set *got, const sonde_value_set *reference,
                    const tolerances *t)
{
    sonde_error err;
    r->agreement = BENCH_AGREES;
    r->max_difference = 0;
    for (size_t i = 0; i < sonde_value_set_count(reference); i++) {
        const char *name = sonde_value_set_name(reference, i);
        const sonde_value *expected = sonde_value_set_value(reference, i), *value = NULL;
        for (size_t k = 0; k < sonde_value_set_count(got); k++)
            if (strcmp(sonde_value_set_name(got, k), name) == 0)
                value = sonde_value_set_value(got, k);
        if (!value) {
            r->agreement = BENCH_DIFFERS;
            free(r->difference);
            r->difference = text_of("the runtime returned no output '%s'", name);
            r->max_difference = NAN;
            return;
        }
        const double most = largest_difference(value, expected);
        r->max_difference = most > r->max_difference || isnan(most) ? most : r->max_difference;
        if (!near(value, expected, t->rtol, t->atol, &err) && r->agreement == BENCH_AGREES) {
            r->agreement = BENCH_DIFFERS;
            free(r->difference);
            r->difference = text_of("output '%s': %s", name, err.message);
        }
    }
}

/* "difference 1.2e-06": what a program that can only compare by itself has found. */
static bool compared_itself(bench_result *r, double scale, const tolerances *t)
{
    double most = 0;
    if (!r->difference || sscanf(r->difference, "difference %lf", &most) != 1)
        return false;
    free(r->difference);
    r->difference = NULL;
    r->max_difference = most;
    r->agreement = most <= t->atol + 2 * t->rtol * scale ? BENCH_AGREES : BENCH_DIFFERS;
    return true;
}

/* The largest number among the outputs. */
static double scale_of(const sonde_value_set *set)
{
    double most = 0;
    summary s;
    for (size_t i = 0; i < sonde_value_set_count(set); i++)
        if (summarize(sonde_value_set_value(set, i), &s))
            most = fmax(most, fmax(fabs(s.min), fabs(s.max)));
    return most;
}

char *bench_reference(const bench_plan *p, size_t which)
{
    char *path = scratch_path("reference.safetensors");
    sonde_value_set *set = NULL;
    sonde_error err;
    for (size_t i = 0; i < which && !set; i++) {
        char *outputs = bench_outputs_path(i);
        if (!p->results[i].state && access(outputs, R_OK) == 0 &&
            sonde_values_load_with(NULL, outputs, &unmapped, &set, &err))
            set = NULL;
        free(outputs);
    }
    const size_t n = set ? sonde_value_set_count(set) : 0;
    const char **names = need(calloc(n + 1, sizeof *names));
    sonde_value **values = need(calloc(n + 1, sizeof(sonde_value *)));
    for (size_t i = 0; i < n; i++) {
        names[i] = sonde_value_set_name(set, i);
        values[i] = sonde_value_set_value(set, i);
    }
    if (!n || sonde_values_save(path, names, values, n, &err)) {
        free(path);
        path = NULL;
    }
    free((void *)names);
    free(values);
    sonde_value_set_release(set);
    return path;
}

void bench_agree(const bench_plan *p)
{
    sonde_value_set *reference = NULL;
    for (size_t i = 0; i < p->all->n; i++) {
        bench_result *r = &p->results[i];
        sonde_error err = {.status = SONDE_OK};
        r->max_difference = NAN;
        if (r->state || (reference && compared_itself(r, scale_of(reference), &p->o->tolerances)))
            continue;
        sonde_value_set *got = read_outputs(i, &err);
        if (!got && !r->difference)
            r->difference = text_of("%s", err.message);
        if (got && reference)
            compare(r, got, reference, &p->o->tolerances);
        if (got && !reference) {
            r->agreement = BENCH_REFERENCE;
            reference = got;
        } else {
            sonde_value_set_release(got);
        }
    }
    sonde_value_set_release(reference);
}
