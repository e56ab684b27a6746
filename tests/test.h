/* SPDX-License-Identifier: Apache-2.0 */
/* A test reads like the sentence it proves:
 *     TEST(conv_with_asymmetric_padding_matches_reference) { CHECK_EQ(a, b); }
 * TEST_MAIN() in the same file runs them all, or those whose name contains argv[1], and closes with
 * "N passed, M failed", and ", K skipped" where something could not be tried here: a whole test
 * (SKIP_TEST) or one of its cases (test_skip). SONDE_SEED replays a printed seed. */
#ifndef SONDE_TESTS_TEST_H
#define SONDE_TESTS_TEST_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct test_case {
    const char *name;
    void (*fn)(void);
    struct test_case *next;
} test_case;

static test_case *test_first;
static test_case **test_last = &test_first;
static int test_errors;
static int test_skipped;     /* cases and tests */
static bool test_is_skipped; /* the one that runs now */

#define TEST(name)                                                                                 \
    static void test_##name(void);                                                                 \
    static test_case test_case_##name = {#name, test_##name, NULL};                                \
    __attribute__((constructor)) static void test_register_##name(void)                            \
    {                                                                                              \
        *test_last = &test_case_##name;                                                            \
        test_last = &test_case_##name.next;                                                        \
    }                                                                                              \
    static void test_##name(void)

#define CHECK_MSG(cond, ...)                                                                       \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            test_errors++;                                                                         \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond);                             \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            return;                                                                                \
        }                                                                                          \
    } while (0)
#define CHECK(cond) CHECK_MSG(cond, "false")
#define CHECK_EQ(a, b)                                                                             \
    do {                                                                                           \
        long long test_a_ = (long long)(a), test_b_ = (long long)(b);                              \
        CHECK_MSG(test_a_ == test_b_, "%s = %lld, expected %s = %lld", #a, test_a_, #b, test_b_);  \
    } while (0)
#define CHECK_STR(a, b)                                                                            \
    do {                                                                                           \
        const char *test_a_ = (a), *test_b_ = (b);                                                 \
        CHECK_MSG(test_a_ &&test_b_ &&strcmp(test_a_, test_b_) == 0,                               \
                  "got \"%s\", expected \"%s\"", test_a_ ? test_a_ : "(null)",                     \
                  test_b_ ? test_b_ : "(null)");                                                   \
    } while (0)
#define CHECK_HAS(a, part)                                                                         \
    CHECK_MSG(strstr((a), (part)) != NULL, "\"%s\" does not contain \"%s\"", (a), (part))
/* A call that must succeed, with a sonde_error named err in scope. */
#define CHECK_OK(expr) CHECK_MSG((expr) == SONDE_OK, "%s", err.message)

/* Says what cannot be tried here and why, and counts it. */
__attribute__((format(printf, 1, 2))) static inline void test_skip(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("skipped ");
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
    test_skipped++;
}
/* The rest of this test cannot be tried here. */
#define SKIP_TEST(...)                                                                             \
    do {                                                                                           \
        test_is_skipped = true;                                                                    \
        test_skip(__VA_ARGS__);                                                                    \
        return;                                                                                    \
    } while (0)

/* Seeded pseudo-random numbers (splitmix64); the seed is printed on failure. */
static uint64_t test_seed = 42, test_state;
static inline uint64_t test_rand(void)
{
    uint64_t z = (test_state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
static inline float test_randf(void)
{
    return (float)(int32_t)(test_rand() >> 32) * 0x1p-31f;
} /* [-1, 1) */

static inline int test_run(int argc, char **argv)
{
    int passed = 0, failed = 0;
    if (getenv("SONDE_SEED"))
        test_seed = strtoull(getenv("SONDE_SEED"), NULL, 0);
    for (test_case *t = test_first; t; t = t->next) {
        if (argc > 1 && !strstr(t->name, argv[1]))
            continue;
        test_errors = 0;
        test_is_skipped = false;
        test_state = test_seed;
        t->fn();
        if (test_errors) {
            failed++;
            fprintf(stderr, "FAILED %s (SONDE_SEED=%llu)\n", t->name,
                    (unsigned long long)test_seed);
        } else {
            passed += !test_is_skipped;
        }
    }
    printf("%d passed, %d failed", passed, failed);
    if (test_skipped)
        printf(", %d skipped", test_skipped);
    printf("\n");
    return failed ? 1 : 0;
}
#define TEST_MAIN()                                                                                \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return test_run(argc, argv);                                                               \
    }

#endif
