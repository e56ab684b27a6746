/* SPDX-License-Identifier: Apache-2.0 */
/* One recurrent layer of f32 (RNN, GRU, LSTM), one or two directions. The input part of all gates
 * and all steps is one matrix product. A step of the usual LSTM or GRU (sigmoid and tanh, no
 * peepholes, no clip) is one call of a kernel that computes gates and cell together; other cells
 * multiply the state with the recurrence weights and then pass over the gates. Weights are always
 * read packed: packed with the program, or once a run. The product of the input may be in bf16;
 * what is fed back never is. */
#ifndef SN_COMPUTE_RECURRENT_H
#define SN_COMPUTE_RECURRENT_H

#include "base/workspace.h"
#include "compute/bytes.h"
#include "compute/eltwise.h"
#include "compute/gemm.h"

typedef enum sn_cell { SN_CELL_RNN, SN_CELL_GRU, SN_CELL_LSTM } sn_cell;
enum { SN_CELL_MAX_ACTS = 3, SN_CELL_MAX_GATES = 4 };
static inline int sn_cell_gates(sn_cell c)
{
    return c == SN_CELL_LSTM ? 4 : c == SN_CELL_GRU ? 3 : 1;
}

/* X(NAME, text in `activations`, elementwise function, parameters taken: 0 none, 1 alpha, 2 alpha
 * and beta, their defaults). AFFINE and SCALED_TANH are built around their function. */
#define SN_GATE_ACT_LIST(X)                                                                        \
    X(RELU, "Relu", RELU, 0, 0.0f, 0.0f)                                                           \
    X(TANH, "Tanh", TANH, 0, 0.0f, 0.0f)                                                           \
    X(SIGMOID, "Sigmoid", SIGMOID, 0, 0.0f, 0.0f)                                                  \
    X(AFFINE, "Affine", RELU, 2, 1.0f, 0.0f)                                                       \
    X(LEAKY_RELU, "LeakyRelu", LEAKY_RELU, 1, 0.01f, 0.0f)                                         \
    X(THRESHOLDED_RELU, "ThresholdedRelu", THRESHOLDED_RELU, 1, 1.0f, 0.0f)                        \
    X(SCALED_TANH, "ScaledTanh", TANH, 2, 1.0f, 1.0f)                                              \
    X(HARD_SIGMOID, "HardSigmoid", HARD_SIGMOID, 2, 0.2f, 0.5f)                                    \
    X(ELU, "Elu", ELU, 1, 1.0f, 0.0f)                                                              \
    X(SOFTSIGN, "Softsign", SOFTSIGN, 0, 0.0f, 0.0f)                                               \
    X(SOFTPLUS, "Softplus", SOFTPLUS, 0, 0.0f, 0.0f)

typedef enum sn_gate_act_kind {
#define X(id, text, unary, n, a, b) SN_GATE_##id,
    SN_GATE_ACT_LIST(X)
#undef X
        SN_GATE_ACT_COUNT
} sn_gate_act_kind;

typedef struct sn_gate_act {
    sn_gate_act_kind kind;
    float params[2]; /* alpha, beta */
} sn_gate_act;

typedef struct sn_recurrent_desc {
    sn_cell cell;
    int64_t seq, batch, input, hidden;
    int dirs;         /* 1 or 2 */
    bool reverse;     /* one direction: the backward one */
    bool batch_first; /* ONNX layout 1 */
    bool linear_before_reset, input_forget;
    bool byte_state;         /* the state is rounded (byte_steps.h) before it is multiplied */
    bool w_packed, r_packed; /* in the format sn_gemm_pack_id names; argument 1, of r the gates */
    bool w_tiles;            /* w is in that of sn_gemm_tiles_pack_id: x is multiplied in bf16 */
    float clip;              /* INFINITY: none */
    sn_gate_act act[2][SN_CELL_MAX_ACTS];
} sn_recurrent_desc;

typedef struct sn_recurrent_plan {
    sn_recurrent_desc d;
    const sn_kernels *k;
    unsigned block;
    uint32_t cpu_flags;
    int gates;
    int64_t pitch;     /* from one gate of the state's products to the next: whole panels */
    int64_t r_rows[2]; /* recurrence weights in two products where a gate needs another's result */
    sn_f32_cell_fn *step; /* gates and cell in one; NULL: there is none for this layer */
    size_t step_tasks;
    bool at_once; /* both directions, each on a thread */
    sn_gemm_plan from_x, from_h[2];
    sn_elt act[2][SN_CELL_MAX_ACTS];
    size_t w_floats, r_floats[2]; /* packed, of one direction */
    /* Workspace: packed weights; for each direction under way gates from the input and from the
     * state, the state and what goes into the next one. */
    sn_piece w, r, x_gates, h_gates, state, cell, reset, candidate, bias, rounded, product;
    sn_pieces directions;
    sn_workspace workspace;
    uint64_t flops;
    char name[48];
} sn_recurrent_plan;

/* Sizes are checked and not negative; hidden, batch, seq and input may be zero. */
sonde_status sn_recurrent_plan_make(sn_recurrent_plan *p, const sn_recurrent_desc *d,
                                    uint32_t cpu_flags, size_t l2_bytes, int threads,
                                    sonde_error *err);

/* Tensors as ONNX lays them out; those marked ? may be NULL. lens are within 0 … seq. */
typedef struct sn_recurrent_call {
    const float *x, *w, *r, *b /*?*/, *h0 /*?*/, *c0 /*?*/, *peepholes /*?*/;
    const int32_t *lens; /*?*/
    float *y /*?*/, *yh /*?*/, *yc /*?*/;
    const _Atomic int *cancel; /*?*/
} sn_recurrent_call;
/* False: cancelled. */
bool sn_recurrent_run(const sn_recurrent_plan *p, const sn_recurrent_call *c, void *workspace,
                      sn_pool *pool);

/* Weights of bytes [dirs][k][rows]; scales and zero points: one for each direction, or for each row
 * of each. */
typedef struct sn_byte_weights {
    sonde_dtype dtype;
    const void *data;
    int64_t dirs, k, rows;
    const float *scale;
    int64_t scales;
    sn_byte_zeros zero;
} sn_byte_weights;
/* As f32 [dirs][rows][k] at dst, which is returned. */
const float *sn_byte_weights_load(const sn_byte_weights *w, float *dst);

#endif
