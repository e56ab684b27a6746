/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a history fails once, and all after it: a status says so, nothing is left
 * over, and an entry is there completely or not at all. */
#include "api/counting_alloc.h"
#include "history/entries.h"

/* What people do with a history; the first failure. */
static sonde_status use(sonde_context *c, const char *path, const sonde_profile *profile,
                        const sonde_model *model, sonde_error *err)
{
    sonde_history *h = NULL;
    sonde_history_cursor *cursor = NULL;
    sonde_history_record *r = NULL;
    sonde_profile *again = NULL;
    sonde_trends *t = NULL;
    sonde_history_entry e = SONDE_INIT(sonde_history_entry);
    sonde_history_filter f = SONDE_INIT(sonde_history_filter);
    sonde_history_new what = SONDE_INIT(sonde_history_new);
    sonde_change change = SONDE_INIT(sonde_change);
    sonde_trend_options o = SONDE_INIT(sonde_trend_options);
    int64_t id;
    char text[100];
    what.profile = profile;
    what.source = model;
    what.options = "{\"b\":[1,2],\"a\":{\"c\":\"d\"}}";
    f.model = "tiny*";
    f.options = "b=[1,2]";
    o.across = SONDE_ACROSS_OPTIONS | SONDE_ACROSS_MODELS;
    o.op = "Gemm";
    sonde_status st = sonde_history_open(c, path, NULL, &h, err);
    if (!st)
        st = sonde_history_add(h, &what, &id, err);
    if (!st)
        st = sonde_history_list(h, &f, &cursor, err);
    if (!st)
        st = sonde_history_next(cursor, &e, err);
    if (!st)
        st = sonde_history_find(h, "@0", &f, &id, err);
    if (!st)
        st = sonde_history_get(h, id, &r, err);
    if (!st)
        st = sonde_history_record_profile(r, &again, err);
    if (!st)
        st = sonde_history_record_compare(r, r, &change, err);
    if (!st)
        sonde_history_record_unlike(r, r, text, sizeof text);
    if (!st)
        st = sonde_history_trends(h, &f, &o, &t, err);
    if (!st)
        st = sonde_trends_save(t, in_dir("memory.svg"), err);
    sonde_trends_release(t);
    sonde_profile_release(again);
    sonde_history_record_release(r);
    sonde_history_cursor_release(cursor);
    sonde_history_close(h);
    return st;
}

TEST(every_failing_allocation_is_a_status)
{
    NEED_SQLITE();
    sonde_error err;
    sonde_model *model = NULL;
    sonde_profile *profile = NULL;
    const char *path = in_dir("memory.db");
    make_profile(8, &model, &profile);
    sonde_history *first = open_at(path, &err);
    sonde_history_new other = SONDE_INIT(sonde_history_new); /* a trend of different ones */
    other.profile = profile;
    other.options = "{\"b\":[1,2],\"e\":[5]}";
    CHECK_OK(sonde_history_add(first, &other, NULL, &err));
    sonde_history_close(first);
    size_t added = 1;
    for (long k = 0;; k++) {
        counting count = {.left = -1};
        sonde_context_options o = SONDE_INIT(sonde_context_options);
        sonde_context *c = NULL;
        o.threads = 1;
        o.alloc = counting_alloc;
        o.free = counting_free;
        o.alloc_user = &count;
        CHECK_OK(sonde_context_create(&o, &c, &err));
        count.left = k;
        const sonde_status st = use(c, path, profile, model, &err);
        const bool failed = count.failed > 0;
        CHECK_MSG(st == (failed ? SONDE_OUT_OF_MEMORY : SONDE_OK), "allocation %ld: %d, %s", k,
                  (int)st, err.message);
        count.left = -1;
        sonde_context_release(c);
        CHECK_MSG(count.live == 0, "failing allocation %ld leaves %ld blocks", k, count.live);
        sonde_history *h = open_at(path, &err);
        const size_t n = count_entries(h, NULL);
        CHECK_MSG(n == added || n == added + 1, "allocation %ld: %zu entries, %zu before", k, n,
                  added);
        added = n;
        sonde_history_close(h);
        if (!failed)
            break;
    }
    CHECK(added > 2);
    sonde_profile_release(profile);
    sonde_model_release(model);
}

TEST_MAIN()
