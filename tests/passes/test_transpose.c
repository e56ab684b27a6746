/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of transposes: merged, cancelled, and left alone where the middle is read elsewhere. */
#include "passes/interpret.h"

TEST(a_pair_that_undoes_itself_disappears)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(1, 2, 3, 4));
    attr_ints(g, node(g, "Transpose", "a", "x"), "perm", 4, (int64_t[]){0, 2, 3, 1});
    attr_ints(g, node(g, "Transpose", "b", "a"), "perm", 4, (int64_t[]){0, 3, 1, 2});
    node(g, "Relu", "y", "b");
    outputs(g, "y");
    CHECK_OK(finish(m, "transpose-pairs", &p));
    CHECK_EQ(p->n_live_nodes, 2);
    CHECK_OK(run_passes(p, "identity"));
    CHECK_EQ(p->n_live_nodes, 1);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(three_in_a_row_become_one_and_keep_their_origins)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 3, 4));
    attr_ints(g, node(g, "Transpose", "a", "x"), "perm", 3, (int64_t[]){1, 2, 0});
    node(g, "Transpose", "b", "a"); /* reversed */
    attr_ints(g, node(g, "Transpose", "y", "b"), "perm", 3, (int64_t[]){0, 2, 1});
    outputs(g, "y");
    CHECK_OK(finish(m, "transpose-pairs", &p));
    CHECK_EQ(p->n_live_nodes, 1);
    CHECK_EQ(p->first->n_origins, 3);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(a_middle_that_is_read_elsewhere_stays)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 3));
    node(g, "Transpose", "a", "x");
    node(g, "Transpose", "b", "a");
    node(g, "Neg", "y", "a");
    node(g, "Neg", "z", "b");
    outputs(g, "y z");
    CHECK_OK(finish(m, "transpose-pairs", &p));
    CHECK_EQ(p->n_live_nodes, 4);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST_MAIN()
