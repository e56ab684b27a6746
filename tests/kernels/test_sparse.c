/* SPDX-License-Identifier: Apache-2.0 */
/* Products with sparse weights: every variant against its reference. */
#include "base/codec.h"
#include "rows.h"

enum { MAX_OUTPUTS = 23, MAX_ENTRIES = 40, MAX_K = 50 };

/* A random matrix of that form: entries of each panel ascend. */
typedef struct sparse_matrix {
    uint32_t first[MAX_OUTPUTS + 1];
    guarded w, index;
    size_t entries, outputs, k, panel;
} sparse_matrix;

static sparse_matrix random_matrix(bool at_end)
{
    sparse_matrix m = {.outputs = rnd(1, MAX_OUTPUTS), .k = rnd(1, MAX_K)};
    m.panel = test_rand() % 3 ? SN_SPARSE_PANEL : 1;
    const size_t panels = (m.outputs + m.panel - 1) / m.panel, share = rnd(0, 4);
    uint16_t all[MAX_OUTPUTS * MAX_K];
    for (size_t p = 0; p < panels; p++) {
        m.first[p] = (uint32_t)m.entries;
        for (size_t k = 0; k < m.k; k++)
            if (rnd(0, 4) <= share)
                all[m.entries++] = (uint16_t)k;
    }
    m.first[panels] = (uint32_t)m.entries;
    m.w = guard_floats(m.entries * m.panel, at_end);
    fill(m.w.data, m.entries * m.panel, NONE);
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
        t.panel = (unsigned)m.panel;
        t.vectors = (unsigned)rnd(1, row->geometry.pixels[m.panel == 1]);
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
        int32_t places[MAX_K]; /* rows in any order */
        for (size_t k = 0; k < m.k; k++)
            places[k] = (int32_t)(t.x_k * (ptrdiff_t)rnd(0, m.k - 1));
        t.x_at = i % 5 < 2 ? places : NULL;
        fill(x.data, nx, i % 7 == 0 ? SMALL : NONE);
        fill(start.data, m.outputs, NONE);
        t.x = x.data, t.w = m.w.data, t.index = index_of(&m, at_end);
        t.start = test_rand() % 2 ? start.data : NULL;
        t.y = want.data;
        ((sn_f32_sparse_fn *)ref->fn)(&t);
        t.y = got.data;
        ((sn_f32_sparse_fn *)row->fn)(&t);
        make_absolute(x.data, nx);
        make_absolute(m.w.data, m.entries * m.panel);
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
        t.panel = (unsigned)m.panel;
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
        make_absolute(m.w.data, m.entries * m.panel);
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

static uint8_t *guard_bytes(size_t n, bool at_end, guarded *g)
{
    const size_t floats = (n + 3) / 4;
    *g = guard_floats(floats, at_end);
    uint8_t *data = (uint8_t *)(void *)g->data + (at_end ? floats * 4 - n : 0);
    for (size_t i = 0; i < n; i++)
        data[i] = (uint8_t)(test_rand() % 5 ? test_rand() : test_rand() % 2 ? 255 : 128);
    return data;
}

/* Groups of four entries: as many as panels have, rounded down, the last at the end of its page. */
typedef struct byte_matrix {
    uint32_t first[MAX_OUTPUTS / 4 + 2];
    guarded w_room, index_room, start_room;
    const int8_t *w;
    const uint16_t *index;
    const int32_t *start;
    size_t outputs, k;
} byte_matrix;

static byte_matrix random_bytes(bool at_end)
{
    byte_matrix m = {.outputs = rnd(1, MAX_OUTPUTS), .k = rnd(1, MAX_K)};
    const size_t panels = (m.outputs + 3) / 4;
    for (size_t p = 0; p < panels; p++)
        m.first[p + 1] = m.first[p] + (uint32_t)rnd(0, 5);
    const size_t groups = m.first[panels];
    m.w = (const int8_t *)guard_bytes(16 * groups, at_end, &m.w_room);
    uint16_t *index = (uint16_t *)(void *)guard_bytes(8 * groups, at_end, &m.index_room);
    for (size_t i = 0; i < 4 * groups; i++)
        index[i] = (uint16_t)rnd(0, m.k - 1);
    m.index = index;
    m.start = (const int32_t *)(const void *)guard_bytes(4 * m.outputs, at_end, &m.start_room);
    return m;
}

static void free_bytes(byte_matrix *m)
{
    guard_free(&m->w_room), guard_free(&m->index_room), guard_free(&m->start_room);
}

static void check_bytes(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 600 && !test_errors; i++) {
        const bool at_end = i % 2;
        byte_matrix m = random_bytes(at_end);
        sn_q8_sparse t = {.w = m.w,
                          .index = m.index,
                          .first = m.first,
                          .start = m.start,
                          .outputs = m.outputs,
                          .vectors = row->geometry.pixels[0],
                          .block = row->geometry.block};
        const size_t rows = t.vectors * t.block, n = m.outputs * rows;
        t.x_k = (ptrdiff_t)(rows + rnd(0, 1) * rnd(0, 9));
        t.y_o = (ptrdiff_t)t.block;
        t.y_v = (ptrdiff_t)(m.outputs * t.block);
        guarded x, got, want;
        t.x = guard_bytes((m.k - 1) * (size_t)t.x_k + rows, at_end, &x);
        t.y = (int32_t *)(void *)guard_bytes(4 * n, at_end, &want);
        ((sn_q8_sparse_fn *)ref->fn)(&t);
        const int32_t *right = t.y;
        t.y = (int32_t *)(void *)guard_bytes(4 * n, at_end, &got);
        ((sn_q8_sparse_fn *)row->fn)(&t);
        if (memcmp(t.y, right, 4 * n) != 0) {
            fprintf(stderr, "%s: case %d differs\n", row->name, i);
            test_errors++;
        }
        guard_free(&x), guard_free(&got), guard_free(&want);
        free_bytes(&m);
    }
}

static void check_bytes_row(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 600 && !test_errors; i++) {
        const bool at_end = i % 2;
        byte_matrix m = random_bytes(at_end);
        guarded x;
        int32_t got[MAX_OUTPUTS + 1] = {0}, want[MAX_OUTPUTS + 1] = {0};
        sn_q8_sparse_row t = {.x = guard_bytes(m.k, at_end, &x),
                              .w = m.w,
                              .index = m.index,
                              .first = m.first,
                              .start = m.start,
                              .y = want,
                              .outputs = m.outputs,
                              .flip = i % 3 ? 0 : 0x80};
        ((sn_q8_sparse_row_fn *)ref->fn)(&t);
        t.y = got;
        ((sn_q8_sparse_row_fn *)row->fn)(&t);
        if (memcmp(got, want, sizeof got) != 0) {
            fprintf(stderr, "%s: case %d differs\n", row->name, i);
            test_errors++;
        }
        guard_free(&x);
        free_bytes(&m);
    }
}

/* Bytes, or floats of 16 bits that are small integers: sums of any order are exact. */
static void check_tiles(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    enum { TILE = 16, MOST_OUTPUTS = 70, MOST_VECTORS = 9, MOST_LINES = 60 };
    const bool floats = row->slot->read == SONDE_DTYPE_BF16;
    const sn_kernels *k = sn_kernels_get(row->flags);
    static int32_t start[MOST_OUTPUTS], got[MOST_OUTPUTS * 2 * MOST_VECTORS * TILE],
        want[MOST_OUTPUTS * 2 * MOST_VECTORS * TILE];
    for (int i = 0; i < 300 && !test_errors; i++) {
        uint32_t first[MOST_OUTPUTS / TILE + 2] = {0};
        const bool at_end = i % 2;
        sn_tile_sparse t = {.outputs = rnd(1, MOST_OUTPUTS), .vectors = rnd(1, MOST_VECTORS)};
        const size_t panels = (t.outputs + TILE - 1) / TILE, lines = rnd(1, MOST_LINES);
        for (size_t p = 0; p < panels; p++)
            first[p + 1] = first[p] + (uint32_t)rnd(0, 3);
        const size_t groups = first[panels];
        guarded w_room, x_room, index_room;
        uint8_t *w = guard_bytes(groups * 1024, at_end, &w_room);
        uint8_t *x = guard_bytes(t.vectors * lines * 64, at_end, &x_room);
        uint16_t *index = (uint16_t *)(void *)guard_bytes(groups * 32, at_end, &index_room);
        for (size_t j = 0; j < groups * TILE; j++)
            index[j] = (uint16_t)rnd(0, lines - 1);
        for (size_t j = 0; floats && j < groups * 512; j++)
            ((uint16_t *)(void *)w)[j] = sn_f32_to_bf16((float)rnd(0, 9) - 4);
        for (size_t j = 0; floats && j < t.vectors * lines * 32; j++)
            ((uint16_t *)(void *)x)[j] = sn_f32_to_bf16((float)rnd(0, 9) - 4);
        for (size_t o = 0; o < t.outputs; o++) {
            const float number = (float)rnd(0, 100);
            start[o] = (int32_t)rnd(0, 100000);
            if (floats)
                memcpy(start + o, &number, sizeof number);
        }
        t.w = w, t.x = x, t.index = index, t.first = first, t.start = start;
        t.x_v = (ptrdiff_t)(lines * 64);
        t.y_o = TILE;
        t.y_v = (ptrdiff_t)(panels * TILE * TILE);
        t.y = want;
        ((sn_tile_sparse_fn *)ref->fn)(&t);
        t.y = got;
        k->tiles_enter();
        ((sn_tile_sparse_fn *)row->fn)(&t);
        k->tiles_leave();
        for (size_t v = 0; v < t.vectors; v++)
            if (memcmp(got + (ptrdiff_t)v * t.y_v, want + (ptrdiff_t)v * t.y_v,
                       t.outputs * TILE * sizeof *got) != 0) {
                fprintf(stderr, "%s: case %d differs in vector %zu\n", row->name, i, v);
                test_errors++;
                break;
            }
        guard_free(&w_room), guard_free(&x_room), guard_free(&index_room);
    }
}

TEST(every_sparse_kernel_matches_its_reference)
{
    static const row_checker checkers[] = {
        {"sn_f32_sparse", check_sparse}, {"sn_f32_sparse_rows", check_sparse_rows},
        {"sn_q8_sparse", check_bytes},   {"sn_q8_sparse_row", check_bytes_row},
        {"sn_tile_sparse", check_tiles}, {NULL, NULL}};
    check_family("sparse", checkers);
}

TEST_MAIN()
