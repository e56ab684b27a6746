/* SPDX-License-Identifier: Apache-2.0 */
/* The ranges of activations. The float model runs on every sample and is asked for the values that
 * are to be bytes, a group of them at a time, so that never more than a bounded number of bytes is
 * kept; of each only the smallest, the largest, a histogram and sums per channel stay. A histogram
 * needs the range first: methods that use one go over the samples twice. */
#include <math.h>
#include <string.h>

#include "ops/framework/op.h"
#include "shrink/quantizer.h"

#define GROUP_BYTES ((size_t)256 << 20)

typedef struct statistics {
    uint32_t id;
    const char *name;
    double low, high;
    uint64_t count;
    uint64_t *bins;
    double *sums; /* per channel */
    int64_t channels;
    uint64_t rows; /* that each sum has */
    size_t bytes;  /* of the value, about */
} statistics;

typedef struct calibration {
    sn_quantizer *q;
    sonde_session *session;
    statistics *all;
    size_t n;
    bool second; /* ranges are known: count into bins */
    int passes;
    uint64_t done, total; /* runs */
    const char **names;
    sonde_value **values;
} calibration;

/* ------------------------------------------------------------------ one value */
sonde_status sn_q_fail_number(const sn_quantizer *q, const sn_value *v, double x)
{
    const char *what = isnan(x) ? "NaN" : "infinities";
    char text[400];
    if (!v->producer)
        return sn_fail(q->err, SONDE_RUNTIME,
                       "tensor '%.300s' has %s; it is an input of the model: check the samples",
                       v->name, what);
    return sn_fail(q->err, SONDE_RUNTIME,
                   "tensor '%.300s' has %s; %s makes it. A model with such values cannot be "
                   "calibrated: check the samples and the model, or leave what reads it in float",
                   v->name, what, sn_node_text(v->producer, text, sizeof text));
}

static sonde_status add_range(const calibration *c, statistics *s, const float *x, int64_t n)
{
    float low = s->count ? (float)s->low : INFINITY, high = s->count ? (float)s->high : -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            return sn_q_fail_number(c->q, c->q->g->values.data[s->id], (double)x[i]);
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    if (n > 0) {
        s->low = (double)low;
        s->high = (double)high;
        s->count += (uint64_t)n;
    }
    return SONDE_OK;
}

static void add_bins(statistics *s, const float *x, int64_t n)
{
    const double width = s->high - s->low;
    const double scale = width > 0 ? (double)SN_Q_BINS / width : 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = (int64_t)(((double)x[i] - s->low) * scale);
        s->bins[k < 0 ? 0 : k >= SN_Q_BINS ? SN_Q_BINS - 1 : k]++;
    }
}

static sonde_status add_sums(const calibration *c, statistics *s, const sonde_value *v)
{
    const sn_q_value *d = &c->q->values[s->id];
    const int rank = (int)sonde_tensor_rank(v), axis = d->axis < 0 ? rank - 1 : d->axis;
    const int64_t *dims = sonde_tensor_dims(v);
    const float *x = sonde_tensor_data(v);
    if (axis >= rank || rank == 0)
        return SONDE_OK;
    if (!s->sums) {
        s->channels = dims[axis];
        s->sums = SN_NEW_N(&c->q->arena, double, (size_t)s->channels + 1);
        if (!s->sums)
            return sn_fail_memory(c->q->err, (size_t)s->channels * sizeof *s->sums);
    }
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < rank; i++) {
        outer *= i < axis ? dims[i] : 1;
        inner *= i > axis ? dims[i] : 1;
    }
    if (dims[axis] != s->channels)
        return SONDE_OK;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < s->channels; k++) {
            const float *row = x + (o * s->channels + k) * inner;
            for (int64_t i = 0; i < inner; i++)
                s->sums[k] += (double)row[i];
        }
    s->rows += (uint64_t)(outer * inner);
    return SONDE_OK;
}

static sonde_status add(const calibration *c, statistics *s, const sonde_value *v)
{
    const float *x = sonde_tensor_data(v);
    const int64_t n = sonde_tensor_count(v);
    if (sonde_tensor_dtype(v) != SONDE_DTYPE_F32)
        return sn_fail(c->q->err, SONDE_INTERNAL, "tensor '%.300s' is not f32", s->name);
    if (c->second) {
        add_bins(s, x, n);
        return SONDE_OK;
    }
    SN_TRY(add_range(c, s, x, n));
    return c->q->values[s->id].wants_means ? add_sums(c, s, v) : SONDE_OK;
}

/* ------------------------------------------------------------------ runs */
static sonde_value *fed(const sonde_value_set *set, const char *name)
{
    for (size_t i = 0; i < sonde_value_set_count(set); i++)
        if (strcmp(sonde_value_set_name(set, i), name) == 0)
            return sonde_value_set_value(set, i);
    return NULL;
}

/* One sample through the model, for the values [first, end). Inputs of the model are not asked of
 * it. */
static sonde_status run_sample(calibration *c, const sonde_value_set *set, size_t first, size_t end)
{
    const size_t n_in = sonde_value_set_count(set);
    const size_t bytes = (n_in + 1) * sizeof(void *);
    const char **names = sn_alloc(&c->q->context->alloc, bytes);
    sonde_value **values = sn_alloc(&c->q->context->alloc, bytes);
    size_t asked = 0;
    sonde_status st = names && values ? SONDE_OK : sn_fail_memory(c->q->err, bytes);
    for (size_t i = 0; i < n_in && st == SONDE_OK; i++) {
        names[i] = sonde_value_set_name(set, i);
        values[i] = sonde_value_set_value(set, i);
    }
    for (size_t i = first; i < end && st == SONDE_OK; i++) {
        const sonde_value *v = fed(set, c->all[i].name);
        if (v) {
            st = add(c, &c->all[i], v);
        } else {
            c->values[asked] = NULL;
            c->names[asked++] = c->all[i].name;
        }
    }
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    o.cancel = c->q->o.cancel;
    if (st == SONDE_OK && asked)
        st = sonde_session_run(c->session, &o, names, values, n_in, c->names, c->values, asked,
                               c->q->err);
    size_t k = 0;
    for (size_t i = first; i < end && st == SONDE_OK; i++)
        if (k < asked && c->names[k] == c->all[i].name)
            st = add(c, &c->all[i], c->values[k++]);
    for (size_t i = 0; i < asked; i++) {
        sonde_value_release(c->values[i]);
        c->values[i] = NULL;
    }
    sn_free(&c->q->context->alloc, names, bytes);
    sn_free(&c->q->context->alloc, values, bytes);
    return st;
}

static sonde_status run_group(calibration *c, size_t first, size_t end)
{
    const size_t n = sonde_samples_count(c->q->samples);
    for (size_t i = 0; i < n; i++) {
        sonde_value_set *set = NULL;
        SN_TRY(sonde_samples_get(c->q->samples, i, &set, c->q->err));
        const sonde_status st = run_sample(c, set, first, end);
        sonde_value_set_release(set);
        if (st != SONDE_OK) {
            if (st != SONDE_CANCELLED && st != SONDE_OUT_OF_MEMORY)
                sn_error_prefix(c->q->err, "sample %zu", i);
            return st;
        }
        c->done++;
        SN_TRY(sn_q_progress(c->q, "calibrating", (double)c->done / (double)c->total));
    }
    return SONDE_OK;
}

static size_t group_end(const calibration *c, size_t first)
{
    const size_t most = c->q->o.group_bytes ? c->q->o.group_bytes : GROUP_BYTES;
    size_t bytes = 0, end = first;
    while (end < c->n && (end == first || bytes + c->all[end].bytes <= most))
        bytes += c->all[end++].bytes;
    return end;
}

static sonde_status run_all(calibration *c)
{
    uint64_t groups = 0;
    for (size_t first = 0; first < c->n; first = group_end(c, first))
        groups++;
    c->total = groups * sonde_samples_count(c->q->samples) * (uint64_t)c->passes;
    for (int pass = 0; pass < c->passes; pass++) {
        c->second = pass > 0;
        for (size_t i = 0; i < c->n && c->second; i++) {
            c->all[i].bins = SN_NEW_N(&c->q->arena, uint64_t, SN_Q_BINS);
            if (!c->all[i].bins)
                return sn_fail_memory(c->q->err, SN_Q_BINS * sizeof(uint64_t));
        }
        for (size_t first = 0, end; first < c->n; first = end) {
            end = group_end(c, first);
            SN_TRY(run_group(c, first, end));
        }
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ sizes of values */
/* Infers shapes with those of the first sample, so that groups are not too large. */
static sonde_status measure_values(calibration *c, sn_arena *arena)
{
    sonde_value_set *set = NULL;
    sn_graph *g = NULL;
    SN_TRY(sonde_samples_get(c->q->samples, 0, &set, c->q->err));
    sonde_status st = sn_graph_clone(c->q->g, arena, &g, c->q->err);
    for (size_t i = 0; st == SONDE_OK && i < g->inputs.n; i++) {
        const sonde_value *v = fed(set, g->inputs.data[i]->name);
        sn_type *t = &g->inputs.data[i]->fact.type;
        if (v && sonde_value_kind(v) == SONDE_KIND_TENSOR) {
            *t = (sn_type){.kind = SN_KIND_TENSOR,
                           .dtype = sonde_tensor_dtype(v),
                           .rank = (int32_t)sonde_tensor_rank(v)};
            sn_dim *dims = SN_NEW_N(arena, sn_dim, (size_t)t->rank + 1);
            if (!dims)
                st = sn_fail_memory(c->q->err, sizeof *dims);
            else if (t->rank)
                memcpy(dims, sonde_tensor_dims(v), (size_t)t->rank * sizeof *dims);
            t->dims = dims;
        }
    }
    if (st == SONDE_OK)
        st = sn_ops_resolve(g, c->q->err);
    if (st == SONDE_OK)
        st = sn_ops_infer_undeclared(g, c->q->err);
    for (size_t i = 0; st == SONDE_OK && i < c->n; i++) {
        int64_t count;
        const sn_type *t = &g->values.data[c->all[i].id]->fact.type;
        c->all[i].bytes = t->rank >= 0 && sn_type_count(t, &count) ? (size_t)count * sizeof(float)
                                                                   : GROUP_BYTES / 8;
    }
    sonde_value_set_release(set);
    sn_graph_free(g);
    return st;
}

/* ------------------------------------------------------------------ scales */
double sn_q_bound_of(const sn_quantizer *q, const sn_value *v)
{
    const sn_node *n = v->producer;
    float x = INFINITY;
    if (n && q->nodes[n->id].role == SN_Q_FOLDED && sn_q_is(n, "Clip") && n->n_in > 2 &&
        sn_q_floats(n->in[2].value))
        sn_tensor_read(n->in[2].value->fact.data, 0, 1, &x);
    return (double)x;
}

void sn_q_set_scale(const sn_quantizer *q, const sn_value *v)
{
    sn_q_value *d = &q->values[v->id];
    const double width = (double)d->high - (double)d->low, bound = sn_q_bound_of(q, v);
    float scale = (float)(width / 255.0);
    if (!(scale >= 0x1p-100f)) /* always 0: as of numbers up to 1, so that biases have fine steps */
        scale = 1.0f / 255.0f;
    /* What a Clip leaves must not be exceeded by the largest integer, or the Clip stays. */
    if (d->low >= 0 && (double)d->high <= bound)
        while (255.0 * (double)scale > bound)
            scale = nextafterf(scale, 0.0f);
    d->scale = scale;
    const double zero = rint(-(double)d->low / (double)scale);
    d->zero = (int32_t)fmin(fmax(zero, 0.0), 255.0) - (q->o.signed_activations ? 128 : 0);
}

static sonde_status keep(const calibration *c, const statistics *s)
{
    sn_q_value *d = &c->q->values[s->id];
    if (!s->count)
        return sn_fail(c->q->err, SONDE_RUNTIME,
                       "tensor '%.300s' has no elements on any sample, so its range is unknown",
                       s->name);
    if (s->low == 0 && s->high == 0 && c->q->g->values.data[s->id]->is_input)
        sn_log_write(&c->q->context->core.log, SN_LOG_WARN,
                     "input '%.300s' is 0 on every sample: its range is made up, and other numbers "
                     "may be cut off",
                     s->name);
    sn_q_choose_range(c->q->o.method, c->q->o.percentile, s->bins, s->low, s->high, &d->low,
                      &d->high);
    sn_q_set_scale(c->q, c->q->g->values.data[s->id]);
    d->means = s->sums;
    d->channels = s->channels;
    for (int64_t k = 0; d->means && k < d->channels; k++)
        d->means[k] /= (double)(s->rows ? s->rows : 1);
    return SONDE_OK;
}

static sonde_status collect(calibration *c)
{
    const sn_graph *g = c->q->g;
    const size_t most = g->values.n + 1;
    c->all = SN_NEW_N(&c->q->arena, statistics, most);
    c->names = SN_NEW_N(&c->q->arena, const char *, most);
    c->values = SN_NEW_N(&c->q->arena, sonde_value *, most);
    if (!c->all || !c->names || !c->values)
        return sn_fail_memory(c->q->err, most * sizeof *c->all);
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_q_value *d = &c->q->values[i];
        if ((d->bytes && d->scale_of == i) || d->wants_means)
            c->all[c->n++] = (statistics){.id = (uint32_t)i, .name = g->values.data[i]->name};
    }
    return SONDE_OK;
}

sonde_status sn_q_calibrate(sn_quantizer *q)
{
    calibration c = {.q = q, .passes = q->o.method == SONDE_CALIBRATION_MINMAX ? 1 : 2};
    if (!sonde_samples_count(q->samples))
        return sn_fail(q->err, SONDE_INVALID_ARGUMENT,
                       "static quantisation needs samples to calibrate on; give some, or quantise "
                       "dynamically or the weights alone");
    SN_TRY(collect(&c));
    if (!c.n)
        return SONDE_OK;
    sn_arena scratch;
    sn_arena_init(&scratch, &q->context->alloc);
    sonde_status st = measure_values(&c, &scratch);
    sn_arena_free(&scratch);
    if (st == SONDE_OK)
        st = sonde_session_create(q->prepared, NULL, &c.session, q->err);
    if (st == SONDE_OK)
        st = run_all(&c);
    sonde_session_release(c.session);
    for (size_t i = 0; i < c.n && st == SONDE_OK; i++)
        st = keep(&c, &c.all[i]);
    for (size_t i = 0; i < q->g->values.n && st == SONDE_OK; i++) {
        sn_q_value *d = &q->values[i];
        if (d->bytes && d->scale_of != i) {
            d->scale = q->values[d->scale_of].scale;
            d->zero = q->values[d->scale_of].zero;
        }
    }
    return st;
}
