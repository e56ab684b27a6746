/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX test data: a .pb file holds one value, a folder of them holds a set. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "onnx/onnx.h"
#include "tensor_files/formats.h"

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

sonde_status sn_pb_read(const char *path, const char *name, const sn_type *as, sn_named_list *out,
                        sonde_error *err)
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
sonde_status sn_pb_read_folder(const char *path, sn_named_list *out, sonde_error *err)
{
    SN_VEC(char *) names = {0};
    sonde_status st = SONDE_OK;
    sn_arena scratch;
    DIR *dir = opendir(path);
    if (!dir)
        return sn_fail(err, SONDE_IO, "cannot open '%s': %s", path, strerror(errno));
    sn_arena_init(&scratch, out->alloc);
    for (struct dirent *e; st == SONDE_OK && (e = readdir(dir));) {
        if (!sn_has_suffix(e->d_name, ".pb"))
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
        st = sn_pb_read(file, names.data[i], NULL, out, err);
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

sonde_status sn_pb_write_folder(const char *path, const sn_named_list *l, sonde_error *err)
{
    sn_arena scratch;
    sonde_status st = SONDE_OK;
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return sn_fail(err, SONDE_IO, "cannot create the folder '%s': %s", path, strerror(errno));
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
