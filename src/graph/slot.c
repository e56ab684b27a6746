/* SPDX-License-Identifier: Apache-2.0 */
/* Slots, and the lists some of them hold: a list's elements are slots again, so the two free and
 * share each other. A string tensor is one buffer: its elements first, then the bytes they point
 * into, so that sharing a tensor is always one count.
 *
 * A list never changes once others may hold it, yet appending in a loop must not copy all that is
 * there: lists are windows of a store, which only grows at its end. A longer list is a new window
 * of the same store as long as nobody else has taken the next place; a list without its first or
 * last element is a smaller one. Places outside every window stay until the store goes. */
#include <string.h>

#include "graph/tensor.h"

/* ---- slots ---- */

void sn_slot_clear(sn_slot *s)
{
    if (s->kind == SN_KIND_TENSOR)
        sn_buffer_unref(s->t.owner);
    else if (s->kind != SN_KIND_NONE)
        sn_list_unref(s->list);
    memset(s, 0, sizeof *s);
}

sonde_status sn_slot_share(sn_slot *dst, const sn_slot *src, bool own, sn_allocator *alloc,
                           sonde_error *err)
{
    sn_slot made = *src;
    if (src->kind == SN_KIND_TENSOR) {
        if (own && src->t.dtype == SONDE_DTYPE_STRING) {
            /* Even an owned one: operators move elements without the bytes they point at. */
            memset(&made, 0, sizeof made);
            SN_TRY(sn_slot_new_strings(&made, src->t.dims, src->t.rank, src->t.data, alloc, err));
        } else if (src->t.owner || !own) {
            sn_buffer_ref(made.t.owner);
        } else {
            sn_buffer *b = sn_buffer_new(alloc, src->t.bytes);
            if (!b)
                return sn_fail_memory(err, src->t.bytes);
            if (src->t.bytes)
                memcpy(b->data, src->t.data, src->t.bytes);
            made.t.owner = b;
            made.t.data = b->data;
        }
    } else if (src->kind != SN_KIND_NONE) {
        sn_list_ref(made.list); /* elements of a list are always owned */
    }
    sn_slot_clear(dst);
    *dst = made;
    return SONDE_OK;
}

/* A tensor header for these dims; the caller fills data and owner. */
static sonde_status make_header(sn_tensor *t, sn_dtype dtype, const int64_t *dims, int rank,
                                sonde_error *err)
{
    memset(t, 0, sizeof *t);
    if (!sn_tensor_bytes(dtype, dims, rank, &t->bytes))
        return sn_fail(err, SONDE_LIMIT, "a tensor of rank %d is larger than memory can be", rank);
    t->dtype = dtype;
    t->rank = rank;
    for (int i = 0; i < rank; i++)
        t->dims[i] = dims[i];
    return SONDE_OK;
}

sonde_status sn_slot_new_tensor(sn_slot *dst, sn_dtype dtype, const int64_t *dims, int rank,
                                sn_allocator *alloc, sonde_error *err)
{
    sn_slot made = {.kind = SN_KIND_TENSOR};
    SN_TRY(make_header(&made.t, dtype, dims, rank, err));
    made.t.owner = sn_buffer_new(alloc, made.t.bytes);
    if (!made.t.owner)
        return sn_fail_memory(err, made.t.bytes);
    made.t.data = made.t.owner->data;
    if (dtype == SONDE_DTYPE_STRING) {
        sonde_string *s = made.t.data;
        for (size_t i = 0; i < made.t.bytes / sizeof *s; i++)
            s[i] = (sonde_string){"", 0};
    }
    sn_slot_clear(dst);
    *dst = made;
    return SONDE_OK;
}

sonde_status sn_slot_new_strings(sn_slot *dst, const int64_t *dims, int rank,
                                 const sonde_string *elems, sn_allocator *alloc, sonde_error *err)
{
    sn_slot made = {.kind = SN_KIND_TENSOR};
    SN_TRY(make_header(&made.t, SONDE_DTYPE_STRING, dims, rank, err));
    size_t n = made.t.bytes / sizeof *elems, total = made.t.bytes;
    for (size_t i = 0; i < n; i++)
        if (!sn_size_add(total, elems[i].size, &total))
            return sn_fail(err, SONDE_LIMIT,
                           "the strings of a tensor are larger than memory can be");
    made.t.owner = sn_buffer_new(alloc, total);
    if (!made.t.owner)
        return sn_fail_memory(err, total);
    made.t.data = made.t.owner->data;
    sonde_string *out = made.t.data;
    char *text = (char *)made.t.data + made.t.bytes;
    for (size_t i = 0; i < n; i++) {
        if (elems[i].size)
            memcpy(text, elems[i].data, elems[i].size);
        out[i] = (sonde_string){text, elems[i].size};
        text += elems[i].size;
    }
    sn_slot_clear(dst);
    *dst = made;
    return SONDE_OK;
}

/* ---- lists ---- */

struct sn_list_store {
    _Atomic int refs;    /* lists */
    _Atomic size_t used; /* places taken, by any list */
    size_t cap;
    sn_slot slots[];
};

static bool store_bytes(size_t cap, size_t *bytes)
{
    return sn_size_mul(cap, sizeof(sn_slot), bytes) &&
           sn_size_add(*bytes, sizeof(struct sn_list_store), bytes);
}

static struct sn_list_store *store_new(sn_allocator *alloc, size_t cap)
{
    size_t bytes;
    struct sn_list_store *s = store_bytes(cap, &bytes) ? sn_alloc(alloc, bytes) : NULL;
    if (!s)
        return NULL;
    atomic_init(&s->refs, 1);
    atomic_init(&s->used, 0);
    s->cap = cap;
    return s;
}

static void store_unref(sn_allocator *alloc, struct sn_list_store *s)
{
    size_t bytes = 0;
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < s->used; i++)
        sn_slot_clear(&s->slots[i]);
    (void)store_bytes(s->cap, &bytes);
    sn_free(alloc, s, bytes);
}

/* The place behind the last element, empty; NULL: it is another's, or there is none. */
static sn_slot *take_next(const sn_list *l)
{
    if (!l->store)
        return NULL;
    const size_t next = (size_t)(l->items - l->store->slots) + l->n;
    size_t expected = next;
    if (next >= l->store->cap ||
        !atomic_compare_exchange_strong_explicit(&l->store->used, &expected, next + 1,
                                                 memory_order_relaxed, memory_order_relaxed))
        return NULL;
    return memset(&l->store->slots[next], 0, sizeof(sn_slot));
}

sn_list *sn_list_new(sn_allocator *alloc, size_t cap)
{
    sn_list *l = sn_alloc_zero(alloc, sizeof *l);
    if (!l)
        return NULL;
    atomic_init(&l->refs, 1);
    l->alloc = alloc;
    if (cap) {
        l->store = store_new(alloc, cap);
        if (!l->store) {
            sn_free(alloc, l, sizeof *l);
            return NULL;
        }
        l->items = l->store->slots;
    }
    return l;
}

sn_list *sn_list_ref(sn_list *l)
{
    if (l)
        atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

void sn_list_unref(sn_list *l)
{
    if (!l || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) != 1)
        return;
    store_unref(l->alloc, l->store);
    sn_free(l->alloc, l, sizeof *l);
}

/* A list of l's kind with elements [0, at) and [from, n) of it, in a store of its own. */
static sonde_status copy_of(sn_list **out, const sn_list *l, size_t at, size_t from, size_t cap,
                            sonde_error *err)
{
    sn_list *made = sn_list_new(l->alloc, cap ? cap : 1);
    if (!made)
        return sn_fail_memory(err, cap * sizeof *l->items);
    made->elem_dtype = l->elem_dtype;
    made->elem_kind = l->elem_kind;
    /* What a list holds is whole already: sharing it cannot fail. */
    for (size_t i = 0; i < l->n; i++) {
        if (i >= at && i < from)
            continue;
        (void)sn_slot_share(take_next(made), &l->items[i], false, l->alloc, err);
        made->n++;
    }
    *out = made;
    return SONDE_OK;
}

/* Elements [first, first + n) of l, in the same store. */
static sonde_status window_of(sn_list **out, const sn_list *l, size_t first, size_t n,
                              sonde_error *err)
{
    sn_list *made = sn_list_new(l->alloc, 0);
    if (!made)
        return sn_fail_memory(err, sizeof *made);
    made->elem_dtype = l->elem_dtype;
    made->elem_kind = l->elem_kind;
    atomic_fetch_add_explicit(&l->store->refs, 1, memory_order_relaxed);
    made->store = l->store;
    made->items = l->items + first;
    made->n = n;
    *out = made;
    return SONDE_OK;
}

/* Twice the elements and a few: so often copying is rare. */
static bool roomy(size_t n, size_t *cap)
{
    return sn_size_mul(n, 2, cap) && sn_size_add(*cap, 4, cap);
}

sonde_status sn_list_push(sn_list *l, const sn_slot *s, sonde_error *err)
{
    sn_slot *place = take_next(l);
    if (!place) {
        sn_list *larger;
        size_t cap;
        if (!roomy(l->n, &cap))
            return sn_fail_memory(err, SIZE_MAX);
        SN_TRY(copy_of(&larger, l, l->n, l->n, cap, err));
        struct sn_list_store *old = l->store;
        l->store = larger->store;
        l->items = larger->items;
        larger->store = old;
        sn_list_unref(larger);
        place = take_next(l);
    }
    SN_TRY(sn_slot_share(place, s, true, l->alloc, err));
    l->n++;
    return SONDE_OK;
}

sonde_status sn_list_with(sn_list **out, const sn_list *l, size_t at, const sn_slot *s,
                          sonde_error *err)
{
    sn_list *made = NULL;
    /* A list inside of a list never comes later than its store: there are no circles. */
    sn_slot *place = at == l->n && s->kind == SN_KIND_TENSOR ? take_next(l) : NULL;
    size_t cap = l->n;
    if (place) { /* if anything fails from here on, the place stays taken and empty */
        SN_TRY(window_of(&made, l, 0, l->n, err));
        sonde_status st = sn_slot_share(place, s, true, l->alloc, err);
        if (st != SONDE_OK) {
            sn_list_unref(made);
            return st;
        }
        made->n++;
        *out = made;
        return SONDE_OK;
    }
    if (!(at == l->n ? roomy(l->n, &cap) : sn_size_add(l->n, 1, &cap)))
        return sn_fail_memory(err, SIZE_MAX);
    SN_TRY(copy_of(&made, l, l->n, l->n, cap, err));
    sonde_status st = sn_list_push(made, s, err);
    if (st != SONDE_OK) {
        sn_list_unref(made);
        return st;
    }
    const sn_slot last = made->items[l->n];
    memmove(&made->items[at + 1], &made->items[at], (l->n - at) * sizeof last);
    made->items[at] = last;
    *out = made;
    return SONDE_OK;
}

sonde_status sn_list_without(sn_list **out, const sn_list *l, size_t at, sonde_error *err)
{
    if (at == 0 || at + 1 == l->n)
        return window_of(out, l, at == 0, l->n - 1, err);
    return copy_of(out, l, at, at + 1, l->n - 1, err);
}
