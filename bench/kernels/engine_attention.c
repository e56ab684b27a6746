/* SPDX-License-Identifier: Apache-2.0 */
/* Attention as models write it: queries, keys and values side by side as one product made them, a
 * term of each head and, in windows, rows that lists find and a mask of each window. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "compute/attention.h"

typedef struct work {
    sn_attention_plan plan;
    sn_attention_args args;
    sn_pool *pool;
    float *x, *y, *table, *masks, *space;
    int32_t *rows;
} work;

static void run(void *state)
{
    work *w = state;
    sn_attention_run(&w->plan, &w->args, w->space, w->pool);
}

static void release(void *state)
{
    work *w = state;
    free(w->x), free(w->y), free(w->table), free(w->masks), free(w->space), free(w->rows);
    free(w);
}

/* Windows of a square image, where they can be: rows lie `side` windows apart. */
static int32_t *window_rows(const bench_attention *a)
{
    int64_t edge = 1, side = 1;
    while ((edge + 1) * (edge + 1) <= a->len)
        edge++;
    while ((side + 1) * (side + 1) <= a->batch)
        side++;
    int32_t *rows = bench_alloc((size_t)(a->batch * a->len) * sizeof *rows);
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t i = 0; i < a->len; i++) {
            const int64_t row = b / side * edge + i / edge, col = b % side * edge + i % edge;
            const bool square = edge * edge == a->len && side * side == a->batch;
            rows[b * a->len + i] = (int32_t)(square ? row * side * edge + col : b * a->len + i);
        }
    return rows;
}

static void fill_args(work *w, const bench_attention *a)
{
    const int64_t width = a->heads * a->head, square = a->len * a->len;
    w->args = (sn_attention_args){
        .q = w->x,
        .k = w->x + width,
        .v = w->x + 2 * width,
        .y = w->y,
        .bias = {.data = w->table, .stride = {0, square, a->len, 1}, .len = a->len}};
    if (!a->windows)
        return;
    w->args.more = (sn_attention_mask){
        .data = w->masks, .stride = {0, 0, a->len, 1}, .window = square, .len = a->len};
    w->args.q_rows = w->args.kv_rows = w->args.y_rows = w->rows;
}

bool bench_attend(const bench_setup *s, int slot, uint32_t flags, const bench_case *c,
                  bench_runner *out)
{
    const bench_attention *a = &c->attention;
    const int64_t width = a->heads * a->head, rows = a->batch * a->len;
    const sn_attention_desc d = {.dtype = SONDE_DTYPE_F32,
                                 .batch = a->batch,
                                 .heads = a->heads,
                                 .kv_heads = a->heads,
                                 .windows = a->windows ? a->batch : 1,
                                 .q_len = a->len,
                                 .kv_len = a->len,
                                 .head = a->head,
                                 .v_head = a->head,
                                 .q = {a->len * 3 * width, a->head, 3 * width},
                                 .k = {a->len * 3 * width, a->head, 3 * width},
                                 .v = {a->len * 3 * width, a->head, 3 * width},
                                 .y = {a->len * width, a->head, width},
                                 .scale = 0.125,
                                 .left = -1,
                                 .right = -1,
                                 .in_bf16 = s->type == SONDE_DTYPE_BF16,
                                 .q_listed = a->windows,
                                 .kv_listed = a->windows,
                                 .y_listed = a->windows};
    work *w = bench_alloc(sizeof *w);
    sonde_error err = {0};
    memset(w, 0, sizeof *w);
    if (s->type == SONDE_DTYPE_I8 ||
        sn_attention_plan_make(&w->plan, &d, flags, s->threads[slot], &err) != SONDE_OK) {
        free(w);
        return false;
    }
    w->pool = s->pool[slot];
    w->x = bench_floats((size_t)(rows * 3 * width) * sizeof(float));
    w->y = bench_floats((size_t)(rows * width) * sizeof(float));
    w->table = bench_floats((size_t)(a->heads * a->len * a->len) * sizeof(float));
    w->masks = bench_floats((size_t)(a->batch * a->len * a->len) * sizeof(float));
    w->space = bench_floats(w->plan.workspace.bytes);
    w->rows = window_rows(a);
    fill_args(w, a);
    out->by = flags ? "sonde" : "reference";
    out->threads = s->threads[slot];
    out->arithmetic = w->plan.arithmetic;
    out->run = run;
    out->free = release;
    out->state = w;
    snprintf(out->plan, sizeof out->plan, "%s", w->plan.name);
    return true;
}
