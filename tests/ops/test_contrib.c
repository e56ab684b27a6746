/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft, on cases small enough to check by hand. */
#include "ops/one_node.h"

static void begin(one_node *c, const char *op, uint32_t n_in, uint32_t n_out)
{
    node_begin(c, op, 1, n_in, n_out);
    if (c->n)
        c->n->domain = "com.microsoft";
}

static bool near(const sn_slot *s, const float *want, int64_t n)
{
    if (s->kind != SN_KIND_TENSOR || sn_tensor_count(&s->t) != n)
        return false;
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(((const float *)s->t.data)[i] - want[i]) < 1e-4f)) {
            fprintf(stderr, "element %lld is %g, expected %g\n", (long long)i,
                    (double)((const float *)s->t.data)[i], (double)want[i]);
            return false;
        }
    return true;
}
#define NEAR(slot, ...)                                                                            \
    near(slot, (float[]){__VA_ARGS__}, (int64_t)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)))
#define RUNS(c) CHECK_MSG(node_run(c) == SONDE_OK, "%s", (c)->err.message)

TEST(gelus_add_their_bias_first)
{
    one_node c;
    begin(&c, "BiasGelu", 2, 1);
    node_f32(&c, 0, SHAPE(2, 2), 0, 1, -1, 2);
    node_f32(&c, 1, SHAPE(2), 1, -2);
    RUNS(&c);
    CHECK(NEAR(&c.out[0], 0.841345f, -0.158655f, 0, 0));
    node_end(&c);
}

TEST(quick_gelu_has_its_own_slope)
{
    one_node c;
    begin(&c, "QuickGelu", 1, 1);
    node_f32(&c, 0, SHAPE(2), 0, 1);
    RUNS(&c);
    CHECK(NEAR(&c.out[0], 0, 0.845796f));
    node_end(&c);
}

TEST(skip_normalisation_hands_out_the_sum)
{
    one_node c;
    begin(&c, "SkipSimplifiedLayerNormalization", 4, 4);
    node_f32(&c, 0, SHAPE(1, 1, 2), 1, 2);
    node_f32(&c, 1, SHAPE(1, 1, 2), 1, 1);
    node_f32(&c, 2, SHAPE(2), 1, 10);
    node_f32(&c, 3, SHAPE(2), 1, 1);
    RUNS(&c);
    CHECK(NEAR(&c.out[3], 3, 4));
    CHECK(NEAR(&c.out[0], 0.848528f, 11.31371f)); /* 3 / sqrt(12.5), 10 * 4 / sqrt(12.5) */
    node_end(&c);
}

TEST(a_skip_that_does_not_fit_is_refused)
{
    one_node c;
    begin(&c, "SkipLayerNormalization", 4, 1);
    node_count_up(&c, 0, SHAPE(2, 3, 4));
    node_count_up(&c, 1, SHAPE(5, 4));
    node_count_up(&c, 2, SHAPE(4));
    node_count_up(&c, 3, SHAPE(4));
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    node_end(&c);
}

TEST(embedding_ids_outside_of_the_table_are_an_error)
{
    for (int32_t id = -1; id <= 2; id++) {
        one_node c;
        begin(&c, "EmbedLayerNormalization", 7, 2);
        node_tensor(&c, 0, SONDE_DTYPE_I32, SHAPE(1, 1), &id);
        node_f32(&c, 2, SHAPE(2, 2), 1, 3, 5, 9);
        node_f32(&c, 3, SHAPE(1, 2), 0, 0);
        node_f32(&c, 5, SHAPE(2), 1, 1);
        node_f32(&c, 6, SHAPE(2), 0, 0);
        const sonde_status st = node_run(&c);
        CHECK_EQ(st, id == 0 || id == 1 ? SONDE_OK : SONDE_RUNTIME);
        if (st == SONDE_OK)
            CHECK(NEAR(&c.out[0], -1, 1));
        node_end(&c);
    }
}

TEST(few_bit_weights_are_unpacked_low_bits_first)
{
    one_node c;
    begin(&c, "MatMulNBits", 3, 1);
    node_int(&c, "N", 1);
    node_int(&c, "K", 3);
    node_int(&c, "bits", 4);
    node_int(&c, "block_size", 16);
    node_f32(&c, 0, SHAPE(1, 3), 1, 10, 100);
    node_tensor(&c, 1, SONDE_DTYPE_U8, SHAPE(1, 1, 8), (uint8_t[]){0xA9, 0x0B, 0, 0, 0, 0, 0, 0});
    node_f32(&c, 2, SHAPE(1, 1), 0.5f); /* weights 9, 10, 11 minus 8, halved */
    RUNS(&c);
    CHECK(NEAR(&c.out[0], 0.5f * (1 + 20 + 300)));
    node_end(&c);
}

TEST(group_indices_are_checked)
{
    for (int32_t g = -1; g <= 1; g++) {
        one_node c;
        begin(&c, "MatMulNBits", 5, 1);
        node_int(&c, "N", 1);
        node_int(&c, "K", 1);
        node_int(&c, "block_size", 16);
        node_f32(&c, 0, SHAPE(1, 1), 2);
        node_tensor(&c, 1, SONDE_DTYPE_U8, SHAPE(1, 1, 8), (uint8_t[]){9, 0, 0, 0, 0, 0, 0, 0});
        node_f32(&c, 2, SHAPE(1, 1), 3);
        node_tensor(&c, 4, SONDE_DTYPE_I32, SHAPE(1), &g);
        CHECK_EQ(node_run(&c), g == 0 ? SONDE_OK : SONDE_RUNTIME);
        if (g == 0)
            CHECK(NEAR(&c.out[0], 6));
        node_end(&c);
    }
}

TEST(bytes_are_added_in_real_numbers)
{
    one_node c;
    begin(&c, "QLinearAdd", 8, 1);
    node_tensor(&c, 0, SONDE_DTYPE_U8, SHAPE(2), (uint8_t[]){12, 250});
    node_f32(&c, 1, SCALAR, 0.5f);
    node_tensor(&c, 2, SONDE_DTYPE_U8, SCALAR, (uint8_t[]){10});
    node_tensor(&c, 3, SONDE_DTYPE_U8, SHAPE(1), (uint8_t[]){7});
    node_f32(&c, 4, SCALAR, 1.0f);
    node_tensor(&c, 5, SONDE_DTYPE_U8, SCALAR, (uint8_t[]){4});
    node_f32(&c, 6, SCALAR, 0.25f);
    node_tensor(&c, 7, SONDE_DTYPE_U8, SCALAR, (uint8_t[]){100});
    RUNS(&c);
    const uint8_t *y = c.out[0].t.data;
    CHECK_EQ(y[0], 116); /* (1 + 3) / 0.25 + 100 */
    CHECK_EQ(y[1], 255); /* saturated */
    node_end(&c);
}

/* The product of the scales is no f32 here. */
TEST(sums_of_zero_stay_zero_however_large_the_scales)
{
    one_node c;
    begin(&c, "MatMulIntegerToFloat", 5, 1);
    NODE_INPUT(&c, 0, U8, uint8_t, SHAPE(2, 1), 3, 4);
    NODE_INPUT(&c, 1, I8, int8_t, SHAPE(1, 1), 2);
    node_f32(&c, 2, SCALAR, 1e30f);
    node_f32(&c, 3, SCALAR, 1e30f);
    NODE_INPUT(&c, 4, U8, uint8_t, SCALAR, 3);
    RUNS(&c);
    CHECK_F32(&c, 0, SHAPE(2, 1), 0, INFINITY);
    node_end(&c);
    begin(&c, "QLinearMul", 8, 1);
    NODE_INPUT(&c, 0, U8, uint8_t, SHAPE(3), 3, 4, 2);
    node_f32(&c, 1, SCALAR, 1e30f);
    NODE_INPUT(&c, 2, U8, uint8_t, SCALAR, 3);
    NODE_INPUT(&c, 3, U8, uint8_t, SHAPE(3), 9, 9, 9);
    node_f32(&c, 4, SCALAR, 1e30f);
    NODE_INPUT(&c, 5, U8, uint8_t, SCALAR, 0);
    node_f32(&c, 6, SCALAR, 1);
    NODE_INPUT(&c, 7, U8, uint8_t, SCALAR, 10);
    RUNS(&c);
    CHECK_OUT(&c, 0, U8, uint8_t, SHAPE(3), 10, 255, 0);
    node_end(&c);
    node_begin(&c, "QLinearMatMul", 10, 8, 1);
    NODE_INPUT(&c, 0, U8, uint8_t, SHAPE(3, 1), 3, 4, 2);
    node_f32(&c, 1, SHAPE(3), 1e30f, 2e30f, 3e30f); /* a scale for each row */
    NODE_INPUT(&c, 2, U8, uint8_t, SHAPE(3), 3, 3, 3);
    NODE_INPUT(&c, 3, U8, uint8_t, SHAPE(1, 1), 9);
    node_f32(&c, 4, SCALAR, 1e30f);
    NODE_INPUT(&c, 5, U8, uint8_t, SCALAR, 0);
    node_f32(&c, 6, SCALAR, 1);
    NODE_INPUT(&c, 7, U8, uint8_t, SCALAR, 10);
    RUNS(&c);
    CHECK_OUT(&c, 0, U8, uint8_t, SHAPE(3, 1), 10, 255, 0);
    node_end(&c);
}

TEST(the_inverse_times_the_matrix_is_one)
{
    one_node c;
    begin(&c, "Inverse", 1, 1);
    node_f32(&c, 0, SHAPE(2, 2), 0, 2, 4, 0); /* needs a pivot */
    RUNS(&c);
    CHECK(NEAR(&c.out[0], 0, 0.25f, 0.5f, 0));
    node_end(&c);
}

TEST(bias_softmax_repeats_its_bias_inside_or_outside)
{
    for (int inner = 0; inner < 2; inner++) {
        one_node c;
        begin(&c, "BiasSoftmax", 2, 1);
        node_int(&c, "axis", 2);
        node_int(&c, "is_inner_broadcast", inner);
        node_f32(&c, 0, SHAPE(2, 2, 1), 1, 2, 3, 4);
        node_f32(&c, 1, SHAPE(2, 1), 0, 1);
        RUNS(&c);
        CHECK(NEAR(&c.out[0], 1, 1, 1, 1));
        node_end(&c);
    }
}

TEST(fused_products_transpose_batches)
{
    one_node c;
    begin(&c, "FusedMatMul", 2, 1);
    node_int(&c, "transA", 1);
    node_float(&c, "alpha", 2.0f);
    node_f32(&c, 0, SHAPE(2, 2, 1), 1, 2, 3, 4);
    node_f32(&c, 1, SHAPE(2, 2, 1), 1, 1, 1, 1);
    RUNS(&c);
    CHECK(has_shape(&c.out[0], SHAPE(2, 1, 1)));
    CHECK(NEAR(&c.out[0], 6, 14));
    node_end(&c);
}

/* One operand of a product: matrices [rows, cols] for each of `batch`, as they are meant and as
 * they lie with these flags. */
typedef struct operand {
    int rank, rows, cols, batch[2];
    bool turned, inside; /* trans, transBatch */
    int64_t dims[4];
    double meant[2 * 3 * 4 * 5];
    float f32[2 * 3 * 4 * 5];
    double f64[2 * 3 * 4 * 5];
} operand;

static void lay_out(operand *o)
{
    const int n_batch = o->rank - 2, r = o->turned ? o->cols : o->rows,
              c = o->turned ? o->rows : o->cols;
    int64_t strides[4] = {0}; /* of batch 0, batch 1, r, c */
    int at[4], n = 0;
    /* The order in which the axes lie. */
    if (o->inside && o->rank > 2)
        at[n++] = 2;
    for (int b = 2 - n_batch; b < 2; b++)
        at[n++] = b;
    if (!o->inside || o->rank == 2)
        at[n++] = 2;
    at[n++] = 3;
    const int sizes[4] = {o->batch[0], o->batch[1], r, c};
    int64_t step = 1;
    for (int k = n; k-- > 0; step *= sizes[at[k]]) {
        o->dims[k] = sizes[at[k]];
        strides[at[k]] = step;
    }
    size_t i = 0;
    for (int b0 = 0; b0 < o->batch[0]; b0++)
        for (int b1 = 0; b1 < o->batch[1]; b1++)
            for (int x = 0; x < o->rows; x++)
                for (int y = 0; y < o->cols; y++) {
                    const int row = o->turned ? y : x, col = o->turned ? x : y;
                    const size_t to = (size_t)(b0 * strides[0] + b1 * strides[1] +
                                               row * strides[2] + col * strides[3]);
                    o->meant[i] = (double)(test_rand() % 9) - 4;
                    o->f64[to] = o->meant[i];
                    o->f32[to] = (float)o->meant[i++];
                }
}

static double meant(const operand *o, int b0, int b1, int x, int y)
{
    b0 = o->batch[0] == 1 ? 0 : b0;
    b1 = o->batch[1] == 1 ? 0 : b1;
    return o->meant[((b0 * o->batch[1] + b1) * o->rows + x) * o->cols + y];
}

static void check_product(operand *a, operand *b, sn_dtype dtype)
{
    one_node c;
    lay_out(a);
    lay_out(b);
    begin(&c, "FusedMatMul", 2, 1);
    node_int(&c, "transA", a->turned);
    node_int(&c, "transB", b->turned);
    node_int(&c, "transBatchA", a->inside);
    node_int(&c, "transBatchB", b->inside);
    node_float(&c, "alpha", 0.5f);
    const bool narrow = dtype == SONDE_DTYPE_F32;
    node_tensor(&c, 0, dtype, a->rank, a->dims, narrow ? (void *)a->f32 : a->f64);
    node_tensor(&c, 1, dtype, b->rank, b->dims, narrow ? (void *)b->f32 : b->f64);
    RUNS(&c);
    size_t i = 0;
    const int n0 = a->batch[0] > b->batch[0] ? a->batch[0] : b->batch[0],
              n1 = a->batch[1] > b->batch[1] ? a->batch[1] : b->batch[1];
    for (int b0 = 0; b0 < n0; b0++)
        for (int b1 = 0; b1 < n1; b1++)
            for (int x = 0; x < a->rows; x++)
                for (int y = 0; y < b->cols; y++, i++) {
                    double want = 0;
                    for (int k = 0; k < a->cols; k++)
                        want += meant(a, b0, b1, x, k) * meant(b, b0, b1, k, y);
                    const void *data = c.out[0].t.data;
                    const double got =
                        narrow ? (double)((const float *)data)[i] : ((const double *)data)[i];
                    CHECK_MSG(got == want / 2,
                              "ranks %d and %d, transA %d B %d, transBatchA %d B %d: element %zu "
                              "is %g, expected %g",
                              a->rank, b->rank, a->turned, b->turned, a->inside, b->inside, i, got,
                              want / 2);
                }
    CHECK_EQ((size_t)sn_tensor_count(&c.out[0].t), i);
    node_end(&c);
}

TEST(fused_products_take_batches_from_inside)
{
    /* Batches of both operands: of one rank, of two, and broadcast. */
    static const struct {
        int rank_a, rank_b, a[2], b[2];
    } cases[] = {{3, 3, {1, 3}, {1, 3}}, {4, 4, {2, 3}, {2, 3}}, {4, 4, {2, 1}, {1, 3}},
                 {3, 3, {1, 1}, {1, 3}}, {3, 3, {1, 3}, {1, 1}}, {4, 3, {2, 3}, {1, 3}},
                 {3, 2, {1, 3}, {1, 1}}, {2, 4, {1, 1}, {2, 3}}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int flags = 0; flags < 32; flags++) {
            operand a = {.rank = cases[k].rank_a,
                         .rows = 4,
                         .cols = 5,
                         .batch = {cases[k].a[0], cases[k].a[1]},
                         .turned = flags & 1,
                         .inside = flags >> 1 & 1};
            operand b = {.rank = cases[k].rank_b,
                         .rows = 5,
                         .cols = 4,
                         .batch = {cases[k].b[0], cases[k].b[1]},
                         .turned = flags >> 2 & 1,
                         .inside = flags >> 3 & 1};
            check_product(&a, &b, flags >> 4 ? SONDE_DTYPE_F64 : SONDE_DTYPE_F32);
        }
}

TEST(a_second_name_runs_the_same_operator)
{
    one_node c;
    begin(&c, "Trilu", 1, 1);
    node_int(&c, "upper", 0);
    node_f32(&c, 0, SHAPE(2, 2), 1, 2, 3, 4);
    RUNS(&c);
    CHECK(NEAR(&c.out[0], 1, 0, 3, 4));
    node_end(&c);
}

TEST(an_lstm_of_bytes_scales_its_weights_and_rounds_what_it_multiplies)
{
    one_node c;
    begin(&c, "DynamicQuantizeLSTM", 12, 3);
    node_int(&c, "hidden_size", 1);
    node_f32(&c, 0, SHAPE(2, 1, 1), 1, 1);
    node_tensor(&c, 1, SONDE_DTYPE_I8, SHAPE(1, 1, 4), (int8_t[]){1, 2, 3, 4});
    node_tensor(&c, 2, SONDE_DTYPE_U8, SHAPE(1, 1, 4), (uint8_t[]){130, 126, 128, 129});
    node_f32(&c, 8, SHAPE(1, 4), 0.5f, 0.5f, 0.5f, 0.5f);
    node_tensor(&c, 9, SONDE_DTYPE_I8, SHAPE(1), (int8_t[]){0});
    node_f32(&c, 10, SHAPE(1), 0.25f);
    node_tensor(&c, 11, SONDE_DTYPE_U8, SHAPE(1), (uint8_t[]){128});
    RUNS(&c);
    CHECK(NEAR(&c.out[0], 0.392650f, 0.562141f));
    CHECK(NEAR(&c.out[1], 0.562141f) && NEAR(&c.out[2], 1.138182f));
    node_end(&c);
}

TEST(an_lstm_of_bytes_needs_its_scales)
{
    one_node c;
    begin(&c, "DynamicQuantizeLSTM", 12, 1);
    node_f32(&c, 0, SHAPE(1, 1, 1), 1);
    node_tensor(&c, 1, SONDE_DTYPE_I8, SHAPE(1, 1, 4), (int8_t[]){1, 2, 3, 4});
    node_tensor(&c, 2, SONDE_DTYPE_I8, SHAPE(1, 1, 4), (int8_t[]){1, 2, 3, 4});
    node_f32(&c, 8, SHAPE(3), 1, 1, 1);
    CHECK(node_run(&c) != SONDE_OK);
    CHECK_HAS(c.err.message, "input 8");
    node_end(&c);
}

/* The projection of 64 long rows packs its weights and needs far more room than the attention of
 * one short head, which has it afterwards. All values are the same, and so is their mean. */
TEST(attention_uses_the_room_of_its_projection_afterwards)
{
    enum { ROWS = 64, DEPTH = 256, SIZE = 2 };
    one_node c;
    begin(&c, "Attention", 3, 1);
    node_int(&c, "num_heads", 1);
    float *x = node_room(&c, 0, SONDE_DTYPE_F32, SHAPE(1, ROWS, DEPTH));
    float *w = node_room(&c, 1, SONDE_DTYPE_F32, SHAPE(DEPTH, 3 * SIZE));
    float *bias = node_room(&c, 2, SONDE_DTYPE_F32, SHAPE(3 * SIZE));
    for (int i = 0; i < ROWS * DEPTH; i++)
        x[i] = 1.0f / (float)DEPTH;
    for (int i = 0; i < DEPTH * 3 * SIZE; i++)
        w[i] = 2.0f;
    for (int i = 0; i < 3 * SIZE; i++)
        bias[i] = (float)i;
    RUNS(&c);
    CHECK_EQ(sn_tensor_count(&c.out[0].t), ROWS * SIZE);
    const float *y = c.out[0].t.data;
    for (int i = 0; i < ROWS; i++)
        CHECK(fabsf(y[2 * i] - 6) < 1e-4f && fabsf(y[2 * i + 1] - 7) < 1e-4f);
    node_end(&c);
}

TEST_MAIN()
