/* SPDX-License-Identifier: Apache-2.0 */
/* Det: determinants of square matrices. */
#include "compute/determinant.h"
#include "ops/shared/checks.h"
#include "ops/shared/data_movement.h"

static sonde_status infer(sn_infer *c)
{
    const sn_type *x = &c->in[0]->type;
    SN_TRY(sn_check_float(c, 0));
    if (x->rank < 0)
        return sn_infer_tensor(c, 0, x->dtype, NULL, -1);
    if (x->rank < 2)
        return sn_infer_fail(c, "the input has rank %d, at least 2 is needed", (int)x->rank);
    const sn_dim a = x->dims[x->rank - 2], b = x->dims[x->rank - 1];
    if (sn_dim_known(a) && sn_dim_known(b) && a != b)
        return sn_infer_fail(c, "a determinant needs square matrices, not %lld by %lld",
                             (long long)a, (long long)b);
    return sn_infer_bounded(c, 0, x->dtype, x->dims, x->rank - 2);
}

static sonde_status bind(sn_bind *b)
{
    const sn_type *x = &b->in[0]->type;
    const int64_t n = x->dims[x->rank - 1];
    sn_piece *matrix = SN_NEW(b->arena, sn_piece);
    int64_t cells, all = 0;
    if (!matrix)
        return sn_fail_memory(b->err, sizeof *matrix);
    if (!sn_i64_mul(n, n, &cells))
        return sn_bind_fail(b, SONDE_LIMIT, "the matrices are too large");
    if (!sn_is_common_float(x->dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "type %s is not supported",
                            sn_dtype_name(x->dtype));
    *matrix = sn_carve(&b->workspace, cells, sizeof(double));
    b->bound = matrix;
    b->kernel = "det_lu";
    sn_type_count(x, &all);
    b->flops = (uint64_t)all * (uint64_t)n * 2 / 3;
    return SONDE_OK;
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0);
    sn_tensor *y = sn_out(s, f, 0);
    const int64_t n = x->dims[x->rank - 1], count = sn_tensor_count(y);
    double *scratch = sn_piece_ptr(f, *(const sn_piece *)s->bound);
    return sn_determinants_run(sn_tensor_elems(y), sn_tensor_elems(x), count, n, scratch, f->cancel)
               ? SONDE_OK
               : sn_fail_cancelled(f);
}

const sn_op sn_op_det[] = {{SN_OP_HEAD("Det", 11, 0, 1, 1, 1, 1), .infer = infer, .bind = bind,
                            .run = run, .types = SN_COMMON_FLOATS},
                           {.name = NULL}};
