/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP: every field of a known profile, parents and traces, workers of a joined profile, hostile
 * names, parts of bounded size. */
#include "base/traceparent.h"
#include "export/json.h"
#include "export/memory_sink.h"
#include "export/otlp.h"
#include "profile/join.h"
#include "profile/workers.h"
#include "test.h"

static const sn_exporter *otlp(void)
{
    return sn_exporter_for_path("x.otlp.json");
}

/* ------------------------------------------------------------------ reading what was written */
static const json *first(const json *list)
{
    return list && list->n ? &list->children[0] : NULL;
}

static const json *spans_of(const json *root)
{
    const json *scopes = json_get(first(json_get(root, "resourceSpans")), "scopeSpans");
    return json_get(first(scopes), "spans");
}

/* The value of an attribute: the one member of its object. */
static const json *attribute(const json *span, const char *key)
{
    const json *list = json_get(span, "attributes");
    for (size_t i = 0; list && i < list->n; i++)
        if (strcmp(json_text(&list->children[i], "key"), key) == 0)
            return first(json_get(&list->children[i], "value"));
    return NULL;
}

static const char *attribute_text(const json *span, const char *key)
{
    const json *a = attribute(span, key);
    return a && a->kind == JSON_STRING ? a->text : "";
}

static bool is_hex(const char *s, size_t digits)
{
    return strlen(s) == digits && strspn(s, "0123456789abcdef") == digits &&
           strspn(s, "0") != digits;
}

static bool write_all(sn_profile *p, memory_sink *m, json *root)
{
    sonde_error err = {0};
    memset(root, 0, sizeof *root);
    if (otlp()->write(p, memory_sink_init(m), &err) != SONDE_OK)
        return false;
    return json_parse(m->text, root);
}

/* ------------------------------------------------------------------ fields */
TEST(each_run_is_a_span_and_its_operators_are_spans_inside_of_it)
{
    failing_alloc m;
    memory_sink out;
    json root;
    sn_profile *p = syn_tiny(failing_init(&m));
    CHECK(write_all(p, &out, &root));
    const json *spans = spans_of(&root);
    CHECK_EQ(spans->n, 9); /* 3 runs with 2 operators each; no memory */
    const json *run = &spans->children[0], *conv = &spans->children[1];
    CHECK_STR(json_text(run, "name"), "run tiny");
    CHECK(is_hex(json_text(run, "traceId"), 32) && is_hex(json_text(run, "spanId"), 16));
    CHECK(!json_get(run, "parentSpanId"));
    CHECK_EQ(json_get(run, "kind")->number, 1);
    CHECK_STR(json_text(run, "startTimeUnixNano"), "1700000000000000000");
    CHECK_STR(json_text(run, "endTimeUnixNano"), "1700000000010000000");
    CHECK_STR(attribute_text(run, "sonde.model"), "tiny");
    CHECK_STR(attribute_text(run, "sonde.threads"), "2"); /* integers are texts */
    CHECK_STR(attribute_text(run, "thread.id"), "4242");
    CHECK_EQ(attribute(run, "sonde.warmup")->kind, JSON_BOOL);
    CHECK_STR(attribute_text(run, "sonde.operators"), "2");
    CHECK_STR(json_text(conv, "name"), "Conv");
    CHECK_STR(json_text(conv, "traceId"), json_text(run, "traceId"));
    CHECK_STR(json_text(conv, "parentSpanId"), json_text(run, "spanId"));
    CHECK_STR(json_text(conv, "startTimeUnixNano"), "1700000000001000000");
    CHECK_STR(json_text(conv, "endTimeUnixNano"), "1700000000007000000");
    CHECK_STR(attribute_text(conv, "sonde.kernel"), "f32_conv1x1_avx2");
    CHECK_STR(attribute_text(conv, "sonde.flops"), "1000000");
    const json *nodes = json_get(attribute(conv, "sonde.nodes"), "values");
    CHECK_EQ(nodes->n, 3);
    CHECK_STR(json_text(&nodes->children[2], "stringValue"), "relu1");
    const json *inputs = json_get(attribute(conv, "sonde.inputs"), "values");
    CHECK_STR(json_text(&inputs->children[0], "stringValue"), "f32[1x3x4x4]");
    CHECK_EQ(inputs->n, 3);
    const json *second = &spans->children[3];
    CHECK(strcmp(json_text(second, "traceId"), json_text(run, "traceId")) != 0); /* a trace each */
    CHECK(!attribute(second, "sonde.warmup"));
    json_free(&root);
    free(out.text);
    sn_profile_free(p);
}

TEST(inputs_of_a_run_are_in_the_order_of_the_model)
{
    static const char *const ports[2][2] = {{"image", "size"}, {"mask", "image"}};
    static const uint32_t values[2][2] = {{2, 9}, {1, 2}};
    failing_alloc m;
    memory_sink out;
    json root;
    sn_profile *p = syn_tiny(failing_init(&m));
    for (size_t step = 0; step < 2; step++)
        for (size_t k = 0; k < 2; k++) {
            sn_prof_tensor *x = (sn_prof_tensor *)&p->steps.data[step].inputs[k];
            x->port = ports[step][k];
            x->value = values[step][k];
        }
    sn_prof_tensor *mask = (sn_prof_tensor *)p->steps.data[1].inputs;
    mask->port_dims = (int64_t[]){8, 48}; /* the step sees it reshaped */
    mask->port_rank = 2;
    p->steps.data[0].threads = 1; /* of the session; the process has two */
    CHECK(write_all(p, &out, &root));
    const json *run = &spans_of(&root)->children[0];
    const json *inputs = json_get(attribute(run, "sonde.inputs"), "values");
    CHECK_EQ(inputs->n, 3);
    CHECK_STR(json_text(&inputs->children[0], "stringValue"), "mask: f32[8x48]");
    CHECK_STR(json_text(&inputs->children[1], "stringValue"), "image: f32[1x3x4x4]");
    CHECK_STR(json_text(&inputs->children[2], "stringValue"), "size: f32[2x3x1x1]");
    CHECK_STR(attribute_text(run, "sonde.batch"), "8");
    CHECK_STR(attribute_text(run, "sonde.threads"), "1");
    json_free(&root);
    free(out.text);
    sn_profile_free(p);
}

TEST(the_resource_names_service_process_and_processor)
{
    failing_alloc m;
    memory_sink out;
    json root;
    sn_profile *p = syn_tiny(failing_init(&m));
    CHECK(write_all(p, &out, &root));
    const json *resource = json_get(first(json_get(&root, "resourceSpans")), "resource");
    CHECK_STR(attribute_text(resource, "service.name"), "sonde");
    CHECK_STR(attribute_text(resource, "process.pid"), "77");
    CHECK_STR(attribute_text(resource, "host.cpu.model.name"), "Test CPU");
    json_free(&root);
    free(out.text);
    sn_profile_free(p);
}

static bool resource_of(const sn_otlp_resource *said, memory_sink *out, json *root)
{
    failing_alloc m;
    sn_otlp *o = NULL;
    size_t spans = 0;
    memset(root, 0, sizeof *root);
    sn_profile *p = syn_tiny(failing_init(&m));
    bool fine = sn_otlp_open(&o, p, said, 0, NULL) == SONDE_OK &&
                sn_otlp_next(o, 0, memory_sink_init(out), &spans, NULL) == SONDE_OK &&
                json_parse(out->text, root);
    sn_otlp_close(o);
    sn_profile_free(p);
    return fine;
}

TEST(attributes_of_the_resource_are_decoded_and_the_name_of_the_service_is_there_once)
{
    memory_sink out;
    json root;
    const sn_otlp_resource said = {
        NULL,
        "deployment.environment=a%2Cb c, service.name = from%20list ,bad,=x,k=,host.name=\"h\""};
    CHECK(resource_of(&said, &out, &root));
    const json *resource = json_get(first(json_get(&root, "resourceSpans")), "resource");
    CHECK_STR(attribute_text(resource, "service.name"), "from list");
    CHECK_STR(attribute_text(resource, "deployment.environment"), "a,b c");
    CHECK_STR(attribute_text(resource, "host.name"), "\"h\"");
    size_t names = 0;
    for (const char *at = out.text; (at = strstr(at, "service.name")) != NULL; at++)
        names++;
    CHECK_EQ(names, 1);
    json_free(&root);
    free(out.text);
    const sn_otlp_resource both = {"mine", "service.name=theirs"};
    CHECK(resource_of(&both, &out, &root));
    resource = json_get(first(json_get(&root, "resourceSpans")), "resource");
    CHECK_STR(attribute_text(resource, "service.name"), "mine");
    json_free(&root);
    free(out.text);
}

TEST(the_resource_has_the_host_and_every_label)
{
    failing_alloc m;
    memory_sink out;
    json root;
    sn_profile *p = syn_tiny(failing_init(&m));
    label(p, "host", "blue-7");
    label(p, "worker", "3");
    label(p, "version", "2024-07");
    label(p, "team", "søk");
    CHECK(write_all(p, &out, &root));
    const json *resource = json_get(first(json_get(&root, "resourceSpans")), "resource");
    CHECK_STR(attribute_text(resource, "host.name"), "blue-7");
    CHECK_STR(attribute_text(resource, "sonde.label.worker"), "3");
    CHECK_STR(attribute_text(resource, "sonde.label.version"), "2024-07");
    CHECK_STR(attribute_text(resource, "sonde.label.team"), "søk");
    CHECK(!attribute(resource, "sonde.label.host") && !attribute(resource, "service.version"));
    json_free(&root);
    free(out.text);
    sn_profile_free(p);
}

TEST(labels_of_any_bytes_stay_inside_their_strings_and_their_keys_differ)
{
    static const char evil[] = "q\"\\\n\t\x01\xff\xfe</script>\xe2\x80\xae end";
    failing_alloc m;
    memory_sink out;
    json root;
    char longest[SN_LABEL_VALUE_BYTES + 1];
    memset(longest, '\x01', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    sn_profile *p = syn_tiny(failing_init(&m));
    label(p, "host", evil);
    label(p, evil, evil);
    label(p, "k\xff", "first");
    label(p, "k\xfe", "second");
    label(p, "k\xef\xbf\xbd", "third");
    label(p, "long", longest);
    CHECK(write_all(p, &out, &root));
    const json *resource = json_get(first(json_get(&root, "resourceSpans")), "resource");
    static const char shown[] = "q\"\\\n\t\x01\xef\xbf\xbd\xef\xbf\xbd</script>\xe2\x80\xae end";
    char key[100];
    snprintf(key, sizeof key, "sonde.label.%s", shown);
    CHECK_STR(attribute_text(resource, "host.name"), shown);
    CHECK_STR(attribute_text(resource, key), shown);
    CHECK_STR(attribute_text(resource, "sonde.label.k\xef\xbf\xbd"), "first");
    CHECK(!strstr(out.text, "second") && !strstr(out.text, "third"));
    CHECK_EQ(strlen(attribute_text(resource, "sonde.label.long")), SN_OTLP_TEXT_BYTES);
    json_free(&root);
    free(out.text);
    sn_profile_free(p);
}

/* ------------------------------------------------------------------ workers */
/* Two workers whose runs alternate, one on the host "blue". */
static sn_profile *joined(sn_allocator *alloc, const char *second_host)
{
    const worker_of workers[2] = {{.host = "blue",
                                   .worker = "1",
                                   .version = "4",
                                   .model = "old",
                                   .pid = 100,
                                   .wall_ns = UINT64_C(1700000000000000000),
                                   .runs = 2,
                                   .conv_ns = 1000,
                                   .matmul_ns = 500},
                                  {.host = second_host,
                                   .worker = "2",
                                   .version = "5",
                                   .model = "new",
                                   .pid = 100,
                                   .wall_ns = UINT64_C(1700000000000500000),
                                   .runs = 3,
                                   .conv_ns = 2000,
                                   .matmul_ns = 500}};
    sn_profile *all = NULL;
    if (sn_profile_new(&all, alloc, NULL) != SONDE_OK)
        abort();
    for (size_t i = 0; i < 2; i++)
        if (sn_profile_join(all, make_worker(alloc, &workers[i]), NULL) != SONDE_OK)
            abort();
    if (sn_profile_join_end(all, NULL) != SONDE_OK || sn_profile_check(all, NULL) != SONDE_OK)
        abort();
    return all;
}

TEST(each_worker_of_a_joined_profile_is_a_resource_with_its_own_spans)
{
    static const char *const hosts[] = {"blue", "green"}, *const versions[] = {"4", "5"},
                             *const names[] = {"run old", "run new"};
    static const size_t counts[] = {9, 12};
    failing_alloc m;
    memory_sink out;
    json root;
    sn_profile *p = joined(failing_init(&m), "green");
    CHECK(write_all(p, &out, &root));
    const json *entries = json_get(&root, "resourceSpans");
    CHECK_EQ(entries->n, 2);
    for (size_t k = 0; k < 2; k++) {
        const json *entry = &entries->children[k], *resource = json_get(entry, "resource");
        CHECK_STR(attribute_text(resource, "service.name"), "sonde");
        CHECK_STR(attribute_text(resource, "host.name"), hosts[k]);
        CHECK_STR(attribute_text(resource, "process.pid"), "100");
        CHECK_STR(attribute_text(resource, "sonde.label.worker"), k ? "2" : "1");
        CHECK_STR(attribute_text(resource, "sonde.label.version"), versions[k]);
        const json *scope = first(json_get(entry, "scopeSpans"));
        CHECK_STR(json_text(json_get(scope, "scope"), "version"), "0.1.0");
        const json *spans = json_get(scope, "spans");
        CHECK_EQ(spans->n, counts[k]);
        for (size_t i = 0; i < spans->n; i++) {
            const json *span = &spans->children[i], *run = &spans->children[i - i % 3];
            char number[24];
            CHECK_STR(json_text(span, "name"), i % 3 == 0   ? names[k]
                                               : i % 3 == 1 ? "Conv"
                                                            : "MatMul");
            CHECK_STR(json_text(span, "traceId"), json_text(run, "traceId"));
            CHECK_STR(attribute_text(span, "thread.name"), "main"); /* not "blue / 1: main" */
            if (span != run) {
                CHECK_STR(json_text(span, "parentSpanId"), json_text(run, "spanId"));
                continue;
            }
            snprintf(number, sizeof number, "%zu", i / 3 + 1);
            CHECK_STR(attribute_text(run, "sonde.run"), number);
            CHECK_STR(attribute_text(run, "sonde.session"), "0");
            CHECK_STR(attribute_text(run, "sonde.model"), names[k] + strlen("run "));
            CHECK_STR(attribute_text(run, "sonde.operators"), "2");
        }
    }
    const json *later = json_get(first(json_get(&entries->children[1], "scopeSpans")), "spans");
    CHECK_STR(json_text(&later->children[0], "startTimeUnixNano"), "1700000000000500000");
    json_free(&root);
    free(out.text);
    sn_profile_free(p);
}

TEST(parts_of_a_joined_profile_have_every_span_once_beside_its_own_worker)
{
    static const size_t limits[] = {1, 2000, 3000, 5000, 20000};
    const sn_otlp_resource said = {NULL, "host.name=sender,sonde.label.worker=9,team=a"};
    failing_alloc m;
    sn_profile *p = joined(failing_init(&m), "green");
    for (size_t k = 0; k < sizeof limits / sizeof limits[0]; k++) {
        sn_otlp *o = NULL;
        size_t total = 0, entries = 0, spans = 1;
        CHECK_EQ(sn_otlp_open(&o, p, &said, 0, NULL), SONDE_OK);
        while (spans) {
            memory_sink out;
            json root = {0};
            CHECK_EQ(sn_otlp_next(o, limits[k], memory_sink_init(&out), &spans, NULL), SONDE_OK);
            CHECK_EQ(out.n > 0, spans > 0);
            CHECK(!spans || json_parse(out.text, &root));
            const json *list = json_get(&root, "resourceSpans");
            size_t here = 0;
            for (size_t i = 0; spans && i < list->n; i++) {
                const json *entry = &list->children[i], *resource = json_get(entry, "resource");
                const bool blue = strcmp(attribute_text(resource, "host.name"), "blue") == 0;
                CHECK(blue || strcmp(attribute_text(resource, "host.name"), "green") == 0);
                CHECK_STR(attribute_text(resource, "sonde.label.worker"), blue ? "1" : "2");
                CHECK_STR(attribute_text(resource, "team"), "a");
                const json *own = json_get(first(json_get(entry, "scopeSpans")), "spans");
                here += own->n;
                for (size_t j = 0; j < own->n; j++)
                    if (strncmp(json_text(&own->children[j], "name"), "run", 3) == 0)
                        CHECK_STR(json_text(&own->children[j], "name"),
                                  blue ? "run old" : "run new");
                entries++;
            }
            CHECK_EQ(here, spans);
            CHECK_MSG(spans <= 1 || out.n <= limits[k], "%zu bytes of %zu", out.n, limits[k]);
            total += spans;
            json_free(&root);
            free(out.text);
        }
        CHECK_EQ(total, 21);
        CHECK(entries >= 2 && entries <= 21);
        sn_otlp_close(o);
    }
    sn_profile_free(p);
}

TEST(a_joined_profile_without_spans_to_show_has_its_workers)
{
    failing_alloc m;
    memory_sink out;
    json root;
    sn_profile *p = joined(failing_init(&m), "");
    p->categories = 1u << SN_CAT_USER;
    CHECK(write_all(p, &out, &root));
    const json *entries = json_get(&root, "resourceSpans");
    CHECK_EQ(entries->n, 2);
    CHECK_STR(attribute_text(json_get(&entries->children[0], "resource"), "host.name"), "blue");
    CHECK(!attribute(json_get(&entries->children[1], "resource"), "host.name"));
    CHECK_EQ(spans_of(&root)->n, 0);
    json_free(&root);
    free(out.text);
    sn_profile_free(p);
}

TEST(memory_that_runs_out_is_an_error_and_nothing_leaks)
{
    failing_alloc m;
    const sn_otlp_resource nothing = {NULL, NULL};
    sn_profile *p = joined(failing_init(&m), "green");
    const long held = m.live;
    for (long k = 0;; k++) {
        sn_otlp *o = NULL;
        memory_sink out;
        size_t spans = 0;
        m.calls = 0;
        m.fail_at = k;
        sonde_status st = sn_otlp_open(&o, p, &nothing, 0, NULL);
        memory_sink_init(&out);
        if (st == SONDE_OK)
            st = sn_otlp_next(o, 0, &out.sink, &spans, NULL);
        sn_otlp_close(o);
        free(out.text);
        m.fail_at = -1;
        CHECK_EQ(m.live, held);
        if (st == SONDE_OK)
            break;
        CHECK_EQ(st, SONDE_OUT_OF_MEMORY);
    }
    sn_profile_free(p);
}

/* ------------------------------------------------------------------ whose trace */
#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN  "00f067aa0ba902b7"

TEST(a_run_with_a_caller_belongs_to_the_callers_trace)
{
    failing_alloc m;
    memory_sink out;
    json root;
    sn_profile *p = syn_tiny(failing_init(&m));
    p->spans.data[4].args = "00-" TRACE "-" SPAN "-01"; /* the second run */
    CHECK_EQ(p->spans.data[4].cat, SN_CAT_ITERATION);
    CHECK(write_all(p, &out, &root));
    const json *spans = spans_of(&root);
    CHECK_EQ(spans->n, 9);
    for (size_t i = 3; i < 6; i++)
        CHECK_STR(json_text(&spans->children[i], "traceId"), TRACE);
    CHECK_STR(json_text(&spans->children[3], "parentSpanId"), SPAN);
    CHECK_STR(json_text(&spans->children[4], "parentSpanId"),
              json_text(&spans->children[3], "spanId"));
    CHECK(strcmp(json_text(&spans->children[6], "traceId"), TRACE) != 0);
    json_free(&root);
    free(out.text);
    sn_profile_free(p);
}

TEST(a_run_whose_caller_samples_nothing_is_left_out_with_its_operators)
{
    failing_alloc m;
    memory_sink out;
    json root;
    sn_profile *p = syn_tiny(failing_init(&m));
    p->spans.data[4].args = "00-" TRACE "-" SPAN "-00";
    p->spans.data[0].args = "no traceparent";
    CHECK(write_all(p, &out, &root));
    CHECK_EQ(spans_of(&root)->n, 6);
    CHECK(!strstr(out.text, TRACE));
    json_free(&root);
    free(out.text);
    sn_profile_free(p);
}

TEST(runs_in_a_record_are_one_trace_with_it)
{
    failing_alloc m;
    memory_sink out;
    json root;
    sn_profile *p = syn_profile(failing_init(&m));
    const uint32_t step = syn_step(p, "Conv", "c", "", "k");
    const uint32_t request = syn_span(p, SN_CAT_USER, 0, 0, 20 * MS, "request")->id;
    for (uint32_t i = 0; i < 2; i++) {
        sn_prof_span *run =
            syn_span(p, SN_CAT_ITERATION, request, i * 9 * MS + MS, 8 * MS, "Iteration");
        run->run = i + 1;
        const uint32_t id = run->id;
        syn_op(p, id, i * 9 * MS + 2 * MS, MS, step);
    }
    CHECK(write_all(p, &out, &root));
    const json *spans = spans_of(&root);
    CHECK_EQ(spans->n, 5);
    CHECK_STR(json_text(&spans->children[0], "name"), "request");
    for (size_t i = 1; i < 5; i++)
        CHECK_STR(json_text(&spans->children[i], "traceId"),
                  json_text(&spans->children[0], "traceId"));
    CHECK_STR(json_text(&spans->children[3], "parentSpanId"),
              json_text(&spans->children[0], "spanId"));
    json_free(&root);
    free(out.text);
    /* With operators alone, each run is a trace. */
    p->categories = 1u << SN_CAT_OPERATOR;
    CHECK(write_all(p, &out, &root));
    spans = spans_of(&root);
    CHECK_EQ(spans->n, 2);
    CHECK(!json_get(&spans->children[0], "parentSpanId"));
    json_free(&root);
    free(out.text);
    sn_profile_free(p);
}

/* ------------------------------------------------------------------ hostile */
TEST(names_of_any_bytes_stay_inside_their_strings)
{
    static const char evil[] = "q\"\\\n\t\x01\xff\xfe</script>\xe2\x80\xae end";
    failing_alloc m;
    memory_sink out;
    json root;
    char *name = malloc(100001);
    memset(name, '\x01', 100000);
    name[100000] = 0;
    sn_profile *p = syn_tiny(failing_init(&m));
    p->model_name = evil;
    p->cpu_model = name;
    p->threads_seen.data[0].name = evil;
    p->steps.data[0].op_type = evil;
    p->steps.data[0].kernel = name;
    sn_prof_origin *origins = SN_NEW_N(&p->arena, sn_prof_origin, 500);
    for (size_t i = 0; i < 500; i++)
        origins[i] = (sn_prof_origin){i % 2 ? evil : name, evil};
    p->steps.data[0].origins = origins;
    p->steps.data[0].n_origins = 500;
    CHECK(write_all(p, &out, &root));
    const json *conv = &spans_of(&root)->children[1];
    CHECK_EQ(json_get(attribute(conv, "sonde.nodes"), "values")->n, SN_OTLP_LIST_ITEMS);
    CHECK_EQ(strlen(attribute_text(conv, "sonde.kernel")), SN_OTLP_TEXT_BYTES);
    CHECK(strstr(json_text(&spans_of(&root)->children[0], "name"), "</script>"));
    json_free(&root);
    free(out.text);
    sn_profile_free(p);
    free(name);
}

TEST(long_texts_are_cut_between_characters)
{
    failing_alloc m;
    memory_sink out;
    json root;
    char name[4 * 700 + 1];
    for (size_t i = 0; i < 700; i++)
        memcpy(name + 3 * i, "\xe2\x82\xac", 3);
    name[3 * 700] = 0;
    sn_profile *p = syn_tiny(failing_init(&m));
    p->steps.data[0].kernel = name;
    CHECK(write_all(p, &out, &root));
    const char *kernel = attribute_text(&spans_of(&root)->children[1], "sonde.kernel");
    CHECK_EQ(strlen(kernel), 3 * (SN_OTLP_TEXT_BYTES / 3));
    CHECK(!strstr(out.text, "\xef\xbf\xbd"));
    json_free(&root);
    free(out.text);
    sn_profile_free(p);
}

TEST(a_profile_without_spans_is_a_request_without_spans)
{
    failing_alloc m;
    memory_sink out;
    json root;
    sn_profile *p = syn_profile(failing_init(&m));
    CHECK(write_all(p, &out, &root));
    CHECK(spans_of(&root) != NULL);
    CHECK_EQ(spans_of(&root)->n, 0);
    json_free(&root);
    free(out.text);
    sn_profile_free(p);
}

/* ------------------------------------------------------------------ parts */
TEST(parts_of_bounded_size_have_every_span_once)
{
    failing_alloc m;
    const sn_otlp_resource nothing = {NULL, NULL};
    sn_profile *p = syn_tiny(failing_init(&m));
    static const size_t limits[] = {1, 2000, 3000, 5000, 100000};
    for (size_t k = 0; k < sizeof limits / sizeof limits[0]; k++) {
        sn_otlp *o = NULL;
        size_t total = 0, requests = 0, spans = 1;
        CHECK_EQ(sn_otlp_open(&o, p, &nothing, 0, NULL), SONDE_OK);
        while (spans) {
            memory_sink out;
            json root = {0};
            CHECK_EQ(sn_otlp_next(o, limits[k], memory_sink_init(&out), &spans, NULL), SONDE_OK);
            if (spans) {
                CHECK(json_parse(out.text, &root));
                CHECK_EQ(spans_of(&root)->n, spans);
                CHECK_MSG(spans == 1 || out.n <= limits[k], "%zu bytes of %zu", out.n, limits[k]);
                total += spans;
                requests++;
            } else {
                CHECK_EQ(out.n, 0);
            }
            json_free(&root);
            free(out.text);
        }
        CHECK_EQ(total, 9);
        CHECK_EQ(limits[k] == 1 ? requests == 9 : requests < 9, 1);
        sn_otlp_close(o);
    }
    sn_profile_free(p);
}

TEST_MAIN()
