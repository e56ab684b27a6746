/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels over one row in the vector vocabulary. Four accumulators hide the latency of an addition
 * and keep the error of a sum small. Include after eltwise.tmpl.h (v_exp). */

/* Folds f over the row: full vectors into four accumulators, then the tail into the first one.
 * `tail` makes lanes past the end neutral. */
#define FOLD(acc, start, step)                                                                     \
    sn_v acc = (start), acc##1 = acc, acc##2 = acc, acc##3 = acc;                                  \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; i + 4 * SN_VL <= n; i += 4 * SN_VL) {                                               \
            acc = step(acc, v_load(x + i));                                                        \
            acc##1 = step(acc##1, v_load(x + i + SN_VL));                                          \
            acc##2 = step(acc##2, v_load(x + i + 2 * SN_VL));                                      \
            acc##3 = step(acc##3, v_load(x + i + 3 * SN_VL));                                      \
        }                                                                                          \
        for (; i + SN_VL <= n; i += SN_VL)                                                         \
            acc = step(acc, v_load(x + i));                                                        \
        if (i < n)                                                                                 \
            acc##1 = step(acc##1, v_load_n(x + i, n - i));                                         \
    }

SN_INLINE sn_v step_square(sn_v acc, sn_v x)
{
    return v_fma(x, x, acc);
}
/* A NaN, once met, stays in the accumulator. */
SN_INLINE sn_v step_max(sn_v acc, sn_v x)
{
    return v_select(v_nan(acc), acc, v_at_least(x, acc));
}
SN_INLINE sn_v step_min(sn_v acc, sn_v x)
{
    return v_select(v_nan(acc), acc, v_at_most(x, acc));
}

SN_INLINE sn_v step_abs(sn_v acc, sn_v x)
{
    const sn_v size = v_abs(x);
    return v_at_least(v_select(v_lt(size, v_set1(__builtin_inff())), size, v_zero()), acc);
}

SN_INLINE sn_v sum4(sn_v a, sn_v b, sn_v c, sn_v d)
{
    return v_add(v_add(a, b), v_add(c, d));
}

float SN_ISA(sn_f32_sum)(const float *x, size_t n)
{
    FOLD(acc, v_zero(), v_add)
    return v_sum(sum4(acc, acc1, acc2, acc3));
}

float SN_ISA(sn_f32_sumsq)(const float *x, size_t n)
{
    FOLD(acc, v_zero(), step_square)
    return v_sum(sum4(acc, acc1, acc2, acc3));
}

/* Lanes of the accumulators one by one: a horizontal maximum would lose a NaN. */
SN_INLINE float lanes_max(sn_v v)
{
    float lanes[SN_VL];
    v_store(lanes, v);
    float m = lanes[0];
    for (int l = 1; l < SN_VL; l++)
        m = m != m || m > lanes[l] ? m : lanes[l];
    return m;
}

/* The tail goes through scalar code: a neutral -inf in the other lanes would need another load. */
float SN_ISA(sn_f32_rowmax)(const float *x, size_t n)
{
    size_t whole = n / SN_VL * SN_VL, all = n;
    n = whole;
    FOLD(acc, v_set1(-__builtin_inff()), step_max)
    float m = lanes_max(step_max(step_max(acc, acc1), step_max(acc2, acc3)));
    for (size_t i = whole; i < all; i++)
        m = m != m || m > x[i] ? m : x[i];
    return m;
}

float SN_ISA(sn_f32_rowmin)(const float *x, size_t n)
{
    size_t whole = n / SN_VL * SN_VL, all = n;
    n = whole;
    FOLD(acc, v_set1(__builtin_inff()), step_min)
    float m = -lanes_max(v_neg(step_min(step_min(acc, acc1), step_min(acc2, acc3))));
    for (size_t i = whole; i < all; i++)
        m = m != m || m < x[i] ? m : x[i];
    return m;
}

float SN_ISA(sn_f32_rowabs)(const float *x, size_t n)
{
    FOLD(acc, v_zero(), step_abs)
    return lanes_max(step_abs(step_abs(acc, acc1), step_abs(acc2, acc3)));
}

void SN_ISA(sn_f32_softmax)(float *y, const float *x, size_t n)
{
    const sn_v m = v_set1(SN_ISA(sn_f32_rowmax)(x, n));
    sn_v s0 = v_zero(), s1 = v_zero();
    size_t i = 0;
    for (; i + 2 * SN_VL <= n; i += 2 * SN_VL) {
        sn_v e0 = v_exp(v_sub(v_load(x + i), m)), e1 = v_exp(v_sub(v_load(x + i + SN_VL), m));
        v_store(y + i, e0);
        v_store(y + i + SN_VL, e1);
        s0 = v_add(s0, e0);
        s1 = v_add(s1, e1);
    }
    float sum = 0.0f;
    for (; i < n; i += SN_VL) {
        if (i + SN_VL <= n) {
            sn_v e = v_exp(v_sub(v_load(x + i), m));
            v_store(y + i, e);
            s0 = v_add(s0, e);
            continue;
        }
        v_store_n(y + i, v_exp(v_sub(v_load_n(x + i, n - i), m)), n - i);
        s1 = v_add(s1, v_load_n(y + i, n - i));
    }
    sum = v_sum(v_add(s0, s1));
    const sn_v inv = v_set1(1.0f / sum);
    for (i = 0; i + SN_VL <= n; i += SN_VL)
        v_store(y + i, v_mul(v_load(y + i), inv));
    if (i < n)
        v_store_n(y + i, v_mul(v_load_n(y + i, n - i), inv), n - i);
}

SN_INLINE sn_v norm_step(sn_v x, sn_v mean, sn_v inv, const float *scale, const float *bias,
                         size_t i, size_t n)
{
    sn_v v = v_mul(v_sub(x, mean), inv);
    if (n == SN_VL) {
        sn_v s = scale ? v_load(scale + i) : v_set1(1.0f), b = bias ? v_load(bias + i) : v_zero();
        return v_fma(v, s, b);
    }
    sn_v s = scale ? v_load_n(scale + i, n) : v_set1(1.0f),
         b = bias ? v_load_n(bias + i, n) : v_zero();
    return v_fma(v, s, b);
}

SN_INLINE void norm_row(float *y, const float *x, const float *scale, const float *bias, size_t n,
                        float mean, float inv)
{
    const sn_v vm = v_set1(mean), vi = v_set1(inv);
    size_t i = 0;
    for (; i + SN_VL <= n; i += SN_VL)
        v_store(y + i, norm_step(v_load(x + i), vm, vi, scale, bias, i, SN_VL));
    if (i < n)
        v_store_n(y + i, norm_step(v_load_n(x + i, n - i), vm, vi, scale, bias, i, n - i), n - i);
}

/* Two passes for the statistics: the variance of centred numbers does not cancel. */
void SN_ISA(sn_f32_layernorm)(float *y, const float *x, const float *scale, const float *bias,
                              size_t n, float epsilon, float *stats)
{
    float mean = SN_ISA(sn_f32_sum)(x, n) / (float)n;
    const sn_v vm = v_set1(mean);
    sn_v q0 = v_zero(), q1 = v_zero();
    float tail = 0.0f;
    size_t i = 0;
    for (; i + 2 * SN_VL <= n; i += 2 * SN_VL) {
        sn_v d0 = v_sub(v_load(x + i), vm), d1 = v_sub(v_load(x + i + SN_VL), vm);
        q0 = v_fma(d0, d0, q0);
        q1 = v_fma(d1, d1, q1);
    }
    for (; i < n; i++)
        tail += (x[i] - mean) * (x[i] - mean);
    float var = (v_sum(v_add(q0, q1)) + tail) / (float)n;
    float inv = 1.0f / __builtin_sqrtf(var + epsilon);
    norm_row(y, x, scale, bias, n, mean, inv);
    if (stats) {
        stats[0] = mean;
        stats[1] = inv;
    }
}

void SN_ISA(sn_f32_rmsnorm)(float *y, const float *x, const float *scale, const float *bias,
                            size_t n, float epsilon, float *stats)
{
    float inv = 1.0f / __builtin_sqrtf(SN_ISA(sn_f32_sumsq)(x, n) / (float)n + epsilon);
    norm_row(y, x, scale, bias, n, 0.0f, inv);
    if (stats) {
        stats[0] = 0.0f;
        stats[1] = inv;
    }
}
#undef FOLD
