/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of kernel families share. Every row of kernels.inc is compared with row 0 of its
 * slot, the plain C reference: sizes around the vector length, arrays against guard pages on both
 * sides (which also misaligns them), in place where that is allowed, and the special values of
 * floats. */
#ifndef SONDE_TESTS_KERNELS_ROWS_H
#define SONDE_TESTS_KERNELS_ROWS_H

#include <float.h>
#include <math.h>

#include "guard.h"
#include "kernels/kernels.h"

static inline size_t rnd(size_t lo, size_t hi) /* both included */
{
    return lo + test_rand() % (hi - lo + 1);
}

/* The largest numbers come last: where sums overflow depends on their order, so kernels that add
 * are tested without them. */
static const float specials[] = {0.0f,    -0.0f,   INFINITY, -INFINITY, NAN,      FLT_MIN,
                                 1e-40f,  -1e-42f, -FLT_MIN, 1.0f,      -1.0f,    88.5f,
                                 -104.0f, 0.5f,    2.5f,     -7.0f,     -FLT_MAX, FLT_MAX};
enum { NONE = 0, SMALL = 16, ALL = 18 }; /* how many of them take part */

static inline void fill(float *p, size_t n, unsigned n_specials)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = test_randf() * (test_rand() % 4 ? 1.0f : 8.0f);
        if (n_specials && test_rand() % 4 == 0)
            p[i] = specials[test_rand() % n_specials];
    }
}

/* Equal up to `ulp` units in the last place of `scale` (or of the reference, when larger). */
static inline bool close_to(float got, float want, double ulp, double scale)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (got == want)
        return true;
    if (isinf(want) || isinf(got))
        return false;
    const double top = fmax(fabs((double)want), isfinite(scale) ? scale : 0.0);
    return fabs((double)got - (double)want) <= ulp * fmax(top * 0x1p-23, 0x1p-149);
}

static inline bool same(const char *what, const sn_kernel_row *row, const char *info,
                        const float *got, const float *want, const float *scale, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!close_to(got[i], want[i], row->ulp, scale ? (double)scale[i] : 0.0)) {
            fprintf(stderr, "%s %s %s: element %zu is %.9g, expected %.9g\n", row->name, what, info,
                    i, (double)got[i], (double)want[i]);
            test_errors++;
            return false;
        }
    }
    return true;
}

static inline const sn_kernel_row *reference_of(const sn_kernel_row *row)
{
    for (size_t k = 0;; k++) {
        const sn_kernel_row *r = sn_kernel_row_get(k);
        if (!r || r->slot == row->slot)
            return r;
    }
}

typedef struct row_checker {
    const char *signature;
    void (*check)(const sn_kernel_row *row, const sn_kernel_row *ref);
} row_checker;

/* The rows of one signature that this CPU can run; the others are reported as skipped. */
static inline void check_rows(const row_checker *c)
{
    sn_cpu cpu;
    int compared = 0;
    CHECK(sn_cpu_detect(&cpu, NULL, NULL) == SONDE_OK);
    if (cpu.found & SN_CPU_BF16)
        cpu.found |= SN_CPU_DPBF16; /* the same instructions, faster */
    for (size_t k = 0; sn_kernel_row_get(k); k++) {
        const sn_kernel_row *row = sn_kernel_row_get(k);
        if (strcmp(row->slot->signature, c->signature) != 0)
            continue;
        if ((row->flags & ~cpu.found) || ((row->flags & SN_CPU_AMX) && !sn_cpu_request_amx())) {
            test_skip("%s: not on this CPU", row->name);
            continue;
        }
        const int before = test_errors;
        test_errors = 0; /* checkers stop at the first error */
        c->check(row, reference_of(row));
        test_errors += before;
        compared++;
    }
    printf("%s: %d rows compared\n", c->signature, compared);
}

/* All rows of the family; it must have a checker for each of its signatures. */
static inline void check_family(const char *family, const row_checker *checkers)
{
    static const char *const listed[][2] = {
#define KERNEL_FAMILY(name, signature) {#name, #signature},
#include "families.inc"
#undef KERNEL_FAMILY
    };
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++) {
        if (strcmp(listed[i][0], family) != 0)
            continue;
        const row_checker *c = checkers;
        while (c->signature && strcmp(c->signature, listed[i][1]) != 0)
            c++;
        CHECK_MSG(c->signature, "no checker for %s", listed[i][1]);
        check_rows(c);
    }
}

#endif
