/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the ai.onnx.ml operators; see shared.h. */
#include "ops/ml/shared.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ attributes */
sonde_status sn_ml_tensor(sn_prep *p, const char *name, const sn_tensor **out)
{
    const sn_attr *a = sn_node_attr(p->node, name);
    *out = NULL;
    if (!a)
        return SONDE_OK;
    if (a->kind != SN_ATTR_TENSOR || !a->tensor)
        return sn_prep_fail(p, "attribute '%s' is not a tensor", name);
    *out = a->tensor;
    return SONDE_OK;
}

sonde_status sn_ml_doubles(sn_prep *p, const char *name, const double **out, size_t *n)
{
    char long_name[64];
    const sn_tensor *t;
    const float *floats;
    *out = NULL;
    SN_TRY(sn_prep_floats(p, name, &floats, n));
    snprintf(long_name, sizeof long_name, "%s_as_tensor", name);
    SN_TRY(sn_ml_tensor(p, long_name, &t));
    if (t && t->dtype != SONDE_DTYPE_F32 && t->dtype != SONDE_DTYPE_F64)
        return sn_prep_fail(p, "attribute '%s' is neither f32 nor f64", long_name);
    if (t)
        *n = (size_t)sn_tensor_count(t);
    if (*n == 0)
        return SONDE_OK;
    double *copy = SN_NEW_N(p->arena, double, *n);
    if (!copy)
        return sn_fail_memory(p->err, *n * sizeof *copy);
    for (size_t i = 0; i < *n; i++)
        copy[i] = t ? sn_elem_f64(t->dtype, t->data, (int64_t)i) : (double)floats[i];
    *out = copy;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ labels */
sonde_status sn_ml_labels_read(sn_prep *p, const char *ints, sn_ml_labels *l)
{
    size_t n;
    SN_TRY(sn_prep_ints(p, ints, &l->ints, &l->n));
    SN_TRY(sn_prep_strings(p, "classlabels_strings", &l->strings, &n));
    if (l->n && n)
        return sn_prep_fail(p, "labels are given both as integers and as strings");
    l->n += n;
    return SONDE_OK;
}

sonde_status sn_ml_labels_write(const sn_step *s, sn_frame *f, uint32_t o, const sn_ml_labels *l,
                                const int64_t *index, int64_t n, sonde_string *room)
{
    if (!sn_wants(s, o))
        return SONDE_OK;
    if (!l->strings) {
        int64_t *y = sn_out(s, f, o)->data;
        for (int64_t i = 0; i < n; i++)
            y[i] = index[i] >= 0 && (size_t)index[i] < l->n ? l->ints[index[i]] : index[i];
        return SONDE_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        const bool known = index[i] >= 0 && (size_t)index[i] < l->n;
        room[i] = known ? l->strings[index[i]] : (sonde_string){index[i] > 0 ? "1" : "0", 1};
    }
    return sn_run_strings(s, f, o, &n, 1, room);
}

/* ------------------------------------------------------------------ scores */
sonde_status sn_ml_post_read(sn_prep *p, sn_score_post *post)
{
    static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    const char *name;
    SN_TRY(sn_prep_string(p, "post_transform", "NONE", &name));
    for (int i = 0; i < 5; i++)
        if (strcmp(names[i], name) == 0) {
            *post = (sn_score_post)i;
            return SONDE_OK;
        }
    return sn_prep_fail(p, "attribute 'post_transform' is '%s'", name);
}

/* ------------------------------------------------------------------ rows */
bool sn_ml_number(sn_dtype t)
{
    return t == SONDE_DTYPE_F32 || t == SONDE_DTYPE_F64 || t == SONDE_DTYPE_I64 ||
           t == SONDE_DTYPE_I32;
}

bool sn_ml_rows(const sn_type *t, int64_t *n, int64_t *features)
{
    if (t->rank != 1 && t->rank != 2)
        return false;
    *n = t->rank == 2 ? t->dims[0] : 1;
    *features = t->dims[t->rank - 1];
    return true;
}

sonde_status sn_ml_infer_rows(sn_infer *c, sn_dim *n)
{
    const sn_type *t = &c->in[0]->type;
    *n = SN_DIM_UNKNOWN;
    if (t->rank >= 0 && t->rank != 1 && t->rank != 2)
        return sn_infer_fail(c, "the input has rank %d, expected 1 or 2", t->rank);
    if (t->rank >= 0)
        *n = t->rank == 2 ? t->dims[0] : 1;
    return SONDE_OK;
}

sonde_status sn_ml_check(sn_bind *b, int64_t *n, int64_t *features)
{
    if (!sn_ml_number(b->in[0]->type.dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(b->in[0]->type.dtype));
    if (!sn_ml_rows(&b->in[0]->type, n, features))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the input must have rank 1 or 2");
    return SONDE_OK;
}
