/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise functions of one, two or three operands with multidirectional broadcasting.
 *
 * A call is made in two steps: sn_unary_get / sn_binary_get choose the loop for an element type and
 * a CPU; sn_bcast_plan turns shapes into a few collapsed dims. Running neither allocates nor fails.
 * 16-bit (and, for tests on them, 8-bit) floats go through f32 in chunks. */
#ifndef SN_COMPUTE_ELTWISE_H
#define SN_COMPUTE_ELTWISE_H

#include "compute/parallel.h"
#include "kernels/kernels.h"

/* X(ID, text, cost of one element in additions). Parameters, in the element's type (f32 for 16-bit
 * floats): ELU, CELU, LEAKY_RELU, THRESHOLDED_RELU, SWISH alpha; SELU gamma, alpha; HARD_SIGMOID
 * alpha, beta; CLIP low, high. IS_NAN, IS_INF (params: detect negative, positive) and NOT give
 * bool. */
#define SN_UNARY_LIST(X)                                                                           \
    X(RELU, "relu", 1)                                                                             \
    X(LEAKY_RELU, "leaky_relu", 1)                                                                 \
    X(ELU, "elu", 12)                                                                              \
    X(SELU, "selu", 12)                                                                            \
    X(CELU, "celu", 12)                                                                            \
    X(THRESHOLDED_RELU, "thresholded_relu", 1)                                                     \
    X(HARD_SIGMOID, "hard_sigmoid", 4)                                                             \
    X(HARD_SWISH, "hard_swish", 5)                                                                 \
    X(SIGMOID, "sigmoid", 10)                                                                      \
    X(TANH, "tanh", 12)                                                                            \
    X(SOFTPLUS, "softplus", 20)                                                                    \
    X(SOFTSIGN, "softsign", 4)                                                                     \
    X(GELU, "gelu", 16)                                                                            \
    X(GELU_TANH, "gelu_tanh", 16)                                                                  \
    X(MISH, "mish", 30)                                                                            \
    X(SWISH, "swish", 10)                                                                          \
    X(ERF, "erf", 14)                                                                              \
    X(EXP, "exp", 8)                                                                               \
    X(LOG, "log", 10)                                                                              \
    X(SQRT, "sqrt", 4)                                                                             \
    X(RECIPROCAL, "reciprocal", 4)                                                                 \
    X(ABS, "abs", 1)                                                                               \
    X(NEG, "neg", 1)                                                                               \
    X(SIGN, "sign", 1)                                                                             \
    X(CEIL, "ceil", 1)                                                                             \
    X(FLOOR, "floor", 1)                                                                           \
    X(ROUND, "round", 1)                                                                           \
    X(SIN, "sin", 16)                                                                              \
    X(COS, "cos", 16)                                                                              \
    X(TAN, "tan", 24)                                                                              \
    X(ASIN, "asin", 20)                                                                            \
    X(ACOS, "acos", 20)                                                                            \
    X(ATAN, "atan", 20)                                                                            \
    X(SINH, "sinh", 20)                                                                            \
    X(COSH, "cosh", 20)                                                                            \
    X(ASINH, "asinh", 24)                                                                          \
    X(ACOSH, "acosh", 24)                                                                          \
    X(ATANH, "atanh", 24)                                                                          \
    X(CLIP, "clip", 2)                                                                             \
    X(NOT, "not", 1)                                                                               \
    X(BIT_NOT, "bit_not", 1)                                                                       \
    X(IS_NAN, "is_nan", 1)                                                                         \
    X(IS_INF, "is_inf", 1)

/* Comparisons and AND, OR, XOR give bool. MOD has the sign of the divisor, FMOD of the dividend.
 * Integer division by zero gives 0; integers wrap; shifts by the width or more give 0. */
#define SN_BINARY_LIST(X)                                                                          \
    X(ADD, "add", 1)                                                                               \
    X(SUB, "sub", 1)                                                                               \
    X(MUL, "mul", 1)                                                                               \
    X(DIV, "div", 4)                                                                               \
    X(MIN, "min", 1)                                                                               \
    X(MAX, "max", 1)                                                                               \
    X(POW, "pow", 30)                                                                              \
    X(MOD, "mod", 8)                                                                               \
    X(FMOD, "fmod", 8)                                                                             \
    X(PRELU, "prelu", 1)                                                                           \
    X(EQUAL, "equal", 1)                                                                           \
    X(GREATER, "greater", 1)                                                                       \
    X(GREATER_EQUAL, "greater_equal", 1)                                                           \
    X(LESS, "less", 1)                                                                             \
    X(LESS_EQUAL, "less_equal", 1)                                                                 \
    X(AND, "and", 1)                                                                               \
    X(OR, "or", 1)                                                                                 \
    X(XOR, "xor", 1)                                                                               \
    X(BIT_AND, "bit_and", 1)                                                                       \
    X(BIT_OR, "bit_or", 1)                                                                         \
    X(BIT_XOR, "bit_xor", 1)                                                                       \
    X(SHIFT_LEFT, "shift_left", 1)                                                                 \
    X(SHIFT_RIGHT, "shift_right", 1)

typedef enum sn_unary {
#define X(id, text, cost) SN_UNARY_##id,
    SN_UNARY_LIST(X)
#undef X
        SN_UNARY_COUNT
} sn_unary;

typedef enum sn_binary {
#define X(id, text, cost) SN_BINARY_##id,
    SN_BINARY_LIST(X)
#undef X
        SN_BINARY_COUNT
} sn_binary;

/* A typed loop: y[i] = f(a[i], b[i]); b is NULL and mode ignored for one operand. */
typedef void sn_elt_fn(void *y, const void *a, const void *b, size_t n, int mode,
                       const void *params);

/* A chosen loop. */
typedef struct sn_elt {
    sn_elt_fn *fn; /* or one of the kernels: */
    sn_f32_unary_fn *f32_unary;
    sn_f32_binary_fn *f32_binary;
    const char *name; /* for people: "f32_relu_avx512", "i64_add" */
    unsigned cost;
    uint8_t in_bytes, out_bytes; /* of an element */
    sonde_dtype via;             /* a small float computed in f32; UNDEFINED: directly */
    bool is_bool;                /* the result is bool whatever the operands are */
    uint32_t cpu_flags;          /* for loads and stores of a small float */
} sn_elt;

/* False: this function is not defined for that element type. */
bool sn_unary_get(sn_elt *e, sn_unary op, sonde_dtype t, uint32_t cpu_flags);
bool sn_binary_get(sn_elt *e, sn_binary op, sonde_dtype t, uint32_t cpu_flags);

/* Shapes, collapsed: the last dim is the inner loop, where each operand moves by 1 or stands still.
 */
#define SN_BCAST_RANK 16
typedef struct sn_bcast {
    int rank; /* at least 1 */
    int64_t dims[SN_BCAST_RANK];
    ptrdiff_t stride[3][SN_BCAST_RANK]; /* in elements */
    size_t total;                       /* elements of the result */
} sn_bcast;
/* `dims[k]` of rank `ranks[k]` broadcasts to `out`; n operands, at most 3. All checked before. */
void sn_bcast_plan(sn_bcast *b, const int64_t *out, int rank, int n, const int64_t *const *dims,
                   const int *ranks);
/* n operands that are dense over `total` elements. */
void sn_bcast_flat(sn_bcast *b, size_t total, int n);

/* y may be x / one of the operands when that has the result's shape and element size. */
void sn_unary_run(const sn_elt *e, void *y, const void *x, size_t n, const void *params,
                  sn_pool *pool);
void sn_binary_run(const sn_elt *e, const sn_bcast *b, void *y, const void *pa, const void *pb,
                   const void *params, sn_pool *pool);
/* y = cond ? a : b, operands 0, 1, 2 of the plan; elements of 1, 2, 4, 8 or 16 bytes. */
void sn_where_run(const sn_bcast *b, size_t elem_bytes, void *y, const uint8_t *cond,
                  const void *pa, const void *pb, sn_pool *pool);

/* y is x, moved towards zero by `bias` where it lies beyond -lambda or lambda, and 0 between. Any
 * number of at least 8 bits, through double; y may be x. */
void sn_shrink_run(sonde_dtype t, void *y, const void *x, size_t n, double bias, double lambda,
                   sn_pool *pool);

/* Sets the padding lanes of a blocked f32 tensor [outer][blocks][inner][block] to zero: what a
 * function with f(0) != 0 must do afterwards. `channels` is the logical size of the blocked axis.
 */
void sn_blocked_zero_pad(float *y, int64_t outer, int64_t channels, int64_t inner, int block);

#endif
