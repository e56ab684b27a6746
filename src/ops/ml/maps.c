/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of ai.onnx.ml: ZipMap makes a sequence of them, DictVectorizer and CastMap turn one into a
 * tensor. A map is a list of two tensors, keys and values. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/ml/shared.h"

/* ------------------------------------------------------------------ ZipMap */
typedef struct zip_params {
    sn_ml_labels labels;
} zip_params;

static sonde_status prepare_zip(sn_prep *p)
{
    zip_params *z = p->params;
    SN_TRY(sn_ml_labels_read(p, "classlabels_int64s", &z->labels));
    return z->labels.n ? SONDE_OK : sn_prep_fail(p, "there are no class labels");
}

static sonde_status infer_zip(sn_infer *c)
{
    const zip_params *z = c->params;
    sn_type *map = SN_NEW(c->arena, sn_type), *value = SN_NEW(c->arena, sn_type);
    if (!map || !value)
        return sn_fail_memory(c->err, sizeof *map);
    *value = (sn_type){.kind = SN_KIND_TENSOR, .dtype = SONDE_DTYPE_F32, .rank = -1};
    *map = (sn_type){.kind = SN_KIND_MAP,
                     .dtype = z->labels.strings ? SONDE_DTYPE_STRING : SONDE_DTYPE_I64,
                     .rank = -1,
                     .elem = value};
    c->out[0].type = (sn_type){.kind = SN_KIND_SEQUENCE, .rank = -1, .elem = map};
    return SONDE_OK;
}

/* Keys (shared by all maps) and one row of values become a map. */
static sonde_status push_map(sn_frame *f, sn_list *all, const sn_slot *keys, const float *row,
                             int64_t n)
{
    sn_slot values = {0}, map = {.kind = SN_KIND_MAP};
    sonde_status st = sn_slot_new_tensor(&values, SONDE_DTYPE_F32, &n, 1, f->alloc, f->err);
    if (st != SONDE_OK)
        return st;
    memcpy(values.t.data, row, sizeof(float) * (size_t)n);
    map.list = sn_list_new(f->alloc, 2);
    st = map.list ? SONDE_OK : sn_fail_memory(f->err, sizeof(sn_list));
    if (st == SONDE_OK)
        st = sn_list_push(map.list, keys, f->err);
    if (st == SONDE_OK)
        st = sn_list_push(map.list, &values, f->err);
    if (st == SONDE_OK)
        st = sn_list_push(all, &map, f->err);
    sn_slot_clear(&values);
    sn_slot_clear(&map);
    return st;
}

static sonde_status run_zip(const sn_step *s, sn_frame *f)
{
    const zip_params *z = s->params;
    const sn_slot *in = sn_in_slot(s, f, 0);
    const int64_t n = (int64_t)z->labels.n;
    int64_t rows, columns;
    if (in->kind != SN_KIND_TENSOR || in->t.dtype != SONDE_DTYPE_F32)
        return sn_run_fail(s, f, "the input must be a tensor of floats");
    const sn_type t = {.rank = in->t.rank, .dims = in->t.dims};
    if (!sn_ml_rows(&t, &rows, &columns) || columns != n)
        return sn_run_fail(s, f, "the input does not have %lld columns", (long long)n);
    sn_slot keys = {0};
    if (z->labels.strings) {
        SN_TRY(sn_slot_new_strings(&keys, &n, 1, z->labels.strings, f->alloc, f->err));
    } else {
        SN_TRY(sn_slot_new_tensor(&keys, SONDE_DTYPE_I64, &n, 1, f->alloc, f->err));
        memcpy(keys.t.data, z->labels.ints, sizeof(int64_t) * (size_t)n);
    }
    sn_list *all = sn_list_new(f->alloc, (size_t)rows);
    sonde_status st = all ? SONDE_OK : sn_fail_memory(f->err, (size_t)rows * sizeof(sn_slot));
    if (all)
        all->elem_kind = SN_KIND_MAP;
    for (int64_t r = 0; st == SONDE_OK && r < rows; r++)
        st = push_map(f, all, &keys, (const float *)in->t.data + r * n, n);
    sn_slot_clear(&keys);
    if (st != SONDE_OK) {
        sn_list_unref(all);
        return st;
    }
    sn_slot *out = sn_out_slot(s, f, 0);
    sn_slot_clear(out);
    *out = (sn_slot){.kind = SN_KIND_SEQUENCE, .list = all};
    return SONDE_OK;
}

const sn_op sn_op_ml_zip_map[] = {{SN_ML_HEAD("ZipMap", 1, 0, 1, 1, 1),
                                   .flags = SN_OP_NONTENSOR | SN_OP_NO_FOLD,
                                   .params_size = sizeof(zip_params), .prepare = prepare_zip,
                                   .infer = infer_zip, .run = run_zip, .types = "f32"},
                                  {.name = NULL}};

/* ------------------------------------------------------------------ reading a map */
static sonde_status read_map(const sn_step *s, sn_frame *f, const sn_tensor **keys,
                             const sn_tensor **values)
{
    const sn_slot *in = sn_in_slot(s, f, 0);
    if (in->kind != SN_KIND_MAP || !in->list || in->list->n != 2 ||
        in->list->items[0].kind != SN_KIND_TENSOR || in->list->items[1].kind != SN_KIND_TENSOR)
        return sn_run_fail(s, f, "the input is not a map to numbers or strings");
    *keys = &in->list->items[0].t;
    *values = &in->list->items[1].t;
    if (sn_tensor_count(*keys) != sn_tensor_count(*values))
        return sn_run_fail(s, f, "the map has %lld keys and %lld values",
                           (long long)sn_tensor_count(*keys), (long long)sn_tensor_count(*values));
    if ((*keys)->dtype != SONDE_DTYPE_STRING && (*keys)->dtype != SONDE_DTYPE_I64)
        return sn_run_fail(s, f, "keys of type %s are not supported",
                           sn_dtype_onnx_name((*keys)->dtype));
    return SONDE_OK;
}

/* ------------------------------------------------------------------ DictVectorizer */
typedef struct dict_params {
    sn_lookup map;
} dict_params;

static sonde_status prepare_dict(sn_prep *p)
{
    dict_params *d = p->params;
    const int64_t *ints;
    const sonde_string *strings;
    size_t n, m;
    SN_TRY(sn_prep_ints(p, "int64_vocabulary", &ints, &n));
    SN_TRY(sn_prep_strings(p, "string_vocabulary", &strings, &m));
    if ((n > 0) == (m > 0))
        return sn_prep_fail(p, "one vocabulary must be given");
    if (!sn_lookup_make(&d->map, strings, SONDE_DTYPE_I64, ints, n + m, p->arena))
        return sn_fail_memory(p->err, (n + m) * sizeof(sn_lookup_entry));
    return SONDE_OK;
}

static sonde_status infer_dict(sn_infer *c)
{
    const dict_params *d = c->params;
    const sn_type *x = &c->in[0]->type;
    const sn_dim dims[1] = {(sn_dim)d->map.n};
    const sn_dtype t = x->kind == SN_KIND_MAP && x->elem ? x->elem->dtype : SONDE_DTYPE_UNDEFINED;
    return sn_infer_tensor(c, 0, t, dims, 1);
}

static sonde_status run_dict(const sn_step *s, sn_frame *f)
{
    const dict_params *d = s->params;
    const sn_tensor *keys = NULL, *values = NULL;
    SN_TRY(read_map(s, f, &keys, &values));
    const int64_t n = sn_tensor_count(keys), width = (int64_t)d->map.n;
    if ((keys->dtype == SONDE_DTYPE_STRING) != d->map.strings)
        return sn_run_fail(s, f, "the keys have a different type than the vocabulary");
    sn_tensor *y;
    SN_TRY(sn_run_output(s, f, 0, values->dtype, &width, 1, &y));
    if (!y)
        return SONDE_OK;
    sn_lookup_place_run(&d->map, sn_tensor_elems(keys), n, sn_dtype_bytes(values->dtype), y->data,
                        values->data);
    return sn_run_own_strings(s, f, 0);
}

const sn_op sn_op_ml_dict_vectorizer[] = {
    {SN_ML_HEAD("DictVectorizer", 1, 0, 1, 1, 1), .flags = SN_OP_NONTENSOR,
     .params_size = sizeof(dict_params), .prepare = prepare_dict, .infer = infer_dict,
     .run = run_dict, .types = "map"},
    {.name = NULL}};

/* ------------------------------------------------------------------ CastMap */
typedef struct cast_params {
    sn_dtype to;
    bool sparse;
    int64_t size;
} cast_params;

static sonde_status prepare_cast(sn_prep *p)
{
    cast_params *c = p->params;
    const char *to, *form;
    SN_TRY(sn_prep_string(p, "cast_to", "TO_FLOAT", &to));
    SN_TRY(sn_prep_string(p, "map_form", "DENSE", &form));
    SN_TRY(sn_prep_int(p, "max_map", 1, &c->size));
    c->to = strcmp(to, "TO_FLOAT") == 0    ? SONDE_DTYPE_F32
            : strcmp(to, "TO_STRING") == 0 ? SONDE_DTYPE_STRING
            : strcmp(to, "TO_INT64") == 0  ? SONDE_DTYPE_I64
                                           : SONDE_DTYPE_UNDEFINED;
    c->sparse = strcmp(form, "SPARSE") == 0;
    if (!c->to || (!c->sparse && strcmp(form, "DENSE") != 0) || (c->sparse && c->size < 1))
        return sn_prep_fail(p, "cast_to is '%s' and map_form '%s'", to, form);
    return SONDE_OK;
}

static sonde_status infer_cast(sn_infer *c)
{
    const cast_params *p = c->params;
    const sn_dim dims[2] = {1, p->sparse ? p->size : SN_DIM_UNKNOWN};
    return sn_infer_tensor(c, 0, p->to, dims, 2);
}

typedef struct cast_entry {
    int64_t key, at;
    char text[48]; /* a number written out */
} cast_entry;

static int by_key(const void *a, const void *b)
{
    const cast_entry *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static double number_of(const sn_tensor *values, int64_t at)
{
    if (values->dtype != SONDE_DTYPE_STRING)
        return sn_elem_f64(values->dtype, values->data, at);
    const sonde_string *s = &((const sonde_string *)values->data)[at];
    char text[64] = {0};
    memcpy(text, s->data, s->size < sizeof text - 1 ? s->size : sizeof text - 1);
    return strtod(text, NULL);
}

/* Where entry i goes; false: outside of a sparse result. */
static bool place_of(const cast_params *c, const cast_entry *e, int64_t i, int64_t *place)
{
    *place = c->sparse ? e->key : i;
    return !c->sparse || (e->key >= 0 && e->key < c->size);
}

static sonde_status cast_text(const sn_step *s, sn_frame *f, const sn_tensor *values, cast_entry *e,
                              int64_t n, const int64_t *dims)
{
    const size_t bytes = sizeof(sonde_string) * (size_t)(dims[1] + 1);
    sonde_string *out = sn_alloc_zero(f->alloc, bytes);
    if (!out)
        return sn_fail_memory(f->err, bytes);
    for (int64_t i = 0; i < n; i++) {
        int64_t place;
        if (!place_of(s->params, &e[i], i, &place))
            continue;
        if (values->dtype == SONDE_DTYPE_STRING) {
            out[place] = ((const sonde_string *)values->data)[e[i].at];
        } else {
            snprintf(e[i].text, sizeof e[i].text, "%f", number_of(values, e[i].at));
            out[place] = (sonde_string){e[i].text, strlen(e[i].text)};
        }
    }
    sonde_status st = sn_run_strings(s, f, 0, dims, 2, out);
    sn_free(f->alloc, out, bytes);
    return st;
}

static sonde_status cast_numbers(const sn_step *s, sn_frame *f, const sn_tensor *values,
                                 const cast_entry *e, int64_t n, const int64_t *dims)
{
    const cast_params *c = s->params;
    sn_tensor *y;
    SN_TRY(sn_run_output(s, f, 0, c->to, dims, 2, &y));
    if (!y)
        return SONDE_OK;
    memset(y->data, 0, y->bytes);
    for (int64_t i = 0; i < n; i++) {
        int64_t place;
        if (place_of(c, &e[i], i, &place))
            sn_elem_set_f64(c->to, y->data, place, number_of(values, e[i].at));
    }
    return SONDE_OK;
}

static sonde_status run_cast(const sn_step *s, sn_frame *f)
{
    const cast_params *c = s->params;
    const sn_tensor *keys = NULL, *values = NULL;
    SN_TRY(read_map(s, f, &keys, &values));
    if (keys->dtype != SONDE_DTYPE_I64)
        return sn_run_fail(s, f, "the keys must be i64");
    const int64_t n = sn_tensor_count(keys), dims[2] = {1, c->sparse ? c->size : n};
    const size_t bytes = sizeof(cast_entry) * (size_t)(n + 1);
    cast_entry *e = sn_alloc_zero(f->alloc, bytes);
    if (!e)
        return sn_fail_memory(f->err, bytes);
    for (int64_t i = 0; i < n; i++) {
        e[i].key = ((const int64_t *)keys->data)[i];
        e[i].at = i;
    }
    qsort(e, (size_t)n, sizeof *e, by_key);
    sonde_status st = c->to == SONDE_DTYPE_STRING ? cast_text(s, f, values, e, n, dims)
                                                  : cast_numbers(s, f, values, e, n, dims);
    sn_free(f->alloc, e, bytes);
    return st;
}

const sn_op sn_op_ml_cast_map[] = {{SN_ML_HEAD("CastMap", 1, 0, 1, 1, 1), .flags = SN_OP_NONTENSOR,
                                    .params_size = sizeof(cast_params), .prepare = prepare_cast,
                                    .infer = infer_cast, .run = run_cast, .types = "map"},
                                   {.name = NULL}};
