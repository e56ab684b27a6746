/* SPDX-License-Identifier: Apache-2.0 */
/* Two operands of which one is a short row repeated along the other: a gate per channel times a
 * blocked image, a bias added to the rows of a narrow matrix. Row by row that is a call for a
 * vector or two, so the row is laid out several times in a small buffer and long runs go at once.
 */
#include <string.h>

#include "compute/eltwise_loops.h"

enum { BUFFER_BYTES = 4096, LONGEST = 64 }; /* elements of a row worth repeating */

typedef struct repeat_job {
    const sn_elt *e;
    const sn_bcast *b;
    const void *params;
    uint8_t *y;
    const uint8_t *whole, *part; /* the operand that is dense over a run, the one that repeats */
    int at;                      /* which operand repeats: 0 or 1 */
    size_t row, run;             /* elements of a row, of all rows it is repeated along */
} repeat_job;

/* Offsets of both operands where run `index` begins. */
static void run_start(const repeat_job *j, size_t index, ptrdiff_t *whole, ptrdiff_t *part)
{
    const sn_bcast *b = j->b;
    *whole = *part = 0;
    for (int i = b->rank - 3; i >= 0; i--) {
        const ptrdiff_t at = (ptrdiff_t)(index % (size_t)b->dims[i]);
        index /= (size_t)b->dims[i];
        *whole += at * b->stride[1 - j->at][i];
        *part += at * b->stride[j->at][i];
    }
}

static void repeat_range(void *arg, size_t lo, size_t hi)
{
    const repeat_job *j = arg;
    const sn_elt *e = j->e;
    const size_t bytes = e->in_bytes, row_bytes = j->row * bytes;
    const size_t cap = BUFFER_BYTES / row_bytes * j->row; /* elements: whole rows */
    _Alignas(64) uint8_t buffer[BUFFER_BYTES];            /* of elements */
    for (size_t i = lo; i < hi;) {
        const size_t in_run = i % j->run, phase = i % j->row;
        const size_t left = j->run - in_run < hi - i ? j->run - in_run : hi - i;
        const size_t fill = left < cap ? left : cap;
        ptrdiff_t whole, part;
        run_start(j, i / j->run, &whole, &part);
        /* Once from the phase on, then doubling: position k holds element (phase + k) % row. */
        const uint8_t *row = j->part + part * (ptrdiff_t)bytes;
        memcpy(buffer, row + phase * bytes, row_bytes - phase * bytes);
        memcpy(buffer + row_bytes - phase * bytes, row, phase * bytes);
        for (size_t have = row_bytes; have < fill * bytes; have *= 2)
            memcpy(buffer + have, buffer, have < BUFFER_BYTES - have ? have : BUFFER_BYTES - have);
        for (size_t end = i + left; i < end;) {
            const size_t n = end - i < cap ? end - i : cap;
            const uint8_t *x = j->whole + (whole + (ptrdiff_t)(i % j->run)) * (ptrdiff_t)bytes;
            const uint8_t *a = j->at == 0 ? buffer : x, *b = j->at == 0 ? x : buffer;
            if (e->f32_binary)
                e->f32_binary((float *)(void *)(j->y + i * e->out_bytes),
                              (const float *)(const void *)a, (const float *)(const void *)b, n,
                              SN_BINARY_VV);
            else
                e->fn(j->y + i * e->out_bytes, a, b, n, SN_BINARY_VV, j->params);
            i += n;
        }
    }
}

bool sn_repeat_run(const sn_elt *e, const sn_bcast *b, void *y, const void *pa, const void *pb,
                   const void *params, sn_pool *pool)
{
    const int r = b->rank;
    if (r < 2 || e->via || b->dims[r - 1] > LONGEST || b->dims[r - 1] * e->in_bytes > BUFFER_BYTES)
        return false;
    const int64_t row = b->dims[r - 1];
    for (int k = 0; k < 2; k++) {
        if (b->stride[k][r - 1] != 1 || b->stride[1 - k][r - 1] != 1 || b->stride[k][r - 2] != 0 ||
            b->stride[1 - k][r - 2] != row)
            continue;
        repeat_job j = {.e = e,
                        .b = b,
                        .params = params,
                        .y = y,
                        .whole = k == 0 ? pb : pa,
                        .part = k == 0 ? pa : pb,
                        .at = k,
                        .row = (size_t)row,
                        .run = (size_t)(row * b->dims[r - 2])};
        sn_parallel_range(pool, b->total, e->cost, repeat_range, &j);
        return true;
    }
    return false;
}
