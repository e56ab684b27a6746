/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: identity and a mask of ones, which is all inference needs. Since opset 12 an input may
 * ask for training mode; its random numbers are those of the operator's reference text (the
 * Mersenne Twister of Matsumoto and Nishimura, 53-bit reals), so that a seed gives the documented
 * result. */
#include "base/clock.h"
#include "ops/shared/data_movement.h"

static sonde_status infer_dropout_mask(sn_infer *c, sn_dtype mask)
{
    sn_move_type x;
    SN_TRY(sn_move_in(c, 0, &x));
    SN_TRY(sn_infer_same(c, 0, 0));
    return sn_move_out(c, 1, mask == SONDE_DTYPE_UNDEFINED ? x.dtype : mask, x.dims, x.rank);
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
    SN_TRY(sn_move_whole(s, f, 0, sn_in(s, f, 0)));
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

enum { TWISTER_N = 624, TWISTER_M = 397 };

typedef struct twister {
    uint32_t state[TWISTER_N];
    int at;
} twister;

static void twister_seed(twister *t, uint32_t seed)
{
    t->state[0] = seed;
    for (uint32_t i = 1; i < TWISTER_N; i++)
        t->state[i] = 1812433253u * (t->state[i - 1] ^ (t->state[i - 1] >> 30)) + i;
    t->at = TWISTER_N;
}

static uint32_t twister_next(twister *t)
{
    if (t->at == TWISTER_N) {
        for (int i = 0; i < TWISTER_N; i++) {
            uint32_t y =
                (t->state[i] & 0x80000000u) | (t->state[(i + 1) % TWISTER_N] & 0x7fffffffu);
            t->state[i] =
                t->state[(i + TWISTER_M) % TWISTER_N] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        t->at = 0;
    }
    uint32_t y = t->state[t->at++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

/* In [0, 1), 53 bits. */
static double twister_real(twister *t)
{
    uint32_t a = twister_next(t) >> 5, b = twister_next(t) >> 6;
    return ((double)a * 67108864.0 + (double)b) / 9007199254740992.0;
}

static sonde_status run_dropout_12(const sn_step *s, sn_frame *f)
{
    const dropout_params *p = s->params;
    const sn_tensor *x = sn_in(s, f, 0), *ratio = sn_has(s, 1) ? sn_in(s, f, 1) : NULL,
                    *mode = sn_has(s, 2) ? sn_in(s, f, 2) : NULL;
    if (mode && sn_tensor_count(mode) != 1)
        return sn_run_fail(s, f, "the training mode has %lld elements, expected 1",
                           (long long)sn_tensor_count(mode));
    bool training = mode && sn_move_int(mode, 0) != 0;
    double drop =
        ratio && sn_tensor_count(ratio) == 1 ? sn_elem_f64(ratio->dtype, ratio->data, 0) : 0.5;
    if (!training || drop == 0)
        return run_dropout(s, f);
    if (!(drop > 0 && drop < 1))
        return sn_run_fail(s, f, "the ratio is %g, expected 0 to below 1", drop);
    twister t;
    twister_seed(&t, p->seeded ? (uint32_t)p->seed : (uint32_t)sn_ticks());
    sn_tensor *y = sn_wants(s, 0) ? sn_out(s, f, 0) : NULL,
              *mask = sn_wants(s, 1) ? sn_out(s, f, 1) : NULL;
    for (int64_t i = 0, n = sn_tensor_count(x); i < n; i++) {
        bool keep = twister_real(&t) >= drop;
        if (y)
            sn_elem_set_f64(y->dtype, y->data, i,
                            keep ? sn_elem_f64(x->dtype, x->data, i) * (1 / (1 - drop)) : 0);
        if (mask)
            ((uint8_t *)mask->data)[i] = keep;
    }
    return SONDE_OK;
}

#define DROPOUT_TYPES "f16 bf16 f32 f64"
const sn_op sn_op_dropout[] = {
    {SN_MOVE_HEAD("Dropout", 1, 9, 1, 1, 1, 2), .flags = SN_OP_VIEW, .infer = infer_dropout_1,
     .run = run_dropout, .types = DROPOUT_TYPES},
    {SN_MOVE_HEAD("Dropout", 10, 11, 1, 1, 1, 2), .flags = SN_OP_VIEW, .infer = infer_dropout_10,
     .run = run_dropout, .types = DROPOUT_TYPES},
    {SN_MOVE_HEAD("Dropout", 12, 0, 1, 3, 1, 2), .flags = SN_OP_INPLACE0,
     .params_size = sizeof(dropout_params), .prepare = prepare_dropout, .infer = infer_dropout_10,
     .run = run_dropout_12, .types = DROPOUT_TYPES},
    {.name = NULL}};
