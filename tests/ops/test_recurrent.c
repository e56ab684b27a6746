/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers against the equations of the operators' text, written out in double. */
#include "ops/one_node.h"

enum { RNN, GRU, LSTM };

typedef struct shape {
    int cell, seq, batch, input, hidden, dirs;
    bool reverse, lens, states, bias, peepholes, linear, coupled, batch_first;
} shape;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Tensors in ONNX's layout 0; NULL where the shape has none. */
typedef struct tensors {
    float *x, *w, *r, *b, *h0, *c0, *p;
    int32_t *lens;
    float *y, *yh, *yc;
} tensors;

static int gates_of(int cell)
{
    return cell == LSTM ? 4 : cell == GRU ? 3 : 1;
}

static void reference(const shape *s, tensors *t)
{
    const int H = s->hidden, I = s->input, B = s->batch, G = gates_of(s->cell);
    for (int d = 0; d < s->dirs; d++)
        for (int b = 0; b < B; b++) {
            double h[64] = {0}, c[64] = {0};
            const int n = t->lens ? t->lens[b] : s->seq;
            for (int k = 0; k < H; k++) {
                h[k] = t->h0 ? (double)t->h0[(d * B + b) * H + k] : 0;
                c[k] = t->c0 ? (double)t->c0[(d * B + b) * H + k] : 0;
            }
            for (int step = 0; step < n; step++) {
                const int at = s->reverse || d == 1 ? n - 1 - step : step;
                double in[4][64], rec[4][64], next[64], cell[64];
                for (int g = 0; g < G; g++)
                    for (int k = 0; k < H; k++) {
                        const int row = (d * G + g) * H + k;
                        in[g][k] = t->b ? (double)t->b[(d * 2 * G + g) * H + k] : 0;
                        rec[g][k] = t->b ? (double)t->b[(d * 2 * G + G + g) * H + k] : 0;
                        for (int i = 0; i < I; i++)
                            in[g][k] +=
                                (double)t->w[row * I + i] * (double)t->x[(at * B + b) * I + i];
                        for (int j = 0; j < H; j++)
                            rec[g][k] += (double)t->r[row * H + j] * h[j];
                    }
                for (int k = 0; k < H; k++) {
                    const float *p = t->p ? t->p + d * 3 * H + k : NULL;
                    if (s->cell == RNN) {
                        next[k] = tanh(in[0][k] + rec[0][k]);
                    } else if (s->cell == LSTM) {
                        const double i =
                            sigmoid(in[0][k] + rec[0][k] + (p ? (double)p[0] * c[k] : 0));
                        double f =
                            sigmoid(in[2][k] + rec[2][k] + (p ? (double)p[2 * H] * c[k] : 0));
                        if (s->coupled)
                            f = 1 - i;
                        cell[k] = f * c[k] + i * tanh(in[3][k] + rec[3][k]);
                        next[k] = sigmoid(in[1][k] + rec[1][k] + (p ? (double)p[H] * cell[k] : 0)) *
                                  tanh(cell[k]);
                    } else {
                        const double z = sigmoid(in[0][k] + rec[0][k]),
                                     r = sigmoid(in[1][k] + rec[1][k]);
                        double inner = r * rec[2][k];
                        if (!s->linear) {
                            inner = t->b ? (double)t->b[(d * 6 + 5) * H + k] : 0;
                            for (int j = 0; j < H; j++)
                                inner += (double)t->r[((d * 3 + 2) * H + k) * H + j] * h[j] *
                                         sigmoid(in[1][j] + rec[1][j]);
                        }
                        next[k] = (1 - z) * tanh(in[2][k] + inner) + z * h[k];
                    }
                }
                for (int k = 0; k < H; k++) {
                    h[k] = next[k];
                    c[k] = s->cell == LSTM ? cell[k] : 0;
                    t->y[((at * s->dirs + d) * B + b) * H + k] = (float)h[k];
                }
            }
            for (int k = 0; k < H; k++) {
                t->yh[(d * B + b) * H + k] = (float)h[k];
                t->yc[(d * B + b) * H + k] = (float)c[k];
            }
        }
}

static float *numbers(int n)
{
    float *x = malloc(((size_t)n + 1) * sizeof *x);
    for (int i = 0; i < n; i++)
        x[i] = test_randf();
    return x;
}

/* [a][b][n] ► [b][a][n] */
static float *swapped(const float *x, int a, int b, int n)
{
    float *y = malloc(((size_t)(a * b * n) + 1) * sizeof *y);
    for (int i = 0; i < a; i++)
        for (int j = 0; j < b; j++)
            memcpy(y + (j * a + i) * n, x + (i * b + j) * n, (size_t)n * sizeof *y);
    return y;
}

static double worst(const float *a, const float *b, int n)
{
    double d = 0;
    for (int i = 0; i < n; i++)
        d = fmax(d, fabs((double)a[i] - (double)b[i]));
    return d;
}

static void give(one_node *c, uint32_t i, const float *data, bool swap, int rank, int d0, int d1,
                 int n)
{
    if (!data)
        return;
    float *turned = swap ? swapped(data, d0, d1, n) : NULL;
    const int64_t dims[3] = {swap ? d1 : d0, rank == 2 ? n : swap ? d0 : d1, n};
    node_tensor(c, i, SONDE_DTYPE_F32, rank, dims, turned ? turned : data);
    free(turned);
}

static void compare(const shape *s)
{
    static const char *const names[] = {"RNN", "GRU", "LSTM"};
    const int G = gates_of(s->cell), H = s->hidden, B = s->batch, D = s->dirs;
    tensors t = {.x = numbers(s->seq * B * s->input),
                 .w = numbers(D * G * H * s->input),
                 .r = numbers(D * G * H * H)};
    t.b = s->bias ? numbers(D * 2 * G * H) : NULL;
    t.h0 = s->states ? numbers(D * B * H) : NULL;
    t.c0 = s->states && s->cell == LSTM ? numbers(D * B * H) : NULL;
    t.p = s->peepholes ? numbers(D * 3 * H) : NULL;
    t.lens = s->lens ? malloc((size_t)B * sizeof *t.lens) : NULL;
    for (int b = 0; t.lens && b < B; b++)
        t.lens[b] = (int32_t)(test_rand() % (uint64_t)(s->seq + 1));
    t.y = calloc((size_t)(s->seq * D * B * H) + 1, sizeof *t.y);
    t.yh = calloc((size_t)(D * B * H) + 1, sizeof *t.yh);
    t.yc = calloc((size_t)(D * B * H) + 1, sizeof *t.yc);
    reference(s, &t);
    one_node c;
    node_begin(&c, names[s->cell], 14, s->cell == LSTM ? 8 : 6, s->cell == LSTM ? 3 : 2);
    node_int(&c, "hidden_size", H);
    node_text(&c, "direction", D == 2 ? "bidirectional" : s->reverse ? "reverse" : "forward");
    node_int(&c, "layout", s->batch_first);
    node_int(&c, "linear_before_reset", s->linear);
    node_int(&c, "input_forget", s->coupled);
    give(&c, 0, t.x, s->batch_first, 3, s->seq, B, s->input);
    give(&c, 1, t.w, false, 3, D, G * H, s->input);
    give(&c, 2, t.r, false, 3, D, G * H, H);
    give(&c, 3, t.b, false, 2, D, 0, 2 * G * H);
    if (t.lens)
        node_tensor(&c, 4, SONDE_DTYPE_I32, SHAPE(B), t.lens);
    give(&c, 5, t.h0, s->batch_first, 3, D, B, H);
    give(&c, 6, t.c0, s->batch_first, 3, D, B, H);
    give(&c, 7, t.p, false, 2, D, 0, 3 * H);
    node_run(&c);
    NODE_OK(&c);
    if (s->batch_first) {
        float *y = swapped(t.y, s->seq * D, B, H), *h = swapped(t.yh, D, B, H);
        CHECK(has_shape(&c.out[0], SHAPE(B, s->seq, D, H)));
        CHECK_MSG(worst(c.out[0].t.data, y, s->seq * D * B * H) < 2e-5, "Y differs");
        CHECK_MSG(worst(c.out[1].t.data, h, D * B * H) < 2e-5, "Y_h differs");
        free(y);
        free(h);
    } else {
        CHECK(has_shape(&c.out[0], SHAPE(s->seq, D, B, H)));
        CHECK_MSG(worst(c.out[0].t.data, t.y, s->seq * D * B * H) < 2e-5, "Y differs by %g",
                  worst(c.out[0].t.data, t.y, s->seq * D * B * H));
        CHECK_MSG(worst(c.out[1].t.data, t.yh, D * B * H) < 2e-5, "Y_h differs");
        if (s->cell == LSTM)
            CHECK_MSG(worst(c.out[2].t.data, t.yc, D * B * H) < 2e-5, "Y_c differs");
    }
    node_end(&c);
    void *all[] = {t.x, t.w, t.r, t.b, t.h0, t.c0, t.p, t.lens, t.y, t.yh, t.yc};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

TEST(every_cell_follows_its_equations_in_every_direction)
{
    for (int cell = RNN; cell <= LSTM; cell++)
        for (int dir = 0; dir < 3; dir++)
            for (int variant = 0; variant < 8; variant++) {
                const shape s = {.cell = cell,
                                 .seq = 1 + variant,
                                 .batch = 1 + variant % 4,
                                 .input = 3 + variant,
                                 .hidden = variant == 5 ? 32 : 2 + 3 * variant,
                                 .dirs = dir == 2 ? 2 : 1,
                                 .reverse = dir == 1,
                                 .lens = variant % 3 == 1,
                                 .states = variant % 2 == 1,
                                 .bias = variant != 0,
                                 .peepholes = cell == LSTM && variant % 4 == 2,
                                 .linear = variant % 4 > 1,
                                 .coupled = cell == LSTM && variant == 6,
                                 .batch_first = variant % 5 == 3};
                compare(&s);
                CHECK_MSG(test_errors == 0, "cell %d, direction %d, variant %d", cell, dir,
                          variant);
            }
}

TEST(activations_take_their_own_alpha_and_beta_in_order)
{
    /* RNN of one unit: y = f(x). Affine takes both numbers: 2x + 1. */
    one_node c;
    static const sonde_string names[] = {{"affine", 6}};
    static const float alpha[] = {2}, beta[] = {1};
    node_begin(&c, "RNN", 14, 3, 1);
    node_attr(&c,
              (sn_attr){.name = "activations", .kind = SN_ATTR_STRINGS, .n = 1, .strings = names});
    node_attr(
        &c, (sn_attr){.name = "activation_alpha", .kind = SN_ATTR_FLOATS, .n = 1, .floats = alpha});
    node_attr(&c,
              (sn_attr){.name = "activation_beta", .kind = SN_ATTR_FLOATS, .n = 1, .floats = beta});
    node_f32(&c, 0, SHAPE(2, 1, 1), 1, 10);
    node_f32(&c, 1, SHAPE(1, 1, 1), 1);
    node_f32(&c, 2, SHAPE(1, 1, 1), 0);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 3, 21));
    node_end(&c);
}

TEST(a_clip_bounds_what_goes_into_the_gates)
{
    one_node c;
    static const sonde_string names[] = {{"Relu", 4}};
    node_begin(&c, "RNN", 14, 3, 1);
    node_attr(&c,
              (sn_attr){.name = "activations", .kind = SN_ATTR_STRINGS, .n = 1, .strings = names});
    node_float(&c, "clip", 5);
    node_f32(&c, 0, SHAPE(2, 1, 1), 3, 10);
    node_f32(&c, 1, SHAPE(1, 1, 1), 1);
    node_f32(&c, 2, SHAPE(1, 1, 1), 0);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 3, 5));
    node_end(&c);
}

static sonde_status run_with_length(int32_t length)
{
    one_node c;
    node_begin(&c, "LSTM", 14, 5, 1);
    node_f32(&c, 0, SHAPE(2, 1, 1), 1, 2);
    node_f32(&c, 1, SHAPE(1, 4, 1), 1, 1, 1, 1);
    node_f32(&c, 2, SHAPE(1, 4, 1), 1, 1, 1, 1);
    node_tensor(&c, 4, SONDE_DTYPE_I32, SHAPE(1), &length);
    sonde_status st = node_run(&c);
    node_end(&c);
    return st;
}

TEST(sequence_lengths_outside_of_the_tensor_are_refused)
{
    CHECK_EQ(run_with_length(2), SONDE_OK);
    CHECK_EQ(run_with_length(3), SONDE_RUNTIME);
    CHECK_EQ(run_with_length(-1), SONDE_RUNTIME);
}

TEST(weights_that_do_not_fit_the_hidden_size_are_refused)
{
    one_node c;
    node_begin(&c, "GRU", 14, 3, 1);
    node_int(&c, "hidden_size", 2);
    node_f32(&c, 0, SHAPE(1, 1, 1), 1);
    node_f32(&c, 1, SHAPE(1, 3, 1), 1, 1, 1);
    node_f32(&c, 2, SHAPE(1, 3, 1), 1, 1, 1);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    node_end(&c);
}

TEST(unknown_dims_pass_through_inference)
{
    one_node c;
    const sn_dim n = sn_dim_symbol(1), x[3] = {SN_DIM_UNKNOWN, n, 4}, w[3] = {2, 12, 4},
                 r[3] = {2, 12, 3};
    node_begin(&c, "LSTM", 14, 3, 3);
    node_text(&c, "direction", "bidirectional");
    node_fact(&c, 0, SONDE_DTYPE_F32, 3, x, NULL, 0);
    node_fact(&c, 1, SONDE_DTYPE_F32, 3, w, NULL, 0);
    node_fact(&c, 2, SONDE_DTYPE_F32, 3, r, NULL, 0);
    node_infer(&c);
    NODE_OK(&c);
    const sn_type *y = &node_fact_of(&c, 0)->type;
    CHECK_EQ(y->rank, 4);
    CHECK(!sn_dim_known(y->dims[0]));
    CHECK_EQ(y->dims[1], 2);
    CHECK_EQ(y->dims[2], n);
    CHECK_EQ(y->dims[3], 3);
    node_end(&c);
}

TEST_MAIN()
