/* SPDX-License-Identifier: Apache-2.0 */
/* What goes in or out, as sonde_type_info tells it: of a session and of a model that is only looked
 * at. */
#include "api/internal.h"

static const char *symbol_name(const sn_graph *g, sn_dim d)
{
    const uint32_t id = sn_dim_known(d) ? 0 : sn_dim_symbol_id(d);
    return id > 0 && id <= g->symbols.n ? g->symbols.data[id - 1] : NULL;
}

sonde_status sn_api_describe(sn_arena *arena, const sn_graph *g, const char *name,
                             const sn_type *type, sonde_type_info *info, sonde_error *err)
{
    const sn_type *t = type;
    while (t->kind != SN_KIND_TENSOR && t->elem)
        t = t->elem;
    char text[1024], onnx_type[256];
    sn_type_text(type, g->symbols.data, text, sizeof text);
    sn_api_onnx_type(type, onnx_type, sizeof onnx_type);
    const int rank = t->kind == SN_KIND_TENSOR ? t->rank : -1;
    const size_t n = rank > 0 ? (size_t)rank : 0;
    int64_t *dims = SN_NEW_N(arena, int64_t, n + 1);
    const char **names = SN_NEW_N(arena, const char *, n + 1);
    *info = (sonde_type_info){.struct_size = sizeof *info,
                              .name = sn_arena_strdup(arena, name),
                              .kind = (sonde_kind)type->kind,
                              .dtype = t->dtype,
                              .rank = rank,
                              .dims = dims,
                              .dim_names = names,
                              .text = sn_arena_strdup(arena, text),
                              .onnx_type = sn_arena_strdup(arena, onnx_type)};
    if (!dims || !names || !info->name || !info->text || !info->onnx_type)
        return sn_fail_memory(err, n * sizeof *dims);
    for (size_t i = 0; i < n; i++) {
        dims[i] = sn_dim_known(t->dims[i]) ? t->dims[i] : -1;
        names[i] = symbol_name(g, t->dims[i]);
    }
    return SONDE_OK;
}
