/* SPDX-License-Identifier: Apache-2.0 */
/* A run of elementwise f32 functions, each of the result before it: y = f3(f2(f1(x), b), c). Every
 * piece of the tensor goes through all functions while it is in the first-level cache. */
#ifndef SN_COMPUTE_CHAIN_H
#define SN_COMPUTE_CHAIN_H

#include "compute/eltwise.h"

/* How the other operand of a function lies against the result: element i of the result meets
 * operand element i / repeat % count. */
typedef struct sn_chain_operand {
    size_t repeat, count;
} sn_chain_operand;

typedef struct sn_chain_link {
    sn_elt elt;
    bool binary;
    bool swapped;     /* the running result is the second operand */
    uint32_t operand; /* of a binary function: index into the operands given at the run */
    sn_chain_operand lies;
    float params[2];
} sn_chain_link;

typedef struct sn_chain {
    sn_chain_link *links;
    uint32_t n;
    size_t total; /* elements */
    size_t cost;  /* of one element in additions */
} sn_chain;

/* False: `dims` of an operand are not such a pattern of the result's. */
bool sn_chain_lies(sn_chain_operand *o, const int64_t *out, int out_rank, const int64_t *dims,
                   int rank);
/* y may be x when no operand is. */
void sn_chain_run(const sn_chain *c, float *y, const float *x, const float *const *operands,
                  sn_pool *pool);

#endif
