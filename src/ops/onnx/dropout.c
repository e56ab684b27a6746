/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: identity and a mask of ones, which is all inference needs. Since opset 12 an input may
 * ask for training mode. */
#include "base/clock.h"
#include "compute/random.h"
#include "ops/shared/data_movement.h"

static sonde_status infer_dropout_mask(sn_infer *c, sn_dtype mask)
{
    sn_input_type x;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(sn_infer_same(c, 0, 0));
    return sn_infer_bounded(c, 1, mask == SONDE_DTYPE_UNDEFINED ? x.dtype : mask, x.dims, x.rank);
}

static sonde_status infer_dropout_1(sn_infer *c)
{
    return infer_dropout_mask(c, SONDE_DTYPE_UNDEFINED); /* the mask has the data's type */
}

static sonde_status infer_dropout_10(sn_infer *c)
{
    return infer_dropout_mask(c, SONDE_DTYPE_BOOL);
}

/* Inference keeps every element; the mask says so. */
static sonde_status run_dropout(const sn_step *s, sn_frame *f)
{
    SN_TRY(sn_run_copy(s, f, 0, sn_in(s, f, 0)));
    if (!sn_wants(s, 1))
        return SONDE_OK;
    sn_tensor *mask = sn_out(s, f, 1);
    _Alignas(16) uint8_t one[16] = {0};
    sn_elem_set_f64(mask->dtype, one, 0, 1.0);
    sn_copy_fill(mask->data, one, sn_dtype_bytes(mask->dtype), sn_tensor_count(mask), f->pool);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ training mode */
typedef struct dropout_params {
    bool seeded;
    int64_t seed;
} dropout_params;

static sonde_status prepare_dropout(sn_prep *p)
{
    dropout_params *r = p->params;
    r->seeded = sn_node_attr(p->node, "seed") != NULL;
    return sn_prep_int(p, "seed", 0, &r->seed);
}

static sonde_status run_dropout_12(const sn_step *s, sn_frame *f)
{
    const dropout_params *p = s->params;
    const sn_tensor *x = sn_in(s, f, 0), *ratio = sn_has(s, 1) ? sn_in(s, f, 1) : NULL,
                    *mode = sn_has(s, 2) ? sn_in(s, f, 2) : NULL;
    if (mode && sn_tensor_count(mode) != 1)
        return sn_run_fail(s, f, "the training mode has %lld elements, expected 1",
                           (long long)sn_tensor_count(mode));
    bool training = mode && sn_tensor_int(mode, 0) != 0;
    double drop =
        ratio && sn_tensor_count(ratio) == 1 ? sn_elem_f64(ratio->dtype, ratio->data, 0) : 0.5;
    if (!training || drop == 0)
        return run_dropout(s, f);
    if (!(drop > 0 && drop < 1))
        return sn_run_fail(s, f, "the ratio is %g, expected 0 to below 1", drop);
    const uint32_t seed = p->seeded ? (uint32_t)p->seed : (uint32_t)sn_ticks();
    sn_dropout_run(seed, drop, sn_tensor_elems(sn_wants(s, 0) ? sn_out(s, f, 0) : NULL),
                   sn_tensor_elems(x), sn_wants(s, 1) ? sn_out(s, f, 1)->data : NULL,
                   sn_tensor_count(x));
    return SONDE_OK;
}

#define DROPOUT_TYPES "f16 bf16 f32 f64"
const sn_op sn_op_dropout[] = {
    {SN_OP_HEAD("Dropout", 1, 9, 1, 1, 1, 2), .flags = SN_OP_VIEW, .infer = infer_dropout_1,
     .run = run_dropout, .types = DROPOUT_TYPES},
    {SN_OP_HEAD("Dropout", 10, 11, 1, 1, 1, 2), .flags = SN_OP_VIEW, .infer = infer_dropout_10,
     .run = run_dropout, .types = DROPOUT_TYPES},
    {SN_OP_HEAD("Dropout", 12, 0, 1, 3, 1, 2), .flags = SN_OP_INPLACE0,
     .params_size = sizeof(dropout_params), .prepare = prepare_dropout, .infer = infer_dropout_10,
     .run = run_dropout_12, .types = DROPOUT_TYPES},
    {.name = NULL}};
