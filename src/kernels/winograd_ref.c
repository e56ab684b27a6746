/* SPDX-License-Identifier: Apache-2.0 */
/* The references of Winograd's transforms: products with the matrices Bᵀ, Aᵀ and G of F(4,3) and
 * F(2,3), as the literature writes them. */
#include <math.h>
#include <stdbool.h>

#include "kernels/kernels.h"

enum { MAX = 6 };

/* For F(4,3) the denominators of G's rows, 4, -6, -6, 24, 24 and 1, are moved to those of Bᵀ: a
 * sum of products is the same, and filters are transformed without them. */
static const float in4[6][6] = {{1, 0, -5.0f / 4, 0, 1.0f / 4, 0},
                                {0, 2.0f / 3, 2.0f / 3, -1.0f / 6, -1.0f / 6, 0},
                                {0, -2.0f / 3, 2.0f / 3, 1.0f / 6, -1.0f / 6, 0},
                                {0, -1.0f / 12, -1.0f / 24, 1.0f / 12, 1.0f / 24, 0},
                                {0, 1.0f / 12, -1.0f / 24, -1.0f / 12, 1.0f / 24, 0},
                                {0, 4, 0, -5, 0, 1}};
static const float in2[6][6] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
static const float out4[6][6] = {
    {1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};
static const float out2[6][6] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
static const float filter4[6][6] = {{1}, {1, 1, 1}, {1, -1, 1}, {1, 2, 4}, {1, -2, 4}, {0, 0, 1}};
static const float filter2[6][6] = {{1}, {0.5f, 0.5f, 0.5f}, {0.5f, -0.5f, 0.5f}, {0, 0, 1}};

/* y = T · x · Tᵀ, x is n×n, T is m×n. */
static void both_sides(float y[MAX][MAX], const float t[6][6], int m, int n, float x[MAX][MAX])
{
    float half[MAX][MAX];
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            half[i][j] = 0;
            for (int k = 0; k < n; k++)
                half[i][j] = half[i][j] + t[i][k] * x[k][j];
        }
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) {
            y[i][j] = 0;
            for (int k = 0; k < n; k++)
                y[i][j] = y[i][j] + half[i][k] * t[j][k];
        }
}

static void transform_in(const sn_f32_wino_in *t, int m)
{
    const int n = m + 2;
    float x[MAX][MAX], y[MAX][MAX];
    for (unsigned l = 0; l < t->block; l++) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                x[i][j] = i >= t->row_from && i < t->row_to && j >= t->col_from && j < t->col_to
                              ? t->x[i * t->x_row + j * t->x_pixel + l]
                              : 0.0f;
        both_sides(y, m == 4 ? in4 : in2, n, n, x);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                t->v[(i * n + j) * t->v_pos + l] = y[i][j];
    }
}

/* The corners, which have all pixels between them, and (1, 1), which has all taps. */
static bool is_finite(const sn_f32_wino_out *t, int n)
{
    const int positions[] = {0, n - 1, n + 1, n * (n - 1), n * n - 1};
    bool finite = true;
    for (unsigned l = 0; l < t->block; l++)
        for (size_t i = 0; i < sizeof positions / sizeof *positions; i++)
            finite = finite && isfinite(t->m[positions[i] * t->m_pos + l]);
    return finite;
}

static bool transform_out(const sn_f32_wino_out *t, int m)
{
    const int n = m + 2;
    float x[MAX][MAX], y[MAX][MAX];
    if (!is_finite(t, n))
        return false;
    for (unsigned l = 0; l < t->block; l++) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                x[i][j] = t->m[(i * n + j) * t->m_pos + l];
        both_sides(y, m == 4 ? out4 : out2, m, n, x);
        for (int i = 0; i < t->rows; i++)
            for (int j = 0; j < t->cols; j++) {
                const ptrdiff_t at = i * t->y_row + j * t->y_pixel + (ptrdiff_t)l;
                float v = t->bias ? y[i][j] + t->bias[l] : y[i][j];
                if (t->z)
                    v = v + t->z[at];
                if (v < t->lo)
                    v = t->lo;
                if (v > t->hi)
                    v = t->hi;
                t->y[at] = v;
            }
    }
    return true;
}

static void transform_filter(float *u, const float *w, size_t block, int m)
{
    const int n = m + 2;
    float x[MAX][MAX], y[MAX][MAX];
    for (size_t l = 0; l < block * block; l++) {
        for (size_t i = 0; i < 9; i++)
            x[i / 3][i % 3] = w[i * block * block + l];
        both_sides(y, m == 4 ? filter4 : filter2, n, 3, x);
        for (int i = 0; i < n * n; i++)
            u[(size_t)i * (block * block + SN_WINO_GAP) + l] = y[i / n][i % n];
    }
}

void sn_f32_wino4_in_ref(const sn_f32_wino_in *t)
{
    transform_in(t, 4);
}
bool sn_f32_wino4_out_ref(const sn_f32_wino_out *t)
{
    return transform_out(t, 4);
}
void sn_f32_wino4_filter_ref(float *u, const float *w, unsigned block)
{
    transform_filter(u, w, block, 4);
}
void sn_f32_wino2_in_ref(const sn_f32_wino_in *t)
{
    transform_in(t, 2);
}
bool sn_f32_wino2_out_ref(const sn_f32_wino_out *t)
{
    return transform_out(t, 2);
}
void sn_f32_wino2_filter_ref(float *u, const float *w, unsigned block)
{
    transform_filter(u, w, block, 2);
}
