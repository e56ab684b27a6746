/* SPDX-License-Identifier: Apache-2.0 */
/* Magnitude pruning: finds the weights, copies those that were selected, clears the smallest blocks
 * of the copies, and keeps a row of figures for each. */
#include "sonde/experimental/sparsify.h"

#include <math.h>
#include <stdio.h>

#include "shrink/edit.h"
#include "shrink/pattern.h"
#include "shrink/selection.h"

struct sonde_sparsified {
    sonde_context *context;
    sn_edit edit;
    SN_VEC(sonde_sparse_weight) rows;
    sonde_sparse_weight total;
};

/* One weight on its way. */
typedef struct pruned {
    const sn_weight *w;
    sonde_sparse_weight *row;
    sn_tensor *copy;
    sn_elements elements;
    sn_blocks blocks;
    sn_norm before, after;
} pruned;

typedef struct pruning {
    sonde_sparsified *r;
    const sonde_sparsify_options *o;
    sn_pattern pattern;
    double ratio;
    sn_selection selection;
    sn_weights weights;
    pruned *list; /* those to prune; the arena's */
    size_t n;
    sonde_error *err;
} pruning;

/* ---- options ---- */

static sonde_status read_options(pruning *p)
{
    const double ratio = p->o->ratio;
    SN_TRY(sn_pattern_parse(p->o->pattern, &p->pattern, p->err));
    if (!(ratio >= 0 && ratio <= 1))
        return sn_fail(p->err, SONDE_INVALID_ARGUMENT,
                       "the ratio is a share from 0 to 1, for example 0.9, not %g", ratio);
    const double fixed = (double)p->pattern.zeros / (double)p->pattern.ks;
    if (p->pattern.zeros && ratio > 0 && ratio != fixed)
        return sn_fail(p->err, SONDE_INVALID_ARGUMENT,
                       "pattern %s makes half of the weights zero: the ratio is %g, not %g",
                       p->o->pattern, fixed, ratio);
    p->ratio = p->pattern.zeros ? fixed : ratio;
    return SONDE_OK;
}

static sonde_status report(const pruning *p, double done)
{
    if (p->o->progress && p->o->progress(p->o->user, done))
        return sn_fail(p->err, SONDE_CANCELLED, "sparsifying was cancelled");
    return SONDE_OK;
}

/* ---- rows ---- */

static const char *shape_text(const sn_tensor *t, sn_arena *arena)
{
    char text[SN_MAX_RANK * 21 + 1] = "";
    size_t n = 0;
    for (int i = 0; i < t->rank; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%lld", i ? "x" : "",
                              (long long)t->dims[i]);
    return sn_arena_strdup(arena, text);
}

static const char *reader_names(const sn_weight *w, sn_arena *arena)
{
    size_t bytes = 1;
    for (size_t i = 0; i < w->n_readers; i++)
        bytes += strlen(sn_node_called(w->readers[i])) + 2;
    char *text = sn_arena_alloc(arena, bytes, 1), *end = text;
    for (size_t i = 0; text && i < w->n_readers; i++)
        end += snprintf(end, bytes - (size_t)(end - text), "%s%s", i ? ", " : "",
                        sn_node_called(w->readers[i]));
    return text;
}

/* Why it is not pruned; "" if it is, NULL without memory. */
static const char *reason(const pruning *p, const sn_weight *w, bool *selected)
{
    size_t n = 0;
    const sn_node *other = NULL;
    for (size_t i = 0; i < w->n_readers; i++)
        if (sn_selection_has(&p->selection, w->readers[i], w->name))
            n++;
        else
            other = w->readers[i];
    *selected = n > 0;
    if (!n)
        return "not selected";
    if (w->note)
        return w->note;
    if (other)
        return sn_arena_printf(&p->r->edit.arena, "'%.200s' reads it, too, and is not selected",
                               sn_node_called(other));
    if (w->depthwise && !p->selection.only.n)
        return "depthwise convolution";
    return "";
}

static sonde_status add_row(pruning *p, const sn_weight *w)
{
    sn_arena *arena = &p->r->edit.arena;
    bool selected = false;
    const char *skipped = reason(p, w, &selected);
    const sonde_sparse_weight row = {.struct_size = sizeof row,
                                     .node = reader_names(w, arena),
                                     .op_type = w->readers[0]->op_type,
                                     .weight = w->name,
                                     .shape = shape_text(w->data, arena),
                                     .pattern = sn_arena_strdup(arena, p->o->pattern),
                                     .dtype = sn_dtype_name(w->data->dtype),
                                     .elements = (uint64_t)sn_tensor_count(w->data),
                                     .norm_kept = 1,
                                     .skipped = skipped,
                                     .selected = selected};
    if (!row.node || !row.shape || !row.pattern || !skipped ||
        !sn_vec_push(&p->r->rows, &p->r->context->alloc, row))
        return sn_fail_memory(p->err, sizeof row);
    return SONDE_OK;
}

/* Says why nothing can be done, by the first weight that was asked for. */
static sonde_status fail_nothing(const pruning *p)
{
    for (size_t i = 0; i < p->r->rows.n; i++) {
        const sonde_sparse_weight *row = &p->r->rows.data[i];
        if (row->selected)
            return sn_fail(p->err, SONDE_UNSUPPORTED,
                           "no weight can be pruned; '%.200s' of '%.200s': %.300s", row->weight,
                           row->node, row->skipped);
    }
    if (p->r->rows.n)
        return sn_fail(p->err, SONDE_INVALID_ARGUMENT,
                       "none of the selected nodes has a weight to prune; the first node that has "
                       "one is '%.200s'",
                       p->r->rows.data[0].node);
    return sn_fail(p->err, SONDE_UNSUPPORTED,
                   "the model has no weights to prune: no constant input of MatMul, Gemm, Conv or "
                   "ConvTranspose");
}

static sonde_status make_rows(pruning *p)
{
    const size_t n = p->weights.list.n;
    for (size_t i = 0; i < n; i++)
        SN_TRY(add_row(p, &p->weights.list.data[i]));
    p->list = SN_NEW_N(&p->r->edit.arena, pruned, n + 1);
    if (!p->list)
        return sn_fail_memory(p->err, n * sizeof *p->list);
    for (size_t i = 0; i < n; i++)
        if (!p->r->rows.data[i].skipped[0])
            p->list[p->n++] = (pruned){.w = &p->weights.list.data[i], .row = &p->r->rows.data[i]};
    return p->n ? SONDE_OK : fail_nothing(p);
}

/* ---- pruning ---- */

static sonde_status prepare(pruning *p, pruned *one)
{
    sn_edit *e = &p->r->edit;
    SN_TRY(sn_edit_copy(e, one->w->data, &one->copy, p->err));
    sn_model_release(e->model->core, one->w->data); /* pages of a mapped file go back */
    SN_TRY(sn_elements_open(&one->elements, one->w, one->copy, &e->arena, p->err));
    sn_blocks_open(&one->blocks, &one->elements, &one->w->view, &p->pattern);
    one->before = sn_elements_norm(&one->elements);
    return SONDE_OK;
}

static int64_t blocks_to_clear(const pruning *p, int64_t blocks)
{
    return (int64_t)floor(p->ratio * (double)blocks + 0.5);
}

static sonde_status clear(const pruning *p, pruned *one)
{
    const sn_blocks *blocks = &one->blocks;
    if (!p->pattern.zeros)
        return sn_blocks_clear_smallest(&blocks, 1, blocks_to_clear(p, blocks->n),
                                        &p->r->context->alloc, p->err);
    sn_blocks_clear_within(blocks);
    return SONDE_OK;
}

static sonde_status clear_all(const pruning *p)
{
    int64_t blocks = 0;
    const sn_blocks **list = SN_NEW_N(&p->r->edit.arena, const sn_blocks *, p->n);
    if (!list)
        return sn_fail_memory(p->err, p->n * sizeof *list);
    for (size_t i = 0; i < p->n; i++) {
        list[i] = &p->list[i].blocks;
        blocks += p->list[i].blocks.n;
    }
    return sn_blocks_clear_smallest(list, p->n, blocks_to_clear(p, blocks), &p->r->context->alloc,
                                    p->err);
}

static double kept(double after, double before)
{
    return before > 0 ? after / before : before == 0 ? 1 : NAN;
}

static sonde_status finish(pruning *p, pruned *one)
{
    sonde_sparse_weight *row = one->row;
    one->after = sn_elements_norm(&one->elements);
    row->zeros_before = (uint64_t)one->before.zeros;
    row->zeros_after = (uint64_t)one->after.zeros;
    row->norm_kept = kept(one->after.norm, one->before.norm);
    return p->o->sparse_initializers ? sn_edit_save_sparse(&p->r->edit, one->copy, p->err)
                                     : SONDE_OK;
}

static sonde_status replace(pruning *p)
{
    sn_edit *e = &p->r->edit;
    const sn_tensor **from = SN_NEW_N(&e->arena, const sn_tensor *, p->n);
    const sn_tensor **to = SN_NEW_N(&e->arena, const sn_tensor *, p->n);
    if (!from || !to)
        return sn_fail_memory(p->err, p->n * sizeof *from);
    for (size_t i = 0; i < p->n; i++) {
        from[i] = p->list[i].w->data;
        to[i] = p->list[i].copy;
    }
    return sn_edit_replace(e, from, to, p->n, p->err);
}

static void add_up(pruning *p)
{
    sonde_sparse_weight *total = &p->r->total;
    double before = 0, after = 0;
    *total = (sonde_sparse_weight){.struct_size = sizeof *total,
                                   .node = "",
                                   .op_type = "",
                                   .weight = "",
                                   .shape = "",
                                   .dtype = "",
                                   .pattern = p->list[0].row->pattern,
                                   .skipped = "",
                                   .selected = 1};
    for (size_t i = 0; i < p->n; i++) {
        total->elements += p->list[i].row->elements;
        total->zeros_before += p->list[i].row->zeros_before;
        total->zeros_after += p->list[i].row->zeros_after;
        before = hypot(before, p->list[i].before.norm);
        after = hypot(after, p->list[i].after.norm);
    }
    total->norm_kept = kept(after, before);
}

static sonde_status prune(pruning *p)
{
    const bool global = p->o->global && !p->pattern.zeros;
    const double steps = (double)p->n * 2;
    for (size_t i = 0; i < p->n; i++) {
        SN_TRY(report(p, (double)i / steps));
        SN_TRY(prepare(p, &p->list[i]));
    }
    if (global)
        SN_TRY(clear_all(p));
    for (size_t i = 0; i < p->n; i++) {
        SN_TRY(report(p, (double)(p->n + i) / steps));
        if (!global)
            SN_TRY(clear(p, &p->list[i]));
        SN_TRY(finish(p, &p->list[i]));
    }
    SN_TRY(replace(p));
    add_up(p);
    return report(p, 1);
}

static sonde_status run(pruning *p)
{
    sn_edit *e = &p->r->edit;
    SN_TRY(sn_selection_make(&p->selection, e->graph, p->o->only, p->o->only_count, p->o->except,
                             p->o->except_count, &e->arena, p->err));
    SN_TRY(sn_weights_find(&p->weights, e->graph, &e->arena, p->err));
    SN_TRY(make_rows(p));
    return prune(p);
}

/* ---- the public functions ---- */

sonde_status sonde_sparsify(sonde_model *model, const sonde_sparsify_options *options,
                            sonde_sparsified **result, sonde_error *err)
{
    sonde_sparsify_options o;
    SN_REQUIRE(result, err);
    *result = NULL;
    SN_REQUIRE(model, err);
    SN_OPTIONS(o, options, err);
    if (o.only_count)
        SN_REQUIRE(o.only, err);
    if (o.except_count)
        SN_REQUIRE(o.except, err);
    o.pattern = o.pattern ? o.pattern : "4x1";
    pruning p = {.o = &o, .err = err};
    SN_TRY(read_options(&p));
    sonde_context *c = model->context;
    sonde_sparsified *r = sn_alloc_zero(&c->alloc, sizeof *r);
    if (!r)
        return sn_fail_memory(err, sizeof *r);
    r->context = sn_api_context_ref(c);
    p.r = r;
    sonde_status st = sn_edit_open(&r->edit, model, err);
    if (st == SONDE_OK)
        st = run(&p);
    sn_weights_free(&p.weights, &c->alloc);
    if (st == SONDE_OK)
        *result = r;
    else
        sonde_sparsified_release(r);
    return st;
}

void sonde_sparsified_release(sonde_sparsified *r)
{
    if (!r)
        return;
    sonde_context *c = r->context;
    sn_edit_close(&r->edit);
    sn_vec_free(&r->rows, &c->alloc);
    sn_free(&c->alloc, r, sizeof *r);
    sonde_context_release(c);
}

sonde_status sonde_sparsified_save(const sonde_sparsified *result, const char *path,
                                   const sonde_save_options *options, sonde_error *err)
{
    SN_REQUIRE(result, err);
    SN_REQUIRE(path, err);
    return sn_edit_save(&result->edit, path, options, err);
}

size_t sonde_sparsified_count(const sonde_sparsified *r)
{
    return r ? r->rows.n : 0;
}

sonde_status sonde_sparsified_weight(const sonde_sparsified *result, size_t index,
                                     sonde_sparse_weight *weight, sonde_error *err)
{
    SN_REQUIRE(result, err);
    SN_REQUIRE(weight, err);
    if (index >= result->rows.n)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "weight %zu of %zu", index, result->rows.n);
    return sn_api_copy_out(weight, &result->rows.data[index], sizeof *weight, err);
}

sonde_status sonde_sparsified_total(const sonde_sparsified *result, sonde_sparse_weight *weight,
                                    sonde_error *err)
{
    SN_REQUIRE(result, err);
    SN_REQUIRE(weight, err);
    return sn_api_copy_out(weight, &result->total, sizeof *weight, err);
}
