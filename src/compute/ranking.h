/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps of numbered elements in order of their keys (sn_elem_key); private to compute. Of equal
 * keys the lower number is the better one. */
#ifndef SN_COMPUTE_RANKING_H
#define SN_COMPUTE_RANKING_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_ranked {
    uint64_t key;
    int64_t index;
} sn_ranked;

static inline bool sn_ranked_worse(const sn_ranked *a, const sn_ranked *b)
{
    return a->key < b->key || (a->key == b->key && a->index > b->index);
}

/* Item i of a heap of n finds its place below; the worst item is at the root. */
static inline void sn_ranked_sift(sn_ranked *heap, int64_t n, int64_t i)
{
    const sn_ranked item = heap[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && sn_ranked_worse(&heap[child + 1], &heap[child]))
            child++;
        if (!sn_ranked_worse(&heap[child], &item))
            break;
        heap[i] = heap[child];
    }
    heap[i] = item;
}

/* Heap sort, best first: no memory and no bad cases. */
static inline void sn_ranked_sort(sn_ranked *items, int64_t n)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sn_ranked_sift(items, n, i);
    for (int64_t i = n - 1; i > 0; i--) {
        const sn_ranked worst = items[0];
        items[0] = items[i];
        items[i] = worst;
        sn_ranked_sift(items, i, 0);
    }
}

#endif
