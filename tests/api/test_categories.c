/* SPDX-License-Identifier: Apache-2.0 */
/* Which spans traces show: chosen when recording starts, or when a profile is saved. */
#include <stdio.h>
#include <unistd.h>

#include "sonde/experimental/profile.h"
#include "sonde/sonde.h"

#include "tiny_session.h"

/* What a file holds, and what is said about it. */
typedef struct held {
    uint64_t spans, iterations;
    char note[256];
} held;

static held look(const tiny_session *f)
{
    sonde_error err;
    sonde_profile *p = NULL;
    held h = {0, 0, ""};
    sonde_profile_summary s = SONDE_INIT(sonde_profile_summary);
    if (sonde_profile_load(f->context, f->path, &p, &err) ||
        sonde_profile_summary_get(p, &s, &err)) {
        snprintf(h.note, sizeof h.note, "%.250s", err.message);
    } else {
        h.spans = s.spans;
        h.iterations = s.iterations;
        snprintf(h.note, sizeof h.note, "%.250s", s.note);
    }
    sonde_profile_release(p);
    return h;
}

TEST(a_profile_is_whole_and_its_traces_show_what_was_chosen)
{
    tiny_session f;
    sonde_error err;
    sonde_profile *p = NULL;
    sonde_profiler_options o = SONDE_INIT(sonde_profiler_options);
    sonde_profile_summary s = SONDE_INIT(sonde_profile_summary);
    tiny_open(&f, 1, "categories");
    o.level = 2;
    o.categories = "iteration,operator";
    CHECK_OK(sonde_profiler_start_with(f.context, &o, &err));
    tiny_run(&f, 5);
    CHECK_OK(sonde_profiler_stop(f.context, &p, &err));
    CHECK_OK(sonde_profile_summary_get(p, &s, &err));
    CHECK_EQ(s.iterations, 5);
    CHECK(s.spans > 5 + 5 * 3); /* memory and the model, too */

    CHECK_OK(sonde_profile_save(p, f.path, &err));
    held h = look(&f);
    CHECK_EQ(h.iterations, 5);
    CHECK_EQ(h.spans, 5 + 5 * 3);
    CHECK_HAS(h.note, "the file contains only spans of these categories: iteration, operator");

    sonde_export_options e = SONDE_INIT(sonde_export_options);
    e.categories = "operator,user";
    CHECK_OK(sonde_profile_save_with(p, f.path, &e, &err));
    CHECK_EQ(look(&f).spans, 5 * 3);
    e.categories = "thread";
    CHECK_EQ(sonde_profile_save_with(p, f.path, &e, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "no spans of category 'thread', only of iteration, operator");
    e.categories = "everything";
    CHECK_EQ(sonde_profile_save_with(p, f.path, &e, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "unknown category 'everything'; the categories are model, ");
    sonde_profile_release(p);
    tiny_close(&f);
}

TEST(a_stream_writes_only_what_was_chosen)
{
    tiny_session f;
    sonde_error err;
    sonde_profiler_options o = SONDE_INIT(sonde_profiler_options);
    tiny_open(&f, 1, "categories");
    o.level = 3;
    o.path = f.path;
    o.categories = "operator";
    CHECK_OK(sonde_profiler_start_with(f.context, &o, &err));
    tiny_run(&f, 100);
    CHECK_OK(sonde_profiler_stop(f.context, NULL, &err));
    held h = look(&f);
    CHECK_EQ(h.spans, 300);
    CHECK_HAS(h.note, "operator");
    tiny_close(&f);
}

TEST(options_that_mean_nothing_start_nothing)
{
    tiny_session f;
    sonde_error err;
    sonde_profile *p = NULL;
    sonde_profiler_options o = SONDE_INIT(sonde_profiler_options);
    tiny_open(&f, 1, "categories");
    CHECK_EQ(sonde_profiler_start_with(f.context, &o, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "level is 0, expected 1 to 3");
    CHECK_EQ(sonde_profiler_start_with(f.context, NULL, &err), SONDE_INVALID_ARGUMENT);
    o.level = 1;
    o.categories = "operator,usr";
    CHECK_EQ(sonde_profiler_start_with(f.context, &o, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "unknown category 'usr'");
    CHECK_EQ(sonde_profiler_stop(f.context, &p, &err), SONDE_INVALID_ARGUMENT);
    /* The choice ends with the profile it was made for. */
    o.categories = "operator";
    CHECK_OK(sonde_profiler_start_with(f.context, &o, &err));
    CHECK_OK(sonde_profiler_stop(f.context, NULL, &err));
    CHECK_OK(sonde_profiler_start(f.context, 1, &err));
    tiny_run(&f, 2);
    CHECK_OK(sonde_profiler_stop(f.context, &p, &err));
    CHECK_OK(sonde_profile_save(p, f.path, &err));
    held h = look(&f);
    CHECK_EQ(h.iterations, 2);
    CHECK_STR(h.note, "");
    CHECK_STR(sonde_category_name(0), "model");
    CHECK_STR(sonde_category_name(7), "device");
    CHECK(!sonde_category_name(8));
    sonde_profile_release(p);
    tiny_close(&f);
}

TEST(a_format_may_be_chosen_whatever_the_file_is_called)
{
    tiny_session f;
    sonde_error err;
    sonde_profile *p = NULL;
    sonde_export_options e = SONDE_INIT(sonde_export_options);
    tiny_open(&f, 1, "categories");
    CHECK_OK(sonde_profiler_start(f.context, 1, &err));
    tiny_run(&f, 2);
    CHECK_OK(sonde_profiler_stop(f.context, &p, &err));
    e.format = ".csv";
    CHECK_OK(sonde_profile_save_with(p, f.path, &e, &err));
    FILE *file = fopen(f.path, "rb");
    char head[16] = "";
    CHECK(file && fread(head, 1, 12, file) == 12);
    if (file)
        fclose(file);
    CHECK_STR(head, "weight shape");
    e.format = ".parquet";
    CHECK_EQ(sonde_profile_save_with(p, f.path, &e, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "unknown format of '.parquet'");
    sonde_profile_release(p);
    tiny_close(&f);
}

TEST_MAIN()
