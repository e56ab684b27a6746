/* SPDX-License-Identifier: Apache-2.0 */
/* Features of ai.onnx.ml, element by element or row by row: ArrayFeatureExtractor, Binarizer,
 * FeatureVectorizer, Imputer, Normalizer, OneHotEncoder, Scaler. */
#include <string.h>

#include "compute/features.h"
#include "ops/ml/shared.h"

static sonde_status bind_numbers(sn_bind *b)
{
    for (uint32_t i = 0; i < b->n_in; i++)
        if (b->in[i] && !sn_ml_number(b->in[i]->type.dtype))
            return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                                sn_dtype_onnx_name(b->in[i]->type.dtype));
    b->kernel = "rows";
    return SONDE_OK;
}

/* f32 of the input's shape. */
static sonde_status infer_floats(sn_infer *c)
{
    return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, c->in[0]->type.dims, c->in[0]->type.rank);
}

static sonde_status infer_same(sn_infer *c)
{
    return sn_infer_same(c, 0, 0);
}

/* ------------------------------------------------------------------ ArrayFeatureExtractor */
static sonde_status infer_extract(sn_infer *c)
{
    const sn_type *x = &c->in[0]->type, *at = &c->in[1]->type;
    sn_dim dims[SN_MAX_RANK], n = 1;
    for (int i = 0; i < at->rank; i++)
        n = sn_dim_mul(n, at->dims[i]);
    if (x->rank < 0)
        return sn_infer_tensor(c, 0, x->dtype, NULL, -1);
    if (x->rank == 0)
        return sn_infer_fail(c, "a scalar has no features");
    const int rank = x->rank == 1 ? 2 : x->rank;
    dims[0] = 1;
    if (x->rank > 1)
        memcpy(dims, x->dims, sizeof(sn_dim) * (size_t)(x->rank - 1));
    dims[rank - 1] = at->rank < 0 ? SN_DIM_UNKNOWN : n;
    return sn_infer_tensor(c, 0, x->dtype, dims, rank);
}

static sonde_status bind_extract(sn_bind *b)
{
    if (b->in[1]->type.dtype != SONDE_DTYPE_I64)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "indices must be i64");
    b->kernel = "gather_last";
    return SONDE_OK;
}

static sonde_status run_extract(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0), *at = sn_in(s, f, 1);
    sn_tensor *y = sn_out(s, f, 0);
    const int64_t features = x->dims[x->rank - 1], n = sn_tensor_count(at);
    const int64_t rows = features > 0 ? sn_tensor_count(x) / features : 0;
    int64_t bad;
    if (!sn_features_pick(y->data, x->data, sn_dtype_bytes(x->dtype), rows, features, at->data, n,
                          &bad))
        return sn_run_fail(s, f, "index %lld is outside of %lld features", (long long)bad,
                           (long long)features);
    return sn_run_own_strings(s, f, 0);
}

const sn_op sn_op_ml_array_feature_extractor[] = {
    {SN_ML_HEAD("ArrayFeatureExtractor", 1, 0, 2, 2, 1), .infer = infer_extract,
     .bind = bind_extract, .run = run_extract, .types = SN_ML_NUMBERS " str"},
    {.name = NULL}};

/* ------------------------------------------------------------------ Binarizer */
typedef struct binarizer_params {
    float threshold;
} binarizer_params;

static sonde_status prepare_binarizer(sn_prep *p)
{
    binarizer_params *b = p->params;
    return sn_prep_float(p, "threshold", 0.0f, &b->threshold);
}

static sonde_status run_binarizer(const sn_step *s, sn_frame *f)
{
    const binarizer_params *b = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    sn_features_binarize(x->dtype, sn_out(s, f, 0)->data, x->data, sn_tensor_count(x),
                         (double)b->threshold);
    return SONDE_OK;
}

const sn_op sn_op_ml_binarizer[] = {
    {SN_ML_HEAD("Binarizer", 1, 0, 1, 1, 1), .flags = SN_OP_INPLACE0,
     .params_size = sizeof(binarizer_params), .prepare = prepare_binarizer, .infer = infer_same,
     .bind = bind_numbers, .run = run_binarizer, .types = SN_ML_NUMBERS},
    {.name = NULL}};

/* ------------------------------------------------------------------ FeatureVectorizer */
typedef struct vectorizer_params {
    const int64_t *dims;
    size_t n;
    int64_t total;
} vectorizer_params;

static sonde_status prepare_vectorizer(sn_prep *p)
{
    vectorizer_params *v = p->params;
    SN_TRY(sn_prep_ints(p, "inputdimensions", &v->dims, &v->n));
    for (size_t i = 0; i < v->n; i++)
        if (v->dims[i] < 0 || !sn_i64_add(v->total, v->dims[i], &v->total))
            return sn_prep_fail(p, "attribute 'inputdimensions' has %lld", (long long)v->dims[i]);
    return SONDE_OK;
}

static sonde_status infer_vectorizer(sn_infer *c)
{
    const vectorizer_params *v = c->params;
    sn_dim dims[2];
    if (v->n != c->n_in)
        return sn_infer_fail(c, "there are %u inputs and %zu dimensions", c->n_in, v->n);
    SN_TRY(sn_ml_infer_rows(c, &dims[0]));
    dims[1] = v->total;
    return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, dims, 2);
}

static sonde_status run_vectorizer(const sn_step *s, sn_frame *f)
{
    const vectorizer_params *v = s->params;
    sn_tensor *y = sn_out(s, f, 0);
    int64_t first = 0;
    for (uint32_t i = 0; i < s->n_in; i++) {
        const sn_tensor *x = sn_has(s, i) ? sn_in(s, f, i) : NULL;
        if (!x || (x->rank != 1 && x->rank != 2) || (x->rank == 2 ? x->dims[0] : 1) != y->dims[0])
            return sn_run_fail(s, f, "input %u does not have %lld rows", i, (long long)y->dims[0]);
        sn_features_columns(y->data, v->total, first, v->dims[i], x->dtype, x->data, y->dims[0],
                            x->dims[x->rank - 1]);
        first += v->dims[i];
    }
    return SONDE_OK;
}

const sn_op sn_op_ml_feature_vectorizer[] = {
    {SN_ML_HEAD("FeatureVectorizer", 1, 0, 1, -1, 1), .params_size = sizeof(vectorizer_params),
     .prepare = prepare_vectorizer, .infer = infer_vectorizer, .bind = bind_numbers,
     .run = run_vectorizer, .types = SN_ML_NUMBERS},
    {.name = NULL}};

/* ------------------------------------------------------------------ Imputer */
static sonde_status prepare_imputer(sn_prep *p)
{
    sn_imputer *m = p->params;
    SN_TRY(sn_prep_floats(p, "imputed_value_floats", &m->floats, &m->n_floats));
    SN_TRY(sn_prep_ints(p, "imputed_value_int64s", &m->ints, &m->n_ints));
    SN_TRY(sn_prep_float(p, "replaced_value_float", 0.0f, &m->replaced_float));
    SN_TRY(sn_prep_int(p, "replaced_value_int64", 0, &m->replaced_int));
    if ((m->n_floats > 0) == (m->n_ints > 0))
        return sn_prep_fail(p, "one list of imputed values must be given");
    return SONDE_OK;
}

static sonde_status bind_imputer(sn_bind *b)
{
    const sn_imputer *m = b->params;
    const sn_type *x = &b->in[0]->type;
    SN_TRY(bind_numbers(b));
    const size_t n = sn_dtype_is_float(x->dtype) ? m->n_floats : m->n_ints;
    if (n == 0)
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "the imputed values have a different type than the input");
    if (n != 1 && (x->rank == 0 || (int64_t)n != x->dims[x->rank - 1]))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "there are %zu imputed values", n);
    return SONDE_OK;
}

static sonde_status run_imputer(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0);
    sn_features_impute(s->params, x->dtype, sn_out(s, f, 0)->data, x->data, sn_tensor_count(x));
    return SONDE_OK;
}

const sn_op sn_op_ml_imputer[] = {{SN_ML_HEAD("Imputer", 1, 0, 1, 1, 1), .flags = SN_OP_INPLACE0,
                                   .params_size = sizeof(sn_imputer), .prepare = prepare_imputer,
                                   .infer = infer_same, .bind = bind_imputer, .run = run_imputer,
                                   .types = SN_ML_NUMBERS},
                                  {.name = NULL}};

/* ------------------------------------------------------------------ Normalizer */
typedef struct normalizer_params {
    sn_features_norm kind;
} normalizer_params;

static sonde_status prepare_normalizer(sn_prep *p)
{
    normalizer_params *n = p->params;
    const char *norm;
    SN_TRY(sn_prep_string(p, "norm", "MAX", &norm));
    n->kind = strcmp(norm, "L2") == 0   ? SN_FEATURES_L2
              : strcmp(norm, "L1") == 0 ? SN_FEATURES_L1
                                        : SN_FEATURES_MAX;
    if (n->kind == SN_FEATURES_MAX && strcmp(norm, "MAX") != 0)
        return sn_prep_fail(p, "attribute 'norm' is '%s', expected MAX, L1 or L2", norm);
    return SONDE_OK;
}

static sonde_status run_normalizer(const sn_step *s, sn_frame *f)
{
    const normalizer_params *p = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    const int axis = x->rank > 1 ? 1 : 0;
    int64_t outer = 1, n = x->rank > 0 ? x->dims[axis] : 1, inner = 1;
    for (int i = 0; i < x->rank; i++) {
        outer *= i < axis ? x->dims[i] : 1;
        inner *= i > axis ? x->dims[i] : 1;
    }
    sn_features_normalize(p->kind, x->dtype, sn_out(s, f, 0)->data, x->data, outer, n, inner);
    return SONDE_OK;
}

const sn_op sn_op_ml_normalizer[] = {
    {SN_ML_HEAD("Normalizer", 1, 0, 1, 1, 1), .params_size = sizeof(normalizer_params),
     .prepare = prepare_normalizer, .infer = infer_floats, .bind = bind_numbers,
     .run = run_normalizer, .types = SN_ML_NUMBERS},
    {.name = NULL}};

/* ------------------------------------------------------------------ OneHotEncoder */
typedef struct onehot_params {
    sn_lookup map;
    bool zeros;
} onehot_params;

static sonde_status prepare_onehot(sn_prep *p)
{
    onehot_params *o = p->params;
    const int64_t *ints;
    const sonde_string *strings;
    size_t n, m;
    int64_t zeros;
    SN_TRY(sn_prep_ints(p, "cats_int64s", &ints, &n));
    SN_TRY(sn_prep_strings(p, "cats_strings", &strings, &m));
    SN_TRY(sn_prep_int(p, "zeros", 1, &zeros));
    o->zeros = zeros != 0;
    if ((n > 0) == (m > 0))
        return sn_prep_fail(p, "one list of categories must be given");
    if (!sn_lookup_make(&o->map, strings, SONDE_DTYPE_I64, ints, n + m, p->arena))
        return sn_fail_memory(p->err, (n + m) * sizeof(sn_lookup_entry));
    return SONDE_OK;
}

static sonde_status infer_onehot(sn_infer *c)
{
    const onehot_params *o = c->params;
    const sn_type *x = &c->in[0]->type;
    sn_dim dims[SN_MAX_RANK];
    if (x->rank < 0)
        return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, NULL, -1);
    if (x->rank >= SN_MAX_RANK)
        return sn_infer_fail(c, "the input has rank %d", x->rank);
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    dims[x->rank] = (sn_dim)o->map.n;
    return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, dims, x->rank + 1);
}

static sonde_status bind_onehot(sn_bind *b)
{
    const onehot_params *o = b->params;
    const bool text = b->in[0]->type.dtype == SONDE_DTYPE_STRING;
    if (text != o->map.strings || (!text && !sn_ml_number(b->in[0]->type.dtype)))
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "the input is %s, but the categories have a different type",
                            sn_dtype_onnx_name(b->in[0]->type.dtype));
    b->kernel = text ? "lookup_text" : "lookup_number";
    return SONDE_OK;
}

static sonde_status run_onehot(const sn_step *s, sn_frame *f)
{
    const onehot_params *o = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    const int64_t bad = sn_lookup_one_hot_run(&o->map, sn_tensor_elems(x), sn_tensor_count(x),
                                              o->zeros, sn_out(s, f, 0)->data);
    if (bad >= 0)
        return sn_run_fail(s, f, "element %lld is not one of the categories", (long long)bad);
    return SONDE_OK;
}

const sn_op sn_op_ml_one_hot_encoder[] = {
    {SN_ML_HEAD("OneHotEncoder", 1, 0, 1, 1, 1), .params_size = sizeof(onehot_params),
     .prepare = prepare_onehot, .infer = infer_onehot, .bind = bind_onehot, .run = run_onehot,
     .types = SN_ML_NUMBERS " str"},
    {.name = NULL}};

/* ------------------------------------------------------------------ Scaler */
static sonde_status prepare_scaler(sn_prep *p)
{
    sn_scaler *c = p->params;
    SN_TRY(sn_prep_floats(p, "scale", &c->scale, &c->n_scale));
    SN_TRY(sn_prep_floats(p, "offset", &c->offset, &c->n_offset));
    if (c->n_scale == 0 || c->n_offset == 0)
        return sn_prep_fail(p, "attributes 'scale' and 'offset' are required");
    return SONDE_OK;
}

static sonde_status bind_scaler(sn_bind *b)
{
    const sn_scaler *c = b->params;
    const sn_type *x = &b->in[0]->type;
    const int64_t last = x->rank > 0 ? x->dims[x->rank - 1] : 1;
    if ((c->n_scale != 1 && (int64_t)c->n_scale != last) ||
        (c->n_offset != 1 && (int64_t)c->n_offset != last))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "scale and offset do not fit %lld features",
                            (long long)last);
    return bind_numbers(b);
}

static sonde_status run_scaler(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0);
    sn_features_scale(s->params, x->dtype, sn_out(s, f, 0)->data, x->data, sn_tensor_count(x));
    return SONDE_OK;
}

const sn_op sn_op_ml_scaler[] = {{SN_ML_HEAD("Scaler", 1, 0, 1, 1, 1),
                                  .params_size = sizeof(sn_scaler), .prepare = prepare_scaler,
                                  .infer = infer_floats, .bind = bind_scaler, .run = run_scaler,
                                  .types = SN_ML_NUMBERS},
                                 {.name = NULL}};
