/* SPDX-License-Identifier: Apache-2.0 */
/* The input of a convolution as rows at equal distances: what every result reads for every tap is
 * the pixel that the convolution means, or padding. No kernel is needed for that. */
#include "test.h"

#include "compute/conv.h"
#include "compute/lines.h"

static int64_t between(int64_t lo, int64_t hi)
{
    return lo + (int64_t)(test_rand() % (uint64_t)(hi - lo + 1));
}

enum { OUTSIDE = 255 };

/* One or two spatial dims are as common as three; false: the window does not fit. */
static bool random_conv(sn_conv_desc *d)
{
    const int spatial = (int)between(1, 3);
    *d = (sn_conv_desc){.n = 1, .c = between(1, 3), .oc = 1, .groups = 1};
    bool fits = true;
    for (int i = 0; i < 3; i++) {
        const bool used = i >= 3 - spatial;
        d->in[i] = used ? between(1, 8) : 1;
        d->kernel[i] = used && test_rand() % 2 ? between(1, 3) : 1;
        d->stride[i] = used && test_rand() % 2 ? between(1, 3) : 1;
        d->dilation[i] = used && test_rand() % 4 == 0 ? 2 : 1;
        d->pad[i] = used && test_rand() % 2 ? between(0, d->kernel[i] - 1) : 0;
        const int64_t room = d->in[i] + 2 * d->pad[i] - (d->kernel[i] - 1) * d->dilation[i] - 1;
        fits = fits && room >= 0;
        d->out[i] = room / d->stride[i] + 1;
    }
    return fits;
}

/* The byte of channel c of the pixel that tap k of result o reads. */
static uint8_t meant(const sn_conv_desc *d, const uint8_t *x, const int64_t o[3],
                     const int64_t k[3], int64_t c)
{
    int64_t at = 0;
    for (int i = 0; i < 3; i++) {
        const int64_t pixel = o[i] * d->stride[i] - d->pad[i] + k[i] * d->dilation[i];
        if (pixel < 0 || pixel >= d->in[i])
            return OUTSIDE;
        at = at * d->in[i] + pixel;
    }
    return x[at * d->c + c];
}

/* Results of a part that were met; every row of it is looked at. */
static int64_t check_part(const sn_conv_desc *d, const sn_lines *l, const sn_lines_part *part,
                          const uint8_t *row0, const uint8_t *x)
{
    int64_t met = 0;
    for (int64_t v = 0, at; v < part->rows;) {
        const int64_t n = sn_lines_results(l, part, v, part->rows - v, &at);
        for (int64_t r = 0; r < n; r++) {
            const int64_t o[3] = {(at + r) / (d->out[1] * d->out[2]),
                                  (at + r) / d->out[2] % d->out[1], (at + r) % d->out[2]};
            for (int64_t run = 0; run < l->runs; run++) {
                const int64_t across = l->merged ? 1 : d->kernel[2];
                int64_t k[3] = {run / across / d->kernel[1], run / across % d->kernel[1],
                                run % across};
                const uint8_t *bytes = row0 + (v + r) * l->row + sn_lines_run_at(l, run);
                for (int64_t p = 0; p < (l->merged ? d->kernel[2] : 1); p++, bytes += l->pixel) {
                    k[2] = l->merged ? p : k[2];
                    for (int64_t c = 0; c < d->c; c++)
                        if (bytes[c] != meant(d, x, o, k, c))
                            return -1;
                }
            }
        }
        met += n;
        v += n ? n : at;
    }
    return met;
}

TEST(rows_read_what_the_convolution_means)
{
    int64_t in_place = 0, deep = 0;
    for (int i = 0; i < 20000 && !test_errors; i++) {
        sn_conv_desc d;
        if (!random_conv(&d))
            continue;
        const bool merged = test_rand() % 2 && sn_lines_merge(1, d.kernel[2], d.dilation[2]);
        const sn_lines_request request = {.conv = &d,
                                          .x_pixel = d.c,
                                          .channels_bytes = d.c,
                                          .merged = merged,
                                          .row_multiple = between(1, 4),
                                          .run_end = (merged ? d.kernel[2] : 1) * d.c,
                                          .budget = between(1, 400),
                                          .want = between(1, 4)};
        sn_lines l;
        CHECK(sn_lines_plan(&l, &request));
        const int64_t pixels = d.in[0] * d.in[1] * d.in[2];
        const size_t size = (size_t)(pixels * d.c), room = size + (size_t)l.bytes;
        uint8_t *x = malloc(room), *copy = malloc((size_t)l.bytes + 1);
        for (size_t b = 0; b < size; b++)
            x[b] = (uint8_t)(test_rand() % OUTSIDE);
        memset(x + size, OUTSIDE - 1, room - size);
        const sn_lines_image image = {.pixels = x,
                                      .left = test_rand() % 2 ? (int64_t)room : (int64_t)size,
                                      .outside = OUTSIDE};
        int64_t met = 0;
        for (int64_t p = 0; p < sn_lines_parts(&l) && !test_errors; p++) {
            const sn_lines_part part = sn_lines_part_of(&l, p);
            const uint8_t *row0 = sn_lines_prepare(&l, &part, &image, copy);
            const int64_t n = check_part(&d, &l, &part, row0, x);
            CHECK_MSG(n > 0, "case %d, part %lld of %lld%s", i, (long long)p,
                      (long long)sn_lines_parts(&l), row0 == copy ? "" : ", in place");
            met += n;
            in_place += row0 != copy;
            deep += row0 != copy && part.z > 0 && d.stride[0] > 1;
        }
        CHECK_EQ(met, d.out[0] * d.out[1] * d.out[2]);
        free(x), free(copy);
    }
    CHECK(in_place > 1000 && deep > 100);
}

TEST_MAIN()
