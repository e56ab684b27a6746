/* SPDX-License-Identifier: Apache-2.0 */
/* Labels: put, replaced, taken away, parsed, and what is refused. */
#include "profile/labels.h"

#include "failing_alloc.h"
#include "test.h"

TEST(a_later_label_replaces_one_with_the_same_key_in_its_place)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_labels l;
    sn_labels_init(&l, failing_init(&m));
    CHECK_OK(sn_labels_put(&l, "host", "a", &err));
    CHECK_OK(sn_labels_put(&l, "odd \"key\"\n\xFF", "=,\\", &err));
    CHECK_OK(sn_labels_put(&l, "host", "b", &err));
    CHECK_EQ(l.list.n, 2);
    CHECK_STR(l.list.data[0].key, "host");
    CHECK_STR(l.list.data[0].value, "b");
    CHECK_STR(sn_labels_get(&l, "odd \"key\"\n\xFF"), "=,\\");
    CHECK_STR(sn_labels_get(&l, "none"), "");
    sn_labels_free(&l);
    CHECK_EQ(m.live, 0);
}

TEST(an_empty_value_takes_a_label_away)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_labels l;
    sn_labels_init(&l, failing_init(&m));
    CHECK_OK(sn_labels_parse(&l, "host=a,worker=7,version=3", &err));
    CHECK_OK(sn_labels_put(&l, "worker", "", &err));
    CHECK_OK(sn_labels_put(&l, "never", "", &err));
    CHECK_EQ(l.list.n, 2);
    CHECK_STR(l.list.data[1].key, "version");
    CHECK_STR(sn_labels_get(&l, "worker"), "");
    sn_labels_free(&l);
    CHECK_EQ(m.live, 0);
}

TEST(a_set_of_changes_takes_labels_away_where_it_is_put)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_labels l, changes;
    sn_labels_init(&l, failing_init(&m));
    sn_labels_init_changes(&changes, &m.a);
    CHECK_OK(sn_labels_parse(&l, "host=a,worker=7", &err));
    CHECK_OK(sn_labels_parse(&changes, "host=,version=3,worker=8,never=", &err));
    CHECK_EQ(changes.list.n, 4);
    CHECK_OK(sn_labels_put_all(&l, &changes, &err));
    CHECK_EQ(l.list.n, 2);
    CHECK_STR(sn_labels_get(&l, "host"), "");
    CHECK_STR(sn_labels_get(&l, "worker"), "8");
    CHECK_STR(sn_labels_get(&l, "version"), "3");
    sn_labels_free(&l);
    sn_labels_free(&changes);
    CHECK_EQ(m.live, 0);
}

TEST(a_backslash_takes_the_next_character_as_it_is)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_labels l;
    sn_labels_init(&l, failing_init(&m));
    CHECK_OK(sn_labels_parse(&l, "a\\=b=c\\,d=e,x=\\\\,y=z\\", &err));
    CHECK_EQ(l.list.n, 3);
    CHECK_STR(sn_labels_get(&l, "a=b"), "c,d=e");
    CHECK_STR(sn_labels_get(&l, "x"), "\\");
    CHECK_STR(sn_labels_get(&l, "y"), "z\\");
    sn_labels_free(&l);
    CHECK_EQ(m.live, 0);
}

TEST(what_is_no_label_is_refused)
{
    static char longest[SN_LABEL_VALUE_BYTES + 2];
    failing_alloc m;
    sonde_error err = {0};
    sn_labels l;
    sn_labels_init(&l, failing_init(&m));
    memset(longest, 'x', sizeof longest - 1);
    CHECK_EQ(sn_labels_parse(&l, "host", &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "'host' has no value");
    CHECK_EQ(sn_labels_parse(&l, "a=1,,b=2", &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sn_labels_put(&l, "", "x", &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sn_labels_put(&l, "x", longest, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sn_labels_put(&l, longest, "x", &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "the maximum is 255");
    longest[SN_LABEL_VALUE_BYTES] = 0;
    CHECK_OK(sn_labels_put(&l, "x", longest, &err));
    CHECK_STR(sn_labels_get(&l, "a"), "1"); /* what came before the mistake */
    char key[16];
    for (int i = (int)l.list.n; i < SN_LABELS_MOST; i++) {
        snprintf(key, sizeof key, "key %d", i);
        CHECK_OK(sn_labels_put(&l, key, "v", &err));
    }
    CHECK_EQ(sn_labels_put(&l, "one more", "v", &err), SONDE_LIMIT);
    CHECK_OK(sn_labels_put(&l, key, "another", &err));
    sn_labels_free(&l);
    CHECK_EQ(m.live, 0);
}

TEST(every_failing_allocation_is_told)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_labels l;
    sonde_status st = SONDE_OUT_OF_MEMORY;
    for (long after = 0; st != SONDE_OK; after++) {
        failing_init(&m);
        m.fail_at = after;
        sn_labels_init(&l, &m.a);
        st = sn_labels_parse(&l, "host=a,worker=b,host=c", &err);
        CHECK(st == SONDE_OK || st == SONDE_OUT_OF_MEMORY);
        sn_labels_free(&l);
        CHECK_EQ(m.live, 0);
    }
}

TEST_MAIN()
