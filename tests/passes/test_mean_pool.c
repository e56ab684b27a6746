/* SPDX-License-Identifier: Apache-2.0 */
/* Means over the spatial dims of an image: which ones become pooling. */
#include "passes/interpret.h"

enum { CHANNELS = 20 };

static sn_model *mean_model(bool keep, bool attribute, int count, const int64_t *axes)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 16, 6, 5));
    conv_node(g, "a", "x", CHANNELS, 16, 3, NULL);
    if (!attribute)
        const_i64(g, "axes", count, axes);
    sn_node *n = node(g, "ReduceMean", "mean", attribute ? "a" : "a axes");
    n->opset = attribute ? 13 : 18;
    if (attribute)
        attr_ints(g, n, "axes", count, axes);
    attr_int(g, n, "keepdims", keep);
    node(g, "Relu", "y", "mean");
    outputs(g, "y");
    return m;
}

static void becomes_pooling(bool keep, bool attribute, bool blocked)
{
    const char *const names[] = {"mean-pool", blocked ? "blocked-layout" : NULL, NULL};
    sn_model *m =
        keep ? mean_model(true, attribute, DIMS(2, 3)) : mean_model(false, attribute, DIMS(-1, 2));
    sn_graph *p = with_passes(m, names);
    if (!p)
        return;
    CHECK_EQ(count_ops(p, "ReduceMean"), 0);
    CHECK_EQ(count_ops(p, "GlobalAveragePool"), 1);
    CHECK_EQ(count_ops(p, "Flatten"), keep ? 0 : 1);
    check_same(m, p, 1e-5);
    end_pass_model(m, p);
}

TEST(a_mean_over_all_spatial_dims_becomes_pooling)
{
    for (int i = 0; i < 8; i++)
        becomes_pooling(i & 1, i & 2, i & 4);
}

static void stays(int count, const int64_t *axes)
{
    sn_model *m = mean_model(true, true, count, axes);
    sn_graph *p = NULL;
    CHECK_OK(finish(m, "mean-pool", &p));
    CHECK_EQ(count_ops(p, "GlobalAveragePool"), 0);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(means_over_other_dims_stay)
{
    stays(DIMS(3));
    stays(DIMS(1, 2, 3));
    stays(DIMS(1, 2));
    stays(DIMS(2, 2));
}

TEST(a_mean_of_doubles_stays)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F64, DIMS(1, 3, 4, 4));
    attr_ints(g, node(g, "ReduceMean", "y", "x"), "axes", DIMS(2, 3));
    outputs(g, "y");
    CHECK_OK(finish(m, "mean-pool", &p));
    CHECK_EQ(count_ops(p, "ReduceMean"), 1);
    end_pass_model(m, p);
}

TEST_MAIN()
