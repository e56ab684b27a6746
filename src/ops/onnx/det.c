/* SPDX-License-Identifier: Apache-2.0 */
/* Det: determinants by elimination with row pivots, in double. */
#include <math.h>

#include "ops/shared/as_f32.h"
#include "ops/shared/data_movement.h"

static sonde_status infer(sn_infer *c)
{
    const sn_type *x = &c->in[0]->type;
    SN_TRY(sn_wide_float(c, 0));
    if (x->rank < 0)
        return sn_infer_tensor(c, 0, x->dtype, NULL, -1);
    if (x->rank < 2)
        return sn_infer_fail(c, "the input has rank %d, at least 2 is needed", (int)x->rank);
    const sn_dim a = x->dims[x->rank - 2], b = x->dims[x->rank - 1];
    if (sn_dim_known(a) && sn_dim_known(b) && a != b)
        return sn_infer_fail(c, "matrices of %lld by %lld have no determinant", (long long)a,
                             (long long)b);
    return sn_wide_out(c, 0, x->dtype, x->dims, x->rank - 2);
}

static sonde_status bind(sn_bind *b)
{
    const sn_type *x = &b->in[0]->type;
    const int64_t n = x->dims[x->rank - 1];
    sn_room room = {0};
    int64_t cells;
    if (!sn_i64_mul(n, n, &cells))
        return sn_bind_fail(b, SONDE_LIMIT, "the matrices are too large");
    if (!sn_wide_takes(x->dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "type %s is not supported",
                            sn_dtype_name(x->dtype));
    sn_room_take(&room, cells, sizeof(double));
    b->kernel = "det_lu";
    b->flops = (uint64_t)sn_wide_count(b->in[0]) * (uint64_t)n * 2 / 3;
    return sn_room_done(b, &room);
}

static double determinant(double *a, int64_t n)
{
    double det = 1.0;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k]))
                pivot = i;
        if (a[pivot * n + k] == 0)
            return 0.0;
        if (pivot != k) {
            det = -det;
            for (int64_t j = k; j < n; j++) {
                const double t = a[k * n + j];
                a[k * n + j] = a[pivot * n + j];
                a[pivot * n + j] = t;
            }
        }
        det *= a[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / a[k * n + k];
            for (int64_t j = k + 1; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return det;
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0);
    sn_tensor *y = sn_out(s, f, 0);
    const int64_t n = x->dims[x->rank - 1], cells = n * n, count = sn_tensor_count(y);
    double *a = (double *)(void *)f->workspace;
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = 0; k < cells; k++)
            a[k] = sn_elem_f64(x->dtype, x->data, i * cells + k);
        sn_elem_set_f64(y->dtype, y->data, i, determinant(a, n));
        if (sn_move_cancelled(f))
            return sn_run_cancelled(s, f);
    }
    return SONDE_OK;
}

const sn_op sn_op_det[] = {{SN_MOVE_HEAD("Det", 11, 0, 1, 1, 1, 1), .infer = infer, .bind = bind,
                            .run = run, .types = SN_WIDE_TYPES},
                           {.name = NULL}};
