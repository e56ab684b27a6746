/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms of scores; see scores.h. */
#include "compute/scores.h"

#include <math.h>

static float logistic(float x)
{
    const float v = 1.0f / (1.0f + expf(-fabsf(x)));
    return x < 0 ? 1.0f - v : v;
}

/* Winitzki's approximation of the inverse error function. */
static float probit(float p)
{
    const float x = 2.0f * p - 1.0f, rest = (1.0f - x) * (1.0f + x);
    if (rest == 0.0f)
        return 0.0f;
    const float l = logf(rest), v = 2.0f / (3.14159265f * 0.147f) + 0.5f * l;
    const float r = sqrtf(sqrtf(v * v - l / 0.147f) - v);
    return 1.41421356f * (x < 0 ? -r : r);
}

/* SOFTMAX_ZERO: scores of zero take no part in the sum and stay next to zero. */
static void softmax(float *x, int64_t n, bool zero)
{
    float max = -INFINITY, sum = 0.0f;
    for (int64_t i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (int64_t i = 0; i < n; i++) {
        if (zero && fabsf(x[i]) <= 1e-7f) {
            x[i] *= expf(-max);
        } else {
            x[i] = expf(x[i] - max);
            sum += x[i];
        }
    }
    for (int64_t i = 0; i < n; i++)
        x[i] = sum == 0.0f ? 0.5f : x[i] / sum;
}

void sn_score_apply(sn_score_post post, float *x, int64_t n)
{
    switch (post) {
    case SN_SCORE_NONE:
        return;
    case SN_SCORE_SOFTMAX:
    case SN_SCORE_SOFTMAX_ZERO:
        softmax(x, n, post == SN_SCORE_SOFTMAX_ZERO);
        return;
    case SN_SCORE_LOGISTIC:
        for (int64_t i = 0; i < n; i++)
            x[i] = logistic(x[i]);
        return;
    case SN_SCORE_PROBIT:
        for (int64_t i = 0; i < n; i++)
            x[i] = probit(x[i]);
        return;
    }
}

void sn_score_binary(sn_score_post post, float score, bool mixed, float out[2])
{
    out[0] = mixed ? -score : 1.0f - score;
    out[1] = score;
    if (mixed)
        sn_score_apply(post, out, 2);
}
