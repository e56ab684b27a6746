/* SPDX-License-Identifier: Apache-2.0 */
/* An axis is what its strides say: those of the result that both operands have are the batch, those
 * that only one has are its rows, and those that are summed are in both. The product is then
 *
 *   [batch][rows of a][rows of b] = [batch][rows of a][summed] · [batch][rows of b][summed]ᵀ
 *
 * with all axes of a kind in the order they have in the result, or in the sum. */
#include "compute/einsum_product.h"

#include <string.h>

#include "compute/split.h"

enum { LEAST_PRODUCTS = 8 }; /* of a batch: fewer are as fast one by one */
enum { A, B, Y };
enum { BATCH, ROWS_A, ROWS_B, SUMMED, KINDS };

/* Axes of one kind, with their strides in both operands and in y. */
typedef struct axes {
    int rank;
    int64_t count;
    int64_t dims[SN_COPY_MAX_RANK];
    ptrdiff_t strides[3][SN_COPY_MAX_RANK];
} axes;

static bool add_axis(axes *x, int64_t dim, ptrdiff_t a, ptrdiff_t b, ptrdiff_t y)
{
    if (x->rank == SN_COPY_MAX_RANK / KINDS)
        return false;
    x->dims[x->rank] = dim;
    x->strides[A][x->rank] = a;
    x->strides[B][x->rank] = b;
    x->strides[Y][x->rank++] = y;
    x->count = sn_count(x->count, dim, 1, 1);
    return x->count >= 0;
}

/* False: it is no product of two matrices. */
static bool sort_axes(const sn_einsum *e, axes kinds[KINDS])
{
    ptrdiff_t dense[SN_EINSUM_RANK];
    if (e->n != 2 || e->dtype != SONDE_DTYPE_F32)
        return false;
    memset(kinds, 0, KINDS * sizeof *kinds);
    for (int k = 0; k < KINDS; k++)
        kinds[k].count = 1;
    sn_dense_strides(e->out_dims, e->out_rank, dense);
    for (int i = 0; i < e->out_rank; i++) {
        const ptrdiff_t a = e->out_strides[A][i], b = e->out_strides[B][i];
        const int kind = a && b ? BATCH : a ? ROWS_A : ROWS_B;
        if (e->out_dims[i] != 1 &&
            ((!a && !b) || !add_axis(&kinds[kind], e->out_dims[i], a, b, dense[i])))
            return false;
    }
    for (int i = 0; i < e->sum_rank; i++) {
        const ptrdiff_t a = e->sum_strides[A][i], b = e->sum_strides[B][i];
        if (e->sum_dims[i] != 1 && (!a || !b || !add_axis(&kinds[SUMMED], e->sum_dims[i], a, b, 0)))
            return false;
    }
    return true;
}

static sn_gemm_desc product_of(const axes kinds[KINDS])
{
    return (sn_gemm_desc){.m = kinds[ROWS_A].count,
                          .n = kinds[ROWS_B].count,
                          .k = kinds[SUMMED].count,
                          .batch_rank = 1,
                          .batch = {kinds[BATCH].count},
                          .a_batch = {1},
                          .b_batch = {1},
                          .b_count = kinds[BATCH].count,
                          .trans_b = true,
                          .alpha = 1.0f,
                          .beta = 1.0f};
}

bool sn_einsum_product_take(const sn_einsum *e)
{
    axes kinds[KINDS];
    if (e->out_count <= 0 || e->sum_count <= 0 || !sort_axes(e, kinds))
        return false;
    return kinds[ROWS_A].count * kinds[ROWS_B].count >= LEAST_PRODUCTS;
}

/* A matrix of the product, [batch][first][second], and where its elements are in tensor `which`. */
typedef struct matrix {
    int rank;
    int64_t count, dims[SN_COPY_MAX_RANK];
    ptrdiff_t dense[SN_COPY_MAX_RANK], strides[SN_COPY_MAX_RANK];
} matrix;

static matrix matrix_of(int which, const axes kinds[KINDS], int first, int second)
{
    const int order[3] = {BATCH, first, second};
    matrix m = {.count = 1};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < kinds[order[k]].rank; i++, m.rank++) {
            m.dims[m.rank] = kinds[order[k]].dims[i];
            m.strides[m.rank] = kinds[order[k]].strides[which][i];
            m.count = sn_count(m.count, m.dims[m.rank], 1, 1);
        }
    sn_dense_strides(m.dims, m.rank, m.dense);
    return m;
}

static bool is_there(const matrix *m) /* the tensor is this matrix */
{
    return memcmp(m->dense, m->strides, sizeof *m->dense * (size_t)m->rank) == 0;
}

static void plan_copy(sn_einsum_product *p, int which, const matrix *m)
{
    p->copied[which] = !is_there(m);
    if (!p->copied[which])
        return;
    sn_copy_plan(&p->copy[which], sizeof(float), m->rank, m->dims,
                 which == Y ? m->strides : m->dense, which == Y ? m->dense : m->strides);
    p->room[which] = sn_carve(&p->workspace, m->count, sizeof(float));
}

sonde_status sn_einsum_product_plan(sn_einsum_product *p, const sn_einsum *e, bool in_bf16,
                                    uint32_t cpu_flags, size_t l2_bytes, int threads,
                                    sonde_error *err)
{
    axes kinds[KINDS];
    memset(p, 0, sizeof *p);
    if (!sort_axes(e, kinds))
        return sn_fail(err, SONDE_INTERNAL, "the equation is no matrix product");
    sn_gemm_desc d = product_of(kinds);
    d.tiles = in_bf16 && sn_gemm_tiles_pay(&d);
    const matrix a = matrix_of(A, kinds, ROWS_A, SUMMED), y = matrix_of(Y, kinds, ROWS_A, ROWS_B);
    const matrix b = matrix_of(B, kinds, ROWS_B, SUMMED),
                 plain = matrix_of(B, kinds, SUMMED, ROWS_B);
    plan_copy(p, A, &a);
    d.trans_b = !is_there(&plain);
    if (d.trans_b)
        plan_copy(p, B, &b);
    plan_copy(p, Y, &y);
    SN_TRY(sn_gemm_plan_make(&p->gemm, &d, cpu_flags, l2_bytes, threads, err));
    p->core = sn_carve_inner(&p->workspace, &p->gemm.workspace);
    return p->workspace.overflow ? sn_fail(err, SONDE_LIMIT, "the operands are too large")
                                 : SONDE_OK;
}

void sn_einsum_product_run(const sn_einsum_product *p, float *y, const float *a, const float *b,
                           void *workspace, sn_pool *pool)
{
    const float *in[2] = {a, b};
    for (int i = A; i <= B; i++)
        if (p->copied[i]) {
            float *room = sn_piece_at(workspace, p->room[i]);
            sn_copy_run(&p->copy[i], room, in[i], pool);
            in[i] = room;
        }
    float *product = p->copied[Y] ? sn_piece_at(workspace, p->room[Y]) : y;
    sn_gemm_run(&p->gemm, in[A], in[B], NULL, NULL, product, sn_piece_at(workspace, p->core), pool);
    if (p->copied[Y])
        sn_copy_run(&p->copy[Y], y, product, pool);
}
