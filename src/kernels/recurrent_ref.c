/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of recurrent cells in plain C: what every vector variant is compared with. */
#include <math.h>

#include "kernels/kernels.h"

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* What the state adds to unit u of a gate. */
static double sum(const sn_f32_cell *t, size_t row, size_t gate, size_t u)
{
    const float *w = t->w + (ptrdiff_t)gate * t->w_gate + u / t->block * t->block * t->units;
    const float *h = t->h + (ptrdiff_t)row * t->h_row;
    double s = 0;
    for (size_t k = 0; k < t->units; k++)
        s += (double)h[k] * (double)w[k * t->block + u % t->block];
    return s;
}

static double input(const sn_f32_cell *t, size_t row, size_t gate, size_t u)
{
    return (double)t->x[(ptrdiff_t)row * t->x_row + (ptrdiff_t)gate * t->x_gate + (ptrdiff_t)u];
}

void sn_f32_lstm_ref(const sn_f32_cell *t)
{
    for (size_t row = 0; row < t->rows; row++)
        for (size_t u = t->from; u < t->to && u < t->units; u++) {
            double g[4];
            for (size_t q = 0; q < 4; q++)
                g[q] = input(t, row, q, u) + sum(t, row, q, u);
            float *c = t->c + (ptrdiff_t)row * t->c_row + u;
            const double cell = sigmoid(g[2]) * (double)*c + sigmoid(g[0]) * tanh(g[3]);
            *c = (float)cell;
            t->y[(ptrdiff_t)row * t->y_row + (ptrdiff_t)u] = (float)(sigmoid(g[1]) * tanh(cell));
        }
}

void sn_f32_gru_ref(const sn_f32_cell *t)
{
    for (size_t row = 0; row < t->rows; row++)
        for (size_t u = t->from; u < t->to && u < t->units; u++) {
            const double update = sigmoid(input(t, row, 0, u) + sum(t, row, 0, u));
            const double reset = sigmoid(input(t, row, 1, u) + sum(t, row, 1, u));
            const double inner = sum(t, row, 2, u) + (t->bias ? (double)t->bias[u] : 0.0);
            const double fresh = tanh(input(t, row, 2, u) + reset * inner);
            const double before = (double)t->h[(ptrdiff_t)row * t->h_row + (ptrdiff_t)u];
            t->y[(ptrdiff_t)row * t->y_row + (ptrdiff_t)u] =
                (float)((1.0 - update) * fresh + update * before);
        }
}
