/* SPDX-License-Identifier: Apache-2.0 */
/* How far two models are apart, tensor by tensor: a model and its quantised form, two precisions of
 * one model, or two runtimes, on the same inputs. A is the reference.
 *
 *     sonde_accuracy_side a = SONDE_INIT(sonde_accuracy_side), b = SONDE_INIT(sonde_accuracy_side);
 *     a.model = b.model = model;
 *     sonde_session_options bf16 = SONDE_INIT(sonde_session_options);
 *     bf16.precision = SONDE_PRECISION_BF16;
 *     b.session = &bf16;
 *     sonde_accuracy *accuracy;
 *     sonde_accuracy_create(&a, &b, NULL, names, values, count, &accuracy, &err);
 *     for (size_t pass = 0; pass < sonde_accuracy_pass_count(accuracy); pass++)
 *         sonde_accuracy_add(accuracy, pass, names, values, count, &err); // for each sample
 *     sonde_accuracy_save(accuracy, "compare.json", &err);
 *
 * Activations are never kept: the tensors are divided into groups that fit into memory, each group
 * is a pass over all samples, and only sums remain of it.
 * Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_ACCURACY_H
#define SONDE_EXPERIMENTAL_ACCURACY_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One of the two things that are compared. */
typedef struct sonde_accuracy_side {
    size_t struct_size;
    const char *label;                    /* for messages and files; NULL: the name of the model */
    sonde_model *model;                   /* its graph gives the tensors their names */
    const sonde_session_options *session; /* how it runs; NULL: defaults */
    /* Another runtime: runs `model`, which is this side's model with other outputs, and sets every
     * outputs[i] to a new reference, or leaves it NULL where it has no such value. Equal names
     * (sonde_model_name) say that it is the model of an earlier call. NULL: a session runs it. */
    sonde_status (*run)(void *user, sonde_model *model, const char *const *input_names,
                        sonde_value *const *inputs, size_t input_count, sonde_value **outputs,
                        size_t output_count, sonde_error *err);
    void *user;
} sonde_accuracy_side;

/* An error that is too large. Fields that are 0 do not count. */
typedef struct sonde_accuracy_bound {
    double sqnr_db;  /* a ratio of signal to error below this */
    double max_abs;  /* an absolute difference above this */
    double relative; /* the RMS of the difference above so many times that of A; 0.01: 1 % */
} sonde_accuracy_bound;

typedef struct sonde_accuracy_options {
    size_t struct_size;
    size_t group_bytes;           /* that the tensors of one pass may take together; 0: 256 MiB */
    sonde_accuracy_bound bound;   /* which tensors are over the bound; all 0: 30 dB */
    int no_local;                 /* skip the error each operator adds by itself */
    int no_layers;                /* skip what each quantised layer alone does to the outputs */
    sonde_cancel_token *cancel;   /* NULL: nothing cancels */
    int (*interrupt)(void *user); /* as in sonde_run_options */
    void *interrupt_user;
} sonde_accuracy_options;

typedef struct sonde_accuracy sonde_accuracy;

/* Finds the tensors that both have. The inputs are those of the first sample: their shapes say how
 * many tensors fit into a pass. Nothing is compared yet. */
SONDE_API sonde_status sonde_accuracy_create(const sonde_accuracy_side *a,
                                             const sonde_accuracy_side *b,
                                             const sonde_accuracy_options *options,
                                             const char *const *input_names,
                                             sonde_value *const *inputs, size_t input_count,
                                             sonde_accuracy **accuracy, sonde_error *err);
SONDE_API void sonde_accuracy_release(sonde_accuracy *accuracy);
/* Passes over the samples. The first compares the outputs of the models as they are, the next ones
 * the tensors between, and where B is quantised one more tries its layers alone, on the first
 * sample. */
SONDE_API size_t sonde_accuracy_pass_count(const sonde_accuracy *accuracy);
/* Runs both on one sample and adds its errors. Each pass must see the same samples; all samples of
 * one pass before the next pass is fastest. Not from two threads at once. */
SONDE_API sonde_status sonde_accuracy_add(sonde_accuracy *accuracy, size_t pass,
                                          const char *const *input_names,
                                          sonde_value *const *inputs, size_t input_count,
                                          sonde_error *err);

/* The difference of a tensor, over all samples. Elements that are NaN or infinite on a side are
 * counted and left out of all other figures. */
typedef struct sonde_accuracy_error {
    uint64_t elements;   /* compared ones, those that are not finite included */
    uint64_t mismatches; /* elements that differ */
    double max_abs, mean_abs, rms;
    double relative; /* rms / RMS of A; INFINITY: A is 0 */
    double sqnr_db;  /* -20 log10(relative); INFINITY: no difference */
    double cosine;   /* 1: the same direction; NAN: one of them is 0 */
    uint64_t nan_a, nan_b, inf_a, inf_b;
    uint64_t
        not_finite; /* elements that are NaN or infinite on one side, and not so on the other */
} sonde_accuracy_error;

typedef struct sonde_accuracy_tensor {
    size_t struct_size;
    const char *name, *name_b; /* in A and in B */
    /* What makes it in A; unnamed nodes are called by what they produce. `layer`: the product
     * (Conv, MatMul …) where B has folded what is between, a normalisation for example, into that.
     */
    const char *node, *op_type, *layer;
    const char *type_a, *type_b; /* "f32[1, 64]", of the last sample */
    /* Control flow: nodes inside whose constants or attributes are not those of A, as a text; "".
     */
    const char *inside;
    int output;       /* of the model */
    int control_flow; /* made by Loop, If or Scan: the tensors inside are not compared */
    int quantized;    /* B computes it with integers, or from quantised weights */
    int exact;        /* booleans, strings, integers but u8 and i8: elements are equal or not */
    int different;    /* shapes or types differ on some sample, which then is not compared */
    int missing;      /* another runtime did not return it on some sample */
    int over;         /* over the bound */
    uint64_t samples;
    sonde_accuracy_error error;
    int local_known;
    sonde_accuracy_error local; /* with A's own tensors as inputs of B's operator */
    /* Error power at this tensor divided by signal power, less the largest such ratio at the inputs
     * of its operator; negative: the operator hides error of its inputs. */
    double added;
    /* What this layer of B alone, in A, does to the outputs: error power / signal power, the
     * largest of the outputs; NAN: not tried. */
    double at_outputs;
} sonde_accuracy_tensor;

/* Tensors that both have, in topological order of A. */
SONDE_API size_t sonde_accuracy_tensor_count(const sonde_accuracy *accuracy);
SONDE_API sonde_status sonde_accuracy_tensor_get(const sonde_accuracy *accuracy, size_t index,
                                                 sonde_accuracy_tensor *tensor, sonde_error *err);

typedef struct sonde_accuracy_summary {
    size_t struct_size;
    const char *label_a, *label_b;
    uint64_t samples;
    sonde_accuracy_bound bound;
    size_t shared;    /* tensors both have */
    size_t only_a;    /* tensors of A that B does not have */
    size_t outputs;   /* shared tensors that are outputs of A */
    size_t outputs_a; /* outputs that A computes */
    int64_t first;    /* index of the first tensor that is over the bound; -1: none */
    int64_t worst;    /* index of the output with the lowest SQNR; -1: none */
    int quantized;    /* B is quantised and A is not */
    const char *note; /* what could not be compared, as a sentence; "" */
    int complete;     /* every pass has seen all samples; 0 after SONDE_CANCELLED */
    /* Elements of the outputs that were compared, of all tensors where no output is shared. Tensors
     * without a number to compare, NaN or the same infinity everywhere in both, do not count. 0:
     * nothing was compared, and nothing is known. */
    uint64_t compared;
    size_t weights; /* that differ: sonde_accuracy_weight_get */
    int agree;      /* no weight differs, and no operator adds more than rounding to any tensor */
} sonde_accuracy_summary;
SONDE_API sonde_status sonde_accuracy_summary_get(const sonde_accuracy *accuracy,
                                                  sonde_accuracy_summary *summary,
                                                  sonde_error *err);
/* Index of the k-th tensor by the error its operator adds, most first; -1 past the last one that
 * adds more than rounding, which is a relative error of 8 units in the last place of f32 (f64). By
 * local error where that is known, else by `added`. */
SONDE_API int64_t sonde_accuracy_worst(const sonde_accuracy *accuracy, size_t k);
/* Index of the k-th layer to leave in float, the most harmful first; -1 past the last one. The
 * layers that together cause most of the error at the outputs, or with a bound in dB as many as
 * bring the outputs to it. */
SONDE_API int64_t sonde_accuracy_leave_in_float(const sonde_accuracy *accuracy, size_t k);
/* Constants that both models have by name, those of bodies included, of one type and shape but with
 * other numbers: also where the inputs do not reach them. In the order of A. */
typedef struct sonde_accuracy_weight {
    size_t struct_size;
    const char *name;
    const char *node, *op_type; /* that reads it in A; "" */
    const char *type;           /* "f32[64, 64]" */
    int exact;                  /* as in sonde_accuracy_tensor */
    sonde_accuracy_error error;
} sonde_accuracy_weight;
SONDE_API size_t sonde_accuracy_weight_count(const sonde_accuracy *accuracy);
SONDE_API sonde_status sonde_accuracy_weight_get(const sonde_accuracy *accuracy, size_t index,
                                                 sonde_accuracy_weight *weight, sonde_error *err);

/* Whether the outputs differ by more than that: 1 or 0. *index: the first such output. */
SONDE_API int sonde_accuracy_fails(const sonde_accuracy *accuracy,
                                   const sonde_accuracy_bound *bound, size_t *index);

/* By suffix: ".json" (schema "sonde.compare/1") or ".csv" (a row for each tensor, then one for each
 * weight that differs). Refused before every pass has seen all samples, unless it was cancelled. */
SONDE_API sonde_status sonde_accuracy_save(const sonde_accuracy *accuracy, const char *path,
                                           sonde_error *err);
/* The same in pieces; `format` is one of the suffixes. */
SONDE_API sonde_status sonde_accuracy_write(const sonde_accuracy *accuracy, const char *format,
                                            void (*write)(void *user, const char *text,
                                                          size_t size),
                                            void *user, sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
