/* SPDX-License-Identifier: Apache-2.0 */
/* The zoo's front door. */
#include "sonde/experimental/zoo.h"

#include "api/internal.h"
#include "zoo/zoo.h"

const char *sonde_zoo_name(size_t index)
{
    const sn_zoo_model *row = sn_zoo_row(index);
    return row ? row->name : NULL;
}

const char *sonde_zoo_summary(size_t index)
{
    const sn_zoo_model *row = sn_zoo_row(index);
    return row ? row->summary : NULL;
}

uint64_t sonde_zoo_parameters(size_t index)
{
    const sn_zoo_model *row = sn_zoo_row(index);
    return row ? row->parameters : 0;
}

uint64_t sonde_zoo_flops(size_t index)
{
    const sn_zoo_model *row = sn_zoo_row(index);
    return row ? row->flops : 0;
}

sonde_status sonde_zoo_build(sonde_context *context, const char *name, uint64_t seed,
                             sonde_model **model, sonde_error *err)
{
    SN_REQUIRE(model, err);
    *model = NULL;
    SN_REQUIRE(name, err);
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sn_model *core = NULL;
    sn_records_enter(&c->records);
    sonde_status st = sn_zoo_build(name, seed, &c->core, &core, err);
    sn_records_leave(&c->records);
    if (st == SONDE_OK)
        st = sn_api_model(c, core, name, model, err);
    sonde_context_release(c);
    return st;
}
