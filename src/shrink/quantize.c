/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of the quantiser: the way from a model to a quantised one, and what can be
 * asked of the result. The result keeps the models it was made of, because constants are shared. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "shrink/find_weights.h"
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

static sonde_status add_row(sonde_quantized *r, const sn_node *n, const sn_q_node *d)
{
    sn_quantizer *q = &r->q;
    sn_q_product p;
    const bool weights = d->role == SN_Q_PRODUCT && !sn_q_product_of(n, &p);
    const bool done = d->role != SN_Q_FLOAT;
    const sonde_quantized_row row = {.node = sn_node_called(n),
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

/* Of all graphs; what several share counts once. */
static sonde_status constant_bytes(const sn_graph *g, sn_map *seen, uint64_t *sum, sonde_error *err)
{
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        const sn_tensor *t = v->producer ? sn_constant_of(v) : v->fact.data;
        if (!t || (!v->n_uses && !v->n_outputs) || sn_map_get_address(seen, t))
            continue;
        *sum += t->bytes;
        if (!sn_map_put_address(seen, t, seen, NULL))
            return sn_fail_memory(err, sizeof(sn_map_entry));
    }
    for (const sn_node *n = g->first; n; n = n->next) {
        const sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++)
            SN_TRY(constant_bytes(body, seen, sum, err)); /* depth is bounded by sn_graph_new */
    }
    return SONDE_OK;
}

static sonde_status count_bytes(const sn_quantizer *q, const sn_graph *g, uint64_t *sum)
{
    sn_map seen;
    sn_map_init(&seen, &q->context->alloc);
    const sonde_status st = constant_bytes(g, &seen, sum, q->err);
    sn_map_free(&seen);
    return st;
}

static sonde_status add_rows(sonde_quantized *r, const sn_q_scope *s, bool body)
{
    sonde_quantized_info *info = &r->info;
    for (const sn_node *n = s->g->first; n; n = n->next) {
        const sn_q_node *d = &s->nodes[n->id];
        const bool done = d->role != SN_Q_FLOAT, product = sn_q_is_product(n);
        SN_TRY(add_row(r, n, d));
        info->nodes++;
        info->nodes_quantized += done;
        info->products += product;
        info->products_quantized += product && done;
        info->body_products += product && body;
        info->body_products_quantized += product && body && done;
    }
    return SONDE_OK;
}

static sonde_status fill_result(sonde_quantized *r)
{
    const sn_quantizer *q = &r->q;
    sonde_quantized_info *info = &r->info;
    *info = (sonde_quantized_info){.opset_before = q->opset_before,
                                   .opset_after = sn_model_opset(r->made->core, ""),
                                   .equalized = q->equalized,
                                   .widened = q->widened,
                                   .samples = sonde_samples_count(q->samples),
                                   .sqnr_db = r->agreement.sqnr_db,
                                   .top1_agreement = r->agreement.top1,
                                   .goal_db = q->o.goal_db,
                                   .left_for_goal = r->left};
    info->goal_missed = q->o.goal_db > 0 && !(info->sqnr_db >= q->o.goal_db);
    SN_TRY(count_bytes(q, q->source->core->graph, &info->weight_bytes_before));
    SN_TRY(count_bytes(q, r->made->core->graph, &info->weight_bytes_after));
    for (size_t i = 0; i < q->scopes.n; i++)
        SN_TRY(add_rows(r, &q->scopes.data[i], i > 0));
    return SONDE_OK;
}

/* ------------------------------------------------------------------ the way */
static sonde_status check_numbers(const sonde_quantize_options *o, sonde_error *err)
{
    if (o->bits && o->bits != 4 && o->bits != 8)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "weights have 4 or 8 bits, not %d", o->bits);
    if (o->block_size &&
        (o->block_size < 16 || o->block_size > 1 << 20 || (o->block_size & (o->block_size - 1))))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "a block has a power of two of weights, from 16 to 1048576, not %d",
                       o->block_size);
    if (o->percentile != 0 && !(o->percentile > 50 && o->percentile <= 100))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "the percentile is %g; it must be above 50 and at most 100", o->percentile);
    if (!(o->goal_db >= 0 && isfinite(o->goal_db)))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "the goal is %g dB; it must be above 0, or 0 for none", o->goal_db);
    return SONDE_OK;
}

static sonde_status check_options(sonde_quantize_options *o, sonde_error *err)
{
    if ((int)o->kind < 0 || o->kind > SONDE_QUANTIZE_WEIGHTS || (int)o->method < 0 ||
        o->method > SONDE_CALIBRATION_MSE)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the kind or the method is not known");
    SN_TRY(check_numbers(o, err));
    if (o->percentile == 0)
        o->percentile = 99.999;
    if (o->goal_db > 0 && o->kind != SONDE_QUANTIZE_STATIC)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "a goal is for static quantisation: the others have no layers to trade");
    if (o->only_count)
        SN_REQUIRE(o->only, err);
    if (o->except_count)
        SN_REQUIRE(o->except, err);
    if (o->method == SONDE_CALIBRATION_DEFAULT)
        o->method = SONDE_CALIBRATION_MSE;
    return SONDE_OK;
}

static sonde_status check_any(const sn_quantizer *q)
{
    const sn_node *first = NULL;
    const char *why = NULL;
    char text[400];
    for (size_t i = 0; i < q->scopes.n; i++) {
        const sn_q_scope *s = &q->scopes.data[i];
        for (const sn_node *n = s->g->first; n; n = n->next) {
            if (s->nodes[n->id].role == SN_Q_PRODUCT)
                return SONDE_OK;
            if (sn_q_is_product(n) && !first) {
                first = n;
                why = s->nodes[n->id].why;
            }
        }
    }
    if (!first)
        return sn_fail(q->err, SONDE_UNSUPPORTED,
                       "there is nothing to quantise: the model has no Conv, ConvTranspose, Gemm "
                       "or MatMul");
    return sn_fail(q->err, SONDE_UNSUPPORTED,
                   "there is nothing to quantise: no Conv, ConvTranspose, Gemm or MatMul can be; "
                   "%s: %s",
                   sn_node_text(first, text, sizeof text), why);
}

static sonde_status quantize(sonde_quantized *r)
{
    sn_quantizer *q = &r->q;
    SN_TRY(sn_q_progress(q, "preparing", 0));
    SN_TRY(sn_selection_make(&q->selection, q->source->core->graph, q->o.only, q->o.only_count,
                             q->o.except, q->o.except_count, &q->arena, q->err));
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
    if (q->o.goal_db > 0 && isnan(r->agreement.sqnr_db))
        return sn_fail(q->err, SONDE_UNSUPPORTED,
                       "a goal in dB cannot be measured: no output of the model has floats");
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
    sn_vec_free(&r->q.scopes, &c->alloc);
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

static sonde_status time_one(const sn_quantizer *q, sonde_session *s, const char *const *names,
                             sonde_value *const *values, size_t count, double *ms, sonde_error *err)
{
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    o.cancel = q->o.cancel;
    const size_t n = sonde_session_output_count(s);
    sonde_context *c = s->model->context;
    sonde_value **out = sn_alloc_zero(&c->alloc, (n + 1) * sizeof *out);
    if (!out)
        return sn_fail_memory(err, n * sizeof *out);
    const uint64_t begin = sn_now_ns();
    const sonde_status st = sonde_session_run(s, &o, names, values, count, NULL, out, n, err);
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
        st = time_one(&result->q, s[k], names, values, count, &ms[k][0], err);
    for (int i = 0; i < MEASURED; i++)
        for (int k = 0; k < 2 && st == SONDE_OK; k++)
            st = time_one(&result->q, s[k], names, values, count, &ms[k][i], err);
    sonde_session_release(s[0]);
    sonde_session_release(s[1]);
    SN_TRY(st);
    for (int k = 0; k < 2; k++)
        qsort(ms[k], MEASURED, sizeof(double), by_value);
    const sonde_quantized_speed own = {
        .before_ms = ms[0][MEASURED / 2], .after_ms = ms[1][MEASURED / 2], .runs = MEASURED};
    return sn_api_copy_out(speed, &own, sizeof own, err);
}
