/* SPDX-License-Identifier: Apache-2.0 */
/* Models of a few nodes through the public API, each about one way in which parts of the library
 * meet: memory that is taken over, values handed on between runs, passes left out. Random models
 * (tests/python/differential.py) found that these ways can go wrong. */
#include "onnx/proto.h"

#include "sonde/sonde.h"

static sonde_error err;

static pb floats_of(const char *name, int64_t n)
{
    return pb_value_info(name, pb_tensor_type(SONDE_DTYPE_F32, 1, &n));
}

/* A graph that reads and gives f32[4] values; nodes are added to it. */
static pb graph_of(const char *inputs, const char *outputs)
{
    pb g = {0};
    char name[16];
    pb_text(&g, 2, "tests");
    for (int part = 0; part < 2; part++)
        for (const char *names = part ? outputs : inputs; *names;) {
            size_t n = strcspn(names, " ");
            snprintf(name, sizeof name, "%.*s", (int)n, names);
            pb_msg(&g, part ? 12 : 11, floats_of(name, 4));
            names += n + (names[n] == ' ');
        }
    return g;
}

/* Counts a failure; for functions that return something. */
static void must(sonde_status st)
{
    if (st == SONDE_OK)
        return;
    test_errors++;
    fprintf(stderr, "%s\n", err.message);
}

static sonde_session *session_of(pb graph, const sonde_session_options *options)
{
    pb bytes = pb_model(8, graph);
    sonde_model *model = NULL;
    sonde_session *s = NULL;
    must(sonde_model_load_memory(NULL, bytes.data, bytes.n, NULL, &model, &err));
    if (model)
        must(sonde_session_create(model, options, &s, &err));
    sonde_model_release(model);
    free(bytes.data);
    return s;
}

static sonde_value *four(float a, float b, float c, float d)
{
    const float data[] = {a, b, c, d};
    const int64_t n = 4;
    sonde_value *v = NULL;
    must(sonde_tensor_create(NULL, SONDE_DTYPE_F32, &n, 1, data, sizeof data, &v, &err));
    return v;
}

static void check_four(const sonde_value *v, float a, float b, float c, float d)
{
    const float want[] = {a, b, c, d};
    const float *got = v ? sonde_tensor_data(v) : NULL;
    for (int i = 0; i < 4; i++)
        CHECK_MSG(got && got[i] == want[i], "element %d is %g, expected %g", i,
                  got ? (double)got[i] : 0.0, (double)want[i]);
}

TEST(a_model_says_what_its_file_says)
{
    pb g = graph_of("x", "y");
    pb_text(&g, 10, "what the graph does");
    pb_msg(&g, 1, pb_node("Neg", "x", "y"));
    pb bytes = pb_model(8, g);
    pb_text(&bytes, 2, "a producer");
    pb_text(&bytes, 3, "1.2");
    pb_text(&bytes, 4, "ai.example");
    pb_int(&bytes, 5, 7);
    sonde_model *model = NULL;
    sonde_model_info info = SONDE_INIT(sonde_model_info);
    CHECK_OK(sonde_model_load_memory(NULL, bytes.data, bytes.n, NULL, &model, &err));
    CHECK_OK(sonde_model_info_get(model, &info, &err));
    CHECK_STR(info.producer, "a producer");
    CHECK_STR(info.producer_version, "1.2");
    CHECK_STR(info.domain, "ai.example");
    CHECK_STR(info.description, "");
    CHECK_STR(info.graph_name, "tests");
    CHECK_STR(info.graph_description, "what the graph does");
    CHECK_EQ(info.version, 7);
    info.struct_size = 0;
    CHECK_EQ(sonde_model_info_get(model, &info, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_model_info_get(NULL, &info, &err), SONDE_INVALID_ARGUMENT);
    sonde_model_release(model);
    free(bytes.data);
}

TEST(dims_named_by_a_question_mark_may_differ)
{
    pb g = {0};
    const int64_t free_dims[2] = {-3, -3}, dims[2] = {1, 2};
    pb_text(&g, 2, "tests");
    pb_msg(&g, 11, pb_value_info("x", pb_tensor_type(SONDE_DTYPE_F32, 2, free_dims)));
    pb_msg(&g, 12, pb_value_info("y", pb_tensor_type(SONDE_DTYPE_F32, 2, free_dims)));
    pb_msg(&g, 1, pb_node("Neg", "x", "y"));
    sonde_session *s = session_of(g, NULL);
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    CHECK_OK(sonde_session_input_info(s, 0, &info, &err));
    CHECK_EQ(info.dims[0], -1);
    CHECK(info.dim_names[0] == NULL);
    sonde_value *x = NULL, *y = NULL;
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_F32, dims, 2, NULL, 8, &x, &err));
    CHECK_OK(sonde_session_run(s, NULL, NULL, &x, 1, NULL, &y, 1, &err));
    CHECK_EQ(sonde_tensor_dims(y)[1], 2);
    sonde_value_release(x);
    sonde_value_release(y);
    sonde_session_release(s);
}

TEST(types_are_told_as_onnx_writes_them)
{
    pb g = graph_of("x", ""), sequence = {0}, type = {0}, value = {0};
    const int64_t n = 4;
    pb_msg(&sequence, 1, pb_tensor_type(SONDE_DTYPE_F32, 1, &n));
    pb_msg(&type, 4, sequence);
    pb_text(&value, 1, "s");
    pb_msg(&value, 2, type);
    pb_msg(&g, 12, value);
    pb_msg(&g, 1, pb_node("SequenceConstruct", "x x", "s"));
    sonde_session *s = session_of(g, NULL);
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    CHECK_OK(sonde_session_input_info(s, 0, &info, &err));
    CHECK_STR(info.onnx_type, "tensor(float)");
    CHECK_OK(sonde_session_output_info(s, 0, &info, &err));
    CHECK_STR(info.onnx_type, "seq(tensor(float))");
    sonde_session_release(s);
}

TEST(a_value_that_a_node_reads_twice_is_not_overwritten_while_it_does)
{
    pb g = graph_of("x w", "y");
    pb_msg(&g, 1, pb_node("Neg", "x", "h")); /* lives in the arena, and Sum is its last reader */
    pb_msg(&g, 1, pb_node("Sum", "h w h", "s"));
    pb_msg(&g, 1, pb_node("Neg", "s", "y"));
    sonde_session *s = session_of(g, NULL);
    sonde_value *in[] = {four(1, 2, 3, 4), four(10, 20, 30, 40)}, *y = NULL;
    CHECK_OK(sonde_session_run(s, NULL, NULL, in, 2, NULL, &y, 1, &err));
    check_four(y, -8, -16, -24, -32);
    sonde_value_release(y);
    sonde_value_release(in[0]);
    sonde_value_release(in[1]);
    sonde_session_release(s);
}

TEST(scattering_a_value_into_itself_reads_it_as_it_was)
{
    const int64_t n = 4, turned[] = {1, 2, 3, 0};
    pb g = graph_of("x", "y");
    pb_msg(&g, 5, pb_tensor_raw("turned", SONDE_DTYPE_I64, 1, &n, turned, sizeof turned));
    pb_msg(&g, 1, pb_node("Neg", "x", "h"));
    pb_msg(&g, 1, pb_node("ScatterElements", "h turned h", "s"));
    pb_msg(&g, 1, pb_node("Neg", "s", "y"));
    sonde_session *s = session_of(g, NULL);
    sonde_value *x = four(1, 2, 3, 4), *y = NULL;
    CHECK_OK(sonde_session_run(s, NULL, NULL, &x, 1, NULL, &y, 1, &err));
    check_four(y, 4, 1, 2, 3);
    sonde_value_release(y);
    sonde_value_release(x);
    sonde_session_release(s);
}

TEST(a_partial_run_hands_on_the_feeds_that_the_rest_reads)
{
    pb g = graph_of("x w", "y");
    pb_msg(&g, 1, pb_node("Neg", "x", "h"));
    pb_msg(&g, 1, pb_node("Sum", "h w x w", "y"));
    sonde_session *s = session_of(g, NULL);
    sonde_value *x = four(1, 2, 3, 4), *y = NULL;
    const char *name = "x", *names[4];
    sonde_value *in[4];
    sonde_value_set *set = NULL;
    CHECK_OK(sonde_session_partial_run(s, NULL, &name, &x, 1, &set, &err));
    size_t n = sonde_value_set_count(set);
    CHECK_EQ(n, 2); /* h and x */
    for (size_t i = 0; i < n && i < 3; i++) {
        names[i] = sonde_value_set_name(set, i);
        in[i] = sonde_value_set_value(set, i);
    }
    names[n] = "w";
    in[n] = four(10, 20, 30, 40);
    CHECK_OK(sonde_session_run(s, NULL, names, in, n + 1, NULL, &y, 1, &err));
    check_four(y, 20, 40, 60, 80);
    sonde_value_release(y);
    sonde_value_release(in[n]);
    sonde_value_set_release(set);
    sonde_value_release(x);
    sonde_session_release(s);
}

static pb constant(const char *name, int dtype, int rank, int64_t n, const void *data, size_t bytes)
{
    pb node = pb_node("Constant", "", name), a = {0};
    pb_text(&a, 1, "value");
    pb_int(&a, 20, 4); /* TENSOR */
    pb_msg(&a, 5, pb_tensor_raw(name, dtype, rank, &n, data, bytes));
    pb_msg(&node, 5, a);
    return node;
}

TEST(constants_that_come_late_survive_leaving_out_their_folding)
{
    static const char *const without[] = {"fold-constants", "fold-dequantize"};
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    o.disabled_passes = without;
    o.disabled_pass_count = 2;
    const int64_t one_by_four[] = {1, 4}, four_by_four[] = {4, 4};
    const float scale = 1.0f;
    const uint8_t zero = 7;
    uint8_t identity[16] = {0};
    for (int i = 0; i < 4; i++)
        identity[5 * i] = 1;
    pb g = graph_of("", "");
    pb_msg(&g, 11, pb_value_info("x", pb_tensor_type(SONDE_DTYPE_U8, 2, one_by_four)));
    pb_msg(&g, 12, pb_value_info("y", pb_tensor_type(SONDE_DTYPE_U8, 2, one_by_four)));
    pb_msg(&g, 5, pb_tensor_raw("scale", SONDE_DTYPE_F32, 0, NULL, &scale, sizeof scale));
    pb_msg(&g, 5, pb_tensor_raw("w", SONDE_DTYPE_U8, 2, four_by_four, identity, sizeof identity));
    pb_msg(&g, 1, pb_node("DequantizeLinear", "x scale", "a"));
    pb_msg(&g, 1, pb_node("DequantizeLinear", "w scale", "b"));
    pb_msg(&g, 1, pb_node("MatMul", "a b", "c"));
    pb_msg(&g, 1, constant("zero", SONDE_DTYPE_U8, 0, 1, &zero, 1)); /* behind the product */
    pb_msg(&g, 1, pb_node("QuantizeLinear", "c scale zero", "y"));
    sonde_session *s = session_of(g, &o);
    const uint8_t data[] = {1, 2, 3, 4};
    sonde_value *x = NULL, *y = NULL;
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_U8, one_by_four, 2, data, 4, &x, &err));
    CHECK_OK(sonde_session_run(s, NULL, NULL, &x, 1, NULL, &y, 1, &err));
    const uint8_t *got = y ? sonde_tensor_data(y) : NULL;
    for (int i = 0; i < 4; i++)
        CHECK_MSG(got && got[i] == i + 8, "element %d is %d, expected %d", i, got ? got[i] : 0,
                  i + 8);
    sonde_value_release(y);
    sonde_value_release(x);
    sonde_session_release(s);
}

TEST(a_bias_that_comes_late_is_added_with_and_without_folding)
{
    static const char *const without[] = {"fold-constants"};
    const int64_t square[] = {4, 4};
    const float bias[] = {10, 20, 30, 40};
    float identity[16] = {0};
    for (int i = 0; i < 4; i++)
        identity[5 * i] = 1.0f;
    for (size_t disabled = 0; disabled < 2; disabled++) {
        sonde_session_options o = SONDE_INIT(sonde_session_options);
        o.disabled_passes = without;
        o.disabled_pass_count = disabled;
        pb g = graph_of("x", "y");
        pb_msg(&g, 5, pb_tensor_raw("w", SONDE_DTYPE_F32, 2, square, identity, sizeof identity));
        pb_msg(&g, 1, pb_node("MatMul", "x w", "p"));
        pb_msg(&g, 1, constant("bias", SONDE_DTYPE_F32, 1, 4, bias, sizeof bias));
        pb_msg(&g, 1, pb_node("Add", "p bias", "y"));
        sonde_session *s = session_of(g, &o);
        sonde_value *x = four(1, 2, 3, 4), *y = NULL;
        CHECK_OK(sonde_session_run(s, NULL, NULL, &x, 1, NULL, &y, 1, &err));
        check_four(y, 11, 22, 33, 44);
        sonde_value_release(y);
        sonde_value_release(x);
        sonde_session_release(s);
    }
}

TEST_MAIN()
