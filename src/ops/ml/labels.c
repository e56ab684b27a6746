/* SPDX-License-Identifier: Apache-2.0 */
/* CategoryMapper and LabelEncoder: each element is looked up among keys and replaced by the value
 * that belongs to it. The old forms map both ways, by the type of the input. */
#include <stdio.h>
#include <string.h>

#include "ops/ml/shared.h"

/* A list of keys or values of one type. */
typedef struct label_list {
    sn_dtype dtype;   /* UNDEFINED: not given */
    const void *data; /* elements of dtype; strings: sonde_string */
    size_t n;
} label_list;

typedef struct label_value {
    sonde_string text;
    union {
        int64_t i64;
        int32_t i32;
        int16_t i16;
        float f32;
        double f64;
    } number;
} label_value;

typedef struct label_direction {
    label_list keys, values;
    sn_lookup map;
    label_value missing;
} label_direction;

typedef struct label_params {
    label_direction way[2];
    int n;
} label_params;

static sonde_status finish(sn_prep *p, label_direction *d)
{
    if (d->keys.n != d->values.n)
        return sn_prep_fail(p, "there are %zu keys and %zu values", d->keys.n, d->values.n);
    const bool text = d->keys.dtype == SONDE_DTYPE_STRING;
    if (!sn_lookup_make(&d->map, text ? d->keys.data : NULL, d->keys.dtype, d->keys.data, d->keys.n,
                        p->arena))
        return sn_fail_memory(p->err, d->keys.n * sizeof(sn_lookup_entry));
    return SONDE_OK;
}

static sonde_status default_text(sn_prep *p, sonde_string *out)
{
    const char *text;
    SN_TRY(sn_prep_string(p, "default_string", "_Unused", &text));
    *out = (sonde_string){text, strlen(text)};
    return SONDE_OK;
}

/* Integers and strings, both ways. */
static sonde_status both_ways(sn_prep *p, const int64_t *ints, const sonde_string *strings,
                              size_t n)
{
    label_params *l = p->params;
    const label_list a = {SONDE_DTYPE_I64, ints, n}, b = {SONDE_DTYPE_STRING, strings, n};
    l->n = 2;
    l->way[0] = (label_direction){.keys = a, .values = b};
    l->way[1] = (label_direction){.keys = b, .values = a};
    SN_TRY(default_text(p, &l->way[0].missing.text));
    SN_TRY(sn_prep_int(p, "default_int64", -1, &l->way[1].missing.number.i64));
    SN_TRY(finish(p, &l->way[0]));
    return finish(p, &l->way[1]);
}

static sonde_status prepare_category(sn_prep *p)
{
    const int64_t *ints;
    const sonde_string *strings;
    size_t n, m;
    SN_TRY(sn_prep_ints(p, "cats_int64s", &ints, &n));
    SN_TRY(sn_prep_strings(p, "cats_strings", &strings, &m));
    if (n != m || n == 0)
        return sn_prep_fail(p, "there are %zu integers and %zu strings", n, m);
    return both_ways(p, ints, strings, n);
}

static sonde_status prepare_encoder_1(sn_prep *p)
{
    const sonde_string *strings;
    size_t n;
    SN_TRY(sn_prep_strings(p, "classes_strings", &strings, &n));
    int64_t *ints = SN_NEW_N(p->arena, int64_t, n ? n : 1);
    if (!ints)
        return sn_fail_memory(p->err, n * sizeof *ints);
    if (n == 0)
        return sn_prep_fail(p, "attribute 'classes_strings' is missing");
    for (size_t i = 0; i < n; i++)
        ints[i] = (int64_t)i;
    return both_ways(p, ints, strings, n);
}

/* keys_* or values_*: the one list that is given. */
static sonde_status read_list(sn_prep *p, const char *what, label_list *l)
{
    char name[32];
    const int64_t *ints;
    const float *floats;
    const sonde_string *strings;
    const sn_tensor *t;
    size_t n;
    snprintf(name, sizeof name, "%s_int64s", what);
    SN_TRY(sn_prep_ints(p, name, &ints, &n));
    if (n)
        *l = (label_list){SONDE_DTYPE_I64, ints, n};
    snprintf(name, sizeof name, "%s_floats", what);
    SN_TRY(sn_prep_floats(p, name, &floats, &n));
    if (n)
        *l = (label_list){SONDE_DTYPE_F32, floats, n};
    snprintf(name, sizeof name, "%s_strings", what);
    SN_TRY(sn_prep_strings(p, name, &strings, &n));
    if (n)
        *l = (label_list){SONDE_DTYPE_STRING, strings, n};
    snprintf(name, sizeof name, "%s_tensor", what);
    SN_TRY(sn_ml_tensor(p, name, &t));
    if (t)
        *l = (label_list){t->dtype, t->data, (size_t)sn_tensor_count(t)};
    if (l->dtype == SONDE_DTYPE_UNDEFINED)
        return sn_prep_fail(p, "no %s are given", what);
    if (l->dtype != SONDE_DTYPE_STRING && l->dtype != SONDE_DTYPE_I16 && !sn_ml_number(l->dtype))
        return sn_prep_fail(p, "%s of type %s are not supported", what,
                            sn_dtype_onnx_name(l->dtype));
    return SONDE_OK;
}

static sonde_status prepare_encoder(sn_prep *p)
{
    label_params *l = p->params;
    label_direction *d = &l->way[0];
    const sn_tensor *missing;
    int64_t integer;
    float real;
    l->n = 1;
    SN_TRY(read_list(p, "keys", &d->keys));
    SN_TRY(read_list(p, "values", &d->values));
    SN_TRY(default_text(p, &d->missing.text));
    SN_TRY(sn_prep_int(p, "default_int64", -1, &integer));
    SN_TRY(sn_prep_float(p, "default_float", -0.0f, &real));
    SN_TRY(sn_ml_tensor(p, "default_tensor", &missing));
    const sn_dtype t = d->values.dtype;
    if (missing && (missing->dtype != t || sn_tensor_count(missing) != 1))
        return sn_prep_fail(p, "attribute 'default_tensor' does not fit the values");
    if (missing && t == SONDE_DTYPE_STRING)
        d->missing.text = *(const sonde_string *)missing->data;
    else if (missing)
        memcpy(&d->missing.number, missing->data, sn_dtype_bytes(t));
    else if (t == SONDE_DTYPE_I64)
        d->missing.number.i64 = integer;
    else if (t != SONDE_DTYPE_STRING)
        sn_elem_set_f64(t, &d->missing.number, 0,
                        sn_dtype_is_float(t) ? (double)real : (double)integer);
    return finish(p, d);
}

static const label_direction *direction(const label_params *l, sn_dtype t)
{
    for (int i = 0; i < l->n; i++)
        if (l->way[i].keys.dtype == t)
            return &l->way[i];
    return NULL;
}

static sonde_status infer_labels(sn_infer *c)
{
    const label_params *l = c->params;
    const sn_type *x = &c->in[0]->type;
    const label_direction *d = direction(l, x->dtype);
    if (!d && x->dtype != SONDE_DTYPE_UNDEFINED)
        return sn_infer_fail(c, "the input is %s, but the keys have a different type",
                             sn_dtype_onnx_name(x->dtype));
    return sn_infer_tensor(c, 0, d ? d->values.dtype : SONDE_DTYPE_UNDEFINED, x->dims, x->rank);
}

static sonde_status bind_labels(sn_bind *b)
{
    const label_params *l = b->params;
    const label_direction *d = direction(l, b->in[0]->type.dtype);
    sn_piece *strings = SN_NEW(b->arena, sn_piece);
    int64_t n = 0;
    if (!strings)
        return sn_fail_memory(b->err, sizeof *strings);
    if (!d)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the input and the keys have different types");
    if (!sn_type_count(&b->in[0]->type, &n))
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    if (d->values.dtype == SONDE_DTYPE_STRING)
        *strings = sn_carve(&b->workspace, n, sizeof(sonde_string));
    b->bound = strings;
    b->kernel = d->map.strings ? "lookup_text" : "lookup_number";
    return SONDE_OK;
}

static sonde_status run_labels(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0);
    const label_direction *d = direction(s->params, x->dtype);
    const bool text = d->values.dtype == SONDE_DTYPE_STRING;
    const int64_t n = sn_tensor_count(x);
    sonde_string *strings = sn_piece_ptr(f, *(const sn_piece *)s->bound);
    const sn_lookup_values values = {.elem_bytes = sn_dtype_bytes(d->values.dtype),
                                     .values = d->values.data,
                                     .missing = text ? (const void *)&d->missing.text
                                                     : &d->missing.number};
    sn_lookup_values_run(&d->map, sn_tensor_elems(x), n, &values,
                         text ? strings : sn_out(s, f, 0)->data);
    return text ? sn_run_strings(s, f, 0, x->dims, x->rank, strings) : SONDE_OK;
}

#define LABELS(NAME, SINCE, UNTIL, PREPARE)                                                        \
    {                                                                                              \
        SN_ML_HEAD(NAME, SINCE, UNTIL, 1, 1, 1),                                                   \
            .params_size = sizeof(label_params), .prepare = PREPARE, .infer = infer_labels,        \
            .bind = bind_labels, .run = run_labels, .types = "str f32 f64 i64 i32 i16"             \
    }
const sn_op sn_op_ml_category_mapper[] = {LABELS("CategoryMapper", 1, 0, prepare_category),
                                          {.name = NULL}};
const sn_op sn_op_ml_label_encoder[] = {LABELS("LabelEncoder", 1, 1, prepare_encoder_1),
                                        LABELS("LabelEncoder", 2, 0, prepare_encoder),
                                        {.name = NULL}};
