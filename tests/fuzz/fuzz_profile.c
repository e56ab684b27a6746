/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a saved profile: the first byte picks the reader, or leaves the choice to the
 * content; the rest is the file. What is read is written again in every format and compared with
 * itself, so that everything behind a reader sees every profile a file can make. */
#include <stddef.h>

#include "export/export.h"
#include "import/import.h"
#include "profile/compare.h"

#define MAX_MEMORY ((size_t)256 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool discard(sn_sink *sink, const void *data, size_t bytes)
{
    (void)sink, (void)data, (void)bytes;
    return true;
}

static void use(const sn_profile *p)
{
    const sn_exporter *row;
    for (size_t k = 0; (row = sn_exporter_row(k)) != NULL; k++) {
        sn_sink sink = {.write = discard};
        (void)row->write(p, &sink, NULL);
    }
    sn_comparison c;
    if (sn_profile_compare(p, p, SN_BY_NODE, p->alloc, &c, NULL) == SONDE_OK)
        sn_comparison_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sn_allocator alloc;
    sn_profile *p = NULL;
    if (size == 0)
        return 0;
    const sn_importer *row = sn_importer_row(data[0] % 8);
    data++, size--;
    sn_allocator_init_system(&alloc);
    alloc.limit_bytes = MAX_MEMORY;
    if (!row) {
        (void)sn_import_bytes(data, size, "fuzz", &alloc, &p, NULL);
    } else if (sn_profile_new(&p, &alloc, NULL) == SONDE_OK &&
               row->read(data, size, p, NULL) != SONDE_OK) {
        sn_profile_free(p);
        p = NULL;
    }
    if (p)
        use(p);
    sn_profile_free(p);
    if (atomic_load(&alloc.live_bytes) != 0)
        __builtin_trap(); /* a leak */
    return 0;
}
