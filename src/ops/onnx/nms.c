/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression: for every batch and class, boxes in order of score, each kept unless it
 * overlaps one already kept by more than the threshold. */
#include <string.h>

#include "compute/nms.h"
#include "ops/shared/data_movement.h"

typedef struct nms_params {
    int64_t center;
} nms_params;

static sonde_status prepare_nms(sn_prep *p)
{
    nms_params *r = p->params;
    SN_TRY(sn_prep_int(p, "center_point_box", 0, &r->center));
    return r->center == 0 || r->center == 1
               ? SONDE_OK
               : sn_prep_fail(p, "attribute 'center_point_box' is not 0 or 1");
}

static sonde_status infer_nms(sn_infer *c)
{
    sn_input_type boxes, scores;
    SN_TRY(sn_infer_input_type(c, 0, &boxes));
    SN_TRY(sn_infer_input_type(c, 1, &scores));
    if ((boxes.rank >= 0 && boxes.rank != 3) || (scores.rank >= 0 && scores.rank != 3))
        return sn_infer_fail(c, "boxes and scores must have rank 3");
    if (boxes.rank == 3 && sn_dim_known(boxes.dims[2]) && boxes.dims[2] != 4)
        return sn_infer_fail(c, "boxes have %lld coordinates, expected 4",
                             (long long)boxes.dims[2]);
    if (boxes.rank == 3 && scores.rank == 3)
        for (int i = 0; i < 2; i++) {
            sn_dim a = boxes.dims[i], b = scores.dims[2 * i];
            if (sn_dim_known(a) && sn_dim_known(b) && a != b)
                return sn_infer_fail(c, "boxes and scores differ in %s",
                                     i ? "the number of boxes" : "batch size");
        }
    sn_dim dims[2] = {SN_DIM_UNKNOWN, 3};
    return sn_infer_bounded(c, 0, SONDE_DTYPE_I64, dims, 2);
}

/* Room for the boxes of one class. */
static sonde_status bind_nms(sn_bind *b)
{
    sn_piece *items = SN_NEW(b->arena, sn_piece);
    if (!items)
        return sn_fail_memory(b->err, sizeof *items);
    *items = sn_carve(&b->workspace, b->in[0]->type.dims[1], sizeof(sn_ranked));
    b->bound = items;
    return SONDE_OK;
}

typedef SN_VEC(int64_t) triples; /* batch, class, box */

static bool select_class(const sn_step *s, sn_frame *f, const sn_nms *p, int64_t batch,
                         int64_t class_index, triples *found)
{
    const sn_tensor *boxes = sn_in(s, f, 0), *scores = sn_in(s, f, 1);
    const int64_t n = boxes->dims[1], classes = scores->dims[1];
    sn_ranked *items = sn_piece_ptr(f, *(const sn_piece *)s->bound);
    const int64_t kept =
        sn_nms_select(p, (const float *)boxes->data + batch * n * 4,
                      (const float *)scores->data + (batch * classes + class_index) * n, n, items);
    for (int64_t i = 0; i < kept; i++)
        if (!sn_vec_push(found, f->alloc, batch) || !sn_vec_push(found, f->alloc, class_index) ||
            !sn_vec_push(found, f->alloc, items[i].index))
            return false;
    return true;
}

static const sn_tensor *scalar_input(const sn_step *s, const sn_frame *f, uint32_t i)
{
    return sn_has(s, i) && sn_tensor_count(sn_in(s, f, i)) > 0 ? sn_in(s, f, i) : NULL;
}

static sonde_status run_nms(const sn_step *s, sn_frame *f)
{
    const sn_tensor *boxes = sn_in(s, f, 0), *scores = sn_in(s, f, 1);
    const sn_tensor *limit = scalar_input(s, f, 2), *iou = scalar_input(s, f, 3),
                    *score = scalar_input(s, f, 4);
    if (boxes->dtype != SONDE_DTYPE_F32 || scores->dtype != SONDE_DTYPE_F32)
        return sn_run_fail(s, f, "boxes and scores must be f32");
    const sn_nms p = {
        .center = ((const nms_params *)s->params)->center != 0,
        .limit = limit ? sn_tensor_int(limit, 0) : 0,
        .overlap = iou ? (float)sn_elem_f64(iou->dtype, iou->data, 0) : 0,
        .has_score = score != NULL,
        .score = score ? (float)sn_elem_f64(score->dtype, score->data, 0) : 0,
    };
    triples found = {0};
    bool ok = true;
    sonde_status st = SONDE_OK;
    for (int64_t b = 0; ok && b < scores->dims[0]; b++)
        for (int64_t c = 0; ok && c < scores->dims[1] && p.limit > 0; c++)
            ok = select_class(s, f, &p, b, c, &found);
    if (!ok)
        st = sn_fail_memory(f->err, found.cap * 2 * sizeof(int64_t));
    sn_tensor *y = NULL;
    if (st == SONDE_OK)
        st = sn_run_output(s, f, 0, SONDE_DTYPE_I64, (int64_t[2]){(int64_t)found.n / 3, 3}, 2, &y);
    if (st == SONDE_OK && y && found.n)
        memcpy(y->data, found.data, found.n * sizeof(int64_t));
    sn_vec_free(&found, f->alloc);
    return st;
}

const sn_op sn_op_non_max_suppression[] = {
    {SN_OP_HEAD("NonMaxSuppression", 10, 0, 2, 5, 1, 1), .flags = SN_OP_DATA_DEPENDENT,
     .params_size = sizeof(nms_params), .prepare = prepare_nms, .infer = infer_nms,
     .bind = bind_nms, .run = run_nms, .types = "f32"},
    {.name = NULL}};
