/* SPDX-License-Identifier: Apache-2.0 */
/* Elements become order-preserving integer keys, so one heap per thread serves every type. */
#include "compute/topk.h"

#include "compute/element.h"
#include "compute/ranking.h"
#include "compute/small_floats.h"

enum { PARALLEL_ELEMS = 16384 };

typedef struct job {
    const sn_topk *p;
    void *values;
    int64_t *indices;
    const void *x;
    sn_ranked *heaps;
    int64_t lanes, per_task;
} job;

static void topk_lane(const job *j, int64_t lane, sn_ranked *heap)
{
    const sn_topk *p = j->p;
    const int64_t outer = lane / p->inner, in = lane % p->inner,
                  base = outer * p->n * p->inner + in;
    const uint64_t flip = p->largest ? 0 : UINT64_MAX;
    for (int64_t i = 0; i < p->n; i++) {
        const sn_ranked item = {sn_elem_key(p->dtype, j->x, base + i * p->inner) ^ flip, i};
        if (i < p->k) {
            heap[i] = item;
            if (i + 1 == p->k)
                for (int64_t h = p->k / 2 - 1; h >= 0; h--)
                    sn_ranked_sift(heap, p->k, h);
        } else if (sn_ranked_worse(&heap[0], &item)) {
            heap[0] = item;
            sn_ranked_sift(heap, p->k, 0);
        }
    }
    const size_t elem = sn_dtype_bytes(p->dtype);
    const int64_t out = outer * p->k * p->inner + in;
    for (int64_t i = p->k - 1; i >= 0; i--) { /* the worst that is left goes last */
        const int64_t from = heap[0].index, to = out + i * p->inner;
        heap[0] = heap[i];
        sn_ranked_sift(heap, i, 0);
        if (j->values)
            sn_elem_copy((char *)j->values + (size_t)to * elem,
                         (const char *)j->x + (size_t)(base + from * p->inner) * elem, elem);
        if (j->indices)
            j->indices[to] = from;
    }
}

static void topk_task(void *arg, size_t task, int worker)
{
    const job *j = arg;
    const int64_t lo = (int64_t)task * j->per_task, hi = lo + j->per_task;
    for (int64_t lane = lo; lane < hi && lane < j->lanes; lane++)
        topk_lane(j, lane, j->heaps + (int64_t)worker * j->p->k);
}

bool sn_topk_scratch(int64_t k, int threads, size_t *bytes)
{
    return sn_size_mul((size_t)k, sizeof(sn_ranked), bytes) &&
           sn_size_mul(*bytes, (size_t)threads, bytes);
}

void sn_topk_run(const sn_topk *p, void *values, int64_t *indices, const void *x, void *scratch,
                 int threads, sn_pool *pool)
{
    job j = {.p = p,
             .values = values,
             .indices = indices,
             .x = x,
             .heaps = scratch,
             .lanes = p->outer * p->inner};
    if (p->k == 0 || j.lanes == 0)
        return;
    const int64_t have = sn_pool_threads(pool);
    if (have <= 1 || have > threads || j.lanes * p->n < PARALLEL_ELEMS) {
        j.per_task = j.lanes;
        topk_task(&j, 0, 0);
        return;
    }
    j.per_task = (j.lanes + have * 4 - 1) / (have * 4);
    sn_pool_run(pool, (size_t)((j.lanes + j.per_task - 1) / j.per_task), topk_task, &j);
}
