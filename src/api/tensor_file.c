/* SPDX-License-Identifier: Apache-2.0 */
/* Values to and from files: the named slots of tensor_files as sets of public values. */
#include "sonde/experimental/tensor_file.h"

#include "api/internal.h"
#include "tensor_files/tensor_files.h"

/* Moves every slot of `list` into a set. */
static sonde_status to_set(sonde_context *c, sn_named_list *list, sonde_value_set **set,
                           sonde_error *err)
{
    sonde_value_set *made = NULL;
    SN_TRY(sn_api_set_new(c, &made, err));
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < list->list.n && st == SONDE_OK; i++) {
        sonde_value *v = NULL;
        st = sn_api_value(c, &list->list.data[i].slot, &v, err);
        if (st == SONDE_OK)
            st = sn_api_set_add(made, list->list.data[i].name, v, err);
        if (st != SONDE_OK)
            sonde_value_release(v);
    }
    if (st != SONDE_OK) {
        sonde_value_set_release(made);
        return st;
    }
    *set = made;
    return SONDE_OK;
}

static sonde_status load(sonde_context *c, const char *path, const sn_type *as,
                         const sonde_load_options *options, sonde_value_set **set, sonde_error *err)
{
    sonde_load_options o;
    SN_OPTIONS(o, options, err);
    sn_named_list list;
    sn_named_init(&list, &c->alloc);
    list.no_mmap = o.no_mmap != 0;
    sonde_status st = sn_tensor_file_read(path, as, &list, err);
    if (st == SONDE_OK)
        st = to_set(c, &list, set, err);
    sn_named_free(&list);
    return st;
}

sonde_status sonde_values_load(sonde_context *context, const char *path, sonde_value_set **set,
                               sonde_error *err)
{
    return sonde_values_load_with(context, path, NULL, set, err);
}

sonde_status sonde_values_load_with(sonde_context *context, const char *path,
                                    const sonde_load_options *options, sonde_value_set **set,
                                    sonde_error *err)
{
    SN_REQUIRE(set, err);
    *set = NULL;
    SN_REQUIRE(path, err);
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    const sonde_status st = load(c, path, NULL, options, set, err);
    sonde_context_release(c);
    return st;
}

/* The declared type of a graph input or output; NULL when there is none of that name. */
static const sn_type *port_type(const sn_graph *g, const char *name)
{
    for (size_t i = 0; i < g->inputs.n; i++)
        if (strcmp(g->inputs.data[i]->name, name) == 0)
            return &g->inputs.data[i]->fact.type;
    for (size_t i = 0; i < g->outputs.n; i++)
        if (strcmp(g->outputs.data[i]->name, name) == 0)
            return &g->outputs.data[i]->fact.type;
    return NULL;
}

sonde_status sonde_value_load_for(const sonde_session *session, const char *name, const char *path,
                                  sonde_value **value, sonde_error *err)
{
    return sonde_value_load_for_with(session, name, path, NULL, value, err);
}

sonde_status sonde_value_load_for_with(const sonde_session *session, const char *name,
                                       const char *path, const sonde_load_options *options,
                                       sonde_value **value, sonde_error *err)
{
    SN_REQUIRE(value, err);
    *value = NULL;
    SN_REQUIRE(session, err);
    SN_REQUIRE(name, err);
    SN_REQUIRE(path, err);
    const sn_type *type = port_type(session->model->core->graph, name);
    if (type && type->kind == SN_KIND_NONE)
        type = NULL;
    sonde_value_set *set = NULL;
    SN_TRY(load(session->model->context, path, type, options, &set, err));
    sonde_status st = SONDE_OK;
    if (set->values.n == 1)
        *value = sonde_value_retain(set->values.data[0]);
    else
        st = sn_fail(err, SONDE_INVALID_ARGUMENT, "'%s' contains %zu values, expected one for '%s'",
                     path, set->values.n, name);
    sonde_value_set_release(set);
    return st;
}

sonde_status sonde_values_save(const char *path, const char *const *names,
                               sonde_value *const *values, size_t count, sonde_error *err)
{
    SN_REQUIRE(path, err);
    if (count > 0) {
        SN_REQUIRE(names, err);
        SN_REQUIRE(values, err);
    }
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(count && values[0] ? values[0]->context : NULL, &c, err));
    sn_named_list list;
    sn_named_init(&list, &c->alloc);
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < count && st == SONDE_OK; i++) {
        sn_slot slot = {.kind = SN_KIND_NONE};
        if (!names[i] || !values[i])
            st =
                sn_fail(err, SONDE_INVALID_ARGUMENT, "value %zu to save is NULL or has no name", i);
        if (st == SONDE_OK)
            st = sn_slot_share(&slot, &values[i]->slot, false, &c->alloc, err);
        if (st == SONDE_OK)
            st = sn_named_add(&list, names[i], &slot, err);
        sn_slot_clear(&slot);
    }
    if (st == SONDE_OK)
        st = sn_tensor_file_write(path, &list, err);
    sn_named_free(&list);
    sonde_context_release(c);
    return st;
}

sonde_status sonde_values_can_save(const char *path, sonde_error *err)
{
    SN_REQUIRE(path, err);
    return sn_tensor_file_can_write(path, err);
}

/* The options with the defaults filled in. */
static sonde_status image_options(const sonde_image_options *options, sn_image_options *image,
                                  sonde_error *err)
{
    sonde_image_options o;
    SN_OPTIONS(o, options, err);
    if (o.width < 0 || o.height < 0 || o.resize < 0)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "an image of %d×%d, expected positive sizes",
                       o.width, o.height);
    sn_image_options_default(image);
    if (o.width)
        image->width = o.width;
    if (o.height)
        image->height = o.height;
    image->resize = o.resize;
    image->nhwc = o.nhwc != 0;
    image->bgr = o.bgr != 0;
    image->no_normalize = o.no_normalize != 0;
    image->no_mmap = o.no_mmap != 0;
    for (int i = 0; i < 3; i++) {
        if (o.mean)
            image->mean[i] = o.mean[i];
        if (o.deviation)
            image->deviation[i] = o.deviation[i];
    }
    return SONDE_OK;
}

sonde_status sonde_image_plan_get(const sonde_image_options *options, sonde_image_plan *plan,
                                  sonde_error *err)
{
    SN_REQUIRE(plan, err);
    const size_t theirs = plan->struct_size;
    if (theirs < sizeof(size_t))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "struct_size is not set; initialise the struct with SONDE_INIT");
    sn_image_options image;
    SN_TRY(image_options(options, &image, err));
    sonde_image_plan own = {.struct_size = theirs,
                            .width = image.width,
                            .height = image.height,
                            .resize = sn_image_resize(&image)};
    for (int i = 0; i < 3; i++) {
        own.mean[i] = image.no_normalize ? 0 : image.mean[i];
        own.deviation[i] = image.no_normalize ? 1 : image.deviation[i];
    }
    memcpy(plan, &own, theirs < sizeof own ? theirs : sizeof own);
    return SONDE_OK;
}

sonde_status sonde_image_load(sonde_context *context, const char *path,
                              const sonde_image_options *options, sonde_value **value,
                              sonde_error *err)
{
    SN_REQUIRE(value, err);
    *value = NULL;
    SN_REQUIRE(path, err);
    sn_image_options image;
    SN_TRY(image_options(options, &image, err));
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sn_slot slot = {.kind = SN_KIND_NONE};
    sonde_status st = sn_tensor_file_read_image(path, &image, &c->alloc, &slot, err);
    if (st == SONDE_OK)
        st = sn_api_value(c, &slot, value, err);
    sn_slot_clear(&slot);
    sonde_context_release(c);
    return st;
}
