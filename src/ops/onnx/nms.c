/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression: for every batch and class, boxes in order of score, each kept unless it
 * overlaps one already kept by more than the threshold. */
#include <string.h>

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
    sn_move_type boxes, scores;
    SN_TRY(sn_move_in(c, 0, &boxes));
    SN_TRY(sn_move_in(c, 1, &scores));
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
    return sn_move_out(c, 0, SONDE_DTYPE_I64, dims, 2);
}

typedef struct nms_candidate {
    uint64_t key; /* of the score */
    int64_t box;
} nms_candidate;

/* Room for the candidates of one class; what is kept moves to the front of the same table. */
static sonde_status bind_nms(sn_bind *b)
{
    size_t n = (size_t)b->in[0]->type.dims[1];
    return sn_size_mul(n, sizeof(nms_candidate), &b->workspace_bytes)
               ? SONDE_OK
               : sn_fail_memory(b->err, SIZE_MAX);
}

typedef struct nms_box {
    float y1, x1, y2, x2;
} nms_box;

static nms_box read_box(const nms_params *r, const float *p)
{
    if (r->center) { /* x, y, width, height */
        float hw = p[2] / 2, hh = p[3] / 2;
        return (nms_box){p[1] - hh, p[0] - hw, p[1] + hh, p[0] + hw};
    }
    /* Two opposite corners, in any order. */
    return (nms_box){p[0] < p[2] ? p[0] : p[2], p[1] < p[3] ? p[1] : p[3],
                     p[0] < p[2] ? p[2] : p[0], p[1] < p[3] ? p[3] : p[1]};
}

static bool overlaps(nms_box a, nms_box b, float threshold)
{
    float h = (a.y2 < b.y2 ? a.y2 : b.y2) - (a.y1 > b.y1 ? a.y1 : b.y1);
    float w = (a.x2 < b.x2 ? a.x2 : b.x2) - (a.x1 > b.x1 ? a.x1 : b.x1);
    if (h <= 0 || w <= 0)
        return false;
    float both = (a.y2 - a.y1) * (a.x2 - a.x1) + (b.y2 - b.y1) * (b.x2 - b.x1) - h * w;
    return both > 0 && h * w / both > threshold;
}

static bool worse(const nms_candidate *a, const nms_candidate *b)
{
    return a->key < b->key || (a->key == b->key && a->box > b->box);
}

/* Heap sort, best first: no memory and no bad cases. */
static void sift_down(nms_candidate *c, int64_t n, int64_t i)
{
    nms_candidate item = c[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && worse(&c[child + 1], &c[child]))
            child++;
        if (!worse(&c[child], &item))
            break;
        c[i] = c[child];
    }
    c[i] = item;
}

static void sort_candidates(nms_candidate *c, int64_t n)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sift_down(c, n, i);
    for (int64_t i = n - 1; i > 0; i--) {
        nms_candidate worst = c[0];
        c[0] = c[i];
        c[i] = worst;
        sift_down(c, i, 0);
    }
}

typedef struct nms_run {
    const nms_params *r;
    const sn_tensor *boxes, *scores;
    int64_t limit;
    float iou, score;
    bool has_score;
    SN_VEC(int64_t) found; /* triples */
} nms_run;

static bool select_class(nms_run *k, sn_frame *f, int64_t batch, int64_t class_index)
{
    nms_candidate *c = (nms_candidate *)(void *)f->workspace;
    int64_t n_boxes = k->boxes->dims[1], classes = k->scores->dims[1], n = 0, kept = 0;
    const float *boxes = (const float *)k->boxes->data + batch * n_boxes * 4;
    const float *scores =
        (const float *)k->scores->data + (batch * classes + class_index) * n_boxes;
    for (int64_t i = 0; i < n_boxes; i++)
        if (!k->has_score || scores[i] > k->score)
            c[n++] = (nms_candidate){sn_elem_key(SONDE_DTYPE_F32, scores, i), i};
    sort_candidates(c, n);
    for (int64_t i = 0; i < n && kept < k->limit; i++) {
        nms_box box = read_box(k->r, boxes + 4 * c[i].box);
        bool keep = true;
        for (int64_t j = 0; keep && j < kept; j++)
            keep = !overlaps(box, read_box(k->r, boxes + 4 * c[j].box), k->iou);
        if (!keep)
            continue;
        c[kept++] = c[i];
        if (!sn_vec_push(&k->found, f->alloc, batch) ||
            !sn_vec_push(&k->found, f->alloc, class_index) ||
            !sn_vec_push(&k->found, f->alloc, c[kept - 1].box))
            return false;
    }
    return true;
}

static const sn_tensor *scalar_input(const sn_step *s, const sn_frame *f, uint32_t i)
{
    return sn_has(s, i) && sn_tensor_count(sn_in(s, f, i)) > 0 ? sn_in(s, f, i) : NULL;
}

static sonde_status run_nms(const sn_step *s, sn_frame *f)
{
    nms_run k = {.r = s->params, .boxes = sn_in(s, f, 0), .scores = sn_in(s, f, 1)};
    const sn_tensor *limit = scalar_input(s, f, 2), *iou = scalar_input(s, f, 3),
                    *score = scalar_input(s, f, 4);
    if (k.boxes->dtype != SONDE_DTYPE_F32 || k.scores->dtype != SONDE_DTYPE_F32)
        return sn_run_fail(s, f, "boxes and scores must be f32");
    k.limit = limit ? sn_move_int(limit, 0) : 0;
    k.iou = iou ? (float)sn_elem_f64(iou->dtype, iou->data, 0) : 0;
    k.has_score = score != NULL;
    k.score = score ? (float)sn_elem_f64(score->dtype, score->data, 0) : 0;
    bool ok = true;
    sonde_status st = SONDE_OK;
    for (int64_t b = 0; ok && b < k.scores->dims[0]; b++)
        for (int64_t c = 0; ok && c < k.scores->dims[1] && k.limit > 0; c++)
            ok = select_class(&k, f, b, c);
    if (!ok)
        st = sn_fail_memory(f->err, k.found.cap * 2 * sizeof(int64_t));
    sn_tensor *y = NULL;
    if (st == SONDE_OK)
        st =
            sn_run_output(s, f, 0, SONDE_DTYPE_I64, (int64_t[2]){(int64_t)k.found.n / 3, 3}, 2, &y);
    if (st == SONDE_OK && y && k.found.n)
        memcpy(y->data, k.found.data, k.found.n * sizeof(int64_t));
    sn_vec_free(&k.found, f->alloc);
    return st;
}

const sn_op sn_op_non_max_suppression[] = {
    {SN_MOVE_HEAD("NonMaxSuppression", 10, 0, 2, 5, 1, 1), .flags = SN_OP_DATA_DEPENDENT,
     .params_size = sizeof(nms_params), .prepare = prepare_nms, .infer = infer_nms,
     .bind = bind_nms, .run = run_nms, .types = "f32"},
    {.name = NULL}};
