/* SPDX-License-Identifier: Apache-2.0 */
/* How far the outputs of the quantised model are from those of the float one, on the samples. What
 * the float model gives must be finite; where only the quantised one gives NaN or infinities, it
 * agrees as badly as can be. */
#include <math.h>

#include "base/codec.h"
#include "shrink/quantizer.h"
#include "sonde/experimental/compare.h"

typedef struct sums {
    double signal, noise;
    uint64_t numbers, rows, same;
} sums;

static bool is_float(sonde_dtype t)
{
    return t == SONDE_DTYPE_F32 || t == SONDE_DTYPE_F16 || t == SONDE_DTYPE_BF16 ||
           t == SONDE_DTYPE_F64;
}

static double number(const sonde_value *v, int64_t i)
{
    const void *data = sonde_tensor_data(v);
    switch (sonde_tensor_dtype(v)) {
    case SONDE_DTYPE_F16:
        return (double)sn_f16_to_f32(((const uint16_t *)data)[i]);
    case SONDE_DTYPE_BF16:
        return (double)sn_bf16_to_f32(((const uint16_t *)data)[i]);
    case SONDE_DTYPE_F64:
        return ((const double *)data)[i];
    default:
        return (double)((const float *)data)[i];
    }
}

static int64_t largest(const sonde_value *v, int64_t first, int64_t n)
{
    int64_t best = first;
    for (int64_t i = first + 1; i < first + n; i++)
        best = number(v, i) > number(v, best) ? i : best;
    return best;
}

static sonde_status add(const sn_quantizer *q, sums *s, const sonde_value *a, const sonde_value *b,
                        size_t output)
{
    if (sonde_value_kind(a) != SONDE_KIND_TENSOR || sonde_value_kind(b) != SONDE_KIND_TENSOR)
        return SONDE_OK;
    const int64_t n = sonde_tensor_count(a);
    if (!is_float(sonde_tensor_dtype(a)) || sonde_tensor_dtype(b) != sonde_tensor_dtype(a) ||
        sonde_tensor_count(b) != n)
        return SONDE_OK;
    for (int64_t i = 0; i < n; i++) {
        const double x = number(a, i), d = x - number(b, i);
        if (!isfinite(x))
            return sn_q_fail_number(q, q->g->outputs.data[output], x);
        s->signal += x * x;
        s->noise += isfinite(d) ? d * d : INFINITY;
    }
    s->numbers += (uint64_t)n;
    int64_t rows = 0, row = 0;
    (void)sonde_value_classes(a, &rows, &row);
    for (int64_t i = 0; output == 0 && row > 1 && i + row <= n; i += row) {
        s->rows++;
        s->same += largest(a, i, row) == largest(b, i, row);
    }
    return SONDE_OK;
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
        st = add(q, s, values[i], values[n_out + i], i);
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
        if (st != SONDE_OK && st != SONDE_CANCELLED && st != SONDE_OUT_OF_MEMORY)
            sn_error_prefix(q->err, "sample %zu", i);
        if (st == SONDE_OK)
            st = sn_q_progress(q, "comparing", (double)(i + 1) / (double)n);
    }
    sonde_session_release(sessions[0]);
    sonde_session_release(sessions[1]);
    if (s.numbers)
        found->sqnr_db = sn_q_decibel(s.signal, s.noise);
    if (s.rows)
        found->top1 = (double)s.same / (double)s.rows;
    return st;
}
