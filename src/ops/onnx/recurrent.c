/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU and LSTM, and DynamicQuantizeLSTM of com.microsoft. Attributes, shapes and element types
 * here; the numbers are made by the driver in compute/recurrent.h, in f32, but for the product of
 * the input where bf16 is asked for. Constant f32 weights are packed with the program; weights of
 * bytes become f32 in every run. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "compute/byte_steps.h"
#include "compute/recurrent.h"
#include "compute/split.h"
#include "ops/shared/checks.h"
#include "ops/shared/converted.h"

typedef struct cell_params {
    sn_cell cell;
    int64_t hidden; /* 0: from the weights */
    int dirs;
    bool reverse, batch_first, linear_before_reset, input_forget;
    bool bytes; /* DynamicQuantizeLSTM: the weights are, and lie transposed */
    float clip;
    sn_gate_act act[2][SN_CELL_MAX_ACTS];
} cell_params;

enum { IN_X, IN_W, IN_R, IN_B, IN_LENS, IN_H0, IN_C0, IN_P, N_IN };
enum { IN_W_SCALE = N_IN, IN_W_ZERO, IN_R_SCALE, IN_R_ZERO, N_IN_BYTES };

/* ------------------------------------------------------------------ prepare */
typedef struct act_info {
    const char *text;
    int n_params;
    float defaults[2];
} act_info;

static const act_info acts[SN_GATE_ACT_COUNT] = {
#define X(id, text, unary, n, a, b) {text, n, {a, b}},
    SN_GATE_ACT_LIST(X)
#undef X
};

static bool same_word(const char *word, sonde_string s)
{
    size_t n = strlen(word);
    if (n != s.size)
        return false;
    for (size_t i = 0; i < n; i++)
        if (tolower((unsigned char)word[i]) != tolower((unsigned char)s.data[i]))
            return false;
    return true;
}

static int act_count(sn_cell cell)
{
    return cell == SN_CELL_LSTM ? 3 : cell == SN_CELL_GRU ? 2 : 1;
}

/* alpha and beta are lists that each function takes its own from, in order, as far as they reach.
 */
static sonde_status prepare_acts(sn_prep *p)
{
    cell_params *r = p->params;
    const float *alpha, *beta;
    size_t n_alpha, n_beta, at_alpha = 0, at_beta = 0;
    const int per_dir = act_count(r->cell);
    const sn_attr *names = sn_node_attr(p->node, "activations");
    SN_TRY(sn_prep_floats(p, "activation_alpha", &alpha, &n_alpha));
    SN_TRY(sn_prep_floats(p, "activation_beta", &beta, &n_beta));
    if (names && names->n == 0)
        names = NULL;
    if (names && names->kind != SN_ATTR_STRINGS)
        return sn_prep_fail(p, "attribute 'activations' is not a list of strings");
    if (names && names->n < (size_t)(per_dir * r->dirs))
        return sn_prep_fail(p, "attribute 'activations' names %llu functions, expected %d",
                            (unsigned long long)names->n, per_dir * r->dirs);
    for (int i = 0; i < r->dirs * per_dir; i++) {
        sn_gate_act *a = &r->act[i / per_dir][i % per_dir];
        const bool gate = i % per_dir == 0 && r->cell != SN_CELL_RNN;
        a->kind = gate ? SN_GATE_SIGMOID : SN_GATE_TANH;
        if (names) {
            int k = 0;
            while (k < SN_GATE_ACT_COUNT && !same_word(acts[k].text, names->strings[i]))
                k++;
            if (k == SN_GATE_ACT_COUNT)
                return sn_prep_fail(p, "activation '%.*s' is unknown",
                                    (int)(names->strings[i].size & 63), names->strings[i].data);
            a->kind = (sn_gate_act_kind)k;
        }
        const act_info *info = &acts[a->kind];
        memcpy(a->params, info->defaults, sizeof a->params);
        if (info->n_params > 0 && at_alpha < n_alpha)
            a->params[0] = alpha[at_alpha++];
        if (info->n_params > 1 && at_beta < n_beta)
            a->params[1] = beta[at_beta++];
    }
    return SONDE_OK;
}

static sonde_status prepare_cell(sn_prep *p, sn_cell cell)
{
    cell_params *r = p->params;
    const char *direction;
    int64_t layout, flag;
    r->cell = cell;
    SN_TRY(sn_prep_string(p, "direction", "forward", &direction));
    if (strcmp(direction, "forward") && strcmp(direction, "reverse") &&
        strcmp(direction, "bidirectional"))
        return sn_prep_fail(p, "direction '%s' is unknown", direction);
    r->reverse = strcmp(direction, "reverse") == 0;
    r->dirs = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    SN_TRY(sn_prep_int(p, "hidden_size", 0, &r->hidden));
    if (r->hidden < 0 || r->hidden > INT32_MAX)
        return sn_prep_fail(p, "hidden_size is %lld, which is invalid", (long long)r->hidden);
    SN_TRY(sn_prep_int(p, "layout", 0, &layout));
    if (layout != 0 && layout != 1)
        return sn_prep_fail(p, "layout must be 0 or 1");
    r->batch_first = layout == 1;
    SN_TRY(sn_prep_int(p, "linear_before_reset", 0, &flag));
    r->linear_before_reset = flag != 0;
    SN_TRY(sn_prep_int(p, "input_forget", 0, &flag));
    r->input_forget = flag != 0;
    SN_TRY(sn_prep_float(p, "clip", INFINITY, &r->clip));
    if (!(r->clip > 0)) /* 0 and below: no clip, as if it were not there */
        r->clip = INFINITY;
    return prepare_acts(p);
}

static sonde_status prepare_rnn(sn_prep *p)
{
    return prepare_cell(p, SN_CELL_RNN);
}
static sonde_status prepare_gru(sn_prep *p)
{
    return prepare_cell(p, SN_CELL_GRU);
}
static sonde_status prepare_lstm(sn_prep *p)
{
    return prepare_cell(p, SN_CELL_LSTM);
}
static sonde_status prepare_byte_lstm(sn_prep *p)
{
    ((cell_params *)p->params)->bytes = true;
    return prepare_cell(p, SN_CELL_LSTM);
}

/* ------------------------------------------------------------------ infer */
static sonde_status infer_cell(sn_infer *c)
{
    const cell_params *r = c->params;
    const int gates = sn_cell_gates(r->cell);
    static const sn_dtype int32[] = {SONDE_DTYPE_I32}, byte[] = {SONDE_DTYPE_U8, SONDE_DTYPE_I8};
    const int rows = r->bytes ? 2 : 1, cols = 3 - rows; /* where weights have gates and inputs */
    const sn_dtype dtype = c->in[IN_X]->type.dtype;
    SN_TRY(sn_check_float(c, IN_X));
    for (uint32_t i = IN_W; i < N_IN; i++)
        if (r->bytes && i <= IN_R)
            SN_TRY(sn_check_dtype(c, i, byte, 2));
        else if (i != IN_LENS)
            SN_TRY(sn_check_same_dtype(c, i, IN_X));
    SN_TRY(sn_check_dtype(c, IN_LENS, int32, 1));

    sn_dim x[3] = {SN_DIM_UNKNOWN, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN};
    SN_TRY(sn_check_dims(c, IN_X, x, 3));
    sn_dim hidden = r->hidden ? r->hidden : SN_DIM_UNKNOWN;
    sn_dim rec[3] = {r->dirs};
    rec[rows] = sn_dim_mul(hidden, gates);
    rec[cols] = hidden;
    SN_TRY(sn_check_dims(c, IN_R, rec, 3));
    hidden = rec[cols];
    if (sn_dim_known(hidden) &&
        (hidden > INT32_MAX || (sn_dim_known(rec[rows]) && rec[rows] != hidden * gates)))
        return sn_infer_fail(c, "recurrence weights of %lld rows do not fit hidden size %lld",
                             (long long)rec[rows], (long long)hidden);
    sn_dim wide = sn_dim_mul(hidden, gates);
    sn_dim w[3] = {r->dirs};
    w[rows] = wide;
    w[cols] = x[2];
    SN_TRY(sn_check_dims(c, IN_W, w, 3));
    sn_dim seq = x[r->batch_first ? 1 : 0], batch = x[r->batch_first ? 0 : 1];
    sn_dim b[2] = {r->dirs, sn_dim_mul(wide, 2)}, lens[1] = {batch},
           peep[2] = {r->dirs, sn_dim_mul(hidden, 3)};
    sn_dim state[3] = {r->batch_first ? batch : r->dirs, r->batch_first ? r->dirs : batch, hidden};
    SN_TRY(sn_check_dims(c, IN_B, b, 2));
    SN_TRY(sn_check_dims(c, IN_LENS, lens, 1));
    SN_TRY(sn_check_dims(c, IN_H0, state, 3));
    SN_TRY(sn_check_dims(c, IN_C0, state, 3));
    SN_TRY(sn_check_dims(c, IN_P, peep, 2));
    const sn_dim y[2][4] = {{seq, r->dirs, batch, hidden}, {batch, seq, r->dirs, hidden}};
    SN_TRY(sn_infer_bounded(c, 0, dtype, y[r->batch_first], 4));
    SN_TRY(sn_infer_bounded(c, 1, dtype, state, 3));
    return c->n_out > 2 ? sn_infer_bounded(c, 2, dtype, state, 3) : SONDE_OK;
}

/* ------------------------------------------------------------------ pack, bind, run */
static sonde_status pack_cell(sn_pack_request *p)
{
    const cell_params *r = p->params;
    for (uint32_t i = IN_W; i <= IN_R; i++) {
        const sn_fact *f = p->in[i];
        if (!f || f->type.dtype != SONDE_DTYPE_F32 || f->type.rank != 3 ||
            !sn_type_is_concrete(&f->type))
            continue;
        const bool tiles = i == IN_W && f->data && sn_pack_by_tiles(p, i, -1);
        p->pack[i] = (uint8_t)(tiles ? sn_gemm_tiles_pack_id(SONDE_DTYPE_BF16, p->cpu_flags)
                                     : sn_gemm_pack_id(SONDE_DTYPE_F32, p->cpu_flags));
        p->pack_arg[i] = i == IN_R ? sn_cell_gates(r->cell) : 1;
    }
    return SONDE_OK;
}

typedef struct cell_bound {
    sn_recurrent_plan plan;
    sn_piece core;
    sn_piece in[N_IN], out[3]; /* in f32 */
    sn_piece rounded;          /* bytes: the input, rounded */
} cell_bound;

/* Scales and zero points of weights of bytes: one for each direction, or for each row of each. */
static sonde_status check_scales(sn_bind *b, int64_t dirs, int64_t wide)
{
    for (uint32_t i = IN_W_SCALE; i < N_IN_BYTES; i++) {
        const bool zero = i == IN_W_ZERO || i == IN_R_ZERO;
        const sn_fact *f = i < b->n_in ? b->in[i] : NULL;
        const sn_dtype type =
            zero ? b->in[i == IN_W_ZERO ? IN_W : IN_R]->type.dtype : SONDE_DTYPE_F32;
        int64_t n = zero ? dirs : 0;
        if (f && !sn_type_count(&f->type, &n))
            n = 0;
        if ((!f && !zero) || (f && f->type.dtype != type) || (n != dirs && n != dirs * wide))
            return sn_bind_fail(
                b, SONDE_INVALID_MODEL, "input %u must be %lld or %lld numbers of type %s", i,
                (long long)dirs, (long long)(dirs * wide), sn_dtype_onnx_name(type));
    }
    return SONDE_OK;
}

static sonde_status bind_cell(sn_bind *b)
{
    const cell_params *r = b->params;
    const sn_dim *x = b->in[IN_X]->type.dims;
    cell_bound *k = SN_NEW(b->arena, cell_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (!sn_is_common_float(b->in[IN_X]->type.dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "type %s is not supported",
                            sn_dtype_name(b->in[IN_X]->type.dtype));
    sn_recurrent_desc d = {.cell = r->cell,
                           .seq = x[r->batch_first ? 1 : 0],
                           .batch = x[r->batch_first ? 0 : 1],
                           .input = x[2],
                           .hidden = b->in[IN_R]->type.dims[r->bytes ? 1 : 2],
                           .dirs = r->dirs,
                           .reverse = r->reverse,
                           .batch_first = r->batch_first,
                           .linear_before_reset = r->linear_before_reset,
                           .input_forget = r->input_forget,
                           .byte_state = r->bytes,
                           .w_packed = b->in[IN_W]->pack != 0,
                           .w_tiles = sn_packed_tiles(b->in[IN_W]),
                           .r_packed = b->in[IN_R]->pack != 0,
                           .clip = r->clip};
    memcpy(d.act, r->act, sizeof d.act);
    SN_TRY(sn_recurrent_plan_make(&k->plan, &d, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads,
                                  b->err));
    if (r->bytes)
        SN_TRY(check_scales(b, d.dirs, sn_cell_gates(d.cell) * d.hidden));
    k->core = sn_carve_inner(&b->workspace, &k->plan.workspace);
    if (r->bytes)
        k->rounded = sn_carve(&b->workspace, sn_count(x[0], x[1], x[2], 1), sizeof(float));
    for (uint32_t i = 0; i < b->n_in && i < N_IN; i++)
        if (i != IN_LENS)
            k->in[i] = sn_converted_carve(&b->workspace, b->in[i], SONDE_DTYPE_F32);
    for (uint32_t o = 0; o < b->n_out && o < 3; o++)
        k->out[o] = sn_converted_carve(&b->workspace, &b->out[o], SONDE_DTYPE_F32);
    b->bound = k;
    b->kernel = k->plan.name;
    b->flops = k->plan.flops;
    return SONDE_OK;
}

static sn_byte_weights weights_in(const sn_step *s, const sn_frame *f, uint32_t in, uint32_t scales)
{
    const sn_tensor *t = sn_in(s, f, in), *scale = sn_in(s, f, scales);
    const sn_tensor *zero = sn_has(s, scales + 1) ? sn_in(s, f, scales + 1) : NULL;
    sn_byte_weights w = {.dtype = t->dtype,
                         .data = t->data,
                         .dirs = t->dims[0],
                         .k = t->dims[1],
                         .rows = t->dims[2],
                         .scale = scale->data,
                         .scales = sn_tensor_count(scale)};
    if (zero)
        w.zero = (sn_byte_zeros){zero->dtype, zero->data, sn_tensor_count(zero)};
    return w;
}

static sonde_status run_cell(const sn_step *s, sn_frame *f)
{
    const cell_bound *k = s->bound;
    const sn_recurrent_desc *d = &k->plan.d;
    const int32_t *lens = sn_has(s, IN_LENS) ? sn_in(s, f, IN_LENS)->data : NULL;
    for (int64_t i = 0; lens && i < d->batch; i++)
        if (lens[i] < 0 || lens[i] > d->seq)
            return sn_run_fail(s, f, "sequence %lld has length %d, which is outside 0 … %lld",
                               (long long)i, (int)lens[i], (long long)d->seq);
    sn_recurrent_call c = {.lens = lens, .cancel = f->cancel};
    const float **views[N_IN] = {&c.x, &c.w, &c.r, &c.b, NULL, &c.h0, &c.c0, &c.peepholes};
    for (uint32_t i = 0; i < N_IN; i++)
        if (views[i] && !(d->byte_state && (i == IN_W || i == IN_R)))
            *views[i] = sn_converted_in(s, f, i, SONDE_DTYPE_F32, k->in[i]);
    if (d->byte_state) {
        const sn_byte_weights w = weights_in(s, f, IN_W, IN_W_SCALE),
                              r = weights_in(s, f, IN_R, IN_R_SCALE);
        float *rounded = sn_piece_ptr(f, k->rounded);
        sn_byte_round(c.x, rounded, d->seq * d->batch * d->input);
        c.x = rounded;
        c.w = sn_byte_weights_load(&w, sn_piece_ptr(f, k->in[IN_W]));
        c.r = sn_byte_weights_load(&r, sn_piece_ptr(f, k->in[IN_R]));
    }
    c.y = sn_converted_out(s, f, 0, SONDE_DTYPE_F32, k->out[0]);
    c.yh = sn_converted_out(s, f, 1, SONDE_DTYPE_F32, k->out[1]);
    if (d->cell == SN_CELL_LSTM)
        c.yc = sn_converted_out(s, f, 2, SONDE_DTYPE_F32, k->out[2]);
    if (!sn_recurrent_run(&k->plan, &c, sn_piece_ptr(f, k->core), f->pool))
        return sn_fail_cancelled(f);
    for (uint32_t o = 0; o < s->n_out && o < 3; o++)
        sn_converted_done(s, f, o, SONDE_DTYPE_F32, k->out[o]);
    return SONDE_OK;
}

#define CELL(NAME, MAX_IN, MAX_OUT, PREPARE)                                                       \
    {                                                                                              \
        .name = NAME, .domain = "", .since = 7, .until = 0, .min_in = 3, .max_in = MAX_IN,         \
        .min_out = 0, .max_out = MAX_OUT, .params_size = sizeof(cell_params), .prepare = PREPARE,  \
        .infer = infer_cell, .pack = pack_cell, .bind = bind_cell, .run = run_cell,                \
        .types = SN_COMMON_FLOATS                                                                  \
    }
const sn_op sn_op_rnn[] = {CELL("RNN", 6, 2, prepare_rnn), {.name = NULL}};
const sn_op sn_op_gru[] = {CELL("GRU", 6, 2, prepare_gru), {.name = NULL}};
const sn_op sn_op_lstm[] = {CELL("LSTM", 8, 3, prepare_lstm), {.name = NULL}};
const sn_op sn_op_ms_dynamic_quantize_lstm[] = {
    {.name = "DynamicQuantizeLSTM",
     .domain = "com.microsoft",
     .since = 1,
     .min_in = 3,
     .max_in = N_IN_BYTES,
     .min_out = 0,
     .max_out = 3,
     .params_size = sizeof(cell_params),
     .prepare = prepare_byte_lstm,
     .infer = infer_cell,
     .bind = bind_cell,
     .run = run_cell,
     .types = SN_COMMON_FLOATS,
     .attributes =
         "activation_alpha activation_beta activations clip direction hidden_size input_forget"},
    {.name = NULL}};
