/* SPDX-License-Identifier: Apache-2.0 */
/* The attention driver against a reference in double written straight from the formula. */
#include "test.h"

#include "compute/attention.h"
#include "compute/levels.h"

enum { MAX = 1 << 16 };
static float q[MAX], k[MAX], v[MAX], y[MAX], bias[MAX], qk[MAX], want_qk[MAX];
static uint8_t keep[MAX];
static bool in_bf16; /* the products are; inputs are numbers that bf16 has */

static void round_inputs(float *x, int64_t n)
{
    for (int64_t i = 0; i < n && in_bf16; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0xffff0000u;
        memcpy(x + i, &bits, sizeof bits);
    }
}

/* Exponentials, at most 1, lose half a bit of eight; sums are of numbers below 1. */
static double allowed(void)
{
    return in_bf16 ? 1.0 / 256 : 2e-5;
}

typedef struct shape {
    int64_t batch, heads, kv_heads, q_len, kv_len, head, v_head;
    int64_t right; /* how far a query sees: causal is 0, all is -1 */
    bool masks, ranges;
    int64_t left;
    double softcap;
    sn_attention_qk mode;
} shape;

/* One element of the reference: scores of query i, then their mix of values. */
static void reference(const sn_attention_desc *d, const sn_attention_args *a, int64_t b, int64_t h,
                      int64_t i, double *s, double *out)
{
    const int64_t kv = h / (d->heads / d->kv_heads);
    double max = -INFINITY, sum = 0;
    float *row = want_qk + ((b * d->heads + h) * d->q_len + i) * d->kv_len;
    for (int64_t j = 0; j < d->kv_len; j++) {
        const int64_t at = i + (a->offset ? a->offset[b] : 0);
        s[j] = 0;
        for (int64_t c = 0; c < d->head; c++)
            s[j] += (double)q[b * d->q[0] + h * d->q[1] + i * d->q[2] + c] *
                    (double)k[b * d->k[0] + kv * d->k[1] + j * d->k[2] + c];
        s[j] *= d->scale;
        if (d->qk == SN_ATTENTION_SCALED)
            row[j] = (float)s[j];
        if (d->softcap > 0)
            s[j] = d->softcap * tanh(s[j] / d->softcap);
        if (d->qk == SN_ATTENTION_CAPPED)
            row[j] = (float)s[j];
        if (a->bias.data)
            s[j] += (double)bias[b * a->bias.stride[0] + h * a->bias.stride[1] +
                                 i * a->bias.stride[2] + j * a->bias.stride[3]];
        if (a->keep.data && !keep[b * a->keep.stride[0] + j])
            s[j] += a->filter;
        if ((d->right >= 0 && j > at + d->right) || (d->left >= 0 && j < at - d->left) ||
            (a->begin && j < a->begin[b]) || (a->end && j >= a->end[b]))
            s[j] = -INFINITY;
        if (d->qk == SN_ATTENTION_MASKED)
            row[j] = (float)s[j];
        max = s[j] > max ? s[j] : max;
    }
    for (int64_t j = 0; j < d->kv_len; j++)
        sum += s[j] = isinf(max) ? 0 : exp(s[j] - max);
    for (int64_t c = 0; c < d->v_head; c++)
        out[c] = 0;
    for (int64_t j = 0; j < d->kv_len; j++) {
        s[j] = sum > 0 ? s[j] / sum : 0;
        if (d->qk == SN_ATTENTION_SOFTMAX)
            row[j] = (float)s[j];
        for (int64_t c = 0; c < d->v_head; c++)
            out[c] += s[j] * (double)v[b * d->v[0] + kv * d->v[1] + j * d->v[2] + c];
    }
}

static void check(const shape *t, uint32_t cpu_flags, bool heads_last)
{
    sn_attention_desc d = {.dtype = SONDE_DTYPE_F32,
                           .batch = t->batch,
                           .heads = t->heads,
                           .kv_heads = t->kv_heads,
                           .q_len = t->q_len,
                           .kv_len = t->kv_len,
                           .head = t->head,
                           .v_head = t->v_head,
                           .scale = 0.4,
                           .softcap = t->softcap,
                           .left = t->left,
                           .right = t->right,
                           .qk = t->mode,
                           .in_bf16 = in_bf16};
    const int64_t heads[4] = {t->heads, t->kv_heads, t->kv_heads, t->heads};
    const int64_t len[4] = {t->q_len, t->kv_len, t->kv_len, t->q_len};
    const int64_t size[4] = {t->head, t->head, t->v_head, t->v_head};
    ptrdiff_t *strides[4] = {d.q, d.k, d.v, d.y};
    for (int i = 0; i < 4; i++) {
        strides[i][0] = heads[i] * len[i] * size[i];
        strides[i][1] = heads_last ? size[i] : len[i] * size[i];
        strides[i][2] = heads_last ? heads[i] * size[i] : size[i];
    }
    for (int i = 0; i < MAX; i++) {
        q[i] = test_randf() * 2;
        k[i] = test_randf() * 2;
        v[i] = test_randf();
        bias[i] = test_randf();
        keep[i] = test_rand() % 3 != 0;
        y[i] = qk[i] = NAN;
    }
    round_inputs(q, MAX), round_inputs(k, MAX), round_inputs(v, MAX);
    const int64_t offset[2] = {t->kv_len - t->q_len, 1}, begin[2] = {0, 1};
    const int64_t end[2] = {t->kv_len, t->kv_len - 1};
    sn_attention_args a = {
        .q = q, .k = k, .v = v, .y = y, .qk = qk, .filter = -3.0, .offset = offset};
    if (t->masks) {
        a.bias = (sn_attention_mask){
            .data = bias, .stride = {0, t->q_len * t->kv_len, t->kv_len, 1}, .len = t->kv_len};
        a.keep =
            (sn_attention_mask){.data = keep, .stride = {t->kv_len, 0, 0, 1}, .len = t->kv_len};
    }
    if (t->ranges) {
        a.begin = begin;
        a.end = end;
    }
    sn_attention_plan p;
    sonde_error err;
    CHECK_OK(sn_attention_plan_make(&p, &d, cpu_flags, 1, &err));
    void *ws = aligned_alloc(SN_ALIGN, sn_round_up(p.workspace.bytes + 1, SN_ALIGN));
    CHECK(ws != NULL);
    double *s = malloc(sizeof(double) * (size_t)(t->kv_len + t->v_head)), *out = s + t->kv_len;
    double worst = 0;
    for (int with_qk = 0; with_qk < 2; with_qk++) {
        a.qk = with_qk ? qk : NULL;
        sn_attention_run(&p, &a, ws, NULL);
        for (int64_t b = 0; b < t->batch; b++)
            for (int64_t h = 0; h < t->heads; h++)
                for (int64_t i = 0; i < t->q_len; i++) {
                    reference(&d, &a, b, h, i, s, out);
                    for (int64_t c = 0; c < t->v_head; c++) {
                        const double got = (double)y[b * d.y[0] + h * d.y[1] + i * d.y[2] + c];
                        worst = isnan(got) ? INFINITY : fmax(worst, fabs(got - out[c]));
                    }
                }
    }
    for (int64_t i = 0; i < t->batch * t->heads * t->q_len * t->kv_len; i++) {
        const double e = qk[i] == want_qk[i] ? 0 : fabs((double)qk[i] - (double)want_qk[i]);
        worst = isnan(e) ? INFINITY : fmax(worst, e);
    }
    free(ws);
    free(s);
    CHECK_MSG(worst < allowed(), "%s, %lld queries, %lld keys, mode %d: off by %g", p.name,
              (long long)t->q_len, (long long)t->kv_len, (int)t->mode, worst);
}

TEST(attention_matches_the_formula_for_all_sizes_masks_and_instruction_sets)
{
    static const shape shapes[] = {
        {1, 1, 1, 1, 1, 1, 1, -1, false, false, -1, 0, SN_ATTENTION_SCALED},
        {2, 4, 2, 1, 9, 8, 8, 0, true, false, -1, 0, SN_ATTENTION_SOFTMAX},
        {2, 4, 1, 5, 7, 5, 3, -1, true, true, -1, 1.5, SN_ATTENTION_MASKED},
        {2, 2, 2, 17, 33, 16, 32, 0, false, true, -1, 0, SN_ATTENTION_SOFTMAX},
        {1, 3, 3, 30, 30, 12, 20, 0, true, false, 4, 0, SN_ATTENTION_MASKED},
        {1, 2, 1, 70, 64, 16, 16, -1, true, false, -1, 2.0, SN_ATTENTION_CAPPED},
        {1, 2, 2, 61, 100, 8, 17, 0, false, false, 9, 0, SN_ATTENTION_SCALED},
        {2, 2, 1, 40, 61, 8, 16, 2, true, true, 5, 0, SN_ATTENTION_MASKED},
        {1, 2, 2, 3, 50, 8, 8, 7, false, false, -1, 0, SN_ATTENTION_SOFTMAX},
        {1, 1, 1, 30, 1300, 4, 4, -1, false, false, 3, 0, SN_ATTENTION_SOFTMAX},
    };
    sn_cpu cpu;
    sonde_error err;
    CHECK_OK(sn_cpu_detect(&cpu, NULL, &err));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int layout = 0; layout < 2; layout++) {
            check(&shapes[i], 0, layout != 0);
            check(&shapes[i], cpu.flags, layout != 0);
            check(&shapes[i], cpu.flags & (uint32_t)~SN_CPU_AVX512, layout != 0);
            in_bf16 = true;
            for (const level *l = levels(); l->name; l++)
                check(&shapes[i], l->flags, layout != 0);
            in_bf16 = false;
        }
}

enum { STAYS_NAN, MASKED_IS_ZERO, NAN_IS_ZERO };

/* Reads what `bias` of any broadcast, hidden scores and rows of nothing but -inf do. */
typedef struct mask_case {
    int64_t q_len, kv_len, head, v_head;
    unsigned bias; /* bits: which of batch, head, query, key the bias runs over */
    int hide;      /* sn_attention_hide, or -1: no keep mask */
    uint8_t hidden;
    bool empty_row;
    int empty; /* what becomes of it */
    int threads;
} mask_case;

static void check_masks(const mask_case *t, uint32_t cpu_flags)
{
    enum { BATCH = 2, HEADS = 3 };
    const int64_t dims[4] = {BATCH, HEADS, t->q_len, t->kv_len};
    const int64_t row = HEADS * (2 * t->head + t->v_head); /* q, k and v side by side */
    const int64_t len = t->q_len > t->kv_len ? t->q_len : t->kv_len;
    float *x = random_floats((size_t)(BATCH * len * row));
    float *y0 = random_floats((size_t)(BATCH * HEADS * t->q_len * t->v_head));
    round_inputs(x, BATCH * len * row);
    sn_attention_desc d = {.dtype = SONDE_DTYPE_F32,
                           .batch = BATCH,
                           .heads = HEADS,
                           .kv_heads = HEADS,
                           .q_len = t->q_len,
                           .kv_len = t->kv_len,
                           .head = t->head,
                           .v_head = t->v_head,
                           .q = {len * row, t->head, row},
                           .k = {len * row, t->head, row},
                           .v = {len * row, t->v_head, row},
                           .y = {t->q_len * HEADS * t->v_head, t->v_head, HEADS * t->v_head},
                           .scale = 2.0,
                           .left = -1,
                           .right = -1,
                           .hide =
                               t->hide < 0 ? SN_ATTENTION_ADD_FILTER : (sn_attention_hide)t->hide,
                           .masked_is_zero = t->empty == MASKED_IS_ZERO,
                           .nan_is_zero = t->empty == NAN_IS_ZERO,
                           .in_bf16 = in_bf16};
    sn_attention_args a = {.q = x,
                           .k = x + HEADS * t->head,
                           .v = x + 2 * HEADS * t->head,
                           .y = y0,
                           .hidden = t->hidden,
                           .filter = t->empty_row ? -INFINITY : -4.0};
    ptrdiff_t step = 1;
    for (int i = 3; i >= 0; i--) {
        a.bias.stride[i] = t->bias >> i & 1u ? step : 0;
        a.keep.stride[i] = i == 0 ? 0 : i == 3 ? 1 : i == 2 ? t->kv_len : 0;
        step *= t->bias >> i & 1u ? dims[i] : 1;
    }
    float *add = random_floats((size_t)step);
    uint8_t *seen = malloc((size_t)(t->q_len * t->kv_len));
    for (int64_t i = 0; i < t->q_len * t->kv_len; i++)
        seen[i] = test_rand() % 2;
    if (t->empty_row)
        memset(seen, t->hidden, (size_t)t->kv_len); /* query 0 sees nothing */
    if (t->bias)
        a.bias.data = add, a.bias.len = t->kv_len;
    if (t->hide >= 0)
        a.keep.data = seen, a.keep.len = t->kv_len;
    sn_attention_plan p;
    sonde_error err;
    CHECK_OK(sn_attention_plan_make(&p, &d, cpu_flags, t->threads, &err));
    void *ws = aligned_alloc(SN_ALIGN, sn_round_up(p.workspace.bytes + 1, SN_ALIGN));
    sn_attention_run(&p, &a, ws, NULL);
    double *s = malloc(sizeof(double) * (size_t)t->kv_len), worst = 0;
    for (int64_t r = 0; r < BATCH * HEADS * t->q_len; r++) {
        const int64_t i = r % t->q_len, h = r / t->q_len % HEADS, b = r / t->q_len / HEADS;
        const float *query = x + b * d.q[0] + h * d.q[1] + i * d.q[2];
        double max = -INFINITY, sum = 0;
        for (int64_t j = 0; j < t->kv_len; j++) {
            const float *key = (const float *)a.k + b * d.k[0] + h * d.k[1] + j * d.k[2];
            const bool hide = t->hide >= 0 && seen[i * t->kv_len + j] == t->hidden;
            const double plus = !t->bias ? 0
                                         : (double)add[b * a.bias.stride[0] + h * a.bias.stride[1] +
                                                       i * a.bias.stride[2] + j * a.bias.stride[3]];
            double z = 0;
            for (int64_t c = 0; c < t->head; c++)
                z += (double)query[c] * (double)key[c];
            z *= d.scale;
            z = hide && t->hide == SN_ATTENTION_FILL_FIRST ? a.filter + plus : z + plus;
            z += hide && t->hide == SN_ATTENTION_ADD_FILTER ? a.filter : 0;
            s[j] = hide && t->hide == SN_ATTENTION_FILL_LAST ? a.filter : z;
            max = fmax(max, s[j]);
        }
        for (int64_t j = 0; j < t->kv_len; j++)
            sum += s[j] = exp(s[j] - max);
        for (int64_t c = 0; c < t->v_head; c++) {
            const double got = (double)y0[b * d.y[0] + h * d.y[1] + i * d.y[2] + c];
            double want = 0;
            for (int64_t j = 0; j < t->kv_len; j++)
                want += s[j] / sum *
                        (double)((const float *)a.v)[b * d.v[0] + h * d.v[1] + j * d.v[2] + c];
            if (isnan(want) && t->empty != STAYS_NAN)
                want = 0;
            const double off = isnan(want) && isnan(got) ? 0 : fabs(want - got);
            worst = isnan(off) ? INFINITY : fmax(worst, off);
        }
    }
    free(x), free(y0), free(add), free(seen), free(ws), free(s);
    CHECK_MSG(worst < allowed(), "%s, %lld queries, %lld keys, bias %x, hide %d: off by %g", p.name,
              (long long)t->q_len, (long long)t->kv_len, t->bias, t->hide, worst);
}

static void check_all_masks(void)
{
    for (const level *l = levels(); l->name; l++) {
        for (unsigned axes = 0; axes < 16; axes++)
            check_masks(&(mask_case){15, 37, 16, 16, axes, -1, 0, false, STAYS_NAN, 1}, l->flags);
        for (int i = 0; i < 12; i++)
            check_masks(&(mask_case){i % 2 ? 2 : 9, 21, 7, i % 4 ? 5 : 16, i % 5 ? 12 : 0, i % 3,
                                     (uint8_t)(i % 2), i > 5, i > 8 ? NAN_IS_ZERO : STAYS_NAN, 1},
                        l->flags);
        /* In blocks of keys, on the last level also without packing. */
        check_masks(&(mask_case){31, 1100, 8, 16, 12, -1, 0, false, STAYS_NAN, 3}, l->flags);
        check_masks(&(mask_case){6, 1537, 4, 3, 8, 1, 1, true, NAN_IS_ZERO, 1}, l->flags);
        check_masks(&(mask_case){2, 4500, 4, 16, 0, 2, 0, true, STAYS_NAN, 1}, l->flags);
        check_masks(&(mask_case){9, 21, 7, 16, 12, 0, 0, true, MASKED_IS_ZERO, 1}, l->flags);
        check_masks(&(mask_case){2, 1537, 4, 3, 0, 2, 1, true, MASKED_IS_ZERO, 1}, l->flags);
    }
}

TEST(masks_of_all_broadcasts_and_rows_longer_than_a_block_match_the_formula)
{
    check_all_masks();
}

TEST(the_same_holds_for_products_in_bf16)
{
    in_bf16 = true;
    check_all_masks();
    in_bf16 = false;
}

TEST(a_sink_takes_its_share_of_the_probability)
{
    /* Both scores are 0 and so is the sink: each of three terms gets a third. */
    for (int64_t rows = 1; rows <= 8; rows += 7) {
        const sn_attention_desc d = {.dtype = SONDE_DTYPE_F32,
                                     .batch = 1,
                                     .heads = 1,
                                     .kv_heads = 1,
                                     .q_len = rows,
                                     .kv_len = 2,
                                     .head = 1,
                                     .v_head = 1,
                                     .q = {rows, rows, 1},
                                     .k = {2, 2, 1},
                                     .v = {2, 2, 1},
                                     .y = {rows, rows, 1},
                                     .scale = 1,
                                     .left = -1,
                                     .right = -1};
        const float zero[8] = {0}, values[2] = {3, 6}, sink = 0;
        float out[8];
        sn_attention_plan p;
        sonde_error err;
        const sn_attention_args a = {.q = zero, .k = zero, .v = values, .y = out, .sink = &sink};
        CHECK_OK(sn_attention_plan_make(&p, &d, 0, 1, &err));
        void *ws = aligned_alloc(SN_ALIGN, sn_round_up(p.workspace.bytes + 1, SN_ALIGN));
        sn_attention_run(&p, &a, ws, NULL);
        free(ws);
        for (int64_t i = 0; i < rows; i++)
            CHECK_MSG(fabsf(out[i] - 3.0f) < 1e-6f, "got %g", (double)out[i]);
    }
}

TEST_MAIN()
