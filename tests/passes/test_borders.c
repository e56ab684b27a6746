/* SPDX-License-Identifier: Apache-2.0 */
/* Borders that meet: a change of type and a change of layout are one step, with the same numbers,
 * and no change of layout undoes another. */
#include "passes/interpret.h"

static void cast(sn_graph *g, const char *out, const char *in, sn_dtype to)
{
    attr_int(g, node(g, "Cast", out, in), "to", to);
}

/* x ► f16 ► two convolutions ► f32 ► y, the conversions being the file's; their weights too. */
static sonde_status convs(size_t fail_at, sn_model **m, sn_graph **p)
{
    *p = NULL;
    *m = image_model(fail_at, 32, 6, 50);
    if (!*m)
        return SONDE_OUT_OF_MEMORY;
    sn_graph *g = (*m)->graph;
    const_f32(g, "w1", 0, DIMS(32, 32, 3, 3));
    const_f32(g, "w2", 0, DIMS(20, 32, 1, 1));
    cast(g, "h", "x", SONDE_DTYPE_F16);
    cast(g, "v1", "w1", SONDE_DTYPE_F16);
    cast(g, "v2", "w2", SONDE_DTYPE_F16);
    node(g, "Conv", "a", "h v1");
    node(g, "Conv", "b", "a v2");
    cast(g, "y", "b", SONDE_DTYPE_F32);
    outputs(g, "y");
    return build_status ? build_status : finish(*m, NULL, p);
}

static uint32_t shown(const sn_graph *g, const char *type)
{
    uint32_t n = 0;
    for (const sn_node *at = g->first; at; at = at->next)
        n += strcmp(at->shown_type, type) == 0;
    return n;
}

TEST(type_and_layout_change_in_one_step)
{
    sn_model *m;
    sn_graph *p, *apart = NULL;
    CHECK_OK(convs(0, &m, &p));
    CHECK_OK(ready_copy(m, &apart));
    const char *off = "merge-borders";
    sn_pass_env env = {.ctx = &build_ctx,
                       .cpu_flags = pass_cpu_flags,
                       .buffers = &pass_buffers,
                       .err = &err,
                       .precision = SONDE_PRECISION_F32};
    CHECK_OK(sn_passes_run(apart, &env, &off, 1, false));
    CHECK_EQ(shown(apart, "[Convert]"), 2);
    CHECK_EQ(shown(apart, "[Reorder]"), 2);
    CHECK_EQ(shown(p, "[Convert]"), 0);
    CHECK_EQ(shown(p, "[Reorder]"), 2);
    CHECK_EQ(shown(p, "Cast"), 2); /* the file's stay, they are there to round */
    for (const sn_node *n = p->first; n; n = n->next)
        if (strcmp(n->shown_type, "[Reorder]") == 0) {
            CHECK_STR(n->name, "");
            CHECK(n->n_origins > 0);
            CHECK(n->in[0].value->fact.type.dtype != n->out[0]->fact.type.dtype);
        }
    sn_slot one[8], two[8];
    memset(one, 0, sizeof one);
    memset(two, 0, sizeof two);
    CHECK_OK(interpret(p, 7, one));
    CHECK_OK(interpret(apart, 7, two));
    CHECK_EQ(one[0].t.bytes, two[0].t.bytes);
    CHECK(memcmp(one[0].t.data, two[0].t.data, one[0].t.bytes) == 0);
    sn_slot_clear(&one[0]);
    sn_slot_clear(&two[0]);
    sn_graph_free(apart);
    end_pass_model(m, p);
}

TEST(a_conversion_that_others_read_stays)
{
    sn_model *m = image_model(0, 32, 6, 5);
    sn_graph *g = m->graph, *p = NULL;
    const_f32(g, "w", 0, DIMS(32, 32, 1, 1));
    cast(g, "h", "x", SONDE_DTYPE_F16);
    cast(g, "v", "w", SONDE_DTYPE_F16);
    node(g, "Conv", "a", "h v");
    sn_node *soft = node(g, "Softmax", "s", "h"); /* plain, of the same f32 */
    attr_int(g, soft, "axis", -1);
    cast(g, "y", "a", SONDE_DTYPE_F32);
    cast(g, "z", "s", SONDE_DTYPE_F32);
    outputs(g, "y z");
    CHECK_OK(finish(m, NULL, &p));
    CHECK_EQ(shown(p, "[Convert]"), 2); /* of h, and of s */
    check_same(m, p, 2e-3);
    end_pass_model(m, p);
}

TEST(a_refused_allocation_is_reported)
{
    check_failing_allocations(convs);
}

/* A value that some want plain and some in blocks is reordered once, from where it was made. */
TEST(no_reorder_undoes_another)
{
    sn_model *m = image_model(0, 32, 6, 5);
    sn_graph *g = m->graph, *p = NULL;
    conv_node(g, "a", "x", 32, 32, 3, NULL);
    sn_node *soft = node(g, "Softmax", "s", "a"); /* wants it plain */
    attr_int(g, soft, "axis", -1);
    node(g, "Relu", "r", "a");
    conv_node(g, "b", "r", 32, 32, 3, NULL);
    conv_node(g, "c", "a", 32, 32, 3, NULL);
    conv_node(g, "d", "x", 32, 32, 1, NULL);
    outputs(g, "a b c d s x");
    CHECK_OK(finish(m, NULL, &p));
    for (const sn_node *n = p->first; n; n = n->next) {
        const sn_node *before = n->n_in && n->in[0].value ? n->in[0].value->producer : NULL;
        CHECK(!(n->border && before && before->border));
    }
    CHECK_EQ(shown(p, "[Reorder]"), 5); /* x; a for all who want it plain; b, c and d */
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST_MAIN()
