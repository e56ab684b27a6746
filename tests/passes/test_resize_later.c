/* SPDX-License-Identifier: Apache-2.0 */
/* 1×1 convolutions of enlarged images: computed before the Resize where that is less work. */
#include "passes/interpret.h"

enum { SIZES = 1, NEAREST = 2, BIAS = 4, FORMS = 8 };

/* y: x of `channels`, `height` × `width` pixels, as 12 × 10 of them. */
static void enlarge(sn_graph *g, const char *y, const char *x, int64_t channels, int64_t height,
                    int64_t width, int form)
{
    char name[40], ins[80];
    snprintf(name, sizeof name, "to_%s", y);
    if (form & SIZES) {
        const_i64(g, name, DIMS(1, channels, 12, 10));
        snprintf(ins, sizeof ins, "%s _ _ %s", x, name);
    } else {
        sn_value *v = const_f32(g, name, 0, DIMS(4));
        const float scales[] = {1, 1, 12.0f / (float)height, 10.0f / (float)width};
        memcpy(v->fact.data->data, scales, sizeof scales);
        snprintf(ins, sizeof ins, "%s _ %s", x, name);
    }
    sn_node *n = node(g, "Resize", y, ins);
    attr_text(g, n, "mode", form & NEAREST ? "nearest" : "linear");
}

static void pointwise(sn_graph *g, const char *x, int64_t made, int64_t channels, int form)
{
    char ins[40];
    const_f32(g, "w", 0, DIMS(made, channels, 1, 1));
    const_f32(g, "b", 0, DIMS(made));
    snprintf(ins, sizeof ins, "%s w%s", x, form & BIAS ? " b" : "");
    node(g, "Conv", "c", ins);
    node(g, "Relu", "y", "c");
    outputs(g, "y");
}

TEST(a_convolution_of_enlarged_images_side_by_side_is_a_sum)
{
    for (int form = 0; form < FORMS; form++)
        for (int rest = 0; rest < 3; rest++) {
            sn_model *m = image_model(0, 5, 6, 5);
            sn_graph *g = m->graph, *p = NULL;
            typed_input(g, "u", SONDE_DTYPE_F32, DIMS(1, 3, 3, 5));
            typed_input(g, "d", SONDE_DTYPE_F32, DIMS(1, 4, 12, 10));
            typed_input(g, "e", SONDE_DTYPE_F32, DIMS(1, 2, 12, 10));
            enlarge(g, "a", "x", 5, 6, 5, form);
            enlarge(g, "f", "u", 3, 3, 5, form);
            sn_node *n = node(g, "Concat", "all",
                              rest == 0   ? "a f"
                              : rest == 1 ? "a d f"
                                          : "d a e f");
            attr_int(g, n, "axis", rest == 1 ? -3 : 1);
            pointwise(g, "all", 7, rest == 0 ? 8 : rest == 1 ? 12 : 14, form);
            CHECK_OK(finish(m, "resize-later", &p));
            CHECK_EQ(count_ops(p, "Conv"), rest ? 3 : 2);
            CHECK_EQ(count_ops(p, "Add"), rest ? 2 : 1);
            CHECK_EQ(count_ops(p, "Concat"), rest == 2);
            check_same(m, p, 1e-4);
            end_pass_model(m, p);
        }
}

TEST(a_convolution_of_one_enlarged_image_comes_before_it)
{
    for (int form = 0; form < FORMS; form++) {
        sn_model *m = image_model(0, 5, 6, 5);
        sn_graph *g = m->graph, *p = NULL;
        enlarge(g, "a", "x", 5, 6, 5, form);
        pointwise(g, "a", 7, 5, form);
        CHECK_OK(finish(m, "resize-later", &p));
        CHECK_STR(p->first->op_type, "Conv");
        CHECK_EQ(p->n_live_nodes, 3);
        check_same(m, p, 1e-4);
        end_pass_model(m, p);
    }
}

TEST(what_is_read_elsewhere_or_would_be_more_work_stays)
{
    for (int form = 0; form < 3; form++) {
        sn_model *m = image_model(0, 5, 6, 5);
        sn_graph *g = m->graph, *p = NULL;
        enlarge(g, "a", "x", 5, 6, 5, 0);
        if (form == 0)
            outputs(g, "a");
        if (form == 1) { /* a window of nine pixels */
            conv_node(g, "y", "a", 7, 5, 3, NULL);
            outputs(g, "y");
        } else {
            pointwise(g, "a", form == 2 ? 64 : 7, 5, 0); /* many more channels to enlarge */
        }
        CHECK_OK(finish(m, "resize-later", &p));
        CHECK_STR(p->first->op_type, "Resize");
        end_pass_model(m, p);
    }
}

static sonde_status whole(size_t fail_at, sn_model **m, sn_graph **p)
{
    *p = NULL;
    *m = image_model(fail_at, 5, 6, 5);
    if (!*m)
        return build_status;
    sn_graph *g = (*m)->graph;
    const_i64(g, "to", DIMS(1, 5, 12, 10));
    const_f32(g, "w", 0, DIMS(7, 10, 1, 1));
    node(g, "Resize", "a", "x _ _ to");
    node(g, "Resize", "b", "x _ _ to");
    attr_int(g, node(g, "Concat", "c", "a b"), "axis", 1);
    node(g, "Conv", "y", "c w");
    outputs(g, "y");
    if (build_status != SONDE_OK)
        return build_status;
    return finish(*m, NULL, p);
}

TEST(every_failing_allocation_is_reported)
{
    check_failing_allocations(whole);
}

TEST_MAIN()
