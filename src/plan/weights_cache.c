/* SPDX-License-Identifier: Apache-2.0 */
/* The head is checked as a whole: magic, key, size and a checksum over them. The store behind it
 * has no checksum, because reading it all would cost what mapping saves; it is synced to disk
 * before it gets its name, so that a crash leaves no half of it. Who can write to the folder can
 * change the numbers a model computes with, as who can write to the model can, but not where they
 * lie. */
#include "plan/weights_cache.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/map.h"

/* Goes up when the head or a packed format changes its meaning. */
static const char format_version[] = "sonde weights 1, " SONDE_VERSION_TEXT;
static const char magic[8] = "SNWEIGHT";

typedef struct head {
    char magic[8];
    uint64_t key[2];
    uint64_t store_bytes;
    uint64_t checksum; /* of what stands before it */
} head;

void sn_weights_key_begin(sn_weights_key *k)
{
    *k = (sn_weights_key){{1, 2}};
    sn_weights_key_add(k, format_version, sizeof format_version);
}

void sn_weights_key_add(sn_weights_key *k, const void *data, size_t bytes)
{
    for (int i = 0; i < 2; i++)
        k->part[i] = sn_hash(data, bytes, k->part[i]);
}

static head head_of(const sn_weights_key *key, size_t store_bytes)
{
    head h = {.key = {key->part[0], key->part[1]}, .store_bytes = store_bytes};
    memcpy(h.magic, magic, sizeof magic);
    h.checksum = sn_hash(&h, offsetof(head, checksum), 0);
    return h;
}

void sn_weights_head_write(void *page, const sn_weights_key *key, size_t store_bytes)
{
    const head h = head_of(key, store_bytes);
    memset(page, 0, SN_WEIGHTS_HEAD_BYTES);
    memcpy(page, &h, sizeof h);
}

bool sn_weights_head_check(const void *file, size_t bytes, const sn_weights_key *key,
                           size_t store_bytes)
{
    const head expected = head_of(key, store_bytes);
    return bytes > SN_WEIGHTS_HEAD_BYTES && bytes - SN_WEIGHTS_HEAD_BYTES == store_bytes &&
           memcmp(file, &expected, sizeof expected) == 0;
}

static bool path_of(const char *dir, const sn_weights_key *key, char *path, size_t bytes)
{
    const int n = snprintf(path, bytes, "%s/%016llx%016llx.weights", dir,
                           (unsigned long long)key->part[0], (unsigned long long)key->part[1]);
    return n > 0 && (size_t)n < bytes;
}

static void close_file(void *user, void *data, size_t bytes)
{
    sn_file *f = user;
    sn_allocator *alloc = f->alloc;
    (void)data, (void)bytes;
    sn_file_close(f);
    sn_free(alloc, f, sizeof *f);
}

sn_buffer *sn_weights_cache_find(const char *dir, const sn_weights_key *key, size_t store_bytes,
                                 sn_allocator *alloc)
{
    char path[4096];
    sn_file *f = sn_alloc(alloc, sizeof *f);
    if (!f || !path_of(dir, key, path, sizeof path) ||
        sn_file_open(f, path, true, alloc, NULL) != SONDE_OK) {
        sn_free(alloc, f, sizeof *f);
        return NULL;
    }
    sn_buffer *b = NULL;
    if (f->mapped && sn_weights_head_check(f->data, f->bytes, key, store_bytes))
        b = sn_buffer_wrap(alloc, (void *)(uintptr_t)f->data, f->bytes, close_file, f);
    if (!b)
        close_file(f, NULL, 0);
    return b;
}

sonde_status sn_weights_cache_save(const char *dir, const sn_weights_key *key, sn_buffer *whole,
                                   sonde_error *err)
{
    char path[4096];
    if (!path_of(dir, key, path, sizeof path))
        return sn_fail(err, SONDE_IO, "the path of the weights' cache is too long");
    sn_weights_head_write(whole->data, key, whole->bytes - SN_WEIGHTS_HEAD_BYTES);
    (void)mkdir(dir, 0700); /* whether it is there now shows below */
    return sn_file_write_synced(path, whole->data, whole->bytes, err);
}
