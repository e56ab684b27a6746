/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: what is written reads back as the same model, names of bodies included. */
#include <sys/stat.h>

#include "graph/same_tensor.h"
#include "proto.h"
#include "temp_folder.h"

static bool append(void *user, const void *data, size_t bytes)
{
    pb_raw(user, data, bytes);
    return true;
}

/* Writes f's model and reads the bytes into g. */
static sonde_status again(fixture *f, fixture *g)
{
    pb bytes = {0};
    sonde_status st =
        sn_onnx_write(f->m, f->m->graph, &(sn_onnx_sink){.write = append, .user = &bytes}, &g->err);
    if (st != SONDE_OK) {
        free(bytes.data);
        return st;
    }
    return fixture_load(g, bytes);
}

static void append_text(void *user, const char *text, size_t n)
{
    pb_raw(user, text, n);
}

/* Both models as text, NUL-terminated. */
static bool same_text(const fixture *f, const fixture *g)
{
    pb a = {0}, b = {0};
    sn_graph_print(f->m->graph, append_text, &a);
    sn_graph_print(g->m->graph, append_text, &b);
    bool same = a.n == b.n && memcmp(a.data, b.data, a.n) == 0;
    if (!same)
        fprintf(stderr, "--- first\n%.*s\n--- second\n%.*s\n", (int)a.n, a.data, (int)b.n, b.data);
    free(a.data);
    free(b.data);
    return same;
}

TEST(a_model_with_everything_reads_back_the_same)
{
    fixture f, g, h;
    fixture_init(&f), fixture_init(&g), fixture_init(&h);
    CHECK_MSG(fixture_load(&f, pb_full_model()) == SONDE_OK, "%s", f.err.message);
    CHECK_MSG(again(&f, &g) == SONDE_OK, "%s", g.err.message);
    CHECK_EQ(g.m->graph->inputs.n, f.m->graph->inputs.n);
    CHECK_EQ(g.m->graph->outputs.n, f.m->graph->outputs.n);
    CHECK_EQ(g.m->graph->n_live_nodes, f.m->graph->n_live_nodes);
    CHECK_STR(g.m->metadata.data[0].key, "key");
    CHECK_EQ(sn_model_opset(g.m, "tests"), 1);
    CHECK_STR(g.m->graph->symbols.data[0], "N");
    const sn_node *a = find_value(f.m->graph, "e")->producer,
                  *b = find_value(g.m->graph, "e")->producer;
    CHECK_EQ(b->n_attrs, a->n_attrs);
    CHECK(same_tensor(sn_node_attr(a, "t")->tensor, sn_node_attr(b, "t")->tensor));
    CHECK(same_tensor(sn_node_attr(a, "sparse")->tensor, sn_node_attr(b, "sparse")->tensor));
    CHECK(same_tensor(sn_node_attr(a, "tensors")->tensors[0],
                      sn_node_attr(b, "tensors")->tensors[0]));
    CHECK_EQ(sn_node_attr(b, "types")->n, 2);
    CHECK_EQ(sn_node_attr(b, "strings")->n, 2);
    CHECK(same_tensor(find_value(f.m->graph, "w")->fact.data,
                      find_value(g.m->graph, "w")->fact.data));
    /* Once unused constants are gone nothing changes any more. */
    CHECK_MSG(again(&g, &h) == SONDE_OK, "%s", h.err.message);
    CHECK(same_text(&g, &h));
    CHECK(fixture_free(&f) && fixture_free(&g) && fixture_free(&h));
}

TEST(constants_of_every_element_type_read_back_the_same)
{
    fixture f, g;
    uint8_t raw[80];
    int64_t dims[] = {5, 1};
    fixture_init(&f), fixture_init(&g);
    for (size_t i = 0; i < sizeof raw; i++)
        raw[i] = (uint8_t)(i * 73 + 5);
    for (int t = 1; t < SONDE_DTYPE_COUNT; t++) {
        size_t bytes = 0;
        pb graph = pb_relu_graph(), tensor = pb_tensor("w", t, 2, dims);
        CHECK(sn_dtype_file_bytes((sn_dtype)t, 5, &bytes));
        if (t == SONDE_DTYPE_STRING)
            for (int i = 0; i < 5; i++)
                pb_bytes(&tensor, 6, raw, (size_t)i * 3);
        else
            pb_bytes(&tensor, 9, raw, bytes);
        pb_msg(&graph, 5, tensor);
        pb_msg(&graph, 1, pb_node("Identity", "w", "z"));
        pb_msg(&graph, 12, pb_value_info("z", pb_tensor_type(t, 2, dims)));
        CHECK_MSG(fixture_load(&f, pb_model(13, graph)) == SONDE_OK, "%s", f.err.message);
        f.m->ir_version = 8; /* the writer must raise it where the type is younger */
        CHECK_MSG(again(&f, &g) == SONDE_OK, "%s", g.err.message);
        CHECK_MSG(same_tensor(find_value(f.m->graph, "w")->fact.data,
                              find_value(g.m->graph, "w")->fact.data),
                  "%s", sn_dtype_name((sn_dtype)t));
        CHECK(t < SONDE_DTYPE_U2 || g.m->ir_version == 13);
        CHECK(t != SONDE_DTYPE_F32 || g.m->ir_version == 8);
    }
    CHECK(fixture_free(&f) && fixture_free(&g));
}

/* If(c) { then: t = Abs(x); else: t = x } with a constant of the outer graph, read in both
 * branches, and names inside that hide names outside. */
static pb model_with_captures(void)
{
    float w[3] = {1, 2, 3};
    int64_t three = 3;
    pb g = pb_relu_graph(), n = pb_node("If", "c", "z"), a, then = {0}, other = {0};
    pb_msg(&g, 5, pb_tensor_raw("w", SONDE_DTYPE_F32, 1, &three, w, sizeof w));
    pb_msg(&g, 11, pb_value_info("c", pb_tensor_type(SONDE_DTYPE_BOOL, 0, NULL)));
    pb_text(&then, 2, "then");
    pb_msg(&then, 1, pb_node("Add", "y w", "x")); /* its own x, and y and w of outside */
    pb_msg(&then, 12, pb_float_value("x"));
    pb_text(&other, 2, "else");
    pb_msg(&other, 1, pb_node("Mul", "y w", "unused"));
    pb_msg(&other, 12, pb_float_value("y")); /* a value of outside as it is */
    a = pb_attr("then_branch", SN_ATTR_GRAPH), pb_msg(&a, 6, then), pb_msg(&n, 5, a);
    a = pb_attr("else_branch", SN_ATTR_GRAPH), pb_msg(&a, 6, other), pb_msg(&n, 5, a);
    pb_msg(&g, 1, n);
    pb_msg(&g, 12, pb_float_value("z"));
    return pb_model(8, g);
}

TEST(captures_are_written_under_the_outer_names)
{
    fixture f, g;
    fixture_init(&f), fixture_init(&g);
    CHECK_MSG(fixture_load(&f, model_with_captures()) == SONDE_OK, "%s", f.err.message);
    CHECK_MSG(again(&f, &g) == SONDE_OK, "%s", g.err.message);
    const sn_node *n = find_value(g.m->graph, "z")->producer;
    CHECK_EQ(n->n_formal_in, 1);
    const sn_graph *then = sn_node_attr(n, "then_branch")->graph,
                   *other = sn_node_attr(n, "else_branch")->graph;
    CHECK_EQ(then->n_formal_inputs, 0);
    CHECK_EQ(then->inputs.n, 1);
    CHECK_STR(then->inputs.data[0]->name, "y");
    CHECK(find_value(then, "w") && find_value(then, "w")->fact.data);
    CHECK_MSG(find_value(then, "x") == NULL, "a name of the graph around is hidden");
    /* An outer value cannot be an output of a body: an Identity stands between. */
    CHECK_STR(other->outputs.data[0]->producer->op_type, "Identity");
    /* The constant is written once. */
    CHECK(find_value(g.m->graph, "w")->fact.data == find_value(then, "w")->fact.data);
    CHECK_EQ(sn_graph_verify(g.m->graph, &g.err), SONDE_OK);
    CHECK(fixture_free(&f) && fixture_free(&g));
}

TEST(a_graph_made_by_hand_is_written_with_names_and_imports_of_its_own)
{
    fixture f, g;
    fixture_init(&f), fixture_init(&g);
    CHECK_EQ(sn_model_new(&f.m, &f.ctx, &f.err), SONDE_OK);
    sn_value *x, *a, *b;
    sn_node *n;
    sn_opset onnx = {"", 18};
    CHECK(sn_vec_push(&f.m->opsets, &f.alloc, onnx));
    CHECK_EQ(sn_graph_add_value(f.m->graph, "x", &x, &f.err), SONDE_OK);
    CHECK_EQ(sn_graph_add_input(f.m->graph, x, &f.err), SONDE_OK);
    sn_dim dims[] = {sn_dim_symbol(sn_graph_symbol(f.m->graph, "batch")), SN_DIM_UNKNOWN, 4};
    x->fact.type =
        (sn_type){.kind = SN_KIND_TENSOR, .dtype = SONDE_DTYPE_F32, .rank = 3, .dims = dims};
    CHECK_EQ(sn_graph_add_value(f.m->graph, "", &a, &f.err), SONDE_OK);
    CHECK_EQ(sn_graph_add_value(f.m->graph, "", &b, &f.err), SONDE_OK);
    CHECK_EQ(sn_graph_add_node(f.m->graph, NULL, "", "Relu", "", 1, 1, &n, &f.err), SONDE_OK);
    sn_node_set_input(n, 0, x);
    sn_node_set_output(n, 0, a);
    CHECK_EQ(sn_graph_add_node(f.m->graph, NULL, "sonde", "Reorder", "r", 1, 1, &n, &f.err),
             SONDE_OK);
    sn_node_set_input(n, 0, a);
    sn_node_set_output(n, 0, b);
    CHECK_EQ(sn_graph_add_output(f.m->graph, b, &f.err), SONDE_OK);
    CHECK_EQ(sn_graph_add_output(f.m->graph, b, &f.err), SONDE_OK); /* twice: needs two names */
    CHECK_EQ(sn_model_finish(f.m, &f.err), SONDE_OK);
    CHECK_MSG(again(&f, &g) == SONDE_OK, "%s", g.err.message);
    CHECK_EQ(sn_model_opset(g.m, "sonde"), 1);
    CHECK_EQ(g.m->graph->n_live_nodes, 3);
    CHECK_EQ(g.m->graph->outputs.n, 2);
    CHECK(g.m->graph->outputs.data[0] != g.m->graph->outputs.data[1]);
    const sn_type *t = &g.m->graph->inputs.data[0]->fact.type;
    CHECK_STR(g.m->graph->symbols.data[sn_dim_symbol_id(t->dims[0]) - 1], "batch");
    CHECK(t->dims[1] == SN_DIM_UNKNOWN && t->dims[2] == 4);
    CHECK(fixture_free(&f) && fixture_free(&g));
}

TEST(a_file_is_written_whole_or_not_at_all)
{
    fixture f, g;
    char folder[TEMP_PATH], path[128];
    struct stat info;
    fixture_init(&f), fixture_init(&g);
    temp_make(folder);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    CHECK_MSG(fixture_load(&f, pb_full_model()) == SONDE_OK, "%s", f.err.message);
    CHECK_MSG(sn_model_save_file(f.m, f.m->graph, path, NULL, &f.err) == SONDE_OK, "%s",
              f.err.message);
    CHECK_MSG(sn_model_load_file(&g.ctx, path, NULL, &g.m, &g.err) == SONDE_OK, "%s",
              g.err.message);
    /* A model may replace the very file it is mapped from. */
    CHECK_MSG(sn_model_save_file(g.m, g.m->graph, path, NULL, &g.err) == SONDE_OK, "%s",
              g.err.message);
    CHECK_EQ(stat(path, &info), 0);
    CHECK(info.st_size > 100);
    remove(path);
    snprintf(path, sizeof path, "%s/no/such/m.onnx", folder);
    CHECK_EQ(sn_model_save_file(f.m, f.m->graph, path, NULL, &f.err), SONDE_IO);
    CHECK_HAS(f.err.message, "no/such");
    CHECK_EQ(remove(folder), 0); /* empty: no temporary file is left */
    CHECK(fixture_free(&f) && fixture_free(&g));
}

static bool refuse(void *user, const void *data, size_t bytes)
{
    (void)user, (void)data, (void)bytes;
    return false;
}

/* A model and its external data. */
typedef struct two_files {
    pb model, data;
} two_files;

static bool append_model(void *user, const void *data, size_t bytes)
{
    pb_raw(&((two_files *)user)->model, data, bytes);
    return true;
}

static bool append_data(void *user, const void *data, size_t bytes)
{
    pb_raw(&((two_files *)user)->data, data, bytes);
    return true;
}

/* A model with two initializers of 300 and 4 floats. */
static pb two_weights(void)
{
    pb m = {0}, g = pb_relu_graph();
    float numbers[300];
    for (int i = 0; i < 300; i++)
        numbers[i] = (float)i;
    for (int k = 0; k < 2; k++) {
        pb t = {0};
        pb_int(&t, 1, k ? 4 : 300);
        pb_int(&t, 2, SONDE_DTYPE_F32);
        pb_text(&t, 8, k ? "small" : "large");
        pb_bytes(&t, 9, numbers, k ? 16 : sizeof numbers);
        pb_msg(&g, 5, t);
        pb_msg(&g, 1, pb_node("Neg", k ? "small" : "large", k ? "a" : "b"));
    }
    pb_int(&m, 1, 8);
    pb_msg(&m, 8, pb_opset("", 18));
    pb_msg(&m, 7, g);
    return m;
}

TEST(a_model_above_the_limit_has_its_large_initializers_outside)
{
    static const uint64_t limits[] = {100, 1000, 1 << 20, 0};
    for (int k = 0; k < 4; k++) {
        fixture f;
        two_files to = {0};
        fixture_init(&f);
        CHECK_MSG(fixture_load(&f, two_weights()) == SONDE_OK, "%s", f.err.message);
        const sn_onnx_sink sink = {.write = append_model,
                                   .write_data = append_data,
                                   .user = &to,
                                   .location = "beside",
                                   .inline_bytes = limits[k]};
        CHECK_MSG(sn_onnx_write(f.m, f.m->graph, &sink, &f.err) == SONDE_OK, "%s", f.err.message);
        CHECK_EQ(to.data.n, k < 2 ? 1200 : 0);
        CHECK_EQ(memmem(to.model.data, to.model.n, "beside", 6) != NULL, k < 2);
        CHECK(to.model.n > (k < 2 ? 100 : 1200) && to.model.n < (k < 2 ? 1000 : 3000));
        free(to.model.data);
        free(to.data.data);
        CHECK(fixture_free(&f));
    }
}

TEST(a_second_file_that_refuses_stops_the_writing)
{
    fixture f;
    two_files to = {0};
    fixture_init(&f);
    CHECK_MSG(fixture_load(&f, two_weights()) == SONDE_OK, "%s", f.err.message);
    const sn_onnx_sink sink = {.write = append_model,
                               .write_data = refuse,
                               .user = &to,
                               .location = "beside",
                               .external = true};
    CHECK_EQ(sn_onnx_write(f.m, f.m->graph, &sink, &f.err), SONDE_IO);
    free(to.model.data);
    CHECK(fixture_free(&f));
}

TEST(a_sink_that_refuses_stops_the_writing)
{
    fixture f;
    fixture_init(&f);
    CHECK_MSG(fixture_load(&f, pb_full_model()) == SONDE_OK, "%s", f.err.message);
    CHECK_EQ(sn_onnx_write(f.m, f.m->graph, &(sn_onnx_sink){.write = refuse}, &f.err), SONDE_IO);
    CHECK(fixture_free(&f));
}

TEST_MAIN()
