/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise chains, piece by piece. */
#include "compute/chain.h"

enum { PIECE = 2048 }; /* floats: with an operand beside it, half of a first-level cache */

bool sn_chain_lies(sn_chain_operand *o, const int64_t *out, int out_rank, const int64_t *dims,
                   int rank)
{
    enum { BEHIND, INSIDE, BEFORE } part = BEHIND;
    o->repeat = o->count = 1;
    if (rank > out_rank)
        return false;
    for (int i = 1; i <= rank; i++) { /* from the end */
        const int64_t d = dims[rank - i], want = out[out_rank - i];
        if (want == 1 && d == 1)
            continue;
        if (d == want && part != BEFORE) {
            part = INSIDE;
            o->count *= (size_t)want;
        } else if (d == 1) {
            if (part == INSIDE)
                part = BEFORE;
            if (part == BEHIND)
                o->repeat *= (size_t)want;
        } else {
            return false;
        }
    }
    return true;
}

static void call(const sn_chain_link *l, float *y, const float *a, const float *b, size_t n,
                 bool one)
{
    const int mode = !one ? SN_BINARY_VV : l->swapped ? SN_BINARY_SV : SN_BINARY_VS;
    const float *first = l->swapped ? b : a, *second = l->swapped ? a : b;
    if (l->elt.f32_binary)
        l->elt.f32_binary(y, first, second, n, mode);
    else
        l->elt.fn(y, first, second, n, mode, l->params);
}

/* y[0 … n) = f(a, operand) where y[0] is element `at` of the whole. */
static void apply_binary(const sn_chain_link *l, float *y, const float *a, const float *b,
                         size_t at, size_t n)
{
    const sn_chain_operand *o = &l->lies;
    if (o->count == 1) {
        call(l, y, a, b, n, true);
        return;
    }
    while (n > 0) {
        const size_t k = at / o->repeat % o->count, inside = at % o->repeat;
        size_t m = o->repeat > 1 ? o->repeat - inside : o->count - k;
        m = m < n ? m : n;
        call(l, y, a, b + k, m, o->repeat > 1);
        y += m;
        a += m;
        at += m;
        n -= m;
    }
}

typedef struct job {
    const sn_chain *c;
    float *y;
    const float *x;
    const float *const *operands;
} job;

static void range(void *arg, size_t lo, size_t hi)
{
    const job *j = arg;
    for (size_t at = lo; at < hi; at += PIECE) {
        const size_t n = hi - at < PIECE ? hi - at : PIECE;
        const float *x = j->x + at;
        float *y = j->y + at;
        for (uint32_t i = 0; i < j->c->n; i++, x = y) {
            const sn_chain_link *l = &j->c->links[i];
            if (l->binary)
                apply_binary(l, y, x, j->operands[l->operand], at, n);
            else if (l->elt.f32_unary)
                l->elt.f32_unary(y, x, n, l->params);
            else
                l->elt.fn(y, x, NULL, n, SN_BINARY_VV, l->params);
        }
    }
}

void sn_chain_run(const sn_chain *c, float *y, const float *x, const float *const *operands,
                  sn_pool *pool)
{
    job j = {c, y, x, operands};
    sn_parallel_range(pool, c->total, c->cost, range, &j);
}
