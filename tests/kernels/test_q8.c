/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes: every variant gives the same sums as its reference, to the last bit. */
#include "base/codec.h"
#include "rows.h"

enum { MAX_ROWS = 30, MAX_TAPS = 10, MAX_CHANNELS = 150 };

typedef struct problem {
    sn_q8_tile t;
    guarded x[MAX_TAPS * MAX_ROWS], w, start, got, want;
    const uint8_t *pointers[MAX_TAPS * MAX_ROWS];
    size_t columns, n_y;
    int32_t y_row;
} problem;

/* Bytes at the end of their page: nothing behind the last channel may be read. */
static guarded guard_bytes(size_t n, bool at_end, uint8_t **data)
{
    const size_t floats = (n + 3) / 4;
    guarded g = guard_floats(floats, at_end);
    *data = (uint8_t *)(void *)g.data + (at_end ? floats * 4 - n : 0);
    for (size_t i = 0; i < n; i++)
        (*data)[i] = (uint8_t)(test_rand() % 5 ? test_rand() : test_rand() % 2 ? 255 : 128);
    return g;
}

/* The largest products: all bytes of x are one number, those of w another, with either sign. */
static void make_extreme(uint8_t *x, size_t n, int i)
{
    static const uint8_t ends[] = {255, 128, 127, 0};
    memset(x, ends[i % 4], n);
}

static void make(problem *p, const sn_kernel_row *row, bool depthwise, int i)
{
    const bool at_end = i % 2, extreme = i % 9 == 4;
    sn_q8_tile *t = &p->t;
    *t = (sn_q8_tile){.rows = rnd(1, i % 3 ? 8 : MAX_ROWS),
                      .taps = rnd(1, i % 4 ? 3 : MAX_TAPS),
                      .channels = rnd(1, i % 2 ? 20 : MAX_CHANNELS),
                      .x_at = rnd(0, 1) * rnd(0, 9),
                      .block = row->geometry.block,
                      .kr = row->geometry.kr,
                      .flip = rnd(0, 1) ? 0x80 : 0};
    unsigned most = 4;
    while (most > 1 && row->geometry.pixels[most - 1] == 0)
        most--;
    t->blocks = (unsigned)rnd(1, most);
    const size_t kr = t->kr, inner = depthwise ? t->taps : t->channels;
    const size_t groups = (inner + kr - 1) / kr;
    const size_t blocks = depthwise ? (t->channels + t->block - 1) / t->block : t->blocks;
    const size_t block_bytes = (depthwise ? 1 : t->taps) * groups * kr * t->block;
    const size_t gap = rnd(0, 1) * 64;
    p->columns = depthwise ? t->channels : t->blocks * t->block;
    t->w_q = (ptrdiff_t)(block_bytes + gap);
    uint8_t *w, *start, *y;
    p->w = guard_bytes(blocks * block_bytes + (depthwise ? 0 : (blocks - 1) * gap), at_end, &w);
    t->w = (const int8_t *)w;
    if (extreme)
        make_extreme(w, blocks * block_bytes + (depthwise ? 0 : (blocks - 1) * gap), 1 + i / 9 % 2);
    if (depthwise) /* weights behind the last tap are zero */
        for (size_t k = 0; k < blocks * block_bytes; k++)
            if (k / (t->block * kr) % groups * kr + k % kr >= t->taps)
                w[k] = 0;
    p->start = guard_bytes(blocks * t->block * 4, at_end, &start);
    t->start = (const int32_t *)(const void *)start;
    t->y_row = (ptrdiff_t)(p->columns + rnd(0, 1) * rnd(0, 5));
    p->n_y = (t->rows - 1) * (size_t)t->y_row + p->columns;
    p->got = guard_bytes(p->n_y * 4, at_end, &y);
    t->y = (int32_t *)(void *)y;
    p->want = guard_bytes(p->n_y * 4, at_end, &y);
    memcpy(y, t->y, p->n_y * 4);
    for (size_t k = 0; k < t->taps * t->rows; k++) {
        uint8_t *x;
        p->x[k] = guard_bytes(t->x_at + t->channels, at_end, &x);
        if (extreme)
            make_extreme(x, t->x_at + t->channels, i / 18);
        p->pointers[k] = x;
    }
    t->x = p->pointers;
}

static void drop(problem *p)
{
    for (size_t k = 0; k < p->t.taps * p->t.rows; k++)
        guard_free(&p->x[k]);
    guard_free(&p->w), guard_free(&p->start), guard_free(&p->got), guard_free(&p->want);
}

static void check(const sn_kernel_row *row, const sn_kernel_row *ref, bool depthwise)
{
    static problem p;
    for (int i = 0; i < 400 && !test_errors; i++) {
        make(&p, row, depthwise, i);
        ((sn_q8_tile_fn *)row->fn)(&p.t);
        const int32_t *got = p.t.y;
        p.t.y = (int32_t *)(void *)p.want.data;
        ((sn_q8_tile_fn *)ref->fn)(&p.t);
        CHECK_MSG(memcmp(got, p.t.y, p.n_y * 4) == 0,
                  "%s: case %d, %zu rows, %zu taps, %zu channels, %u blocks, flip %d", row->name, i,
                  p.t.rows, p.t.taps, p.t.channels, p.t.blocks, p.t.flip);
        drop(&p);
    }
}

static void check_tile(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    check(row, ref, false);
}

static void check_depthwise(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    check(row, ref, true);
}

/* Numbers of bf16 or f16: from -1 to 1; small integers times `unit`, whose sums are exact however
 * they are rounded; or some of them not finite. */
typedef enum halves { FRACTIONS, INTEGERS, NOT_FINITE } halves;

static void fill_halves(uint8_t *to, size_t n, halves kind, sonde_dtype type, float unit)
{
    static const float others[] = {INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < n; i++) {
        float f = kind == INTEGERS ? ((float)rnd(0, 200) - 100.0f) * unit : test_randf();
        if (kind == NOT_FINITE && test_rand() % 200 == 0)
            f = others[test_rand() % 3];
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        const uint16_t h =
            type == SONDE_DTYPE_F16 ? sn_f32_to_f16(f) : (uint16_t)(bits >> 16); /* cut off */
        memcpy(to + i * sizeof h, &h, sizeof h);
    }
}

/* Takes sums out of the two places they have by turns, as late as it may: a group when the next one
 * is there. */
typedef struct taker {
    const sn_tile_rows *t;
    uint8_t *to; /* all groups, `turn` elements each */
    size_t taken, calls;
    bool wrong;
} taker;

static void take_group(taker *k)
{
    const size_t bytes = (size_t)k->t->turn * sizeof(int32_t);
    memcpy(k->to + k->taken * bytes, (const uint8_t *)k->t->y + k->taken % 2 * bytes, bytes);
    k->taken++;
}

static void take_beside(void *arg, size_t groups)
{
    taker *k = arg;
    k->calls++;
    k->wrong |= groups > k->taken + 2;
    if (groups > k->taken + 1)
        take_group(k);
}

/* The same rows with sums that take turns are the same sums. */
static void check_turns(const sn_kernel_row *row, const sn_tile_rows *all, int i)
{
    enum { ELEM = sizeof(int32_t) };
    const sn_kernels *k = sn_kernels_get(row->flags);
    const size_t groups = (all->rows + SN_ROWS_GROUP - 1) / SN_ROWS_GROUP;
    const size_t turn = SN_ROWS_GROUP * all->blocks * SN_ROWS_TILE;
    uint8_t *y, *to;
    guarded g[] = {guard_bytes(2 * turn * ELEM, i % 2, &y),
                   guard_bytes(groups * turn * ELEM, i % 2, &to)};
    sn_tile_rows t = *all;
    taker taken = {.t = &t, .to = to};
    t.y = y;
    t.y_row = SN_ROWS_TILE;
    t.y_q = SN_ROWS_GROUP * SN_ROWS_TILE;
    t.turn = (ptrdiff_t)turn;
    t.beside = take_beside;
    t.beside_arg = &taken;
    k->tiles_enter();
    ((sn_tile_rows_fn *)row->fn)(&t);
    k->tiles_leave();
    CHECK(!taken.wrong && taken.taken + 1 == groups);
    CHECK(taken.calls <= groups * sn_tile_rows_calls(&t) + 1);
    take_group(&taken);
    for (size_t r = 0; r < t.rows && !test_errors; r++)
        for (size_t q = 0; q < t.blocks; q++) {
            const size_t from =
                r / SN_ROWS_GROUP * turn + (q * SN_ROWS_GROUP + r % SN_ROWS_GROUP) * SN_ROWS_TILE;
            const size_t at = r * (size_t)all->y_row + q * (size_t)all->y_q;
            CHECK_MSG(memcmp(to + from * ELEM, (const uint8_t *)all->y + at * ELEM,
                             SN_ROWS_TILE * ELEM) == 0,
                      "%s: case %d, row %zu, block %zu", row->name, i, r, q);
        }
    for (size_t n = 0; n < sizeof g / sizeof *g; n++)
        guard_free(&g[n]);
}

/* Sums of fractions differ by how they are rounded, and in which order. */
static bool same_sum(float a, float b, halves kind)
{
    return a == b || (isnan(a) && isnan(b)) || (kind != INTEGERS && fabsf(a - b) <= 1e-4f);
}

/* Rows at equal distances; those that fill up a last tile may be read, and are there. */
static void check_by_rows(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const sn_kernels *k = sn_kernels_get(row->flags);
    const bool is_float = row->slot->read == SONDE_DTYPE_BF16 || row->slot->read == SONDE_DTYPE_F16;
    const size_t elem = is_float ? 2 : 1;
    for (int i = 0; i < 200 && !test_errors; i++) {
        enum { MAX_STEPS = 31 };
        ptrdiff_t at[MAX_STEPS];
        sn_tile_rows t = {.rows = rnd(1, i % 3 ? 32 : 100),
                          .blocks = rnd(1, i % 4 ? 4 : 9),
                          .steps = rnd(1, i % 7 ? 7 : MAX_STEPS),
                          .again = i % 2,
                          .x_row = (ptrdiff_t)(rnd(1, i % 2 ? 10 : 200) * elem),
                          .at = at};
        const size_t tiles = (t.rows + SN_ROWS_TILE - 1) / SN_ROWS_TILE * SN_ROWS_TILE;
        const size_t columns = t.blocks * SN_ROWS_TILE, far = rnd(1, 1000) * elem;
        for (size_t s = 0; s < t.steps; s++)
            at[s] = (ptrdiff_t)(rnd(0, far) / elem * elem);
        uint8_t *x, *w, *start, *y, *want;
        t.w_q = (ptrdiff_t)(t.steps * SN_ROWS_WEIGHTS + rnd(0, 1) * 64);
        const bool blocks_apart = i % 5 == 2; /* a block's rows lie together */
        t.y_row = (ptrdiff_t)(blocks_apart ? SN_ROWS_TILE : columns + rnd(0, 1) * 16);
        t.y_q = (ptrdiff_t)(blocks_apart ? tiles * SN_ROWS_TILE : SN_ROWS_TILE);
        const size_t sums =
            ((tiles - 1) * (size_t)t.y_row + (t.blocks - 1) * (size_t)t.y_q + SN_ROWS_TILE) *
            sizeof(int32_t);
        guarded g[] = {
            guard_bytes((tiles - 1) * (size_t)t.x_row + far + SN_ROWS_STEP, i % 2, &x),
            guard_bytes((t.blocks - 1) * (size_t)t.w_q + t.steps * SN_ROWS_WEIGHTS, i % 2, &w),
            guard_bytes(columns * sizeof(int32_t), i % 2, &start), guard_bytes(sums, i % 2, &y),
            guard_bytes(sums, i % 2, &want)};
        const halves kind = i % 5 == 1 ? INTEGERS : i % 5 == 3 ? NOT_FINITE : FRACTIONS;
        /* denormals of f16, which count */
        const float unit = row->slot->read == SONDE_DTYPE_F16 && i % 2 ? 0x1p-24f : 1.0f;
        if (is_float) {
            fill_halves(x, ((tiles - 1) * (size_t)t.x_row + far + SN_ROWS_STEP) / elem, kind,
                        row->slot->read, unit);
            fill_halves(w, ((t.blocks - 1) * (size_t)t.w_q + t.steps * SN_ROWS_WEIGHTS) / elem,
                        i % 2 || kind == INTEGERS ? kind : FRACTIONS, row->slot->read, 1);
            for (size_t n = 0; n < columns; n++)
                ((float *)(void *)start)[n] = kind == INTEGERS ? (float)n * unit : test_randf();
        } else if (i % 9 == 4) {
            make_extreme(x, (tiles - 1) * (size_t)t.x_row + far + SN_ROWS_STEP, i / 18);
            make_extreme(w, (t.blocks - 1) * (size_t)t.w_q + t.steps * SN_ROWS_WEIGHTS,
                         1 + i / 9 % 2);
        }
        t.x = x;
        t.w = w;
        t.start = start;
        t.y = y;
        k->tiles_enter();
        ((sn_tile_rows_fn *)row->fn)(&t);
        k->tiles_leave();
        check_turns(row, &t, i);
        t.y = want;
        ((sn_tile_rows_fn *)ref->fn)(&t);
        for (size_t r = 0; r < t.rows; r++)
            for (size_t n = 0; n < columns; n++) {
                const size_t e =
                    r * (size_t)t.y_row + n / SN_ROWS_TILE * (size_t)t.y_q + n % SN_ROWS_TILE;
                const float a = ((const float *)(void *)y)[e], b = ((const float *)(void *)want)[e];
                if (is_float)
                    CHECK_MSG(same_sum(a, b, kind), "%s: case %d, row %zu, column %zu: %g, %g",
                              row->name, i, r, n, (double)a, (double)b);
                else
                    CHECK_MSG(memcmp(&a, &b, sizeof a) == 0,
                              "%s: case %d, row %zu of %zu, column %zu, %zu blocks, %zu steps",
                              row->name, i, r, t.rows, n, t.blocks, t.steps);
            }
        for (size_t n = 0; n < sizeof g / sizeof *g; n++)
            guard_free(&g[n]);
    }
}

static void check_quads(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 200 && !test_errors; i++) {
        sn_quads_args t = {.pairs = rnd(1, 20),
                           .channels = i % 3 ? rnd(1, 64) : 64,
                           .before = rnd(0, 4),
                           .there = rnd(0, 45),
                           .flip = (uint8_t)(i % 2 ? 0x80 : 0)};
        t.x_pixel = (ptrdiff_t)(t.channels + rnd(0, 1) * rnd(0, 70));
        uint8_t *x, *outside, *y, *want;
        const size_t bytes = t.pairs * SN_QUAD_BYTES;
        const size_t pixels = t.there ? (t.there - 1) * (size_t)t.x_pixel + t.channels : 1;
        guarded g[] = {guard_bytes(pixels, i % 2, &x), guard_bytes(t.channels, i % 2, &outside),
                       guard_bytes(bytes, i % 2, &y), guard_bytes(bytes, i % 2, &want)};
        t.x = x;
        t.outside = outside;
        t.y = y;
        ((sn_bytes_quads_fn *)row->fn)(&t);
        t.y = want;
        ((sn_bytes_quads_fn *)ref->fn)(&t);
        CHECK_MSG(memcmp(y, want, bytes) == 0, "%s: case %d", row->name, i);
        for (size_t n = 0; n < sizeof g / sizeof *g; n++)
            guard_free(&g[n]);
    }
}

static void check_by_quads(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 300 && !test_errors; i++) {
        enum { MAX_RUNS = 5 };
        ptrdiff_t at[MAX_RUNS];
        const bool is_signed = i % 4 < 2, sums = i % 3 == 0;
        const float lo = is_signed ? -128.0f : 0.0f;
        sn_q8_depthwise_args t = {.at = at,
                                  .rows = rnd(1, 20),
                                  .runs = i % 2 ? 3 : rnd(1, MAX_RUNS),
                                  .quads = i % 2 ? 1 : rnd(1, 3),
                                  .stride = rnd(1, 4),
                                  .channels = i % 5 ? rnd(1, 64) : 64,
                                  .zero = lo + (float)rnd(0, 255),
                                  .hi = lo + 255.0f};
        t.lo = i % 7 ? lo : t.zero;
        t.sums_row = SN_QUAD_CHANNELS + (ptrdiff_t)rnd(0, 5);
        t.y_row = (ptrdiff_t)(t.channels + rnd(0, 5));
        const size_t pairs = (t.rows - 1) * t.stride / 2 + 2 * (t.quads - 1) + 1, far = rnd(0, 900);
        for (size_t k = 0; k < t.runs; k++)
            at[k] = (ptrdiff_t)rnd(0, far);
        uint8_t *x, *w, *start, *y, *want;
        const size_t out = sums ? ((t.rows - 1) * (size_t)t.sums_row + SN_QUAD_CHANNELS) * 4
                                : (t.rows - 1) * (size_t)t.y_row + t.channels;
        guarded g[] = {guard_bytes(far + pairs * SN_QUAD_BYTES, i % 2, &x),
                       guard_bytes(2 * t.runs * t.quads * SN_QUAD_BYTES, i % 2, &w),
                       guard_bytes(SN_QUAD_CHANNELS * 4, i % 2, &start),
                       guard_floats(SN_QUAD_CHANNELS, i % 2),
                       guard_bytes(out, i % 2, &y),
                       guard_bytes(out, i % 2, &want)};
        for (size_t c = 0; c < SN_QUAD_CHANNELS; c++)
            g[3].data[c] = i % 6 ? 0.002f * test_randf() : c % 9 ? 0.999f : NAN;
        t.x = x;
        t.w = (const int8_t *)w;
        t.start = (const int32_t *)(const void *)start;
        t.scale = g[3].data;
        memcpy(y, want, out);
        t.sums = sums ? (int32_t *)(void *)y : NULL;
        t.y = y;
        ((sn_q8_by_quads_fn *)row->fn)(&t);
        t.sums = sums ? (int32_t *)(void *)want : NULL;
        t.y = want;
        ((sn_q8_by_quads_fn *)ref->fn)(&t);
        CHECK_MSG(memcmp(y, want, out) == 0, "%s: case %d", row->name, i);
        for (size_t n = 0; n < sizeof g / sizeof *g; n++)
            guard_free(&g[n]);
    }
}

/* A thread may set its registers up as often as it likes. */
static void check_state(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    (void)ref;
    const sn_kernels *k = sn_kernels_get(row->flags);
    k->tiles_enter();
    k->tiles_enter();
    k->tiles_leave();
    k->tiles_leave();
}

TEST(every_product_of_bytes_is_exact)
{
    static const row_checker checkers[] = {{"sn_q8_tile", check_tile},
                                           {"sn_q8_depthwise", check_depthwise},
                                           {"sn_bytes_quads", check_quads},
                                           {"sn_q8_by_quads", check_by_quads},
                                           {"sn_tile_rows", check_by_rows},
                                           {"sn_thread_state", check_state},
                                           {NULL, NULL}};
    check_family("q8", checkers);
}

/* What the reference computes, from the formula with numbers that are easy to follow. */
TEST(the_reference_follows_its_formula)
{
    const uint8_t a[3] = {1, 200, 3}, b[3] = {255, 0, 7};
    const uint8_t *x[2] = {a, b}; /* two taps of one row */
    int8_t w[2 * 4 * 2] = {0};    /* taps × lanes of four channels */
    const int32_t start[2] = {10, -10};
    int32_t y[2];
    w[0] = 2, w[1] = -1, w[2] = 5;       /* tap 0, lane 0 */
    w[4] = 1;                            /* tap 0, lane 1 */
    w[8] = -128, w[12] = 127, w[14] = 1; /* tap 1: lane 0, lane 1 */
    sn_q8_tile t = {.x = x,
                    .w = w,
                    .start = start,
                    .y = y,
                    .rows = 1,
                    .taps = 2,
                    .channels = 3,
                    .blocks = 1,
                    .block = 2,
                    .kr = 4,
                    .y_row = 2};
    sn_u8_tile_ref(&t);
    CHECK(y[0] == 10 + 2 - 200 + 15 - 128 * 255);
    CHECK(y[1] == -10 + 1 + 127 * 255 + 7);
    sn_i8_tile_ref(&t); /* 200 is -56, 255 is -1 */
    CHECK(y[0] == 10 + 2 + 56 + 15 + 128);
    t.flip = 0x80; /* 1 is 129 - 128 … as unsigned 129 */
    sn_u8_tile_ref(&t);
    CHECK(y[1] == -10 + 129 + 127 * 127 + 135);
}

TEST_MAIN()
