/* SPDX-License-Identifier: Apache-2.0 */
/* One step of an LSTM or GRU in the vector vocabulary: all gates of a block of units stay in
 * registers while the state streams by, and the cell follows at once, so that no gate is ever
 * stored. Rows of a batch go a few at a time and find the block's weights in the first-level cache.
 * Include after eltwise.tmpl.h (v_sigmoid, v_tanh). */

enum {
    CELL_ROWS = SN_REGS / (SN_BV * 8), /* sums of four gates and the weights they meet must fit */
    CELL_GATES = 4,
    CELL_MAX = CELL_ROWS * CELL_GATES * SN_BV,
};

SN_INLINE sn_v cell_load(const float *p, size_t n)
{
    return n >= SN_VL ? v_load(p) : v_load_n(p, n);
}
SN_INLINE void cell_store(float *p, sn_v v, size_t n)
{
    if (n >= SN_VL)
        v_store(p, v);
    else
        v_store_n(p, v, n);
}

/* acc[(row * G + gate) * SN_BV + vector] = sums over the state. A single row has few sums: it keeps
 * two sets of them, which hides the latency of an FMA. */
SN_INLINE void cell_sums(const sn_f32_cell *t, size_t row, size_t unit, sn_v *acc, const int R,
                         const int G)
{
    const int sets = R == 1 ? 2 : 1, each = R * G * SN_BV;
    const float *w = t->w + unit * t->units, *h = t->h + (ptrdiff_t)row * t->h_row;
    const ptrdiff_t w_gate = t->w_gate, h_row = t->h_row;
    const size_t units = t->units, whole = units / (size_t)sets * (size_t)sets;
    sn_v sum[2 * CELL_MAX];
    SN_UNROLL for (int i = 0; i < sets * each; i++) sum[i] = v_zero();
    for (size_t k = 0; k < whole; k += (size_t)sets, w += sets * SN_BLOCK, h += sets)
        SN_UNROLL for (int s = 0; s < sets; s++)
        {
            SN_UNROLL for (int i = 0; i < G * SN_BV; i++)
            {
                const sn_v wv = v_load(w + i / SN_BV * w_gate + s * SN_BLOCK + i % SN_BV * SN_VL);
                SN_UNROLL for (int r = 0; r < R; r++)
                {
                    sn_v *a = &sum[s * each + r * G * SN_BV + i];
                    *a = v_fma(v_bcast(h + r * h_row + s), wv, *a);
                }
            }
        }
    if (whole < units)
        SN_UNROLL for (int i = 0; i < G * SN_BV; i++)
        {
            const sn_v wv = v_load(w + i / SN_BV * w_gate + i % SN_BV * SN_VL);
            SN_UNROLL for (int r = 0; r < R; r++) sum[r * G * SN_BV + i] =
                v_fma(v_bcast(h + r * h_row), wv, sum[r * G * SN_BV + i]);
        }
    SN_UNROLL for (int i = 0; i < each; i++) acc[i] =
        sets > 1 ? v_add(sum[i], sum[each + i]) : sum[i];
}

/* n units from `at`; g[gate * SN_BV] are their sums. */
SN_INLINE void lstm_vector(const sn_f32_cell *t, size_t row, size_t at, size_t n, const sn_v *g)
{
    const float *x = t->x + (ptrdiff_t)row * t->x_row + at;
    float *c = t->c + (ptrdiff_t)row * t->c_row + at;
    const sn_v in = v_sigmoid(v_add(g[0], cell_load(x, n)));
    const sn_v out = v_sigmoid(v_add(g[SN_BV], cell_load(x + t->x_gate, n)));
    const sn_v forget = v_sigmoid(v_add(g[2 * SN_BV], cell_load(x + 2 * t->x_gate, n)));
    const sn_v fresh = v_tanh(v_add(g[3 * SN_BV], cell_load(x + 3 * t->x_gate, n)));
    const sn_v cell = v_fma(forget, cell_load(c, n), v_mul(in, fresh));
    cell_store(c, cell, n);
    cell_store(t->y + (ptrdiff_t)row * t->y_row + at, v_mul(out, v_tanh(cell)), n);
}

SN_INLINE void gru_vector(const sn_f32_cell *t, size_t row, size_t at, size_t n, const sn_v *g)
{
    const float *x = t->x + (ptrdiff_t)row * t->x_row + at;
    const sn_v update = v_sigmoid(v_add(g[0], cell_load(x, n)));
    const sn_v reset = v_sigmoid(v_add(g[SN_BV], cell_load(x + t->x_gate, n)));
    const sn_v inner = t->bias ? v_add(g[2 * SN_BV], cell_load(t->bias + at, n)) : g[2 * SN_BV];
    const sn_v fresh = v_tanh(v_fma(reset, inner, cell_load(x + 2 * t->x_gate, n)));
    const sn_v before = cell_load(t->h + (ptrdiff_t)row * t->h_row + at, n);
    cell_store(t->y + (ptrdiff_t)row * t->y_row + at, v_fma(update, v_sub(before, fresh), fresh),
               n);
}

SN_INLINE void cell_block(const sn_f32_cell *t, size_t row, size_t unit, const int R, const int G)
{
    sn_v acc[CELL_MAX];
    const size_t left = t->units - unit;
    cell_sums(t, row, unit, acc, R, G);
    SN_UNROLL for (int r = 0; r < R; r++) SN_UNROLL for (int v = 0; v < SN_BV; v++)
    {
        const size_t at = unit + (size_t)(v * SN_VL), n = left - (size_t)(v * SN_VL);
        const sn_v *g = acc + r * G * SN_BV + v;
        if (left <= (size_t)(v * SN_VL))
            break;
        if (G == 4)
            lstm_vector(t, row + (size_t)r, at, n, g);
        else
            gru_vector(t, row + (size_t)r, at, n, g);
    }
}

SN_INLINE void cell_step(const sn_f32_cell *t, const int G)
{
    const size_t blocks = t->to > t->from ? (t->to - t->from - 1) / SN_BLOCK + 1 : 0;
    for (size_t i = 0; i < blocks; i++) {
        const size_t unit = t->from + (t->last_first ? blocks - 1 - i : i) * SN_BLOCK;
        size_t row = 0;
        for (; row + CELL_ROWS <= t->rows; row += CELL_ROWS)
            cell_block(t, row, unit, CELL_ROWS, G);
        for (; row < t->rows; row++)
            cell_block(t, row, unit, 1, G);
    }
}

void SN_ISA(sn_f32_lstm)(const sn_f32_cell *t)
{
    cell_step(t, 4);
}

void SN_ISA(sn_f32_gru)(const sn_f32_cell *t)
{
    cell_step(t, 3);
}
