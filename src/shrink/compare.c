/* SPDX-License-Identifier: Apache-2.0 */
/* How far the outputs of the quantised model are from those of the float one, on the samples. */
#include <math.h>

#include "shrink/quantizer.h"

typedef struct sums {
    double signal, noise;
    uint64_t rows, same;
} sums;

static int64_t largest(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

static void add(sums *s, const sonde_value *a, const sonde_value *b, bool first)
{
    const int64_t n = sonde_tensor_count(a);
    const float *x = sonde_tensor_data(a), *y = sonde_tensor_data(b);
    if (sonde_tensor_dtype(a) != SONDE_DTYPE_F32 || sonde_tensor_dtype(b) != SONDE_DTYPE_F32 ||
        sonde_tensor_count(b) != n)
        return;
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)x[i] - (double)y[i];
        s->signal += (double)x[i] * (double)x[i];
        s->noise += d * d;
    }
    const size_t rank = sonde_tensor_rank(a);
    const int64_t row = rank >= 2 ? sonde_tensor_dims(a)[rank - 1] : 0;
    for (int64_t i = 0; first && row > 1 && i + row <= n; i += row) {
        s->rows++;
        s->same += largest(x + i, row) == largest(y + i, row);
    }
}

static sonde_status run(const sn_quantizer *q, sonde_session *session, const sonde_value_set *set,
                        const char **names, sonde_value **in, sonde_value **out, size_t n_out)
{
    const size_t n = sonde_value_set_count(set);
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    o.cancel = q->o.cancel;
    for (size_t i = 0; i < n; i++) {
        names[i] = sonde_value_set_name(set, i);
        in[i] = sonde_value_set_value(set, i);
    }
    return sonde_session_run(session, &o, names, in, n, NULL, out, n_out, q->err);
}

static sonde_status compare_sample(const sn_quantizer *q, sonde_session *const sessions[2],
                                   size_t index, sums *s)
{
    sonde_value_set *set = NULL;
    SN_TRY(sonde_samples_get(q->samples, index, &set, q->err));
    const size_t n_out = sonde_session_output_count(sessions[0]);
    const size_t n = sonde_value_set_count(set) + 2 * n_out + 1;
    sonde_value **values = sn_alloc_zero(&q->context->alloc, n * sizeof *values);
    const char **names = sn_alloc_zero(&q->context->alloc, n * sizeof *names);
    sonde_value **in = values ? values + 2 * n_out : NULL;
    sonde_status st = values && names ? SONDE_OK : sn_fail_memory(q->err, n * sizeof *values);
    for (size_t k = 0; k < 2 && st == SONDE_OK; k++)
        st = run(q, sessions[k], set, names, in, values + k * n_out, n_out);
    for (size_t i = 0; i < n_out && st == SONDE_OK; i++)
        add(s, values[i], values[n_out + i], i == 0);
    for (size_t i = 0; values && i < 2 * n_out; i++)
        sonde_value_release(values[i]);
    sn_free(&q->context->alloc, values, n * sizeof *values);
    sn_free(&q->context->alloc, names, n * sizeof *names);
    sonde_value_set_release(set);
    return st;
}

sonde_status sn_q_compare(const sn_quantizer *q, sonde_model *made, size_t most,
                          sn_q_agreement *found)
{
    sums s = {0};
    const size_t all = sonde_samples_count(q->samples), n = all < most ? all : most;
    sonde_session *sessions[2] = {NULL, NULL};
    *found = (sn_q_agreement){NAN, NAN};
    if (n == 0)
        return SONDE_OK;
    sonde_status st = sonde_session_create(q->prepared, NULL, &sessions[0], q->err);
    if (st == SONDE_OK)
        st = sonde_session_create(made, NULL, &sessions[1], q->err);
    for (size_t i = 0; i < n && st == SONDE_OK; i++) {
        st = compare_sample(q, sessions, i, &s);
        if (st == SONDE_OK)
            st = sn_q_progress(q, "comparing", (double)(i + 1) / (double)n);
    }
    sonde_session_release(sessions[0]);
    sonde_session_release(sessions[1]);
    if (s.signal > 0 || s.noise > 0)
        found->sqnr_db = sn_q_decibel(s.signal, s.noise);
    if (s.rows)
        found->top1 = (double)s.same / (double)s.rows;
    return st;
}
