/* SPDX-License-Identifier: Apache-2.0 */
/* Which driver calls the rows of a slot. A slot whose signature has none does not link: the name of
 * the missing function says which. */
#include <string.h>

#include "row_drivers.h"

/* ------------------------------------------------------------------ slots */
static const struct {
    const char *slot;
    void (*prepare)(bench_row *r);
} drivers[] = {
#define SN_SLOT(slot, signature, read, weights, written, arrangement) {#slot, prepare_##signature},
#include "kernels/slots.inc"
#undef SN_SLOT
};

void bench_row_prepare(bench_row *r)
{
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
        if (strcmp(drivers[i].slot, r->row->slot->name) == 0)
            drivers[i].prepare(r);
}

void bench_row_free(bench_row *r)
{
    for (int i = 0; i < r->arrays; i++)
        free(r->array[i]);
}
