/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a tensor file: the first byte picks the reader, the rest is the file. What is read
 * is written again, so that writers see every value readers can make. */
#include <stddef.h>

#include "onnx/onnx.h"
#include "tensor_files/formats.h"

#define MAX_MEMORY ((size_t)256 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool discard(void *user, const void *data, size_t bytes)
{
    (void)user, (void)data, (void)bytes;
    return true;
}

static void read_npy(const uint8_t *data, size_t size, const sn_type *as, sn_named_list *list)
{
    sn_slot s = {0};
    if (sn_npy_read(data, size, as, list->alloc, &s, NULL) == SONDE_OK)
        (void)sn_named_add(list, "", &s, NULL);
    sn_slot_clear(&s);
}

static void read_value(const uint8_t *data, size_t size, sn_kind kind, sn_named_list *list)
{
    sn_slot s = {0};
    const char *name = "";
    sn_type as = {.kind = kind, .rank = -1};
    if (sn_onnx_read_value(data, size, &as, list->alloc, &s, &name, &list->arena, NULL) == SONDE_OK)
        (void)sn_named_add(list, name, &s, NULL);
    sn_slot_clear(&s);
}

static void read_picture(const uint8_t *data, size_t size, sn_named_list *list)
{
    sn_picture p;
    sn_slot s = {0};
    static const sn_dtype types[] = {SONDE_DTYPE_F32, SONDE_DTYPE_F16, SONDE_DTYPE_U8,
                                     SONDE_DTYPE_I8};
    sn_image_options o;
    sn_image_options_raw(&o, types[size % 4]);
    o.width = o.height = 8;
    if (sn_picture_decode(data, size, list->alloc, &p, NULL) != SONDE_OK)
        return;
    if (sn_image_to_tensor(&p, &o, list->alloc, &s, NULL) == SONDE_OK)
        (void)sn_named_add(list, "", &s, NULL);
    sn_slot_clear(&s);
    sn_picture_free(&p, list->alloc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sn_allocator alloc;
    sn_named_list list;
    if (size == 0)
        return 0;
    unsigned choice = data[0];
    data++, size--;
    sn_allocator_init_system(&alloc);
    alloc.limit_bytes = MAX_MEMORY;
    sn_named_init(&list, &alloc);
    sn_type as = {.kind = SN_KIND_TENSOR, .dtype = (sn_dtype)(choice >> 3 & 15), .rank = -1};
    switch (choice & 7) {
    case 0:
        read_npy(data, size, &as, &list);
        break;
    case 1:
        (void)sn_npz_read(data, size, &as, &list, NULL);
        break;
    case 2:
        (void)sn_safetensors_read(data, size, &as, &list, NULL);
        break;
    case 3:
        read_picture(data, size, &list);
        break;
    default:
        read_value(data, size, (sn_kind)((choice & 3) + 1), &list);
        break;
    }
    sonde_status (*writers[])(const sn_named_list *, sn_bytes *,
                              sonde_error *) = {sn_npz_write, sn_safetensors_write};
    for (size_t k = 0; k < 2; k++) {
        sn_bytes out = {.alloc = &alloc};
        (void)writers[k](&list, &out, NULL);
        sn_bytes_free(&out);
    }
    for (size_t i = 0; i < list.list.n; i++)
        (void)sn_onnx_write_value(&list.list.data[i].slot, list.list.data[i].name, discard, NULL,
                                  NULL);
    sn_named_free(&list);
    if (atomic_load(&alloc.live_bytes) != 0)
        __builtin_trap(); /* a leak */
    return 0;
}
