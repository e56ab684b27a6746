/* SPDX-License-Identifier: Apache-2.0 */
/* Means and maxima over the spatial dims of an image: which ones become pooling. */
#include "passes/interpret.h"

enum { CHANNELS = 20 };

/* A reduction behind a convolution, or behind Relu. */
typedef struct reduce_case {
    const char *op_type;
    int rank;
    bool keep, attribute, plain;
} reduce_case;

static sn_model *reduce_model(const reduce_case *c, int count, const int64_t *axes)
{
    static const int64_t dims[] = {2, 16, 6, 5, 4}, filters[] = {CHANNELS, 16, 1, 1, 1};
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph;
    typed_input(g, "x", SONDE_DTYPE_F32, c->rank, dims);
    const_f32(g, "w", 0, c->rank, filters);
    if (c->plain)
        node(g, "Relu", "a", "x");
    else
        node(g, "Conv", "a", "x w");
    if (!c->attribute)
        const_i64(g, "axes", count, axes);
    sn_node *n = node(g, c->op_type, "reduced", c->attribute ? "a" : "a axes");
    n->opset = c->attribute ? 13 : 18;
    if (c->attribute)
        attr_ints(g, n, "axes", count, axes);
    attr_int(g, n, "keepdims", c->keep);
    node(g, "Relu", "y", "reduced");
    outputs(g, "y");
    return m;
}

static void becomes(const reduce_case *c, const char *pool, const char *view, int count,
                    const int64_t *axes)
{
    for (int blocked = 0; blocked < 2; blocked++) {
        const char *const names[] = {"reduce-pool", blocked ? "blocked-layout" : NULL, NULL};
        sn_model *m = reduce_model(c, count, axes);
        sn_graph *p = with_passes(m, names);
        if (!p)
            return;
        CHECK_EQ(count_ops(p, c->op_type), 0);
        CHECK_EQ(count_ops(p, pool), 1);
        CHECK_EQ(count_ops(p, view), c->keep ? 0 : 1);
        check_same(m, p, 1e-5);
        end_pass_model(m, p);
    }
}

TEST(reductions_over_all_spatial_dims_become_global_pools)
{
    for (int i = 0; i < 4; i++) {
        reduce_case mean = {"ReduceMean", 4, i & 1, i & 2, false};
        reduce_case max = {"ReduceMax", 4, i & 1, i & 2, false};
        becomes(&mean, "GlobalAveragePool", "Flatten", DIMS(-1, 2));
        becomes(&max, "GlobalMaxPool", "Flatten", DIMS(2, 3));
        mean.rank = max.rank = 3;
        becomes(&mean, "GlobalAveragePool", "Flatten", DIMS(2));
        becomes(&max, "GlobalMaxPool", "Flatten", DIMS(-1));
        mean.rank = max.rank = 5;
        becomes(&mean, "GlobalAveragePool", "Flatten", DIMS(2, 3, 4));
        becomes(&max, "GlobalMaxPool", "Flatten", DIMS(4, 2, 3));
    }
}

TEST(reductions_over_some_spatial_dims_become_pools_of_their_size)
{
    for (int i = 0; i < 4; i++) {
        reduce_case mean = {"ReduceMean", 4, i & 1, i & 2, false};
        reduce_case max = {"ReduceMax", 4, i & 1, i & 2, false};
        becomes(&mean, "AveragePool", "Squeeze", DIMS(2));
        becomes(&max, "MaxPool", "Squeeze", DIMS(-1));
        mean.rank = max.rank = 5;
        becomes(&mean, "AveragePool", "Squeeze", DIMS(2, 4));
        becomes(&max, "MaxPool", "Squeeze", DIMS(3));
    }
}

TEST(a_mean_over_all_dims_of_an_image_becomes_a_pool_wherever_it_comes_from)
{
    const reduce_case mean = {"ReduceMean", 4, true, true, true};
    becomes(&mean, "GlobalAveragePool", "Flatten", DIMS(2, 3));
}

static void stays(const reduce_case *c, int count, const int64_t *axes)
{
    sn_model *m = reduce_model(c, count, axes);
    sn_graph *p = NULL;
    CHECK_OK(finish(m, "reduce-pool", &p));
    CHECK_EQ(count_ops(p, c->op_type), 1);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(reductions_over_other_dims_stay)
{
    const reduce_case mean = {"ReduceMean", 4, true, true, false};
    stays(&mean, DIMS(1, 2, 3));
    stays(&mean, DIMS(1, 2));
    stays(&mean, DIMS(2, 2));
}

TEST(reductions_of_what_lies_plain_stay)
{
    const reduce_case mean = {"ReduceMean", 3, true, true, true};
    const reduce_case max = {"ReduceMax", 4, true, true, true};
    stays(&mean, DIMS(2));
    stays(&max, DIMS(2, 3));
    stays(&max, DIMS(3));
}

TEST(a_mean_of_doubles_stays)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F64, DIMS(1, 3, 4, 4));
    attr_ints(g, node(g, "ReduceMean", "y", "x"), "axes", DIMS(2, 3));
    outputs(g, "y");
    CHECK_OK(finish(m, "reduce-pool", &p));
    CHECK_EQ(count_ops(p, "ReduceMean"), 1);
    end_pass_model(m, p);
}

TEST_MAIN()
