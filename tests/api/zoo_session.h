/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of whole runs share: a zoo model as a public model object, and inputs for it. */
#ifndef SONDE_TESTS_API_ZOO_SESSION_H
#define SONDE_TESTS_API_ZOO_SESSION_H

#include "api/internal.h"
#include "test.h"
#include "zoo/zoo.h"

/* The model as the API would hold it. `ctx` must be a real context. */
static inline sonde_status zoo_model(sonde_context *ctx, const char *name, sonde_model **model,
                                     sonde_error *err)
{
    sn_model *core = NULL;
    sonde_status st = sn_zoo_build(name, 1, &ctx->core, &core, err);
    return st ? st : sn_api_model(ctx, core, name, model, err);
}

enum { MAX_PORTS = 8 };

/* Random values for every input of the session; free dims become `free_dim`. Ints get 0 and 1. */
static inline sonde_status random_inputs(sonde_context *ctx, sonde_session *s, int64_t free_dim,
                                         sonde_value **in, size_t *n, sonde_error *err)
{
    *n = sonde_session_input_count(s);
    for (size_t i = 0; i < *n; i++) {
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        sonde_status st = sonde_session_input_info(s, i, &info, err);
        if (st)
            return st;
        int64_t dims[16];
        size_t count = 1;
        for (int d = 0; d < info.rank; d++) {
            dims[d] = info.dims[d] >= 0 ? info.dims[d] : free_dim;
            count *= (size_t)dims[d];
        }
        size_t bytes = count * sonde_dtype_bytes(info.dtype);
        st =
            sonde_tensor_create(ctx, info.dtype, dims, (size_t)info.rank, NULL, bytes, &in[i], err);
        if (st)
            return st;
        void *data = sonde_tensor_data(in[i]);
        for (size_t k = 0; k < count; k++) {
            if (info.dtype == SONDE_DTYPE_F32)
                ((float *)data)[k] = test_randf();
            else if (info.dtype == SONDE_DTYPE_I64)
                ((int64_t *)data)[k] = (int64_t)(test_rand() & 1);
            else if (info.dtype == SONDE_DTYPE_BOOL)
                ((uint8_t *)data)[k] = test_rand() & 1;
        }
    }
    return SONDE_OK;
}

static inline void release_all(sonde_value **v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sonde_value_release(v[i]);
        v[i] = NULL;
    }
}

/* Largest difference between two f32 tensors, relative to max(1, max|b|); inf when shapes differ.
 */
static inline double f32_difference(const sonde_value *a, const sonde_value *b)
{
    if (sonde_tensor_bytes(a) != sonde_tensor_bytes(b) || sonde_tensor_dtype(a) != SONDE_DTYPE_F32)
        return INFINITY;
    const float *x = sonde_tensor_data(a), *y = sonde_tensor_data(b);
    double worst = 0, scale = 1;
    for (int64_t i = 0; i < sonde_tensor_count(a); i++) {
        double d = fabs((double)x[i] - (double)y[i]);
        worst = d > worst || isnan(d) ? d : worst;
        scale = fabs((double)y[i]) > scale ? fabs((double)y[i]) : scale;
    }
    return worst / scale;
}

#endif
