/* SPDX-License-Identifier: Apache-2.0 */
/* Quantisation and channels last; see quantize_last.h. A unit is a stretch of an image's pixels; of
 * these, the bytes of some channels at a time lie on the stack, channels first. */
#include "compute/quantize_last.h"

#include "compute/parallel.h"
#include "compute/split.h"

enum {
    BUFFER = 1 << 14,   /* bytes: half of a first-level cache */
    MOST_CHANNELS = 64, /* at a time, unless the pixels are few */
    LEAST_PIXELS = 64
};

typedef struct last_call {
    const sn_channels_last *g;
    uint32_t cpu_flags;
    const sn_kernels *k;
    sonde_dtype type;
    sn_qparam q;
    float *numbers; /* plain; written or read */
    uint8_t *bytes; /* channels last */
    bool quantize;
    int64_t channels, pixels; /* that are in the buffer at a time */
    int64_t stretches;        /* of an image */
} last_call;

/* n numbers of the plain side, to bytes or from them. */
static void convert(const last_call *l, uint8_t *bytes, float *numbers, int64_t n)
{
    if (l->quantize)
        sn_q8_store(l->cpu_flags, l->type, l->q, bytes, numbers, n);
    else
        sn_q8_load(l->cpu_flags, l->type, l->q, numbers, bytes, n);
}

static void convert_channels(const last_call *l, uint8_t *buffer, float *numbers, int64_t channels,
                             int64_t pixels)
{
    if (pixels == l->g->pixels) { /* one behind the other on both sides */
        convert(l, buffer, numbers, channels * pixels);
        return;
    }
    for (int64_t c = 0; c < channels; c++)
        convert(l, buffer + c * pixels, numbers + c * l->g->pixels, pixels);
}

static void convert_stretches(void *arg, size_t lo, size_t hi)
{
    const last_call *l = arg;
    const sn_channels_last *g = l->g;
    uint8_t buffer[BUFFER];
    for (int64_t u = (int64_t)lo; u < (int64_t)hi; u++) {
        const int64_t image = u / l->stretches, p = u % l->stretches * l->pixels;
        const int64_t n = sn_min(l->pixels, g->pixels - p);
        for (int64_t c = 0; c < g->c; c += l->channels) {
            const int64_t m = sn_min(l->channels, g->c - c);
            uint8_t *last = l->bytes + (image * g->pixels + p) * g->c + c;
            float *first = l->numbers + (image * g->c + c) * g->pixels + p;
            if (l->quantize) {
                convert_channels(l, buffer, first, m, n);
                l->k->u8_turn(last, g->c, buffer, n, (size_t)m, (size_t)n);
            } else {
                l->k->u8_turn(buffer, n, last, g->c, (size_t)n, (size_t)m);
                convert_channels(l, buffer, first, m, n);
            }
        }
    }
}

static void run(last_call *l, sn_pool *pool)
{
    const sn_channels_last *g = l->g;
    if (g->n == 0 || g->c == 0 || g->pixels == 0)
        return;
    l->k = sn_kernels_get(l->cpu_flags);
    l->channels = sn_min(g->c, MOST_CHANNELS);
    l->pixels = sn_min(g->pixels, BUFFER / l->channels / LEAST_PIXELS * LEAST_PIXELS);
    if (l->pixels == g->pixels)
        l->channels = sn_min(g->c, BUFFER / g->pixels);
    l->stretches = sn_ceil_div(g->pixels, l->pixels);
    sn_parallel_range(pool, (size_t)(g->n * l->stretches), (size_t)(2 * l->pixels * g->c),
                      convert_stretches, l);
}

void sn_quantize_to_last(const sn_channels_last *g, uint32_t cpu_flags, sonde_dtype t, sn_qparam q,
                         const float *x, void *y, sn_pool *pool)
{
    last_call l = {.g = g,
                   .cpu_flags = cpu_flags,
                   .type = t,
                   .q = q,
                   .numbers = (float *)(uintptr_t)x, /* read only */
                   .bytes = y,
                   .quantize = true};
    run(&l, pool);
}

void sn_dequantize_from_last(const sn_channels_last *g, uint32_t cpu_flags, sonde_dtype t,
                             sn_qparam q, const void *x, float *y, sn_pool *pool)
{
    last_call l = {.g = g,
                   .cpu_flags = cpu_flags,
                   .type = t,
                   .q = q,
                   .numbers = y,
                   .bytes = (uint8_t *)(uintptr_t)x /* read only */};
    run(&l, pool);
}
