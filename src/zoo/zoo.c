/* SPDX-License-Identifier: Apache-2.0 */
/* The list of built-in models and the one way to make one. */
#include "zoo/zoo.h"

#include <string.h>

#include "zoo/builder.h"

static const sn_zoo_model models[] = {
#define SN_ZOO(id, text, params, ops)                                                              \
    {.name = #id,                                                                                  \
     .summary = text,                                                                              \
     .parameters = params,                                                                         \
     .flops = (uint64_t)(ops),                                                                     \
     .build = sn_zoo_build_##id},
#include "zoo/models.inc"
#undef SN_ZOO
};

#define MODEL_COUNT (sizeof models / sizeof models[0])

const sn_zoo_model *sn_zoo_row(size_t k)
{
    return k < MODEL_COUNT ? &models[k] : NULL;
}

const sn_zoo_model *sn_zoo_find(const char *name)
{
    for (size_t k = 0; k < MODEL_COUNT; k++)
        if (strcmp(models[k].name, name) == 0)
            return &models[k];
    return NULL;
}

sonde_status sn_zoo_build(const char *name, uint64_t seed, sn_context *ctx, sn_model **m,
                          sonde_error *err)
{
    *m = NULL;
    const sn_zoo_model *row = sn_zoo_find(name);
    if (!row)
        return sn_fail(err, SONDE_NOT_FOUND, "unknown built-in model '%s'; 'sonde zoo' lists them",
                       name);
    const uint64_t span = sn_span_begin(ctx->trace);
    sn_model *made = NULL;
    SN_TRY(sn_model_new(&made, ctx, err));
    sonde_status st = row->build(made, seed, err);
    if (st == SONDE_OK)
        st = sn_model_finish(made, err);
    if (st != SONDE_OK) {
        sn_model_unref(made);
        return st;
    }
    sn_span_end(ctx->trace, span, "build", name);
    *m = made;
    return SONDE_OK;
}
