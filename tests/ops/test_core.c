/* SPDX-License-Identifier: Apache-2.0 */
/* The registry, resolution, inference of whole graphs, and evaluation. */
#include "op_test.h"

#include "ops/framework/attributes.h"

static sn_value *add_value(const char *name)
{
    sn_value *v = NULL;
    if (sn_graph_add_value(op.g, name, &v, &err) != SONDE_OK)
        abort();
    return v;
}

static sn_node *add_node(const char *domain, const char *type, const char *name, int opset,
                         sn_value *x, sn_value *y)
{
    sn_node *n = NULL;
    if (sn_graph_add_node(op.g, NULL, domain, type, name, x ? 1 : 0, 1, &n, &err) != SONDE_OK)
        abort();
    n->opset = opset;
    if (x)
        sn_node_set_input(n, 0, x);
    sn_node_set_output(n, 0, y);
    return n;
}

TEST(every_row_is_found_by_its_own_name_and_versions)
{
    bool other;
    size_t rows = 0;
    for (const sn_op *row; (row = sn_op_row(rows)); rows++) {
        int16_t last = 0;
        for (const sn_op *o = row; o->name; o++) {
            CHECK_MSG(sn_op_find(o->domain, o->name, o->since, &other) == o, "%s %d", o->name,
                      o->since);
            CHECK_MSG(strcmp(o->name, row->name) == 0 && o->since > last, "%s", o->name);
            CHECK_MSG(o->infer && o->run && o->types, "%s", o->name);
            CHECK_MSG(o->until == 0 || o->until >= o->since, "%s", o->name);
            last = o->until ? o->until : INT16_MAX;
        }
    }
    CHECK(rows > 80);
}

TEST(an_unknown_version_is_told_from_an_unknown_operator)
{
    bool other = true;
    CHECK(!sn_op_find("", "NoSuchOperator", 13, &other));
    CHECK(!other);
    CHECK(!sn_op_find("", "Gelu", 12, &other));
    CHECK(other);
    CHECK(!sn_op_find("com.example", "Relu", 13, &other));
    CHECK(!other);
}

TEST(all_unsupported_operators_are_listed_at_once)
{
    op_begin("", 0);
    sn_value *x = add_value("x");
    add_node("com.foo", "Bar", "first", 1, x, add_value("a"));
    add_node("com.foo", "Bar", "second", 1, x, add_value("b"));
    add_node("", "Gelu", "early", 12, x, add_value("c"));
    add_node("", "Relu", "fine", 13, x, add_value("d"));
    CHECK_EQ(sn_ops_resolve(op.g, &err), SONDE_UNSUPPORTED);
    CHECK_HAS(err.message,
              "unsupported operators: com.foo.Bar (2 nodes, first 'first'), Gelu opset 12 "
              "(1 node, first 'early')");
    op_end();
}

TEST(a_thousand_unknown_operators_still_make_one_sentence)
{
    op_begin("", 0);
    sn_value *x = add_value("x");
    for (int i = 0; i < 1000; i++) {
        char *name = sn_arena_printf(&op.arena, "Unknown%d", i);
        add_node("", name, name, 13, x, add_value(sn_arena_printf(&op.arena, "y%d", i)));
    }
    CHECK_EQ(sn_ops_resolve(op.g, &err), SONDE_UNSUPPORTED);
    CHECK_HAS(err.message, "and more");
    op_end();
}

TEST(missing_and_superfluous_inputs_are_refused)
{
    op_begin("Add", 14);
    op_f32("1", 1);
    CHECK_EQ(op_run(1), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "input 1 is required");
    op_end();
    op_begin("Relu", 14);
    op_f32("1", 1);
    op_f32("1", 1);
    CHECK_EQ(op_run(1), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "at most 1");
    op_end();
}

TEST(attributes_of_the_wrong_kind_are_refused)
{
    op_begin("LeakyRelu", 16);
    op_f32("1", -1);
    op_int("alpha", 1);
    CHECK_EQ(op_run(1), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "attribute 'alpha' is an int, expected a float");
    op_end();
}

static char logged[2000];

static void keep_line(void *user, sn_log_level level, const char *line)
{
    (void)user;
    (void)level;
    const size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%s\n", line);
}

/* A node of one input with an int attribute of this name, looked at as when a session is made. */
static sonde_status with_attribute(const char *domain, const char *type, int opset,
                                   const char *name)
{
    const sn_log log = {SN_LOG_WARN, keep_line, NULL};
    const sn_attr a = {.name = name, .kind = SN_ATTR_INT, .n = 1, .i = 1};
    op_begin("", 0);
    sn_node *n = add_node(domain, type, "it", opset, add_value("x"), add_value("y"));
    logged[0] = 0;
    sonde_status st = sn_node_set_attr(op.g, n, &a, &err);
    if (st == SONDE_OK)
        st = sn_ops_resolve(op.g, &err);
    if (st == SONDE_OK)
        st = sn_ops_check_attributes(op.g, &log, &err);
    op_end();
    return st;
}

TEST(an_unknown_attribute_of_a_newer_opset_is_refused)
{
    CHECK_EQ(with_attribute("", "Relu", SN_NEWEST_OPSET + 1, "leak"), SONDE_UNSUPPORTED);
    CHECK_HAS(err.message, "node 'it' (Relu): attribute 'leak' is not known to this version");
    CHECK_OK(with_attribute("", "Identity", SN_NEWEST_OPSET + 1, "__leak"));
    CHECK_HAS(logged, "this version knows up to");
}

TEST(an_unknown_attribute_of_a_known_opset_is_logged)
{
    CHECK_OK(with_attribute("", "Relu", 13, "leak"));
    CHECK_HAS(logged, "node 'it' (Relu): attribute 'leak' is not known and is left out");
    CHECK_OK(with_attribute("", "Relu", 1, "consumed_inputs"));
    CHECK_STR(logged, "");
}

TEST(an_unknown_attribute_of_com_microsoft_is_refused_as_it_has_no_versions)
{
    CHECK_EQ(with_attribute("com.microsoft", "Gelu", 1, "leak"), SONDE_UNSUPPORTED);
    CHECK_HAS(err.message, "attribute 'leak'");
}

TEST(an_unknown_attribute_inside_a_body_is_seen)
{
    op_begin("", 0);
    sn_node *n =
        add_node("", "Identity", "outer", SN_NEWEST_OPSET + 1, add_value("x"), add_value("y"));
    sn_graph *body = NULL;
    CHECK_OK(sn_graph_new(&body, &op.arena, &op.alloc, "body", NULL, &err));
    sn_node *inner = NULL;
    CHECK_OK(sn_graph_add_node(body, NULL, "", "Relu", "inner", 0, 0, &inner, &err));
    inner->opset = SN_NEWEST_OPSET + 1;
    const sn_attr leak = {.name = "leak", .kind = SN_ATTR_INT, .n = 1};
    const sn_attr graph = {.name = "__body", .kind = SN_ATTR_GRAPH, .n = 1, .graph = body};
    CHECK_OK(sn_node_set_attr(body, inner, &leak, &err));
    CHECK_OK(sn_node_set_attr(op.g, n, &graph, &err));
    CHECK_EQ(sn_ops_check_attributes(op.g, NULL, &err), SONDE_UNSUPPORTED);
    CHECK_HAS(err.message, "node 'inner' (Relu)");
    op_end();
}

/* It is searched by halves. */
TEST(the_table_of_attributes_is_sorted)
{
    static const char *const keys[] = {
    /* a blank sorts before what a longer domain goes on with */
#define SN_ATTRIBUTES(domain, op_type, names) domain " " op_type,
#include "ops/framework/attributes.inc"
#undef SN_ATTRIBUTES
    };
    for (size_t i = 1; i < sizeof keys / sizeof keys[0]; i++)
        CHECK_MSG(strcmp(keys[i - 1], keys[i]) < 0, "%s", keys[i]);
}

TEST(declared_types_and_inferred_ones_are_merged)
{
    op_begin("Relu", 14);
    op_f32("2 3", 1, 2, 3, 4, 5, 6);
    CHECK_OK(op_make(1));
    const sn_dim partly[] = {sn_dim_symbol(1), SN_DIM_UNKNOWN}, declared[] = {SN_DIM_UNKNOWN, 3};
    op.node->in[0].value->fact.type.dims = partly;
    op.node->out[0]->fact.type =
        (sn_type){.kind = SN_KIND_TENSOR, .dtype = SONDE_DTYPE_F32, .rank = 2, .dims = declared};
    CHECK_OK(sn_op_infer_node(op.g, op.node, &err));
    const sn_type *t = &op.node->out[0]->fact.type;
    CHECK(t->dims[0] == sn_dim_symbol(1) && t->dims[1] == 3);
    op_end();
}

TEST(declared_shapes_that_are_wrong_give_way_and_wrong_types_are_refused)
{
    op_begin("Relu", 14);
    op_f32("2", 1, 2);
    CHECK_OK(op_make(1));
    const sn_dim wrong[] = {3};
    op.node->out[0]->fact.type =
        (sn_type){.kind = SN_KIND_TENSOR, .dtype = SONDE_DTYPE_F32, .rank = 1, .dims = wrong};
    sn_type *t = &op.node->out[0]->fact.type;
    CHECK_OK(sn_op_infer_node(op.g, op.node, &err));
    CHECK(t->rank == 1 && t->dims[0] == 2);
    t->rank = 0;
    CHECK_OK(sn_op_infer_node(op.g, op.node, &err));
    CHECK(t->rank == 1 && t->dims[0] == 2);
    t->dtype = SONDE_DTYPE_I64;
    CHECK_EQ(sn_op_infer_node(op.g, op.node, &err), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "'y0'");
    CHECK_HAS(err.message, "int64");
    op_end();
}

TEST(inputs_of_unknown_type_are_tensors_of_unknown_rank)
{
    op_begin("", 0);
    sn_value *x = add_value("x"), *y = add_value("y");
    add_node("", "Sigmoid", "s", 13, x, y);
    CHECK_OK(sn_ops_resolve(op.g, &err));
    CHECK_OK(sn_ops_infer(op.g, &err));
    CHECK_EQ(y->fact.type.kind, SN_KIND_TENSOR);
    CHECK_EQ(y->fact.type.rank, -1);
    op_end();
}

TEST(dims_add_and_multiply_around_what_is_unknown)
{
    sn_dim n = sn_dim_symbol(2);
    CHECK_EQ(sn_dim_add(n, 0), n);
    CHECK_EQ(sn_dim_mul(1, n), n);
    CHECK_EQ(sn_dim_mul(n, 0), 0);
    CHECK(!sn_dim_known(sn_dim_add(n, 1)));
    CHECK(!sn_dim_known(sn_dim_mul(INT64_MAX, 2)));
    CHECK_EQ(sn_dim_add(-3, 5), 2);
}

/* Refuses the k-th allocation. */
typedef struct failing {
    sn_allocator system;
    size_t left;
} failing;
static void *failing_alloc(sn_allocator *self, size_t bytes)
{
    failing *f = self->user;
    if (f->left == 0)
        return NULL;
    f->left--;
    return f->system.alloc(&f->system, bytes);
}
static void failing_free(sn_allocator *self, void *ptr, size_t bytes)
{
    failing *f = self->user;
    f->system.free(&f->system, ptr, bytes);
}

TEST(evaluation_survives_every_failing_allocation)
{
    op_begin("Cast", 13);
    op_f32("3", 1, 2, 3);
    op_int("to", SONDE_DTYPE_STRING);
    CHECK_OK(op_make(1));
    const sn_slot *in[1] = {&op.in[0]};
    bool done = false;
    for (size_t k = 0; k < 100 && !done; k++) {
        failing f;
        sn_allocator a = {.alloc = failing_alloc, .free = failing_free, .user = &f};
        sn_allocator_init_system(&f.system);
        f.left = k;
        sn_context ctx = op.ctx;
        ctx.alloc = &a;
        sn_slot out = {0};
        sonde_status st = sn_eval_node(&ctx, op.node, in, &out, &err);
        done = st == SONDE_OK;
        CHECK(done || st == SONDE_OUT_OF_MEMORY);
        sn_slot_clear(&out);
        CHECK_EQ(a.live_bytes, 0);
    }
    CHECK(done);
    op_end();
}

TEST_MAIN()
