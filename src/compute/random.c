/* SPDX-License-Identifier: Apache-2.0 */
/* Two generators and what is made of their numbers, one after the other: the order is the result.
 */
#include "compute/random.h"

#include <math.h>

#include "base/random.h"

/* ------------------------------------------------------------------ splitmix64 */
typedef struct splitmix {
    uint64_t s;
} splitmix;

static uint64_t next_bits(splitmix *r)
{
    return sn_mix64(r->s += SN_MIX64_STEP);
}

/* In [0, 1). */
static double next_uniform(splitmix *r)
{
    return (double)(next_bits(r) >> 11) * 0x1p-53;
}

static splitmix start(uint64_t seed)
{
    splitmix r = {seed};
    next_bits(&r);
    return r;
}

void sn_random_uniform(uint64_t seed, double low, double high, sn_elems y, int64_t n)
{
    splitmix r = start(seed);
    const double width = high - low;
    for (int64_t i = 0; i < n; i++)
        sn_elem_set_f64(y.dtype, y.data, i, low + width * next_uniform(&r));
}

/* Box and Muller's transform, one of its two numbers at a time. */
void sn_random_normal(uint64_t seed, double mean, double scale, sn_elems y, int64_t n)
{
    splitmix r = start(seed);
    for (int64_t i = 0; i < n; i++) {
        const double radius = sqrt(-2 * log(1 - next_uniform(&r))),
                     angle = 6.283185307179586 * next_uniform(&r);
        sn_elem_set_f64(y.dtype, y.data, i, mean + scale * radius * cos(angle));
    }
}

void sn_random_bernoulli(uint64_t seed, sn_elems y, sn_elems x, int64_t n)
{
    splitmix r = start(seed);
    for (int64_t i = 0; i < n; i++)
        sn_elem_set_f64(y.dtype, y.data, i,
                        next_uniform(&r) < sn_elem_f64(x.dtype, x.data, i) ? 1 : 0);
}

/* A sample is where the running sum passes a random part of the whole. */
void sn_random_multinomial(uint64_t seed, sn_elems y, sn_elems x, int64_t rows, int64_t classes,
                           int64_t samples)
{
    splitmix r = start(seed);
    for (int64_t b = 0; b < rows; b++) {
        double top = -INFINITY, sum = 0;
        for (int64_t c = 0; c < classes; c++)
            top = fmax(top, sn_elem_f64(x.dtype, x.data, b * classes + c));
        for (int64_t c = 0; c < classes; c++)
            sum += exp(sn_elem_f64(x.dtype, x.data, b * classes + c) - top);
        for (int64_t k = 0; k < samples; k++) {
            double left = next_uniform(&r) * sum;
            int64_t c = 0;
            for (; c + 1 < classes; c++) {
                left -= exp(sn_elem_f64(x.dtype, x.data, b * classes + c) - top);
                if (left < 0)
                    break;
            }
            sn_elem_set_f64(y.dtype, y.data, b * samples + k, (double)c);
        }
    }
}

/* ------------------------------------------------------------------ Mersenne Twister */
/* Matsumoto and Nishimura's MT19937. */
enum { TWISTER_N = 624, TWISTER_M = 397 };

typedef struct twister {
    uint32_t state[TWISTER_N];
    int at;
} twister;

static void twister_seed(twister *t, uint32_t seed)
{
    t->state[0] = seed;
    for (uint32_t i = 1; i < TWISTER_N; i++)
        t->state[i] = 1812433253u * (t->state[i - 1] ^ (t->state[i - 1] >> 30)) + i;
    t->at = TWISTER_N;
}

static uint32_t twister_next(twister *t)
{
    if (t->at == TWISTER_N) {
        for (int i = 0; i < TWISTER_N; i++) {
            uint32_t y =
                (t->state[i] & 0x80000000u) | (t->state[(i + 1) % TWISTER_N] & 0x7fffffffu);
            t->state[i] =
                t->state[(i + TWISTER_M) % TWISTER_N] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        t->at = 0;
    }
    uint32_t y = t->state[t->at++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

/* In [0, 1), 53 bits. */
static double twister_real(twister *t)
{
    uint32_t a = twister_next(t) >> 5, b = twister_next(t) >> 6;
    return ((double)a * 67108864.0 + (double)b) / 9007199254740992.0;
}

void sn_dropout_run(uint32_t seed, double ratio, sn_elems y, sn_elems x, uint8_t *mask, int64_t n)
{
    twister t;
    twister_seed(&t, seed);
    for (int64_t i = 0; i < n; i++) {
        const bool keep = twister_real(&t) >= ratio;
        if (y.data)
            sn_elem_set_f64(y.dtype, y.data, i,
                            keep ? sn_elem_f64(x.dtype, x.data, i) * (1 / (1 - ratio)) : 0);
        if (mask)
            mask[i] = keep;
    }
}
