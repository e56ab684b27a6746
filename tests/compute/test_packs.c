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
    {{1, 5}, 2, 1},
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

/* Formats for other instructions than this machine's are not for it. */
static bool usable(const sn_pack_format *f)
{
    sn_cpu cpu;
    const size_t n = strlen(f->name);
    if (sn_cpu_detect(&cpu, NULL, NULL) != SONDE_OK)
        return false;
    return strcmp(f->name + n - 2, "16") != 0 || sn_cpu_block(cpu.flags) == 16;
}

static size_t count_of(const shape *s)
{
    size_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n *= (size_t)s->dims[i];
    return n;
}

/* The packed weight, from a source `shift` bytes off its alignment. */
static float *packed_from(const sn_pack_format *f, const shape *s, size_t bytes, size_t shift)
{
    const size_t n = count_of(s);
    uint8_t *src = malloc(n * sizeof(float) + shift + 1);
    float *dst = malloc(bytes);
    for (size_t i = 0; i < n; i++) {
        const float x = (float)i + 1;
        memcpy(src + shift + i * sizeof x, &x, sizeof x);
    }
    memset(dst, 0xff, bytes);
    for (size_t u = 0; u < f->units(s->dims, s->rank, s->arg); u++)
        f->pack(dst, src + shift, s->dims, s->rank, s->arg, u);
    free(src);
    return dst;
}

TEST(every_weight_is_packed_once_and_the_rest_is_zero)
{
    for (unsigned id = 1; id < SN_PACK_COUNT; id++) {
        const sn_pack_format *f = sn_pack_get(id);
        for (int k = 0; k < N_SHAPES; k++) {
            const shape *s = &shapes[k];
            size_t bytes, n = count_of(s), seen = 0;
            if (!usable(f) || !f->bytes(s->dims, s->rank, s->arg, &bytes))
                continue;
            float *dst = packed_from(f, s, bytes, 0);
            uint8_t *found = calloc(n + 1, 1);
            for (size_t i = 0; i < bytes / sizeof(float); i++) {
                CHECK_MSG(dst[i] >= 0 && dst[i] <= (float)n, "%s, shape %d: %g at %zu", f->name, k,
                          (double)dst[i], i);
                seen += dst[i] > 0 && !found[(size_t)dst[i]];
                CHECK_MSG(!(dst[i] > 0 && found[(size_t)dst[i]]), "%s, shape %d: %g twice", f->name,
                          k, (double)dst[i]);
                found[(size_t)dst[i]] = dst[i] > 0;
            }
            CHECK_MSG(seen == n, "%s, shape %d: %zu of %zu", f->name, k, seen, n);
            free(found);
            free(dst);
        }
    }
}

TEST(misaligned_sources_are_packed_alike)
{
    for (unsigned id = 1; id < SN_PACK_COUNT; id++) {
        const sn_pack_format *f = sn_pack_get(id);
        for (int k = 0; k < N_SHAPES; k++) {
            const shape *s = &shapes[k];
            size_t bytes;
            if (!usable(f) || !f->bytes(s->dims, s->rank, s->arg, &bytes))
                continue;
            float *a = packed_from(f, s, bytes, 0), *b = packed_from(f, s, bytes, 3);
            CHECK_MSG(memcmp(a, b, bytes) == 0, "%s, shape %d", f->name, k);
            free(a);
            free(b);
        }
    }
}

TEST(a_unit_reads_what_it_says)
{
    for (unsigned id = 1; id < SN_PACK_COUNT; id++) {
        const sn_pack_format *f = sn_pack_get(id);
        for (int k = 0; k < N_SHAPES; k++) {
            const shape *s = &shapes[k];
            size_t bytes;
            int64_t first, count;
            if (!usable(f) || !f->bytes(s->dims, s->rank, s->arg, &bytes))
                continue;
            float *whole = packed_from(f, s, bytes, 0), *parts = malloc(bytes);
            const size_t n = count_of(s);
            float *src = malloc(n * sizeof *src);
            memset(parts, 0xff, bytes);
            for (size_t u = 0; u < f->units(s->dims, s->rank, s->arg); u++) {
                if (!f->source(s->dims, s->rank, s->arg, u, &first, &count))
                    continue;
                CHECK_MSG(first >= 0 && count >= 0 && (size_t)(first + count) <= n,
                          "%s, shape %d, unit %zu: %lld from %lld", f->name, k, u, (long long)count,
                          (long long)first);
                for (size_t i = 0; i < n; i++) /* the others would be seen */
                    src[i] = (int64_t)i >= first && (int64_t)i < first + count ? (float)i + 1 : -1;
                f->pack(parts, src, s->dims, s->rank, s->arg, u);
            }
            if (f->source(s->dims, s->rank, s->arg, 0, &first, &count))
                CHECK_MSG(memcmp(whole, parts, bytes) == 0, "%s, shape %d", f->name, k);
            free(whole);
            free(parts);
            free(src);
        }
    }
}

TEST_MAIN()
