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
    list.wants = o.wants;
    list.wants_user = o.wants_user;
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
static const sn_type *port_type(const sn_graph *g, const char *name, bool *is_input)
{
    for (size_t i = 0; i < g->inputs.n; i++)
        if ((*is_input = strcmp(g->inputs.data[i]->name, name) == 0))
            return &g->inputs.data[i]->fact.type;
    for (size_t i = 0; i < g->outputs.n; i++)
        if (strcmp(g->outputs.data[i]->name, name) == 0)
            return &g->outputs.data[i]->fact.type;
    return NULL;
}

/* What an archive has is counted first, and read if it is one array of a shape that the input
 * takes.
 */
typedef struct only_one {
    const sn_type *type; /* of an input; NULL: any shape will do */
    size_t seen;
    bool fits, reading;
    int64_t dims[SN_MAX_RANK];
    int32_t rank;
} only_one;

static int wants_one(void *user, const char *name, const int64_t *dims, size_t rank)
{
    only_one *o = user;
    const sn_type *t = o->type;
    (void)name;
    if (o->reading)
        return 1;
    if (o->seen++)
        return 0;
    o->fits = !t || t->kind != SN_KIND_TENSOR || t->rank < 0 || (size_t)t->rank == rank;
    for (int d = 0; o->fits && t && t->kind == SN_KIND_TENSOR && d < t->rank; d++)
        o->fits = !sn_dim_known(t->dims[d]) || t->dims[d] == dims[d];
    o->rank = (int32_t)rank;
    memcpy(o->dims, dims, rank * sizeof *dims);
    return 0;
}

static sonde_status wrong_shape(const sonde_session *session, const only_one *o, const char *name,
                                const char *path, sonde_error *err)
{
    char want[200], have[200];
    const sn_type type = {
        .kind = SN_KIND_TENSOR, .dtype = o->type->dtype, .rank = o->rank, .dims = o->dims};
    return sn_fail(
        err, SONDE_INVALID_ARGUMENT, "'%s': input '%s' should be %s but is %s", path, name,
        sn_type_text(o->type, session->model->core->graph->symbols.data, want, sizeof want),
        strchr(sn_type_text(&type, NULL, have, sizeof have), '['));
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
    bool is_input = false;
    const sn_type *type = port_type(session->model->core->graph, name, &is_input);
    if (type && type->kind == SN_KIND_NONE)
        type = NULL;
    only_one one = {.type = is_input ? type : NULL, .fits = true};
    sonde_load_options o;
    SN_OPTIONS(o, options, err);
    o.wants = wants_one;
    o.wants_user = &one;
    sonde_value_set *set = NULL;
    SN_TRY(load(session->model->context, path, type, &o, &set, err));
    sonde_status st = SONDE_OK;
    if (one.seen == 1 && one.fits) {
        sonde_value_set_release(set);
        set = NULL;
        one.reading = true;
        SN_TRY(load(session->model->context, path, type, &o, &set, err));
    }
    if (one.seen > 1)
        st = sn_fail(err, SONDE_INVALID_ARGUMENT, "'%s' contains %zu values, expected one for '%s'",
                     path, one.seen, name);
    else if (!one.fits)
        st = wrong_shape(session, &one, name, path, err);
    else if (set->values.n == 1)
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
    const sonde_dtype dtype = o.dtype ? o.dtype : SONDE_DTYPE_F32;
    if (!sn_image_dtype(dtype))
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "images become tensors of floats or of integers, not of %s",
                       sonde_dtype_text(dtype));
    if (o.no_normalize)
        sn_image_options_raw(image, dtype);
    else
        sn_image_options_default(image, dtype);
    if (o.width)
        image->width = o.width;
    if (o.height)
        image->height = o.height;
    image->resize = o.resize;
    image->nhwc = o.nhwc != 0;
    image->bgr = o.bgr != 0;
    image->no_mmap = o.no_mmap != 0;
    if (o.scale != 0)
        image->scale = o.scale;
    for (int i = 0; i < 3 && !o.no_normalize; i++) {
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
        own.mean[i] = sn_image_mean(&image, i);
        own.deviation[i] = sn_image_deviation(&image, i);
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
