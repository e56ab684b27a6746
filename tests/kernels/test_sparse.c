/* SPDX-License-Identifier: Apache-2.0 */
/* Products with sparse weights: every variant against its reference. */
#include "rows.h"

enum { MAX_OUTPUTS = 23, MAX_ENTRIES = 40, MAX_K = 50 };

/* A random matrix of that form: entries of each panel ascend. */
typedef struct sparse_matrix {
    uint32_t first[MAX_OUTPUTS / 4 + 2];
    guarded w, index;
    size_t entries, outputs, k;
} sparse_matrix;

static sparse_matrix random_matrix(bool at_end)
{
    sparse_matrix m = {.outputs = rnd(1, MAX_OUTPUTS), .k = rnd(1, MAX_K)};
    const size_t panels = (m.outputs + 3) / 4, share = rnd(0, 4);
    uint16_t all[(MAX_OUTPUTS / 4 + 1) * MAX_K];
    for (size_t p = 0; p < panels; p++) {
        m.first[p] = (uint32_t)m.entries;
        for (size_t k = 0; k < m.k; k++)
            if (rnd(0, 4) <= share)
                all[m.entries++] = (uint16_t)k;
    }
    m.first[panels] = (uint32_t)m.entries;
    m.w = guard_floats(m.entries * 4, at_end);
    fill(m.w.data, m.entries * 4, NONE);
    /* Of two bytes each; an odd one begins in the middle of a float. */
    m.index = guard_floats((m.entries + 1) / 2, at_end);
    memcpy((uint8_t *)m.index.data + (at_end ? m.entries % 2 * 2 : 0), all, m.entries * 2);
    return m;
}

static const uint16_t *index_of(const sparse_matrix *m, bool at_end)
{
    return (const uint16_t *)(const void *)((const uint8_t *)m->index.data +
                                            (at_end ? m->entries % 2 * 2 : 0));
}

static void make_absolute(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = fabsf(x[i]);
}

static void check_sparse(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 600 && !test_errors; i++) {
        const bool at_end = i % 2, direct = test_rand() % 2;
        sparse_matrix m = random_matrix(at_end);
        sn_f32_sparse t = {.outputs = m.outputs, .first = m.first, .block = row->geometry.block};
        t.vectors = (unsigned)rnd(1, row->geometry.pixels[0]);
        const ptrdiff_t wide = (ptrdiff_t)(t.vectors * t.block), b = (ptrdiff_t)t.block;
        /* Rows of vectors side by side, as in an image, or vectors one behind the other. */
        t.x_k = direct ? wide + (ptrdiff_t)rnd(0, 3) : b;
        t.x_v = direct ? b : (ptrdiff_t)m.k * b;
        t.y_o = direct ? wide : b;
        t.y_v = direct ? b : (ptrdiff_t)m.outputs * b;
        t.lo = i % 3 ? -INFINITY : 0.0f;
        t.hi = i % 4 ? INFINITY : 6.0f;
        const size_t nx = direct ? (m.k - 1) * (size_t)t.x_k + (size_t)wide : m.k * (size_t)wide;
        const size_t ny = m.outputs * (size_t)wide;
        guarded x = guard_floats(nx, at_end), start = guard_floats(m.outputs, at_end);
        guarded got = guard_floats(ny, at_end), want = guard_floats(ny, at_end);
        guarded scale = guard_floats(ny, at_end);
        fill(x.data, nx, i % 7 == 0 ? SMALL : NONE);
        fill(start.data, m.outputs, NONE);
        t.x = x.data, t.w = m.w.data, t.index = index_of(&m, at_end);
        t.start = test_rand() % 2 ? start.data : NULL;
        t.y = want.data;
        ((sn_f32_sparse_fn *)ref->fn)(&t);
        t.y = got.data;
        ((sn_f32_sparse_fn *)row->fn)(&t);
        make_absolute(x.data, nx);
        make_absolute(m.w.data, m.entries * 4);
        make_absolute(start.data, m.outputs);
        t.y = scale.data;
        t.lo = -INFINITY;
        t.hi = INFINITY;
        ((sn_f32_sparse_fn *)ref->fn)(&t);
        char info[120];
        snprintf(info, sizeof info, "case %d: %zu outputs, %zu entries, %u vectors", i, m.outputs,
                 m.entries, t.vectors);
        same("sparse", row, info, got.data, want.data, scale.data, ny);
        guard_free(&x), guard_free(&start), guard_free(&m.w), guard_free(&m.index);
        guard_free(&got), guard_free(&want), guard_free(&scale);
    }
}

static void check_sparse_rows(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 600 && !test_errors; i++) {
        const bool at_end = i % 2, turned = test_rand() % 2;
        sparse_matrix m = random_matrix(at_end);
        sn_f32_sparse_rows t = {
            .rows = rnd(1, SN_SPARSE_ROWS), .outputs = m.outputs, .first = m.first};
        t.x_row = turned ? 1 : (ptrdiff_t)m.k;
        t.x_k = turned ? (ptrdiff_t)t.rows : 1;
        t.y_row = (ptrdiff_t)m.outputs;
        t.lo = i % 3 ? -INFINITY : 0.0f;
        t.hi = i % 4 ? INFINITY : 6.0f;
        const size_t nx = m.k * t.rows, ny = m.outputs * t.rows;
        guarded x = guard_floats(nx, at_end), start = guard_floats(m.outputs, at_end);
        guarded got = guard_floats(ny, at_end), want = guard_floats(ny, at_end);
        guarded scale = guard_floats(ny, at_end);
        fill(x.data, nx, i % 7 == 0 ? SMALL : NONE);
        fill(start.data, m.outputs, NONE);
        t.x = x.data, t.w = m.w.data, t.index = index_of(&m, at_end);
        t.start = test_rand() % 2 ? start.data : NULL;
        t.y = want.data;
        ((sn_f32_sparse_rows_fn *)ref->fn)(&t);
        t.y = got.data;
        ((sn_f32_sparse_rows_fn *)row->fn)(&t);
        make_absolute(x.data, nx);
        make_absolute(m.w.data, m.entries * 4);
        make_absolute(start.data, m.outputs);
        t.y = scale.data;
        t.lo = -INFINITY;
        t.hi = INFINITY;
        ((sn_f32_sparse_rows_fn *)ref->fn)(&t);
        char info[120];
        snprintf(info, sizeof info, "case %d: %zu rows, %zu outputs, %zu entries", i, t.rows,
                 m.outputs, m.entries);
        same("sparse rows", row, info, got.data, want.data, scale.data, ny);
        guard_free(&x), guard_free(&start), guard_free(&m.w), guard_free(&m.index);
        guard_free(&got), guard_free(&want), guard_free(&scale);
    }
}

TEST(every_sparse_kernel_matches_its_reference)
{
    static const row_checker checkers[] = {
        {"sn_f32_sparse", check_sparse}, {"sn_f32_sparse_rows", check_sparse_rows}, {NULL, NULL}};
    check_family("sparse", checkers);
}

TEST_MAIN()
