/* SPDX-License-Identifier: Apache-2.0 */
/* If, Loop and Scan with a hook that interprets bodies node by node: carried values, scan outputs,
 * captures, cancelling, failures inside a body, and the types inference gives them. */
#include "one_node.h"

enum { SLOTS = 16 };

static sn_allocator alloc;
static sn_context ctx;
static sn_arena arena;
static sn_graph *outer;
static sonde_error err;
static sn_slot slots[SLOTS];
static int runs, fail_at_run;
static _Atomic int cancel;

static void begin(void)
{
    memset(slots, 0, sizeof slots);
    sn_allocator_init_system(&alloc);
    sn_arena_init(&arena, &alloc);
    memset(&ctx, 0, sizeof ctx);
    sn_cpu_detect(&ctx.cpu, NULL, NULL);
    ctx.alloc = &alloc;
    runs = fail_at_run = 0;
    cancel = 0;
    if (sn_graph_new(&outer, &arena, &alloc, "outer", NULL, &err))
        test_errors++;
}

static void end(void)
{
    for (int i = 0; i < SLOTS; i++)
        sn_slot_clear(&slots[i]);
    sn_graph_free(outer);
    sn_arena_free(&arena);
    if (alloc.live_bytes)
        test_errors++, fprintf(stderr, "%zu bytes leaked\n", (size_t)alloc.live_bytes);
}

/* ---- building ---- */
static sn_value *value_in(sn_graph *g, sn_dtype dtype, int rank, const sn_dim *dims)
{
    sn_value *v = NULL;
    if (sn_graph_add_value(g, "", &v, &err) || sn_graph_add_input(g, v, &err))
        test_errors++;
    v->fact.type = (sn_type){.kind = SN_KIND_TENSOR, .dtype = dtype, .rank = rank, .dims = dims};
    return v;
}

static sn_value *apply(sn_graph *g, const char *op, sn_value *a, sn_value *b)
{
    sn_node *n;
    sn_value *v;
    if (sn_graph_add_node(g, NULL, "", op, op, b ? 2 : 1, 1, &n, &err) ||
        sn_graph_add_value(g, "", &v, &err)) {
        test_errors++;
        return NULL;
    }
    n->opset = 13;
    n->n_formal_in = n->n_in;
    sn_node_set_input(n, 0, a);
    if (b)
        sn_node_set_input(n, 1, b);
    sn_node_set_output(n, 0, v);
    return v;
}

static sn_graph *body_begin(void)
{
    sn_graph *g = NULL;
    if (sn_graph_new(&g, &arena, &alloc, "body", outer, &err))
        test_errors++;
    return g;
}

static void body_output(sn_graph *g, sn_value *v)
{
    if (sn_graph_add_output(g, v, &err))
        test_errors++;
}

static sn_node *control_node(const char *op, uint32_t n_in, uint32_t n_out)
{
    sn_node *n = NULL;
    if (sn_graph_add_node(outer, NULL, "", op, "flow", n_in, n_out, &n, &err))
        test_errors++;
    n->opset = 16;
    n->n_formal_in = n_in;
    for (uint32_t o = 0; o < n_out; o++) {
        sn_value *v;
        if (sn_graph_add_value(outer, "", &v, &err))
            test_errors++;
        sn_node_set_output(n, o, v);
    }
    return n;
}

static void set_body(sn_node *n, const char *name, sn_graph *body)
{
    sn_attr a = {.name = name, .kind = SN_ATTR_GRAPH, .n = 1, .graph = body};
    if (sn_node_set_attr(outer, n, &a, &err))
        test_errors++;
}

/* ---- running ---- */
static sonde_status interpret(sn_graph *g, sn_slot *values)
{
    sn_graph_each (n, g) {
        const sn_slot *in[4] = {NULL};
        sn_slot out[4] = {{0}};
        for (uint32_t i = 0; i < n->n_in; i++)
            in[i] = n->in[i].value ? &values[n->in[i].value->id] : NULL;
        SN_TRY(sn_eval_node(&ctx, n, in, out, &err));
        for (uint32_t o = 0; o < n->n_out; o++)
            values[n->out[o]->id] = out[o];
    }
    return SONDE_OK;
}

static sonde_status run_body(sn_frame *f, const sn_step *s, uint32_t body, const sn_slot *in,
                             uint32_t n_in, sn_slot *out, uint32_t n_out)
{
    sn_graph *g = (sn_graph *)(uintptr_t)s->bodies[body];
    sn_slot values[32] = {{0}};
    if (++runs == fail_at_run)
        return sn_fail(f->err, SONDE_RUNTIME, "the body failed");
    if (runs == 5)
        cancel |= 2; /* seen only by the test that looks for it */
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < g->inputs.n && !st; i++) {
        const sn_slot *from = i < n_in ? &in[i] : &f->slots[s->in[g->capture_map.data[i - n_in]]];
        st = sn_slot_share(&values[g->inputs.data[i]->id], from, true, &alloc, f->err);
    }
    if (!st)
        st = interpret(g, values);
    for (uint32_t o = 0; o < n_out && !st; o++)
        st = sn_slot_share(&out[o], &values[g->outputs.data[o]->id], true, &alloc, f->err);
    for (int i = 0; i < 32; i++)
        sn_slot_clear(&values[i]);
    return st;
}

/* Inputs are slots 0…, outputs follow them. */
static sonde_status run_node(sn_node *n, const _Atomic int *stop)
{
    static const sn_frame_hooks hooks = {run_body};
    uint32_t in[8], out[8];
    const void *bodies[2];
    uint32_t n_bodies = 0;
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = slots[i].kind == SN_KIND_NONE ? SN_NO_SLOT : i;
    for (uint32_t o = 0; o < n->n_out; o++)
        out[o] = n->n_in + o;
    for (uint32_t a = 0; a < n->n_attrs; a++)
        if (n->attrs[a].kind == SN_ATTR_GRAPH)
            bodies[n_bodies++] = n->attrs[a].graph;
    sn_step step = {.op = n->op,
                    .params = n->params,
                    .node = n,
                    .in = in,
                    .out = out,
                    .n_in = n->n_in,
                    .n_out = n->n_out,
                    .bodies = bodies,
                    .n_bodies = n_bodies};
    sn_frame f = {
        .slots = slots, .ctx = &ctx, .alloc = &alloc, .err = &err, .hooks = &hooks, .cancel = stop};
    return n->op->run(&step, &f);
}

static void set_i64(int slot, int64_t v)
{
    if (sn_slot_new_tensor(&slots[slot], SONDE_DTYPE_I64, NULL, 0, &alloc, &err))
        test_errors++;
    *(int64_t *)slots[slot].t.data = v;
}
static void set_bool(int slot, bool v)
{
    if (sn_slot_new_tensor(&slots[slot], SONDE_DTYPE_BOOL, NULL, 0, &alloc, &err))
        test_errors++;
    *(uint8_t *)slots[slot].t.data = v;
}
static void set_f32(int slot, int64_t n, const float *v)
{
    if (sn_slot_new_tensor(&slots[slot], SONDE_DTYPE_F32, &n, 1, &alloc, &err))
        test_errors++;
    memcpy(slots[slot].t.data, v, (size_t)n * sizeof *v);
}

/* ---- a loop: acc ◄ acc + captured, each sum is also a scan output ---- */
static const sn_dim two = 2;

static sn_node *sum_loop(void)
{
    sn_graph *g = body_begin();
    value_in(g, SONDE_DTYPE_I64, 0, NULL);
    sn_value *go = value_in(g, SONDE_DTYPE_BOOL, 0, NULL);
    sn_value *acc = value_in(g, SONDE_DTYPE_F32, 1, &two);
    sn_value *captured = value_in(g, SONDE_DTYPE_F32, 1, &two);
    g->n_formal_inputs = 3;
    uint32_t outside = 3;
    if (!sn_vec_push(&g->capture_map, &alloc, outside))
        test_errors++;
    sn_value *sum = apply(g, "Add", acc, captured);
    body_output(g, apply(g, "Identity", go, NULL));
    body_output(g, sum);
    body_output(g, apply(g, "Identity", sum, NULL));
    sn_node *n = control_node("Loop", 4, 2);
    n->n_formal_in = 3;
    sn_node_set_input(n, 0, value_in(outer, SONDE_DTYPE_I64, 0, NULL));
    sn_node_set_input(n, 1, value_in(outer, SONDE_DTYPE_BOOL, 0, NULL));
    sn_node_set_input(n, 2, value_in(outer, SONDE_DTYPE_F32, 1, &two));
    sn_node_set_input(n, 3, value_in(outer, SONDE_DTYPE_F32, 1, &two));
    set_body(n, "body", g);
    if (sn_ops_resolve(outer, &err))
        test_errors++, fprintf(stderr, "%s\n", err.message);
    return n;
}

static void set_sum_inputs(int64_t trips)
{
    set_i64(0, trips);
    set_bool(1, true);
    set_f32(2, 2, (float[]){0, 1});
    set_f32(3, 2, (float[]){10, 100});
}

TEST(a_loop_carries_values_and_stacks_scan_outputs)
{
    begin();
    sn_node *n = sum_loop();
    set_sum_inputs(3);
    CHECK_OK(run_node(n, NULL));
    CHECK(IS_F32(&slots[4], 30, 301));
    CHECK(has_shape(&slots[5], SHAPE(3, 2)));
    CHECK(IS_F32(&slots[5], 10, 101, 20, 201, 30, 301));
    end();
}

TEST(a_loop_of_no_trips_gives_initial_values_and_an_empty_stack)
{
    begin();
    sn_node *n = sum_loop();
    CHECK_OK(sn_ops_infer(outer, &err));
    set_sum_inputs(0);
    CHECK_OK(run_node(n, NULL));
    CHECK(IS_F32(&slots[4], 0, 1));
    CHECK(has_shape(&slots[5], SHAPE(0, 2)));
    end();
}

TEST(a_loop_without_a_trip_count_stops_when_cancelled)
{
    begin();
    sn_node *n = sum_loop();
    set_sum_inputs(0);
    sn_slot_clear(&slots[0]);
    CHECK_EQ(run_node(n, &cancel), SONDE_CANCELLED);
    CHECK_EQ(runs, 5);
    end();
}

TEST(a_failing_body_leaves_nothing_behind)
{
    for (int k = 1; k <= 3; k++) {
        begin();
        sn_node *n = sum_loop();
        set_sum_inputs(3);
        fail_at_run = k;
        CHECK_EQ(run_node(n, NULL), SONDE_RUNTIME);
        end();
    }
}

TEST(every_failing_allocation_in_a_loop_is_reported_and_leaks_nothing)
{
    begin();
    sn_node *n = sum_loop();
    set_sum_inputs(9);
    size_t base = alloc.live_bytes;
    for (size_t room = 0; room < 40000; room += 64) {
        alloc.limit_bytes = base + room;
        sonde_status st = run_node(n, NULL);
        sn_slot_clear(&slots[4]);
        sn_slot_clear(&slots[5]);
        CHECK(st == SONDE_OK || st == SONDE_OUT_OF_MEMORY);
        CHECK_EQ(alloc.live_bytes, base);
    }
    alloc.limit_bytes = 0;
    CHECK_OK(run_node(n, NULL));
    end();
}

TEST(inference_keeps_what_an_iteration_keeps)
{
    begin();
    sn_node *n = sum_loop();
    CHECK_OK(sn_ops_infer(outer, &err));
    const sn_type *acc = &n->out[0]->fact.type, *stack = &n->out[1]->fact.type;
    CHECK(acc->rank == 1 && acc->dims[0] == 2);
    CHECK(stack->rank == 2 && !sn_dim_known(stack->dims[0]) && stack->dims[1] == 2);
    end();
}

TEST(inference_forgets_a_dim_that_grows_in_the_body)
{
    begin();
    sn_graph *g = body_begin();
    value_in(g, SONDE_DTYPE_I64, 0, NULL);
    sn_value *go = value_in(g, SONDE_DTYPE_BOOL, 0, NULL),
             *acc = value_in(g, SONDE_DTYPE_F32, 1, &two);
    g->n_formal_inputs = 3;
    body_output(g, apply(g, "Identity", go, NULL));
    sn_value *twice = apply(g, "Concat", acc, acc);
    sn_attr axis = {.name = "axis", .kind = SN_ATTR_INT, .n = 1, .i = 0};
    CHECK_OK(sn_node_set_attr(g, twice->producer, &axis, &err));
    body_output(g, twice);
    sn_node *n = control_node("Loop", 3, 1);
    sn_node_set_input(n, 0, value_in(outer, SONDE_DTYPE_I64, 0, NULL));
    sn_node_set_input(n, 2, value_in(outer, SONDE_DTYPE_F32, 1, &two));
    set_body(n, "body", g);
    CHECK_OK(sn_ops_resolve(outer, &err));
    CHECK_OK(sn_ops_infer(outer, &err));
    CHECK(n->out[0]->fact.type.rank == 1 && !sn_dim_known(n->out[0]->fact.type.dims[0]));
    set_i64(0, 3);
    set_f32(2, 2, (float[]){7, 8});
    CHECK_OK(run_node(n, NULL));
    CHECK(has_shape(&slots[3], SHAPE(16)));
    end();
}

TEST(an_if_runs_the_branch_by_name_not_by_order)
{
    for (int taken = 0; taken < 2; taken++) {
        begin();
        sn_node *n = control_node("If", 2, 1);
        n->n_formal_in = 1;
        static const char *const names[2] = {"else_branch", "then_branch"};
        static const char *const ops[2] = {"Neg", "Identity"};
        for (int k = 0; k < 2; k++) {
            sn_graph *g = body_begin();
            sn_value *x = value_in(g, SONDE_DTYPE_F32, 1, &two);
            uint32_t outside = 1;
            g->n_formal_inputs = 0;
            CHECK(sn_vec_push(&g->capture_map, &alloc, outside));
            body_output(g, apply(g, ops[k], x, NULL));
            set_body(n, names[k], g);
        }
        sn_node_set_input(n, 0, value_in(outer, SONDE_DTYPE_BOOL, 0, NULL));
        sn_node_set_input(n, 1, value_in(outer, SONDE_DTYPE_F32, 1, &two));
        CHECK_OK(sn_ops_resolve(outer, &err));
        set_bool(0, taken);
        set_f32(1, 2, (float[]){1, 2});
        CHECK_OK(run_node(n, NULL));
        CHECK(taken ? IS_F32(&slots[2], 1, 2) : IS_F32(&slots[2], -1, -2));
        end();
    }
}

TEST(a_scan_may_read_and_write_backwards)
{
    begin();
    sn_graph *g = body_begin();
    sn_value *state = value_in(g, SONDE_DTYPE_F32, 0, NULL),
             *x = value_in(g, SONDE_DTYPE_F32, 0, NULL);
    g->n_formal_inputs = 2;
    sn_value *sum = apply(g, "Add", state, x);
    body_output(g, sum);
    body_output(g, apply(g, "Identity", sum, NULL));
    sn_node *n = control_node("Scan", 2, 2);
    static const sn_dim three = 3;
    static const int64_t one = 1;
    sn_node_set_input(n, 0, value_in(outer, SONDE_DTYPE_F32, 0, NULL));
    sn_node_set_input(n, 1, value_in(outer, SONDE_DTYPE_F32, 1, &three));
    set_body(n, "body", g);
    sn_attr count = {.name = "num_scan_inputs", .kind = SN_ATTR_INT, .n = 1, .i = 1};
    sn_attr in = {.name = "scan_input_directions", .kind = SN_ATTR_INTS, .n = 1, .ints = &one};
    sn_attr out = {.name = "scan_output_directions", .kind = SN_ATTR_INTS, .n = 1, .ints = &one};
    CHECK_OK(sn_node_set_attr(outer, n, &count, &err));
    CHECK_OK(sn_node_set_attr(outer, n, &in, &err));
    CHECK_OK(sn_node_set_attr(outer, n, &out, &err));
    CHECK_OK(sn_ops_resolve(outer, &err));
    CHECK_OK(sn_ops_infer(outer, &err));
    CHECK(n->out[1]->fact.type.rank == 1 && n->out[1]->fact.type.dims[0] == 3);
    CHECK_OK(sn_slot_new_tensor(&slots[0], SONDE_DTYPE_F32, NULL, 0, &alloc, &err));
    *(float *)slots[0].t.data = 0;
    set_f32(1, 3, (float[]){1, 10, 100});
    CHECK_OK(run_node(n, NULL));
    CHECK(IS_F32(&slots[2], 111));
    CHECK(IS_F32(&slots[3], 111, 110, 100));
    end();
}

TEST(a_body_s_inputs_cannot_be_left_out)
{
    static const char *const ops[] = {"SequenceMap", "Scan"};
    for (size_t k = 0; k < 2; k++) {
        begin();
        sn_graph *g = body_begin();
        sn_value *a = value_in(g, SONDE_DTYPE_F32, 0, NULL);
        (void)value_in(g, SONDE_DTYPE_F32, 0, NULL);
        (void)value_in(g, SONDE_DTYPE_F32, 0, NULL);
        g->n_formal_inputs = 3;
        body_output(g, apply(g, "Identity", a, NULL));
        sn_node *n = control_node(ops[k], 3, 1);
        n->opset = 17;
        sn_node_set_input(n, 0, value_in(outer, SONDE_DTYPE_F32, 0, NULL));
        sn_node_set_input(n, 2, value_in(outer, SONDE_DTYPE_F32, 0, NULL));
        set_body(n, "body", g);
        sn_attr count = {.name = "num_scan_inputs", .kind = SN_ATTR_INT, .n = 1, .i = 1};
        CHECK_OK(sn_node_set_attr(outer, n, &count, &err));
        CHECK_EQ(sn_ops_resolve(outer, &err), SONDE_INVALID_MODEL);
        CHECK_HAS(err.message, "input 1 is missing");
        end();
    }
}

TEST_MAIN()
