/* SPDX-License-Identifier: Apache-2.0 */
/* Values: a refcount around a slot. Every value keeps its context alive, because its memory came
 * from the context's allocator. */
#include "api/internal.h"

sonde_status sn_api_value(sonde_context *c, sn_slot *slot, sonde_value **value, sonde_error *err)
{
    sonde_value *v = sn_alloc_zero(&c->alloc, sizeof *v);
    if (!v)
        return sn_fail_memory(err, sizeof *v);
    atomic_init(&v->refs, 1);
    v->context = sn_api_context_ref(c);
    v->slot = *slot;
    *slot = (sn_slot){.kind = SN_KIND_NONE};
    *value = v;
    return SONDE_OK;
}

/* Wraps the slot a maker filled and drops the context reference, whatever happened. */
static sonde_status finish(sonde_context *c, sonde_status st, sn_slot *slot, sonde_value **value,
                           sonde_error *err)
{
    if (st == SONDE_OK)
        st = sn_api_value(c, slot, value, err);
    sn_slot_clear(slot);
    sonde_context_release(c);
    return st;
}

/* Checks type, rank and dims; *want receives the size in memory. */
static sonde_status check_shape(sonde_dtype dtype, const int64_t *dims, size_t rank, size_t *want,
                                sonde_error *err)
{
    if (!sn_dtype_valid((int64_t)dtype))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "%d is not a dtype", (int)dtype);
    if (rank > SN_MAX_RANK)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "a tensor of rank %zu, expected at most %d",
                       rank, SN_MAX_RANK);
    if (rank > 0 && !dims)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "dims is NULL for a tensor of rank %zu", rank);
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0)
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "dim %zu of a tensor is %lld, expected 0 or more", i,
                           (long long)dims[i]);
    if (!sn_tensor_bytes(dtype, dims, (int)rank, want))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the tensor's size overflows");
    return SONDE_OK;
}

static sonde_status check_tensor(sonde_dtype dtype, const int64_t *dims, size_t rank, size_t bytes,
                                 sonde_error *err)
{
    size_t want = 0;
    SN_TRY(check_shape(dtype, dims, rank, &want, err));
    if (dtype == SONDE_DTYPE_STRING)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "use sonde_tensor_create_strings for string tensors");
    if (bytes != want)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "%zu bytes given, the tensor needs %zu", bytes,
                       want);
    return SONDE_OK;
}

sonde_status sonde_tensor_create(sonde_context *context, sonde_dtype dtype, const int64_t *dims,
                                 size_t rank, const void *data, size_t bytes, sonde_value **value,
                                 sonde_error *err)
{
    SN_REQUIRE(value, err);
    *value = NULL;
    SN_TRY(check_tensor(dtype, dims, rank, bytes, err));
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sn_slot slot = {.kind = SN_KIND_NONE};
    const sonde_status st = sn_slot_new_tensor(&slot, dtype, dims, (int)rank, &c->alloc, err);
    if (st == SONDE_OK && bytes > 0) {
        if (data)
            memcpy(slot.t.data, data, bytes);
        else
            memset(slot.t.data, 0, bytes);
    }
    return finish(c, st, &slot, value, err);
}

sonde_status sonde_tensor_borrow(sonde_context *context, sonde_dtype dtype, const int64_t *dims,
                                 size_t rank, void *data, size_t bytes, sonde_value **value,
                                 sonde_error *err)
{
    SN_REQUIRE(value, err);
    *value = NULL;
    SN_TRY(check_tensor(dtype, dims, rank, bytes, err));
    if (!data && bytes > 0)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "data is NULL for a tensor of %zu bytes",
                       bytes);
    /* Complex numbers are aligned as their parts. */
    size_t align = sn_dtype_bytes(dtype);
    if (align > 8 || dtype == SONDE_DTYPE_C64)
        align /= 2;
    if ((uintptr_t)data % align)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "data is not aligned to %zu bytes, which %s needs", align,
                       sn_dtype_name(dtype));
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sn_slot slot = {.kind = SN_KIND_TENSOR,
                    .t = {.dtype = dtype, .rank = (int32_t)rank, .data = data, .bytes = bytes}};
    if (rank > 0)
        memcpy(slot.t.dims, dims, rank * sizeof *dims);
    return finish(c, SONDE_OK, &slot, value, err);
}

sonde_status sonde_tensor_create_strings(sonde_context *context, const int64_t *dims, size_t rank,
                                         const sonde_string *elements, sonde_value **value,
                                         sonde_error *err)
{
    SN_REQUIRE(value, err);
    *value = NULL;
    size_t bytes = 0;
    SN_TRY(check_shape(SONDE_DTYPE_STRING, dims, rank, &bytes, err));
    if (!elements && bytes > 0)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "elements is NULL");
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sn_slot slot = {.kind = SN_KIND_NONE};
    const sonde_status st = sn_slot_new_strings(&slot, dims, (int)rank, elements, &c->alloc, err);
    return finish(c, st, &slot, value, err);
}

/* A list value of these items; those without memory of their own are copied. */
static sonde_status make_list(sonde_context *c, sn_kind kind, sonde_value *const *items,
                              size_t count, sn_slot *slot, sonde_error *err)
{
    sn_list *list = sn_list_new(&c->alloc, count);
    if (!list)
        return sn_fail_memory(err, count * sizeof(sn_slot));
    slot->kind = kind;
    slot->list = list;
    for (size_t i = 0; i < count; i++) {
        if (!items[i])
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "item %zu is NULL", i);
        const sn_slot *item = &items[i]->slot;
        if (i == 0) {
            list->elem_kind = item->kind;
            list->elem_dtype = item->kind == SN_KIND_TENSOR ? item->t.dtype : SONDE_DTYPE_UNDEFINED;
        } else if (item->kind != list->elem_kind ||
                   (item->kind == SN_KIND_TENSOR && item->t.dtype != list->elem_dtype)) {
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "item %zu of a sequence has a different type than the first item", i);
        }
        SN_TRY(sn_list_push(list, item, err));
    }
    return SONDE_OK;
}

sonde_status sonde_sequence_create(sonde_context *context, sonde_value *const *items, size_t count,
                                   sonde_value **value, sonde_error *err)
{
    SN_REQUIRE(value, err);
    *value = NULL;
    if (count > 0)
        SN_REQUIRE(items, err);
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sn_slot slot = {.kind = SN_KIND_NONE};
    const sonde_status st = make_list(c, SN_KIND_SEQUENCE, items, count, &slot, err);
    return finish(c, st, &slot, value, err);
}

sonde_status sonde_optional_create(sonde_context *context, sonde_value *item, sonde_value **value,
                                   sonde_error *err)
{
    SN_REQUIRE(value, err);
    *value = NULL;
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sn_slot slot = {.kind = SN_KIND_NONE};
    const sonde_status st = make_list(c, SN_KIND_OPTIONAL, &item, item ? 1 : 0, &slot, err);
    return finish(c, st, &slot, value, err);
}

/* A list of its own for keys and values, whose element types differ. */
static sonde_status make_map(sonde_context *c, const sn_slot *keys, const sn_slot *values,
                             sn_slot *slot, sonde_error *err)
{
    sn_list *list = sn_list_new(&c->alloc, 2);
    if (!list)
        return sn_fail_memory(err, 2 * sizeof(sn_slot));
    slot->kind = SN_KIND_MAP;
    slot->list = list;
    SN_TRY(sn_list_push(list, keys, err));
    return sn_list_push(list, values, err);
}

sonde_status sonde_map_create(sonde_context *context, sonde_value *keys, sonde_value *values,
                              sonde_value **value, sonde_error *err)
{
    SN_REQUIRE(value, err);
    *value = NULL;
    SN_REQUIRE(keys, err);
    SN_REQUIRE(values, err);
    const sonde_dtype type = sonde_tensor_dtype(keys);
    if (type != SONDE_DTYPE_STRING && !sn_dtype_is_int(type))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "keys of a map must be a tensor of integers or strings");
    if (values->slot.kind != SN_KIND_TENSOR ||
        sonde_tensor_count(keys) != sonde_tensor_count(values))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "values of a map must be a tensor with as many elements as it has keys");
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sn_slot slot = {.kind = SN_KIND_NONE};
    const sonde_status st = make_map(c, &keys->slot, &values->slot, &slot, err);
    return finish(c, st, &slot, value, err);
}

sonde_value *sonde_value_retain(sonde_value *value)
{
    if (value)
        atomic_fetch_add_explicit(&value->refs, 1, memory_order_relaxed);
    return value;
}

void sonde_value_release(sonde_value *value)
{
    if (!value || atomic_fetch_sub_explicit(&value->refs, 1, memory_order_acq_rel) != 1)
        return;
    sonde_context *c = value->context;
    sn_slot_clear(&value->slot);
    sn_free(&c->alloc, value, sizeof *value);
    sonde_context_release(c);
}

/* ------------------------------------------------------------------ looking at values */
static const sn_tensor *tensor_of(const sonde_value *v)
{
    return v && v->slot.kind == SN_KIND_TENSOR ? &v->slot.t : NULL;
}

sonde_kind sonde_value_kind(const sonde_value *value)
{
    return value ? (sonde_kind)value->slot.kind : SONDE_KIND_NONE;
}

sonde_dtype sonde_tensor_dtype(const sonde_value *value)
{
    const sn_tensor *t = tensor_of(value);
    return t ? t->dtype : SONDE_DTYPE_UNDEFINED;
}

size_t sonde_tensor_rank(const sonde_value *value)
{
    const sn_tensor *t = tensor_of(value);
    return t ? (size_t)t->rank : 0;
}

const int64_t *sonde_tensor_dims(const sonde_value *value)
{
    const sn_tensor *t = tensor_of(value);
    return t ? t->dims : NULL;
}

int64_t sonde_tensor_count(const sonde_value *value)
{
    const sn_tensor *t = tensor_of(value);
    return t ? sn_tensor_count(t) : 0;
}

size_t sonde_tensor_bytes(const sonde_value *value)
{
    const sn_tensor *t = tensor_of(value);
    size_t bytes = 0;
    /* A string tensor's buffer also holds the texts: only its elements count here. */
    return t && sn_tensor_bytes(t->dtype, t->dims, t->rank, &bytes) ? bytes : 0;
}

void *sonde_tensor_data(const sonde_value *value)
{
    const sn_tensor *t = tensor_of(value);
    return t ? t->data : NULL;
}

size_t sonde_value_count(const sonde_value *value)
{
    return value && value->slot.list && value->slot.kind != SN_KIND_TENSOR ? value->slot.list->n
                                                                           : 0;
}

sonde_status sonde_value_item(const sonde_value *value, size_t index, sonde_value **item,
                              sonde_error *err)
{
    SN_REQUIRE(item, err);
    *item = NULL;
    SN_REQUIRE(value, err);
    if (index >= sonde_value_count(value))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "item %zu of a value with %zu items", index,
                       sonde_value_count(value));
    sonde_context *c = sn_api_context_ref(value->context);
    sn_slot slot = {.kind = SN_KIND_NONE};
    const sonde_status st =
        sn_slot_share(&slot, &value->slot.list->items[index], true, &c->alloc, err);
    return finish(c, st, &slot, item, err);
}

/* ------------------------------------------------------------------ named sets */
sonde_status sn_api_set_new(sonde_context *c, sonde_value_set **set, sonde_error *err)
{
    sonde_value_set *s = sn_alloc_zero(&c->alloc, sizeof *s);
    if (!s)
        return sn_fail_memory(err, sizeof *s);
    s->context = sn_api_context_ref(c);
    sn_arena_init(&s->arena, &c->alloc);
    *set = s;
    return SONDE_OK;
}

sonde_status sn_api_set_add(sonde_value_set *set, const char *name, sonde_value *value,
                            sonde_error *err)
{
    sn_allocator *alloc = &set->context->alloc;
    const char *copy = sn_arena_strdup(&set->arena, name);
    if (!copy || !sn_vec_reserve(&set->values, alloc, 1) || !sn_vec_push(&set->names, alloc, copy))
        return sn_fail_memory(err, strlen(name) + 1);
    set->values.data[set->values.n++] = value;
    return SONDE_OK;
}

size_t sonde_value_set_count(const sonde_value_set *set)
{
    return set ? set->values.n : 0;
}

const char *sonde_value_set_name(const sonde_value_set *set, size_t index)
{
    return set && index < set->names.n ? set->names.data[index] : NULL;
}

sonde_value *sonde_value_set_value(const sonde_value_set *set, size_t index)
{
    return set && index < set->values.n ? set->values.data[index] : NULL;
}

void sonde_value_set_release(sonde_value_set *set)
{
    if (!set)
        return;
    sonde_context *c = set->context;
    for (size_t i = 0; i < set->values.n; i++)
        sonde_value_release(set->values.data[i]);
    sn_vec_free(&set->values, &c->alloc);
    sn_vec_free(&set->names, &c->alloc);
    sn_arena_free(&set->arena);
    sn_free(&c->alloc, set, sizeof *set);
    sonde_context_release(c);
}
