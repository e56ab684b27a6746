/* SPDX-License-Identifier: Apache-2.0 */
/* The list of operators, ops.inc as an array. It knows every operator; of the framework's files
 * only the registry knows it. */
#include "ops/framework/op.h"

const sn_op *const sn_op_rows[] = {
#define SN_OP(symbol) symbol,
#include "ops/ops.inc"
#undef SN_OP
    NULL};

const size_t sn_op_count = sizeof(sn_op_rows) / sizeof(sn_op_rows[0]) - 1;
_Static_assert(sizeof(sn_op_rows) / sizeof(sn_op_rows[0]) * 2 < SN_OP_TABLE,
               "the registry's table is too full; double SN_OP_TABLE");
