/* SPDX-License-Identifier: Apache-2.0 */
/* A running product of bytes (q8.h), and what its sums become. The two ways to compute them
 * (q8_pointers.c, q8_lines.c) hand over a few rows at a time. */
#ifndef SN_COMPUTE_Q8_RESULT_H
#define SN_COMPUTE_Q8_RESULT_H

#include "compute/q8.h"

typedef struct sn_q8_call {
    const sn_q8_plan *p;
    const sn_q8_args *a;
    const uint8_t *weights; /* packed */
    const int32_t *column_sums;
    int32_t *start;
    float *factor;
    uint8_t outside; /* the zero point, as x has it: what pixels outside of the image are */
    int32_t x_shift, w_shift; /* what the numbers of kernels are smaller by */
    bool w_zeros;             /* some zero point of the weights counts */
    bool row_numbers; /* rows have zero points, scales or biases of their own, or w_zero counts */
    bool wide;        /* int32 may not hold a sum */
    int64_t unsure;   /* wide: how large a bias may be for int32 to hold the sum; -1: none */
    const int64_t *wide_sums;
    bool plain_bytes;   /* the result is bytes, and no row is different from the others */
    bool plain_floats;  /* the same of f32 */
    bool small_factors; /* plain bytes, factors below 1: a kernel may store them itself */
    float lo, hi;
    _Atomic bool cancelled;
} sn_q8_call;

/* Everything of a run but its sums; `weights` are packed. */
void sn_q8_prepare(sn_q8_call *c, const sn_q8_plan *p, const sn_q8_args *a, const uint8_t *weights);
/* Is the run to be stopped? */
bool sn_q8_cancelled(sn_q8_call *c);

/* Which matrix of x or w a batch uses. */
int64_t sn_q8_matrix_of(const sn_q8_desc *d, const int64_t *steps, int64_t batch);

/* Sums of rows row … row+rows-1 of an image, of columns first … first+n-1 of group (or matrix)
 * `group`. */
typedef struct sn_q8_sums {
    int64_t image, row, rows;
    int64_t group, first, n;
    int32_t *sums; /* may be changed */
    int64_t sums_row;
    const int64_t *wide; /* sums of all parts without zero points and biases, as `sums` lie; NULL:
                            they are of one part, and complete but for what int32 lost */
    float *factors;      /* room for n */
    /* Where row r reads tap k: taps[k*taps_step + r] + x_at, and behind it the `along` taps that
     * follow; 0: none. Only asked if c->w_zeros. */
    const uint8_t *const *taps;
    int64_t taps_step, x_at, along;
} sn_q8_sums;
/* What they become, if int32 holds them. */
void sn_q8_store_sums(const sn_q8_call *c, const sn_q8_sums *s);
/* What they become. */
void sn_q8_finish(const sn_q8_call *c, const sn_q8_sums *s);

/* The zero points of column o of matrix (or of all channels) m, and of a row of all matrices of x,
 * as kernels take them; the scale of a column. */
int32_t sn_q8_w_zero(const sn_q8_call *c, int64_t m, int64_t o);
int32_t sn_q8_x_zero(const sn_q8_call *c, int64_t row);
/* The sum of row r's numbers that column o (of its merged group) is made of. */
int64_t sn_q8_row_sum(const sn_q8_call *c, const sn_q8_sums *s, int64_t r, int64_t o);
/* What the sums of row r are multiplied by; in s->factors where it has a scale of its own. */
const float *sn_q8_row_factors(const sn_q8_call *c, const sn_q8_sums *s, int64_t r);

/* ---- sums that int32 may not hold (q8_wide.c) */
/* Finds out whether there may be such; behind sn_q8_prepare. */
void sn_q8_wide_prepare(sn_q8_call *c);
/* The sums of a part, rows of n columns of which the kernel began with `start`, to all parts'. */
void sn_q8_wide_join(int64_t *wide, const int32_t *sums, const int32_t *start, int64_t sums_row,
                     int64_t rows, int64_t n, bool first);

#endif
