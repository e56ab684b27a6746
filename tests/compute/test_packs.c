/* SPDX-License-Identifier: Apache-2.0 */
/* What every packed format of this machine promises: units cover the whole weight, sources may lie
 * anywhere, and a unit reads no more than it says. */
#include "base/cpu.h"
#include "compute/packs.h"
#include "test.h"

typedef struct shape {
    int64_t dims[4];
    int rank;
    int64_t arg;
} shape;

static const shape shapes[] = {
    {{37, 19, 1, 1}, 4, 1}, {{32, 16, 3, 3}, 4, 1},   {{48, 24, 3, 3}, 4, 2},
    {{64, 4, 3, 3}, 4, 16}, {{20, 4, 3, 3}, 4, 5},    {{20, 3, 7, 7}, 4, 1},
    {{33, 1, 3, 3}, 4, 33}, {{16, 16, 17, 17}, 4, 1}, {{70, 33}, 2, 0},
    {{70, 33}, 2, 1},       {{3, 130, 17}, 3, 0},     {{3, 130, 17}, 3, 1},
    {{1, 5}, 2, 1},         {{2, 76, 19}, 3, 4},      {{69, 23}, 2, 3},
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static size_t count_of(const shape *s)
{
    size_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n *= (size_t)s->dims[i];
    return n;
}

/* Every CPU that the machine can play, and none. */
static uint32_t flags_of(int i)
{
    sn_cpu cpu = {0};
    static const char *const levels[] = {"baseline", "avx2", NULL};
    return sn_cpu_detect(&cpu, levels[i], NULL) == SONDE_OK ? cpu.flags : 0;
}
enum { LEVELS = 3 };

static uint64_t element(const void *x, size_t i, size_t elem)
{
    uint64_t v = 0;
    memcpy(&v, (const uint8_t *)x + i * elem, elem);
    return v;
}

/* n elements that are 1, 2, 3, … as numbers of their size; those outside [first, end) are 0xff… */
static uint8_t *numbered(size_t n, size_t elem, size_t shift, size_t first, size_t end)
{
    uint8_t *src = malloc(n * elem + shift + 1);
    for (size_t i = 0; i < n; i++) {
        const uint64_t v = i >= first && i < end ? i + 1 : UINT64_MAX;
        memcpy(src + shift + i * elem, &v, elem);
    }
    return src;
}

/* The packed weight, from a source `shift` bytes off its alignment. */
static uint8_t *packed_from(const sn_packing *p, size_t n, size_t bytes, size_t shift)
{
    uint8_t *src = numbered(n, sn_dtype_bytes(p->format->dtype), shift, 0, n);
    uint8_t *dst = malloc(bytes);
    memset(dst, 0xff, bytes);
    for (size_t u = 0; u < p->format->units(p); u++)
        p->format->pack(p, dst, src + shift, u);
    free(src);
    return dst;
}

typedef void check_fn(const sn_packing *p, size_t n, size_t bytes, const char *what);

/* Every format, shape and CPU. */
static void each(check_fn *check)
{
    for (unsigned id = 1; id < SN_PACK_COUNT; id++)
        for (int k = 0; k < N_SHAPES; k++)
            for (int l = 0; l < LEVELS; l++) {
                const shape *s = &shapes[k];
                const sn_packing p = {sn_pack_get(id), s->dims, s->rank, s->arg, flags_of(l)};
                char what[96];
                size_t bytes;
                snprintf(what, sizeof what, "%s, shape %d, CPU %d", p.format->name, k, l);
                if (p.format->bytes(&p, &bytes))
                    check(&p, count_of(s), bytes, what);
            }
}

static void check_once(const sn_packing *p, size_t n, size_t bytes, const char *what)
{
    const size_t elem = sn_dtype_bytes(p->format->dtype);
    if (elem == 1 || (elem == 2 && n > UINT16_MAX))
        return; /* more weights than numbers to tell them apart; bytes: tests/compute/test_q8.c */
    if (elem == sizeof(float) && (p->format->arrangement == SN_WEIGHTS_PANEL_TILES ||
                                  p->format->arrangement == SN_WEIGHTS_CONV_TILES))
        return; /* they become two halves each: test_gemm.c, test_conv.c */
    uint8_t *dst = packed_from(p, n, bytes, 0), *found = calloc(n + 1, 1);
    size_t seen = 0;
    for (size_t i = 0; i < bytes / elem; i++) {
        const uint64_t v = element(dst, i, elem);
        CHECK_MSG(v <= n, "%s: %llu at %zu", what, (unsigned long long)v, i);
        if (v == 0 || v > n)
            continue;
        CHECK_MSG(!found[v], "%s: %llu twice", what, (unsigned long long)v);
        seen += !found[v];
        found[v] = 1;
    }
    CHECK_MSG(seen == n, "%s: %zu of %zu", what, seen, n);
    free(found);
    free(dst);
}

TEST(what_rounds_to_infinity_does_not_fit)
{
    static const struct {
        float x;
        bool f16, bf16;
    } rows[] = {{0, true, true},
                {-65504, true, true},
                {65519.996f, true, true}, /* rounds to 65504 */
                {65520, false, true},     /* the tie goes to infinity */
                {-65520, false, true},
                {1e-30f, true, true}, /* becomes 0 */
                {0x1.fep127f, false, true},
                {0x1.fefffep127f, false, true},
                {-0x1.ffp127f, false, false},
                {INFINITY, false, false},
                {-INFINITY, false, false},
                {NAN, false, false},
                {-NAN, false, false}};
    enum { N = 2500 };
    static float x[N];
    for (int l = 0; l < LEVELS; l++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (int at = 0; at < N; at += 833) { /* in any piece */
                const float kept = x[at];
                x[at] = rows[r].x;
                CHECK_MSG(sn_pack_holds(SONDE_DTYPE_F16, SONDE_DTYPE_F32, x, N, flags_of(l)) ==
                              rows[r].f16,
                          "%g as f16", (double)rows[r].x);
                CHECK_MSG(sn_pack_holds(SONDE_DTYPE_BF16, SONDE_DTYPE_F32, x, N, flags_of(l)) ==
                              rows[r].bf16,
                          "%g as bf16", (double)rows[r].x);
                x[at] = kept;
            }
    CHECK(sn_pack_holds(SONDE_DTYPE_F16, SONDE_DTYPE_F32, NULL, 0, 0));
}

TEST(floats_change_their_type_where_they_lie)
{
    static const sn_dtype types[] = {SONDE_DTYPE_F32, SONDE_DTYPE_F16, SONDE_DTYPE_BF16};
    enum { N = 5000 };
    static float room[N], first[N];
    static uint8_t start[N * 4], wide[N * 4];
    for (int i = 0; i < N; i++)
        first[i] = (float)(i % 255 - 127) / 8; /* exact in each */
    for (int64_t n = 0; n <= N; n += n < 3 ? 1 : 1249)
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++) {
                memcpy(start, first, sizeof first);
                sn_pack_convert(types[a], SONDE_DTYPE_F32, start, n, flags_of(2));
                memcpy(wide, start, sizeof wide);
                sn_pack_convert(types[b], types[a], wide, n, flags_of(2));
                memcpy(room, wide, sizeof room);
                sn_pack_convert(SONDE_DTYPE_F32, types[b], room, n, 0);
                CHECK_MSG(memcmp(room, first, (size_t)n * sizeof *room) == 0,
                          "%d elements from %d to %d", (int)n, a, b);
            }
}

TEST(every_weight_is_packed_once_and_the_rest_is_zero)
{
    each(check_once);
}

static void check_misaligned(const sn_packing *p, size_t n, size_t bytes, const char *what)
{
    uint8_t *a = packed_from(p, n, bytes, 0), *b = packed_from(p, n, bytes, 3);
    CHECK_MSG(memcmp(a, b, bytes) == 0, "%s", what);
    free(a);
    free(b);
}

TEST(misaligned_sources_are_packed_alike)
{
    each(check_misaligned);
}

static void check_cpu(const sn_packing *p, size_t n, size_t bytes, const char *what)
{
    sn_packing plain = *p;
    plain.cpu_flags = 0;
    uint8_t *a = packed_from(p, n, bytes, 0), *b = packed_from(&plain, n, bytes, 0);
    CHECK_MSG(memcmp(a, b, bytes) == 0, "%s", what);
    free(a);
    free(b);
}

TEST(every_cpu_packs_the_same)
{
    each(check_cpu);
}

static void check_source(const sn_packing *p, size_t n, size_t bytes, const char *what)
{
    const size_t elem = sn_dtype_bytes(p->format->dtype);
    uint8_t *whole = packed_from(p, n, bytes, 0), *parts = malloc(bytes);
    int64_t first, count;
    memset(parts, 0xff, bytes);
    for (size_t u = 0; u < p->format->units(p); u++) {
        if (!p->format->source(p, u, &first, &count))
            continue;
        CHECK_MSG(first >= 0 && count >= 0 && (size_t)(first + count) <= n,
                  "%s, unit %zu: %lld from %lld", what, u, (long long)count, (long long)first);
        uint8_t *src = numbered(n, elem, 0, (size_t)first, (size_t)(first + count));
        p->format->pack(p, parts, src, u); /* the others would be seen */
        free(src);
    }
    if (p->format->source(p, 0, &first, &count))
        CHECK_MSG(memcmp(whole, parts, bytes) == 0, "%s", what);
    free(whole);
    free(parts);
}

TEST(a_unit_reads_what_it_says)
{
    each(check_source);
}

/* The format that a kernel of the list reads is the one that is found for it. */
TEST(every_kernel_with_packed_weights_has_its_format)
{
    for (size_t k = 0; sn_kernel_row_get(k); k++) {
        const sn_kernel_row *row = sn_kernel_row_get(k);
        if (row->slot->arrangement == SN_WEIGHTS_NONE)
            continue;
        const unsigned id =
            sn_pack_find(row->slot->arrangement, row->slot->weights, &row->geometry);
        CHECK_MSG(id != SN_PACK_NONE, "%s", row->name);
    }
}

TEST_MAIN()
