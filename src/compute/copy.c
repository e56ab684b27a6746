/* SPDX-License-Identifier: Apache-2.0 */
/* How a strided copy runs: an odometer over the outer dims, whose innermost loop is one of four
 * (run, strided, fill, transpose) instantiated by element size. Loads and stores go through memcpy
 * of constant size, so nothing is assumed about alignment and one loop serves floats, integers and
 * pairs of them alike. */
#include "compute/copy.h"

#include <string.h>

#define PARALLEL_BYTES ((size_t)256 << 10) /* below this a region costs more than it gives */
#define TILE           16 /* transpose tile edge, in elements: lines of both sides stay in L1 */

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ------------------------------------------------------------------ plan */
static bool widens(int64_t bytes)
{
    return bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

static void drop_dim(sn_copy *c, int k)
{
    for (int i = k; i + 1 < c->rank; i++) {
        c->dims[i] = c->dims[i + 1];
        c->dst[i] = c->dst[i + 1];
        c->src[i] = c->src[i + 1];
    }
    c->rank--;
}

static void choose_inner(sn_copy *c, size_t elem_bytes)
{
    ptrdiff_t elem = (ptrdiff_t)elem_bytes;
    c->elem_bytes = (uint32_t)elem_bytes;
    c->kind = SN_COPY_RUN;
    c->n = elem;
    if (c->rank == 0)
        return;
    int last = c->rank - 1;
    if (c->dst[last] == elem && c->src[last] == elem) {
        c->n = c->dims[last] * elem;
        drop_dim(c, last);
        if (c->rank == 0 || !widens(c->n))
            return;
        /* Short runs are wide elements: the loops below handle them without a call each. */
        elem = (ptrdiff_t)c->n;
        c->elem_bytes = (uint32_t)c->n;
        last = c->rank - 1;
    }
    c->n = c->dims[last];
    c->n_dst = c->dst[last];
    c->n_src = c->src[last];
    c->kind = c->n_src == 0 ? SN_COPY_FILL : SN_COPY_STRIDED;
    if (c->kind == SN_COPY_STRIDED && c->n_dst == elem) {
        for (int j = last - 1; j >= 0; j--) {
            if (c->src[j] != elem)
                continue;
            c->kind = SN_COPY_TRANSPOSE;
            c->m = c->dims[j];
            c->m_dst = c->dst[j];
            c->m_src = c->src[j];
            drop_dim(c, last);
            drop_dim(c, j);
            return;
        }
    }
    drop_dim(c, last);
}

void sn_copy_plan(sn_copy *c, size_t elem_bytes, int rank, const int64_t *dims,
                  const ptrdiff_t *dst_strides, const ptrdiff_t *src_strides)
{
    c->kind = SN_COPY_EMPTY;
    c->rank = 0;
    c->n = c->m = 0;
    c->bytes = 0;
    c->outer = 0;
    c->elem_bytes = (uint32_t)elem_bytes;
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    if (count == 0)
        return;
    c->bytes = (size_t)count * elem_bytes;
    ptrdiff_t elem = (ptrdiff_t)elem_bytes;
    for (int i = 0; i < rank; i++) {
        ptrdiff_t d = dst_strides[i] * elem, s = src_strides[i] * elem;
        int p = c->rank - 1;
        if (dims[i] == 1)
            continue;
        if (p >= 0 && c->dst[p] == d * dims[i] && c->src[p] == s * dims[i]) {
            c->dims[p] *= dims[i];
        } else {
            p = c->rank++;
            c->dims[p] = dims[i];
        }
        c->dst[p] = d;
        c->src[p] = s;
    }
    choose_inner(c, elem_bytes);
    if (c->rank == 0) {
        c->rank = 1;
        c->dims[0] = 1;
        c->dst[0] = c->src[0] = 0;
    }
    c->outer = 1;
    for (int i = 0; i < c->rank; i++)
        c->outer *= c->dims[i];
}

static int size_index(uint32_t elem_bytes)
{
    return elem_bytes == 1   ? 0
           : elem_bytes == 2 ? 1
           : elem_bytes == 4 ? 2
           : elem_bytes == 8 ? 3
                             : 4;
}

const char *sn_copy_name(const sn_copy *c)
{
    static const char *const names[3][5] = {
        {"copy_strided_1b", "copy_strided_2b", "copy_strided_4b", "copy_strided_8b",
         "copy_strided_16b"},
        {"copy_fill_1b", "copy_fill_2b", "copy_fill_4b", "copy_fill_8b", "copy_fill_16b"},
        {"copy_transpose_1b", "copy_transpose_2b", "copy_transpose_4b", "copy_transpose_8b",
         "copy_transpose_16b"}};
    int k = size_index(c->elem_bytes);
    switch (c->kind) {
    case SN_COPY_STRIDED:
        return names[0][k];
    case SN_COPY_FILL:
        return names[1][k];
    case SN_COPY_TRANSPOSE:
        return names[2][k];
    case SN_COPY_RUN:
        return c->outer == 1 ? "copy_contiguous" : "copy_runs";
    case SN_COPY_EMPTY:
        break;
    }
    return "copy_empty";
}

/* ------------------------------------------------------------------ inner loops */
/* dst row i, column j = src row j, column i; rows m of the destination, n of the source. */
#define DEFINE_LOOPS(B)                                                                            \
    static void strided_##B(char *d, const char *s, int64_t n, ptrdiff_t dd, ptrdiff_t ss)         \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++, d += dd, s += ss)                                          \
            memcpy(d, s, B);                                                                       \
    }                                                                                              \
    static void fill_##B(char *d, const char *s, int64_t n, ptrdiff_t dd)                          \
    {                                                                                              \
        char v[B];                                                                                 \
        memcpy(v, s, B);                                                                           \
        if (dd == B)                                                                               \
            for (int64_t i = 0; i < n; i++)                                                        \
                memcpy(d + i * B, v, B);                                                           \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++, d += dd)                                               \
                memcpy(d, v, B);                                                                   \
    }                                                                                              \
    static void tile_##B(char *d, const char *s, int64_t m, int64_t n, ptrdiff_t md, ptrdiff_t ns) \
    {                                                                                              \
        for (int64_t i = 0; i < m; i++)                                                            \
            for (int64_t j = 0; j < n; j++)                                                        \
                memcpy(d + i * md + j * B, s + j * ns + i * B, B);                                 \
    }
DEFINE_LOOPS(1)
DEFINE_LOOPS(2)
DEFINE_LOOPS(4)
DEFINE_LOOPS(8)
DEFINE_LOOPS(16)

/* 4-byte elements, the common case: 4x4 blocks in vector registers, rims one by one. */
typedef uint32_t u32x4 __attribute__((vector_size(16)));

#ifdef __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#endif
#endif
#ifndef SHUFFLE /* gcc before 12 */
#define SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (u32x4){i, j, k, l})
#endif

static void block_4(char *d, const char *s, ptrdiff_t md, ptrdiff_t ns)
{
    u32x4 a, b, c, e;
    memcpy(&a, s, 16);
    memcpy(&b, s + ns, 16);
    memcpy(&c, s + 2 * ns, 16);
    memcpy(&e, s + 3 * ns, 16);
    u32x4 ab0 = SHUFFLE(a, b, 0, 4, 1, 5), ab1 = SHUFFLE(a, b, 2, 6, 3, 7);
    u32x4 ce0 = SHUFFLE(c, e, 0, 4, 1, 5), ce1 = SHUFFLE(c, e, 2, 6, 3, 7);
    u32x4 r0 = SHUFFLE(ab0, ce0, 0, 1, 4, 5), r1 = SHUFFLE(ab0, ce0, 2, 3, 6, 7);
    u32x4 r2 = SHUFFLE(ab1, ce1, 0, 1, 4, 5), r3 = SHUFFLE(ab1, ce1, 2, 3, 6, 7);
    memcpy(d, &r0, 16);
    memcpy(d + md, &r1, 16);
    memcpy(d + 2 * md, &r2, 16);
    memcpy(d + 3 * md, &r3, 16);
}

static void vector_tile_4(char *d, const char *s, int64_t m, int64_t n, ptrdiff_t md, ptrdiff_t ns)
{
    int64_t m4 = m & ~(int64_t)3, n4 = n & ~(int64_t)3;
    for (int64_t i = 0; i < m4; i += 4)
        for (int64_t j = 0; j < n4; j += 4)
            block_4(d + i * md + j * 4, s + j * ns + i * 4, md, ns);
    if (n4 < n)
        tile_4(d + n4 * 4, s + n4 * ns, m4, n - n4, md, ns);
    if (m4 < m)
        tile_4(d + m4 * md, s + m4 * 4, m - m4, n, md, ns);
}

typedef struct copy_loops {
    void (*strided)(char *, const char *, int64_t, ptrdiff_t, ptrdiff_t);
    void (*fill)(char *, const char *, int64_t, ptrdiff_t);
    void (*tile)(char *, const char *, int64_t, int64_t, ptrdiff_t, ptrdiff_t);
} copy_loops;

static const copy_loops loops[5] = {{strided_1, fill_1, tile_1},
                                    {strided_2, fill_2, tile_2},
                                    {strided_4, fill_4, vector_tile_4},
                                    {strided_8, fill_8, tile_8},
                                    {strided_16, fill_16, tile_16}};

static void transpose(const sn_copy *c, const copy_loops *l, char *d, const char *s, int64_t m)
{
    ptrdiff_t elem = (ptrdiff_t)c->elem_bytes;
    for (int64_t i = 0; i < m; i += TILE)
        for (int64_t j = 0; j < c->n; j += TILE)
            l->tile(d + i * c->m_dst + j * elem, s + j * c->n_src + i * elem, min64(TILE, m - i),
                    min64(TILE, c->n - j), c->m_dst, c->n_src);
}

/* `rows` steps of the innermost outer dim, restricted to [first, first + count) of the split axis:
 * m for a transpose, n otherwise. */
static void inner(const sn_copy *c, char *d, const char *s, int64_t rows, int64_t first,
                  int64_t count)
{
    const copy_loops *l = &loops[size_index(c->elem_bytes)];
    ptrdiff_t dd = c->dst[c->rank - 1], ss = c->src[c->rank - 1];
    switch (c->kind) {
    case SN_COPY_RUN:
        for (int64_t r = 0; r < rows; r++)
            memcpy(d + r * dd + first, s + r * ss + first, (size_t)count);
        return;
    case SN_COPY_STRIDED:
        for (int64_t r = 0; r < rows; r++)
            l->strided(d + r * dd + first * c->n_dst, s + r * ss + first * c->n_src, count,
                       c->n_dst, c->n_src);
        return;
    case SN_COPY_FILL:
        for (int64_t r = 0; r < rows; r++)
            l->fill(d + r * dd + first * c->n_dst, s + r * ss, count, c->n_dst);
        return;
    case SN_COPY_TRANSPOSE:
        for (int64_t r = 0; r < rows; r++)
            transpose(c, l, d + r * dd + first * c->m_dst, s + r * ss + first * c->m_src, count);
        return;
    case SN_COPY_EMPTY:
        return;
    }
}

/* Outer items [lo, hi), each restricted to [first, first + count) of the split axis. */
static void run_range(const sn_copy *c, char *d, const char *s, int64_t lo, int64_t hi,
                      int64_t first, int64_t count)
{
    int64_t index[SN_COPY_MAX_RANK];
    int last = c->rank - 1;
    for (int64_t k = last, rest = lo; k >= 0; k--) {
        index[k] = rest % c->dims[k];
        rest /= c->dims[k];
        d += index[k] * c->dst[k];
        s += index[k] * c->src[k];
    }
    while (lo < hi) {
        int64_t rows = min64(hi - lo, c->dims[last] - index[last]);
        inner(c, d, s, rows, first, count);
        lo += rows;
        index[last] += rows;
        d += rows * c->dst[last];
        s += rows * c->src[last];
        for (int k = last; k > 0 && index[k] == c->dims[k]; k--) {
            index[k] = 0;
            index[k - 1]++;
            d += c->dst[k - 1] - c->dims[k] * c->dst[k];
            s += c->src[k - 1] - c->dims[k] * c->src[k];
        }
    }
}

/* ------------------------------------------------------------------ split */
typedef struct split_job {
    const sn_copy *c;
    char *dst;
    const char *src;
    int64_t tasks;             /* when the outer dims are split */
    int64_t parts, part_items; /* when each outer item is split */
} split_job;

static int64_t split_axis(const sn_copy *c)
{
    return c->kind == SN_COPY_TRANSPOSE ? c->m : c->n;
}

static void task_outer(void *arg, size_t task, int worker)
{
    (void)worker;
    const split_job *j = arg;
    int64_t t = (int64_t)task, base = j->c->outer / j->tasks, extra = j->c->outer % j->tasks;
    int64_t lo = t * base + min64(t, extra);
    run_range(j->c, j->dst, j->src, lo, lo + base + (t < extra), 0, split_axis(j->c));
}

static void task_parts(void *arg, size_t task, int worker)
{
    (void)worker;
    const split_job *j = arg;
    int64_t item = (int64_t)task / j->parts, first = (int64_t)task % j->parts * j->part_items;
    int64_t count = min64(j->part_items, split_axis(j->c) - first);
    if (count > 0)
        run_range(j->c, j->dst, j->src, item, item + 1, first, count);
}

void sn_copy_run(const sn_copy *c, void *dst, const void *src, sn_pool *pool)
{
    if (c->kind == SN_COPY_EMPTY)
        return;
    int64_t threads = c->bytes >= PARALLEL_BYTES ? sn_pool_threads(pool) : 1;
    if (threads <= 1) {
        run_range(c, dst, src, 0, c->outer, 0, split_axis(c));
        return;
    }
    split_job job = {c, dst, src, min64(c->outer, threads * 4), 1, 0};
    if (c->outer >= threads * 2) {
        sn_pool_run(pool, (size_t)job.tasks, task_outer, &job);
        return;
    }
    int64_t axis = split_axis(c);
    job.parts = (threads * 2 + c->outer - 1) / c->outer;
    job.part_items = (axis + job.parts - 1) / job.parts;
    job.part_items = (job.part_items + 63) & ~(int64_t)63; /* whole lines and tiles */
    sn_pool_run(pool, (size_t)(c->outer * job.parts), task_parts, &job);
}

void sn_dense_strides(const int64_t *dims, int rank, ptrdiff_t *strides)
{
    ptrdiff_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= (ptrdiff_t)dims[i];
    }
}

void sn_copy_fill(void *dst, const void *value, size_t elem_bytes, int64_t n, sn_pool *pool)
{
    sn_copy c;
    sn_copy_plan(&c, elem_bytes, 1, &n, &(ptrdiff_t){1}, &(ptrdiff_t){0});
    sn_copy_run(&c, dst, value, pool);
}

void sn_copy_bytes(void *dst, const void *src, size_t bytes, sn_pool *pool)
{
    sn_copy c;
    int64_t n = (int64_t)bytes;
    sn_copy_plan(&c, 1, 1, &n, &(ptrdiff_t){1}, &(ptrdiff_t){1});
    sn_copy_run(&c, dst, src, pool);
}
