/* SPDX-License-Identifier: Apache-2.0 */
/* The list of operators, as users see it: without those that only passes make. */
#include <string.h>

#include "api/internal.h"
#include "ops/framework/op.h"
#include "sonde/experimental/inspect.h"

sonde_status sonde_operator_get(size_t index, sonde_operator_info *info, sonde_error *err)
{
    const sn_op *op;
    if (!info || info->struct_size < sizeof *info)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "info is NULL or was not initialised with SONDE_INIT");
    for (size_t row = 0; (op = sn_op_row(row)); row++)
        for (; op->name; op++) {
            if (strcmp(op->domain, "sonde") == 0 || index--)
                continue;
            info->name = op->name;
            info->domain = op->domain;
            info->since = op->since;
            info->until = op->until;
            info->types = op->types ? op->types : "";
            return SONDE_OK;
        }
    return sn_fail(err, SONDE_NOT_FOUND, "the index is larger than the number of operators");
}
