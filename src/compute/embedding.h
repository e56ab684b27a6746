/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up rows of tables and adding them, as the first layer of a transformer does. */
#ifndef SN_COMPUTE_EMBEDDING_H
#define SN_COMPUTE_EMBEDDING_H

#include <stdbool.h>
#include <stdint.h>

#include "sonde/types.h"

/* Token r takes row ids[r % n], or row r % n where there are no ids. */
typedef struct sn_embedding_table {
    sonde_dtype dtype; /* F32, F16 or BF16 */
    const void *data;  /* [rows][width]; NULL: this table takes no part */
    int64_t rows;
    const int32_t *ids;
    int64_t n;
} sn_embedding_table;

/* sum = the rows of the tables for each token, in f32. Returns the first token one of whose ids is
 * outside of its table, or -1. */
int64_t sn_embedding_run(const sn_embedding_table *tables, int n_tables, int64_t tokens,
                         int64_t width, float *sum);

/* out[i] = how many of the `len` entries of row i of the mask are 1; mask NULL: none. */
void sn_embedding_lengths(int32_t *out, const int32_t *mask, int64_t rows, int64_t len);

#endif
