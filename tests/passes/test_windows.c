/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in windows of an image: masks per window behind a change of rank, several terms, a
 * factor of each head; rolls and windows around it become lists of rows. */
#include "passes/interpret.h"

enum { SIDE = 8, WINDOW = 4, LEN = WINDOW * WINDOW, HEADS = 2, SIZE = 3, WIDTH = HEADS * SIZE };
enum { WINDOWS = SIDE / WINDOW * (SIDE / WINDOW) };

static void perm(sn_graph *g, sn_node *n, int rank, const int64_t *axes)
{
    attr_ints(g, n, "perm", rank, axes);
}

static void reshape(sn_graph *g, const char *to, const char *from, int rank, const int64_t *dims)
{
    char shape[80], ins[200];
    snprintf(shape, sizeof shape, "shape_%s", to);
    snprintf(ins, sizeof ins, "%s %s", from, shape);
    const_i64(g, shape, rank, dims);
    node(g, "Reshape", to, ins);
}

/* "q", "k" and "v" along the first axis. */
static void split_three(sn_graph *g, const char *from)
{
    char ins[80];
    const_i64(g, "thirds", 3, (int64_t[]){1, 1, 1});
    const_i64(g, "first_axis", 1, (int64_t[]){0});
    snprintf(ins, sizeof ins, "%s thirds", from);
    attr_int(g, node(g, "Split", "q1 k1 v1", ins), "axis", 0);
    node(g, "Squeeze", "q", "q1 first_axis");
    node(g, "Squeeze", "k", "k1 first_axis");
    node(g, "Squeeze", "v", "v1 first_axis");
}

/* [windows, LEN, 3 * WIDTH] ► "q", "kt", "v", as most exporters write it. */
static void split_qkv(sn_graph *g, const char *from, int64_t windows)
{
    reshape(g, "five", from, DIMS(windows, LEN, 3, HEADS, SIZE));
    perm(g, node(g, "Transpose", "turned5", "five"), DIMS(2, 0, 3, 1, 4));
    split_three(g, "turned5");
    perm(g, node(g, "Transpose", "kt", "k"), DIMS(0, 1, 3, 2));
}

static void merge(sn_graph *g, const char *to, const char *from, int64_t windows)
{
    perm(g, node(g, "Transpose", "merged4", from), DIMS(0, 2, 1, 3));
    reshape(g, to, "merged4", DIMS(windows, LEN, WIDTH));
}

static void check_fused(sn_model *m, sn_graph **p)
{
    CHECK_OK(sn_model_finish(m, &err));
    CHECK_OK(ready_copy(m, p));
    CHECK_OK(run_passes(*p, NULL));
    check_same(m, *p, 1e-4);
    CHECK_EQ(count_ops(*p, "FusedAttention"), 1);
    CHECK_EQ(count_ops(*p, "Softmax"), 0);
}

static const sn_node *fused(const sn_graph *g)
{
    for (const sn_node *n = g->first; n; n = n->next)
        if (strcmp(n->op_type, "FusedAttention") == 0)
            return n;
    return NULL;
}

TEST(masks_of_windows_behind_a_change_of_rank_are_part_of_it)
{
    for (int images = 1; images < 3; images++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        const int64_t all = images * WINDOWS;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(all, LEN, 3 * WIDTH));
        const_f32(g, "table", 0, DIMS(HEADS, LEN, LEN));
        const_f32(g, "mask", 0, DIMS(1, WINDOWS, 1, LEN, LEN));
        split_qkv(g, "x", all);
        node(g, "MatMul", "s", "q kt");
        node(g, "Add", "s1", "s table");
        reshape(g, "s2", "s1", DIMS(images, WINDOWS, HEADS, LEN, LEN));
        node(g, "Add", "s3", "mask s2");
        reshape(g, "s4", "s3", DIMS(-1, HEADS, LEN, LEN));
        node(g, "Softmax", "e", "s4");
        node(g, "MatMul", "o", "e v");
        merge(g, "y", "o", all);
        outputs(g, "y");
        check_fused(m, &p);
        CHECK_EQ(p->n_live_nodes, 1);
        CHECK_EQ(sn_node_attr(fused(p), "windows")->i, WINDOWS);
        end_pass_model(m, p);
    }
}

TEST(more_than_two_terms_are_added_up_before)
{
    for (int form = 0; form < 3; form++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, LEN, 3 * WIDTH));
        typed_input(g, "a", SONDE_DTYPE_F32, DIMS(2, 1, 1, LEN));
        const_f32(g, "b", 0, DIMS(HEADS, LEN, LEN));
        const_f32(g, "c", 0, DIMS(HEADS, LEN, LEN));
        typed_input(g, "d", SONDE_DTYPE_F32, DIMS(1, HEADS, 1, LEN));
        split_qkv(g, "x", 2);
        node(g, "MatMul", "s", "q kt");
        node(g, "Add", "s1", form == 0 ? "b s" : "s a");
        node(g, "Add", "s2", form == 0 ? "s1 c" : "b s1");
        node(g, "Add", "s3", form == 0 ? "s2 a" : "s2 d");
        if (form == 2)
            node(g, "Add", "s4", "s3 c");
        node(g, "Softmax", "e", form == 2 ? "s4" : "s3");
        node(g, "MatMul", "o", "e v");
        merge(g, "y", "o", 2);
        outputs(g, "y");
        check_fused(m, &p);
        CHECK_EQ(fused(p)->n_in, 6);
        CHECK_EQ(count_ops(p, "Add"), form == 0 ? 0 : 1);
        end_pass_model(m, p);
    }
}

TEST(a_factor_of_each_head_is_part_of_it)
{
    for (int form = 0; form < 2; form++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, LEN, 3 * WIDTH));
        const_f32(g, "by", 3, DIMS(HEADS, 1, 1));
        const_f32(g, "b", 0, DIMS(1, HEADS, LEN, LEN));
        split_qkv(g, "x", 2);
        node(g, "MatMul", "s", "q kt");
        node(g, form ? "Div" : "Mul", "s1", form ? "s by" : "by s");
        node(g, "Add", "s2", "s1 b");
        node(g, "Softmax", "e", "s2");
        node(g, "MatMul", "o", "e v");
        merge(g, "y", "o", 2);
        outputs(g, "y");
        check_fused(m, &p);
        CHECK_EQ(p->n_live_nodes, 1);
        CHECK_EQ(fused(p)->n_in, 7);
        end_pass_model(m, p);
    }
}

TEST(queries_and_keys_of_length_one_are_read_as_they_were_before)
{
    for (int form = 0; form < 3; form++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, LEN, 3 * WIDTH));
        const_f32(g, "by", 3, DIMS(HEADS, 1, 1));
        scalar_f32(g, "least", 0.5f);
        const_i64(g, "all", 4, (int64_t[]){2, HEADS, LEN, SIZE});
        split_qkv(g, "x", 2);
        attr_ints(g, node(g, "ReduceL2", "ql", "q"), "axes", DIMS(-1));
        attr_ints(g, node(g, "ReduceL2", "kl", "k"), "axes", DIMS(form ? 3 : -1));
        node(g, form ? "Max" : "Clip", "qm", form ? "least ql" : "ql least");
        node(g, form ? "Max" : "Clip", "km", "kl least");
        node(g, "Expand", "qe", "qm all");
        node(g, "Expand", "ke", "km all");
        node(g, "Div", "qn", form == 2 ? "q qm" : "q qe");
        node(g, "Div", "kn", form == 2 ? "k km" : "k ke");
        perm(g, node(g, "Transpose", "knt", "kn"), DIMS(0, 1, 3, 2));
        node(g, "MatMul", "s", "qn knt");
        node(g, "Mul", "s1", "s by");
        node(g, "Softmax", "e", "s1");
        node(g, "MatMul", "o", "e v");
        merge(g, "y", "o", 2);
        outputs(g, "y");
        check_fused(m, &p);
        CHECK_EQ(p->n_live_nodes, 1);
        end_pass_model(m, p);
    }
}

TEST(windows_of_a_batch_of_one_have_scores_of_five_axes)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(1, WINDOWS, LEN, 3 * WIDTH));
    reshape(g, "six", "x", DIMS(1, WINDOWS, LEN, 3, HEADS, SIZE));
    perm(g, node(g, "Transpose", "t", "six"), DIMS(3, 0, 1, 4, 2, 5));
    split_three(g, "t");
    perm(g, node(g, "Transpose", "kt", "k"), DIMS(0, 1, 2, 4, 3));
    node(g, "MatMul", "s", "q kt");
    node(g, "Softmax", "e", "s");
    node(g, "MatMul", "o", "e v");
    perm(g, node(g, "Transpose", "o1", "o"), DIMS(0, 1, 3, 2, 4));
    reshape(g, "y", "o1", DIMS(1, WINDOWS, LEN, WIDTH));
    outputs(g, "y");
    check_fused(m, &p);
    CHECK_EQ(p->n_live_nodes, 1);
    end_pass_model(m, p);
}

/* `to` is `from` rolled by `by` along an axis. */
static void roll(sn_graph *g, const char *to, const char *from, int64_t by, int64_t axis)
{
    char name[6][40], ins[200];
    for (int i = 0; i < 6; i++)
        snprintf(name[i], sizeof name[i], "%s_%d", to, i);
    const_i64(g, name[0], 1, (int64_t[]){0});
    const_i64(g, name[1], 1, &by);
    const_i64(g, name[2], 1, (int64_t[]){SIDE});
    const_i64(g, name[3], 1, &axis);
    snprintf(ins, sizeof ins, "%s %s %s %s", from, name[1], name[2], name[3]);
    node(g, "Slice", name[4], ins);
    snprintf(ins, sizeof ins, "%s %s %s %s", from, name[0], name[1], name[3]);
    node(g, "Slice", name[5], ins);
    snprintf(ins, sizeof ins, "%s %s", name[4], name[5]);
    attr_int(g, node(g, "Concat", to, ins), "axis", axis);
}

TEST(rolls_and_windows_around_it_become_lists_of_rows)
{
    for (int form = 0; form < 2; form++) {
        const bool rolled = form & 1;
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        const int64_t n = SIDE / WINDOW;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(1, SIDE, SIDE, WIDTH));
        const_f32(g, "wi", 0, DIMS(WIDTH, 3 * WIDTH)), const_f32(g, "bi", 0, DIMS(3 * WIDTH));
        const_f32(g, "wo", 0, DIMS(WIDTH, WIDTH)), const_f32(g, "bo", 0, DIMS(WIDTH));
        if (rolled)
            roll(g, "r1", "x", 2, 1), roll(g, "r2", "r1", 2, 2);
        reshape(g, "w1", rolled ? "r2" : "x", DIMS(1, n, WINDOW, n, WINDOW, WIDTH));
        perm(g, node(g, "Transpose", "w2", "w1"), DIMS(0, 1, 3, 2, 4, 5));
        reshape(g, "w3", "w2", DIMS(-1, LEN, WIDTH));
        node(g, "MatMul", "p1", "w3 wi");
        node(g, "Add", "p2", "p1 bi");
        split_qkv(g, "p2", WINDOWS);
        node(g, "MatMul", "s", "q kt");
        node(g, "Softmax", "e", "s");
        node(g, "MatMul", "o", "e v");
        merge(g, "o1", "o", WINDOWS);
        node(g, "MatMul", "o2", "o1 wo");
        node(g, "Add", "o3", "o2 bo");
        reshape(g, "u1", "o3", DIMS(1, n, n, WINDOW, WINDOW, WIDTH));
        perm(g, node(g, "Transpose", "u2", "u1"), DIMS(0, 1, 3, 2, 4, 5));
        reshape(g, "u3", "u2", DIMS(1, SIDE, SIDE, WIDTH));
        if (rolled)
            roll(g, "b1", "u3", SIDE - 2, 1), roll(g, "b2", "b1", SIDE - 2, 2);
        node(g, "Add", "y", rolled ? "b2 x" : "x u3");
        outputs(g, "y");
        check_fused(m, &p);
        CHECK_EQ(count_ops(p, "Transpose"), 0);
        CHECK_EQ(count_ops(p, "Slice"), 0);
        CHECK_EQ(count_ops(p, "Concat"), 0);
        CHECK_EQ(count_ops(p, "Add"), 0); /* also the one behind the windows is part of a product */
        CHECK_EQ(fused(p)->n_in, 10);
        end_pass_model(m, p);
    }
}

/* "x" ► rows of windows, whose columns were mixed before ► "y". */
static sn_graph *mixed_columns(sn_model *m, int form)
{
    sn_graph *g = m->graph, *p = NULL;
    const int64_t n = SIDE / WINDOW, half = WIDTH / 2, all = WIDTH;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(1, SIDE, SIDE, WIDTH));
    const_f32(g, "wi", 0, DIMS(WIDTH, 3 * WIDTH));
    const_i64(g, "half", 1, &half), const_i64(g, "all", 1, &all);
    const_i64(g, "none", 1, (int64_t[]){0}), const_i64(g, "last", 1, (int64_t[]){3});
    const_i64(g, "back", 1, (int64_t[]){-1}), const_i64(g, "end", 1, (int64_t[]){-1000});
    const_i64(g, "order", WIDTH, (int64_t[]){5, 4, 3, 2, 1, 0});
    node(g, "Slice", "c1", "x half all last");
    node(g, "Slice", "c2", "x none half last");
    if (form == 0)
        attr_int(g, node(g, "Concat", "c", "c1 c2"), "axis", 3);
    else if (form == 1)
        node(g, "Slice", "c", "x back end last back");
    else
        attr_int(g, node(g, "Gather", "c", "x order"), "axis", 3);
    reshape(g, "w1", "c", DIMS(1, n, WINDOW, n, WINDOW, WIDTH));
    perm(g, node(g, "Transpose", "w2", "w1"), DIMS(0, 1, 3, 2, 4, 5));
    reshape(g, "w3", "w2", DIMS(-1, LEN, WIDTH));
    node(g, "MatMul", "p1", "w3 wi");
    split_qkv(g, "p1", WINDOWS);
    node(g, "MatMul", "s", "q kt");
    node(g, "Softmax", "e", "s");
    node(g, "MatMul", "o", "e v");
    merge(g, "y", "o", WINDOWS);
    outputs(g, "y");
    check_fused(m, &p);
    return p;
}

TEST(what_mixes_columns_is_no_move_of_rows)
{
    for (int form = 0; form < 3; form++) {
        sn_model *m = pass_model(0);
        sn_graph *p = mixed_columns(m, form);
        CHECK_EQ(fused(p)->n_in, 9); /* lists of queries and keys: the windows only */
        CHECK_EQ(count_ops(p, "Transpose"), 0);
        end_pass_model(m, p);
    }
}

TEST(windows_that_a_mask_repeats_have_no_lists)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(1, WINDOW, WINDOW, WIDTH));
    typed_input(g, "mask", SONDE_DTYPE_F32, DIMS(3, 1, LEN, LEN));
    const_f32(g, "wi", 0, DIMS(WIDTH, 3 * WIDTH));
    perm(g, node(g, "Transpose", "t", "x"), DIMS(0, 2, 1, 3));
    reshape(g, "w", "t", DIMS(1, LEN, WIDTH));
    node(g, "MatMul", "p1", "w wi");
    split_qkv(g, "p1", 1);
    node(g, "MatMul", "s", "q kt");
    node(g, "Add", "s1", "s mask");
    node(g, "Softmax", "e", "s1");
    node(g, "MatMul", "o", "e v");
    merge(g, "y", "o", 3);
    outputs(g, "y");
    check_fused(m, &p);
    CHECK_EQ(fused(p)->n_in, 4);
    end_pass_model(m, p);
}

TEST(rows_that_somebody_else_reads_stay_where_they_are)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    const int64_t n = SIDE / WINDOW;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(1, SIDE, SIDE, WIDTH));
    const_f32(g, "wi", 0, DIMS(WIDTH, 3 * WIDTH));
    reshape(g, "w1", "x", DIMS(1, n, WINDOW, n, WINDOW, WIDTH));
    perm(g, node(g, "Transpose", "w2", "w1"), DIMS(0, 1, 3, 2, 4, 5));
    reshape(g, "w3", "w2", DIMS(-1, LEN, WIDTH));
    node(g, "MatMul", "p1", "w3 wi");
    split_qkv(g, "p1", WINDOWS);
    node(g, "MatMul", "s", "q kt");
    node(g, "Softmax", "e", "s");
    node(g, "MatMul", "o", "e v");
    merge(g, "y", "o", WINDOWS);
    node(g, "Relu", "z", "p1");
    outputs(g, "y z");
    check_fused(m, &p);
    CHECK_EQ(fused(p)->n_in, 3);
    CHECK_EQ(count_ops(p, "Transpose"), 1);
    end_pass_model(m, p);
}

/* "x" [1, LEN * WINDOWS, 3 * HEADS * SIZE] ► heads before windows ► "y" in the order of x. */
static sn_model *heads_first_model(int64_t heads, int64_t windows, bool pooled)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(1, LEN * windows, 3 * heads * SIZE));
    reshape(g, "six", "x", DIMS(1, LEN, windows, 3, heads, SIZE));
    perm(g, node(g, "Transpose", "turned6", "six"), DIMS(3, 0, 4, 2, 1, 5));
    split_three(g, "turned6");
    const int64_t len = pooled ? LEN / 4 : LEN;
    if (pooled) {
        const_i64(g, "of_four", 1, (int64_t[]){3});
        reshape(g, "fours", "q", DIMS(1, heads, windows, 4, len, SIZE));
        sn_node *most = node(g, "ReduceMax", "less", "fours of_four");
        most->opset = 18;
        attr_int(g, most, "keepdims", 0);
    }
    perm(g, node(g, "Transpose", "kt", "k"), DIMS(0, 1, 2, 4, 3));
    node(g, "MatMul", "s", pooled ? "less kt" : "q kt");
    node(g, "Softmax", "e", "s");
    node(g, "MatMul", "o", "e v");
    perm(g, node(g, "Transpose", "o5", "o"), DIMS(0, 3, 2, 1, 4));
    reshape(g, "y", "o5", DIMS(1, len * windows, heads * SIZE));
    outputs(g, "y");
    return m;
}

TEST(windows_behind_heads_are_read_where_the_projection_wrote_them)
{
    for (int form = 0; form < 4; form++) {
        sn_model *m = heads_first_model(form & 1 ? HEADS : 1, form & 2 ? 5 : 2, false);
        sn_graph *p = NULL;
        check_fused(m, &p);
        CHECK_EQ(count_ops(p, "Transpose"), 0);
        CHECK_EQ(count_ops(p, "Split"), 0);
        end_pass_model(m, p);
    }
}

TEST(queries_of_such_windows_may_be_fewer_than_keys)
{
    for (int heads = 1; heads <= HEADS; heads++) {
        sn_model *m = heads_first_model(heads, 3, true);
        sn_graph *p = NULL;
        check_fused(m, &p);
        CHECK_EQ(count_ops(p, "Transpose"), 1); /* for the queries, so keys are read there, too */
        end_pass_model(m, p);
    }
}

TEST_MAIN()
