/* SPDX-License-Identifier: Apache-2.0 */
/* A database of which somebody, or a disk, changed bytes: whatever it says then is read, compared
 * and shown without a crash, and failures are sentences. */
#include "history/entries.h"

typedef struct image {
    unsigned char *bytes;
    size_t n;
} image;

static image read_image(const char *path)
{
    image m = {NULL, 0};
    FILE *f = fopen(path, "rb");
    if (!f)
        abort();
    fseek(f, 0, SEEK_END);
    m.n = (size_t)ftell(f);
    rewind(f);
    m.bytes = malloc(m.n);
    if (!m.bytes || fread(m.bytes, 1, m.n, f) != m.n)
        abort();
    fclose(f);
    return m;
}

static void write_image(const char *path, const image *m, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(m->bytes, 1, n, f) != n || fclose(f) != 0)
        abort();
}

static int said, mute; /* failures with a sentence, and without */

static bool fine(sonde_status st, const sonde_error *err)
{
    if (st && st != SONDE_NOT_FOUND && strlen(err->message) > 10)
        said++;
    else if (st && st != SONDE_NOT_FOUND)
        mute++;
    return st == SONDE_OK;
}

static void use_record(sonde_history *h, int64_t id, const sonde_history_record *other)
{
    sonde_error err = {.message = ""};
    sonde_history_record *r = NULL;
    sonde_profile *p = NULL;
    sonde_history_entry e = SONDE_INIT(sonde_history_entry);
    sonde_history_operator op = SONDE_INIT(sonde_history_operator);
    sonde_change change = SONDE_INIT(sonde_change);
    char text[300];
    if (!fine(sonde_history_get(h, id, &r, &err), &err))
        return;
    fine(sonde_history_record_entry(r, &e, &err), &err);
    for (size_t i = 0; sonde_history_record_operator(r, i, &op, &err) == SONDE_OK; i++)
        CHECK(op.name);
    fine(sonde_history_record_compare(r, other ? other : r, &change, &err), &err);
    sonde_history_record_unlike(r, other ? other : r, text, sizeof text);
    if (fine(sonde_history_record_profile(r, &p, &err), &err)) {
        sonde_comparison *c = NULL;
        if (fine(sonde_profile_compare(p, p, SONDE_BY_NODE, &c, &err), &err))
            sonde_comparison_release(c);
    }
    sonde_profile_release(p);
    sonde_history_record_release(r);
}

static void use_list(sonde_history *h)
{
    sonde_error err = {.message = ""};
    sonde_history_cursor *c = NULL;
    sonde_history_entry e = SONDE_INIT(sonde_history_entry);
    size_t n = 0;
    if (fine(sonde_history_list(h, NULL, &c, &err), &err)) {
        for (sonde_status st; n < 1000; n++) {
            st = sonde_history_next(c, &e, &err);
            if (!fine(st, &err))
                break;
            CHECK(e.model && e.options && e.commit && isfinite(e.median_ns) && e.median_ns >= 0);
        }
        CHECK(n < 1000); /* it ends */
    }
    sonde_history_cursor_release(c);
}

static void use_trends(sonde_history *h)
{
    sonde_error err = {.message = ""};
    sonde_trends *t = NULL;
    sonde_trend_options o = SONDE_INIT(sonde_trend_options);
    for (int k = 0; k < 2; k++) {
        o.op = k ? "Gemm" : NULL;
        o.across = k ? SONDE_ACROSS_OPTIONS | SONDE_ACROSS_MODELS : 0;
        if (fine(sonde_history_trends(h, NULL, &o, &t, &err), &err)) {
            sonde_trend s = SONDE_INIT(sonde_trend);
            for (size_t i = 0; sonde_trends_get(t, i, &s, &err) == SONDE_OK; i++)
                CHECK(s.points > 0 && s.levels > 0 && s.title && s.machine);
        }
        sonde_trends_release(t);
        t = NULL;
    }
}

/* Everything that can be asked of a history, and then a change. */
static void use(const char *path)
{
    sonde_error err = {.message = ""};
    for (int read_only = 1; read_only >= 0; read_only--) {
        sonde_history *h = NULL;
        sonde_history_options o = SONDE_INIT(sonde_history_options);
        int64_t id;
        o.read_only = read_only;
        o.wait_ms = 1;
        if (!fine(sonde_history_open(NULL, path, &o, &h, &err), &err))
            continue;
        use_list(h);
        for (id = 1; id <= 4; id++)
            use_record(h, id, NULL);
        fine(sonde_history_find(h, "@-1", NULL, &id, &err), &err);
        use_trends(h);
        if (!read_only) {
            err.message[0] = 0;
            if (!add_entry(h, "m", "{\"a\":1}", 1000, 9, "", &err))
                fine(err.status, &err);
            fine(sonde_history_remove(h, 2, &err), &err);
        }
        sonde_history_close(h);
    }
}

/* Entries with all that belongs to them, in one file. */
static image make_image(const char *path)
{
    sonde_error err;
    sonde_model *model = NULL;
    sonde_profile *profile = NULL;
    sonde_history_new what = SONDE_INIT(sonde_history_new);
    make_profile(6, &model, &profile);
    sonde_history *h = open_at(path, &err);
    what.profile = profile;
    what.source = model;
    what.note = "a note";
    what.commit = "0123456789";
    if (!h || sonde_history_add(h, &what, NULL, &err) || sonde_history_add(h, &what, NULL, &err) ||
        !add_entry(h, "other", "{\"batch\":8,\"x\":[1,2]}", 1000, 5, "", &err))
        abort();
    sonde_history_close(h); /* the last one leaves no log beside it */
    sonde_profile_release(profile);
    sonde_model_release(model);
    return read_image(path);
}

TEST(changed_bytes_never_crash)
{
    NEED_SQLITE();
    const image whole = make_image(in_dir("whole.db"));
    const char *path = in_dir("changed.db"), *full = getenv("SONDE_FULL");
    const int rounds = full && strcmp(full, "1") == 0 ? 5000 : 250;
    image m = {malloc(whole.n), whole.n};
    char beside[600];
    CHECK(m.bytes && whole.n > 8192);
    said = mute = 0;
    for (int round = 0; round < rounds; round++) {
        memcpy(m.bytes, whole.bytes, whole.n);
        const size_t flips = 1 + test_rand() % 8;
        for (size_t k = 0; k < flips; k++) {
            /* Half of them in the heads of pages, where one byte changes much. */
            size_t at = test_rand() % whole.n;
            if (test_rand() % 2)
                at = at / 4096 * 4096 + test_rand() % 120;
            m.bytes[at < whole.n ? at : 0] = (unsigned char)test_rand();
        }
        write_image(path, &m, test_rand() % 8 ? whole.n : test_rand() % whole.n);
        use(path);
        for (int k = 0; k < 3; k++) {
            static const char *const ends[] = {"", "-wal", "-shm"};
            snprintf(beside, sizeof beside, "%s%s", path, ends[k]);
            unlink(beside);
        }
        snprintf(beside, sizeof beside, "%s-journal", path);
        unlink(beside);
    }
    CHECK_EQ(mute, 0);
    CHECK_MSG(said > rounds / 10, "only %d failures: nothing was damaged", said);
    free(m.bytes);
    free(whole.bytes);
}

TEST(a_damaged_database_is_named_with_what_to_do)
{
    NEED_SQLITE();
    image m = make_image(in_dir("damaged.db"));
    const char *path = in_dir("damaged.db");
    sonde_error err = {.message = ""};
    sonde_history_cursor *c = NULL;
    sonde_history_entry e = SONDE_INIT(sonde_history_entry);
    for (size_t at = 4096; at < m.n; at++)
        m.bytes[at] = 0xAA;
    write_image(path, &m, m.n);
    sonde_history *h = open_at(path, &err);
    if (h) {
        sonde_status st = sonde_history_list(h, NULL, &c, &err);
        if (!st)
            st = sonde_history_next(c, &e, &err);
        CHECK_EQ(st, SONDE_INVALID_FORMAT);
    }
    CHECK_HAS(err.message, "damaged");
    CHECK_HAS(err.message, ".recover");
    sonde_history_cursor_release(c);
    sonde_history_close(h);
    free(m.bytes);
}

TEST_MAIN()
