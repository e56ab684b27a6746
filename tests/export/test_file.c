/* SPDX-License-Identifier: Apache-2.0 */
/* Which format a path picks, and what happens to the file. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/json.h"
#include "export/memory_sink.h"
#include "export/no_page.h"
#include "export/writer.h"
#include "test.h"

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    char *text = calloc(1, 1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    text[n] = 0;
    fclose(f);
    return text;
}

static int files_in(const char *dir)
{
    DIR *d = opendir(dir);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

TEST(the_longest_suffix_picks_the_format)
{
    CHECK_STR(sn_exporter_for_path("a/b.json")->name, "chrome");
    CHECK_STR(sn_exporter_for_path("a/b.summary.json")->name, "summary");
    CHECK_STR(sn_exporter_for_path("B.MD")->name, "markdown");
    CHECK_STR(sn_exporter_for_path("t.txt")->name, "text");
    CHECK(sn_exporter_for_path("json") == NULL);
    CHECK(sn_exporter_for_path("") == NULL);
    CHECK(sn_exporter_for_path("a.json.zip") == NULL);
    size_t k = 0;
    for (const sn_exporter *row; (row = sn_exporter_row(k)) != NULL; k++) {
        CHECK(row->suffix[0] == '.' && row->name[0] && row->summary[0] && row->write);
        CHECK_MSG(sn_exporter_for_path(row->suffix) == row, "%s", row->suffix);
    }
    CHECK(k > 0);
    CHECK(sn_exporter_row(k + 100) == NULL);
}

TEST(a_file_is_complete_or_not_there)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    char dir[] = "/tmp/sonde_export_XXXXXX", path[128];
    CHECK(mkdtemp(dir) != NULL);
    const sn_exporter *row;
    for (size_t k = 0; (row = sn_exporter_row(k)) != NULL; k++) {
        if (is_missing(row))
            continue;
        snprintf(path, sizeof path, "%s/out%s", dir, row->suffix);
        CHECK_OK(sn_export_file(p, path, &err));
        memory_sink out;
        CHECK_OK(row->write(p, memory_sink_init(&out), &err));
        char *text = slurp(path);
        CHECK_STR(text, out.text);
        CHECK_OK(sn_export_file(p, path, &err)); /* again: replaced, not appended to */
        struct stat info;
        CHECK(stat(path, &info) == 0 && (size_t)info.st_size == out.n);
        CHECK_EQ(files_in(dir), 1);
        free(text);
        free(out.text);
        unlink(path);
    }
    rmdir(dir);
    sn_profile_free(p);
}

TEST(problems_name_the_path_and_the_cause)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    CHECK_EQ(sn_export_file(p, "/nonexistent/x.json", &err), SONDE_IO);
    CHECK_HAS(err.message, "/nonexistent/x.json");
    CHECK_HAS(err.message, "the folder '/nonexistent' does not exist");
    CHECK_EQ(sn_export_file(p, "profile.foo", &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "'profile.foo'");
    CHECK_HAS(err.message, ".summary.json");
    CHECK_EQ(sn_export_file(p, "-x.foo", NULL), SONDE_INVALID_ARGUMENT);
    struct stat info;
    char dir[] = "/tmp/sonde_export_XXXXXX", link[128];
    CHECK(mkdtemp(dir) != NULL);
    snprintf(link, sizeof link, "%s/full.json", dir);
    if (stat("/dev/full", &info) == 0 && symlink("/dev/full", link) == 0) {
        CHECK_EQ(sn_export_file(p, link, &err), SONDE_IO);
        CHECK_HAS(err.message, "No space left");
        CHECK(lstat(link, &info) == 0 && S_ISLNK(info.st_mode)); /* the link itself stays */
        unlink(link);
    }
    rmdir(dir);
    sn_profile_free(p);
}

TEST(a_sink_that_refuses_stops_the_export)
{
    failing_alloc m;
    sn_profile *p = syn_tiny(failing_init(&m));
    const sn_exporter *row;
    for (size_t k = 0; (row = sn_exporter_row(k)) != NULL; k++) {
        if (is_missing(row))
            continue;
        sonde_error err = {0};
        memory_sink out;
        memory_sink_init(&out);
        out.limit = 10;
        CHECK_EQ(row->write(p, &out.sink, &err), SONDE_IO);
        CHECK(out.sink.failed);
        CHECK(!sn_sink_text(&out.sink, "more"));
        free(out.text);
    }
    sn_profile_free(p);
}

TEST(sink_printf_takes_texts_of_any_length)
{
    memory_sink out;
    memory_sink_init(&out);
    char large[2000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    CHECK(sn_sink_printf(&out.sink, "%d %s", 7, "a"));
    CHECK(sn_sink_printf(&out.sink, "%s!", large));
    CHECK_EQ(out.n, 3 + 1999 + 1);
    CHECK_EQ(out.text[out.n - 1], '!');
    free(out.text);
}

TEST(numbers_are_exact_and_never_follow_the_locale)
{
    char b[32];
    CHECK_STR(sn_fixed_text(b, 0, 2), "0.00");
    CHECK_STR(sn_fixed_text(b, -0.001, 2), "0.00");
    CHECK_STR(sn_fixed_text(b, -1.5, 1), "-1.5");
    CHECK_STR(sn_fixed_text(b, 12.4136, 3), "12.414");
    CHECK_STR(sn_fixed_text(b, 1e30, 2), "1e+30");
    CHECK_STR(sn_fixed_text(b, INFINITY, 2), "null");
    CHECK_STR(sn_fixed_text(b, NAN, 0), "null");
    memory_sink out;
    sn_writer w;
    sonde_error err = {0};
    sn_writer_init(&w, memory_sink_init(&out));
    sn_put_us(&w, 1234567);
    sn_put(&w, " ");
    sn_put_ms_text(&w, 44000);
    sn_put(&w, " ");
    sn_put_ms_text(&w, 1000001);
    sn_put(&w, " ");
    sn_put_number(&w, 3);
    sn_put(&w, " ");
    sn_put_number(&w, 0.5);
    sn_put_spaces(&w, 70);
    CHECK_OK(sn_writer_finish(&w, &err));
    CHECK_HAS(out.text, "1234.567 0.044ms 1.000001ms 3 0.500000  ");
    CHECK_EQ(out.n, strlen("1234.567 0.044ms 1.000001ms 3 0.500000") + 70);
    free(out.text);
}

TEST(markdown_escapes_names)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    p->model_name = "a|b_c";
    memory_sink out;
    CHECK_OK(sn_exporter_for_path("x.md")->write(p, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "# Profile of a\\|b\\_c\n");
    CHECK_HAS(out.text, "| Conv | 1 | 7.000 | 63.64 % | 0.1 | f32 | f32\\_conv1x1\\_avx2 |\n");
    CHECK_HAS(out.text, "| \\[Other\\] | 1 | 1.500 | 13.64 % |  |  |  |\n");
    free(out.text);
    sn_profile_free(p);
}

TEST_MAIN()
