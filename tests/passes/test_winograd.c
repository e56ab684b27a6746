/* SPDX-License-Identifier: Apache-2.0 */
/* Which convolutions may go Winograd's way: 3×3 at steps of one with constant weights, whatever the
 * size of the image. */
#include "passes/interpret.h"

static sn_node *conv(sn_graph *g, const char *out, const char *in, int64_t oc, int64_t ic,
                     int64_t k)
{
    char w[80], ins[200];
    snprintf(w, sizeof w, "w_%s", out);
    const_f32(g, w, 0, DIMS(oc, ic, k, k));
    snprintf(ins, sizeof ins, "%s %s", in, w);
    sn_node *n = node(g, "Conv", out, ins);
    attr_ints(g, n, "pads", DIMS(k / 2, k / 2, k / 2, k / 2));
    return n;
}

/* "x" of [1, 64, 28, 28]. */
static sn_model *image(void)
{
    sn_model *m = pass_model(0);
    typed_input(m->graph, "x", SONDE_DTYPE_F32, DIMS(1, 64, 28, 28));
    return m;
}

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
    sn_model *m = image();
    conv(m->graph, "a", "x", 64, 64, 3);
    attr_int(m->graph, conv(m->graph, "grouped", "x", 64, 16, 3), "group", 4);
    outputs(m->graph, "a grouped");
    sn_graph *p = passed(m);
    CHECK_EQ(way(p, "a"), 1);
    CHECK_EQ(way(p, "grouped"), 1);
    CHECK_STR(p->first->op_type, "FusedConv");
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(other_windows_stay_direct)
{
    sn_model *m = image();
    conv(m->graph, "five", "x", 32, 64, 5);
    attr_ints(m->graph, conv(m->graph, "strided", "x", 32, 64, 3), "strides", DIMS(2, 2));
    attr_ints(m->graph, conv(m->graph, "dilated", "x", 32, 64, 3), "dilations", DIMS(2, 2));
    outputs(m->graph, "five strided dilated");
    sn_graph *p = passed(m);
    CHECK_EQ(way(p, "five"), 0);
    CHECK_EQ(way(p, "strided"), 0);
    CHECK_EQ(way(p, "dilated"), 0);
    CHECK_STR(p->first->op_type, "Conv");
    end_pass_model(m, p);
}

TEST(weights_that_are_not_constant_stay_direct)
{
    sn_model *m = image();
    typed_input(m->graph, "w", SONDE_DTYPE_F32, DIMS(32, 64, 3, 3));
    node(m->graph, "Conv", "a", "x w");
    outputs(m->graph, "a");
    sn_graph *p = passed(m);
    CHECK_EQ(way(p, "a"), 0);
    end_pass_model(m, p);
}

TEST_MAIN()
