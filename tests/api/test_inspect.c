/* SPDX-License-Identifier: Apache-2.0 */
/* Looking into models, saving them, and values in files. */
#include <unistd.h>

#include "sonde/experimental/compare.h"
#include "sonde/experimental/inspect.h"
#include "sonde/experimental/tensor_file.h"
#include "sonde/experimental/zoo.h"
#include "sonde/sonde.h"

#include "zoo_session.h"

static const char *temporary(char *path, size_t cap, const char *suffix)
{
    snprintf(path, cap, "/tmp/sonde-test-%ld%s", (long)getpid(), suffix);
    return path;
}

TEST(the_zoo_lists_its_models)
{
    CHECK_STR(sonde_zoo_name(0), "regnet_x_400mf");
    CHECK_EQ(sonde_zoo_parameters(0), 5495976);
    CHECK(sonde_zoo_summary(0)[0] != 0);
    CHECK(sonde_zoo_name(1000) == NULL);
    sonde_error err;
    sonde_model *model = NULL;
    CHECK_EQ(sonde_zoo_build(NULL, "nothing", 0, &model, &err), SONDE_NOT_FOUND);
    CHECK_EQ(sonde_zoo_build(NULL, NULL, 0, &model, &err), SONDE_INVALID_ARGUMENT);
}

TEST(a_model_is_described_with_types)
{
    sonde_error err;
    sonde_model *model = NULL;
    sonde_inspection *look = NULL;
    CHECK_OK(sonde_zoo_build(NULL, "regnet_x_400mf", 0, &model, &err));
    CHECK_STR(sonde_model_name(model), "regnet_x_400mf");
    CHECK_OK(sonde_inspect_model(model, &look, &err));
    CHECK_STR(sonde_inspection_note(look), "");
    sonde_inspection_totals totals = SONDE_INIT(sonde_inspection_totals);
    CHECK_OK(sonde_inspection_totals_get(look, &totals, &err));
    CHECK_EQ(totals.parameters, 5495976);
    CHECK_EQ(totals.bound, 0);
    CHECK_EQ(totals.nodes, sonde_inspection_node_count(look));
    uint64_t count = 0;
    CHECK_STR(sonde_inspection_operator(look, 0, &count), "BatchNormalization");
    CHECK_EQ(count, 71);
    int64_t version = 0;
    CHECK_STR(sonde_inspection_opset(look, 0, &version), "");
    CHECK_EQ(version, 17);
    sonde_node_info node = SONDE_INIT(sonde_node_info);
    CHECK_OK(sonde_inspection_node(look, 0, &node, &err));
    CHECK_STR(node.op_type, "Conv");
    CHECK_STR(node.name, "/stem/stem.0/Conv");
    CHECK_STR(node.outputs[0].type, "f32[batch, 32, 112, 112]");
    CHECK_EQ(node.outputs[0].dtype, SONDE_DTYPE_F32);
    CHECK_EQ(node.outputs[0].bytes, 32 * 112 * 112 * 4); /* of one image: the batch is not known */
    CHECK_EQ(node.outputs[0].block, 0);
    CHECK_HAS(node.attributes, "kernel_shape=3,3");
    CHECK_EQ(sonde_inspection_node(look, 100000, &node, &err), SONDE_INVALID_ARGUMENT);
    sonde_type_info port = SONDE_INIT(sonde_type_info);
    CHECK_OK(sonde_inspection_input(look, 0, &port, &err));
    CHECK_STR(port.text, "f32[batch, 3, 224, 224]");
    CHECK(port.rank == 4 && port.dims[0] == -1 && port.dims[3] == 224);
    CHECK_STR(port.dim_names[0], "batch");
    CHECK_EQ(sonde_inspection_input(look, 1, &port, &err), SONDE_NOT_FOUND);
    CHECK_OK(sonde_inspection_output(look, 0, &port, &err));
    CHECK_STR(port.text, "f32[batch, 1000]");
    CHECK_EQ(sonde_inspection_output(look, 1, &port, &err), SONDE_NOT_FOUND);
    CHECK_EQ(sonde_inspection_input(NULL, 0, &port, &err), SONDE_INVALID_ARGUMENT);
    sonde_model_release(model);
    CHECK_OK(sonde_inspection_node(look, 1, &node, &err));
    sonde_inspection_release(look);
    sonde_inspection_release(NULL);
}

TEST(every_built_in_model_is_counted_as_published)
{
    for (size_t i = 0; sonde_zoo_name(i); i++) {
        sonde_error err;
        sonde_model *model = NULL;
        sonde_inspection *look = NULL;
        CHECK_OK(sonde_zoo_build(NULL, sonde_zoo_name(i), 0, &model, &err));
        CHECK_OK(sonde_inspect_model(model, &look, &err));
        CHECK_STR(sonde_inspection_note(look), "");
        sonde_inspection_totals totals = SONDE_INIT(sonde_inspection_totals);
        CHECK_OK(sonde_inspection_totals_get(look, &totals, &err));
        const char *name = sonde_zoo_name(i);
        CHECK_MSG(totals.parameters == sonde_zoo_parameters(i), "%s", name);
        if (!strstr(name, "int8")) /* those have biases of 32 bits beside weights of 8 */
            CHECK_MSG(totals.parameter_bytes == totals.parameters * sizeof(float), "%s", name);
        else
            CHECK_MSG(totals.parameter_bytes >= totals.parameters &&
                          totals.parameter_bytes < totals.parameters * 2,
                      "%s", name);
        CHECK(totals.constant_bytes >= totals.parameter_bytes);
        sonde_inspection_release(look);
        sonde_model_release(model);
    }
}

TEST(a_bound_session_knows_flops_kernels_and_memory)
{
    sonde_error err;
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    sonde_inspection *look = NULL;
    sonde_value *in = NULL;
    const int64_t dims[4] = {1, 3, 32, 32};
    CHECK_OK(sonde_zoo_build(NULL, "tiny_cnn", 0, &model, &err));
    CHECK_OK(sonde_session_create(model, NULL, &session, &err));
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_F32, dims, 4, NULL, 3 * 32 * 32 * 4, &in, &err));
    CHECK_OK(sonde_inspect_session(session, NULL, &in, 1, &look, &err));
    sonde_inspection_totals totals = SONDE_INIT(sonde_inspection_totals);
    CHECK_OK(sonde_inspection_totals_get(look, &totals, &err));
    CHECK_EQ(totals.bound, 1);
    CHECK_EQ(totals.parameters, 1802);
    CHECK(totals.flops > 100000);
    CHECK(totals.arena_bytes > 0);
    sonde_inspection_release(look);
    CHECK_OK(sonde_inspect_session(session, NULL, NULL, 0, &look, &err));
    CHECK_OK(sonde_inspection_totals_get(look, &totals, &err));
    CHECK_EQ(totals.bound, 0);
    sonde_inspection_release(look);
    sonde_value_release(in);
    sonde_session_release(session);
    sonde_model_release(model);
}

TEST(whether_a_run_fits_is_known_without_its_inputs)
{
    sonde_error err = {0};
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    sonde_session_options so = SONDE_INIT(sonde_session_options);
    sonde_context *c = NULL;
    sonde_model *model = NULL;
    o.threads = 1;
    o.max_memory = (size_t)64 << 20;
    int64_t dims[4] = {1, 3, 32, 32};
    sonde_input_shape shape = {"input", SONDE_DTYPE_F32, dims, 4};
    CHECK_OK(sonde_context_create(&o, &c, &err));
    CHECK_OK(sonde_zoo_build(c, "tiny_cnn", 0, &model, &err));
    for (so.plan_only = 0; so.plan_only < 2; so.plan_only++) {
        sonde_session *session = NULL;
        CHECK_OK(sonde_session_create(model, &so, &session, &err));
        shape.name = sonde_session_input_name(session, 0);
        dims[0] = 1;
        CHECK_OK(sonde_session_fits(session, &shape, 1, &err));
        dims[0] = 1 << 20;
        CHECK_EQ(sonde_session_fits(session, &shape, 1, &err), SONDE_OUT_OF_MEMORY);
        CHECK(strstr(err.message, ", inputs 12884901888)") != NULL);
        dims[0] = INT64_MAX / 4096;
        CHECK_EQ(sonde_session_fits(session, &shape, 1, &err), SONDE_LIMIT);
        dims[0] = -1;
        CHECK_EQ(sonde_session_fits(session, &shape, 1, &err), SONDE_INVALID_ARGUMENT);
        CHECK_EQ(sonde_session_fits(session, NULL, 0, &err), SONDE_INVALID_ARGUMENT);
        CHECK_EQ(sonde_session_fits(session, NULL, 1, &err), SONDE_INVALID_ARGUMENT);
        shape.name = NULL;
        CHECK_EQ(sonde_session_fits(session, &shape, 1, &err), SONDE_INVALID_ARGUMENT);
        sonde_session_release(session);
    }
    CHECK_EQ(sonde_session_fits(NULL, &shape, 1, &err), SONDE_INVALID_ARGUMENT);
    sonde_model_release(model);
    sonde_context_release(c);
}

TEST(changes_of_layout_are_shown_with_what_they_change)
{
    sonde_error err;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    sonde_context *c = NULL;
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    sonde_inspection *look = NULL;
    CHECK_OK(sonde_context_create(&o, &c, &err));
    CHECK_OK(sonde_zoo_build(c, "tiny_resnet", 0, &model, &err));
    CHECK_OK(sonde_session_create(model, NULL, &session, &err));
    CHECK_OK(sonde_inspect_session(session, NULL, NULL, 0, &look, &err));
    size_t blocked = 0;
    for (size_t i = 0; i < sonde_inspection_node_count(look); i++) {
        sonde_node_info n = SONDE_INIT(sonde_node_info);
        CHECK_OK(sonde_inspection_node(look, i, &n, &err));
        blocked += n.output_count && n.outputs[0].block > 0;
        if (strcmp(n.op_type, "[Reorder]") == 0)
            CHECK(n.inputs[0].block != n.outputs[0].block);
        for (size_t k = 0; k < n.output_count; k++) {
            char form[32] = "";
            if (n.outputs[k].block)
                snprintf(form, sizeof form, "blocks of %d", n.outputs[k].block);
            CHECK_STR(n.outputs[k].form, form);
        }
    }
    if (strcmp(sonde_context_cpu(c), "baseline") != 0) /* plain C computes on plain tensors */
        CHECK(blocked > 0);
    sonde_inspection_release(look);
    sonde_session_release(session);
    sonde_model_release(model);
    sonde_context_release(c);
}

TEST(plain_kernels_are_known_by_their_names)
{
    CHECK(sonde_kernel_is_plain("f32_gemm_ref"));
    CHECK(sonde_kernel_is_plain("plain"));
    CHECK(!sonde_kernel_is_plain("f32_gemm_6x16_avx2"));
    CHECK(!sonde_kernel_is_plain("ref"));
    CHECK(!sonde_kernel_is_plain(""));
    CHECK(!sonde_kernel_is_plain(NULL));
}

/* What an inspection says of a session bound to its inputs. */
static sonde_status look_at(sonde_context *c, sonde_model *model, bool plan_only,
                            sonde_inspection_totals *totals, sonde_error *err)
{
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    sonde_session *s = NULL;
    sonde_inspection *look = NULL;
    sonde_value *in[MAX_PORTS] = {0};
    size_t n = 0;
    o.plan_only = plan_only;
    sonde_status st = sonde_session_create(model, &o, &s, err);
    if (!st)
        st = random_inputs(c, s, 2, in, &n, err);
    if (!st)
        st = sonde_inspect_session(s, NULL, in, n, &look, err);
    if (!st)
        st = sonde_inspection_totals_get(look, totals, err);
    sonde_inspection_release(look);
    release_all(in, MAX_PORTS);
    sonde_session_release(s);
    return st;
}

/* One run under the profiler: what it holds. */
static sonde_status run_once(sonde_context *c, sonde_model *model, sn_prof_memory *memory,
                             sonde_error *err)
{
    sonde_session *s = NULL;
    sonde_profile *profile = NULL;
    sonde_value *in[MAX_PORTS] = {0}, *out[MAX_PORTS] = {0};
    size_t n = 0;
    sonde_status st = sonde_profiler_start(c, 1, err);
    if (!st)
        st = sonde_session_create(model, NULL, &s, err);
    if (!st)
        st = random_inputs(c, s, 2, in, &n, err);
    if (!st)
        st = sonde_session_run(s, NULL, NULL, in, n, NULL, out, sonde_session_output_count(s), err);
    if (!st)
        st = sonde_profiler_stop(c, &profile, err);
    if (!st)
        *memory = profile->core->memory;
    sonde_profile_release(profile);
    release_all(in, MAX_PORTS);
    release_all(out, MAX_PORTS);
    sonde_session_release(s);
    return st;
}

static uint64_t sum_of_parts(const sonde_inspection_totals *t)
{
    return t->weight_bytes + t->packed_bytes + t->arena_bytes + t->workspace_bytes +
           t->input_bytes + t->output_bytes;
}

TEST(a_plan_says_what_a_run_then_holds)
{
    static const char *const models[] = {"tiny_mlp",         "tiny_cnn",       "tiny_resnet",
                                         "tiny_regnet_y",    "tiny_mobilenet", "tiny_efficientnet",
                                         "tiny_resnet_int8", "bert_mini"};
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = 2;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (int mapped = 0; mapped < 2; mapped++) {
            sonde_error err;
            sonde_context *c = NULL;
            sonde_model *model = NULL;
            char path[64];
            sonde_inspection_totals plan = SONDE_INIT(sonde_inspection_totals), real = plan;
            sn_prof_memory held = {0};
            CHECK_OK(sonde_context_create(&o, &c, &err));
            CHECK_OK(sonde_zoo_build(c, models[i], 0, &model, &err));
            if (mapped) {
                temporary(path, sizeof path, ".onnx");
                CHECK_OK(sonde_model_save(model, path, &err));
                sonde_model_release(model);
                CHECK_OK(sonde_model_load(c, path, NULL, &model, &err));
                remove(path);
            }
            CHECK_OK(look_at(c, model, true, &plan, &err));
            CHECK_OK(look_at(c, model, false, &real, &err));
            CHECK_OK(run_once(c, model, &held, &err));
            CHECK_MSG(memcmp(&plan, &real, sizeof plan) == 0, "%s: %llu %llu", models[i],
                      (unsigned long long)plan.peak_bytes, (unsigned long long)real.peak_bytes);
            CHECK_EQ(plan.peak_bytes, sum_of_parts(&plan));
            CHECK(plan.bound && !plan.data_dependent && plan.peak_bytes > 0);
            CHECK_EQ(plan.arena_bytes, held.arenas);
            CHECK_EQ(plan.workspace_bytes, held.workspaces);
            CHECK_EQ(plan.packed_bytes, held.packed);
            CHECK_EQ(plan.output_bytes, held.outputs);
            /* Small constants lie with the graph, and of a mapped file steps read some as it is. */
            const uint64_t beside = mapped ? held.mapped : 16384;
            CHECK_MSG(plan.weight_bytes >= held.constants &&
                          plan.weight_bytes - held.constants <= beside,
                      "%s: %llu, held %llu", models[i], (unsigned long long)plan.weight_bytes,
                      (unsigned long long)held.constants);
            sonde_model_release(model);
            sonde_context_release(c);
        }
}

TEST(a_saved_model_loads_and_computes_the_same)
{
    sonde_error err;
    char path[64];
    temporary(path, sizeof path, ".onnx");
    const int64_t dims[4] = {1, 3, 32, 32};
    sonde_value *in = NULL, *out[2] = {NULL, NULL};
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_F32, dims, 4, NULL, 3 * 32 * 32 * 4, &in, &err));
    for (int i = 0; i < 2; i++) {
        sonde_model *model = NULL;
        sonde_session *session = NULL;
        if (i == 0) {
            CHECK_OK(sonde_zoo_build(NULL, "tiny_cnn", 5, &model, &err));
            CHECK_OK(sonde_model_save(model, path, &err));
        } else {
            CHECK_OK(sonde_model_load(NULL, path, NULL, &model, &err));
            CHECK_EQ(sonde_model_metadata_count(model), 1);
        }
        CHECK_OK(sonde_session_create(model, NULL, &session, &err));
        CHECK_OK(sonde_session_run(session, NULL, NULL, &in, 1, NULL, &out[i], 1, &err));
        sonde_session_release(session);
        sonde_model_release(model);
    }
    CHECK_OK(sonde_value_compare(out[1], out[0], 0, 0, &err));
    sonde_value_release(in);
    sonde_value_release(out[0]);
    sonde_value_release(out[1]);
    remove(path);
}

TEST(graphs_are_saved_by_suffix)
{
    sonde_error err;
    char path[64];
    sonde_model *model = NULL;
    sonde_inspection *look = NULL;
    CHECK_OK(sonde_zoo_build(NULL, "tiny_mlp", 0, &model, &err));
    CHECK_OK(sonde_inspect_model(model, &look, &err));
    CHECK_OK(sonde_inspection_save(look, temporary(path, sizeof path, ".dot"), &err));
    char text[64] = "";
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL);
    CHECK(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    remove(path);
    CHECK_HAS(text, "digraph");
    CHECK_EQ(sonde_inspection_save(look, "graph.bmp", &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_inspection_can_save("graph.bmp", &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, ".dot, .txt or .onnx");
    CHECK_OK(sonde_inspection_can_save("missing/graph.onnx", &err));
    sonde_inspection_release(look);
    sonde_model_release(model);
}

TEST(values_survive_a_file)
{
    sonde_error err;
    char path[64];
    const int64_t dims[2] = {2, 2};
    const float data[4] = {1, -2, 3.5f, 0};
    const int64_t ints[2] = {7, -7}, two[1] = {2};
    sonde_value *values[2] = {NULL, NULL};
    const char *names[2] = {"a", "b"};
    CHECK_OK(
        sonde_tensor_create(NULL, SONDE_DTYPE_F32, dims, 2, data, sizeof data, &values[0], &err));
    CHECK_OK(
        sonde_tensor_create(NULL, SONDE_DTYPE_I64, two, 1, ints, sizeof ints, &values[1], &err));
    static const char *const suffixes[] = {".npz", ".safetensors"};
    for (int k = 0; k < 2; k++) {
        CHECK_OK(
            sonde_values_save(temporary(path, sizeof path, suffixes[k]), names, values, 2, &err));
        sonde_value_set *set = NULL;
        CHECK_OK(sonde_values_load(NULL, path, &set, &err));
        CHECK_EQ(sonde_value_set_count(set), 2);
        for (size_t i = 0; i < 2; i++) {
            const int at = strcmp(sonde_value_set_name(set, i), "a") == 0 ? 0 : 1;
            CHECK_OK(sonde_value_compare(sonde_value_set_value(set, i), values[at], 0, 0, &err));
        }
        sonde_value_set_release(set);
        remove(path);
    }
    sonde_value_release(values[0]);
    sonde_value_release(values[1]);
    sonde_value_set *set = NULL;
    CHECK_EQ(sonde_values_load(NULL, "/no/such/file.npz", &set, &err), SONDE_NOT_FOUND);
    CHECK_EQ(sonde_values_load(NULL, NULL, &set, &err), SONDE_INVALID_ARGUMENT);
    CHECK_OK(sonde_values_can_save("missing/a.npz", &err));
    CHECK_OK(sonde_values_can_save("folder/", &err));
    CHECK_EQ(sonde_values_can_save("a.foo", &err), SONDE_UNSUPPORTED);
    CHECK_HAS(err.message, ".npy, .npz, .safetensors");
    CHECK_EQ(sonde_values_can_save(NULL, &err), SONDE_INVALID_ARGUMENT);
}

TEST_MAIN()
