/* SPDX-License-Identifier: Apache-2.0 */
/* A valid model is cut at every byte, has every bit flipped and random bytes overwritten: each
 * result must load or end in an error with a sentence, and leave nothing behind. Then the same
 * model is loaded with every single allocation failing in turn. */
#include "failing_alloc.h"
#include "proto.h"

/* Loads the bytes; checks what must hold whatever happens. Returns whether it failed properly. */
static bool survives(const uint8_t *bytes, size_t n, char *why, size_t cap)
{
    fixture f;
    fixture_init(&f);
    pb copy = {0};
    pb_raw(&copy, bytes, n);
    sonde_status st = fixture_load(&f, copy);
    bool ok = st == SONDE_OK ? f.m != NULL : f.m == NULL && f.err.message[0] && f.err.status == st;
    size_t peak = atomic_load(&f.alloc.peak_bytes);
    if (!ok)
        snprintf(why, cap, "status %d: %s", (int)st, f.err.message);
    if (peak > (size_t)100 << 20) {
        snprintf(why, cap, "%zu bytes allocated", peak);
        ok = false;
    }
    if (!fixture_free(&f)) {
        snprintf(why, cap, "memory is left: %s", f.err.message);
        ok = false;
    }
    return ok;
}

TEST(a_model_cut_anywhere_ends_in_an_error)
{
    pb m = pb_full_model();
    char why[1200];
    for (size_t n = 0; n < m.n; n++)
        CHECK_MSG(survives(m.data, n, why, sizeof why), "cut at byte %zu of %zu: %s", n, m.n, why);
    free(m.data);
}

TEST(a_model_with_any_bit_flipped_loads_or_ends_in_an_error)
{
    pb m = pb_full_model();
    char why[1200];
    for (size_t i = 0; i < m.n; i++)
        for (int bit = 0; bit < 8; bit++) {
            m.data[i] ^= (uint8_t)(1 << bit);
            CHECK_MSG(survives(m.data, m.n, why, sizeof why), "byte %zu, bit %d: %s", i, bit, why);
            m.data[i] ^= (uint8_t)(1 << bit);
        }
    free(m.data);
}

TEST(a_model_with_random_bytes_overwritten_loads_or_ends_in_an_error)
{
    static const uint8_t favourites[] = {0, 1, 0x7F, 0x80, 0xFF, 0x0B, 0x0C};
    char why[1200];
    pb m = pb_full_model();
    uint8_t *copy = malloc(m.n);
    for (int round = 0; round < 5000; round++) {
        memcpy(copy, m.data, m.n);
        for (uint64_t k = test_rand() % 8 + 1; k > 0; k--) {
            uint64_t r = test_rand();
            copy[r % m.n] = r & 1 ? (uint8_t)(r >> 32) : favourites[(r >> 32) % sizeof favourites];
        }
        CHECK_MSG(survives(copy, m.n, why, sizeof why), "round %d: %s", round, why);
    }
    free(copy);
    free(m.data);
}

/* ---- failing allocations ---- */

static bool sink(void *user, const void *data, size_t bytes)
{
    (void)data;
    *(size_t *)user += bytes;
    return true;
}

TEST(every_failing_allocation_while_loading_and_writing_is_reported)
{
    pb m = pb_full_model();
    bool done = false;
    long k = 0;
    for (; !done; k++) {
        fixture f;
        size_t written = 0;
        fixture_init(&f);
        failing_alloc bad;
        f.ctx.alloc = failing_init(&bad);
        bad.fail_at = k;
        bad.once = true;
        sonde_status st = sn_model_load_memory(&f.ctx, m.data, m.n, NULL, NULL, &f.m, &f.err);
        if (st == SONDE_OK)
            st = sn_onnx_write(f.m, f.m->graph, &(sn_onnx_sink){.write = sink, .user = &written},
                               &f.err);
        done = st == SONDE_OK && bad.calls <= k;
        CHECK_MSG(done || st == SONDE_OUT_OF_MEMORY, "allocation %ld: status %d, %s", k, (int)st,
                  f.err.message);
        sn_model_unref(f.m);
        f.m = NULL;
        CHECK_EQ(bad.live, 0);
        f.ctx.alloc = &f.alloc;
        CHECK(fixture_free(&f));
    }
    CHECK(k > 50);
    free(m.data);
}

TEST_MAIN()
