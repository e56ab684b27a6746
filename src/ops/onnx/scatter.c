/* SPDX-License-Identifier: Apache-2.0 */
/* Scatter, ScatterElements, ScatterND: the input with elements or rows replaced, or combined by
 * add, mul, min, max. Indices are checked before they are used. */
#include <string.h>

#include "compute/scatter.h"
#include "ops/onnx/indexed.h"
#include "ops/shared/data_movement.h"

typedef struct scatter_params {
    int64_t axis;
    sn_scatter how;
} scatter_params;

static sonde_status prepare_how(sn_prep *p)
{
    static const char *const names[SN_SCATTER_COUNT] = {"none", "add", "mul", "min", "max"};
    scatter_params *r = p->params;
    const char *text;
    SN_TRY(sn_prep_int(p, "axis", 0, &r->axis));
    SN_TRY(sn_prep_string(p, "reduction", "none", &text));
    for (int i = 0; i < SN_SCATTER_COUNT; i++) {
        r->how = (sn_scatter)i;
        if (strcmp(text, names[i]) == 0)
            return SONDE_OK;
    }
    return sn_prep_fail(p, "reduction '%s' is unknown", text);
}

static sonde_status check_types(sn_infer *c, const sn_input_type *x, const sn_input_type *index,
                                const sn_input_type *updates)
{
    const scatter_params *r = c->params;
    if (index->dtype != SONDE_DTYPE_I64 && index->dtype != SONDE_DTYPE_I32 &&
        index->dtype != SONDE_DTYPE_UNDEFINED)
        return sn_infer_fail(c, "indices are %s, expected i32 or i64", sn_dtype_name(index->dtype));
    if (x->dtype != SONDE_DTYPE_UNDEFINED && updates->dtype != SONDE_DTYPE_UNDEFINED &&
        x->dtype != updates->dtype)
        return sn_infer_fail(c, "updates are %s, the input is %s", sn_dtype_name(updates->dtype),
                             sn_dtype_name(x->dtype));
    if (x->dtype != SONDE_DTYPE_UNDEFINED && !sn_scatter_supported(r->how, x->dtype))
        return sn_infer_fail(c, "this reduction is not defined for %s", sn_dtype_name(x->dtype));
    return SONDE_OK;
}

static sn_scatter_data data_of(const sn_step *s, const sn_frame *f)
{
    const scatter_params *p = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    return (sn_scatter_data){.how = p->how,
                             .dtype = x->dtype,
                             .count = sn_tensor_count(x),
                             .y = sn_out(s, f, 0)->data,
                             .x = x->data,
                             .updates = sn_in(s, f, 2)->data,
                             .index = sn_tensor_elems(sn_in(s, f, 1)),
                             .cpu_flags = f->ctx->cpu.flags};
}

/* ------------------------------------------------------------------ ScatterElements */
static sonde_status infer_scatter_elements(sn_infer *c)
{
    sn_input_type x, index, updates;
    int axis;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(sn_infer_input_type(c, 1, &index));
    SN_TRY(sn_infer_input_type(c, 2, &updates));
    SN_TRY(check_types(c, &x, &index, &updates));
    if (x.rank >= 0) {
        SN_TRY(sn_infer_axis(c, ((const scatter_params *)c->params)->axis, x.rank, false, &axis));
        if ((index.rank >= 0 && index.rank != x.rank) ||
            (updates.rank >= 0 && updates.rank != x.rank))
            return sn_infer_fail(c, "input, indices and updates differ in rank");
        for (int i = 0; index.rank >= 0 && i < x.rank; i++) {
            sn_dim d = index.dims[i], u = updates.rank >= 0 ? updates.dims[i] : SN_DIM_UNKNOWN;
            if (sn_dim_known(d) && sn_dim_known(u) && d != u)
                return sn_infer_fail(c, "dim %d of indices and updates differs", i);
            if (i != axis && sn_dim_known(d) && sn_dim_known(x.dims[i]) && d > x.dims[i])
                return sn_infer_fail(c, "dim %d of the indices is larger than the input's", i);
        }
    }
    return sn_infer_same(c, 0, 0);
}

static sonde_status run_scatter_elements(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0), *index = sn_in(s, f, 1);
    const sn_scatter_data d = data_of(s, f);
    sn_bad_index bad;
    int axis;
    if (!sn_axis_index(((const scatter_params *)s->params)->axis, x->rank, &axis))
        return sn_run_fail(s, f, "the axis is outside an input of rank %d", x->rank);
    const sn_indexed_axis g = sn_indexed_axis_of(x, index, axis);
    if (!sn_scatter_elements_run(&g, &d, &bad, f->pool))
        return sn_run_bad_index(s, f, bad);
    return sn_run_own_strings(s, f, 0);
}

#define SCATTER(NAME, SINCE, UNTIL, INFER, RUN)                                                    \
    {                                                                                              \
        SN_OP_HEAD(NAME, SINCE, UNTIL, 3, 3, 1, 1),                                                \
            .flags = SN_OP_INPLACE0, .params_size = sizeof(scatter_params),                        \
            .prepare = prepare_how, .infer = INFER, .run = RUN, .types = SN_ALL_TYPES              \
    }
const sn_op sn_op_scatter[] = {
    SCATTER("Scatter", 9, 0, infer_scatter_elements, run_scatter_elements), {.name = NULL}};
const sn_op sn_op_scatter_elements[] = {
    SCATTER("ScatterElements", 11, 0, infer_scatter_elements, run_scatter_elements),
    {.name = NULL}};

/* ------------------------------------------------------------------ ScatterND */
static sonde_status infer_scatter_nd(sn_infer *c)
{
    sn_input_type x, index, updates;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(sn_infer_input_type(c, 1, &index));
    SN_TRY(sn_infer_input_type(c, 2, &updates));
    SN_TRY(check_types(c, &x, &index, &updates));
    if (index.rank == 0)
        return sn_infer_fail(c, "indices are a scalar");
    sn_dim depth = index.rank > 0 ? index.dims[index.rank - 1] : SN_DIM_UNKNOWN;
    if (x.rank >= 0 && sn_dim_known(depth)) {
        if (depth < 1 || depth > x.rank)
            return sn_infer_fail(c, "index tuples of %lld do not fit an input of rank %d",
                                 (long long)depth, x.rank);
        int lead = index.rank - 1, rank = lead + x.rank - (int)depth;
        if (updates.rank >= 0 && updates.rank != rank)
            return sn_infer_fail(c, "updates have rank %d, expected %d", updates.rank, rank);
        for (int i = 0; i < updates.rank; i++) {
            sn_dim want = i < lead ? index.dims[i] : x.dims[(int)depth + i - lead];
            if (sn_dim_known(want) && sn_dim_known(updates.dims[i]) && want != updates.dims[i])
                return sn_infer_fail(c, "dim %d of the updates is %lld, expected %lld", i,
                                     (long long)updates.dims[i], (long long)want);
        }
    }
    return sn_infer_same(c, 0, 0);
}

static sonde_status run_scatter_nd(const sn_step *s, sn_frame *f)
{
    const sn_indexed_rows g = sn_indexed_rows_of(sn_in(s, f, 0), sn_in(s, f, 1), 0);
    const sn_scatter_data d = data_of(s, f);
    sn_bad_index bad;
    if (!sn_scatter_nd_run(&g, &d, &bad, f->pool))
        return sn_run_bad_index(s, f, bad);
    return sn_run_own_strings(s, f, 0);
}

const sn_op sn_op_scatter_nd[] = {SCATTER("ScatterND", 11, 0, infer_scatter_nd, run_scatter_nd),
                                  {.name = NULL}};
