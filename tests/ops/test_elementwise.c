/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise operators: values worked out by hand at the places where implementations differ. */
#include "one_node.h"

#include "compute/levels.h"

#include "ops/shared/data_movement.h"
#include "ops/shared/elementwise.h"

TEST(add_broadcasts_in_both_directions)
{
    one_node c;
    node_begin(&c, "Add", 14, 2, 1);
    node_f32(&c, 0, SHAPE(2, 1), 1, 2);
    node_f32(&c, 1, SHAPE(3), 10, 20, 30);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(2, 3), 11, 21, 31, 12, 22, 32);
    node_end(&c);
}

TEST(add_of_channels_and_rows_collapses_to_the_same_numbers)
{
    one_node c;
    node_begin(&c, "Mul", 14, 2, 1);
    node_f32(&c, 0, SHAPE(1, 2, 1, 2), 1, 2, 3, 4);
    node_f32(&c, 1, SHAPE(2, 1, 1), 10, 100);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(1, 2, 1, 2), 10, 20, 300, 400);
    node_end(&c);
}

TEST(old_broadcasting_lines_up_with_an_axis)
{
    one_node c;
    node_begin(&c, "Add", 6, 2, 1);
    node_f32(&c, 0, SHAPE(2, 3, 1), 1, 2, 3, 4, 5, 6);
    node_f32(&c, 1, SHAPE(3), 10, 20, 30);
    node_int(&c, "broadcast", 1);
    node_int(&c, "axis", 1);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(2, 3, 1), 11, 22, 33, 14, 25, 36);
    node_end(&c);
}

TEST(empty_tensors_give_empty_results)
{
    one_node c;
    node_begin(&c, "Sub", 14, 2, 1);
    node_room(&c, 0, SONDE_DTYPE_F32, SHAPE(0, 3));
    node_f32(&c, 1, SHAPE(3), 1, 2, 3);
    NODE_CHECK(&c, node_run(&c));
    CHECK(has_shape(&c.out[0], SHAPE(0, 3)));
    node_end(&c);
}

TEST(shapes_that_do_not_broadcast_are_refused)
{
    one_node c;
    node_begin(&c, "Add", 14, 2, 1);
    node_f32(&c, 0, SHAPE(2), 1, 2);
    node_f32(&c, 1, SHAPE(3), 1, 2, 3);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "node 'it' (Add)");
    CHECK_HAS(c.err.message, "broadcast");
    node_end(&c);
}

TEST(integer_division_truncates_and_survives_zero_and_overflow)
{
    one_node c;
    node_begin(&c, "Div", 14, 2, 1);
    NODE_INPUT(&c, 0, I32, int32_t, SHAPE(4), -7, 7, 5, INT32_MIN);
    NODE_INPUT(&c, 1, I32, int32_t, SHAPE(4), 2, -2, 0, -1);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, I32, int32_t, SHAPE(4), -3, -3, 0, INT32_MIN);
    node_end(&c);
}

TEST(integers_wrap)
{
    one_node c;
    node_begin(&c, "Mul", 14, 2, 1);
    NODE_INPUT(&c, 0, U16, uint16_t, SHAPE(1), 65535);
    NODE_INPUT(&c, 1, U16, uint16_t, SHAPE(1), 65535);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, U16, uint16_t, SHAPE(1), 1);
    node_end(&c);
    node_begin(&c, "Add", 14, 2, 1);
    NODE_INPUT(&c, 0, I64, int64_t, SHAPE(1), INT64_MAX);
    NODE_INPUT(&c, 1, I64, int64_t, SHAPE(1), 1);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, I64, int64_t, SHAPE(1), INT64_MIN);
    node_end(&c);
}

TEST(mod_takes_the_sign_of_the_divisor_and_fmod_of_the_dividend)
{
    one_node c;
    node_begin(&c, "Mod", 13, 2, 1);
    node_i64(&c, 0, SHAPE(4), -4, 7, 5, -5);
    node_i64(&c, 1, SHAPE(4), 3, -3, 0, 5);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, I64, int64_t, SHAPE(4), 2, -2, 0, 0);
    node_end(&c);
    node_begin(&c, "Mod", 13, 2, 1);
    node_int(&c, "fmod", 1);
    node_f32(&c, 0, SHAPE(2), -4.5f, 4.5f);
    node_f32(&c, 1, SHAPE(2), 2, -2);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(2), -0.5f, 0.5f);
    node_end(&c);
}

TEST(pow_mixes_element_types)
{
    one_node c;
    node_begin(&c, "Pow", 15, 2, 1);
    NODE_INPUT(&c, 0, I32, int32_t, SHAPE(3), 2, 3, -2);
    node_f32(&c, 1, SHAPE(3), 3.0f, 2.5f, 3.0f);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, I32, int32_t, SHAPE(3), 8, 15, -8);
    node_end(&c);
    node_begin(&c, "Pow", 15, 2, 1);
    node_f32(&c, 0, SHAPE(3), 1.5f, -3, 2);
    node_i64(&c, 1, SCALAR, 2);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(3), 2.25f, 9, 4);
    node_end(&c);
}

TEST(maximum_keeps_nan_and_takes_any_number_of_inputs)
{
    one_node c;
    node_begin(&c, "Max", 13, 3, 1);
    node_f32(&c, 0, SHAPE(3), 1, NAN, -5);
    node_f32(&c, 1, SHAPE(1), 0);
    node_f32(&c, 2, SHAPE(2, 1), -1, 7);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(2, 3), 1, NAN, 0, 7, NAN, 7);
    node_end(&c);
}

TEST(mean_of_small_inputs_fills_the_broadcast_shape)
{
    one_node c;
    node_begin(&c, "Mean", 13, 3, 1);
    node_f32(&c, 0, SHAPE(1), 1);
    node_f32(&c, 1, SHAPE(1), 2);
    node_f32(&c, 2, SHAPE(2), 3, 6);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(2), 2, 3);
    node_end(&c);
}

TEST(half_precision_is_computed_in_f32_and_rounded_once)
{
    one_node c;
    node_begin(&c, "Add", 14, 2, 1);
    NODE_INPUT(&c, 0, F16, uint16_t, SHAPE(2), sn_f32_to_f16(2048.0f), sn_f32_to_f16(0.5f));
    NODE_INPUT(&c, 1, F16, uint16_t, SHAPE(1), sn_f32_to_f16(1.0f));
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, F16, uint16_t, SHAPE(2), sn_f32_to_f16(2048.0f), sn_f32_to_f16(1.5f));
    node_end(&c);
}

TEST(comparison_of_strings_is_by_bytes)
{
    const sonde_string a[] = {{"one", 3}, {"two", 3}}, b[] = {{"two", 3}};
    one_node c;
    node_begin(&c, "Equal", 19, 2, 1);
    node_tensor(&c, 0, SONDE_DTYPE_STRING, SHAPE(2), a);
    node_tensor(&c, 1, SONDE_DTYPE_STRING, SHAPE(1), b);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, BOOL, uint8_t, SHAPE(2), 0, 1);
    node_end(&c);
}

TEST(shift_by_the_width_gives_zero)
{
    one_node c;
    node_begin(&c, "BitShift", 11, 2, 1);
    node_text(&c, "direction", "LEFT");
    NODE_INPUT(&c, 0, U8, uint8_t, SHAPE(3), 1, 255, 3);
    NODE_INPUT(&c, 1, U8, uint8_t, SHAPE(3), 7, 4, 8);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, U8, uint8_t, SHAPE(3), 128, 240, 0);
    node_end(&c);
}

TEST(signed_shifts_bring_in_the_sign_and_drop_what_leaves)
{
    one_node c;
    node_begin(&c, "BitShift", 28, 2, 1);
    node_text(&c, "direction", "LEFT");
    NODE_INPUT(&c, 0, I8, int8_t, SHAPE(6), -1, 64, 3, -128, 5, 5);
    NODE_INPUT(&c, 1, I8, int8_t, SHAPE(6), 1, 1, 7, 1, 8, -1);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, I8, int8_t, SHAPE(6), -2, -128, -128, 0, 0, 0);
    node_end(&c);
    node_begin(&c, "BitShift", 28, 2, 1);
    node_text(&c, "direction", "RIGHT");
    NODE_INPUT(&c, 0, I8, int8_t, SHAPE(7), -1, -128, 127, -5, -5, 5, 5);
    NODE_INPUT(&c, 1, I8, int8_t, SHAPE(7), 1, 7, 3, 8, -1, 8, -1);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, I8, int8_t, SHAPE(7), -1, -1, 15, -1, -1, 0, 0);
    node_end(&c);
    node_begin(&c, "BitShift", 28, 2, 1);
    node_text(&c, "direction", "RIGHT");
    node_i64(&c, 0, SHAPE(4), INT64_MIN, INT64_MIN, 7, -7);
    node_i64(&c, 1, SHAPE(4), 63, 64, 1, 1);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, I64, int64_t, SHAPE(4), -1, -1, 3, -4);
    node_end(&c);
}

TEST(mod_of_floats_takes_the_sign_of_the_divisor_even_for_zero)
{
    one_node c;
    node_begin(&c, "Mod", 28, 2, 1);
    node_f32(&c, 0, SHAPE(11), -4.5f, 4.5f, 0.0f, -0.0f, 6, 3, -3, 3, INFINITY, 1, -1e-8f);
    node_f32(&c, 1, SHAPE(11), 2, -2, -3, 3, -3, INFINITY, INFINITY, -INFINITY, 2, 0, 2);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(11), 1.5f, -1.5f, 0, 0, 0, 3, INFINITY, -INFINITY, NAN, NAN, 2);
    const float *y = c.out[0].t.data;
    CHECK(signbit(y[2]) && !signbit(y[3]) && signbit(y[4]));
    node_end(&c);
}

TEST(swiglu_is_swish_times_the_other_half)
{
    one_node c;
    node_begin(&c, "SwiGLU", 28, 2, 1);
    node_f32(&c, 0, SHAPE(4), -2, 0, 1, 3);
    node_f32(&c, 1, SHAPE(4), 1, 5, -2, 0.5f);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32_NEAR(&c, 0, SHAPE(4), 1e-6, -0.23840587f, 0, -1.4621172f, 1.4288611f);
    node_end(&c);
    node_begin(&c, "SwiGLU", 28, 2, 1);
    node_float(&c, "alpha", 0.5f);
    node_f32(&c, 0, SHAPE(4), -2, 0, 1, 3);
    node_f32(&c, 1, SHAPE(4), 1, 5, -2, 0.5f);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32_NEAR(&c, 0, SHAPE(4), 1e-6, -0.5378828f, 0, -1.2449187f, 1.2263618f);
    node_end(&c);
    node_begin(&c, "SwiGLU", 28, 2, 1);
    NODE_INPUT(&c, 0, F64, double, SHAPE(2), 1, 3);
    NODE_INPUT(&c, 1, F64, double, SHAPE(2), -2, 0.5);
    NODE_CHECK(&c, node_run(&c));
    CHECK(fabs(((const double *)c.out[0].t.data)[0] + 2 / (1 + exp(-1.0))) < 1e-12);
    node_end(&c);
}

TEST(swiglu_does_not_broadcast)
{
    one_node c;
    node_begin(&c, "SwiGLU", 28, 2, 1);
    node_f32(&c, 0, SHAPE(2, 2), 1, 2, 3, 4);
    node_f32(&c, 1, SHAPE(2), 1, 2);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "different shapes");
    node_end(&c);
    node_begin(&c, "SwiGLU", 28, 2, 1);
    node_f32(&c, 0, SHAPE(2), 1, 2);
    NODE_INPUT(&c, 1, F64, double, SHAPE(2), 1, 2);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "element types");
    node_end(&c);
}

TEST(where_broadcasts_three_ways)
{
    one_node c;
    node_begin(&c, "Where", 16, 3, 1);
    NODE_INPUT(&c, 0, BOOL, uint8_t, SHAPE(2, 1), 1, 0);
    node_i64(&c, 1, SHAPE(2), 1, 2);
    node_i64(&c, 2, SCALAR, -1);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, I64, int64_t, SHAPE(2, 2), 1, 2, -1, -1);
    node_end(&c);
}

TEST(clip_keeps_nan_and_lets_the_upper_bound_win)
{
    one_node c;
    node_begin(&c, "Clip", 13, 3, 1);
    node_f32(&c, 0, SHAPE(4), -3, 0.5f, 9, NAN);
    node_f32(&c, 1, SCALAR, 2);
    node_f32(&c, 2, SCALAR, 1);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(4), 1, 1, 1, NAN);
    node_end(&c);
    node_begin(&c, "Clip", 13, 3, 1);
    NODE_INPUT(&c, 0, I8, int8_t, SHAPE(3), -100, 5, 100);
    NODE_INPUT(&c, 2, I8, int8_t, SCALAR, 50);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, I8, int8_t, SHAPE(3), -100, 5, 50);
    node_end(&c);
}

TEST(round_goes_to_even)
{
    one_node c;
    node_begin(&c, "Round", 11, 1, 1);
    node_f32(&c, 0, SHAPE(5), 0.5f, 1.5f, 2.5f, -0.5f, -1.5f);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(5), 0, 2, 2, -0.0f, -2);
    node_end(&c);
}

TEST(activations_match_their_formulas)
{
    one_node c;
    static const struct {
        const char *type;
        int opset;
        double (*f)(double);
    } cases[] = {{"Tanh", 13, tanh},  {"Erf", 13, erf},      {"Exp", 13, exp},     {"Sin", 7, sin},
                 {"Atanh", 9, atanh}, {"Softplus", 1, NULL}, {"Sigmoid", 13, NULL}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        node_begin(&c, cases[k].type, cases[k].opset, 1, 1);
        float *x = node_room(&c, 0, SONDE_DTYPE_F32, SHAPE(1001));
        for (int i = 0; i <= 1000; i++)
            x[i] = (float)(i - 500) / 501.0f;
        NODE_CHECK(&c, node_run(&c));
        const float *y = c.out[0].t.data;
        for (int i = 0; i <= 1000; i++) {
            double v = (double)x[i];
            double want = cases[k].f                              ? cases[k].f(v)
                          : strcmp(cases[k].type, "Sigmoid") == 0 ? 1 / (1 + exp(-v))
                                                                  : log1p(exp(v));
            CHECK_MSG(fabs((double)y[i] - want) <= 3e-7 * (fabs(want) + 1e-30),
                      "%s(%g) = %.9g, not %.9g", cases[k].type, v, (double)y[i], want);
        }
        node_end(&c);
    }
}

TEST(gelu_keeps_its_absolute_error_and_its_sign)
{
    one_node c;
    node_begin(&c, "Gelu", 20, 1, 1);
    float *x = node_room(&c, 0, SONDE_DTYPE_F32, SHAPE(4001));
    for (int i = 0; i <= 4000; i++)
        x[i] = (float)(i - 2000) / 200.0f;
    NODE_CHECK(&c, node_run(&c));
    const float *y = c.out[0].t.data;
    for (int i = 0; i <= 4000; i++) {
        const double v = (double)x[i], want = 0.5 * v * erfc(-v / sqrt(2.0));
        CHECK_MSG(fabs((double)y[i] - want) <= 2.4e-7 * fmax(1.0, fabs(v)),
                  "gelu(%g) = %.9g, not %.9g", v, (double)y[i], want);
        CHECK(i < 2000 ? y[i] <= 0.0f : y[i] >= 0.0f);
    }
    CHECK(y[0] == 0.0f && y[2000] == 0.0f && y[4000] == 10.0f);
    node_end(&c);
}

TEST(a_nan_comes_out_of_every_function_but_those_that_compare)
{
    one_node c;
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
                node_begin(&c, types[t], 24, 1, 1);
                c.ctx.cpu.flags = l->flags;
                void *x = node_room(&c, 0, dtypes[d], SHAPE(37));
                for (int i = 0; i < N; i++)
                    sn_elem_set_f64(dtypes[d], x, i, i % 2 ? -NAN : NAN);
                NODE_CHECK(&c, node_run(&c));
                const bool compares =
                    strcmp(types[t], "ThresholdedRelu") == 0 || strcmp(types[t], "Shrink") == 0;
                for (int i = 0; i < N; i++) {
                    const double y = sn_elem_f64(dtypes[d], c.out[0].t.data, i);
                    CHECK_MSG(compares ? y == 0 : isnan(y), "%s of %s, %s: element %d is %g",
                              types[t], sn_dtype_name(dtypes[d]), l->name, i, y);
                }
                node_end(&c);
            }
}

TEST(is_inf_tells_the_signs_apart)
{
    one_node c;
    node_begin(&c, "IsInf", 20, 1, 1);
    node_int(&c, "detect_negative", 0);
    node_f32(&c, 0, SHAPE(4), INFINITY, -INFINITY, NAN, 1);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, BOOL, uint8_t, SHAPE(4), 1, 0, 0, 0);
    node_end(&c);
}

TEST(wrong_element_types_are_named)
{
    one_node c;
    node_begin(&c, "Sigmoid", 13, 1, 1);
    node_i64(&c, 0, SHAPE(1), 3);
    CHECK_EQ(node_run(&c), SONDE_UNSUPPORTED);
    CHECK_HAS(c.err.message, "int64");
    node_end(&c);
    node_begin(&c, "Add", 14, 2, 1);
    node_i64(&c, 0, SHAPE(1), 3);
    node_f32(&c, 1, SHAPE(1), 3);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "different element types");
    node_end(&c);
}

/* ------------------------------------------------------------------ values through inference */
static const sn_dim *inferred_ints(one_node *c)
{
    for (uint32_t i = 0; i < c->n->n_in; i++)
        c->n->in[i].value->fact.data = &c->in[i].t;
    return node_infer(c) == SONDE_OK ? c->n->out[0]->fact.ints : NULL;
}

TEST(small_integers_flow_through_arithmetic)
{
    one_node c;
    node_begin(&c, "Mul", 14, 2, 1);
    node_i64(&c, 0, SHAPE(3), 2, 3, 4);
    node_i64(&c, 1, SHAPE(1), 10);
    const sn_dim *v = inferred_ints(&c);
    CHECK(v && v[0] == 20 && v[1] == 30 && v[2] == 40);
    node_end(&c);
    node_begin(&c, "Equal", 13, 2, 1);
    node_i64(&c, 0, SHAPE(2), -1, 3);
    node_i64(&c, 1, SHAPE(1), -1);
    v = inferred_ints(&c);
    CHECK(v && v[0] == 1 && v[1] == 0);
    node_end(&c);
}

TEST(symbols_survive_where_the_number_does_not_matter)
{
    one_node c;
    node_begin(&c, "Mul", 14, 2, 1);
    node_i64(&c, 0, SHAPE(2), 0, 0);
    node_i64(&c, 1, SHAPE(2), 1, 2);
    NODE_CHECK(&c, node_prepare(&c));
    const sn_dim symbolic[] = {sn_dim_symbol(1), sn_dim_symbol(1)};
    c.n->in[0].value->fact.ints = symbolic;
    c.n->in[0].value->fact.n_ints = 2;
    c.n->in[1].value->fact.data = &c.in[1].t;
    NODE_CHECK(&c, sn_op_infer_node(c.g, c.n, &c.err));
    const sn_dim *v = c.n->out[0]->fact.ints;
    CHECK(v && v[0] == sn_dim_symbol(1) && !sn_dim_known(v[1]));
    node_end(&c);
}

/* ------------------------------------------------------------------ layouts and large sizes */
TEST(blocked_tensors_run_over_their_memory_and_keep_zero_padding)
{
    one_node c;
    node_begin(&c, "Sigmoid", 13, 1, 1);
    node_room(&c, 0, SONDE_DTYPE_F32, SHAPE(1, 3, 1, 2));
    NODE_CHECK(&c, node_prepare(&c));
    /* The same tensor in blocks of 8: [1][1][2][8]. */
    float x[16] = {0}, y[16];
    for (int i = 0; i < 6; i++)
        x[i / 3 * 8 + i % 3] = (float)(i - 3);
    sn_fact in = c.n->in[0].value->fact, out = in;
    in.form.layout = out.form.layout = sn_layout_blocks(8);
    const sn_fact *ins[1] = {&in};
    sn_bind b = {.node = c.n,
                 .params = c.n->params,
                 .in = ins,
                 .out = &out,
                 .n_in = 1,
                 .n_out = 1,
                 .ctx = &c.ctx,
                 .cpu_flags = c.ctx.cpu.flags,
                 .threads = 1,
                 .arena = &c.arena,
                 .err = &c.err,
                 .run = c.n->op->run};
    NODE_CHECK(&c, c.n->op->bind(&b));
    sn_slot slots[2] = {
        {.kind = SN_KIND_TENSOR,
         .t = {.dtype = SONDE_DTYPE_F32, .layout = {SN_LAYOUT_BLOCKS, 8}, .data = x}},
        {.kind = SN_KIND_TENSOR,
         .t = {.dtype = SONDE_DTYPE_F32, .layout = {SN_LAYOUT_BLOCKS, 8}, .data = y}}};
    const uint32_t at[2] = {0, 1};
    sn_step s = {.run = b.run,
                 .params = c.n->params,
                 .bound = b.bound,
                 .in = at,
                 .out = at + 1,
                 .n_in = 1,
                 .n_out = 1,
                 .op = c.n->op,
                 .node = c.n};
    sn_frame f = {.slots = slots, .ctx = &c.ctx, .alloc = &c.alloc, .err = &c.err};
    NODE_CHECK(&c, s.run(&s, &f));
    for (int i = 0; i < 16; i++) {
        double want = i % 8 < 3 ? 1.0 / (1.0 + exp(-(double)x[i])) : 0.0;
        CHECK_MSG(fabs((double)y[i] - want) < 1e-6, "element %d: %g, not %g", i, (double)y[i],
                  want);
    }
    node_end(&c);
}

TEST(large_work_splits_over_threads_without_changing_a_bit)
{
    sonde_error err;
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
