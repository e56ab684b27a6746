/* SPDX-License-Identifier: Apache-2.0 */
/* Peaks are measured, kept in a file and found again; whatever that file holds, nothing breaks.
 * Profiles then say what is attained, and count what can be counted. */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "sonde/experimental/machine.h"
#include "sonde/experimental/profile.h"
#include "temp_folder.h"
#include "zoo_session.h"

/* An empty folder as the home of caches; its name stays valid until the next call. */
static const char *fresh_home(void)
{
    static char folder[TEMP_PATH];
    temp_make(folder);
    setenv("XDG_CACHE_HOME", folder, 1);
    return folder;
}

static void remove_home(const char *folder)
{
    CHECK(temp_remove(folder));
}

static sonde_context *context(int threads)
{
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = threads;
    sonde_context *c = NULL;
    if (sonde_context_create(&o, &c, NULL))
        abort();
    return c;
}

/* A line as sonde_machine_calibrate would write it: 100 GFLOP/s, 200, 50 and 10 GB/s. `types`: what
 * the line below says between the key and the processor; NULL: there is none. */
static void write_types(const char *folder, const sonde_machine_info *m, const char *before,
                        const char *types)
{
    char path[128], text[2048];
    sonde_error err;
    sn_cache cache;
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    snprintf(path, sizeof path, "%s/sonde", folder);
    int n = snprintf(text, sizeof text, "%s%d %d %s 100000 200000 50000 10000 1700000000 %s\n",
                     before, m->threads, m->cores, m->level, m->cpu);
    if (types)
        snprintf(text + n, sizeof text - (size_t)n, "types %d %d %s %s of %s\n", m->threads,
                 m->cores, m->level, types, m->cpu);
    if (sn_cache_open(&cache, path, true, &err) ||
        sn_cache_write_text(&cache, "peaks", text, strlen(text), &alloc, &err))
        abort();
    sn_cache_close(&cache);
}

static void write_peaks(const char *folder, const sonde_machine_info *m, const char *before)
{
    write_types(folder, m, before, NULL);
}

/* All threads' GOP/s of this arithmetic; -1: it is not listed. */
static double rate_of(const sonde_machine_info *m, const char *arithmetic)
{
    for (size_t i = 0; i < m->rate_count; i++)
        if (strcmp(m->rates[i].arithmetic, arithmetic) == 0)
            return m->rates[i].all_gops;
    return -1;
}

TEST(facts_of_the_machine_are_told)
{
    const char *home = fresh_home();
    sonde_context *c = context(2);
    sonde_machine_info m = SONDE_INIT(sonde_machine_info);
    sonde_error err;
    CHECK_OK(sonde_machine_peaks(c, &m, &err));
    CHECK(*m.cpu && m.cores > 0 && m.usable_cores > 0);
    CHECK_EQ(m.threads, 2);
    CHECK_HAS(m.levels, "baseline");
    CHECK_HAS(m.levels, m.level);
    CHECK(m.l1_bytes && m.l2_bytes && m.l3_bytes);
    CHECK_EQ(m.measured, 0);
    CHECK_HAS(m.cache_file, home);
    sonde_machine_info unset = {.struct_size = 0};
    CHECK_EQ(sonde_machine_peaks(c, &unset, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_machine_peaks(c, NULL, &err), SONDE_INVALID_ARGUMENT);
    sonde_context_release(c);
    remove_home(home);
}

TEST(peaks_that_were_measured_are_found_again)
{
    const char *home = fresh_home();
    sonde_context *c = context(2);
    sonde_machine_info m = SONDE_INIT(sonde_machine_info), again = SONDE_INIT(sonde_machine_info);
    sonde_error err;
    CHECK_OK(sonde_machine_calibrate(c, &m, &err));
    CHECK(m.measured && m.one.threads == 1 && m.all.threads == 2);
    CHECK(m.one.gflops > 0 && m.all.gflops > 0 && m.one.l2_gbps > 0);
    sonde_context_release(c);
    c = context(2);
    CHECK_OK(sonde_machine_peaks(c, &again, &err));
    if (*again.build) { /* a slow build keeps its figures to itself */
        CHECK_EQ(again.measured, 0);
    } else {
        CHECK(again.measured && fabs(again.all.gflops / m.all.gflops - 1) < 0.01);
        CHECK_EQ(again.measured_at_s, m.measured_at_s);
        CHECK_EQ(again.rate_count, m.rate_count);
        for (size_t i = 0; i < m.rate_count; i++)
            CHECK_MSG(m.rates[i].one_gops > 0 && m.rates[i].all_gops > 0 &&
                          fabs(again.rates[i].all_gops / m.rates[i].all_gops - 1) < 0.01 &&
                          fabs(again.rates[i].one_gops / m.rates[i].one_gops - 1) < 0.01,
                      "%s, %s", m.rates[i].arithmetic, m.rates[i].instructions);
    }
    sonde_context_release(c);
    c = context(3); /* not measured with as many */
    CHECK_OK(sonde_machine_peaks(c, &again, &err));
    CHECK_EQ(again.measured, 0);
    sonde_context_release(c);
    remove_home(home);
}

TEST(a_cache_that_cannot_be_used_does_not_matter)
{
    const char *home = fresh_home();
    sonde_machine_info m = SONDE_INIT(sonde_machine_info);
    sonde_error err;
    char path[128];
    snprintf(path, sizeof path, "%s/sonde", home);
    FILE *f = fopen(path, "w"); /* a file where the folder would be */
    CHECK(f != NULL);
    fclose(f);
    sonde_context *c = context(1);
    CHECK_OK(sonde_machine_calibrate(c, &m, &err));
    CHECK(m.measured && m.all.gflops > 0);
    sonde_context_release(c);
    remove(path);
    remove_home(home);
}

TEST(a_corrupt_cache_is_ignored_line_by_line)
{
    static const char *const bad[] = {
        "", "nonsense\n", "sonde peaks 1\n",
        "sonde peaks 2\n1 2 3\n\n\x01\xff\n-5 -5 x -1 0 0 0 0 z\n",
        "sonde peaks 2\n99999999999999999999 1 avx2 99999999999999999999999 1 1 1 1 cpu\n"};
    sonde_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *home = fresh_home();
        sonde_machine_info m = SONDE_INIT(sonde_machine_info);
        sonde_context *c = context(1);
        CHECK_OK(sonde_machine_peaks(c, &m, &err));
        write_peaks(home, &m, bad[i]);
        sonde_context_release(c);
        c = context(1);
        CHECK_OK(sonde_machine_peaks(c, &m, &err));
        CHECK_EQ(m.measured,
                 i >= 3); /* a good line among bad ones counts, under the right heading */
        sonde_context_release(c);
        remove_home(home);
    }
}

/* What no instruction of this machine computes is not told, whatever a file says of it. */
static double known_rate(const sonde_machine_info *m, const char *arithmetic, double rate)
{
    return rate_of(m, arithmetic) < 0 ? -1 : rate;
}

TEST(peaks_of_types_are_read_and_missing_or_corrupt_ones_are_unknown)
{
    static const struct {
        const char *types;
        double i8, tiles;
    } cases[] = {{NULL, 0, 0}, /* the file of an earlier version */
                 {"i8=700000 bf16_tiles=2500000", 700, 2500},
                 {"later=5 i8=700000", 700, 0},
                 {"", 0, 0},
                 {"i8=-1 bf16_tiles=2500000", 0, 2500},
                 {"i8=99999999999999999999999 bf16_tiles=2500000", 0, 2500},
                 {"f32=5 i8=1 i8", 0, 0},
                 {"i8= bf16_tiles", 0, 0},
                 {"\x01\xff=3", 0, 0},
                 {"a_name_that_is_far_longer_than_any_there_is=7 i8=700000", 0, 0}};
    sonde_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *home = fresh_home();
        sonde_machine_info m = SONDE_INIT(sonde_machine_info);
        sonde_context *c = context(1);
        CHECK_OK(sonde_machine_peaks(c, &m, &err));
        CHECK(rate_of(&m, "f32") == 0 && rate_of(&m, "f64") == -1);
        write_types(home, &m, "sonde peaks 2\n", cases[i].types);
        sonde_context_release(c);
        c = context(1);
        CHECK_OK(sonde_machine_peaks(c, &m, &err));
        CHECK(m.measured && m.all.gflops == 100 && rate_of(&m, "f32") == 100);
        CHECK_MSG(rate_of(&m, "i8") == known_rate(&m, "i8", cases[i].i8) &&
                      rate_of(&m, "bf16_tiles") == known_rate(&m, "bf16_tiles", cases[i].tiles),
                  "%zu: %g, %g", i, rate_of(&m, "i8"), rate_of(&m, "bf16_tiles"));
        sonde_context_release(c);
        remove_home(home);
    }
}

TEST(peaks_of_types_alone_are_nobodys)
{
    const char *home = fresh_home();
    char before[512];
    sonde_error err;
    sonde_machine_info m = SONDE_INIT(sonde_machine_info);
    sonde_context *c = context(1);
    CHECK_OK(sonde_machine_peaks(c, &m, &err));
    snprintf(before, sizeof before, "sonde peaks 2\ntypes %d %d %s i8=5000 of %s\n", m.threads,
             m.cores, m.level, m.cpu);
    write_types(home, &m, before, NULL); /* they stand before their line */
    sonde_context_release(c);
    c = context(1);
    CHECK_OK(sonde_machine_peaks(c, &m, &err));
    CHECK(m.measured && rate_of(&m, "i8") == known_rate(&m, "i8", 0));
    sonde_context_release(c);
    remove_home(home);
}

static bool measured(void)
{
    sonde_machine_info m = SONDE_INIT(sonde_machine_info);
    sonde_context *c = context(1);
    const bool known = sonde_machine_peaks(c, &m, NULL) == SONDE_OK && m.measured;
    sonde_context_release(c);
    return known;
}

TEST(only_peaks_of_ones_own_that_match_their_checksum_are_taken)
{
    const char *home = fresh_home();
    char folder[128], path[160], elsewhere[128];
    sonde_error err;
    struct stat s;
    sonde_machine_info m = SONDE_INIT(sonde_machine_info);
    sonde_context *c = context(1);
    CHECK_OK(sonde_machine_peaks(c, &m, &err));
    write_peaks(home, &m, "sonde peaks 2\n");
    sonde_context_release(c);
    snprintf(folder, sizeof folder, "%s/sonde", home);
    snprintf(path, sizeof path, "%s/peaks", folder);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", home);
    CHECK(measured());
    CHECK(stat(path, &s) == 0 && (s.st_mode & 07777) == 0600);
    CHECK(stat(folder, &s) == 0 && (s.st_mode & 07777) == 0700);
    CHECK_EQ(chmod(folder, 0770), 0);
    CHECK(!measured());
    CHECK_EQ(chmod(folder, 0700), 0);
    CHECK(rename(path, elsewhere) == 0 && symlink(elsewhere, path) == 0);
    CHECK(!measured());
    CHECK(remove(path) == 0 && mkfifo(path, 0600) == 0);
    CHECK(!measured());
    CHECK_EQ(rename(elsewhere, path), 0);
    CHECK(measured());
    FILE *f = fopen(path, "r+");
    CHECK(f && fseek(f, 20, SEEK_SET) == 0 && fputc('9', f) == '9' && fclose(f) == 0);
    CHECK(!measured());
    remove_home(home);
}

static sonde_profile *record(sonde_context *c, bool counters, sonde_error *err)
{
    sonde_model *model = NULL;
    sonde_session *s = NULL;
    sonde_profile *profile = NULL;
    sonde_value *in[MAX_PORTS] = {0}, *out[MAX_PORTS] = {0};
    size_t n = 0;
    if (zoo_model(c, "tiny_cnn", &model, err) || sonde_session_create(model, NULL, &s, err) ||
        random_inputs(c, s, 1, in, &n, err) || sonde_profiler_start(c, 1, err))
        abort();
    if (counters)
        (void)sonde_counters_start(c, err);
    for (int i = 0; i < 5; i++) {
        release_all(out, MAX_PORTS);
        if (sonde_session_run(s, NULL, NULL, in, n, NULL, out, sonde_session_output_count(s), err))
            abort();
    }
    if (counters && sonde_counters_stop(c, err))
        abort();
    if (sonde_profiler_stop(c, &profile, err))
        abort();
    release_all(in, MAX_PORTS);
    release_all(out, MAX_PORTS);
    sonde_session_release(s);
    sonde_model_release(model);
    return profile;
}

static void check_rows(const sonde_profile *profile, bool peaks)
{
    sonde_profile_rows *rows = NULL;
    sonde_error err;
    double sum = 0;
    size_t conv = 0;
    CHECK_OK(sonde_profile_rows_get(profile, SONDE_BY_OP, &rows, &err));
    for (size_t i = 0; i < sonde_profile_rows_count(rows); i++) {
        sonde_profile_row r = SONDE_INIT(sonde_profile_row);
        CHECK_OK(sonde_profile_rows_row(rows, i, &r, &err));
        sum += r.share;
        if (strcmp(r.op_type, "Conv") == 0) {
            conv++;
            CHECK_STR(r.dtype, "f32");
            CHECK_STR(r.arithmetic, "f32");
            CHECK(peaks ? r.roofline > 0 && r.roofline <= 1 && *r.bound : r.roofline == -1);
        }
        if (r.bracket)
            CHECK(r.roofline == -1);
    }
    CHECK_EQ(conv, 1);
    CHECK(fabs(sum - 1) < 1e-9);
    sonde_profile_row none = SONDE_INIT(sonde_profile_row);
    CHECK_EQ(sonde_profile_rows_row(rows, 1000, &none, &err), SONDE_NOT_FOUND);
    sonde_profile_rows_release(rows);
    CHECK_EQ(sonde_profile_rows_get(profile, (sonde_by)9, &rows, &err), SONDE_INVALID_ARGUMENT);
}

TEST(profiles_say_which_share_of_the_peaks_is_attained_also_when_saved)
{
    const char *home = fresh_home();
    sonde_error err;
    sonde_machine_info m = SONDE_INIT(sonde_machine_info);
    sonde_context *c = context(1);
    sonde_profile *p = record(c, false, &err);
    check_rows(p, false);
    sonde_profile_release(p);
    CHECK_OK(sonde_machine_peaks(c, &m, &err));
    write_peaks(home, &m, "sonde peaks 2\n");
    sonde_context_release(c);
    c = context(1);
    p = record(c, false, &err);
    check_rows(p, true);
    char path[128];
    snprintf(path, sizeof path, "%s/p.pftrace", home);
    CHECK_OK(sonde_profile_save(p, path, &err));
    sonde_profile *loaded = NULL;
    CHECK_OK(sonde_profile_load(c, path, &loaded, &err));
    check_rows(loaded, true);
    CHECK(loaded->core->caches[0].gbps == 200 && loaded->core->peak_gbps == 10);
    remove(path);
    sonde_profile_release(loaded);
    sonde_profile_release(p);
    sonde_context_release(c);
    remove_home(home);
}

TEST(what_is_counted_is_in_the_profile)
{
    sonde_error err = {.status = SONDE_OK};
    sonde_context *c = context(1);
    sonde_profile *p = record(c, true, &err);
    const sn_profile *core = p->core;
    CHECK(core->usage.known);
    double calls = 0, instructions = 0;
    for (size_t i = 0; i < core->steps.n; i++) {
        calls += core->steps.data[i].hw.calls;
        instructions += core->steps.data[i].hw.instructions;
    }
    if (*core->counters_note) { /* refused: said why */
        CHECK_HAS(core->counters_note, "hardware counters");
        CHECK(calls == 0);
    } else {
        CHECK(calls > 0 && instructions > 1000);
    }
    CHECK_EQ(sonde_counters_stop(c, &err), SONDE_INVALID_ARGUMENT);
    sonde_profile_release(p);
    p = record(c, false, &err);
    CHECK(p->core->usage.known); /* of the last counting */
    sonde_profile_release(p);
    sonde_context_release(c);
}

TEST_MAIN()
