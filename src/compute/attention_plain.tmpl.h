/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of one query in element type T; included by attention_plain.c once per type. Inner
 * loops have a fixed width so that the compiler turns them into vectors without reordering sums. */

static T NAME(dot)(const T *a, const T *b, int64_t n)
{
    T lanes[16] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++)
            lanes[j] += a[i + j] * b[i + j];
    for (; i < n; i++)
        sum += a[i] * b[i];
    for (int w = 8; w > 0; w /= 2)
        for (int j = 0; j < w; j++)
            lanes[j] += lanes[j + w];
    return sum + lanes[0];
}

/* y += s * x */
static void NAME(add_scaled)(T *y, const T *x, T s, int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++)
            y[i + j] += s * x[i + j];
    for (; i < n; i++)
        y[i] += s * x[i];
}

/* The score of key j of one query: cap, bias, filter. */
static T NAME(masked)(const sn_attention_desc *d, const sn_attention_args *a, T s, int64_t b,
                      int64_t h, int64_t i, int64_t j)
{
    const sn_attention_mask *m = &a->bias, *keep = &a->keep, *more = &a->more;
    if ((m->data && j >= m->len) || (keep->data && j >= keep->len))
        return (T)-INFINITY;
    const uint8_t *kept = keep->data;
    const bool hide =
        kept && (kept[sn_attention_mask_at(d, keep, b, h, i, j)] != 0) == (a->hidden != 0);
    if (hide && d->hide == SN_ATTENTION_FILL_FIRST)
        s = (T)a->filter;
    if (m->data)
        s += ((const T *)m->data)[sn_attention_mask_at(d, m, b, h, i, j)];
    if (more->data)
        s += ((const T *)more->data)[sn_attention_mask_at(d, more, b, h, i, j)];
    if (hide && d->hide == SN_ATTENTION_ADD_FILTER)
        s += (T)a->filter;
    if (hide && d->hide == SN_ATTENTION_FILL_LAST)
        s = (T)a->filter;
    return s;
}

/* Exponentials of s[lo … hi) over their sum, in place. */
static void NAME(softmax)(const sn_attention_desc *d, T *s, int64_t lo, int64_t hi, const T *sink)
{
    T max = sink ? *sink : (T)-INFINITY;
    for (int64_t j = lo; j < hi; j++)
        max = s[j] > max || s[j] != s[j] ? s[j] : max;
    double sum = sink ? (double)EXP(*sink - max) : 0.0;
    for (int64_t j = lo; j < hi; j++) {
        s[j] = EXP(s[j] - max);
        sum += (double)s[j];
    }
    const T inv = (T)(1.0 / sum);
    const bool zero = (d->masked_is_zero && max == (T)-INFINITY) || (d->nan_is_zero && !(sum > 0));
    for (int64_t j = lo; j < hi; j++)
        s[j] = zero ? 0 : s[j] * inv;
}

void QUERY(const sn_attention_plan *p, const sn_attention_args *a, int64_t b, int64_t h, int64_t i,
           void *scores)
{
    const sn_attention_desc *d = &p->d;
    T *s = scores;
    const int64_t kv = h / (d->heads / d->kv_heads);
    const T *q = (const T *)a->q + b * d->q[0] + h * d->q[1] + i * d->q[2];
    const T *k = (const T *)a->k + b * d->k[0] + kv * d->k[1];
    const T *v = (const T *)a->v + b * d->v[0] + kv * d->v[1];
    T *y = (T *)a->y + b * d->y[0] + h * d->y[1] + i * d->y[2];
    T *qk = a->qk ? (T *)a->qk + ((b * d->heads + h) * d->q_len + i) * d->kv_len : NULL;
    int64_t lo, hi;
    sn_attention_range(d, a, b, i, &lo, &hi);
    const int64_t from = qk ? 0 : lo, to = qk ? d->kv_len : hi; /* what is computed */
    const T scale = (T)d->scale * (a->scales ? (T)a->scales[h] : 1), cap = (T)d->softcap;
    for (int64_t j = from; j < to; j++)
        s[j] = NAME(dot)(q, k + j * d->k[2], d->head) * scale;
    if (qk && d->qk == SN_ATTENTION_SCALED)
        memcpy(qk, s, sizeof(T) * (size_t)d->kv_len);
    if (cap > 0)
        for (int64_t j = from; j < to; j++)
            s[j] = cap * TANH(s[j] / cap);
    if (qk && d->qk == SN_ATTENTION_CAPPED)
        memcpy(qk, s, sizeof(T) * (size_t)d->kv_len);
    for (int64_t j = from; j < to; j++)
        s[j] = j < lo || j >= hi ? (T)-INFINITY : NAME(masked)(d, a, s[j], b, h, i, j);
    if (qk && d->qk == SN_ATTENTION_MASKED)
        memcpy(qk, s, sizeof(T) * (size_t)d->kv_len);
    NAME(softmax)(d, s, lo, hi, a->sink ? (const T *)a->sink + h : NULL);
    if (qk && d->qk == SN_ATTENTION_SOFTMAX)
        for (int64_t j = 0; j < d->kv_len; j++)
            qk[j] = j < lo || j >= hi ? 0 : s[j];
    memset(y, 0, sizeof(T) * (size_t)d->v_head);
    for (int64_t j = lo; j < hi; j++)
        NAME(add_scaled)(y, v + j * d->v[2], s[j], d->v_head);
}
