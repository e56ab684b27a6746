/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of the quantiser: the way from a model to a quantised one, and what can be
 * asked of the result. The result keeps the models it was made of, because constants are shared. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "shrink/quantizer.h"

enum { COMPARED = 64, MEASURED = 7 };

struct sonde_quantized {
    sn_quantizer q;
    sonde_model *made;
    sn_q_agreement agreement;
    size_t left;
    SN_VEC(sonde_quantized_row) rows;
    sonde_quantized_info info;
};

/* ------------------------------------------------------------------ rows */
static const char *shape_text(sn_arena *arena, const sn_tensor *t)
{
    const char *text = "";
    for (int i = 0; i < t->rank && text; i++)
        text = sn_arena_printf(arena, "%s%s%lld", text, i ? "x" : "", (long long)t->dims[i]);
    return text;
}

static sonde_status add_row(sonde_quantized *r, const sn_node *n)
{
    sn_quantizer *q = &r->q;
    const sn_q_node *d = &q->nodes[n->id];
    sn_q_product p;
    const bool weights = d->role == SN_Q_PRODUCT && !sn_q_product_of(n, &p);
    const bool done = d->role != SN_Q_FLOAT;
    const sonde_quantized_row row = {.node = n->name[0]              ? n->name
                                             : n->n_out && n->out[0] ? n->out[0]->name
                                                                     : "",
                                     .op_type = n->op_type,
                                     .made = !done     ? "float"
                                             : d->made ? d->made
                                                       : "int8",
                                     .why = !done        ? d->why
                                            : d->weights ? d->weights
                                                         : "",
                                     .weight_shape =
                                         weights ? shape_text(&q->arena, p.w->fact.data) : "",
                                     .bytes_before = d->bytes_before,
                                     .bytes_after = d->bytes_after,
                                     .weight_sqnr_db = weights ? d->sqnr_db : (double)NAN};
    if (!row.weight_shape || !sn_vec_push(&r->rows, &q->context->alloc, row))
        return sn_fail_memory(q->err, sizeof row);
    return SONDE_OK;
}

static bool is_product(const sn_node *n)
{
    return sn_q_is(n, "Conv") || sn_q_is(n, "ConvTranspose") || sn_q_is(n, "Gemm") ||
           sn_q_is(n, "MatMul");
}

static uint64_t constant_bytes(const sn_graph *g)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        if (v->fact.data && !v->producer && (v->n_uses || v->n_outputs))
            sum += v->fact.data->bytes;
    }
    return sum;
}

static sonde_status fill_result(sonde_quantized *r)
{
    const sn_quantizer *q = &r->q;
    sonde_quantized_info *info = &r->info;
    *info = (sonde_quantized_info){.weight_bytes_before = constant_bytes(q->g),
                                   .weight_bytes_after = constant_bytes(r->made->core->graph),
                                   .opset_before = q->opset_before,
                                   .opset_after = sn_model_opset(r->made->core, ""),
                                   .equalized = q->equalized,
                                   .samples = sonde_samples_count(q->samples),
                                   .sqnr_db = r->agreement.sqnr_db,
                                   .top1_agreement = r->agreement.top1,
                                   .goal_db = q->o.goal_db,
                                   .left_for_goal = r->left};
    info->goal_missed = q->o.goal_db > 0 && !(info->sqnr_db >= q->o.goal_db);
    for (const sn_node *n = q->g->first; n; n = n->next) {
        const bool done = q->nodes[n->id].role != SN_Q_FLOAT;
        SN_TRY(add_row(r, n));
        info->nodes++;
        info->nodes_quantized += done;
        info->products += is_product(n);
        info->products_quantized += is_product(n) && done;
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ the way */
static sonde_status check_options(sonde_quantize_options *o, sonde_error *err)
{
    const int bits = o->bits ? o->bits : 4, block = o->block_size ? o->block_size : 32;
    if ((int)o->kind < 0 || o->kind > SONDE_QUANTIZE_WEIGHTS || (int)o->method < 0 ||
        o->method > SONDE_CALIBRATION_MSE)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the kind or the method is not known");
    if (bits != 4 && bits != 8)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "weights have 4 or 8 bits, not %d", bits);
    if (block < 16 || block > 1 << 20 || (block & (block - 1)))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "a block has a power of two of weights, at least 16, not %d", block);
    if (o->percentile == 0)
        o->percentile = 99.999;
    if (!(o->percentile > 50 && o->percentile <= 100))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "the percentile is %g; it must be above 50 and at most 100", o->percentile);
    if (o->goal_db > 0 && o->kind != SONDE_QUANTIZE_STATIC)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "a goal is for static quantisation: the others have no layers to trade");
    for (size_t i = 0; i < o->except_count; i++)
        SN_REQUIRE(o->except && o->except[i], err);
    if (o->method == SONDE_CALIBRATION_DEFAULT)
        o->method = SONDE_CALIBRATION_MSE;
    return SONDE_OK;
}

static sonde_status check_any(const sn_quantizer *q)
{
    const char *why = NULL;
    for (const sn_node *n = q->g->first; n; n = n->next) {
        if (q->nodes[n->id].role == SN_Q_PRODUCT)
            return SONDE_OK;
        if (is_product(n) && !why)
            why = q->nodes[n->id].why;
    }
    return sn_fail(q->err, SONDE_UNSUPPORTED, "there is nothing to quantise: %s%s",
                   why ? "no Conv, ConvTranspose, Gemm or MatMul can be; of the first one: "
                       : "the main graph has no Conv, ConvTranspose, Gemm or MatMul",
                   why ? why : "");
}

static sonde_status quantize(sonde_quantized *r)
{
    sn_quantizer *q = &r->q;
    SN_TRY(sn_q_progress(q, "preparing", 0));
    SN_TRY(sn_q_expand_except(q));
    SN_TRY(sn_q_prepare(q));
    SN_TRY(sn_q_plan(q));
    SN_TRY(check_any(q));
    if (q->o.kind == SONDE_QUANTIZE_STATIC)
        SN_TRY(sn_q_calibrate(q));
    SN_TRY(sn_q_progress(q, "writing", 0));
    SN_TRY(q->o.kind == SONDE_QUANTIZE_STATIC    ? sn_q_write_static(q, &r->made)
           : q->o.kind == SONDE_QUANTIZE_DYNAMIC ? sn_q_write_dynamic(q, &r->made)
                                                 : sn_q_write_blocks(q, &r->made));
    SN_TRY(sn_q_compare(q, r->made, COMPARED, &r->agreement));
    SN_TRY(sn_q_reach_goal(q, &r->made, &r->agreement, &r->left));
    return fill_result(r);
}

sonde_status sonde_quantize(sonde_model *model, const sonde_samples *samples,
                            const sonde_quantize_options *options, sonde_quantized **result,
                            sonde_error *err)
{
    SN_REQUIRE(result, err);
    *result = NULL;
    SN_REQUIRE(model, err);
    sonde_quantize_options o;
    SN_OPTIONS(o, options, err);
    SN_TRY(check_options(&o, err));
    sonde_quantized *r = sn_alloc_zero(&model->context->alloc, sizeof *r);
    if (!r)
        return sn_fail_memory(err, sizeof *r);
    atomic_fetch_add_explicit(&model->refs, 1, memory_order_relaxed);
    r->q = (sn_quantizer){.context = sn_api_context_ref(model->context),
                          .source = model,
                          .samples = samples,
                          .o = o,
                          .err = err};
    sn_arena_init(&r->q.arena, &model->context->alloc);
    const sonde_status st = quantize(r);
    r->q.samples = NULL; /* the caller's */
    r->q.err = NULL;
    r->q.o.progress = NULL;
    if (st == SONDE_OK)
        *result = r;
    else
        sonde_quantized_release(r);
    return st;
}

void sonde_quantized_release(sonde_quantized *r)
{
    if (!r)
        return;
    sonde_context *c = r->q.context;
    sn_vec_free(&r->rows, &c->alloc);
    sonde_model_release(r->made);
    sonde_model_release(r->q.prepared);
    sonde_model_release(r->q.source);
    sn_arena_free(&r->q.arena);
    sn_free(&c->alloc, r, sizeof *r);
    sonde_context_release(c);
}

/* ------------------------------------------------------------------ the result */
sonde_status sonde_quantized_save(const sonde_quantized *result, const char *path,
                                  const sonde_save_options *options, sonde_error *err)
{
    SN_REQUIRE(result, err);
    SN_REQUIRE(path, err);
    return sn_api_save(result->made, result->made->core->graph, path, options, NULL,
                       result->q.source, err);
}

sonde_status sonde_quantized_info_get(const sonde_quantized *result, sonde_quantized_info *info,
                                      sonde_error *err)
{
    SN_REQUIRE(result, err);
    SN_REQUIRE(info, err);
    return sn_api_copy_out(info, &result->info, sizeof result->info, err);
}

size_t sonde_quantized_count(const sonde_quantized *result)
{
    return result ? result->rows.n : 0;
}

sonde_status sonde_quantized_row_get(const sonde_quantized *result, size_t index,
                                     sonde_quantized_row *row, sonde_error *err)
{
    SN_REQUIRE(result, err);
    SN_REQUIRE(row, err);
    if (index >= result->rows.n)
        return sn_fail(err, SONDE_NOT_FOUND, "there are %zu rows, no row %zu", result->rows.n,
                       index);
    return sn_api_copy_out(row, &result->rows.data[index], sizeof *row, err);
}

/* ------------------------------------------------------------------ speed */
static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static sonde_status time_one(sonde_session *s, const char *const *names, sonde_value *const *values,
                             size_t count, double *ms, sonde_error *err)
{
    const size_t n = sonde_session_output_count(s);
    sonde_context *c = s->model->context;
    sonde_value **out = sn_alloc_zero(&c->alloc, (n + 1) * sizeof *out);
    if (!out)
        return sn_fail_memory(err, n * sizeof *out);
    const uint64_t begin = sn_now_ns();
    const sonde_status st = sonde_session_run(s, NULL, names, values, count, NULL, out, n, err);
    *ms = (double)(sn_now_ns() - begin) / 1e6;
    for (size_t i = 0; i < n; i++)
        sonde_value_release(out[i]);
    sn_free(&c->alloc, out, (n + 1) * sizeof *out);
    return st;
}

sonde_status sonde_quantized_measure(const sonde_quantized *result, const char *const *names,
                                     sonde_value *const *values, size_t count,
                                     sonde_quantized_speed *speed, sonde_error *err)
{
    SN_REQUIRE(result, err);
    SN_REQUIRE(speed, err);
    if (count)
        SN_REQUIRE(values, err);
    double ms[2][MEASURED];
    sonde_session *s[2] = {NULL, NULL};
    sonde_status st = sonde_session_create(result->q.source, NULL, &s[0], err);
    if (st == SONDE_OK)
        st = sonde_session_create(result->made, NULL, &s[1], err);
    for (int k = 0; k < 2 && st == SONDE_OK; k++) /* binding and caches */
        st = time_one(s[k], names, values, count, &ms[k][0], err);
    for (int i = 0; i < MEASURED; i++)
        for (int k = 0; k < 2 && st == SONDE_OK; k++)
            st = time_one(s[k], names, values, count, &ms[k][i], err);
    sonde_session_release(s[0]);
    sonde_session_release(s[1]);
    SN_TRY(st);
    for (int k = 0; k < 2; k++)
        qsort(ms[k], MEASURED, sizeof(double), by_value);
    const sonde_quantized_speed own = {
        .before_ms = ms[0][MEASURED / 2], .after_ms = ms[1][MEASURED / 2], .runs = MEASURED};
    return sn_api_copy_out(speed, &own, sizeof own, err);
}
