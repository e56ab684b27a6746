/* SPDX-License-Identifier: Apache-2.0 */
/* Named values, and the choice of a format by suffix. ONNX test data (.pb) is handled here: one
 * file holds one value, a folder holds a set of them. */
#include "tensor_files/tensor_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "onnx/onnx.h"
#include "tensor_files/formats.h"

/* ---- bytes ---- */

void sn_bytes_put(sn_bytes *b, const void *data, size_t bytes)
{
    if (b->failed || !bytes)
        return;
    if (!sn_vec_reserve(&b->v, b->alloc, bytes)) {
        b->failed = true;
        return;
    }
    memcpy(b->v.data + b->v.n, data, bytes);
    b->v.n += bytes;
}

void sn_bytes_le(sn_bytes *b, uint64_t v, size_t bytes)
{
    sn_bytes_put(b, &v, bytes); /* little-endian, as every machine sonde runs on */
}

void sn_bytes_free(sn_bytes *b)
{
    sn_vec_free(&b->v, b->alloc);
}

/* ---- lists ---- */

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
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "the file has the value %d, outside of %s (%d to %d)", v,
                           sn_dtype_onnx_name(as->dtype), low, high);
    }
    s->t.dtype = as->dtype;
    return SONDE_OK;
}

/* ---- .pb ---- */

/* Without a type to go by, what the bytes can be read as: a tensor, else a sequence, optional or
 * map that holds something (nearly any message passes for an empty one). */
static sonde_status read_pb_bytes(const sn_file *f, const sn_type *as, const char *fallback_name,
                                  sn_named_list *out, sonde_error *err)
{
    static const sn_kind guesses[] = {SN_KIND_TENSOR, SN_KIND_SEQUENCE, SN_KIND_OPTIONAL,
                                      SN_KIND_MAP};
    bool known = as && as->kind != SN_KIND_NONE;
    sn_slot slot = {0};
    const char *name = "";
    sonde_status st = SONDE_INTERNAL;
    sonde_error first = {0};
    for (size_t k = 0; k < (known ? 1 : sizeof guesses / sizeof guesses[0]); k++) {
        sn_type guess = {.kind = guesses[k], .rank = -1};
        st = sn_onnx_read_value(f->data, f->bytes, known ? as : &guess, out->alloc, &slot, &name,
                                &out->arena, k ? NULL : &first);
        if (st == SONDE_OUT_OF_MEMORY || (st == SONDE_OK && (known || k == 0 || slot.list->n)))
            break;
        sn_slot_clear(&slot);
        st = SONDE_INVALID_ARGUMENT;
    }
    if (st != SONDE_OK)
        return sn_fail(err, st == SONDE_OUT_OF_MEMORY ? st : first.status, "%s", first.message);
    st = sn_named_add(out, name[0] ? name : fallback_name, &slot, err);
    sn_slot_clear(&slot);
    return st;
}

static const char *suffix_of(const char *path)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    return dot && (!slash || dot > slash) ? dot : "";
}

static bool has_suffix(const char *path, const char *suffix)
{
    return strcasecmp(suffix_of(path), suffix) == 0;
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

/* "input_2.pb" before "input_10.pb": runs of digits compare as numbers. */
static int natural_order(const void *pa, const void *pb)
{
    const unsigned char *a = *(const unsigned char *const *)pa,
                        *b = *(const unsigned char *const *)pb;
    while (*a && *b) {
        if (is_digit(*a) && is_digit(*b)) {
            while (*a == '0')
                a++;
            while (*b == '0')
                b++;
            size_t na = strspn((const char *)a, "0123456789"),
                   nb = strspn((const char *)b, "0123456789");
            if (na != nb)
                return na < nb ? -1 : 1;
            int c = memcmp(a, b, na);
            if (c)
                return c;
            a += na;
            b += nb;
        } else {
            if (*a != *b)
                return *a < *b ? -1 : 1;
            a++;
            b++;
        }
    }
    return (int)*a - (int)*b;
}

static sonde_status read_pb_file(const char *path, const char *name, const sn_type *as,
                                 sn_named_list *out, sonde_error *err)
{
    sn_file f;
    SN_TRY(sn_file_open(&f, path, !out->no_mmap, out->alloc, err));
    sonde_status st = read_pb_bytes(&f, as, name, out, err);
    sn_file_close(&f);
    if (st != SONDE_OK && st != SONDE_OUT_OF_MEMORY)
        sn_error_prefix(err, "'%.300s'", path);
    return st;
}

/* Every .pb of a folder, in natural order; a value without a name is called after its file. */
static sonde_status read_folder(const char *path, sn_named_list *out, sonde_error *err)
{
    SN_VEC(char *) names = {0};
    sonde_status st = SONDE_OK;
    sn_arena scratch;
    DIR *dir = opendir(path);
    if (!dir)
        return sn_fail(err, SONDE_IO, "cannot open '%s': %s", path, strerror(errno));
    sn_arena_init(&scratch, out->alloc);
    for (struct dirent *e; st == SONDE_OK && (e = readdir(dir));) {
        if (!has_suffix(e->d_name, ".pb"))
            continue;
        char *name = sn_arena_strdup(&scratch, e->d_name);
        if (!name || !sn_vec_push(&names, out->alloc, name))
            st = sn_fail_memory(err, sizeof name);
    }
    closedir(dir);
    if (st == SONDE_OK && names.n == 0)
        st = sn_fail(err, SONDE_NOT_FOUND, "the folder '%s' has no .pb files", path);
    if (names.n)
        qsort(names.data, names.n, sizeof *names.data, natural_order);
    for (size_t i = 0; i < names.n && st == SONDE_OK; i++) {
        char *file = sn_arena_printf(&scratch, "%s/%s", path, names.data[i]);
        if (!file) {
            st = sn_fail_memory(err, strlen(path));
            break;
        }
        names.data[i][strlen(names.data[i]) - 3] = 0; /* the stem */
        st = read_pb_file(file, names.data[i], NULL, out, err);
    }
    sn_vec_free(&names, out->alloc);
    sn_arena_free(&scratch);
    return st;
}

static bool append(void *user, const void *data, size_t bytes)
{
    sn_bytes *b = user;
    sn_bytes_put(b, data, bytes);
    return !b->failed;
}

static sonde_status write_folder(const char *path, const sn_named_list *l, sonde_error *err)
{
    sn_arena scratch;
    sonde_status st = SONDE_OK;
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return sn_fail(err, SONDE_IO, "cannot make the folder '%s': %s", path, strerror(errno));
    sn_arena_init(&scratch, l->alloc);
    for (size_t i = 0; i < l->list.n && st == SONDE_OK; i++) {
        sn_bytes b = {.alloc = l->alloc};
        char *file = sn_arena_printf(&scratch, "%soutput_%zu.pb", path, i);
        st = file
                 ? sn_onnx_write_value(&l->list.data[i].slot, l->list.data[i].name, append, &b, err)
                 : sn_fail_memory(err, strlen(path));
        if (b.failed)
            st = sn_fail_memory(err, b.v.n);
        if (st == SONDE_OK)
            st = sn_file_write(file, b.v.data ? (const void *)b.v.data : "", b.v.n, err);
        sn_bytes_free(&b);
    }
    sn_arena_free(&scratch);
    return st;
}

/* ---- by suffix ---- */

/* The size and the layout an image input wants, as far as its type tells. */
static void image_options_from(const sn_type *as, sn_image_options *o)
{
    sn_image_options_default(o);
    if (!as || as->kind != SN_KIND_TENSOR || as->rank != 4)
        return;
    const sn_dim *d = as->dims;
    o->nhwc = d[3] == 3 && d[1] != 3;
    sn_dim h = d[o->nhwc ? 1 : 2], w = d[o->nhwc ? 2 : 3];
    if (h > 0 && h <= 1 << 14)
        o->height = (int)h;
    if (w > 0 && w <= 1 << 14)
        o->width = (int)w;
}

static sonde_status read_image(const char *path, const sn_type *as, sn_named_list *out,
                               sonde_error *err)
{
    sn_image_options o;
    sn_slot slot = {0};
    image_options_from(as, &o);
    o.no_mmap = out->no_mmap;
    SN_TRY(sn_tensor_file_read_image(path, &o, out->alloc, &slot, err));
    sonde_status st = sn_named_add(out, "", &slot, err);
    sn_slot_clear(&slot);
    return st;
}

static sonde_status read_npy(const uint8_t *data, size_t bytes, const sn_type *as,
                             sn_named_list *out, sonde_error *err)
{
    sn_slot slot = {0};
    SN_TRY(sn_npy_read(data, bytes, as, out->alloc, &slot, err));
    sonde_status st = sn_named_add(out, "", &slot, err);
    sn_slot_clear(&slot);
    return st;
}

static sonde_status write_npy(const sn_named_list *l, sn_bytes *out, sonde_error *err)
{
    if (l->list.n != 1)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "a .npy file holds one tensor, not %zu; use .npz or .safetensors",
                       l->list.n);
    if (l->list.data[0].slot.kind != SN_KIND_TENSOR)
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "'%.200s' is not a tensor; write a folder of .pb files",
                       l->list.data[0].name);
    return sn_npy_write(&l->list.data[0].slot.t, out, err);
}

static const struct format {
    const char *suffix;
    sonde_status (*read)(const uint8_t *data, size_t bytes, const sn_type *as, sn_named_list *out,
                         sonde_error *err);
    sonde_status (*write)(const sn_named_list *l, sn_bytes *out, sonde_error *err);
} formats[] = {
    {".npy", read_npy, write_npy},
    {".npz", sn_npz_read, sn_npz_write},
    {".safetensors", sn_safetensors_read, sn_safetensors_write},
};

static const struct format *find_format(const char *path)
{
    for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++)
        if (has_suffix(path, formats[k].suffix))
            return &formats[k];
    return NULL;
}

sonde_status sn_tensor_file_read(const char *path, const sn_type *as, sn_named_list *out,
                                 sonde_error *err)
{
    const struct format *format = find_format(path);
    struct stat info;
    sn_file f;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return read_folder(path, out, err);
    if (has_suffix(path, ".pb"))
        return read_pb_file(path, "", as, out, err);
    if (sn_is_image_path(path))
        return read_image(path, as, out, err);
    if (!format)
        return sn_fail(
            err, SONDE_UNSUPPORTED,
            "cannot tell what '%.300s' is; .npy, .npz, .safetensors, .pb, .jpg, .png and .ppm "
            "can be read",
            path);
    SN_TRY(sn_file_open(&f, path, !out->no_mmap, out->alloc, err));
    sonde_status st = format->read(f.data, f.bytes, as, out, err);
    sn_file_close(&f);
    if (st != SONDE_OK && st != SONDE_OUT_OF_MEMORY)
        sn_error_prefix(err, "'%.300s'", path);
    return st;
}

sonde_status sn_tensor_file_write(const char *path, const sn_named_list *l, sonde_error *err)
{
    const struct format *format = find_format(path);
    size_t n = strlen(path);
    if (n && path[n - 1] == '/')
        return write_folder(path, l, err);
    if (!format)
        return sn_fail(
            err, SONDE_UNSUPPORTED,
            "cannot tell what to write to '%.300s'; .npy, .npz, .safetensors or a folder "
            "ending in / can be written",
            path);
    sn_bytes b = {.alloc = l->alloc};
    sonde_status st = format->write(l, &b, err);
    if (st == SONDE_OK && b.failed)
        st = sn_fail_memory(err, b.v.n);
    if (st == SONDE_OK)
        st = sn_file_write(path, b.v.data ? (const void *)b.v.data : "", b.v.n, err);
    sn_bytes_free(&b);
    return st;
}
