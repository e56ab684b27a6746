/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: exporters.inc as an array, and the choice by file suffix. */
#include <string.h>
#include <strings.h>

#include "export/export.h"

static const sn_exporter *const rows[] = {
#define SN_EXPORTER(symbol) &symbol,
#include "export/exporters.inc"
#undef SN_EXPORTER
};

const sn_exporter *sn_exporter_row(size_t k)
{
    return k < sizeof rows / sizeof rows[0] ? rows[k] : NULL;
}

const sn_exporter *sn_exporter_for_path(const char *path)
{
    const sn_exporter *best = NULL;
    size_t length = strlen(path), best_length = 0;
    const sn_exporter *row;
    for (size_t k = 0; (row = sn_exporter_row(k)) != NULL; k++) {
        size_t n = strlen(row->suffix);
        if (n > best_length && n <= length && strcasecmp(path + length - n, row->suffix) == 0) {
            best = row;
            best_length = n;
        }
    }
    return best;
}
