/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of n-grams against looking for each of them at every place. */
#include "compute/ngrams.h"

#include "levels.h"

enum { TOKENS = 4, GRAMS = 12, LONGEST = 3, MOST = 400 };

typedef struct known {
    uint32_t tokens[GRAMS][LONGEST];
    int64_t length[GRAMS], columns[GRAMS], gram[GRAMS * LONGEST + 1];
    float weights[GRAMS];
    sn_ngram_edge edges[128];
    sn_ngrams t;
} known;

/* All different, so that every column is one n-gram's. */
static void make(known *k, int64_t min, int64_t max, int64_t skips, bool once)
{
    memset(k, 0, sizeof *k);
    k->t = (sn_ngrams){.min = min,
                       .max = max,
                       .skips = skips,
                       .width = GRAMS + 1,
                       .columns = k->columns,
                       .weights = once ? k->weights : NULL,
                       .once = once,
                       .edges = k->edges,
                       .cap = sn_ngrams_cap(GRAMS * LONGEST),
                       .gram = k->gram};
    sn_ngrams_clear(&k->t);
    for (int64_t g = 0; g < GRAMS; g++) {
        bool again = true;
        while (again) {
            k->length[g] = test_between(1, LONGEST);
            for (int i = 0; i < k->length[g]; i++)
                k->tokens[g][i] = (uint32_t)test_between(0, TOKENS - 1);
            again = false;
            for (int64_t o = 0; o < g; o++)
                again |= k->length[o] == k->length[g] &&
                         memcmp(k->tokens[o], k->tokens[g],
                                (size_t)k->length[g] * sizeof(uint32_t)) == 0;
        }
        k->columns[g] = g;
        k->weights[g] = test_randf();
        if (k->length[g] >= min && k->length[g] <= max)
            sn_ngrams_add(&k->t, k->tokens[g], k->length[g], g);
    }
}

static int64_t found(const known *k, int64_t g, const int32_t *row, int64_t columns)
{
    int64_t n = 0;
    if (k->length[g] < k->t.min || k->length[g] > k->t.max)
        return 0;
    for (int64_t step = 1; step <= (k->length[g] == 1 ? 1 : k->t.skips + 1); step++)
        for (int64_t from = 0; from + (k->length[g] - 1) * step < columns; from++) {
            bool same = true;
            for (int64_t i = 0; i < k->length[g]; i++)
                same &= row[from + i * step] == (int32_t)k->tokens[g][i];
            n += same;
        }
    return n;
}

static void numbers_of(const void *arg, int64_t first, int64_t n, int32_t *numbers)
{
    memcpy(numbers, (const int32_t *)arg + first, (size_t)n * sizeof *numbers);
}

TEST(every_ngram_is_counted_at_every_place_and_skip)
{
    static known k;
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    sonde_error err;
    CHECK_OK(sn_pool_create(&pool, 3, &alloc, &err));
    for (int trial = 0; trial < 100; trial++) {
        const int64_t rows = test_between(1, 20), columns = test_between(0, 20),
                      min = test_between(1, 2);
        int32_t tokens[MOST], scratch[MOST];
        float y[20 * (GRAMS + 1)];
        make(&k, min, test_between(min, LONGEST), test_between(0, 4), trial % 2);
        for (int64_t i = 0; i < rows * columns; i++)
            tokens[i] = (int32_t)test_between(-1, TOKENS - 1); /* some are unknown */
        sn_ngrams_count(&k.t, y, rows, columns, numbers_of, tokens, scratch, pool);
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t g = 0; g < GRAMS; g++) {
                const int64_t n = found(&k, g, tokens + r * columns, columns);
                const float want = !k.t.once ? (float)n
                                   : n       ? k.weights[g]
                                             : 0.0f,
                            got = y[r * (GRAMS + 1) + g];
                CHECK_MSG(got == want, "trial %d, row %lld, n-gram %lld: %g, expected %g", trial,
                          (long long)r, (long long)g, (double)got, (double)want);
            }
            CHECK(y[r * (GRAMS + 1) + GRAMS] == 0);
        }
    }
    sn_pool_free(pool);
}

TEST_MAIN()
