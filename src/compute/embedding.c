/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of tables; see embedding.h. */
#include "compute/embedding.h"

#include <string.h>

#include "compute/small_floats.h"

/* dst = or += row `id` of the table; false: no such row. */
static bool add_row(const sn_embedding_table *t, int64_t id, int64_t n, float *dst, bool first)
{
    float part[256];
    if (id < 0 || id >= t->rows)
        return false;
    const size_t elem = sn_dtype_bytes(t->dtype);
    const uint8_t *row = (const uint8_t *)t->data + (size_t)(id * n) * elem;
    for (int64_t i = 0; i < n; i += 256) {
        const int64_t m = n - i < 256 ? n - i : 256;
        sn_load_f32(0, t->dtype, part, row + (size_t)i * elem, (size_t)m);
        for (int64_t c = 0; c < m; c++)
            dst[i + c] = first ? part[c] : dst[i + c] + part[c];
    }
    return true;
}

int64_t sn_embedding_run(const sn_embedding_table *tables, int n_tables, int64_t tokens,
                         int64_t width, float *sum)
{
    for (int64_t r = 0; r < tokens; r++)
        for (int i = 0; i < n_tables; i++) {
            const sn_embedding_table *t = &tables[i];
            const int64_t at = r % t->n, id = t->ids ? t->ids[at] : at;
            if (t->data && !add_row(t, id, width, sum + r * width, i == 0))
                return r;
        }
    return -1;
}

void sn_embedding_lengths(int32_t *out, const int32_t *mask, int64_t rows, int64_t len)
{
    memset(out, 0, sizeof *out * (size_t)rows);
    for (int64_t i = 0; mask && i < rows * len; i++)
        out[i / len] += mask[i] == 1;
}
