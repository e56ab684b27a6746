/* SPDX-License-Identifier: Apache-2.0 */
/* Models from files, from memory and, by name, from the zoo. */
#include "api/internal.h"
#include "model_readers/model_readers.h"
#include "sonde/experimental/zoo.h"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

sonde_status sonde_model_load(sonde_context *context, const char *path,
                              const sonde_model_options *options, sonde_model **model,
                              sonde_error *err)
{
    SN_REQUIRE(model, err);
    *model = NULL;
    SN_REQUIRE(path, err);
    sonde_model_options o;
    SN_OPTIONS(o, options, err);
    if (sn_api_is_zoo(path))
        return sonde_zoo_build(context, path, 0, model, err);
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sn_records_enter(&c->records);
    const sn_model_options load = {.no_mmap = o.no_mmap != 0, .external_dir = o.external_dir};
    sn_model *core = NULL;
    const uint64_t t = sn_span_begin(c->core.trace);
    sonde_status st = sn_model_load_file(&c->core, path, &load, &core, err);
    sn_span_end(c->core.trace, t, "load", NULL);
    sn_records_leave(&c->records);
    if (st == SONDE_OK)
        st = sn_api_model(c, core, base_name(path), model, err);
    sonde_context_release(c);
    return st;
}

sonde_status sonde_model_load_memory(sonde_context *context, const void *data, size_t bytes,
                                     const sonde_model_options *options, sonde_model **model,
                                     sonde_error *err)
{
    SN_REQUIRE(model, err);
    *model = NULL;
    SN_REQUIRE(data, err);
    sonde_model_options o;
    SN_OPTIONS(o, options, err);
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sn_records_enter(&c->records);
    const sn_model_options load = {.no_mmap = o.no_mmap != 0, .external_dir = o.external_dir};
    sn_model *core = NULL;
    sonde_status st = SONDE_OK;
    sn_buffer *copy = sn_buffer_new(&c->alloc, bytes);
    if (copy) {
        memcpy(copy->data, data, bytes);
        const uint64_t t = sn_span_begin(c->core.trace);
        st = sn_model_load_memory(&c->core, copy->data, bytes, copy, &load, &core, err);
        sn_span_end(c->core.trace, t, "load", NULL);
        sn_buffer_unref(copy);
    } else {
        st = sn_fail_memory(err, bytes);
    }
    sn_records_leave(&c->records);
    if (st == SONDE_OK)
        st = sn_api_model(c, core, core->graph_name ? core->graph_name : "", model, err);
    sonde_context_release(c);
    return st;
}
