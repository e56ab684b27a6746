/* SPDX-License-Identifier: Apache-2.0 */
/* Models and graphs: what is read, and the sentence each wrong file gets. */
#include "proto.h"

TEST(a_model_with_everything_is_read)
{
    fixture f;
    fixture_init(&f);
    CHECK_MSG(fixture_load(&f, pb_full_model()) == SONDE_OK, "%s", f.err.message);
    CHECK_EQ(f.m->ir_version, 10);
    CHECK_STR(f.m->producer_name, "tests");
    CHECK_EQ(sn_model_opset(f.m, ""), 18);
    CHECK_EQ(sn_model_opset(f.m, "tests"), 1);
    CHECK_EQ(f.m->metadata.n, 1);
    CHECK_STR(f.m->metadata.data[0].value, "value");
    CHECK_EQ(f.m->functions.n, 1);
    CHECK_STR(f.m->functions.data[0].overload, "v2");
    CHECK_EQ(f.m->functions.data[0].n_attr_defaults, 1);
    CHECK_EQ(f.m->graph->inputs.n, 4);
    CHECK_EQ(f.m->graph->outputs.n, 3);
    const sn_value *x = find_value(f.m->graph, "x");
    CHECK(x && x->is_input);
    CHECK_EQ(x->fact.type.rank, 2);
    CHECK_EQ(sn_dim_symbol_id(x->fact.type.dims[0]), 1);
    CHECK_STR(f.m->graph->symbols.data[0], "N");
    CHECK_EQ(x->fact.type.dims[1], 3);
    CHECK_EQ(find_value(f.m->graph, "sequence")->fact.type.kind, SN_KIND_SEQUENCE);
    CHECK_EQ(find_value(f.m->graph, "sequence")->fact.type.elem->rank, 2);
    CHECK_EQ(find_value(f.m->graph, "optional")->fact.type.kind, SN_KIND_OPTIONAL);
    CHECK_EQ(find_value(f.m->graph, "e")->fact.type.dtype, SONDE_DTYPE_F32);

    const sn_node *n = find_value(f.m->graph, "e")->producer;
    CHECK_EQ(n->n_formal_in, 3);
    CHECK(n->in[1].value == NULL);
    CHECK_EQ(n->n_out, 3);
    CHECK(n->out[1] == NULL);
    CHECK(sn_node_attr(n, "f")->f == 1.5f);
    CHECK_EQ(sn_node_attr(n, "i")->i, -7);
    CHECK_STR(sn_node_attr(n, "s")->s.data, "text");
    CHECK_EQ(((const uint8_t *)sn_node_attr(n, "t")->tensor->data)[2], 15);
    CHECK_EQ(sn_node_attr(n, "floats")->n, 3);
    CHECK(sn_node_attr(n, "floats")->floats[1] == 2.0f &&
          sn_node_attr(n, "floats")->floats[2] == 9.0f);
    CHECK_EQ(sn_node_attr(n, "ints")->n, 3);
    CHECK_EQ(sn_node_attr(n, "ints")->ints[1], 128);
    CHECK_EQ(sn_node_attr(n, "strings")->n, 2);
    CHECK_EQ(sn_node_attr(n, "tensors")->tensors[0]->dims[0], 2);
    CHECK_EQ(sn_node_attr(n, "graphs")->n, 1);
    CHECK(((const float *)sn_node_attr(n, "sparse")->tensor->data)[4] == 7.0f);
    CHECK(((const float *)sn_node_attr(n, "sparses")->tensors[0]->data)[1] == 5.0f);
    CHECK_EQ(sn_node_attr(n, "type")->type->rank, 2);
    CHECK_EQ(sn_node_attr(n, "types")->n, 2);
    CHECK_EQ(sn_node_attr(n, "types")->type[1].dtype, SONDE_DTYPE_I64);
    CHECK_EQ(sn_graph_verify(f.m->graph, &f.err), SONDE_OK);
    CHECK(fixture_free(&f));
}

TEST(files_that_are_no_models_get_a_plain_sentence)
{
    fixture f;
    fixture_init(&f);
    static const struct {
        const char *bytes, *part;
    } cases[] = {
        {"", "is not an ONNX model: it is empty"},
        {"hello, this is text", "is not an ONNX model"},
        {"<html>", "web page"},
        {"{\"a\": 1}", "JSON"},
        {"version https://git-lfs.github.com/spec/v1", "Git LFS"},
        {"PK\x03\x04.....", "zip"},
        {"\x10\x01", "no IR version and no graph"},
        {"\x08\x08", "has no graph"},
        {"\x08\x02\x3A\x00", "IR version 2; the oldest supported version is 3"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        pb m = {0};
        /* The strings above contain no other zero but the last byte of an empty graph. */
        size_t n = strlen(cases[k].bytes);
        pb_raw(&m, cases[k].bytes, n + (n == 3 && cases[k].bytes[2] == 0x3A));
        CHECK(fixture_load(&f, m) != SONDE_OK);
        CHECK_HAS(f.err.message, cases[k].part);
    }
    CHECK_FAILS(sn_model_load_file(&f.ctx, "no/such/file.onnx", NULL, &f.m, &f.err),
                SONDE_NOT_FOUND, "no/such/file.onnx");
    CHECK(fixture_free(&f));
}

static void keep_line(void *user, sn_log_level level, const char *line)
{
    char *all = user;
    (void)level;
    snprintf(all + strlen(all), 2000 - strlen(all), "%s\n", line);
}

/* Loads with the IR version given; what was logged. */
static sonde_status load_as(fixture *f, pb m, uint64_t ir_version, char *lines)
{
    lines[0] = 0;
    f->ctx.log = (sn_log){SN_LOG_WARN, keep_line, lines};
    pb_int(&m, 1, ir_version);
    return fixture_load(f, m);
}

TEST(newer_ir_versions_are_read_and_what_is_not_known_of_them_is_named)
{
    fixture f;
    char lines[2000];
    fixture_init(&f);
    CHECK_MSG(load_as(&f, pb_full_model(), 14, lines) == SONDE_OK, "%s", f.err.message);
    CHECK_EQ(f.m->ir_version, 14);
    CHECK_STR(lines, "");
    CHECK(fixture_free(&f));

    fixture_init(&f);
    CHECK_MSG(load_as(&f, pb_full_model(), 15, lines) == SONDE_OK, "%s", f.err.message);
    CHECK_EQ(f.m->ir_version, 15);
    CHECK_STR(lines, "the model has IR version 15, which is newer than the supported versions 3 to "
                     "14; it is read as the newest of these\n");
    CHECK(fixture_free(&f));

    fixture_init(&f);
    pb m = pb_full_model(), graph = {0}, node = {0}, attribute = {0};
    pb_text(&attribute, 1, "a");
    pb_int(&attribute, 3, 1);
    pb_int(&attribute, 20, 2);
    pb_int(&attribute, 29, 1);
    pb_text(&node, 2, "new");
    pb_text(&node, 4, "Identity");
    pb_text(&node, 1, "x");
    pb_msg(&node, 5, attribute);
    pb_text(&node, 11, "here");
    pb_text(&node, 11, "and here");
    pb_msg(&graph, 1, node);
    pb_int(&m, 40, 1);
    pb_msg(&m, 7, graph); /* without its inputs it is refused, after all has been said */
    CHECK(load_as(&f, m, 15, lines) != SONDE_OK);
    CHECK_STR(lines, "the model has IR version 15, which is newer than the supported versions 3 to "
                     "14; it is read as the newest of these\n"
                     "field 40 of ModelProto is unknown to this version and is ignored\n"
                     "field 29 of AttributeProto is unknown to this version and is ignored\n"
                     "field 11 of NodeProto is unknown to this version and is ignored\n");
    CHECK(fixture_free(&f));
}

TEST(values_with_two_sources_are_refused_by_name)
{
    fixture f;
    float w = 1;
    fixture_init(&f);
    pb g = pb_relu_graph();
    pb_msg(&g, 1, pb_node("Abs", "x", "y"));
    CHECK_FAILS(fixture_load(&f, pb_model(8, g)), SONDE_INVALID_MODEL,
                "'y' is both the output of a node");
    g = pb_relu_graph();
    pb_msg(&g, 5, pb_tensor_raw("y", 1, 0, NULL, &w, 4));
    CHECK_FAILS(fixture_load(&f, pb_model(8, g)), SONDE_INVALID_MODEL,
                "'y' is both an initializer");
    g = pb_relu_graph();
    pb_msg(&g, 1, pb_node("Abs", "y", "x"));
    CHECK_FAILS(fixture_load(&f, pb_model(8, g)), SONDE_INVALID_MODEL, "'x' is both a graph input");
    g = pb_relu_graph();
    pb_msg(&g, 11, pb_float_value("x"));
    CHECK_FAILS(fixture_load(&f, pb_model(8, g)), SONDE_INVALID_MODEL, "'x'");
    g = pb_relu_graph();
    pb_msg(&g, 5, pb_tensor_raw("w", 1, 0, NULL, &w, 4));
    pb_msg(&g, 5, pb_tensor_raw("w", 1, 0, NULL, &w, 4));
    CHECK_FAILS(fixture_load(&f, pb_model(8, g)), SONDE_INVALID_MODEL,
                "'w' is both an initializer");
    CHECK(fixture_free(&f));
}

TEST(values_without_a_source_are_refused_by_name)
{
    fixture f;
    fixture_init(&f);
    pb g = pb_relu_graph();
    pb_msg(&g, 1, pb_node("Abs", "nowhere", "z"));
    CHECK_FAILS(fixture_load(&f, pb_model(8, g)), SONDE_INVALID_MODEL,
                "'nowhere', which nothing produces");
    g = pb_relu_graph();
    pb_msg(&g, 12, pb_float_value("nothing"));
    CHECK_FAILS(fixture_load(&f, pb_model(8, g)), SONDE_INVALID_MODEL,
                "'nothing' is not produced by any node");
    CHECK(fixture_free(&f));
}

TEST(nodes_may_come_in_any_order)
{
    fixture f;
    fixture_init(&f);
    pb g = {0};
    pb_msg(&g, 12, pb_float_value("c"));
    pb_msg(&g, 1, pb_node("Abs", "b", "c"));
    pb_msg(&g, 1, pb_node("Neg", "a", "b"));
    pb_msg(&g, 11, pb_float_value("a"));
    CHECK_MSG(fixture_load(&f, pb_model(8, g)) == SONDE_OK, "%s", f.err.message);
    CHECK_STR(f.m->graph->first->op_type, "Neg");
    CHECK(fixture_free(&f));
}

TEST(an_input_with_an_initializer_is_a_default_since_ir_4_and_a_constant_before)
{
    fixture f;
    float w[3] = {1, 2, 3};
    int64_t three = 3;
    fixture_init(&f);
    for (int64_t ir = 3; ir <= 4; ir++) {
        pb g = pb_relu_graph();
        pb_msg(&g, 11, pb_value_info("w", pb_tensor_type(SONDE_DTYPE_F32, 1, &three)));
        pb_msg(&g, 5, pb_tensor_raw("w", SONDE_DTYPE_F32, 1, &three, w, sizeof w));
        CHECK_MSG(fixture_load(&f, pb_model(ir, g)) == SONDE_OK, "%s", f.err.message);
        const sn_value *v = find_value(f.m->graph, "w");
        CHECK(v->is_initializer && v->fact.data);
        CHECK_EQ(v->is_input, ir >= 4);
        CHECK_EQ(f.m->graph->inputs.n, ir >= 4 ? 2 : 1);
    }
    CHECK(fixture_free(&f));
}

TEST(a_default_of_another_type_than_its_input_is_refused)
{
    fixture f;
    float w[3] = {1, 2, 3};
    int64_t three = 3, one_by_three[] = {1, 3};
    fixture_init(&f);
    pb g = pb_relu_graph();
    pb_msg(&g, 11, pb_value_info("w", pb_tensor_type(SONDE_DTYPE_F32, 2, one_by_three)));
    pb_msg(&g, 5, pb_tensor_raw("w", SONDE_DTYPE_F32, 1, &three, w, sizeof w));
    CHECK_FAILS(fixture_load(&f, pb_model(8, g)), SONDE_INVALID_MODEL, "its default is f32[3]");
    g = pb_relu_graph();
    pb_msg(&g, 11, pb_value_info("w", pb_tensor_type(SONDE_DTYPE_I32, 1, &three)));
    pb_msg(&g, 5, pb_tensor_raw("w", SONDE_DTYPE_F32, 1, &three, w, sizeof w));
    CHECK_FAILS(fixture_load(&f, pb_model(8, g)), SONDE_INVALID_MODEL, "its default is f32[3]");
    CHECK(fixture_free(&f));
}

TEST(names_with_zero_bytes_are_refused)
{
    fixture f;
    fixture_init(&f);
    pb g = pb_relu_graph(), n = {0};
    pb_bytes(&n, 1, "x", 1);
    pb_bytes(&n, 2, "a\0b", 3);
    pb_text(&n, 4, "Abs");
    pb_msg(&g, 1, n);
    CHECK_FAILS(fixture_load(&f, pb_model(8, g)), SONDE_INVALID_MODEL, "zero byte");
    CHECK(fixture_free(&f));
}

TEST(the_default_domain_has_two_spellings)
{
    fixture f;
    fixture_init(&f);
    pb g = pb_relu_graph(), n = pb_node("Abs", "x", "z");
    pb_text(&n, 7, "ai.onnx");
    pb_msg(&g, 1, n);
    pb m = {0};
    pb_int(&m, 1, 8);
    pb_msg(&m, 7, g);
    pb_msg(&m, 8, pb_opset("ai.onnx", 18));
    CHECK_MSG(fixture_load(&f, m) == SONDE_OK, "%s", f.err.message);
    CHECK_EQ(sn_model_opset(f.m, ""), 18);
    CHECK_STR(f.m->graph->last->domain, "");
    CHECK(fixture_free(&f));
}

TEST(operator_sets_are_checked)
{
    fixture f;
    fixture_init(&f);
    pb m = {0};
    pb_int(&m, 1, 8);
    pb_msg(&m, 7, pb_relu_graph());
    CHECK_FAILS(fixture_load(&f, m), SONDE_INVALID_MODEL, "imports no operator set");
    m = pb_model(8, pb_relu_graph());
    pb_msg(&m, 8, pb_opset("", 17));
    CHECK_FAILS(fixture_load(&f, m), SONDE_INVALID_MODEL, "imported twice, as version 18 and 17");
    m = pb_model(8, pb_relu_graph());
    pb_msg(&m, 8, pb_opset("other", -1));
    CHECK_FAILS(fixture_load(&f, m), SONDE_INVALID_MODEL, "'other' has version -1");
    CHECK(fixture_free(&f));
}

TEST(attributes_are_checked)
{
    fixture f;
    fixture_init(&f);
    for (int k = 0; k < 3; k++) {
        static const char *const parts[] = {"'a' is given twice", "type 99",
                                            "has a type but no value"};
        pb g = pb_relu_graph(), n = pb_node("Abs", "x", "z");
        pb_msg(&n, 5, pb_attr("a", k == 1 ? 99 : k == 2 ? SN_ATTR_GRAPH : SN_ATTR_INT));
        if (k == 0)
            pb_msg(&n, 5, pb_attr("a", SN_ATTR_INT));
        pb_msg(&g, 1, n);
        CHECK_FAILS(fixture_load(&f, pb_model(8, g)), SONDE_INVALID_MODEL, parts[k]);
        CHECK_HAS(f.err.message, "node 'Abs' (Abs)");
    }
    CHECK(fixture_free(&f));
}

TEST(an_attribute_without_a_type_is_what_it_holds)
{
    fixture f;
    fixture_init(&f);
    pb g = pb_relu_graph(), n = pb_node("Abs", "x", "z"), a = {0};
    pb_text(&a, 1, "axes");
    pb_int(&a, 8, 1), pb_int(&a, 8, 2);
    pb_msg(&n, 5, a);
    pb_msg(&g, 1, n);
    CHECK_MSG(fixture_load(&f, pb_model(3, g)) == SONDE_OK, "%s", f.err.message);
    CHECK_EQ(sn_node_attr(f.m->graph->last, "axes")->kind, SN_ATTR_INTS);
    CHECK_EQ(sn_node_attr(f.m->graph->last, "axes")->n, 2);
    CHECK(fixture_free(&f));
}

TEST(unknown_fields_are_skipped)
{
    fixture f;
    fixture_init(&f);
    pb g = pb_relu_graph(), training = {0};
    pb_text(&g, 999, "unknown");
    pb_msg(&training, 1, pb_relu_graph());
    pb m = pb_model(8, g);
    pb_msg(&m, 20, training);
    pb_int(&m, 1000, 5);
    pb_raw(&m, "\x9B\x01\x10\x05\x9C\x01", 6); /* a group, as nobody writes any more */
    CHECK_MSG(fixture_load(&f, m) == SONDE_OK, "%s", f.err.message);
    CHECK_EQ(f.m->graph->n_live_nodes, 1);
    CHECK(fixture_free(&f));
}

TEST(graphs_nested_beyond_reason_are_refused)
{
    fixture f;
    fixture_init(&f);
    pb g = pb_if_body("Abs", "out");
    for (int depth = 0; depth < 100; depth++) {
        pb outer = {0}, n = pb_node("If", "c", "out"), a = pb_attr("then_branch", SN_ATTR_GRAPH);
        pb_msg(&a, 6, g);
        pb_msg(&n, 5, a);
        pb_msg(&outer, 1, n);
        pb_msg(&outer, 12, pb_float_value("out"));
        g = outer;
    }
    CHECK_FAILS(fixture_load(&f, pb_model(8, g)), SONDE_LIMIT, "nested");
    pb type = pb_tensor_type(1, 0, NULL);
    for (int depth = 0; depth < 1000; depth++) {
        pb seq = {0}, outer = {0};
        pb_msg(&seq, 1, type);
        pb_msg(&outer, 4, seq);
        type = outer;
    }
    g = pb_relu_graph();
    pb_msg(&g, 11, pb_value_info("deep", type));
    CHECK_FAILS(fixture_load(&f, pb_model(8, g)), SONDE_LIMIT, "types are nested deeper");
    CHECK(fixture_free(&f));
}

TEST(functions_are_inlined_with_their_values)
{
    fixture f;
    fixture_init(&f);
    CHECK_MSG(fixture_load(&f, pb_full_model()) == SONDE_OK, "%s", f.err.message);
    const sn_value *v = find_value(f.m->graph, "twice");
    CHECK(v && v->producer);
    CHECK_STR(v->producer->op_type, "Add");
    CHECK(fixture_free(&f));
}

TEST(a_hundred_thousand_nodes_and_symbols_are_read)
{
    fixture f;
    fixture_init(&f);
    pb g = {0};
    char from[32] = "x", to[32];
    pb_msg(&g, 11, pb_float_value("x"));
    for (int k = 0; k < 100000; k++) {
        pb dim = {0}, shape = {0}, tensor = {0}, type = {0};
        snprintf(to, sizeof to, "v%d", k);
        pb_msg(&g, 1, pb_node("Relu", from, to));
        pb_text(&dim, 2, to);
        pb_msg(&shape, 1, dim);
        pb_int(&tensor, 1, 1);
        pb_msg(&tensor, 2, shape);
        pb_msg(&type, 1, tensor);
        pb_msg(&g, 13, pb_value_info(to, type));
        memcpy(from, to, sizeof to);
    }
    pb_msg(&g, 12, pb_float_value(to));
    CHECK_MSG(fixture_load(&f, pb_model(8, g)) == SONDE_OK, "%s", f.err.message);
    CHECK_EQ(f.m->graph->n_live_nodes, 100000);
    CHECK(fixture_free(&f));
}

TEST_MAIN()
