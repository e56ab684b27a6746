/* SPDX-License-Identifier: Apache-2.0 */
/* Every CPU level this machine has, from the plain C kernels up: drivers are tested on each. */
#ifndef SONDE_TESTS_LEVELS_H
#define SONDE_TESTS_LEVELS_H

#include "base/cpu.h"
#include "test.h"

typedef struct level {
    const char *name;
    uint32_t flags;
} level;

/* Ended by an entry with name NULL. */
static inline const level *levels(void)
{
    static level list[34]; /* flags are 32 bits */
    static const char *const names[] = {
        "baseline",
#define SN_INSTRUCTION_SET(name, bit, word, architecture, used, ...) word,
#include "base/instruction_sets.inc"
#undef SN_INSTRUCTION_SET
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        sn_cpu cpu;
        if (sn_cpu_detect(&cpu, names[i], NULL) == SONDE_OK && sn_cpu_request(&cpu))
            list[n++] = (level){names[i], cpu.flags};
    }
    /* What runs on processors with a faster AVX512-BF16, too: it has the same instructions. */
    sn_cpu cpu;
    if (sn_cpu_detect(&cpu, "bf16", NULL) == SONDE_OK)
        list[n++] = (level){"dpbf16", cpu.flags | SN_CPU_DPBF16};
    list[n].name = NULL;
    return list;
}

static inline int64_t test_between(int64_t lo, int64_t hi) /* inclusive */
{
    return lo + (int64_t)(test_rand() % (uint64_t)(hi - lo + 1));
}

static inline float *random_floats(size_t n)
{
    float *p = malloc((n + 1) * sizeof *p);
    for (size_t i = 0; i < n; i++)
        p[i] = test_randf();
    return p;
}

/* Plain [n, c, pixels] to blocks of `block` and back, element by element. */
static inline float *to_blocked(const float *x, int64_t n, int64_t c, int64_t pixels, int64_t block)
{
    int64_t blocks = (c + block - 1) / block;
    float *y = calloc((size_t)(n * blocks * block * pixels) + 1, sizeof *y);
    for (int64_t i = 0; i < n; i++)
        for (int64_t ch = 0; ch < c; ch++)
            for (int64_t p = 0; p < pixels; p++)
                y[((i * blocks + ch / block) * pixels + p) * block + ch % block] =
                    x[(i * c + ch) * pixels + p];
    return y;
}
static inline float blocked_at(const float *y, int64_t c, int64_t pixels, int64_t block, int64_t i,
                               int64_t ch, int64_t p)
{
    int64_t blocks = (c + block - 1) / block;
    return y[((i * blocks + ch / block) * pixels + p) * block + ch % block];
}

#endif
