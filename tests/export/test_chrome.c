/* SPDX-License-Identifier: Apache-2.0 */
/* The Chrome trace: valid JSON whatever the names, every field where tools look for it, and events
 * that nest within each lane. */
#include "export/json.h"
#include "export/memory_sink.h"
#include "export/no_page.h"
#include "test.h"

static sonde_status export_json(const sn_profile *p, const char *path, json *j, bool *valid,
                                sonde_error *err)
{
    memory_sink out;
    memory_sink_init(&out);
    sonde_status st = sn_exporter_for_path(path)->write(p, &out.sink, err);
    *valid = json_parse(out.text, j);
    if (!*valid)
        fprintf(stderr, "%s\n", out.text);
    free(out.text);
    return st;
}

/* The k-th event of that phase (and category, when not NULL). */
static const json *event(const json *trace, const char *ph, const char *cat, size_t k)
{
    const json *events = json_get(trace, "traceEvents");
    for (size_t i = 0; i < events->n; i++) {
        const json *e = &events->children[i];
        if (strcmp(json_text(e, "ph"), ph) == 0 &&
            (!cat || strcmp(json_text(e, "cat"), cat) == 0) && k-- == 0)
            return e;
    }
    return NULL;
}

static size_t count(const json *trace, const char *ph, const char *cat)
{
    size_t n = 0;
    while (event(trace, ph, cat, n))
        n++;
    return n;
}

TEST(a_trace_has_its_levels_and_real_times)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    p->spans.data[1].start_ns = 1000001; /* a whole nanosecond must survive */
    json j;
    bool valid;
    CHECK_OK(export_json(p, "x.json", &j, &valid, &err));
    CHECK(valid);
    CHECK_EQ(count(&j, "X", "model"), 1);
    CHECK_EQ(count(&j, "X", "iteration"), 3);
    CHECK_EQ(count(&j, "X", "operator"), 6);
    CHECK_EQ(count(&j, "X", "memory"), 3);
    const json *model = event(&j, "X", "model", 0);
    CHECK_STR(json_text(model, "name"), "model_inference");
    CHECK(json_num(model, "dur") == 52000.0);
    const json *it = event(&j, "X", "iteration", 2);
    CHECK_STR(json_text(it, "name"), "Iteration1");
    CHECK(json_num(it, "ts") == 40000.0 && json_num(it, "dur") == 12000.0);
    CHECK(json_num(json_get(it, "args"), "iteration") == 1);
    CHECK(json_num(json_get(event(&j, "X", "iteration", 0), "args"), "warmup") == 1);
    CHECK(json_num(event(&j, "X", "operator", 0), "ts") == 1000.001);
    CHECK(json_num(it, "pid") == 77);
    json_free(&j);
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST(an_operator_carries_everything_known_about_its_step)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    json j;
    bool valid;
    CHECK_OK(export_json(p, "x.json", &j, &valid, &err));
    CHECK(valid);
    const json *e = event(&j, "X", "operator", 0), *a = json_get(e, "args");
    CHECK_STR(json_text(e, "name"), "conv1");
    CHECK_STR(json_text(a, "op"), "Conv");
    CHECK_STR(json_text(a, "post_op"), "Add+Relu");
    CHECK_EQ(json_get(a, "nodes")->n, 3);
    CHECK_STR(json_get(a, "nodes")->children[1].text, "add1");
    CHECK_STR(json_text(a, "kernel"), "f32_conv1x1_avx2");
    CHECK_STR(json_text(a, "arithmetic"), "f32");
    CHECK_STR(json_text(a, "input_tensor_name"), "x,w,");
    CHECK_STR(json_text(a, "input_type"), "fp32,fp32,");
    CHECK_STR(json_text(a, "input_shape"), "1*3*4*4,2*3*1*1,");
    CHECK_STR(json_text(a, "output_tensor_name"), "y");
    CHECK_STR(json_text(a, "output_type"), "fp16");
    CHECK_STR(json_text(a, "output_shape"), "1*2*4*4");
    CHECK_STR(json_text(a, "attributes"), "strides=1,1");
    CHECK_STR(json_text(a, "args_string"), "T<1x3x4x4xf32>,T<2x3x1x1xf32>,,|T<1x2x4x4xf16>");
    CHECK_STR(json_text(a, "reshape_time"), "0.004ms");
    CHECK_STR(json_text(a, "forward_time"), "6.000ms");
    CHECK(json_num(a, "flops") == 1e6 && json_num(a, "bytes") == 2000);
    CHECK(json_num(a, "iteration") == 0);
    /* the binding is cached from the second run on */
    CHECK_STR(json_text(json_get(event(&j, "X", "operator", 2), "args"), "reshape_time"),
              "0.000ms");
    json_free(&j);
    sn_profile_free(p);
}

TEST(the_first_event_of_a_step_need_not_be_the_one_that_bound_it)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    for (size_t i = 0; i < p->spans.n; i++) /* bound by the last run alone */
        p->spans.data[i].bound =
            p->spans.data[i].cat == SN_CAT_OPERATOR && p->spans.data[i].start_ns > 40 * MS;
    json j;
    bool valid;
    CHECK_OK(export_json(p, "x.json", &j, &valid, &err));
    CHECK(valid);
    for (size_t i = 0; i < 6; i++)
        CHECK_STR(json_text(json_get(event(&j, "X", "operator", i), "args"), "reshape_time"),
                  i < 4 ? "0.000ms" : "0.004ms");
    json_free(&j);
    sn_profile_free(p);
}

TEST(the_rest_of_the_file_says_where_it_was_measured)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    uint32_t folded = syn_step(p, "Shape", "shape0", "", "");
    p->steps.data[folded].folded = true;
    p->dropped = 3;
    p->record_ns = 40.5;
    sn_prof_counter live = {5 * MS, "live bytes", 4096, UINT32_MAX},
                    rate = {6 * MS, "rate", 0.25, UINT32_MAX};
    CHECK(sn_vec_push(&p->counters, p->alloc, live) && sn_vec_push(&p->counters, p->alloc, rate));
    json j;
    bool valid;
    CHECK_OK(export_json(p, "x.JSON", &j, &valid, &err));
    CHECK(valid);
    const json *o = json_get(&j, "otherData");
    CHECK_STR(json_text(o, "version"), "0.1.0");
    CHECK_STR(json_text(o, "model"), "tiny");
    CHECK_STR(json_text(o, "cpu"), "Test CPU");
    CHECK_STR(json_text(o, "cpu_level"), "avx2");
    CHECK_STR(json_text(o, "precision"), "bf16");
    CHECK_STR(json_text(o, "start_time"), "2023-11-14T22:13:20Z");
    CHECK(json_num(o, "threads") == 2 && json_num(o, "dropped") == 3);
    CHECK(json_num(o, "iterations") == 2 && json_num(o, "warmups") == 1);
    CHECK(json_num(o, "profiler_ns_per_record") == 40.5);
    CHECK(json_num(o, "profiler_cost_ms_per_iteration") > 0);
    CHECK_STR(json_text(&json_get(o, "folded_nodes")->children[0], "name"), "shape0");
    CHECK_EQ(count(&j, "C", NULL), 2);
    CHECK(json_num(json_get(event(&j, "C", NULL, 0), "args"), "value") == 4096);
    CHECK(json_num(json_get(event(&j, "C", NULL, 1), "args"), "value") == 0.25);
    json_free(&j);
    sn_profile_free(p);
}

TEST(worker_slices_have_lanes_and_arrows_from_their_step)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    uint32_t op = syn_step(p, "Conv", "c", "", "");
    uint32_t model = syn_span(p, SN_CAT_MODEL, 0, 0, 2000, "tiny")->id;
    uint32_t it = syn_span(p, SN_CAT_ITERATION, model, 0, 1000, "Iteration0")->id;
    uint32_t conv = syn_op(p, it, 100, 500, op);
    syn_span(p, SN_CAT_THREAD, conv, 140, 300, "slice")->step = op; /* on the step's own thread */
    sn_prof_span *slice = syn_span(p, SN_CAT_THREAD, conv, 150, 300, "slice");
    slice->thread = 1;
    slice->step = op;
    json j;
    bool valid;
    CHECK_OK(export_json(p, "x.json", &j, &valid, &err));
    CHECK(valid);
    const json *e = event(&j, "X", "thread", 1), *s = event(&j, "s", NULL, 0);
    const json *f = event(&j, "f", NULL, 0);
    CHECK(e && s && f);
    CHECK(json_num(e, "tid") == 101 && json_num(s, "tid") == 100 && json_num(f, "tid") == 101);
    CHECK(json_num(s, "id") == json_num(f, "id"));
    CHECK_STR(json_text(f, "bp"), "e");
    /* Where the step begins no slice inside it is open yet, so the arrow leaves the step itself. */
    CHECK(json_num(s, "ts") == 0.1 && json_num(f, "ts") == 0.15);
    CHECK_EQ(count(&j, "s", NULL), 1);
    CHECK_EQ(count(&j, "f", NULL), 1);
    for (size_t k = 0; k < 2; k++) {
        const json *args = json_get(event(&j, "X", "thread", k), "args");
        CHECK_STR(json_text(args, "op"), "Conv");
        CHECK_STR(json_text(args, "node"), "c");
    }
    CHECK_EQ(count(&j, "X", "model"), 1); /* recorded, so not made up a second time */
    CHECK_STR(json_text(event(&j, "X", "model", 0), "name"), "model_inference");
    CHECK_STR(json_text(json_get(event(&j, "X", "model", 0), "args"), "model"), "tiny");
    bool named = false;
    for (size_t k = 0; k < count(&j, "M", NULL); k++) {
        const json *meta = event(&j, "M", NULL, k);
        named |= strcmp(json_text(meta, "name"), "thread_name") == 0 &&
                 strcmp(json_text(json_get(meta, "args"), "name"), "worker 1") == 0 &&
                 json_num(meta, "tid") == 101;
    }
    CHECK(named);
    json_free(&j);
    sn_profile_free(p);
}

TEST(events_of_one_lane_nest_even_when_iterations_overlap)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    uint32_t op = syn_step(p, "Conv", "c", "", "");
    uint64_t t[2] = {0, 0};
    uint32_t who = 0;
    for (int k = 0; k < 40; k++) { /* two threads, each back to back, started in turn */
        uint64_t start = t[0] <= t[1] ? t[0] : t[1];
        who = t[0] <= t[1] ? 0 : 1;
        uint64_t dur = 50 + test_rand() % 100;
        sn_prof_span *s = syn_span(p, SN_CAT_ITERATION, 0, start, dur, "Iteration");
        s->thread = who;
        syn_op(p, s->id, start, dur / 2, op);
        p->spans.data[p->spans.n - 1].thread = who;
        t[who] = start + dur;
    }
    json j;
    bool valid;
    CHECK_OK(export_json(p, "x.json", &j, &valid, &err));
    CHECK(valid);
    size_t n = count(&j, "X", NULL);
    CHECK_EQ(n, 81);
    for (size_t a = 0; a < n; a++) {
        for (size_t b = a + 1; b < n; b++) {
            const json *x = event(&j, "X", NULL, a), *y = event(&j, "X", NULL, b);
            double xs = json_num(x, "ts"), xe = xs + json_num(x, "dur");
            double ys = json_num(y, "ts"), ye = ys + json_num(y, "dur");
            bool nests = xe <= ys + 1e-9 || ye <= xs + 1e-9 || (xs <= ys && ye <= xe + 1e-9) ||
                         (ys <= xs && xe <= ye + 1e-9);
            CHECK_MSG(json_num(x, "tid") != json_num(y, "tid") || nests,
                      "%g..%g and %g..%g cross on tid %g", xs, xe, ys, ye, json_num(x, "tid"));
        }
    }
    json_free(&j);
    sn_profile_free(p);
}

TEST(iterations_of_every_instance_have_a_lane_of_their_own)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    for (uint32_t k = 0; k < 12; k++) { /* three in turn, one after the other: one lane would do */
        sn_prof_span *s = syn_span(p, SN_CAT_ITERATION, 0, k * MS, MS / 2, "Iteration");
        s->run = k + 1;
        s->instance = k % 3;
        s->thread = k % 2;
    }
    json j;
    bool valid;
    CHECK_OK(export_json(p, "x.json", &j, &valid, &err));
    CHECK(valid);
    for (size_t k = 0; k < 12; k++) {
        const json *e = event(&j, "X", "iteration", k), *same = event(&j, "X", "iteration", k % 3);
        CHECK_EQ(json_num(json_get(e, "args"), "instance"), k % 3);
        CHECK(json_num(e, "tid") == json_num(same, "tid"));
        CHECK(k % 3 == 0 || json_num(e, "tid") != json_num(event(&j, "X", "iteration", 0), "tid"));
    }
    size_t named = 0;
    for (size_t k = 0; event(&j, "M", NULL, k); k++) {
        const char *name = json_text(json_get(event(&j, "M", NULL, k), "args"), "name");
        named += name && strncmp(name, "iteration of instance ", 22) == 0;
    }
    CHECK_EQ(named, 3);
    json_free(&j);
    CHECK_OK(export_json(p, "x.summary.json", &j, &valid, &err));
    CHECK(valid);
    CHECK_EQ(json_num(&j, "instances"), 3);
    CHECK(fabs(json_num(&j, "runs_per_s") - 12 / 11.5e-3) < 1e-3);
    json_free(&j);
    sn_profile_free(p);
}

TEST(any_bytes_in_names_give_valid_json)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    p->steps.data[0].name = "a\"b\\c\n\t\x01\x7f/\xc3\xa4";
    p->model_name = "\xff\xc0\x80\xed\xa0\x80\xf5\xe2\x82";
    p->spans.data[2].name = NULL;
    json j;
    bool valid;
    CHECK_OK(export_json(p, "x.json", &j, &valid, &err));
    CHECK(valid);
    CHECK_STR(json_text(event(&j, "X", "operator", 0), "name"), "a\"b\\c\n\t\x01\x7f/\xc3\xa4");
    CHECK_HAS(json_text(json_get(&j, "otherData"), "model"), "\xef\xbf\xbd");
    json_free(&j);
    for (int round = 0; round < 200; round++) {
        char name[40];
        for (size_t i = 0; i < sizeof name; i++)
            name[i] = (char)(test_rand() % 255 + 1);
        name[sizeof name - 1] = 0;
        p->steps.data[0].name = p->steps.data[0].op_type = p->steps.data[0].kernel = name;
        static const char *const paths[] = {"x.json", "x.summary.json"};
        for (int k = 0; k < 2; k++) {
            CHECK_OK(export_json(p, paths[k], &j, &valid, &err));
            CHECK(valid);
            json_free(&j);
        }
    }
    sn_profile_free(p);
}

TEST(an_empty_profile_is_still_a_valid_trace)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = NULL;
    CHECK_OK(sn_profile_new(&p, failing_init(&m), &err));
    static const char *const paths[] = {"x.json", "x.summary.json"};
    for (int k = 0; k < 2; k++) {
        json j;
        bool valid;
        CHECK_OK(export_json(p, paths[k], &j, &valid, &err));
        CHECK(valid);
        json_free(&j);
    }
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST(the_summary_agrees_with_the_table)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    json j;
    bool valid;
    CHECK_OK(export_json(p, "run.summary.json", &j, &valid, &err));
    CHECK(valid);
    CHECK_STR(json_text(&j, "schema"), "sonde.summary/1");
    CHECK(json_num(&j, "iterations") == 2 && json_num(&j, "ops") == 2);
    CHECK(json_num(json_get(&j, "latency_ms"), "mean") == 11);
    CHECK(json_num(json_get(&j, "latency_ms"), "p95") == 11.9);
    const json *ops = json_get(&j, "operators");
    CHECK_EQ(ops->n, 4);
    double total = 0;
    for (size_t i = 0; i < ops->n; i++)
        total += json_num(&ops->children[i], "mean_ms");
    CHECK(fabs(total - 11) < 1e-6);
    CHECK_STR(json_text(&ops->children[0], "name"), "Conv");
    CHECK_EQ(json_get(&j, "nodes")->n, 2);
    CHECK_STR(json_text(&json_get(&j, "nodes")->children[0], "nodes"), "conv1, add1, relu1");
    CHECK_STR(json_text(&json_get(&j, "shapes")->children[0], "name"),
              "[1, 3, 4, 4], [2, 3, 1, 1], _");
    CHECK_STR(json_text(&json_get(&j, "kernels")->children[0], "name"), "f32_conv1x1_avx2");
    json_free(&j);
    sn_profile_free(p);
}

TEST(every_failing_allocation_of_a_trace_is_reported)
{
    failing_alloc m;
    sn_profile *p = syn_tiny(failing_init(&m));
    long live = m.live;
    const sn_exporter *row;
    for (size_t r = 0; (row = sn_exporter_row(r)) != NULL; r++) {
        bool done = is_missing(row);
        for (long k = 0; !done && k < 1000; k++) {
            sonde_error err = {0};
            memory_sink out;
            m.calls = 0;
            m.fail_at = k;
            sonde_status st = row->write(p, memory_sink_init(&out), &err);
            m.fail_at = -1;
            done = st == SONDE_OK;
            CHECK(done || st == SONDE_OUT_OF_MEMORY);
            CHECK_EQ(m.live, live);
            free(out.text);
        }
        CHECK(done);
    }
    sn_profile_free(p);
}

TEST_MAIN()
