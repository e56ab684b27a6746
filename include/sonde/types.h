/* SPDX-License-Identifier: Apache-2.0 */
/* The words every room of sonde shares: status codes, the error a caller owns, element types.
 * Each list is one X-macro, so names, numbers and texts cannot drift apart. */
#ifndef SONDE_TYPES_H
#define SONDE_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SONDE_API               __attribute__((visibility("default")))
#define SONDE_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define SONDE_API
#define SONDE_PRINTF(fmt, args)
#endif

/* X(name, number, text). Numbers never change; new ones are added at the end. */
#define SONDE_STATUS_LIST(X)                                                                       \
    X(OK, 0, "ok")                                                                                 \
    X(OUT_OF_MEMORY, 1, "out of memory")                                                           \
    X(INVALID_ARGUMENT, 2, "invalid argument")                                                     \
    X(INVALID_MODEL, 3, "invalid model")                                                           \
    X(UNSUPPORTED, 4, "unsupported")                                                               \
    X(IO, 5, "input/output error")                                                                 \
    X(LIMIT, 6, "limit exceeded")                                                                  \
    X(CANCELLED, 7, "cancelled")                                                                   \
    X(NOT_FOUND, 8, "not found")                                                                   \
    X(RUNTIME, 9, "failed while running")                                                          \
    X(INTERNAL, 10, "internal error")                                                              \
    X(INVALID_FORMAT, 11, "invalid format")

typedef enum sonde_status {
#define SONDE_STATUS_ENUM(name, number, text) SONDE_##name = number,
    SONDE_STATUS_LIST(SONDE_STATUS_ENUM)
#undef SONDE_STATUS_ENUM
} sonde_status;

/* Filled by a failing call. Owned by the caller, who may pass NULL wherever one is taken.
 * The message is one sentence that names the node, the tensor and what was expected. */
typedef struct sonde_error {
    sonde_status status;
    char message[1020];
} sonde_error;

/* X(NAME, number as in ONNX's TensorProto.DataType, onnx text, short text, bits per element).
 * Sub-byte types use one byte per element while they run. STRING elements are sonde_string. */
#define SONDE_DTYPE_LIST(X)                                                                        \
    X(UNDEFINED, 0, "undefined", "?", 0)                                                           \
    X(F32, 1, "float", "f32", 32)                                                                  \
    X(U8, 2, "uint8", "u8", 8)                                                                     \
    X(I8, 3, "int8", "i8", 8)                                                                      \
    X(U16, 4, "uint16", "u16", 16)                                                                 \
    X(I16, 5, "int16", "i16", 16)                                                                  \
    X(I32, 6, "int32", "i32", 32)                                                                  \
    X(I64, 7, "int64", "i64", 64)                                                                  \
    X(STRING, 8, "string", "str", 128)                                                             \
    X(BOOL, 9, "bool", "bool", 8)                                                                  \
    X(F16, 10, "float16", "f16", 16)                                                               \
    X(F64, 11, "double", "f64", 64)                                                                \
    X(U32, 12, "uint32", "u32", 32)                                                                \
    X(U64, 13, "uint64", "u64", 64)                                                                \
    X(C64, 14, "complex64", "c64", 64)                                                             \
    X(C128, 15, "complex128", "c128", 128)                                                         \
    X(BF16, 16, "bfloat16", "bf16", 16)                                                            \
    X(F8E4M3FN, 17, "float8e4m3fn", "f8e4m3fn", 8)                                                 \
    X(F8E4M3FNUZ, 18, "float8e4m3fnuz", "f8e4m3fnuz", 8)                                           \
    X(F8E5M2, 19, "float8e5m2", "f8e5m2", 8)                                                       \
    X(F8E5M2FNUZ, 20, "float8e5m2fnuz", "f8e5m2fnuz", 8)                                           \
    X(U4, 21, "uint4", "u4", 4)                                                                    \
    X(I4, 22, "int4", "i4", 4)                                                                     \
    X(F4E2M1, 23, "float4e2m1", "f4e2m1", 4)                                                       \
    X(F8E8M0, 24, "float8e8m0", "f8e8m0", 8)                                                       \
    X(U2, 25, "uint2", "u2", 2)                                                                    \
    X(I2, 26, "int2", "i2", 2)

typedef enum sonde_dtype {
#define SONDE_DTYPE_ENUM(name, number, onnx, text, bits) SONDE_DTYPE_##name = number,
    SONDE_DTYPE_LIST(SONDE_DTYPE_ENUM)
#undef SONDE_DTYPE_ENUM
        SONDE_DTYPE_COUNT
} sonde_dtype;

/* One element of a string tensor: bytes, not NUL-terminated, never owned by the element. */
typedef struct sonde_string {
    const char *data;
    size_t size;
} sonde_string;

/* What a value is. */
typedef enum sonde_kind {
    SONDE_KIND_NONE = 0, /* absent, e.g. an unset optional input */
    SONDE_KIND_TENSOR = 1,
    SONDE_KIND_SEQUENCE = 2,
    SONDE_KIND_OPTIONAL = 3,
    SONDE_KIND_MAP = 4
} sonde_kind;

/* Precision of a session: the type in which the floating-point weights of matrix products and
 * convolutions (Conv, MatMul, Gemm and what they are fused into) are packed; f64 stays f64. They
 * are converted once, to nearest even. Arithmetic is f32, except with BF16 on a CPU that multiplies
 * bf16 fast (AMX, AMD's AVX512-BF16, aarch64's FEAT_BF16): there both sides of matrix products and
 * of the two products of attention, and on x86_64 of convolutions, are rounded to bf16, and summed
 * in f32. The types of inputs and outputs do not change. A weight that has an element beyond the
 * range of the type, an infinity or a NaN keeps its type, and so do weights that are not packed: of
 * convolutions that no blocked kernel computes (1-D and 3-D ones, odd numbers of channels), of
 * recurrent layers, of ConvTranspose, and all of them with no_prepack. */
typedef enum sonde_precision {
    SONDE_PRECISION_FILE, /* as the model file has them */
    SONDE_PRECISION_F32,
    SONDE_PRECISION_BF16,
    SONDE_PRECISION_F16,
    SONDE_PRECISION_AUTO /* the fastest on this CPU: BF16 on one with AMX, else F32 */
} sonde_precision;

/* How much faster products with a weight of this shape were when so many % of it were zeros. */
typedef struct sonde_sparse_ratio {
    const char *weight;                  /* "768x3072" */
    double ratio_90, ratio_80, ratio_70; /* the latency now divided by the latency then; 0: not
                                            measured */
} sonde_sparse_ratio;

typedef enum sonde_severity { SONDE_GOOD = 0, SONDE_NOTE = 1, SONDE_SLOW = 2 } sonde_severity;

/* What somebody who looked at a profile or at the machine would say. */
typedef struct sonde_finding {
    sonde_severity severity;
    const char *topic;    /* "roofline" */
    const char *finding;  /* a sentence */
    const char *evidence; /* "" when the sentence says it all */
    const char *remedy;   /* "" when there is nothing to do */
} sonde_finding;

/* What a run takes in another form of the model, for the report page. */
typedef struct sonde_scenario_time {
    const char *name; /* "sparse90+int8" */
    double ns, speedup;
    const char *note; /* "measured", "predicted from measured products" */
} sonde_scenario_time;

#ifdef __cplusplus
}
#endif
#endif
