/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that take bfloat16 since opset 28, and optionals of it. Values are exact in 8 bits. */
#include "ops/one_node.h"

#include "base/dtype.h"

static void bf16(one_node *c, uint32_t i, int rank, const int64_t *dims, const float *values)
{
    uint16_t bits[16];
    int64_t n = 1;
    for (int k = 0; k < rank; k++)
        n *= dims[k];
    for (int64_t k = 0; k < n; k++)
        bits[k] = sn_f32_to_bf16(values[k]);
    node_tensor(c, i, SONDE_DTYPE_BF16, rank, dims, bits);
}

static bool is_bf16(const sn_slot *s, const float *want, int64_t n)
{
    if (s->kind != SN_KIND_TENSOR || s->t.dtype != SONDE_DTYPE_BF16 || sn_tensor_count(&s->t) != n)
        return false;
    for (int64_t i = 0; i < n; i++)
        if (((const uint16_t *)s->t.data)[i] != sn_f32_to_bf16(want[i])) {
            fprintf(stderr, "element %lld is %g, expected %g\n", (long long)i,
                    (double)sn_bf16_to_f32(((const uint16_t *)s->t.data)[i]), (double)want[i]);
            return false;
        }
    return true;
}
#define F(...) ((const float[]){__VA_ARGS__})
#define IS(slot, ...)                                                                              \
    is_bf16(slot, F(__VA_ARGS__), (int64_t)(sizeof F(__VA_ARGS__) / sizeof(float)))

TEST(unique_sorts_bfloat16_by_value)
{
    one_node c;
    node_begin(&c, "Unique", 28, 1, 4);
    bf16(&c, 0, SHAPE(6), F(2, 1, 1, -3, 4, -3));
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS(&c.out[0], -3, 1, 2, 4));
    CHECK(IS_I64(&c.out[1], 3, 1, 0, 4));
    CHECK(IS_I64(&c.out[2], 2, 1, 1, 0, 3, 0));
    CHECK(IS_I64(&c.out[3], 2, 2, 1, 1));
    node_end(&c);
}

TEST(compress_keeps_bfloat16)
{
    one_node c;
    node_begin(&c, "Compress", 28, 2, 1);
    node_int(&c, "axis", 0);
    bf16(&c, 0, SHAPE(3, 2), F(1, 2, 3, 4, 5, 6));
    node_tensor(&c, 1, SONDE_DTYPE_BOOL, SHAPE(3), (uint8_t[]){0, 1, 1});
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(2, 2)));
    CHECK(IS(&c.out[0], 3, 4, 5, 6));
    node_end(&c);
}

TEST(one_hot_gives_bfloat16_values)
{
    one_node c;
    node_begin(&c, "OneHot", 28, 3, 1);
    node_i64(&c, 0, SHAPE(2), 2, 0);
    node_i64(&c, 1, SHAPE(1), 3);
    bf16(&c, 2, SHAPE(2), F(1, 3));
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS(&c.out[0], 1, 1, 3, 3, 1, 1));
    node_end(&c);
}

TEST(reverse_sequence_turns_bfloat16_around)
{
    one_node c;
    node_begin(&c, "ReverseSequence", 28, 2, 1);
    node_int(&c, "time_axis", 1);
    node_int(&c, "batch_axis", 0);
    bf16(&c, 0, SHAPE(2, 3), F(1, 2, 3, 4, 5, 6));
    node_i64(&c, 1, SHAPE(2), 2, 3);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS(&c.out[0], 2, 1, 3, 6, 5, 4));
    node_end(&c);
}

TEST(einsum_multiplies_bfloat16)
{
    one_node c;
    node_begin(&c, "Einsum", 28, 2, 1);
    node_text(&c, "equation", "ij,jk->ik");
    bf16(&c, 0, SHAPE(2, 2), F(1, 2, 3, 4));
    bf16(&c, 1, SHAPE(2, 2), F(5, 6, 7, 8));
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS(&c.out[0], 19, 22, 43, 50));
    node_end(&c);
}

TEST(celu_takes_all_floats)
{
    one_node c;
    node_begin(&c, "Celu", 28, 1, 1);
    node_float(&c, "alpha", 2.0f);
    bf16(&c, 0, SHAPE(3), F(-2, 0, 3));
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS(&c.out[0], -1.2642411f, 0, 3)); /* 2 (e^-1 - 1) */
    node_end(&c);
    node_begin(&c, "Celu", 28, 1, 1);
    node_tensor(&c, 0, SONDE_DTYPE_F64, SHAPE(2), (double[]){-1, 3});
    node_run(&c);
    NODE_OK(&c);
    const double *y = c.out[0].t.data;
    CHECK(fabs(y[0] - expm1(-1.0)) < 1e-12 && y[1] == 3);
    node_end(&c);
}

TEST(an_optional_holds_bfloat16)
{
    one_node c, d;
    node_begin(&c, "Optional", 28, 1, 1);
    bf16(&c, 0, SHAPE(2), F(1, 2));
    node_run(&c);
    NODE_OK(&c);
    node_begin(&d, "OptionalGetElement", 28, 1, 1);
    node_value(&d, 0)->fact.type.kind = SN_KIND_OPTIONAL;
    d.given[0] = true;
    d.in[0] = c.out[0];
    node_run(&d);
    NODE_OK(&d);
    CHECK(IS(&d.out[0], 1, 2));
    memset(&d.in[0], 0, sizeof d.in[0]);
    node_end(&d);
    node_end(&c);
}

TEST_MAIN()
