/* SPDX-License-Identifier: Apache-2.0 */
/* Booleans that come from elsewhere. Inside, a boolean is a byte that is 0 or 1: operators compare,
 * add and copy such bytes. Readers of files see to that, and every operator writes nothing else, so
 * what is left is memory of the caller, where any byte but 0 is true: it is looked at in each run,
 * and copied only if it has such a byte. */
#include <string.h>

#include "api/internal.h"

static bool is_odd(const sn_tensor *t)
{
    const uint64_t others = UINT64_C(0xFEFEFEFEFEFEFEFE);
    const uint8_t *p = t->data;
    size_t i = 0;
    if (t->dtype != SONDE_DTYPE_BOOL)
        return false;
    for (; i + 64 <= t->bytes; i += 64) {
        uint64_t words[8], all = 0;
        memcpy(words, p + i, sizeof words);
        for (int k = 0; k < 8; k++)
            all |= words[k];
        if (all & others)
            return true;
    }
    for (; i < t->bytes; i++)
        if (p[i] > 1)
            return true;
    return false;
}

static bool has_odd(const sn_slot *s)
{
    if (s->kind == SN_KIND_TENSOR)
        return is_odd(&s->t);
    bool found = false;
    for (size_t i = 0; s->list && i < s->list->n && !found; i++)
        found = has_odd(&s->list->items[i]); /* lists nest as deep as types do */
    return found;
}

static sonde_status clean_tensor(const sn_tensor *t, sn_allocator *alloc, sn_slot *clean,
                                 sonde_error *err)
{
    SN_TRY(sn_slot_new_tensor(clean, t->dtype, t->dims, t->rank, alloc, err));
    const uint8_t *from = t->data;
    uint8_t *to = clean->t.data;
    for (size_t i = 0; i < t->bytes; i++)
        to[i] = from[i] != 0;
    return SONDE_OK;
}

static sonde_status clean_slot(const sn_slot *s, sn_allocator *alloc, sn_slot *clean,
                               sonde_error *err)
{
    if (!has_odd(s))
        return sn_slot_share(clean, s, false, alloc, err);
    if (s->kind == SN_KIND_TENSOR)
        return clean_tensor(&s->t, alloc, clean, err);
    sn_list *list = sn_list_new(alloc, s->list->n);
    if (!list)
        return sn_fail_memory(err, s->list->n * sizeof(sn_slot));
    list->elem_dtype = s->list->elem_dtype;
    list->elem_kind = s->list->elem_kind;
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < s->list->n && st == SONDE_OK; i++) {
        sn_slot item = {0};
        st = clean_slot(&s->list->items[i], alloc, &item, err);
        if (st == SONDE_OK)
            st = sn_list_push(list, &item, err);
        sn_slot_clear(&item);
    }
    if (st != SONDE_OK) {
        sn_list_unref(list);
        return st;
    }
    *clean = (sn_slot){.kind = s->kind, .list = list};
    return SONDE_OK;
}

sonde_status sn_api_clean_truth(const sn_slot **in, size_t n, sn_allocator *alloc, sn_slot **clean,
                                sonde_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!has_odd(in[i]))
            continue;
        if (!*clean && !(*clean = sn_alloc_zero(alloc, n * sizeof **clean)))
            return sn_fail_memory(err, n * sizeof **clean);
        SN_TRY(clean_slot(in[i], alloc, &(*clean)[i], err));
        in[i] = &(*clean)[i];
    }
    return SONDE_OK;
}
