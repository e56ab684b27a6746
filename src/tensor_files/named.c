/* SPDX-License-Identifier: Apache-2.0 */
/* Values with names: what every format reads into and writes from. */
#include "tensor_files/formats.h"

void sn_named_init(sn_named_list *l, sn_allocator *alloc)
{
    *l = (sn_named_list){.alloc = alloc};
    sn_arena_init(&l->arena, alloc);
}

void sn_named_free(sn_named_list *l)
{
    for (size_t i = 0; i < l->list.n; i++)
        sn_slot_clear(&l->list.data[i].slot);
    sn_vec_free(&l->list, l->alloc);
    sn_arena_free(&l->arena);
}

bool sn_named_wants(const sn_named_list *l, const char *name, const int64_t *dims, int rank)
{
    return !l->wants || l->wants(l->wants_user, name, dims, (size_t)rank);
}

sonde_status sn_named_add(sn_named_list *l, const char *name, sn_slot *slot, sonde_error *err)
{
    sn_named n = {.name = sn_arena_strdup(&l->arena, name ? name : ""), .slot = *slot};
    if (!n.name || !sn_vec_push(&l->list, l->alloc, n))
        return sn_fail_memory(err, sizeof n);
    *slot = (sn_slot){0};
    return SONDE_OK;
}

/* ---- element types files have no word for ---- */

sonde_status sn_narrow_elements(sn_slot *s, const sn_type *as, sonde_error *err)
{
    if (!as || as->kind != SN_KIND_TENSOR || sn_dtype_bits(as->dtype) >= 8 ||
        as->dtype == SONDE_DTYPE_UNDEFINED)
        return SONDE_OK;
    if (s->t.dtype != SONDE_DTYPE_U8 && s->t.dtype != SONDE_DTYPE_I8)
        return SONDE_OK;
    int bits = (int)sn_dtype_bits(as->dtype);
    bool is_signed = sn_dtype_is_int(as->dtype) && sn_dtype_is_signed(as->dtype);
    int low = is_signed ? -(1 << (bits - 1)) : 0;
    int high = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    for (size_t i = 0; i < s->t.bytes; i++) {
        int v = s->t.dtype == SONDE_DTYPE_I8 ? ((const int8_t *)s->t.data)[i]
                                             : ((const uint8_t *)s->t.data)[i];
        if (v < low || v > high)
            return sn_fail(
                err, SONDE_INVALID_ARGUMENT,
                "the file contains the value %d, which is outside the range of %s (%d to %d)", v,
                sn_dtype_onnx_name(as->dtype), low, high);
    }
    s->t.dtype = as->dtype;
    return SONDE_OK;
}
