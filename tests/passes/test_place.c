/* SPDX-License-Identifier: Apache-2.0 */
/* Memory spaces: with the host alone nothing changes; with a device that is made up, copies stand
 * where its nodes meet the host's. A copy is a Cast to f32 here, which changes nothing. */
#include "passes/place.h"

#include "passes/interpret.h"

enum { DEVICE = SN_SPACE_HOST + 1 };

static bool takes(const sn_node *n)
{
    return sn_node_is(n, "MatMul") || sn_node_is(n, "Relu");
}

#define COPY                                                                                       \
    {                                                                                              \
        .domain = "", .op_type = "Cast", .attribute = "to", .value = SONDE_DTYPE_F32, .opset = 13, \
        .shown_type = "[Copy]"                                                                     \
    }
static const sn_space_row rows[] = {
    {.name = "host", .space = SN_SPACE_HOST, .copy = COPY},
    {.name = "device", .space = DEVICE, .takes = takes, .copy = COPY},
};

static const sn_value *named(const sn_graph *g, const char *name)
{
    for (size_t i = 0; i < g->values.n; i++)
        if (g->values.data[i] && strcmp(g->values.data[i]->name, name) == 0)
            return g->values.data[i];
    return NULL;
}

/* x ► MatMul with a weight ► Reshape ► Relu ► Softmax ► y; the first two rows of the list, or one.
 */
static sonde_status chain(size_t fail_at, size_t n_rows, sn_model **m, sn_graph **p)
{
    uint32_t changes = 0;
    *p = NULL;
    *m = pass_model(fail_at);
    if (!*m)
        return SONDE_OUT_OF_MEMORY;
    sn_graph *g = (*m)->graph;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(4, 6));
    const_f32(g, "w", 0, DIMS(6, 8));
    node(g, "MatMul", "a", "x w");
    const_i64(g, "shape", 2, (int64_t[]){8, 4});
    node(g, "Reshape", "b", "a shape");
    node(g, "Relu", "c", "b");
    node(g, "Softmax", "y", "c");
    outputs(g, "y");
    SN_TRY(build_status);
    SN_TRY(sn_model_finish(*m, &err));
    SN_TRY(ready_copy(*m, p));
    sn_pass_env env = {.ctx = &build_ctx, .buffers = &pass_buffers, .err = &err};
    SN_TRY(sn_place(*p, &env, rows, n_rows, &changes));
    return sn_graph_verify(*p, &err);
}

static sonde_status with_device(size_t fail_at, sn_model **m, sn_graph **p)
{
    return chain(fail_at, 2, m, p);
}

TEST(copies_stand_where_two_spaces_meet)
{
    sn_model *m;
    sn_graph *p;
    CHECK_OK(with_device(0, &m, &p));
    CHECK_EQ(count_ops(p, "Cast"), 2);
    CHECK_STR(p->first->shown_type, "[Copy]");
    CHECK_EQ(p->first->out[0]->fact.form.space, DEVICE);
    CHECK(p->first->in[0].value == named(p, "x"));
    CHECK_EQ(named(p, "x")->fact.form.space, SN_SPACE_HOST);
    CHECK_EQ(named(p, "a")->fact.form.space, DEVICE);
    CHECK_EQ(named(p, "b")->fact.form.space, DEVICE); /* a view lies where its source lies */
    CHECK_EQ(named(p, "c")->fact.form.space, DEVICE);
    CHECK_EQ(named(p, "y")->fact.form.space, SN_SPACE_HOST);
    CHECK(named(p, "a")->producer->in[1].value == named(p, "w")); /* no step copies a weight */
    CHECK_STR(p->last->prev->shown_type, "[Copy]");
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(with_the_host_alone_nothing_changes)
{
    sn_model *m;
    sn_graph *p;
    CHECK_OK(chain(0, 1, &m, &p));
    CHECK_EQ(count_ops(p, "Cast"), 0);
    for (size_t i = 0; i < p->values.n; i++)
        CHECK(!p->values.data[i] || sn_form_is_native(p->values.data[i]->fact.form));
    end_pass_model(m, p);
}

TEST(a_refused_allocation_is_reported)
{
    check_failing_allocations(with_device);
}

TEST_MAIN()
