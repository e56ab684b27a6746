/* SPDX-License-Identifier: Apache-2.0 */
/* The zoo's front door. "zoo:NAME?batch=8&seq=384" is a model wherever a path is: the name is
 * built, and the sizes replace the defaults in its metadata, where everyone looks for them. */
#include "sonde/experimental/zoo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/internal.h"
#include "base/list_text.h"
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

/* ------------------------------------------------------------------ names with sizes */
static const char scheme[] = "zoo:", default_key[] = "sonde.default.";

bool sn_api_is_zoo(const char *path)
{
    return strncmp(path, scheme, strlen(scheme)) == 0;
}

/* The dim that a key of metadata gives a default for; NULL: of something else. */
static const char *dim_of(const sn_meta *meta)
{
    const size_t n = strlen(default_key);
    return strncmp(meta->key, default_key, n) == 0 ? meta->key + n : NULL;
}

/* Of a dim with this name; otherwise, from three letters on, of those that begin with it. */
static size_t set_default(sn_model *m, const char *key, const char *size)
{
    const size_t n = strlen(key);
    size_t set = 0;
    for (int shortened = 0; shortened < 2 && !set; shortened++)
        for (size_t i = 0; i < m->metadata.n; i++) {
            sn_meta *meta = &m->metadata.data[i];
            const char *dim = dim_of(meta);
            if (!dim || (shortened ? n < 3 || strncmp(dim, key, n) != 0 : strcmp(dim, key) != 0))
                continue;
            meta->value = size;
            set++;
        }
    return set;
}

static sonde_status no_such_dim(const sn_model *m, const char *name, const char *key,
                                sonde_error *err)
{
    sn_list_text dims = {0};
    for (size_t i = 0; i < m->metadata.n; i++) {
        const char *dim = dim_of(&m->metadata.data[i]);
        if (dim)
            sn_list_add(&dims, "%s", dim);
    }
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "'zoo:%.100s' has no dimension '%.100s'; its symbolic dimensions are: %s", name,
                   key, dims.n ? sn_list_end(&dims) : "none");
}

/* `item` is "DIM=N" and is cut up. */
static sonde_status set_size(sn_model *m, const char *name, char *item, sonde_error *err)
{
    char *equals = strrchr(item, '='), *end = NULL;
    errno = 0;
    const bool digits = equals && equals[1] >= '0' && equals[1] <= '9';
    const long long size = digits ? strtoll(equals + 1, &end, 10) : -1;
    if (size < 0 || *end || errno || equals == item)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "'zoo:%.100s': '%.100s' does not have the form DIM=N", name, item);
    *equals = 0;
    const char *text = sn_arena_printf(&m->arena, "%lld", size);
    if (!text)
        return sn_fail_memory(err, 1);
    return set_default(m, item, text) ? SONDE_OK : no_such_dim(m, name, item, err);
}

/* The parts of "batch=8&seq=384"; empty ones do not count. */
static sonde_status set_sizes(sn_model *m, const char *name, const char *query, sonde_error *err)
{
    char *rest = sn_arena_strdup(&m->arena, query);
    if (!rest)
        return sn_fail_memory(err, strlen(query) + 1);
    while (rest) {
        char *item = rest, *end = strchr(rest, '&');
        rest = end ? end + 1 : NULL;
        if (end)
            *end = 0;
        if (*item)
            SN_TRY(set_size(m, name, item, err));
    }
    return SONDE_OK;
}

static sonde_status build(sonde_context *c, const char *name, const char *query, uint64_t seed,
                          sn_model **core, sonde_error *err)
{
    SN_TRY(sn_zoo_build(name, seed, &c->core, core, err));
    const sonde_status st = set_sizes(*core, name, query, err);
    if (st != SONDE_OK)
        sn_model_unref(*core);
    return st;
}

sonde_status sonde_zoo_build(sonde_context *context, const char *name, uint64_t seed,
                             sonde_model **model, sonde_error *err)
{
    SN_REQUIRE(model, err);
    *model = NULL;
    SN_REQUIRE(name, err);
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    if (sn_api_is_zoo(name))
        name += strlen(scheme);
    const char *query = strchr(name, '?');
    char plain[128]; /* a name that does not fit is not that of a model */
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(name, "?"), name);
    sn_model *core = NULL;
    sn_records_enter(&c->records);
    sonde_status st = build(c, plain, query ? query + 1 : "", seed, &core, err);
    sn_records_leave(&c->records);
    if (st == SONDE_OK)
        st = sn_api_model(c, core, plain, model, err);
    sonde_context_release(c);
    return st;
}
