/* SPDX-License-Identifier: Apache-2.0 */
/* Which convolutions may go Winograd's way: 3×3 at steps of one with constant weights, whatever the
 * size of the image. */
#include "passes/interpret.h"

static int64_t way(const sn_graph *p, const char *name)
{
    for (const sn_node *n = p->first; n; n = n->next)
        if (n->n_out == 1 && n->out[0] && strcmp(n->out[0]->name, name) == 0)
            return sn_node_attr(n, "winograd") ? sn_node_attr(n, "winograd")->i : 0;
    return -1;
}

static sn_graph *passed(sn_model *m)
{
    sn_graph *p = NULL;
    if (sn_model_finish(m, &err) != SONDE_OK || ready_copy(m, &p) != SONDE_OK ||
        run_passes(p, "winograd") != SONDE_OK) {
        test_errors++;
        fprintf(stderr, "%s\n", err.message);
    }
    return p;
}

TEST(three_by_three_at_steps_of_one_may_choose)
{
    sn_model *m = image_model(0, 64, 28, 28);
    conv_node(m->graph, "a", "x", 64, 64, 3, NULL);
    attr_int(m->graph, conv_node(m->graph, "grouped", "x", 64, 16, 3, NULL), "group", 4);
    attr_ints(m->graph, conv_node(m->graph, "dilated", "x", 32, 64, 3, NULL), "dilations",
              DIMS(2, 2));
    outputs(m->graph, "a grouped dilated");
    sn_graph *p = passed(m);
    CHECK_EQ(way(p, "a"), 1);
    CHECK_EQ(way(p, "grouped"), 1);
    CHECK_EQ(way(p, "dilated"), 1);
    CHECK_STR(p->first->op_type, "FusedConv");
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(other_windows_stay_direct)
{
    sn_model *m = image_model(0, 64, 28, 28);
    conv_node(m->graph, "five", "x", 32, 64, 5, NULL);
    attr_ints(m->graph, conv_node(m->graph, "strided", "x", 32, 64, 3, NULL), "strides",
              DIMS(2, 2));
    outputs(m->graph, "five strided");
    sn_graph *p = passed(m);
    CHECK_EQ(way(p, "five"), 0);
    CHECK_EQ(way(p, "strided"), 0);
    CHECK_STR(p->first->op_type, "Conv");
    end_pass_model(m, p);
}

TEST(weights_that_are_not_constant_stay_direct)
{
    sn_model *m = image_model(0, 64, 28, 28);
    typed_input(m->graph, "w", SONDE_DTYPE_F32, DIMS(32, 64, 3, 3));
    node(m->graph, "Conv", "a", "x w");
    outputs(m->graph, "a");
    sn_graph *p = passed(m);
    CHECK_EQ(way(p, "a"), 0);
    end_pass_model(m, p);
}

TEST_MAIN()
