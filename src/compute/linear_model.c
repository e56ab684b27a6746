/* SPDX-License-Identifier: Apache-2.0 */
/* Linear models; rows run side by side. */
#include "compute/linear_model.h"

#include "compute/element.h"
#include "compute/parallel.h"

typedef struct linear_job {
    const sn_linear_model *m;
    sonde_dtype dtype;
    const void *x;
    float *scores;
    int64_t *index;
} linear_job;

static void linear_range(void *arg, size_t lo, size_t hi)
{
    const linear_job *j = arg;
    const sn_linear_model *m = j->m;
    const int64_t features = m->features, out = m->binary ? 2 : m->targets;
    for (int64_t r = (int64_t)lo; r < (int64_t)hi; r++) {
        float *score = j->scores + r * out;
        int64_t best = 0;
        for (int64_t t = 0; t < m->targets; t++) {
            double sum = m->intercepts ? (double)m->intercepts[t] : 0.0;
            for (int64_t i = 0; i < features; i++)
                sum += sn_elem_f64(j->dtype, j->x, r * features + i) *
                       (double)m->coefficients[t * features + i];
            score[t] = (float)sum;
            best = score[t] > score[best] ? t : best;
        }
        if (m->classifier && m->targets == 1)
            best = score[0] > 0.0f;
        if (m->classifier)
            j->index[r] = best;
        if (m->binary)
            sn_score_binary(m->post, score[0], true, score);
        else
            sn_score_apply(m->post, score, m->targets);
    }
}

void sn_linear_model_run(const sn_linear_model *m, sonde_dtype t, const void *x, int64_t n,
                         float *scores, int64_t *index, sn_pool *pool)
{
    linear_job j = {m, t, x, scores, index};
    sn_parallel_range(pool, (size_t)n, 2 * (size_t)(m->targets * m->features), linear_range, &j);
}
