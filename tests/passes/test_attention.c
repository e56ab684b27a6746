/* SPDX-License-Identifier: Apache-2.0 */
/* Attention as exporters write it becomes one node that reads and writes views, and computes the
 * same; what only looks like it stays. */
#include "passes/interpret.h"

enum { BATCH = 2, LEN = 5, HEADS = 3, SIZE = 4, WIDTH = HEADS * SIZE };

static void perm4(sn_graph *g, sn_node *n, int64_t a, int64_t b, int64_t c, int64_t d)
{
    attr_ints(g, n, "perm", DIMS(a, b, c, d));
}

/* [batch, s, WIDTH] with a length that is known only by its name. */
static sn_value *tokens(sn_graph *g, const char *name, int64_t width)
{
    const uint32_t id = sn_graph_symbol(g, "s");
    const sn_dim s = sn_dim_symbol(id);
    if (id == 0)
        build_note(SONDE_OUT_OF_MEMORY);
    return typed_input(g, name, SONDE_DTYPE_F32, 3, (int64_t[]){BATCH, s, width});
}

/* `from` [batch, s, heads * size] ► `to` [batch, heads, s, size], or with columns for kᵀ. */
static void split_heads(sn_graph *g, const char *to, const char *from, bool columns)
{
    char shape[80], wide[80], ins[200];
    snprintf(shape, sizeof shape, "shape_%s", to);
    snprintf(wide, sizeof wide, "wide_%s", to);
    const_i64(g, shape, 4, (int64_t[]){0, 0, HEADS, SIZE});
    snprintf(ins, sizeof ins, "%s %s", from, shape);
    node(g, "Reshape", wide, ins);
    sn_node *t = node(g, "Transpose", to, wide);
    if (columns)
        perm4(g, t, 0, 2, 3, 1);
    else
        perm4(g, t, 0, 2, 1, 3);
}

/* `from` [batch, heads, s, size] ► "y" [batch, s, heads * size]. */
static void merge_heads(sn_graph *g, const char *from)
{
    const_i64(g, "shape_y", 3, (int64_t[]){0, 0, WIDTH});
    perm4(g, node(g, "Transpose", "turned", from), 0, 2, 1, 3);
    node(g, "Reshape", "y", "turned shape_y");
    outputs(g, "y");
}

/* Runs all passes and compares; that many attentions are fused. */
static void check_fused(sn_model *m, sn_graph **p, uint32_t want)
{
    CHECK_OK(sn_model_finish(m, &err));
    CHECK_OK(ready_copy(m, p));
    CHECK_OK(run_passes(*p, NULL));
    check_same(m, *p, 1e-4);
    CHECK_EQ(count_ops(*p, "FusedAttention"), want);
}

static const int64_t *view_of(const sn_graph *g, const char *name)
{
    for (const sn_node *n = g->first; n; n = n->next)
        if (strcmp(n->op_type, "FusedAttention") == 0 && sn_node_attr(n, name))
            return sn_node_attr(n, name)->ints;
    return NULL;
}

TEST(scaled_and_masked_products_become_one_node_without_transposes)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    tokens(g, "q", WIDTH), tokens(g, "k", WIDTH), tokens(g, "v", WIDTH);
    typed_input(g, "mask", SONDE_DTYPE_F32, DIMS(BATCH, 1, 1, LEN));
    scalar_f32(g, "root", 2.0f);
    split_heads(g, "qh", "q", false), split_heads(g, "kt", "k", true);
    split_heads(g, "vh", "v", false);
    node(g, "MatMul", "a", "qh kt");
    node(g, "Div", "b", "a root");
    node(g, "Add", "c", "mask b");
    node(g, "Softmax", "d", "c");
    node(g, "MatMul", "e", "d vh");
    merge_heads(g, "e");
    check_fused(m, &p, 1);
    CHECK_EQ(p->n_live_nodes, 1);
    CHECK_STR(p->first->post_op, "Softmax+MatMul");
    CHECK_EQ(p->first->n_in, 4);
    CHECK_STR(m->origins.list.data[p->first->anchor].name, "n_a");
    CHECK_STR(p->first->in[0].value->name, "q");
    end_pass_model(m, p);
}

TEST(roots_of_the_scale_on_both_sides_and_one_projection_for_all_are_followed)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    tokens(g, "x", 3 * WIDTH);
    const_i64(g, "thirds", 3, (int64_t[]){WIDTH, WIDTH, WIDTH});
    sn_node *s = node(g, "Split", "q k v", "x thirds");
    attr_int(g, s, "axis", 2);
    scalar_f32(g, "root", 0.7f);
    split_heads(g, "qh", "q", false), split_heads(g, "kh", "k", false);
    split_heads(g, "vh", "v", false);
    perm4(g, node(g, "Transpose", "kt", "kh"), 0, 1, 3, 2);
    node(g, "Mul", "qs", "root qh");
    node(g, "Mul", "ks", "kt root");
    node(g, "MatMul", "a", "qs ks");
    node(g, "Softmax", "d", "a");
    node(g, "MatMul", "e", "d vh");
    merge_heads(g, "e");
    check_fused(m, &p, 1);
    CHECK_EQ(p->n_live_nodes, 1);
    CHECK_EQ(view_of(p, "q_view")[4], 0);
    CHECK_EQ(view_of(p, "k_view")[4], WIDTH);
    CHECK_EQ(view_of(p, "v_view")[4], 2 * WIDTH);
    CHECK(fabsf(sn_node_attr(p->first, "scale")->f - 0.49f) < 1e-6f);
    end_pass_model(m, p);
}

TEST(hidden_scores_and_rows_of_nan_are_part_of_it)
{
    for (int form = 0; form < 4; form++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        const bool inverted = form & 1, bias_first = form & 2;
        tokens(g, "q", WIDTH), tokens(g, "k", WIDTH), tokens(g, "v", WIDTH);
        typed_input(g, "bias", SONDE_DTYPE_F32, DIMS(HEADS, 1, LEN));
        typed_input(g, "level", SONDE_DTYPE_F32, DIMS(1, 1, LEN, LEN));
        scalar_f32(g, "zero", 0.0f), scalar_f32(g, "low", -1e30f);
        split_heads(g, "qh", "q", false), split_heads(g, "kt", "k", true);
        split_heads(g, "vh", "v", false);
        node(g, "Less", "keep", "level zero");
        node(g, "MatMul", "a", "qh kt");
        if (bias_first)
            node(g, "Add", "s", "a bias");
        node(g, "Where", "w",
             bias_first ? inverted ? "keep low s" : "keep s low"
             : inverted ? "keep low a"
                        : "keep a low");
        if (!bias_first)
            node(g, "Add", "c", "w bias");
        node(g, "Softmax", "d", bias_first ? "w" : "c");
        node(g, "IsNaN", "n", "d");
        node(g, "Where", "f", "n zero d");
        node(g, "MatMul", "e", "f vh");
        merge_heads(g, "e");
        check_fused(m, &p, 1);
        CHECK_EQ(p->n_live_nodes, 2);
        end_pass_model(m, p);
    }
}

/* "shape5" as torch's expand computes it: -1 would stand for the dim as it is. */
static void expanded_shape(sn_graph *g)
{
    const_i64(g, "at", 1, (int64_t[]){2});
    const_i64(g, "front", 3, (int64_t[]){BATCH, 1, HEADS});
    const_i64(g, "back", 1, (int64_t[]){SIZE});
    const_i64(g, "minus", 5, (int64_t[]){-1, -1, -1, -1, -1});
    const_i64(g, "ones", 5, (int64_t[]){1, 1, 1, 1, 1});
    node(g, "Shape", "dims", "k");
    node(g, "Gather", "length", "dims at");
    attr_int(g, node(g, "Concat", "wanted", "front length back"), "axis", 0);
    node(g, "Equal", "as_is", "wanted minus");
    node(g, "Where", "shape5", "as_is ones wanted");
}

TEST(heads_shared_by_repeating_them_are_read_once)
{
    for (int tiled = 0; tiled < 2; tiled++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        const sn_dim len = sn_dim_symbol(sn_graph_symbol(g, "t"));
        tokens(g, "q", WIDTH);
        typed_input(g, "k", SONDE_DTYPE_F32, 4, (int64_t[]){BATCH, 1, len, SIZE});
        typed_input(g, "v", SONDE_DTYPE_F32, 4, (int64_t[]){BATCH, 1, len, SIZE});
        const_i64(g, "two", 1, (int64_t[]){2});
        const_i64(g, "times", 5, (int64_t[]){1, 1, HEADS, 1, 1});
        const_i64(g, "four", 4, (int64_t[]){BATCH, HEADS, -1, SIZE});
        expanded_shape(g);
        split_heads(g, "qh", "q", false);
        node(g, "Unsqueeze", "k5", "k two"), node(g, "Unsqueeze", "v5", "v two");
        node(g, tiled ? "Tile" : "Expand", "kx", tiled ? "k5 times" : "k5 shape5");
        node(g, tiled ? "Tile" : "Expand", "vx", tiled ? "v5 times" : "v5 shape5");
        node(g, "Reshape", "kh", "kx four"), node(g, "Reshape", "vh", "vx four");
        perm4(g, node(g, "Transpose", "kt", "kh"), 0, 1, 3, 2);
        node(g, "MatMul", "a", "qh kt");
        node(g, "Softmax", "d", "a");
        node(g, "MatMul", "e", "d vh");
        merge_heads(g, "e");
        check_fused(m, &p, 1);
        CHECK_EQ(p->n_live_nodes, 1);
        CHECK_EQ(sn_node_attr(p->first, "kv_heads")->i, 1);
        CHECK_STR(p->first->in[1].value->name, "k");
        end_pass_model(m, p);
    }
}

/* torch's nn.MultiheadAttention: the sequence first, batch and heads as one axis. */
TEST(batch_and_heads_may_be_one_axis)
{
    for (int masked = 0; masked < 2; masked++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        static const char *const names[3] = {"q", "k", "v"};
        const_i64(g, "rows", 3, (int64_t[]){LEN, BATCH * HEADS, SIZE});
        const_i64(g, "flat", 2, (int64_t[]){LEN * BATCH, WIDTH});
        for (int i = 0; i < 3; i++) {
            char to[16], wide[16], ins[32];
            typed_input(g, names[i], SONDE_DTYPE_F32, DIMS(LEN, BATCH, WIDTH));
            snprintf(wide, sizeof wide, "%sw", names[i]);
            snprintf(to, sizeof to, "%sh", names[i]);
            snprintf(ins, sizeof ins, "%s rows", names[i]);
            node(g, "Reshape", wide, ins);
            attr_ints(g, node(g, "Transpose", to, wide), "perm",
                      DIMS(1, i == 1 ? 2 : 0, i == 1 ? 0 : 2));
        }
        typed_input(g, "mask", SONDE_DTYPE_F32, DIMS(BATCH * HEADS, LEN, LEN));
        node(g, "MatMul", "a", "qh kh");
        node(g, "Add", "b", "a mask");
        node(g, "Softmax", "c", masked ? "b" : "a");
        node(g, "MatMul", "d", "c vh");
        attr_ints(g, node(g, "Transpose", "t", "d"), "perm", DIMS(1, 0, 2));
        node(g, "Reshape", "y", "t flat");
        outputs(g, "y");
        check_fused(m, &p, 1);
        CHECK_EQ(p->n_live_nodes, 1);
        end_pass_model(m, p);
    }
}

TEST(one_query_grows_to_the_rows_of_its_mask)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "q", SONDE_DTYPE_F32, DIMS(BATCH, HEADS, 1, SIZE));
    typed_input(g, "k", SONDE_DTYPE_F32, DIMS(1, HEADS, SIZE, LEN));
    typed_input(g, "v", SONDE_DTYPE_F32, DIMS(BATCH, HEADS, LEN, SIZE));
    typed_input(g, "mask", SONDE_DTYPE_F32, DIMS(LEN, LEN));
    perm4(g, node(g, "Transpose", "kr", "k"), 0, 1, 3, 2);
    perm4(g, node(g, "Transpose", "kt", "kr"), 0, 1, 3, 2);
    node(g, "MatMul", "a", "q kt");
    node(g, "Add", "b", "a mask");
    node(g, "Softmax", "c", "b");
    node(g, "MatMul", "y", "c v");
    outputs(g, "y");
    check_fused(m, &p, 0); /* its keys lie in columns, and are left there */
    end_pass_model(m, p);

    m = pass_model(0);
    g = m->graph;
    typed_input(g, "q", SONDE_DTYPE_F32, DIMS(BATCH, HEADS, 1, SIZE));
    typed_input(g, "k", SONDE_DTYPE_F32, DIMS(1, HEADS, LEN, SIZE));
    typed_input(g, "v", SONDE_DTYPE_F32, DIMS(BATCH, HEADS, LEN, SIZE));
    typed_input(g, "mask", SONDE_DTYPE_F32, DIMS(LEN, LEN));
    perm4(g, node(g, "Transpose", "kt", "k"), 0, 1, 3, 2);
    node(g, "MatMul", "a", "q kt");
    node(g, "Add", "b", "a mask");
    node(g, "Softmax", "c", "b");
    node(g, "MatMul", "y", "c v");
    outputs(g, "y");
    check_fused(m, &p, 1);
    end_pass_model(m, p);
}

/* x · w + b by name; `columns` 0 leaves the bias out. */
static void project(sn_graph *g, const char *to, const char *x, int64_t columns, bool bias)
{
    char w[80], b[80], mid[80], ins[200];
    snprintf(w, sizeof w, "w_%s", to);
    snprintf(b, sizeof b, "b_%s", to);
    snprintf(mid, sizeof mid, "m_%s", to);
    const_f32(g, w, 0, DIMS(6, columns));
    snprintf(ins, sizeof ins, "%s %s", x, w);
    node(g, "MatMul", bias ? mid : to, ins);
    if (!bias)
        return;
    const_f32(g, b, 0, DIMS(columns));
    snprintf(ins, sizeof ins, "%s %s", b, mid);
    node(g, "Add", to, ins);
}

TEST(projections_of_unequal_widths_become_one_product)
{
    for (int read_twice = 0; read_twice < 2; read_twice++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        tokens(g, "x", 6);
        const_i64(g, "narrow", 4, (int64_t[]){0, 0, 1, SIZE});
        project(g, "q", "x", WIDTH, true);
        project(g, "k", "x", SIZE, false);
        project(g, "v", "x", SIZE, true);
        split_heads(g, "qh", "q", false);
        node(g, "Reshape", "k4", "k narrow"), node(g, "Reshape", "v4", "v narrow");
        perm4(g, node(g, "Transpose", "kt", "k4"), 0, 2, 3, 1);
        perm4(g, node(g, "Transpose", "vh", "v4"), 0, 2, 1, 3);
        node(g, "MatMul", "a", "qh kt");
        node(g, "Softmax", "d", "a");
        node(g, "MatMul", "e", "d vh");
        merge_heads(g, "e");
        if (read_twice) {
            node(g, "Neg", "other", "v");
            outputs(g, "other");
        }
        check_fused(m, &p, 1);
        const sn_node *n = p->outputs.data[0]->producer;
        CHECK_STR(n->op_type, "FusedAttention");
        CHECK_EQ(n->in[0].value == n->in[1].value, 1);
        CHECK_EQ(n->in[1].value == n->in[2].value, !read_twice);
        CHECK_EQ(view_of(p, "k_view")[4], WIDTH);
        CHECK_EQ(view_of(p, "v_view")[4], read_twice ? 0 : WIDTH + SIZE);
        CHECK_EQ(count_ops(p, "FusedGemm"), read_twice ? 2 : 1);
        const sn_node *made = n->in[0].value->producer;
        CHECK(made->in[1].value->fact.data->parts != NULL);
        CHECK_EQ(made->n_origins, read_twice ? 3 : 5);
        end_pass_model(m, p);
    }
}

TEST(near_misses_stay_as_they_are)
{
    for (int miss = 0; miss < 7; miss++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        tokens(g, "q", WIDTH), tokens(g, "k", WIDTH), tokens(g, "v", WIDTH);
        typed_input(g, "rows", SONDE_DTYPE_F32, DIMS(LEN, 1));
        typed_input(g, "more", SONDE_DTYPE_F32, DIMS(1, BATCH, 1, 1, LEN));
        scalar_f32(g, "root", 2.0f);
        split_heads(g, "qh", "q", false), split_heads(g, "kt", "k", true);
        split_heads(g, "vh", "v", false);
        node(g, "MatMul", "a", "qh kt");
        node(g, miss == 0 ? "Mul" : "Div", "b", miss == 0 ? "a rows" : "root a");
        node(g, "Div", "b2", "a root");
        node(g, "Add", "big", "b2 more");
        sn_node *s = node(g, "Softmax", "d", miss < 2 ? "b" : miss == 2 ? "big" : "b2");
        if (miss == 3)
            attr_int(g, s, "axis", 2);
        node(g, "Mul", "twice", "d root");
        node(g, "MatMul", "e", miss == 4 ? "twice vh" : "d vh");
        node(g, "Neg", "other", miss == 5 ? "d" : "vh");
        outputs(g, miss == 6 ? "e b2 other" : "e other");
        check_fused(m, &p, 0);
        end_pass_model(m, p);
    }
}

/* Everything from building to the last pass, with the k-th allocation refused. */
static sonde_status whole(size_t fail_at, sn_model **m, sn_graph **p)
{
    *p = NULL;
    *m = pass_model(fail_at);
    if (!*m)
        return build_status;
    sn_graph *g = (*m)->graph;
    if (!tokens(g, "q", WIDTH) || !tokens(g, "k", WIDTH) || !tokens(g, "v", WIDTH))
        return SONDE_OUT_OF_MEMORY;
    split_heads(g, "qh", "q", false), split_heads(g, "kt", "k", true);
    split_heads(g, "vh", "v", false);
    node(g, "MatMul", "a", "qh kt");
    node(g, "Softmax", "d", "a");
    node(g, "MatMul", "e", "d vh");
    merge_heads(g, "e");
    if (build_status != SONDE_OK)
        return build_status;
    return finish(*m, NULL, p);
}

TEST(every_failing_allocation_is_reported)
{
    check_failing_allocations(whole);
}

TEST_MAIN()
