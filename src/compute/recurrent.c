/* SPDX-License-Identifier: Apache-2.0 */
/* Driving a recurrent layer; see recurrent.h. Sequences of a batch may have different lengths: step
 * s reads time s, or counted from the sequence's own end when going backward, and a sequence that
 * is over keeps its state. */
#include "compute/recurrent.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compute/byte_steps.h"
#include "compute/packs.h"
#include "compute/split.h"

/* ------------------------------------------------------------------ plan */
enum {
    TASK_FLOPS = 250000,        /* below this a part of a step is not worth handing out */
    DIRECTION_FLOPS = 4 * 50000 /* … and a direction */
};

/* One direction's; the pieces count from its own beginning. */
static bool plan_workspace(sn_recurrent_plan *p)
{
    const sn_recurrent_desc *d = &p->d;
    const size_t dirs = (size_t)d->dirs;
    const int64_t state = sn_count(d->batch, d->hidden, 1, 1), wide = p->gates * d->hidden;
    sn_workspace one = {0}, *w = &p->workspace;
    p->x_gates = sn_carve(&one, sn_count(d->seq, d->batch, wide, 1), sizeof(float));
    p->h_gates = sn_carve(&one, sn_count(d->batch, p->gates, p->pitch, 1), sizeof(float));
    p->state = sn_carve(&one, state, sizeof(float));
    p->cell = sn_carve(&one, state, sizeof(float));
    p->reset = sn_carve(&one, state, sizeof(float));
    p->candidate = sn_carve(&one, sn_count(d->batch, p->pitch, 1, 1), sizeof(float));
    p->bias = sn_carve(&one, wide, sizeof(float));
    p->product = sn_carve_inner(&one, &p->from_x.workspace);
    p->rounded = sn_carve(&one, d->byte_state ? state : 0, sizeof(float));
    if (!d->w_packed)
        p->w = sn_carve(w, (int64_t)(p->w_floats * dirs), sizeof(float));
    if (!d->r_packed)
        p->r = sn_carve(w, (int64_t)((p->r_floats[0] + p->r_floats[1]) * dirs), sizeof(float));
    p->directions = sn_carve_each(w, p->at_once ? dirs : 1, one.bytes);
    return !one.overflow && !w->overflow;
}

/* Has a kernel all of the cell? */
static bool is_usual(const sn_recurrent_desc *d)
{
    static const sn_gate_act_kind usual[SN_CELL_MAX_ACTS] = {SN_GATE_SIGMOID, SN_GATE_TANH,
                                                             SN_GATE_TANH};
    const int acts = d->cell == SN_CELL_LSTM ? 3 : 2;
    if (d->cell == SN_CELL_RNN || (d->cell == SN_CELL_GRU && !d->linear_before_reset) ||
        d->input_forget || d->byte_state || isfinite(d->clip))
        return false;
    for (int i = 0; i < d->dirs * acts; i++)
        if (d->act[i / acts][i % acts].kind != usual[i % acts])
            return false;
    return true;
}

/* After the products' plans: which kernel, and what threads get. */
static void plan_steps(sn_recurrent_plan *p, int threads)
{
    const sn_recurrent_desc *d = &p->d;
    const bool lstm = d->cell == SN_CELL_LSTM;
    const uint64_t flops = p->from_h[0].flops;
    const int64_t blocks = p->pitch / p->block, most = threads > 1 ? threads : 1;
    p->step = !is_usual(d) ? NULL : lstm ? p->k->f32_lstm : p->k->f32_gru;
    p->at_once =
        p->step && d->dirs == 2 && threads > 1 && (uint64_t)d->seq * flops >= DIRECTION_FLOPS;
    p->step_tasks = (size_t)sn_min(sn_min((int64_t)(flops / TASK_FLOPS), most), blocks);
    if (p->step_tasks == 0 || p->at_once)
        p->step_tasks = 1;
}

static const char *cell_name(sn_cell c)
{
    return c == SN_CELL_LSTM ? "lstm" : c == SN_CELL_GRU ? "gru" : "rnn";
}

sonde_status sn_recurrent_plan_make(sn_recurrent_plan *p, const sn_recurrent_desc *d,
                                    uint32_t cpu_flags, size_t l2_bytes, int threads,
                                    sonde_error *err)
{
#define X(id, text, unary, n, a, b) SN_UNARY_##unary,
    static const sn_unary functions[SN_GATE_ACT_COUNT] = {SN_GATE_ACT_LIST(X)};
#undef X
    memset(p, 0, sizeof *p);
    p->d = *d;
    p->k = sn_kernels_get(cpu_flags);
    p->block = p->k->f32_gemm_geometry.block;
    p->cpu_flags = cpu_flags;
    p->gates = sn_cell_gates(d->cell);
    for (int i = 0; i < d->dirs; i++)
        for (int k = 0; k < SN_CELL_MAX_ACTS; k++)
            if (!sn_unary_get(&p->act[i][k], functions[d->act[i][k].kind], SONDE_DTYPE_F32,
                              cpu_flags))
                return sn_fail(err, SONDE_INTERNAL, "an activation has no f32 loop");
    const bool split = d->cell == SN_CELL_GRU && !d->linear_before_reset;
    const int64_t wide = p->gates * d->hidden;
    int64_t rows;
    if (!sn_i64_mul(d->seq, d->batch, &rows))
        return sn_fail(err, SONDE_LIMIT, "the sequences are too long");
    p->pitch = sn_ceil_div(d->hidden, p->block) * p->block;
    p->r_rows[0] = (split ? 2 : p->gates) * p->pitch;
    p->r_rows[1] = p->gates * p->pitch - p->r_rows[0];
    const int64_t tiles = d->w_tiles ? sn_gemm_tiles_floats(wide, d->input) : 0;
    if (tiles < 0)
        return sn_fail(err, SONDE_LIMIT, "the weights are too large");
    p->w_floats = d->w_tiles ? (size_t)tiles : sn_gemm_packed_floats(wide, d->input, p->block);
    for (int i = 0; i < 2; i++)
        p->r_floats[i] = sn_gemm_packed_floats(p->r_rows[i], d->hidden, p->block);
    sn_gemm_desc g = {.m = rows,
                      .n = wide,
                      .k = d->input,
                      .b_count = 1,
                      .trans_b = true,
                      .packed = true,
                      .b_dtype = d->w_tiles ? SONDE_DTYPE_BF16 : SONDE_DTYPE_F32,
                      .tiles = d->w_tiles,
                      .has_c = true,
                      .c_n = 1,
                      .alpha = 1.0f,
                      .beta = 1.0f};
    SN_TRY(sn_gemm_plan_make(&p->from_x, &g, cpu_flags, l2_bytes, threads, err));
    g.has_c = g.tiles = false;
    g.b_dtype = SONDE_DTYPE_F32;
    g.m = d->batch;
    g.k = d->hidden;
    for (int i = 0; i < 2; i++) {
        g.n = p->r_rows[i];
        SN_TRY(sn_gemm_plan_make(&p->from_h[i], &g, cpu_flags, l2_bytes, threads, err));
    }
    plan_steps(p, threads);
    if (!plan_workspace(p))
        return sn_fail(err, SONDE_LIMIT, "the sequences are too long");
    p->flops = (uint64_t)d->dirs * /* without the zeros that fill panels */
               (p->from_x.flops + 2 * (uint64_t)rows * (uint64_t)wide * (uint64_t)d->hidden);
    if (p->step && !d->w_tiles) {
        snprintf(p->name, sizeof p->name, "%s",
                 d->cell == SN_CELL_LSTM ? p->k->f32_lstm_name : p->k->f32_gru_name);
        return SONDE_OK;
    }
    const char *tile = strstr(p->from_h[0].name, "gemm_");
    snprintf(p->name, sizeof p->name, "%s_%s_%s", d->w_tiles ? "bf16" : "f32", cell_name(d->cell),
             tile ? tile + 5 : "ref");
    return SONDE_OK;
}

/* ------------------------------------------------------------------ packing at run */
typedef struct pack_job {
    sn_packing packing;
    float *dst;
    const float *src;
} pack_job;

static void pack_unit(void *arg, size_t task, int worker)
{
    const pack_job *j = arg;
    (void)worker;
    j->packing.format->pack(&j->packing, j->dst, j->src, task);
}

static void pack_rows(const sn_recurrent_plan *p, float *dst, const float *src, int64_t rows,
                      int64_t k, int64_t groups, sn_pool *pool)
{
    const int64_t dims[2] = {rows, k};
    const sn_pack_format *f = sn_pack_get(sn_gemm_pack_id(SONDE_DTYPE_F32, p->cpu_flags));
    pack_job j = {{f, dims, 2, groups, p->cpu_flags}, dst, src};
    if (rows > 0 && k > 0)
        sn_pool_run(pool, f->units(&j.packing), pack_unit, &j);
}

/* ------------------------------------------------------------------ gates */
typedef struct layer {
    const sn_recurrent_plan *p;
    const sn_recurrent_call *c;
    int dir;
    bool backward;
    int64_t step;
    const float *peepholes, *reset_bias; /* of this direction; NULL: none */
    float *x, *gates, *h, *cell, *reset, *candidate;
    float *multiplied; /* h, or room for it rounded */
    void *product;     /* what the product of the input needs */
} layer;

static void activate_plain(const layer *l, int which, float *y, size_t n)
{
    const sn_recurrent_plan *p = l->p;
    const sn_gate_act *a = &p->d.act[l->dir][which];
    if (a->kind == SN_GATE_AFFINE) {
        for (size_t i = 0; i < n; i++)
            y[i] = a->params[0] * y[i] + a->params[1];
        return;
    }
    if (a->kind == SN_GATE_SCALED_TANH)
        p->k->f32_mul(y, y, &a->params[1], n, SN_BINARY_VS);
    sn_unary_run(&p->act[l->dir][which], y, y, n, a->params, NULL);
    if (a->kind == SN_GATE_SCALED_TANH)
        p->k->f32_mul(y, y, &a->params[0], n, SN_BINARY_VS);
}

/* Clips what goes in first. */
static void activate(const layer *l, int which, float *y, size_t n)
{
    const float limits[2] = {-l->p->d.clip, l->p->d.clip};
    if (isfinite(l->p->d.clip))
        l->p->k->f32_clip(y, y, n, limits);
    activate_plain(l, which, y, n);
}

static void add_product(float *y, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a[i] * b[i];
}

/* The sums of `count` gates and what the input adds to them. */
static void add_input(const layer *l, float *g, const float *x, int count)
{
    const int64_t n = l->p->d.hidden;
    for (int i = 0; i < count; i++)
        l->p->k->f32_add(g + i * l->p->pitch, g + i * l->p->pitch, x + i * n, (size_t)n,
                         SN_BINARY_VV);
}

static void lstm_row(const layer *l, float *g, float *h, float *c)
{
    const size_t n = (size_t)l->p->d.hidden, pitch = (size_t)l->p->pitch;
    float *in = g, *out = g + pitch, *forget = g + 2 * pitch, *fresh = g + 3 * pitch;
    if (l->peepholes) {
        add_product(in, l->peepholes, c, n);
        add_product(forget, l->peepholes + 2 * n, c, n);
        activate(l, 0, in, n);
        activate(l, 0, forget, n);
    } else {
        activate(l, 0, in, 2 * pitch + n);
    }
    activate(l, 1, fresh, n);
    if (l->p->d.input_forget)
        for (size_t i = 0; i < n; i++)
            forget[i] = 1.0f - in[i];
    for (size_t i = 0; i < n; i++)
        c[i] = forget[i] * c[i] + in[i] * fresh[i];
    if (l->peepholes) {
        add_product(out, l->peepholes + n, c, n);
        activate(l, 0, out, n);
    }
    memcpy(h, c, n * sizeof *h);
    activate_plain(l, 2, h, n);
    l->p->k->f32_mul(h, h, out, n, SN_BINARY_VV);
}

static void gru_mix(const layer *l, const float *update, float *fresh, float *h)
{
    const size_t n = (size_t)l->p->d.hidden;
    activate(l, 1, fresh, n);
    for (size_t i = 0; i < n; i++)
        h[i] = (1.0f - update[i]) * fresh[i] + update[i] * h[i];
}

/* Lengths are read more than once, and may be a caller's who changes them meanwhile. */
static int64_t length_of(const layer *l, int64_t b)
{
    const int64_t n = l->c->lens ? l->c->lens[b] : l->p->d.seq;
    return n < l->p->d.seq ? n : l->p->d.seq;
}

/* Time that batch row b is at in this step; -1: its sequence is over. */
static int64_t time_of(const layer *l, int64_t b)
{
    const int64_t n = length_of(l, b);
    return l->step >= n ? -1 : l->backward ? n - 1 - l->step : l->step;
}

static const float *x_row(const layer *l, int64_t t, int64_t b)
{
    const sn_recurrent_desc *d = &l->p->d;
    return l->x + (d->batch_first ? b * d->seq + t : t * d->batch + b) * l->p->gates * d->hidden;
}

static float *y_row(const layer *l, int64_t t, int64_t b)
{
    const sn_recurrent_desc *d = &l->p->d;
    const int64_t row = d->batch_first ? (b * d->seq + t) * d->dirs + l->dir
                                       : (t * d->dirs + l->dir) * d->batch + b;
    return l->c->y + row * d->hidden;
}

static void store_row(const layer *l, int64_t t, int64_t b, const float *h)
{
    if (l->c->y)
        memcpy(y_row(l, t, b), h, (size_t)l->p->d.hidden * sizeof *h);
}

/* All that a step does after the product with the state; GRU with an inner reset stops before the
 * candidate, which needs another product. */
static void rows_task(void *arg, size_t lo, size_t hi)
{
    const layer *l = arg;
    const sn_recurrent_desc *d = &l->p->d;
    const int64_t n = d->hidden, pitch = l->p->pitch;
    const bool split = l->p->r_rows[1] > 0;
    const int64_t width = l->p->r_rows[0];
    for (int64_t b = (int64_t)lo; b < (int64_t)hi; b++) {
        const int64_t t = time_of(l, b);
        float *g = l->gates + b * width, *h = l->h + b * n;
        if (t < 0) {
            if (split)
                memset(l->reset + b * n, 0, (size_t)n * sizeof *g);
            continue;
        }
        const float *x = x_row(l, t, b);
        if (d->cell == SN_CELL_GRU) {
            add_input(l, g, x, 2);
            activate(l, 0, g, (size_t)(pitch + n));
            if (split) {
                l->p->k->f32_mul(l->reset + b * n, g + pitch, h, (size_t)n, SN_BINARY_VV);
                continue;
            }
            float *fresh = g + 2 * pitch;
            for (int64_t i = 0; i < n; i++)
                fresh[i] = x[2 * n + i] +
                           g[pitch + i] * (fresh[i] + (l->reset_bias ? l->reset_bias[i] : 0.0f));
            gru_mix(l, g, fresh, h);
        } else {
            add_input(l, g, x, l->p->gates);
            if (d->cell == SN_CELL_LSTM) {
                lstm_row(l, g, h, l->cell + b * n);
            } else {
                activate(l, 0, g, (size_t)n);
                memcpy(h, g, (size_t)n * sizeof *h);
            }
        }
        store_row(l, t, b, h);
    }
}

static void candidate_task(void *arg, size_t lo, size_t hi)
{
    const layer *l = arg;
    const int64_t n = l->p->d.hidden, pitch = l->p->pitch;
    for (int64_t b = (int64_t)lo; b < (int64_t)hi; b++) {
        const int64_t t = time_of(l, b);
        float *fresh = l->candidate + b * pitch, *h = l->h + b * n;
        if (t < 0)
            continue;
        l->p->k->f32_add(fresh, fresh, x_row(l, t, b) + 2 * n, (size_t)n, SN_BINARY_VV);
        gru_mix(l, l->gates + b * 2 * pitch, fresh, h);
        store_row(l, t, b, h);
    }
}

/* ------------------------------------------------------------------ one direction */
/* Biases of input and recurrence meet in one product, except the one the reset gate scales. */
static void join_bias(layer *l, float *bias)
{
    const sn_recurrent_desc *d = &l->p->d;
    const int64_t n = d->hidden, wide = l->p->gates * n;
    const float *b = l->c->b;
    if (!b) {
        memset(bias, 0, (size_t)wide * sizeof *bias);
        return;
    }
    b += l->dir * 2 * wide;
    const bool apart = d->cell == SN_CELL_GRU && d->linear_before_reset;
    const int64_t joined = apart ? 2 * n : wide;
    memcpy(bias, b, (size_t)wide * sizeof *bias);
    for (int64_t i = 0; i < joined; i++)
        bias[i] += b[wide + i];
    l->reset_bias = apart ? b + wide + 2 * n : NULL;
}

/* The state in ONNX's order ↔ ours: [batch][hidden] of one direction. */
static void move_state(const layer *l, float *ours, float *theirs, bool out)
{
    const sn_recurrent_desc *d = &l->p->d;
    for (int64_t b = 0; b < d->batch; b++) {
        const int64_t row = d->batch_first ? b * d->dirs + l->dir : l->dir * d->batch + b;
        float *a = ours + b * d->hidden, *z = theirs + row * d->hidden;
        memcpy(out ? z : a, out ? a : z, (size_t)d->hidden * sizeof *a);
    }
}

static void load_state(const layer *l, float *ours, const float *theirs)
{
    if (theirs)
        move_state(l, ours, (float *)(uintptr_t)theirs, false);
    else
        memset(ours, 0, (size_t)(l->p->d.batch * l->p->d.hidden) * sizeof *ours);
}

/* ------------------------------------------------------------------ steps by kernel */
typedef struct step_job {
    const sn_recurrent_plan *p;
    sn_f32_cell cell;
} step_job;

static void step_task(void *arg, size_t task, int worker)
{
    const step_job *j = arg;
    const sn_recurrent_plan *p = j->p;
    const size_t blocks = (size_t)(p->pitch / p->block);
    sn_f32_cell t = j->cell;
    (void)worker;
    t.from = sn_split(blocks, p->step_tasks, task) * p->block;
    t.to = sn_split(blocks, p->step_tasks, task + 1) * p->block;
    if (t.to > t.units)
        t.to = t.units;
    p->step(&t);
}

/* The new state goes where the layer's results go, and the next step reads it there. Without those
 * it goes back and forth between two pieces of the workspace. Every other step goes through the
 * weights from their end, which is what the step before left in the cache. */
static bool run_steps(layer *l, const float *r, int64_t steps, sn_pool *pool)
{
    const sn_recurrent_plan *p = l->p;
    const sn_recurrent_desc *d = &p->d;
    const int64_t wide = p->gates * d->hidden, first = d->batch_first ? d->seq : 1;
    float *const y = l->c->y;
    step_job j = {p,
                  {.w = r,
                   .h = l->h,
                   .bias = l->reset_bias,
                   .c = l->cell,
                   .rows = (size_t)d->batch,
                   .units = (size_t)d->hidden,
                   .block = p->block,
                   .x_row = first * wide,
                   .x_gate = d->hidden,
                   .w_gate = p->pitch * d->hidden,
                   .h_row = d->hidden,
                   .c_row = d->hidden,
                   .y_row = (y && d->batch_first ? d->seq * d->dirs : 1) * d->hidden}};
    for (l->step = 0; l->step < steps; l->step++) {
        if (l->c->cancel && atomic_load_explicit(l->c->cancel, memory_order_relaxed))
            return false;
        const int64_t t = l->backward ? steps - 1 - l->step : l->step;
        j.cell.last_first = l->step % 2 == 1;
        j.cell.x = x_row(l, t, 0);
        j.cell.y = y ? y_row(l, t, 0) : j.cell.h == l->h ? l->candidate : l->h;
        sn_pool_run(pool, p->step_tasks, step_task, &j);
        j.cell.h = j.cell.y;
        j.cell.h_row = j.cell.y_row;
    }
    for (int64_t b = 0; j.cell.h != l->h && b < d->batch; b++)
        memcpy(l->h + b * d->hidden, j.cell.h + b * j.cell.h_row, (size_t)d->hidden * sizeof *l->h);
    return true;
}

/* Can all rows go through the kernel together? */
static bool in_step(const layer *l)
{
    for (int64_t b = 1; b < l->p->d.batch; b++)
        if (length_of(l, b) != length_of(l, 0))
            return false;
    return l->p->step && !l->peepholes;
}

static bool run_direction(layer *l, const float *w, const float *r, float *bias, sn_pool *pool)
{
    const sn_recurrent_plan *p = l->p;
    const sn_recurrent_desc *d = &p->d;
    const int64_t wide = p->gates * d->hidden;
    const size_t cost = (size_t)wide * 12;
    join_bias(l, bias);
    if (d->input > 0)
        sn_gemm_run(&p->from_x, l->c->x, w, bias, NULL, l->x, l->product, pool);
    else
        for (int64_t i = 0; i < d->seq * d->batch; i++)
            memcpy(l->x + i * wide, bias, (size_t)wide * sizeof *bias);
    load_state(l, l->h, l->c->h0);
    if (d->cell == SN_CELL_LSTM)
        load_state(l, l->cell, l->c->c0);
    int64_t steps = l->c->lens ? 0 : d->seq;
    for (int64_t b = 0; l->c->lens && b < d->batch; b++)
        steps = sn_max(steps, length_of(l, b));
    if (in_step(l)) {
        if (!run_steps(l, r, steps, pool))
            return false;
        steps = 0;
    }
    for (l->step = 0; l->step < steps; l->step++) {
        if (l->c->cancel && atomic_load_explicit(l->c->cancel, memory_order_relaxed))
            return false;
        if (l->multiplied != l->h)
            sn_byte_round(l->h, l->multiplied, d->batch * d->hidden);
        sn_gemm_run(&p->from_h[0], l->multiplied, r, NULL, NULL, l->gates, NULL, pool);
        sn_parallel_range(pool, (size_t)d->batch, cost, rows_task, l);
        if (p->r_rows[1] == 0)
            continue;
        sn_gemm_run(&p->from_h[1], l->reset, r + p->r_floats[0], NULL, NULL, l->candidate, NULL,
                    pool);
        sn_parallel_range(pool, (size_t)d->batch, cost / 3, candidate_task, l);
    }
    if (l->c->yh)
        move_state(l, l->h, l->c->yh, true);
    if (l->c->yc)
        move_state(l, l->cell, l->c->yc, true);
    return true;
}

typedef struct layer_job {
    const sn_recurrent_plan *p;
    const sn_recurrent_call *c;
    void *workspace;
    sn_pool *pool;
    _Atomic bool cancelled;
} layer_job;

static void direction_task(void *arg, size_t task, int worker)
{
    layer_job *j = arg;
    const sn_recurrent_plan *p = j->p;
    const sn_recurrent_desc *d = &p->d;
    const sn_recurrent_call *c = j->c;
    const int64_t wide = p->gates * d->hidden;
    const size_t r_floats = p->r_floats[0] + p->r_floats[1];
    const float *w = c->w + task * p->w_floats, *r = c->r + task * r_floats;
    (void)worker;
    if (!d->w_packed) {
        float *dst = (float *)sn_piece_at(j->workspace, p->w) + task * p->w_floats;
        pack_rows(p, dst, c->w + (int64_t)task * wide * d->input, wide, d->input, 1, j->pool);
        w = dst;
    }
    if (!d->r_packed) {
        float *dst = (float *)sn_piece_at(j->workspace, p->r) + task * r_floats;
        pack_rows(p, dst, c->r + (int64_t)task * wide * d->hidden, wide, d->hidden, p->gates,
                  j->pool);
        r = dst;
    }
    void *own = sn_pieces_at(j->workspace, p->directions, p->at_once ? task : 0);
    layer l = {.p = p,
               .c = c,
               .dir = (int)task,
               .backward = d->reverse || task == 1,
               .peepholes = c->peepholes ? c->peepholes + (int64_t)task * 3 * d->hidden : NULL,
               .x = sn_piece_at(own, p->x_gates),
               .gates = sn_piece_at(own, p->h_gates),
               .h = sn_piece_at(own, p->state),
               .cell = sn_piece_at(own, p->cell),
               .reset = sn_piece_at(own, p->reset),
               .candidate = sn_piece_at(own, p->candidate),
               .product = sn_piece_at(own, p->product)};
    l.multiplied = d->byte_state ? sn_piece_at(own, p->rounded) : l.h;
    if (!run_direction(&l, w, r, sn_piece_at(own, p->bias), j->pool))
        atomic_store_explicit(&j->cancelled, true, memory_order_relaxed);
}

bool sn_recurrent_run(const sn_recurrent_plan *p, const sn_recurrent_call *c, void *workspace,
                      sn_pool *pool)
{
    const sn_recurrent_desc *d = &p->d;
    if (d->batch == 0 || d->hidden == 0)
        return true;
    if (c->y && c->lens) /* what lies behind the end of a sequence is zero */
        memset(c->y, 0, (size_t)(d->seq * d->dirs * d->batch * d->hidden) * sizeof *c->y);
    layer_job j = {.p = p, .c = c, .workspace = workspace, .pool = p->at_once ? NULL : pool};
    if (p->at_once)
        sn_pool_run(pool, (size_t)d->dirs, direction_task, &j);
    else
        for (int dir = 0; dir < d->dirs; dir++)
            direction_task(&j, (size_t)dir, 0);
    return !atomic_load_explicit(&j.cancelled, memory_order_relaxed);
}

/* ------------------------------------------------------------------ weights of bytes */
const float *sn_byte_weights_load(const sn_byte_weights *w, float *dst)
{
    for (int64_t row = 0; row < w->dirs * w->rows; row++) {
        const int64_t dir = row / w->rows;
        const float factor = w->scale[w->scales > w->dirs ? row : dir];
        const int32_t zero =
            w->zero.data ? sn_byte_at(w->zero.type, w->zero.data, w->zero.n > w->dirs ? row : dir)
                         : 0;
        for (int64_t i = 0; i < w->k; i++) {
            const int64_t at = (dir * w->k + i) * w->rows + row % w->rows;
            dst[row * w->k + i] = (float)(sn_byte_at(w->dtype, w->data, at) - zero) * factor;
        }
    }
    return dst;
}
