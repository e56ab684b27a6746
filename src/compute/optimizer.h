/* SPDX-License-Identifier: Apache-2.0 */
/* One step of an optimiser over a tensor of parameters: Adagrad, Adam, and momentum in its plain
 * and Nesterov's form, with the formulas of ONNX's training operators, in double. */
#ifndef SN_COMPUTE_OPTIMIZER_H
#define SN_COMPUTE_OPTIMIZER_H

#include "base/pool.h"
#include "compute/element.h"

typedef enum sn_optimizer_kind { SN_ADAGRAD, SN_ADAM, SN_MOMENTUM, SN_NESTEROV } sn_optimizer_kind;

typedef struct sn_optimizer {
    sn_optimizer_kind kind;
    double alpha, beta, epsilon;
    double norm;      /* what is added to the gradient: this much of the parameter */
    double norm_post; /* Adam: how much the new parameter shrinks */
    double decay;     /* Adagrad: how fast the rate falls with the count of updates */
} sn_optimizer;

/* Tensors that belong to one parameter: itself, its gradient and its states. */
static inline uint32_t sn_optimizer_inputs(sn_optimizer_kind kind)
{
    return kind == SN_ADAM ? 4 : 3;
}

/* n elements of f32 or f64 each. in: parameter, gradient, states; out: new parameter, new states,
 * each of which may be left out or be the tensor it replaces. `count`: updates done before. */
void sn_optimizer_run(const sn_optimizer *o, double rate, double count, int64_t n,
                      const sn_elems *in, const sn_elems *out, sn_pool *pool);

#endif
