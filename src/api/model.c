/* SPDX-License-Identifier: Apache-2.0 */
/* Models: what can be asked of one without running it. */
#include "api/internal.h"

sonde_status sn_api_model(sonde_context *c, sn_model *core, const char *name, sonde_model **model,
                          sonde_error *err)
{
    sonde_model *m = sn_alloc_zero(&c->alloc, sizeof *m);
    const size_t name_bytes = strlen(name) + 1;
    char *copy = m ? sn_alloc(&c->alloc, name_bytes) : NULL;
    if (!copy) {
        sn_free(&c->alloc, m, sizeof *m);
        sn_model_unref(core);
        return sn_fail_memory(err, name_bytes);
    }
    memcpy(copy, name, name_bytes);
    atomic_init(&m->refs, 1);
    m->context = sn_api_context_ref(c);
    m->core = core;
    m->name = copy;
    m->name_bytes = name_bytes;
    m->known = (sn_known_model){.model = core, .name = copy};
    sn_records_add_model(&c->records, &m->known);
    *model = m;
    return SONDE_OK;
}

void sonde_model_release(sonde_model *m)
{
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    sonde_context *c = m->context;
    sn_records_remove_model(&c->records, &m->known);
    sn_model_unref(m->core);
    sn_free(&c->alloc, m->name, m->name_bytes);
    sn_free(&c->alloc, m, sizeof *m);
    sonde_context_release(c);
}

int64_t sonde_model_ir_version(const sonde_model *model)
{
    return model ? model->core->ir_version : 0;
}

static const char *text_of(const char *text)
{
    return text ? text : "";
}

const char *sonde_model_producer(const sonde_model *model)
{
    return text_of(model ? model->core->producer_name : NULL);
}

sonde_status sonde_model_info_get(const sonde_model *model, sonde_model_info *info,
                                  sonde_error *err)
{
    SN_REQUIRE(model, err);
    SN_REQUIRE(info, err);
    const sn_model *m = model->core;
    const sonde_model_info own = {.producer = sonde_model_producer(model),
                                  .producer_version = text_of(m->producer_version),
                                  .domain = text_of(m->domain),
                                  .description = text_of(m->doc),
                                  .graph_name = text_of(m->graph_name),
                                  .graph_description = text_of(m->graph_doc),
                                  .version = m->model_version};
    return sn_api_copy_out(info, &own, sizeof own, err);
}

size_t sonde_model_metadata_count(const sonde_model *model)
{
    return model ? model->core->metadata.n : 0;
}

const char *sonde_model_metadata_key(const sonde_model *model, size_t index)
{
    return index < sonde_model_metadata_count(model) ? model->core->metadata.data[index].key : NULL;
}

const char *sonde_model_metadata_value(const sonde_model *model, size_t index)
{
    return index < sonde_model_metadata_count(model) ? model->core->metadata.data[index].value
                                                     : NULL;
}
