/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of other programs, and our Chrome trace, read back. */
#include <math.h>

#include "export/reports.h"
#include "profile_readers/round_trip.h"
#include "test.h"

static const char ort[] =
    "[\n"
    "{\"cat\" : \"Session\",\"pid\" :7,\"tid\" :9,\"dur\" :100,\"ts\" :5,\"ph\" : \"X\",\"name\" "
    ":\"session_initialization\",\"args\" : {}},\n"
    "{\"cat\":\"Node\",\"pid\":7,\"tid\":9,\"dur\":300,\"ts\":1010,\"ph\":\"X\",\"name\":"
    "\"conv \\\"1\\\"_kernel_time\",\"args\":{\"op_name\":\"Conv\",\"provider\":"
    "\"CPUExecutionProvider\",\"input_type_shape\":[{\"float\":[1,3,8,8]},{\"float\":[4,3,1,1]}],"
    "\"output_type_shape\":[{\"float\":[1,4,8,8]}]}},\n"
    "{\"cat\":\"Node\",\"pid\":7,\"tid\":9,\"dur\":50,\"ts\":1320,\"ph\":\"X\",\"name\":"
    "\"body_add_kernel_time\",\"args\":{\"op_name\":\"Add\"}},\n"
    "{\"cat\":\"Node\",\"pid\":7,\"tid\":9,\"dur\":101,\"ts\":1310,\"ph\":\"X\",\"name\":"
    "\"loop_kernel_time\",\"args\":{\"op_name\":\"Loop\"}},\n"
    "{\"cat\":\"Session\",\"pid\":7,\"tid\":9,\"dur\":498,\"ts\":1001,\"ph\":\"X\",\"name\":"
    "\"SequentialExecutor::Execute\",\"args\":{}},\n"
    "{\"cat\":\"Session\",\"pid\":7,\"tid\":9,\"dur\":500,\"ts\":1000,\"ph\":\"X\",\"name\":"
    "\"model_run\",\"args\":{}},\n"
    "{\"cat\":\"Node\",\"pid\":7,\"tid\":11,\"dur\":5,\"ts\":1300,\"ph\":\"X\",\"name\":"
    "\"elsewhere_kernel_time\",\"args\":{\"op_name\":\"Mul\"}}\n"
    "]\n";

static const char torch[] =
    "{\"schemaVersion\": 1, \"deviceProperties\": [], \"traceEvents\": [\n"
    "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":5,\"tid\":0,\"args\":{\"name\":\"python\"}},\n"
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#3\",\"pid\":5,\"tid\":5,"
    "\"ts\":1700000000000000.000,\"dur\":1000.000},\n"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::conv2d\",\"pid\":5,\"tid\":5,"
    "\"ts\":1700000000000100.250,\"dur\":400.500,\"args\":{\"External id\":1,"
    "\"Input Dims\":[[1,3,8,8],[4,3,1,1],[]],\"Input type\":[\"float\",\"float\",\"\"]}},\n"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::convolution\",\"pid\":5,\"tid\":5,"
    "\"ts\":1700000000000150.250,\"dur\":300.000,\"args\":{}},\n"
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"my scope\",\"pid\":5,\"tid\":5,"
    "\"ts\":1700000000000600,\"dur\":100},\n"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::relu\",\"pid\":5,\"tid\":5,"
    "\"ts\":1700000000000610,\"dur\":50},\n"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":\"stream 7\","
    "\"ts\":1700000000000610,\"dur\":50},\n"
    "{\"ph\":\"i\",\"s\":\"t\",\"name\":\"Record Window End\",\"pid\":\"\",\"tid\":\"\","
    "\"ts\":1700000000000990}\n"
    "], \"traceName\": \"x.json\"}\n";

typedef struct loaded {
    failing_alloc m;
    sn_profile *p;
    sn_prof_summary s;
} loaded;

static bool load(loaded *l, const char *text, size_t n)
{
    sonde_error err = {0};
    if (sn_profile_read_bytes(text, n, "x.json", failing_init(&l->m), &l->p, &err) == SONDE_OK &&
        sn_profile_summarise(l->p, SN_BY_OP, &l->s, &err) == SONDE_OK)
        return true;
    fprintf(stderr, "%s\n", err.message);
    return false;
}

static void unload(loaded *l)
{
    sn_prof_summary_free(&l->s);
    sn_profile_free(l->p);
    CHECK_EQ(l->m.live, 0);
}

static double row_ns(const loaded *l, const char *name)
{
    for (size_t i = 0; i < l->s.rows.n; i++)
        if (strcmp(l->s.rows.data[i].name, name) == 0)
            return l->s.rows.data[i].mean_ns;
    return -1;
}

TEST(a_profile_of_onnxruntime_is_read)
{
    loaded l;
    CHECK(load(&l, ort, sizeof ort - 1));
    CHECK_EQ(l.s.iterations, 1);
    CHECK(l.s.wall_ns.mean == 500e3);
    CHECK(row_ns(&l, "Conv") == 300e3);
    CHECK(row_ns(&l, "Loop") == 51e3); /* without its body */
    CHECK(row_ns(&l, "Add") == 50e3);
    CHECK(row_ns(&l, "Mul") == -1); /* on another thread than its run */
    CHECK_HAS(l.p->note, "1 operators are in no run");
    CHECK_STR(l.p->version, "ONNX Runtime");
    const sn_prof_step *conv = &l.p->steps.data[0];
    CHECK_STR(conv->name, "conv \"1\"");
    CHECK_STR(conv->kernel, "CPU");
    CHECK_EQ(conv->n_inputs, 2);
    CHECK_STR(conv->inputs[1].dtype, "f32");
    CHECK_EQ(conv->inputs[1].rank, 4);
    CHECK_EQ(conv->inputs[1].dims[0], 4);
    CHECK_EQ(conv->n_outputs, 1);
    CHECK_EQ(l.p->threads_seen.data[0].os_tid, 9);
    unload(&l);
}

TEST(nodes_that_passes_of_onnxruntime_made_are_called_as_in_the_model)
{
    static const struct {
        const char *name, *op, *node;
    } cases[] = {
        {"/conv1/Conv", "Conv", "/conv1/Conv"},
        {"/relu/Relu_output_0_nchwc", "Conv", "/relu/Relu_output_0"},
        {"/relu/Relu_output_0_nchwc_token_12", "Conv", "/relu/Relu_output_0"},
        {"/conv1/Conv_token_1", "QLinearConv", "/conv1/Conv"},
        {"fused /pooler/dense/Gemm", "FusedGemm", "/pooler/dense/Gemm"},
        {"/attention/MatMul/MatMulScaleFusion/", "FusedMatMul", "/attention/MatMul"},
        {"/attention/MatMul/MatmulTransposeFusion//MatMulScaleFusion/", "FusedMatMul",
         "/attention/MatMul"},
        {"/block/Mul/QuickGeluFusion/_token_4", "QuickGelu", "/block/Mul"},
        {"/pool_DequantizeLinear/duplicated", "DequantizeLinear", "/pool_DequantizeLinear"},
        /* What is left would be no name of the model. */
        {"ReorderOutput_token_43", "ReorderOutput", "ReorderOutput_token_43"},
        {"BiasGelu", "BiasGelu", "BiasGelu"},
        {"Gather_token_1", "Gather", "Gather_token_1"},
        {"_nchwc", "Conv", "_nchwc"},
        {"/Fusion/", "Conv", "/Fusion/"},
        {"fused ", "Conv", "fused "},
        {"a_token_", "Conv", "a_token_"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1000];
        loaded l;
        snprintf(text, sizeof text,
                 "[{\"cat\":\"Session\",\"pid\":7,\"tid\":9,\"dur\":500,\"ts\":1000,\"ph\":\"X\","
                 "\"name\":\"model_run\",\"args\":{}},{\"cat\":\"Node\",\"pid\":7,\"tid\":9,"
                 "\"dur\":300,\"ts\":1010,\"ph\":\"X\",\"name\":\"%s_kernel_time\",\"args\":"
                 "{\"op_name\":\"%s\"}}]",
                 cases[i].name, cases[i].op);
        CHECK(load(&l, text, strlen(text)));
        const sn_prof_step *step = &l.p->steps.data[0];
        CHECK_STR(step->name, cases[i].name); /* as the program calls it */
        CHECK_EQ(step->n_origins, 1);
        CHECK_STR(step->origins[0].name, cases[i].node);
        unload(&l);
    }
}

TEST(a_trace_of_pytorch_is_read_with_own_times)
{
    loaded l;
    CHECK(load(&l, torch, sizeof torch - 1));
    CHECK_EQ(l.s.iterations, 1);
    CHECK(l.s.wall_ns.mean == 1000e3);
    CHECK(row_ns(&l, "aten::conv2d") == 100500);
    CHECK(row_ns(&l, "aten::convolution") == 300e3);
    CHECK(row_ns(&l, "aten::relu") == 50e3);
    CHECK_STR(l.p->note, "");
    const sn_prof_step *conv = &l.p->steps.data[0];
    CHECK_EQ(conv->n_inputs, 3);
    CHECK_EQ(conv->inputs[0].rank, 4);
    CHECK_STR(conv->inputs[0].dtype, "f32");
    CHECK_EQ(conv->inputs[2].rank, -1);
    size_t scopes = 0;
    for (size_t i = 0; i < l.p->spans.n; i++)
        scopes += l.p->spans.data[i].cat == SN_CAT_USER;
    CHECK_EQ(scopes, 1);
    unload(&l);
}

/* What another program's profiler cost is not in its file: no format says 0, also not after it was
 * saved in one of ours. */
static void cost_is_unknown(const sn_profile *p)
{
    static const struct {
        const char *path, *said;
    } all[] = {{"x.txt", "; profiler cost unknown\n"},
               {"x.md", "| profiler | unknown |\n"},
               {"x.summary.json", "\"profiler_cost_ms\":null,"},
               {"x.json", "\"profiler_cost_ms_per_iteration\":null,"},
               {"x.xlsx", ">profiler cost (ms)</t></is></c>"}};
    CHECK(isnan(p->record_ns));
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        memory_sink out;
        sonde_error err = {0};
        CHECK_OK(sn_exporter_for_path(all[k].path)->write(p, memory_sink_init(&out), &err));
        CHECK(memmem(out.text, out.n, all[k].said, strlen(all[k].said)) != NULL);
        free(out.text);
    }
}

TEST(the_profiler_cost_of_other_programs_is_unknown)
{
    static const struct {
        const char *text;
        size_t n;
    } files[] = {{ort, sizeof ort - 1}, {torch, sizeof torch - 1}};
    for (size_t k = 0; k < 2; k++) {
        loaded l;
        CHECK(load(&l, files[k].text, files[k].n));
        CHECK(isnan(l.s.cost_ns));
        cost_is_unknown(l.p);
        static const char *const ours[] = {"x.pftrace", "x.json"};
        for (size_t i = 0; i < 2; i++) {
            memory_sink out;
            sonde_error err = {0};
            sn_profile *again = NULL;
            CHECK_OK(sn_exporter_for_path(ours[i])->write(l.p, memory_sink_init(&out), &err));
            CHECK_OK(sn_profile_read_bytes(out.text, out.n, ours[i], &l.m.a, &again, &err));
            cost_is_unknown(again);
            sn_profile_free(again);
            free(out.text);
        }
        unload(&l);
    }
}

TEST(annotations_of_old_pytorch_are_no_operators)
{
    static const char old[] =
        "{\"schemaVersion\": 1, \"deviceProperties\": [], \"traceEvents\": [\n"
        "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"ProfilerStep#5\",\"pid\":7,\"tid\":\"7\","
        "\"ts\":1000,\"dur\":900,\"args\":{}},\n"
        "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"Optimizer.step#SGD.step\",\"pid\":7,\"tid\":"
        "\"7\","
        "\"ts\":1100,\"dur\":500,\"args\":{}},\n"
        "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"aten::add_\",\"pid\":7,\"tid\":\"7\","
        "\"ts\":1200,\"dur\":100,\"args\":{\"Input Dims\":[[64],[64],[]]}},\n"
        "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"ProfilerStep#6\",\"pid\":7,\"tid\":\"7\","
        "\"ts\":2000,\"dur\":700,\"args\":{}}]}\n";
    loaded l;
    CHECK(load(&l, old, sizeof old - 1));
    CHECK_EQ(l.s.iterations, 2);
    CHECK(l.s.wall_ns.mean == 800e3);
    CHECK_EQ(l.p->steps.n, 1);
    CHECK(row_ns(&l, "aten::add_") == 50e3); /* in one of two */
    CHECK_EQ(l.p->spans.data[1].cat, SN_CAT_USER);
    unload(&l);
}

TEST(a_trace_of_pytorch_without_steps_is_one_iteration)
{
    static const char text[] =
        "{\"schemaVersion\": 1, \"deviceProperties\": [], \"traceEvents\": ["
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"tid\":5,\"ts\":10,\"dur\":4},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"tid\":5,\"ts\":16,\"dur\":2}]}";
    loaded l;
    CHECK(load(&l, text, sizeof text - 1));
    CHECK_EQ(l.s.iterations, 1);
    CHECK(l.s.wall_ns.mean == 8000);
    CHECK(row_ns(&l, "[Other]") == 2000);
    unload(&l);
}

TEST(our_chrome_trace_gives_the_same_tables)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = rich_profile(failing_init(&m)), *q = NULL;
    CHECK_OK(sn_exporter_for_path("x.json")->write(p, memory_sink_init(&out), &err));
    CHECK_OK(sn_profile_read_bytes(out.text, out.n, "x", &m.a, &q, &err));
    CHECK_EQ(q->spans.n, p->spans.n);
    CHECK_EQ(q->counters.n, p->counters.n);
    CHECK_EQ(q->threads_seen.n, p->threads_seen.n);
    CHECK_EQ(q->threads_seen.data[1].os_tid, 4243);
    CHECK_STR(q->threads_seen.data[1].name, "worker 1");
    CHECK(q->start_wall_ns == p->start_wall_ns && q->dropped == 3 && q->record_ns == 40.25);
    CHECK(q->pid == p->pid && q->instance == p->instance);
    CHECK(same_machine(p, q) && same_origin(p, q));
    CHECK(same_counts(&p->steps.data[0].hw, &q->steps.data[0].hw));
    CHECK_EQ(q->steps.data[1].hw.calls, 0);
    CHECK(same_lives(p, q));
    for (uint32_t i = 0; i < 2; i++)
        CHECK_STR(sn_prof_find_step(q, 1, i)->op_type, p->steps.data[i].op_type);
    for (size_t i = 0; i < p->spans.n; i++) {
        const sn_prof_span *x = &p->spans.data[i], *y = &q->spans.data[i];
        CHECK(x->id == y->id && x->parent == y->parent && x->cat == y->cat);
        CHECK(x->start_ns == y->start_ns && x->dur_ns == y->dur_ns && x->thread == y->thread);
        CHECK(x->warmup == y->warmup && x->iteration == y->iteration && x->run == y->run);
        CHECK_EQ(x->instance, y->instance);
        CHECK(same_text(x->name, y->name) && same_text(x->args, y->args));
        CHECK(same_text(x->category, y->category) && x->bound == y->bound);
        CHECK_EQ(x->step != UINT32_MAX, y->step != UINT32_MAX);
    }
    memory_sink first, second;
    const sn_table_options all = {.by_shape = true, .by_node = true, .width = 250};
    CHECK_OK(sn_export_table(p, &all, memory_sink_init(&first), &err));
    CHECK_OK(sn_export_table(q, &all, memory_sink_init(&second), &err));
    CHECK_STR(second.text, first.text);
    CHECK_HAS(first.text, "roofline");
    CHECK_HAS(first.text, "IPC");
    CHECK_HAS(first.text, "page-faults");
    free(first.text);
    free(second.text);
    CHECK_OK(sn_report_memory(p, 0, memory_sink_init(&first), &err));
    CHECK_OK(sn_report_memory(q, 0, memory_sink_init(&second), &err));
    CHECK_STR(second.text, first.text);
    CHECK_HAS(first.text, "lifetimes on the arena");
    free(first.text);
    free(second.text);
    sn_profile_free(p);
    sn_profile_free(q);
    free(out.text);
    CHECK_EQ(m.live, 0);
}

static void damage(const char *text, size_t n)
{
    for (size_t cut = 0; cut < n; cut += cut < 300 ? 1 : 7) {
        failing_alloc m;
        sonde_error err = {0};
        sn_profile *q = NULL;
        char *exact = malloc(cut ? cut : 1);
        memcpy(exact, text, cut);
        sonde_status st = sn_profile_read_bytes(exact, cut, "cut.json", failing_init(&m), &q, &err);
        if (strspn(text + cut, " \n") < n - cut) {
            CHECK_MSG(st == SONDE_INVALID_ARGUMENT, "%zu bytes", cut);
            CHECK_HAS(err.message, "cut.json");
        }
        sn_profile_free(q);
        CHECK_EQ(m.live, 0);
        free(exact);
    }
    for (int round = 0; round < 2000; round++) {
        failing_alloc m;
        sn_profile *q = NULL;
        char *bad = malloc(n);
        memcpy(bad, text, n);
        for (int k = 0; k < 2; k++)
            bad[test_rand() % n] = "[]{}:,\"0919e-\\ "[test_rand() % 15];
        (void)sn_profile_read_bytes(bad, n, "x", failing_init(&m), &q, NULL);
        sn_profile_free(q);
        CHECK_EQ(m.live, 0);
        free(bad);
    }
}

static void starve(const char *text, size_t n)
{
    for (long fail = 0; fail < 100000; fail++) {
        failing_alloc m;
        sn_profile *q = NULL;
        failing_init(&m);
        m.fail_at = fail;
        sonde_status st = sn_profile_read_bytes(text, n, "x", &m.a, &q, NULL);
        sn_profile_free(q);
        CHECK_EQ(m.live, 0);
        if (st == SONDE_OK)
            return;
        CHECK_EQ(st, SONDE_OUT_OF_MEMORY);
    }
}

TEST(a_time_that_is_no_number_is_refused)
{
    static const char *const values[] = {"\"x\"", "null", "[1]", "{}", "true"};
    for (size_t k = 0; k < sizeof values / sizeof values[0]; k++)
        for (int time = 0; time < 2; time++) {
            char text[256];
            const int n =
                snprintf(text, sizeof text,
                         "[{\"cat\":\"Session\",\"pid\":7,\"tid\":9,\"ph\":\"X\",\"name\":"
                         "\"model_run\",\"dur\":%s,\"ts\":%s,\"args\":{}}]",
                         time ? "1" : values[k], time ? values[k] : "1");
            failing_alloc m;
            sonde_error err = {0};
            sn_profile *p = NULL;
            CHECK_EQ(sn_profile_read_bytes(text, (size_t)n, "x.json", failing_init(&m), &p, &err),
                     SONDE_INVALID_ARGUMENT);
            CHECK_HAS(err.message, "a number was expected");
            CHECK_EQ(m.live, 0);
        }
}

TEST(damaged_files_are_refused_and_failing_memory_is_told)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = rich_profile(failing_init(&m));
    CHECK_OK(sn_exporter_for_path("x.json")->write(p, memory_sink_init(&out), &err));
    damage(ort, sizeof ort - 1);
    damage(torch, sizeof torch - 1);
    damage(out.text, out.n);
    starve(ort, sizeof ort - 1);
    starve(torch, sizeof torch - 1);
    starve(out.text, out.n);
    sn_profile_free(p);
    free(out.text);
}

TEST(json_that_is_no_profile_is_named)
{
    static const char *const all[] = {"{}", "[]", "{\"traceEvents\": []}", "hello", "{\"a\": 1"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        failing_alloc m;
        sonde_error err = {0};
        sn_profile *q = NULL;
        CHECK_EQ(
            sn_profile_read_bytes(all[i], strlen(all[i]), "y.json", failing_init(&m), &q, &err),
            SONDE_INVALID_ARGUMENT);
        CHECK_HAS(err.message, "'y.json' is not a profile");
    }
}

TEST_MAIN()
