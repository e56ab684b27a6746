/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in windows: masks per window, two terms, a factor of each head, rows that lists find
 * and rows of length 1, against the formula in double. */
#include "test.h"

#include "compute/attention.h"
#include "compute/levels.h"

enum { OUTER = 2, WINDOWS = 3, BATCH = OUTER * WINDOWS, HEADS = 2 };

typedef struct window_case {
    int64_t len, head, v_head;
    bool q_listed, kv_listed, y_listed, unit, more, scales;
    int threads;
    bool in_bf16;
} window_case;

typedef struct rooms {
    int64_t rows, cols; /* of the matrix that has queries, keys and values side by side */
    float *x, *y, *table, *mask, factor[HEADS];
    int32_t *list, *out;
} rooms;

/* A permutation of all rows. */
static void shuffle(int32_t *list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        list[i] = (int32_t)i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t k = (int64_t)(test_rand() % (unsigned)(i + 1));
        const int32_t old = list[i];
        list[i] = list[k];
        list[k] = old;
    }
}

static rooms make_rooms(const window_case *t)
{
    rooms r = {.rows = BATCH * t->len, .cols = HEADS * (2 * t->head + t->v_head)};
    r.x = random_floats((size_t)(r.rows * r.cols));
    r.y = random_floats((size_t)(r.rows * HEADS * t->v_head));
    r.table = random_floats((size_t)(HEADS * t->len * t->len));
    r.mask = random_floats((size_t)(WINDOWS * t->len * t->len));
    r.list = malloc((size_t)r.rows * sizeof *r.list);
    r.out = malloc((size_t)r.rows * sizeof *r.out);
    for (int h = 0; h < HEADS; h++)
        r.factor[h] = 1.0f + (float)h;
    for (int64_t i = 0; i < r.rows * HEADS * t->v_head; i++)
        r.y[i] = -7.0f;
    shuffle(r.list, r.rows);
    shuffle(r.out, r.rows);
    r.out[1] = -1; /* the second position goes nowhere */
    return r;
}

static void free_rooms(rooms *r)
{
    free(r->x), free(r->y), free(r->table), free(r->mask), free(r->list), free(r->out);
}

/* Score of query i and key j of window w. */
static double score(const window_case *t, const rooms *r, int64_t b, int64_t h, const float *query,
                    const float *key, int64_t i, int64_t j)
{
    double dot = 0, qq = 0, kk = 0;
    for (int64_t c = 0; c < t->head; c++) {
        dot += (double)query[c] * (double)key[c];
        qq += (double)query[c] * (double)query[c];
        kk += (double)key[c] * (double)key[c];
    }
    if (t->unit)
        dot /= fmax(sqrt(qq), 0.25) * fmax(sqrt(kk), 0.25);
    dot *= 0.5 * (t->scales ? (double)r->factor[h] : 1.0);
    dot += (double)r->table[(h * t->len + i) * t->len + j];
    return t->more ? dot + (double)r->mask[(b % WINDOWS * t->len + i) * t->len + j] : dot;
}

static double check_row(const window_case *t, const rooms *r, int64_t b, int64_t h, int64_t i)
{
    const int64_t at = b * t->len, row = t->y_listed ? r->out[at + i] : at + i;
    double *e = malloc(sizeof *e * (size_t)t->len), max = -INFINITY, sum = 0, worst = 0;
    const float *query = r->x + (t->q_listed ? r->list[at + i] : at + i) * r->cols + h * t->head;
    for (int64_t j = 0; j < t->len; j++) {
        const float *key = r->x + (t->kv_listed ? r->list[at + j] : at + j) * r->cols;
        e[j] = score(t, r, b, h, query, key + (HEADS + h) * t->head, i, j);
        max = fmax(max, e[j]);
    }
    for (int64_t j = 0; j < t->len; j++)
        sum += e[j] = exp(e[j] - max);
    for (int64_t c = 0; c < t->v_head && row >= 0; c++) {
        double want = 0;
        for (int64_t j = 0; j < t->len; j++) {
            const float *v = r->x + (t->kv_listed ? r->list[at + j] : at + j) * r->cols;
            want += e[j] / sum * (double)v[2 * HEADS * t->head + h * t->v_head + c];
        }
        const double got = (double)r->y[row * HEADS * t->v_head + h * t->v_head + c];
        worst = isnan(got) ? INFINITY : fmax(worst, fabs(want - got));
    }
    free(e);
    return worst;
}

static void check(const window_case *t, uint32_t cpu_flags)
{
    rooms r = make_rooms(t);
    const int64_t n = t->len, width = HEADS * t->v_head;
    const sn_attention_desc d = {.dtype = SONDE_DTYPE_F32,
                                 .batch = BATCH,
                                 .heads = HEADS,
                                 .kv_heads = HEADS,
                                 .windows = WINDOWS,
                                 .q_len = n,
                                 .kv_len = n,
                                 .head = t->head,
                                 .v_head = t->v_head,
                                 .q = {n * r.cols, t->head, r.cols},
                                 .k = {n * r.cols, t->head, r.cols},
                                 .v = {n * r.cols, t->v_head, r.cols},
                                 .y = {n * width, t->v_head, width},
                                 .scale = 0.5,
                                 .left = -1,
                                 .right = -1,
                                 .in_bf16 = t->in_bf16,
                                 .q_listed = t->q_listed,
                                 .kv_listed = t->kv_listed,
                                 .y_listed = t->y_listed,
                                 .unit = t->unit,
                                 .least = 0.25f};
    const sn_attention_args a = {.q = r.x,
                                 .k = r.x + HEADS * t->head,
                                 .v = r.x + 2 * HEADS * t->head,
                                 .y = r.y,
                                 .bias = {.data = r.table, .stride = {0, n * n, n, 1}, .len = n},
                                 .more = {.data = t->more ? r.mask : NULL,
                                          .stride = {0, 0, n, 1},
                                          .window = n * n,
                                          .len = n},
                                 .scales = t->scales ? r.factor : NULL,
                                 .q_rows = t->q_listed ? r.list : NULL,
                                 .kv_rows = t->kv_listed ? r.list : NULL,
                                 .y_rows = t->y_listed ? r.out : NULL};
    sn_attention_plan p;
    sonde_error err;
    CHECK_OK(sn_attention_plan_make(&p, &d, cpu_flags, t->threads, &err));
    void *ws = aligned_alloc(SN_ALIGN, sn_round_up(p.workspace.bytes + 1, SN_ALIGN));
    sn_attention_run(&p, &a, ws, NULL);
    double worst = 0;
    for (int64_t k = 0; k < BATCH * HEADS * n; k++)
        worst = fmax(worst, check_row(t, &r, k / n / HEADS, k / n % HEADS, k % n));
    free(ws);
    free_rooms(&r);
    CHECK_MSG(worst < (t->in_bf16 ? 0.02 : 2e-5), "%s, window of %lld, heads of %lld: off by %g",
              p.name, (long long)n, (long long)t->head, worst);
}

TEST(windows_of_listed_rows_with_masks_and_scales_match_the_formula)
{
    static const int64_t sizes[][3] = {
        {49, 32, 32}, {64, 16, 16}, {9, 7, 5}, {2, 8, 24}, {1, 4, 4}};
    for (const level *l = levels(); l->name; l++)
        for (unsigned k = 0; k < 128; k++) {
            const int64_t *s = sizes[k % 5];
            const window_case t = {s[0],   s[1],    s[2],    k & 1u,          k & 2u, k & 4u,
                                   k & 8u, k & 16u, k & 32u, k & 64u ? 3 : 1, false};
            check(&t, l->flags);
        }
}

TEST(the_same_holds_for_windows_in_bf16)
{
    for (const level *l = levels(); l->name; l++)
        for (unsigned k = 0; k < 16; k++)
            check(&(window_case){17, 24, 20, k & 1u, k & 2u, k & 4u, k & 8u, true, true, 1, true},
                  l->flags);
}

TEST_MAIN()
