/* SPDX-License-Identifier: Apache-2.0 */
/* The registry, resolution, inference of whole graphs, and evaluation. */
#include "failing_alloc.h"
#include "one_node.h"

#include "ops/framework/attributes.h"

static sn_value *add_value(one_node *c, const char *name)
{
    sn_value *v = NULL;
    if (sn_graph_add_value(c->g, name, &v, &c->err) != SONDE_OK)
        abort();
    return v;
}

static sn_node *add_node(one_node *c, const char *domain, const char *type, const char *name,
                         int opset, sn_value *x, sn_value *y)
{
    sn_node *n = NULL;
    if (sn_graph_add_node(c->g, NULL, domain, type, name, x ? 1 : 0, 1, &n, &c->err) != SONDE_OK)
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
    one_node c;
    node_begin_graph(&c);
    sn_value *x = add_value(&c, "x");
    add_node(&c, "com.foo", "Bar", "first", 1, x, add_value(&c, "a"));
    add_node(&c, "com.foo", "Bar", "second", 1, x, add_value(&c, "b"));
    add_node(&c, "", "Gelu", "early", 12, x, add_value(&c, "c"));
    add_node(&c, "", "Relu", "fine", 13, x, add_value(&c, "d"));
    CHECK_EQ(sn_ops_resolve(c.g, &c.err), SONDE_UNSUPPORTED);
    CHECK_HAS(c.err.message,
              "unsupported operators: com.foo.Bar (2 nodes, first 'first'), Gelu opset 12 "
              "(1 node, first 'early')");
    node_end(&c);
}

TEST(a_thousand_unknown_operators_still_make_one_sentence)
{
    one_node c;
    node_begin_graph(&c);
    sn_value *x = add_value(&c, "x");
    for (int i = 0; i < 1000; i++) {
        char *name = sn_arena_printf(&c.arena, "Unknown%d", i);
        add_node(&c, "", name, name, 13, x, add_value(&c, sn_arena_printf(&c.arena, "y%d", i)));
    }
    CHECK_EQ(sn_ops_resolve(c.g, &c.err), SONDE_UNSUPPORTED);
    const char *end = strstr(c.err.message, ") \xE2\x80\xA6 and at least ");
    CHECK(end != NULL);
    CHECK(end && strcmp(end + strlen(end) - 5, " more") == 0);
    node_end(&c);
}

TEST(unsupported_operators_with_long_names_are_listed_whole)
{
    one_node c;
    char name[160], item[400];
    int listed = 0;
    node_begin_graph(&c);
    sn_value *x = add_value(&c, "x");
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "%0130dName%d", i, i);
        add_node(&c, "", sn_arena_strdup(&c.arena, name), "n", 13, x,
                 add_value(&c, sn_arena_printf(&c.arena, "y%d", i)));
    }
    CHECK_EQ(sn_ops_resolve(c.g, &c.err), SONDE_UNSUPPORTED);
    for (; listed < 20; listed++) {
        snprintf(item, sizeof item, "%0130dName%d (1 node, first 'n')", listed, listed);
        if (!strstr(c.err.message, item))
            break;
    }
    CHECK(listed > 2);
    snprintf(item, sizeof item, "(1 node, first 'n') \xE2\x80\xA6 and %d more", 20 - listed);
    CHECK_HAS(c.err.message, item);
    node_end(&c);
}

TEST(missing_and_superfluous_inputs_are_refused)
{
    one_node c;
    node_begin(&c, "Add", 14, 1, 1);
    node_f32(&c, 0, SHAPE(1), 1);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "input 1 is required");
    node_end(&c);
    node_begin(&c, "Relu", 14, 2, 1);
    node_f32(&c, 0, SHAPE(1), 1);
    node_f32(&c, 1, SHAPE(1), 1);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "at most 1");
    node_end(&c);
}

TEST(attributes_of_the_wrong_kind_are_refused)
{
    one_node c;
    node_begin(&c, "LeakyRelu", 16, 1, 1);
    node_f32(&c, 0, SHAPE(1), -1);
    node_int(&c, "alpha", 1);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "attribute 'alpha' is an int, expected a float");
    node_end(&c);
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
                                   const char *name, sonde_error *err)
{
    one_node c;
    const sn_log log = {SN_LOG_WARN, keep_line, NULL};
    const sn_attr a = {.name = name, .kind = SN_ATTR_INT, .n = 1, .i = 1};
    node_begin_graph(&c);
    sn_node *n = add_node(&c, domain, type, "it", opset, add_value(&c, "x"), add_value(&c, "y"));
    logged[0] = 0;
    sonde_status st = sn_node_set_attr(c.g, n, &a, err);
    if (st == SONDE_OK)
        st = sn_ops_resolve(c.g, err);
    if (st == SONDE_OK)
        st = sn_ops_check_attributes(c.g, &log, err);
    node_end(&c);
    return st;
}

TEST(an_unknown_attribute_of_a_newer_opset_is_refused)
{
    sonde_error err;
    CHECK_EQ(with_attribute("", "Relu", SN_NEWEST_OPSET + 1, "leak", &err), SONDE_UNSUPPORTED);
    CHECK_HAS(err.message, "node 'it' (Relu): attribute 'leak' is unknown to this version");
    CHECK_OK(with_attribute("", "Identity", SN_NEWEST_OPSET + 1, "__leak", &err));
    CHECK_HAS(logged, "this version supports up to");
}

TEST(an_unknown_attribute_of_a_known_opset_is_logged)
{
    sonde_error err;
    CHECK_OK(with_attribute("", "Relu", 13, "leak", &err));
    CHECK_HAS(logged, "node 'it' (Relu): attribute 'leak' is unknown and is ignored");
    CHECK_OK(with_attribute("", "Relu", 1, "consumed_inputs", &err));
    CHECK_STR(logged, "");
}

TEST(an_unknown_attribute_of_com_microsoft_is_refused_as_it_has_no_versions)
{
    sonde_error err;
    CHECK_EQ(with_attribute("com.microsoft", "Gelu", 1, "leak", &err), SONDE_UNSUPPORTED);
    CHECK_HAS(err.message, "attribute 'leak'");
}

TEST(attributes_that_the_descriptor_names_are_known)
{
    one_node c;
    node_begin_graph(&c);
    const sn_op own = {.name = "Own", .domain = "com.microsoft", .attributes = "axis keep"};
    sn_node *n =
        add_node(&c, "com.microsoft", "Own", "it", 1, add_value(&c, "x"), add_value(&c, "y"));
    n->op = &own;
    const sn_attr keep = {.name = "keep", .kind = SN_ATTR_INT, .n = 1};
    NODE_CHECK(&c, sn_node_set_attr(c.g, n, &keep, &c.err));
    NODE_CHECK(&c, sn_ops_check_attributes(c.g, NULL, &c.err));
    const sn_attr kee = {.name = "kee", .kind = SN_ATTR_INT, .n = 1};
    NODE_CHECK(&c, sn_node_set_attr(c.g, n, &kee, &c.err));
    CHECK_EQ(sn_ops_check_attributes(c.g, NULL, &c.err), SONDE_UNSUPPORTED);
    CHECK_HAS(c.err.message, "attribute 'kee' is unknown");
    node_end(&c);
}

TEST(an_unknown_attribute_inside_a_body_is_seen)
{
    one_node c;
    node_begin_graph(&c);
    sn_node *n = add_node(&c, "", "Identity", "outer", SN_NEWEST_OPSET + 1, add_value(&c, "x"),
                          add_value(&c, "y"));
    sn_graph *body = NULL;
    NODE_CHECK(&c, sn_graph_new(&body, &c.arena, &c.alloc, "body", NULL, &c.err));
    sn_node *inner = NULL;
    NODE_CHECK(&c, sn_graph_add_node(body, NULL, "", "Relu", "inner", 0, 0, &inner, &c.err));
    inner->opset = SN_NEWEST_OPSET + 1;
    const sn_attr leak = {.name = "leak", .kind = SN_ATTR_INT, .n = 1};
    const sn_attr graph = {.name = "__body", .kind = SN_ATTR_GRAPH, .n = 1, .graph = body};
    NODE_CHECK(&c, sn_node_set_attr(body, inner, &leak, &c.err));
    NODE_CHECK(&c, sn_node_set_attr(c.g, n, &graph, &c.err));
    CHECK_EQ(sn_ops_check_attributes(c.g, NULL, &c.err), SONDE_UNSUPPORTED);
    CHECK_HAS(c.err.message, "node 'inner' (Relu)");
    node_end(&c);
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
    one_node c;
    node_begin(&c, "Relu", 14, 1, 1);
    node_f32(&c, 0, SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    NODE_CHECK(&c, node_prepare(&c));
    const sn_dim partly[] = {sn_dim_symbol(1), SN_DIM_UNKNOWN}, declared[] = {SN_DIM_UNKNOWN, 3};
    c.n->in[0].value->fact.type.dims = partly;
    c.n->out[0]->fact.type =
        (sn_type){.kind = SN_KIND_TENSOR, .dtype = SONDE_DTYPE_F32, .rank = 2, .dims = declared};
    NODE_CHECK(&c, sn_op_infer_node(c.g, c.n, &c.err));
    const sn_type *t = &c.n->out[0]->fact.type;
    CHECK(t->dims[0] == sn_dim_symbol(1) && t->dims[1] == 3);
    node_end(&c);
}

TEST(declared_shapes_that_are_wrong_give_way_and_wrong_types_are_refused)
{
    one_node c;
    node_begin(&c, "Relu", 14, 1, 1);
    node_f32(&c, 0, SHAPE(2), 1, 2);
    NODE_CHECK(&c, node_prepare(&c));
    const sn_dim wrong[] = {3};
    c.n->out[0]->fact.type =
        (sn_type){.kind = SN_KIND_TENSOR, .dtype = SONDE_DTYPE_F32, .rank = 1, .dims = wrong};
    sn_type *t = &c.n->out[0]->fact.type;
    NODE_CHECK(&c, sn_op_infer_node(c.g, c.n, &c.err));
    CHECK(t->rank == 1 && t->dims[0] == 2);
    t->rank = 0;
    NODE_CHECK(&c, sn_op_infer_node(c.g, c.n, &c.err));
    CHECK(t->rank == 1 && t->dims[0] == 2);
    t->dtype = SONDE_DTYPE_I64;
    CHECK_EQ(sn_op_infer_node(c.g, c.n, &c.err), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "'y0'");
    CHECK_HAS(c.err.message, "int64");
    node_end(&c);
}

TEST(inputs_of_unknown_type_are_tensors_of_unknown_rank)
{
    one_node c;
    node_begin_graph(&c);
    sn_value *x = add_value(&c, "x"), *y = add_value(&c, "y");
    add_node(&c, "", "Sigmoid", "s", 13, x, y);
    NODE_CHECK(&c, sn_ops_resolve(c.g, &c.err));
    NODE_CHECK(&c, sn_ops_infer(c.g, &c.err));
    CHECK_EQ(y->fact.type.kind, SN_KIND_TENSOR);
    CHECK_EQ(y->fact.type.rank, -1);
    node_end(&c);
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

TEST(evaluation_survives_every_failing_allocation)
{
    one_node c;
    node_begin(&c, "Cast", 13, 1, 1);
    node_f32(&c, 0, SHAPE(3), 1, 2, 3);
    node_int(&c, "to", SONDE_DTYPE_STRING);
    NODE_CHECK(&c, node_prepare(&c));
    const sn_slot *in[1] = {&c.in[0]};
    bool done = false;
    for (size_t k = 0; k < 100 && !done; k++) {
        failing_alloc f;
        sn_context ctx = c.ctx;
        ctx.alloc = failing_init(&f);
        f.fail_at = (long)k;
        sn_slot out = {0};
        sonde_status st = sn_eval_node(&ctx, c.n, in, &out, &c.err);
        done = st == SONDE_OK;
        CHECK(done || st == SONDE_OUT_OF_MEMORY);
        sn_slot_clear(&out);
        CHECK_EQ(f.live, 0);
    }
    CHECK(done);
    node_end(&c);
}

TEST_MAIN()
