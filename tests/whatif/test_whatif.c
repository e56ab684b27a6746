/* SPDX-License-Identifier: Apache-2.0 */
/* Questions and their answers: every scenario is answered in order, columns add up, what was
 * measured is not measured again, and what makes no sense is refused with a sentence. No test
 * depends on how fast anything is. */
#include "api/counting_alloc.h"
#include "whatif/whatif_question.h"

static const char everything[] =
    "sparse90,int8,sparse90+int8,int8-dynamic,int4,bf16,batch=4,threads=1,threads=2";

TEST(scenarios_are_answered_in_order_between_now_and_the_mix)
{
    question q;
    sonde_whatif *w = NULL;
    sonde_error err;
    sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
    question_open(&q, "bert_mini", in_dir("order"));
    q.o.scenarios = everything;
    CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
    static const char *const names[] = {"now",          "sparse90",  "int8",    "sparse90+int8",
                                        "int8-dynamic", "int4",      "bf16",    "batch=4",
                                        "threads=1",    "threads=2", "best mix"};
    CHECK_EQ(sonde_whatif_scenario_count(w), 11);
    for (size_t i = 0; i < 11; i++) {
        CHECK_OK(sonde_whatif_scenario_get(w, i, &s, &err));
        CHECK_STR(s.name, names[i]);
        CHECK_STR(s.reason, "");
        CHECK_EQ(s.batch, i == 7 ? 4 : 1);
        CHECK_EQ(s.threads, i == 8 ? 1 : 2);
        CHECK(s.total_ns > 0 && s.speedup > 0 && s.low <= s.high && s.weight_bytes > 0);
        CHECK_EQ(s.changed > 0, (i >= 1 && i <= 5) || (i == 10 && s.changed > 0));
    }
    CHECK_EQ(sonde_whatif_scenario_get(w, 11, &s, &err), SONDE_NOT_FOUND);
    sonde_whatif_release(w);
    question_close(&q);
}

TEST(rows_of_every_kind_add_up_to_the_totals)
{
    static const char *const models[] = {"tiny_cnn", "tiny_mlp", "tiny_efficientnet", "bert_mini",
                                         "tiny_cnn_int8"};
    sonde_error err;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        question q;
        sonde_whatif *w = NULL;
        question_open(&q, models[m], in_dir("sums"));
        q.o.scenarios = everything;
        CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
        for (int by = SONDE_BY_OP; by <= SONDE_BY_SHAPE; by++)
            for (size_t k = 0; k < sonde_whatif_scenario_count(w); k++) {
                sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
                sonde_whatif_row row = SONDE_INIT(sonde_whatif_row);
                double sum = 0;
                CHECK_OK(sonde_whatif_scenario_get(w, k, &s, &err));
                for (size_t i = 0; i < sonde_whatif_row_count(w, (sonde_by)by); i++) {
                    CHECK_OK(sonde_whatif_row_get(w, (sonde_by)by, i, &row, &err));
                    CHECK_EQ(isnan(row.times_ns[k]), *s.reason != 0);
                    sum += row.times_ns[k];
                }
                if (!*s.reason)
                    CHECK_MSG(fabs(sum - s.total_ns) < 1e-6 * s.total_ns, "%s %s: %g, total %g",
                              models[m], s.name, sum, s.total_ns);
            }
        sonde_whatif_release(w);
        question_close(&q);
    }
}

/* "threads=2" is what runs now: the very same measurement. */
TEST(steps_between_operators_have_the_same_row_in_every_column)
{
    static const sonde_precision precisions[] = {SONDE_PRECISION_F32, SONDE_PRECISION_BF16};
    sonde_error err;
    for (size_t m = 0; m < 2; m++) {
        question q;
        sonde_whatif *w = NULL;
        size_t reorders = 0;
        question_open(&q, "tiny_resnet", in_dir("between"));
        q.o.scenarios = "threads=2,sparse90,int8";
        q.o.precision = precisions[m];
        q.o.no_cache = 1;
        CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
        for (int by = SONDE_BY_OP; by <= SONDE_BY_SHAPE; by++)
            for (size_t i = 0; i < sonde_whatif_row_count(w, (sonde_by)by); i++) {
                sonde_whatif_row row = SONDE_INIT(sonde_whatif_row);
                CHECK_OK(sonde_whatif_row_get(w, (sonde_by)by, i, &row, &err));
                CHECK(fabs(row.times_ns[1] - row.times_ns[0]) <= 1e-9 * row.times_ns[0]);
                CHECK_EQ(row.bracket, row.name[0] == '[');
                CHECK(!row.bracket || row.best == 0);
                CHECK(row.best == 0 || row.changed[row.best]);
                reorders += strcmp(row.name, "[Reorder]") == 0;
            }
        CHECK(reorders == 0 || reorders == 3); /* one for each kind of rows, by the CPU */
        sonde_whatif_release(w);
        question_close(&q);
    }
}

TEST(every_operator_of_the_model_has_a_row)
{
    question q;
    sonde_whatif *w = NULL;
    sonde_whatif_row row = SONDE_INIT(sonde_whatif_row);
    sonde_error err;
    question_open(&q, "tiny_mlp", in_dir("operators"));
    q.o.scenarios = "sparse90";
    CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
    size_t gemms = 0;
    for (size_t i = 0; !sonde_whatif_row_get(w, SONDE_BY_NODE, i, &row, NULL); i++)
        if (strcmp(row.op_type, "Gemm") == 0) {
            CHECK(strstr(row.node, "/fc") == row.node);
            CHECK_EQ(row.count, 1);
            gemms++;
        }
    CHECK_EQ(gemms, 2);
    for (size_t i = 0; !sonde_whatif_row_get(w, SONDE_BY_OP, i, &row, NULL); i++)
        if (strcmp(row.op_type, "Gemm") == 0)
            CHECK_EQ(row.count, 2);
    CHECK_EQ(sonde_whatif_row_get(w, SONDE_BY_KERNEL, 0, &row, &err), SONDE_INVALID_ARGUMENT);
    sonde_whatif_release(w);
    question_close(&q);
}

/* ------------------------------------------------------------------ caches */
static size_t cached(const sonde_whatif *w)
{
    sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
    size_t n = 0;
    for (size_t i = 0; !sonde_whatif_scenario_get(w, i, &s, NULL); i++)
        n += s.cached != 0;
    return n;
}

TEST(an_equal_question_measures_nothing)
{
    question q;
    sonde_whatif *first = NULL, *second = NULL;
    sonde_error err;
    question_open(&q, "tiny_mlp", in_dir("again"));
    q.o.scenarios = "sparse90,int8";
    CHECK_OK(sonde_whatif_measure(q.model, &q.o, &first, &err));
    const size_t kept = sonde_whatif_cache_size(q.context);
    CHECK(kept >= 3);
    CHECK_OK(sonde_whatif_measure(q.model, &q.o, &second, &err));
    CHECK_EQ(cached(second), sonde_whatif_scenario_count(second));
    CHECK_EQ(sonde_whatif_cache_size(q.context), kept);
    for (size_t i = 0; i < 4; i++) {
        sonde_whatif_scenario a = SONDE_INIT(sonde_whatif_scenario), b = a;
        CHECK_OK(sonde_whatif_scenario_get(first, i, &a, &err));
        CHECK_OK(sonde_whatif_scenario_get(second, i, &b, &err));
        CHECK(a.total_ns == b.total_ns && a.speedup == b.speedup);
        CHECK(a.low == b.low && a.high == b.high);
        CHECK_EQ(a.weight_bytes, b.weight_bytes);
        CHECK_EQ(a.runs, b.runs);
    }
    sonde_whatif_cache_reset(q.context);
    CHECK_EQ(sonde_whatif_cache_size(q.context), 0);
    sonde_whatif_release(first);
    sonde_whatif_release(second);
    question_close(&q);
}

TEST(results_are_found_in_the_folder_by_another_context)
{
    question q;
    sonde_whatif *w = NULL;
    sonde_error err;
    char folder[256];
    snprintf(folder, sizeof folder, "%s", in_dir("folder"));
    for (int round = 0; round < 2; round++) {
        question_open(&q, "tiny_mlp", folder);
        q.o.scenarios = "sparse90,threads=1";
        CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
        CHECK_EQ(cached(w) == sonde_whatif_scenario_count(w), round == 1);
        sonde_whatif_release(w);
        question_close(&q);
    }
    /* None of it is for another model. */
    question_open(&q, "tiny_cnn", folder);
    q.o.scenarios = "sparse90,threads=1";
    CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
    sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
    CHECK_OK(sonde_whatif_scenario_get(w, 1, &s, &err));
    CHECK_EQ(s.cached, 0);
    sonde_whatif_release(w);
    question_close(&q);
}

TEST(damaged_files_are_measured_again)
{
    question q;
    sonde_whatif *w = NULL;
    sonde_error err;
    char folder[256], path[600];
    snprintf(folder, sizeof folder, "%s", in_dir("damaged"));
    question_open(&q, "tiny_mlp", folder);
    q.o.scenarios = "sparse90";
    q.o.no_mix = 1;
    CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
    sonde_whatif_release(w);
    DIR *d = opendir(folder);
    CHECK(d);
    size_t files = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (*e->d_name == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        CHECK_EQ(truncate(path, 200), 0);
        files++;
    }
    closedir(d);
    CHECK_EQ(files, 2);
    sonde_whatif_cache_reset(q.context);
    CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
    CHECK_EQ(cached(w), 0);
    sonde_whatif_release(w);
    question_close(&q);
}

TEST(without_a_cache_nothing_is_kept)
{
    question q;
    sonde_whatif *w = NULL;
    sonde_error err;
    char folder[256];
    snprintf(folder, sizeof folder, "%s/none", in_dir("unused"));
    question_open(&q, "tiny_mlp", folder);
    q.o.scenarios = "sparse90";
    q.o.no_cache = 1;
    for (int round = 0; round < 2; round++) {
        CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
        CHECK_EQ(cached(w), 0);
        sonde_whatif_release(w);
    }
    CHECK_EQ(sonde_whatif_cache_size(q.context), 0);
    CHECK(access(folder, F_OK) != 0);
    question_close(&q);
}

static void cancel_at_int8(void *user, const char *scenario, double done)
{
    (void)done;
    if (strcmp(scenario, "int8") == 0)
        sonde_cancel(user);
}

TEST(a_cancelled_question_goes_on_where_it_ended)
{
    question q;
    sonde_whatif *w = NULL;
    sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
    sonde_error err;
    question_open(&q, "tiny_mlp", in_dir("cancelled"));
    CHECK_OK(sonde_cancel_token_create(&q.o.cancel, &err));
    q.o.scenarios = "sparse90,int8,threads=1";
    q.o.progress = cancel_at_int8;
    q.o.progress_user = q.o.cancel;
    CHECK_EQ(sonde_whatif_measure(q.model, &q.o, &w, &err), SONDE_CANCELLED);
    static const char *const reasons[] = {"", "", "interrupted", "interrupted"};
    CHECK_EQ(sonde_whatif_scenario_count(w), 4);
    for (size_t i = 0; i < 4; i++) { /* what was measured is shown */
        CHECK_OK(sonde_whatif_scenario_get(w, i, &s, &err));
        CHECK_HAS(s.reason, reasons[i]);
        CHECK_EQ(s.total_ns > 0, i < 2);
    }
    sonde_whatif_release(w);
    CHECK_EQ(sonde_whatif_cache_size(q.context), 2);
    sonde_cancel_reset(q.o.cancel);
    q.o.progress = NULL;
    CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
    CHECK_OK(sonde_whatif_scenario_get(w, 1, &s, &err));
    CHECK_EQ(s.cached, 1);
    CHECK_OK(sonde_whatif_scenario_get(w, 2, &s, &err));
    CHECK_EQ(s.cached, 0);
    sonde_whatif_release(w);
    sonde_cancel_token_release(q.o.cancel);
    question_close(&q);
}

static void cancel_at_once(void *user, const char *scenario, double done)
{
    (void)scenario;
    (void)done;
    sonde_cancel(user);
}

TEST(cancelled_before_anything_was_measured_there_is_no_result)
{
    question q;
    sonde_whatif *w = NULL;
    sonde_error err;
    question_open(&q, "tiny_mlp", in_dir("early"));
    CHECK_OK(sonde_cancel_token_create(&q.o.cancel, &err));
    q.o.scenarios = "sparse90";
    q.o.progress = cancel_at_once;
    q.o.progress_user = q.o.cancel;
    CHECK_EQ(sonde_whatif_measure(q.model, &q.o, &w, &err), SONDE_CANCELLED);
    CHECK(!w);
    CHECK_EQ(sonde_whatif_cache_size(q.context), 0);
    sonde_cancel_token_release(q.o.cancel);
    question_close(&q);
}

TEST(a_scenario_has_as_many_runs_as_were_asked_for)
{
    static const int runs[] = {1, 3, 6, 20};
    for (size_t k = 0; k < 4; k++) {
        question q;
        sonde_whatif *w = NULL;
        sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
        sonde_error err;
        question_open(&q, "tiny_mlp", in_dir("runs"));
        q.o.scenarios = "sparse90,int8";
        q.o.runs = runs[k];
        q.o.no_mix = q.o.no_cache = 1;
        CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
        for (size_t i = 0; i < 3; i++) { /* "now" runs beside each of both */
            CHECK_OK(sonde_whatif_scenario_get(w, i, &s, &err));
            CHECK_EQ(s.runs, (size_t)runs[k] * (i ? 1 : 2));
            CHECK(s.low <= s.speedup * (1 + 1e-9) && s.speedup <= s.high * (1 + 1e-9));
        }
        sonde_whatif_release(w);
        question_close(&q);
    }
}

/* ------------------------------------------------------------------ options */
TEST(only_the_named_nodes_change)
{
    question q;
    sonde_whatif *w = NULL;
    sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
    sonde_error err;
    char file[300];
    question_open(&q, "tiny_mlp", in_dir("only"));
    snprintf(file, sizeof file, "@%s", in_dir("names.txt"));
    FILE *f = fopen(file + 1, "w");
    CHECK(f && fputs("/fc2/Gemm\n", f) >= 0 && fclose(f) == 0);
    const char *const lists[] = {"/fc2/Gemm", "/fc*",          "/fc?/Gemm", "fc1.weight",
                                 file,        "/fc1/*,/fc2/*", "/act/*"};
    static const int64_t changed[] = {1, 2, 2, 1, 1, 2, 0};
    q.o.scenarios = "sparse90,int8";
    q.o.no_mix = 1;
    q.o.only_count = 1;
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        q.o.only = &lists[k];
        CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
        for (size_t i = 1; i < 3; i++) {
            CHECK_OK(sonde_whatif_scenario_get(w, i, &s, &err));
            CHECK_EQ(s.changed, changed[k]);
        }
        sonde_whatif_release(w);
    }
    const char *const bad[] = {"/fc2/Gemm,/nobody", "/nobody*", "@/nobody/names.txt", "", NULL};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        q.o.only = &bad[k];
        CHECK_EQ(sonde_whatif_measure(q.model, &q.o, &w, &err) == SONDE_OK, false);
        CHECK_HAS(err.message, k < 3 ? "nobody" : "list of nodes");
    }
    q.o.only = NULL;
    CHECK_EQ(sonde_whatif_measure(q.model, &q.o, &w, &err), SONDE_INVALID_ARGUMENT);
    question_close(&q);
}

TEST(without_scenarios_threads_go_up_to_the_cores_whatever_runs_now)
{
    question q;
    sonde_whatif *w = NULL;
    sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
    sonde_error err;
    question_open(&q, "tiny_mlp", in_dir("threads"));
    const int cores = q.context->core.cpu.usable_cores;
    int least = 4096, most = 0;
    q.o.threads = q.o.runs = q.o.no_mix = 1;
    CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
    for (size_t i = 0; sonde_whatif_scenario_get(w, i, &s, NULL) == SONDE_OK; i++)
        if (strncmp(s.name, "threads=", 8) == 0) {
            least = s.threads < least ? s.threads : least;
            most = s.threads > most ? s.threads : most;
        }
    CHECK_EQ(most, cores > 1 ? cores : 0);
    CHECK_EQ(least, cores > 1 ? 1 : 4096);
    sonde_whatif_release(w);
    question_close(&q);
}

TEST(options_of_sessions_hold_in_every_scenario)
{
    question q;
    sonde_whatif *w = NULL;
    sonde_whatif_row row = SONDE_INIT(sonde_whatif_row);
    sonde_session_options so = SONDE_INIT(sonde_session_options);
    sonde_error err;
    question_open(&q, "tiny_mlp", in_dir("sessions"));
    q.o.scenarios = "sparse90";
    for (int round = 0; round < 2; round++) { /* what was measured otherwise is no answer */
        so.no_optimize = round;
        q.o.session = &so;
        CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
        bool fused = false;
        for (size_t i = 0; !sonde_whatif_row_get(w, SONDE_BY_NODE, i, &row, NULL); i++)
            fused = fused || strcmp(row.name, "Gemm+Relu") == 0;
        CHECK_EQ(fused, !round);
        sonde_whatif_release(w);
    }
    question_close(&q);
}

TEST(a_scenario_that_is_impossible_says_why)
{
    question q;
    sonde_whatif *w = NULL;
    sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
    sonde_error err;
    question_open(&q, "tiny_cnn_int8", in_dir("impossible"));
    q.o.scenarios = "int4,sparse80";
    CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
    CHECK_OK(sonde_whatif_scenario_get(w, 1, &s, &err));
    CHECK_HAS(s.reason, "no weight");
    CHECK(isnan(s.total_ns) && isnan(s.speedup));
    CHECK_OK(sonde_whatif_scenario_get(w, 2, &s, &err));
    CHECK_STR(s.reason, "");
    sonde_whatif_release(w);
    question_close(&q);
}

TEST(bad_questions_are_refused_with_a_sentence)
{
    static const char *const lists[] = {
        "",          "sparse",     "sparse0",   "sparse100", "sparse9x",          "int9",
        "int8,",     "int8++bf16", "int8+int8", "int8+int4", "batch=0",           "batch=99999999",
        "threads=0", "threads=-1", "bf16+f16",  "now",       "sparse90+sparse80", "batch=2+batch=4",
        "threads"};
    question q;
    sonde_whatif *w = NULL;
    sonde_error err;
    question_open(&q, "tiny_mlp", in_dir("bad"));
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        q.o.scenarios = lists[i];
        CHECK_MSG(sonde_whatif_measure(q.model, &q.o, &w, &err) == SONDE_INVALID_ARGUMENT, "'%s'",
                  lists[i]);
        CHECK_HAS(err.message, "known are");
        CHECK(!w);
    }
    q.o.scenarios = "int8";
    q.o.runs = -1;
    CHECK_EQ(sonde_whatif_measure(q.model, &q.o, &w, &err), SONDE_INVALID_ARGUMENT);
    q.o.runs = 3;
    q.o.threads = 5000;
    CHECK_EQ(sonde_whatif_measure(q.model, &q.o, &w, &err), SONDE_INVALID_ARGUMENT);
    q.o.threads = 0;
    q.o.precision = (sonde_precision)77;
    CHECK_EQ(sonde_whatif_measure(q.model, &q.o, &w, &err), SONDE_INVALID_ARGUMENT);
    q.o.precision = SONDE_PRECISION_FILE;
    const char *const nobody[] = {"nobody"};
    sonde_session_options so = SONDE_INIT(sonde_session_options);
    so.disabled_passes = nobody;
    so.disabled_pass_count = 1;
    q.o.session = &so;
    CHECK_EQ(sonde_whatif_measure(q.model, &q.o, &w, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "nobody");
    q.o.session = NULL;
    q.o.value_count = 0; /* the model's input is missing */
    CHECK(sonde_whatif_measure(q.model, &q.o, &w, &err) != SONDE_OK);
    CHECK_EQ(sonde_whatif_measure(NULL, &q.o, &w, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_whatif_measure(q.model, &q.o, NULL, &err), SONDE_INVALID_ARGUMENT);
    sonde_whatif_release(NULL);
    question_close(&q);
}

/* ------------------------------------------------------------------ files */
TEST(results_are_saved_by_suffix_or_not_at_all)
{
    question q;
    sonde_whatif *w = NULL;
    sonde_error err;
    question_open(&q, "tiny_mlp", in_dir("saved"));
    q.o.scenarios = "sparse90,int4";
    CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
    static const char *const names[] = {"w.csv", "w.json", "w.xlsx"};
    for (size_t i = 0; i < 3; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s", in_dir(names[i]));
        CHECK_OK(sonde_whatif_save(w, path, &err));
        CHECK_EQ(access(path, R_OK), 0);
    }
    CHECK_EQ(sonde_whatif_save(w, in_dir("w.txt"), &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, ".xlsx");
    char link[300];
    snprintf(link, sizeof link, "%s", in_dir("full.csv"));
    CHECK_EQ(symlink("/dev/full", link), 0);
    CHECK_EQ(sonde_whatif_save(w, link, &err), SONDE_IO);
    CHECK_EQ(sonde_whatif_save(w, "/nonexistent/w.csv", &err), SONDE_IO);
    sonde_whatif_release(w);
    question_close(&q);
}

TEST(measured_ratios_reach_the_options_of_a_profile)
{
    question q;
    sonde_whatif *w = NULL;
    sonde_export_options o = SONDE_INIT(sonde_export_options);
    sonde_error err;
    question_open(&q, "tiny_mlp", in_dir("ratios"));
    q.o.scenarios = "sparse90,sparse70";
    CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
    CHECK_OK(sonde_whatif_ratios(w, &o, &err));
    CHECK_EQ(o.measured_count, 1);
    CHECK_STR(o.measured[0].weight, "32x16");
    CHECK(o.measured[0].ratio_90 > 0 && o.measured[0].ratio_70 > 0);
    CHECK(o.measured[0].ratio_80 == 0);
    sonde_whatif_release(w);
    question_close(&q);
}

TEST(a_question_to_the_cache_measures_nothing)
{
    question q;
    sonde_whatif *w = NULL;
    sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
    sonde_error err;
    question_open(&q, "tiny_mlp", in_dir("cache only"));
    q.o.scenarios = "sparse90,sparse80";
    q.o.cache_only = 1;
    CHECK_EQ(sonde_whatif_measure(q.model, &q.o, &w, &err), SONDE_NOT_FOUND);
    CHECK(!w);
    CHECK_HAS(err.message, "not measured before");
    q.o.scenarios = "sparse90";
    q.o.cache_only = 0;
    q.o.no_mix = 1;
    CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
    sonde_whatif_release(w);
    q.o.scenarios = "sparse90,sparse80";
    q.o.cache_only = 1;
    q.o.no_mix = 0;
    const size_t kept = sonde_whatif_cache_size(q.context);
    CHECK_OK(sonde_whatif_measure(q.model, &q.o, &w, &err));
    for (size_t i = 0; i < 3; i++) {
        CHECK_OK(sonde_whatif_scenario_get(w, i, &s, &err));
        CHECK_EQ(s.cached, i < 2);
        CHECK_STR(s.reason, i < 2 ? "" : "it was not measured before");
    }
    CHECK_EQ(sonde_whatif_cache_size(q.context), kept);
    sonde_whatif_release(w);
    q.o.no_cache = 1;
    CHECK_EQ(sonde_whatif_measure(q.model, &q.o, &w, &err), SONDE_INVALID_ARGUMENT);
    question_close(&q);
}

/* ------------------------------------------------------------------ memory */
static sonde_status ask_with(counting *count, sonde_error *err)
{
    sonde_context_options co = SONDE_INIT(sonde_context_options);
    sonde_whatif_options o = SONDE_INIT(sonde_whatif_options);
    sonde_context *c = NULL;
    sonde_model *model = NULL;
    sonde_session *s = NULL;
    sonde_value *in[MAX_PORTS] = {0};
    size_t n = 0;
    sonde_whatif *w = NULL;
    co.threads = 1;
    counting_options(&co, count);
    sonde_status st = sonde_context_create(&co, &c, err);
    if (!st)
        st = zoo_model(c, "tiny_mlp", &model, err);
    if (!st)
        st = sonde_session_create(model, NULL, &s, err);
    if (!st)
        st = random_inputs(c, s, 1, in, &n, err);
    o.values = in;
    o.value_count = n;
    o.scenarios = "sparse90+int8,batch=2";
    o.runs = 1;
    o.warmup = -1;
    o.cache = in_dir("memory");
    if (!st)
        st = sonde_whatif_measure(model, &o, &w, err);
    sonde_whatif_release(w);
    release_all(in, MAX_PORTS);
    sonde_session_release(s);
    sonde_model_release(model);
    sonde_context_release(c);
    return st;
}

TEST(every_allocation_may_fail)
{
    sonde_error err;
    counting count = {.left = -1};
    CHECK_OK(ask_with(&count, &err));
    CHECK_EQ(count.live, 0);
    long k = 0;
    for (;; k++) {
        temp_remove(in_dir("memory"));
        count = (counting){.left = k};
        const sonde_status st = ask_with(&count, &err);
        CHECK_MSG(count.live == 0, "failing allocation %ld leaves %ld blocks", k, count.live);
        if (!count.failed)
            break;
        CHECK_MSG(st == SONDE_OUT_OF_MEMORY || st == SONDE_OK, "allocation %ld: %d, %s", k, (int)st,
                  err.message);
    }
    CHECK(k > 100);
}

TEST_MAIN()
