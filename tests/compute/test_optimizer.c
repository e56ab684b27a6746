/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of optimisers against their formulas written out. */
#include "compute/optimizer.h"

#include "levels.h"

enum { N = 37 };

static sn_elems f64(double *p)
{
    return (sn_elems){SONDE_DTYPE_F64, p};
}

TEST(every_kind_follows_its_formula)
{
    for (int kind = SN_ADAGRAD; kind <= SN_NESTEROV; kind++)
        for (int t = 0; t < 3; t++) {
            const sn_optimizer o = {.kind = (sn_optimizer_kind)kind,
                                    .alpha = 0.9,
                                    .beta = 0.75,
                                    .epsilon = 1e-3,
                                    .norm = 0.125,
                                    .norm_post = 0.25,
                                    .decay = 0.5};
            double v[4][N], y[3][N];
            for (int i = 0; i < 4 * N; i++)
                v[i / N][i % N] = 1.5 + (double)test_randf();
            const sn_elems in[4] = {f64(v[0]), f64(v[1]), f64(v[2]), f64(v[3])};
            const sn_elems out[3] = {f64(y[0]), f64(y[1]), f64(y[2])};
            sn_optimizer_run(&o, 0.01, t, N, in, out, NULL);
            for (int i = 0; i < N; i++) {
                const double x = v[0][i], g = v[1][i] + 0.125 * x;
                double want = 0, state = 0;
                if (kind == SN_ADAGRAD) {
                    state = v[2][i] + g * g;
                    want = x - 0.01 / (1 + 0.5 * t) * g / (sqrt(state) + 1e-3);
                } else if (kind == SN_ADAM) {
                    const double square = 0.75 * v[3][i] + 0.25 * g * g,
                                 rate =
                                     t ? 0.01 * sqrt(1 - pow(0.75, t)) / (1 - pow(0.9, t)) : 0.01;
                    state = 0.9 * v[2][i] + (1 - 0.9) * g;
                    want = 0.75 * (x - rate * state / (sqrt(square) + 1e-3));
                    CHECK(fabs(y[2][i] - square) < 1e-12);
                } else {
                    state = 0.9 * v[2][i] + (t ? 0.75 : 1.0) * g;
                    want = x - 0.01 * (kind == SN_NESTEROV ? g + 0.9 * state : state);
                }
                CHECK_MSG(fabs(y[0][i] - want) < 1e-12 && fabs(y[1][i] - state) < 1e-12,
                          "kind %d, count %d, element %d", kind, t, i);
            }
        }
}

TEST(outputs_may_be_left_out_or_replace_their_inputs)
{
    const sn_optimizer o = {.kind = SN_MOMENTUM, .alpha = 0.5, .beta = 0.5};
    float x[2] = {1, 2}, g[2] = {4, 8}, v[2] = {2, 2};
    const sn_elems in[3] = {{SONDE_DTYPE_F32, x}, {SONDE_DTYPE_F32, g}, {SONDE_DTYPE_F32, v}};
    const sn_elems out[2] = {{SONDE_DTYPE_F32, x}, {SONDE_DTYPE_UNDEFINED, NULL}};
    sn_optimizer_run(&o, 0.25, 1, 2, in, out, NULL);
    CHECK(x[0] == 1 - 0.25f * 3 && x[1] == 2 - 0.25f * 5);
    CHECK(v[0] == 2 && v[1] == 2);
    sn_optimizer_run(&o, 0.25, 1, 0, in, out, NULL);
}

TEST_MAIN()
