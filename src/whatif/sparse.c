/* SPDX-License-Identifier: Apache-2.0 */
/* Weights with zeros in blocks of 4 outputs at one input (of a convolution: at one tap of its
 * kernel), as many as asked for. Which blocks are zero is drawn evenly, from seeds that never
 * change: pruning by magnitude leaves about as many in every row, and how long a product takes
 * depends on nothing else. */
#include "base/random.h"
#include "whatif/whatif.h"

enum { BLOCK = 4 };

static void clear_blocks(const sn_weight *w, int sparsity, uint8_t *data)
{
    const size_t size = sn_dtype_bytes(w->data->dtype);
    const uint64_t limit = UINT64_MAX / 100 * (uint64_t)sparsity;
    for (int64_t block = 0; block * BLOCK < w->outputs; block++)
        for (int64_t k = 0; k < w->inputs; k++) {
            const uint64_t i = (uint64_t)(block * w->inputs + k);
            if (sn_mix64((i + 1) * SN_MIX64_STEP) >= limit)
                continue;
            for (int64_t o = block * BLOCK; o < (block + 1) * BLOCK && o < w->outputs; o++)
                memset(data + (size_t)(o * w->output_step + k * w->input_step) * size, 0, size);
        }
}

sonde_status sn_variant_sparse(const sn_variant *v, sn_graph *g)
{
    sn_graph_each (n, g) {
        const int sparsity = sn_variant_sparsity(v, n);
        sn_weight w;
        if (!sparsity || !sn_weight_of(n, &w) || !sn_weight_may_be_sparse(&w))
            continue;
        sn_value *made = NULL;
        void *data = NULL;
        SN_TRY(sn_variant_constant(v, g, w.data->dtype, w.data->dims, w.data->rank, &made, &data));
        sn_tensor_read(w.data, 0, sn_tensor_count(w.data), data);
        clear_blocks(&w, sparsity, data);
        sn_node_set_input(w.holder, w.input, made);
        v->changed[n->origins[0]] = true;
    }
    return SONDE_OK;
}
