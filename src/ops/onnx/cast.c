/* SPDX-License-Identifier: Apache-2.0 */
/* Cast and CastLike: every element type to every other, strings included. */
#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/cast.h"
#include "ops/shared/elementwise.h"

typedef struct cast_params {
    sn_dtype to; /* UNDEFINED: the type of input 1 */
    sn_rounding how;
} cast_params;

typedef struct cast_bound {
    sn_dtype to;
    size_t n;
    const int64_t *dims;
    int rank;
} cast_bound;

static sonde_status prepare_how(sn_prep *p)
{
    cast_params *c = p->params;
    int64_t saturate;
    const char *mode;
    SN_TRY(sn_prep_int(p, "saturate", 1, &saturate));
    SN_TRY(sn_prep_string(p, "round_mode", "up", &mode));
    c->how.saturate = saturate != 0;
    if (strcmp(mode, "up") != 0 && strcmp(mode, "down") != 0 && strcmp(mode, "nearest") != 0)
        return sn_prep_fail(p, "attribute 'round_mode' is '%s', expected up, down or nearest",
                            mode);
    c->how.e8m0 = mode[0] == 'u' ? 0 : mode[0] == 'd' ? 1 : 2;
    return SONDE_OK;
}

static sonde_status prepare_cast(sn_prep *p)
{
    cast_params *c = p->params;
    int64_t to;
    char text[40];
    SN_TRY(sn_prep_int(p, "to", 0, &to));
    if (!sn_dtype_valid(to))
        return sn_prep_fail(p,
                            "attribute 'to' is %s, which is not a dtype that this version supports",
                            sn_dtype_number_text(to, text));
    c->to = (sn_dtype)to;
    return prepare_how(p);
}

static sn_dim int_value(int op, sn_dim a, sn_dim b)
{
    (void)b;
    if (op == SONDE_DTYPE_BOOL)
        return sn_dim_known(a) ? a != 0 : SN_DIM_UNKNOWN;
    return a;
}

static sonde_status infer_cast(sn_infer *c)
{
    const cast_params *p = c->params;
    const sn_type *t = &c->in[0]->type;
    sn_dtype to = p->to ? p->to : c->in[1]->type.dtype;
    SN_TRY(sn_infer_tensor(c, 0, to, t->dims, t->rank));
    return sn_infer_ints_1(c, int_value, (int)to);
}

/* What was f16 may go on as that, although it is called f32: then there is nothing to do. */
static uint32_t in_half(const sn_node *node, const void *params, sn_dtype half, uint32_t cpu_flags)
{
    const sn_value *x = node->in[0].value;
    (void)params;
    (void)cpu_flags;
    return x && x->fact.type.dtype == half && half == SONDE_DTYPE_F16 ? SN_HALF_OUT : 0;
}

static sonde_status bind_cast(sn_bind *b)
{
    cast_bound *k = SN_NEW(b->arena, cast_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    const sn_type *x = &b->in[0]->type, *y = &b->out[0].type;
    k->to = b->out[0].form.dtype ? b->out[0].form.dtype : y->dtype;
    b->view = b->out[0].form.dtype && x->dtype == b->out[0].form.dtype;
    k->n = sn_fact_elems(&b->out[0]);
    k->dims = y->dims;
    k->rank = y->rank;
    if ((!sn_cast_supported(x->dtype) && x->dtype != SONDE_DTYPE_STRING) ||
        (!sn_cast_supported(k->to) && k->to != SONDE_DTYPE_STRING))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "%s to %s is not supported",
                            sn_dtype_onnx_name(x->dtype), sn_dtype_onnx_name(k->to));
    b->bound = k;
    b->kernel = "cast";
    return SONDE_OK;
}

/* ------------------------------------------------------------------ strings to numbers */
/* Reads a whole string as a number: "1e-5", "-INF", "NaN", "42". Integers keep all 64 bits. */
static bool parse(const sonde_string *s, locale_t c_locale, double *d, int64_t *i, bool *is_int)
{
    char text[128];
    if (s->size == 0 || s->size >= sizeof(text))
        return false;
    memcpy(text, s->data, s->size);
    text[s->size] = 0;
    char *end;
    *i = (int64_t)strtoll(text, &end, 10);
    *is_int = *end == 0;
    *d = strtod_l(text, &end, c_locale);
    while (isspace((unsigned char)*end))
        end++;
    return *end == 0 && !memchr(text, 0, s->size);
}

static sonde_status from_strings(const sn_step *s, sn_frame *f, const cast_bound *k)
{
    const cast_params *p = s->params;
    const sonde_string *x = sn_in(s, f, 0)->data;
    sn_tensor *y = sn_out(s, f, 0);
    size_t each = sn_dtype_bytes(k->to);
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale)
        return sn_fail_memory(f->err, 0);
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < k->n && st == SONDE_OK; i++) {
        double d;
        int64_t v;
        bool is_int;
        uint8_t *at = (uint8_t *)y->data + i * each;
        if (!parse(&x[i], c_locale, &d, &v, &is_int))
            st = sn_run_fail(s, f, "string %zu, '%.*s', is not a number", i,
                             (int)(x[i].size < 40 ? x[i].size : 40), x[i].data);
        else if (is_int && sn_dtype_is_int(k->to))
            sn_cast_run(f->ctx->cpu.flags, k->to, at, SONDE_DTYPE_I64, &v, 1, p->how, NULL);
        else
            sn_cast_run(f->ctx->cpu.flags, k->to, at, SONDE_DTYPE_F64, &d, 1, p->how, NULL);
    }
    freelocale(c_locale);
    return st;
}

/* ------------------------------------------------------------------ numbers to strings */
enum { TEXT = 40 };

/* The shortest decimal that reads back as the same number. */
static size_t float_text(char *out, double d, bool single)
{
    if (isnan(d))
        return (size_t)snprintf(out, TEXT, "NaN");
    if (isinf(d))
        return (size_t)snprintf(out, TEXT, d < 0 ? "-INF" : "INF");
    int most = single ? 9 : 17, w = 0;
    for (int digits = 1; digits <= most; digits++) {
        w = snprintf(out, TEXT, "%.*g", digits, d);
        if (single ? strtof(out, NULL) == (float)d : strtod(out, NULL) == d)
            break;
    }
    for (char *c = out; *c; c++) /* whatever the locale's decimal point is */
        if (*c == ',')
            *c = '.';
    return (size_t)w;
}

static size_t number_text(char *out, sn_dtype t, const void *x, size_t i)
{
    union {
        int64_t i;
        uint64_t u;
        double f;
        uint8_t b;
    } v = {0};
    const uint8_t *at = (const uint8_t *)x + i * sn_dtype_bytes(t);
    if (t == SONDE_DTYPE_BOOL)
        return (size_t)snprintf(out, TEXT, "%d", *at != 0);
    if (sn_dtype_is_float(t)) {
        sn_cast_run(0, SONDE_DTYPE_F64, &v, t, at, 1, (sn_rounding){0}, NULL);
        return float_text(out, v.f, t != SONDE_DTYPE_F64);
    }
    if (t == SONDE_DTYPE_U64) {
        memcpy(&v.u, at, sizeof(v.u));
        return (size_t)snprintf(out, TEXT, "%llu", (unsigned long long)v.u);
    }
    sn_cast_run(0, SONDE_DTYPE_I64, &v, t, at, 1, (sn_rounding){0}, NULL);
    return (size_t)snprintf(out, TEXT, "%lld", (long long)v.i);
}

static sonde_status to_strings(const sn_step *s, sn_frame *f, const cast_bound *k)
{
    const sn_tensor *x = sn_in(s, f, 0);
    if (x->dtype == SONDE_DTYPE_STRING)
        return sn_run_strings(s, f, 0, k->dims, k->rank, x->data);
    size_t bytes;
    if (!sn_size_mul(k->n, TEXT + sizeof(sonde_string), &bytes))
        return sn_fail_memory(f->err, SIZE_MAX);
    sonde_string *elems = sn_alloc(f->alloc, bytes);
    if (!elems)
        return sn_fail_memory(f->err, bytes);
    char *text = (char *)(elems + k->n);
    for (size_t i = 0; i < k->n; i++, text += TEXT) {
        elems[i].data = text;
        elems[i].size = number_text(text, x->dtype, x->data, i);
    }
    sonde_status st = sn_run_strings(s, f, 0, k->dims, k->rank, elems);
    sn_free(f->alloc, elems, bytes);
    return st;
}

static sonde_status run_cast(const sn_step *s, sn_frame *f)
{
    const cast_bound *k = s->bound;
    const cast_params *p = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    if (k->to == SONDE_DTYPE_STRING)
        return to_strings(s, f, k);
    if (x->dtype == SONDE_DTYPE_STRING)
        return from_strings(s, f, k);
    sn_cast_run(f->ctx->cpu.flags, k->to, sn_out(s, f, 0)->data, x->dtype, x->data, k->n, p->how,
                f->pool);
    return SONDE_OK;
}

#define ALL_TYPES                                                                                  \
    "bool " SN_INTS " " SN_FLOATS                                                                  \
    " str f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0 f4e2m1 u4 i4 u2 i2"
const sn_op sn_op_cast[] = {{SN_ELT_HEAD("Cast", 6, 0, 1, 1), .flags = SN_OP_ELEMENTWISE,
                             .params_size = sizeof(cast_params), .prepare = prepare_cast,
                             .infer = infer_cast, .bind = bind_cast, .run = run_cast,
                             .in_half = in_half, .types = ALL_TYPES},
                            {.name = NULL}};
const sn_op sn_op_cast_like[] = {{SN_ELT_HEAD("CastLike", 15, 0, 2, 2), .flags = SN_OP_ELEMENTWISE,
                                  .params_size = sizeof(cast_params), .prepare = prepare_how,
                                  .infer = infer_cast, .bind = bind_cast, .run = run_cast,
                                  .types = ALL_TYPES},
                                 {.name = NULL}};
