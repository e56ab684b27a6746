/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise operators: values worked out by hand at the places where implementations differ. */
#include "op_test.h"

#include "compute/levels.h"

#include "ops/shared/data_movement.h"
#include "ops/shared/elementwise.h"

TEST(add_broadcasts_in_both_directions)
{
    op_begin("Add", 14);
    op_f32("2 1", 1, 2);
    op_f32("3", 10, 20, 30);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "2 3", 11, 21, 31, 12, 22, 32);
    op_end();
}

TEST(add_of_channels_and_rows_collapses_to_the_same_numbers)
{
    op_begin("Mul", 14);
    op_f32("1 2 1 2", 1, 2, 3, 4);
    op_f32("2 1 1", 10, 100);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "1 2 1 2", 10, 20, 300, 400);
    op_end();
}

TEST(old_broadcasting_lines_up_with_an_axis)
{
    op_begin("Add", 6);
    op_f32("2 3 1", 1, 2, 3, 4, 5, 6);
    op_f32("3", 10, 20, 30);
    op_int("broadcast", 1);
    op_int("axis", 1);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "2 3 1", 11, 22, 33, 14, 25, 36);
    op_end();
}

TEST(empty_tensors_give_empty_results)
{
    op_begin("Sub", 14);
    op_input(SONDE_DTYPE_F32, "0 3");
    op_f32("3", 1, 2, 3);
    CHECK_OK(op_run(1));
    CHECK(op_has_shape(0, "0 3"));
    op_end();
}

TEST(shapes_that_do_not_broadcast_are_refused)
{
    op_begin("Add", 14);
    op_f32("2", 1, 2);
    op_f32("3", 1, 2, 3);
    CHECK_EQ(op_run(1), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "node 'it' (Add)");
    CHECK_HAS(err.message, "broadcast");
    op_end();
}

TEST(integer_division_truncates_and_survives_zero_and_overflow)
{
    op_begin("Div", 14);
    OP_INPUT(I32, int32_t, "4", -7, 7, 5, INT32_MIN);
    OP_INPUT(I32, int32_t, "4", 2, -2, 0, -1);
    CHECK_OK(op_run(1));
    CHECK_OUT(0, I32, int32_t, "4", -3, -3, 0, INT32_MIN);
    op_end();
}

TEST(integers_wrap)
{
    op_begin("Mul", 14);
    OP_INPUT(U16, uint16_t, "1", 65535);
    OP_INPUT(U16, uint16_t, "1", 65535);
    CHECK_OK(op_run(1));
    CHECK_OUT(0, U16, uint16_t, "1", 1);
    op_end();
    op_begin("Add", 14);
    OP_INPUT(I64, int64_t, "1", INT64_MAX);
    OP_INPUT(I64, int64_t, "1", 1);
    CHECK_OK(op_run(1));
    CHECK_OUT(0, I64, int64_t, "1", INT64_MIN);
    op_end();
}

TEST(mod_takes_the_sign_of_the_divisor_and_fmod_of_the_dividend)
{
    op_begin("Mod", 13);
    op_i64("4", -4, 7, 5, -5);
    op_i64("4", 3, -3, 0, 5);
    CHECK_OK(op_run(1));
    CHECK_OUT(0, I64, int64_t, "4", 2, -2, 0, 0);
    op_end();
    op_begin("Mod", 13);
    op_int("fmod", 1);
    op_f32("2", -4.5f, 4.5f);
    op_f32("2", 2, -2);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "2", -0.5f, 0.5f);
    op_end();
}

TEST(pow_mixes_element_types)
{
    op_begin("Pow", 15);
    OP_INPUT(I32, int32_t, "3", 2, 3, -2);
    op_f32("3", 3.0f, 2.5f, 3.0f);
    CHECK_OK(op_run(1));
    CHECK_OUT(0, I32, int32_t, "3", 8, 15, -8);
    op_end();
    op_begin("Pow", 15);
    op_f32("3", 1.5f, -3, 2);
    op_i64("", 2);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "3", 2.25f, 9, 4);
    op_end();
}

TEST(maximum_keeps_nan_and_takes_any_number_of_inputs)
{
    op_begin("Max", 13);
    op_f32("3", 1, NAN, -5);
    op_f32("1", 0);
    op_f32("2 1", -1, 7);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "2 3", 1, NAN, 0, 7, NAN, 7);
    op_end();
}

TEST(mean_of_small_inputs_fills_the_broadcast_shape)
{
    op_begin("Mean", 13);
    op_f32("1", 1);
    op_f32("1", 2);
    op_f32("2", 3, 6);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "2", 2, 3);
    op_end();
}

TEST(half_precision_is_computed_in_f32_and_rounded_once)
{
    op_begin("Add", 14);
    OP_INPUT(F16, uint16_t, "2", sn_f32_to_f16(2048.0f), sn_f32_to_f16(0.5f));
    OP_INPUT(F16, uint16_t, "1", sn_f32_to_f16(1.0f));
    CHECK_OK(op_run(1));
    CHECK_OUT(0, F16, uint16_t, "2", sn_f32_to_f16(2048.0f), sn_f32_to_f16(1.5f));
    op_end();
}

TEST(comparison_of_strings_is_by_bytes)
{
    const sonde_string a[] = {{"one", 3}, {"two", 3}}, b[] = {{"two", 3}};
    int64_t two = 2, one = 1;
    op_begin("Equal", 19);
    CHECK_OK(sn_slot_new_strings(&op.in[0], &two, 1, a, &op.alloc, &err));
    CHECK_OK(sn_slot_new_strings(&op.in[1], &one, 1, b, &op.alloc, &err));
    op.has[0] = op.has[1] = true;
    op.n_in = 2;
    CHECK_OK(op_run(1));
    CHECK_OUT(0, BOOL, uint8_t, "2", 0, 1);
    op_end();
}

TEST(shift_by_the_width_gives_zero)
{
    op_begin("BitShift", 11);
    op_string("direction", "LEFT");
    OP_INPUT(U8, uint8_t, "3", 1, 255, 3);
    OP_INPUT(U8, uint8_t, "3", 7, 4, 8);
    CHECK_OK(op_run(1));
    CHECK_OUT(0, U8, uint8_t, "3", 128, 240, 0);
    op_end();
}

TEST(signed_shifts_bring_in_the_sign_and_drop_what_leaves)
{
    op_begin("BitShift", 28);
    op_string("direction", "LEFT");
    OP_INPUT(I8, int8_t, "6", -1, 64, 3, -128, 5, 5);
    OP_INPUT(I8, int8_t, "6", 1, 1, 7, 1, 8, -1);
    CHECK_OK(op_run(1));
    CHECK_OUT(0, I8, int8_t, "6", -2, -128, -128, 0, 0, 0);
    op_end();
    op_begin("BitShift", 28);
    op_string("direction", "RIGHT");
    OP_INPUT(I8, int8_t, "7", -1, -128, 127, -5, -5, 5, 5);
    OP_INPUT(I8, int8_t, "7", 1, 7, 3, 8, -1, 8, -1);
    CHECK_OK(op_run(1));
    CHECK_OUT(0, I8, int8_t, "7", -1, -1, 15, -1, -1, 0, 0);
    op_end();
    op_begin("BitShift", 28);
    op_string("direction", "RIGHT");
    op_i64("4", INT64_MIN, INT64_MIN, 7, -7);
    op_i64("4", 63, 64, 1, 1);
    CHECK_OK(op_run(1));
    CHECK_OUT(0, I64, int64_t, "4", -1, -1, 3, -4);
    op_end();
}

TEST(mod_of_floats_takes_the_sign_of_the_divisor_even_for_zero)
{
    op_begin("Mod", 28);
    op_f32("11", -4.5f, 4.5f, 0.0f, -0.0f, 6, 3, -3, 3, INFINITY, 1, -1e-8f);
    op_f32("11", 2, -2, -3, 3, -3, INFINITY, INFINITY, -INFINITY, 2, 0, 2);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "11", 1.5f, -1.5f, 0, 0, 0, 3, INFINITY, -INFINITY, NAN, NAN, 2);
    const float *y = op_out(0);
    CHECK(signbit(y[2]) && !signbit(y[3]) && signbit(y[4]));
    op_end();
}

TEST(swiglu_is_swish_times_the_other_half)
{
    op_begin("SwiGLU", 28);
    op_f32("4", -2, 0, 1, 3);
    op_f32("4", 1, 5, -2, 0.5f);
    CHECK_OK(op_run(1));
    CHECK_F32_NEAR(0, "4", 1e-6, -0.23840587f, 0, -1.4621172f, 1.4288611f);
    op_end();
    op_begin("SwiGLU", 28);
    op_float("alpha", 0.5f);
    op_f32("4", -2, 0, 1, 3);
    op_f32("4", 1, 5, -2, 0.5f);
    CHECK_OK(op_run(1));
    CHECK_F32_NEAR(0, "4", 1e-6, -0.5378828f, 0, -1.2449187f, 1.2263618f);
    op_end();
    op_begin("SwiGLU", 28);
    OP_INPUT(F64, double, "2", 1, 3);
    OP_INPUT(F64, double, "2", -2, 0.5);
    CHECK_OK(op_run(1));
    CHECK(fabs(((const double *)op_out(0))[0] + 2 / (1 + exp(-1.0))) < 1e-12);
    op_end();
}

TEST(swiglu_does_not_broadcast)
{
    op_begin("SwiGLU", 28);
    op_f32("2 2", 1, 2, 3, 4);
    op_f32("2", 1, 2);
    CHECK_EQ(op_run(1), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "different shapes");
    op_end();
    op_begin("SwiGLU", 28);
    op_f32("2", 1, 2);
    OP_INPUT(F64, double, "2", 1, 2);
    CHECK_EQ(op_run(1), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "element types");
    op_end();
}

TEST(where_broadcasts_three_ways)
{
    op_begin("Where", 16);
    OP_INPUT(BOOL, uint8_t, "2 1", 1, 0);
    op_i64("2", 1, 2);
    op_i64("", -1);
    CHECK_OK(op_run(1));
    CHECK_OUT(0, I64, int64_t, "2 2", 1, 2, -1, -1);
    op_end();
}

TEST(clip_keeps_nan_and_lets_the_upper_bound_win)
{
    op_begin("Clip", 13);
    op_f32("4", -3, 0.5f, 9, NAN);
    op_f32("", 2);
    op_f32("", 1);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "4", 1, 1, 1, NAN);
    op_end();
    op_begin("Clip", 13);
    OP_INPUT(I8, int8_t, "3", -100, 5, 100);
    op_absent();
    OP_INPUT(I8, int8_t, "", 50);
    CHECK_OK(op_run(1));
    CHECK_OUT(0, I8, int8_t, "3", -100, 5, 50);
    op_end();
}

TEST(round_goes_to_even)
{
    op_begin("Round", 11);
    op_f32("5", 0.5f, 1.5f, 2.5f, -0.5f, -1.5f);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "5", 0, 2, 2, -0.0f, -2);
    op_end();
}

TEST(activations_match_their_formulas)
{
    static const struct {
        const char *type;
        int opset;
        double (*f)(double);
    } cases[] = {{"Tanh", 13, tanh},  {"Erf", 13, erf},      {"Exp", 13, exp},     {"Sin", 7, sin},
                 {"Atanh", 9, atanh}, {"Softplus", 1, NULL}, {"Sigmoid", 13, NULL}};
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        op_begin(cases[c].type, cases[c].opset);
        float *x = op_input(SONDE_DTYPE_F32, "1001");
        for (int i = 0; i <= 1000; i++)
            x[i] = (float)(i - 500) / 501.0f;
        CHECK_OK(op_run(1));
        const float *y = op_out(0);
        for (int i = 0; i <= 1000; i++) {
            double v = (double)x[i];
            double want = cases[c].f                              ? cases[c].f(v)
                          : strcmp(cases[c].type, "Sigmoid") == 0 ? 1 / (1 + exp(-v))
                                                                  : log1p(exp(v));
            CHECK_MSG(fabs((double)y[i] - want) <= 3e-7 * (fabs(want) + 1e-30),
                      "%s(%g) = %.9g, not %.9g", cases[c].type, v, (double)y[i], want);
        }
        op_end();
    }
}

TEST(gelu_keeps_its_absolute_error_and_its_sign)
{
    op_begin("Gelu", 20);
    float *x = op_input(SONDE_DTYPE_F32, "4001");
    for (int i = 0; i <= 4000; i++)
        x[i] = (float)(i - 2000) / 200.0f;
    CHECK_OK(op_run(1));
    const float *y = op_out(0);
    for (int i = 0; i <= 4000; i++) {
        const double v = (double)x[i], want = 0.5 * v * erfc(-v / sqrt(2.0));
        CHECK_MSG(fabs((double)y[i] - want) <= 2.4e-7 * fmax(1.0, fabs(v)),
                  "gelu(%g) = %.9g, not %.9g", v, (double)y[i], want);
        CHECK(i < 2000 ? y[i] <= 0.0f : y[i] >= 0.0f);
    }
    CHECK(y[0] == 0.0f && y[2000] == 0.0f && y[4000] == 10.0f);
    op_end();
}

TEST(a_nan_comes_out_of_every_function_but_those_that_compare)
{
    static const char *const types[] = {
        "Relu",        "LeakyRelu",  "Elu",       "Selu",    "Celu",  "ThresholdedRelu",
        "HardSigmoid", "Tanh",       "HardSwish", "Sigmoid", "Mish",  "Softplus",
        "Softsign",    "Swish",      "Erf",       "Exp",     "Log",   "Sqrt",
        "Gelu",        "Reciprocal", "Abs",       "Neg",     "Sign",  "Ceil",
        "Floor",       "Round",      "Sin",       "Cos",     "Tan",   "Asin",
        "Acos",        "Atan",       "Sinh",      "Cosh",    "Asinh", "Clip",
        "Acosh",       "Atanh",      "Shrink"};
    static const sn_dtype dtypes[] = {SONDE_DTYPE_F32, SONDE_DTYPE_F64, SONDE_DTYPE_F16,
                                      SONDE_DTYPE_BF16};
    enum { N = 37 }; /* whole vectors and a rest */
    for (const level *l = levels(); l->name; l++)
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
            for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
                op_begin(types[t], 24);
                op.ctx.cpu.flags = l->flags;
                void *x = op_input(dtypes[d], "37");
                for (int i = 0; i < N; i++)
                    sn_elem_set_f64(dtypes[d], x, i, i % 2 ? -NAN : NAN);
                CHECK_OK(op_run(1));
                const bool compares =
                    strcmp(types[t], "ThresholdedRelu") == 0 || strcmp(types[t], "Shrink") == 0;
                for (int i = 0; i < N; i++) {
                    const double y = sn_elem_f64(dtypes[d], op_out(0), i);
                    CHECK_MSG(compares ? y == 0 : isnan(y), "%s of %s, %s: element %d is %g",
                              types[t], sn_dtype_name(dtypes[d]), l->name, i, y);
                }
                op_end();
            }
}

TEST(is_inf_tells_the_signs_apart)
{
    op_begin("IsInf", 20);
    op_int("detect_negative", 0);
    op_f32("4", INFINITY, -INFINITY, NAN, 1);
    CHECK_OK(op_run(1));
    CHECK_OUT(0, BOOL, uint8_t, "4", 1, 0, 0, 0);
    op_end();
}

TEST(wrong_element_types_are_named)
{
    op_begin("Sigmoid", 13);
    op_i64("1", 3);
    CHECK_EQ(op_run(1), SONDE_UNSUPPORTED);
    CHECK_HAS(err.message, "int64");
    op_end();
    op_begin("Add", 14);
    op_i64("1", 3);
    op_f32("1", 3);
    CHECK_EQ(op_run(1), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "different element types");
    op_end();
}

/* ------------------------------------------------------------------ values through inference */
static const sn_dim *inferred_ints(void)
{
    op.node->in[0].value->fact.data = &op.in[0].t;
    if (op.n_in > 1)
        op.node->in[1].value->fact.data = &op.in[1].t;
    return sn_op_infer_node(op.g, op.node, &err) == SONDE_OK ? op.node->out[0]->fact.ints : NULL;
}

TEST(small_integers_flow_through_arithmetic)
{
    op_begin("Mul", 14);
    op_i64("3", 2, 3, 4);
    op_i64("1", 10);
    CHECK_OK(op_make(1));
    const sn_dim *v = inferred_ints();
    CHECK(v && v[0] == 20 && v[1] == 30 && v[2] == 40);
    op_end();
    op_begin("Equal", 13);
    op_i64("2", -1, 3);
    op_i64("1", -1);
    CHECK_OK(op_make(1));
    v = inferred_ints();
    CHECK(v && v[0] == 1 && v[1] == 0);
    op_end();
}

TEST(symbols_survive_where_the_number_does_not_matter)
{
    op_begin("Mul", 14);
    op_i64("2", 0, 0);
    op_i64("2", 1, 2);
    CHECK_OK(op_make(1));
    const sn_dim symbolic[] = {sn_dim_symbol(1), sn_dim_symbol(1)};
    op.node->in[0].value->fact.ints = symbolic;
    op.node->in[0].value->fact.n_ints = 2;
    op.node->in[1].value->fact.data = &op.in[1].t;
    CHECK_OK(sn_op_infer_node(op.g, op.node, &err));
    const sn_dim *v = op.node->out[0]->fact.ints;
    CHECK(v && v[0] == sn_dim_symbol(1) && !sn_dim_known(v[1]));
    op_end();
}

/* ------------------------------------------------------------------ layouts and large sizes */
TEST(blocked_tensors_run_over_their_memory_and_keep_zero_padding)
{
    op_begin("Sigmoid", 13);
    op_input(SONDE_DTYPE_F32, "1 3 1 2");
    CHECK_OK(op_make(1));
    /* The same tensor in blocks of 8: [1][1][2][8]. */
    float x[16] = {0}, y[16];
    for (int i = 0; i < 6; i++)
        x[i / 3 * 8 + i % 3] = (float)(i - 3);
    sn_fact in = op.node->in[0].value->fact, out = in;
    in.block = out.block = 8;
    const sn_fact *ins[1] = {&in};
    sn_bind b = {.node = op.node,
                 .params = op.node->params,
                 .in = ins,
                 .out = &out,
                 .n_in = 1,
                 .n_out = 1,
                 .ctx = &op.ctx,
                 .cpu_flags = op.ctx.cpu.flags,
                 .threads = 1,
                 .arena = &op.arena,
                 .err = &err,
                 .run = op.node->op->run};
    CHECK_OK(op.node->op->bind(&b));
    sn_slot slots[2] = {
        {.kind = SN_KIND_TENSOR, .t = {.dtype = SONDE_DTYPE_F32, .block = 8, .data = x}},
        {.kind = SN_KIND_TENSOR, .t = {.dtype = SONDE_DTYPE_F32, .block = 8, .data = y}}};
    const uint32_t at[2] = {0, 1};
    sn_step s = {.run = b.run,
                 .params = op.node->params,
                 .bound = b.bound,
                 .in = at,
                 .out = at + 1,
                 .n_in = 1,
                 .n_out = 1,
                 .op = op.node->op,
                 .node = op.node};
    sn_frame f = {.slots = slots, .ctx = &op.ctx, .alloc = &op.alloc, .err = &err};
    CHECK_OK(s.run(&s, &f));
    for (int i = 0; i < 16; i++) {
        double want = i % 8 < 3 ? 1.0 / (1.0 + exp(-(double)x[i])) : 0.0;
        CHECK_MSG(fabs((double)y[i] - want) < 1e-6, "element %d: %g, not %g", i, (double)y[i],
                  want);
    }
    op_end();
}

TEST(large_work_splits_over_threads_without_changing_a_bit)
{
    enum { ROWS = 173, COLS = 1031 };
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK_OK(sn_pool_create(&pool, 4, &alloc, &err));
    float *a = malloc(sizeof(float) * ROWS * COLS), *one = malloc(sizeof(float) * ROWS * COLS);
    float *many = malloc(sizeof(float) * ROWS * COLS), b[COLS];
    for (int i = 0; i < ROWS * COLS; i++)
        a[i] = test_randf();
    for (int i = 0; i < COLS; i++)
        b[i] = test_randf();
    sn_elt e;
    sn_bcast plan;
    const int64_t out[] = {ROWS, COLS}, row[] = {COLS};
    const int64_t *dims[] = {out, row};
    const int ranks[] = {2, 1};
    sn_bcast_plan(&plan, out, 2, 2, dims, ranks);
    CHECK(sn_binary_get(&e, SN_BINARY_SUB, SONDE_DTYPE_F32, 0));
    sn_binary_run(&e, &plan, one, a, b, NULL, NULL);
    sn_binary_run(&e, &plan, many, a, b, NULL, pool);
    CHECK(memcmp(one, many, sizeof(float) * ROWS * COLS) == 0);
    CHECK(one[5 * COLS + 7] == a[5 * COLS + 7] - b[7]);
    sn_pool_free(pool);
    free(a);
    free(one);
    free(many);
}

TEST_MAIN()
