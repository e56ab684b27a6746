/* SPDX-License-Identifier: Apache-2.0 */
/* What another form of a model would give on this machine, measured: sparse weights, 8 and 4 bits,
 * another precision, another batch, another number of threads.
 *
 *     sonde_whatif_options how = SONDE_INIT(sonde_whatif_options);
 *     how.scenarios = "sparse90,int8,sparse90+int8";
 *     how.values = inputs;
 *     how.value_count = n;
 *     sonde_whatif *what;
 *     sonde_whatif_measure(model, &how, &what, &err);
 *     sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
 *     for (size_t i = 0; sonde_whatif_scenario_get(what, i, &s, NULL) == SONDE_OK; i++)
 *         printf("%s: %.2f times as fast\n", s.name, s.speedup);
 *     sonde_whatif_release(what);
 *
 * For every scenario the model is built in memory with made-up weights of that form (its own
 * shapes, zeros in the pattern, 8 and 4 bits where sonde_quantize puts them) and runs on the given
 * inputs under the profiler, in turns with the model as it is. So steps are measured as they run in
 * a model, fused, with the caches as the steps before leave them, and ratios are of one moment.
 * Results are kept in the context and in the user's cache folder, and an equal question is not
 * measured again. Nothing is said about accuracy.
 *
 * Times are nanoseconds per run of the batch that the inputs have. Experimental: may change between
 * versions. */
#ifndef SONDE_EXPERIMENTAL_WHATIF_H
#define SONDE_EXPERIMENTAL_WHATIF_H

#include "sonde/experimental/profile.h"
#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sonde_whatif_options {
    size_t struct_size;
    /* Separated by commas, their parts joined by "+": "sparse90,int8,sparse90+int8,batch=4". Parts:
     *   sparseP       P % of the weights of products are zeros, in blocks of 4 outputs x 1 input
     *   int8          products in 8 bits with fixed scales, and what lies between two of them
     *   int8-dynamic  matrix products in 8 bits, scales computed in every run
     *   int4          weights of matrix products in 4 bits, blocks of 32
     *   f32 bf16 f16  precision of the session
     *   batch=N threads=N
     * NULL: all of sparse90, sparse80, sparse70, int8, sparse90+int8, int8-dynamic, int4, bf16,
     * batch=2 to 16 and threads=1 to all usable cores. */
    const char *scenarios;
    /* Names of nodes, of what they produce or of weights, patterns with * and ?, lists of these
     * with commas, or "@FILE", as in sonde_quantize_options: the others keep their form. None: all
     * nodes. */
    const char *const *only;
    size_t only_count;
    /* Today: */
    int threads;               /* 0 = the context's */
    sonde_precision precision; /* 0: as the file has its weights */
    /* What else sessions are made with, now and in every scenario; its threads and precision do not
     * count. NULL: the defaults. */
    const sonde_session_options *session;
    const char *const *input_names; /* NULL: the model's inputs in order */
    sonde_value *const *values;
    size_t value_count;
    /* How: */
    int warmup;        /* runs before measuring; 0 = 3, -1 = none */
    int runs;          /* 0 = 6 rounds of 50 ms, at least a run each, and as many of now */
    int no_mix;        /* the best mix is not measured */
    int no_cache;      /* measure, whatever was measured before, and keep nothing */
    const char *cache; /* folder of what is kept; NULL: the user's cache folder */
    /* Makes it end with SONDE_CANCELLED. *result then has the scenarios that were measured, and a
     * reason for the others; it is NULL where nothing was measured. */
    sonde_cancel_token *cancel;
    void (*progress)(void *user, const char *scenario, double done); /* done in 0…1; or NULL */
    void *progress_user;
    /* Measure nothing: scenarios that were not measured before have a reason instead of figures.
     * SONDE_NOT_FOUND where there are no figures of the model as it is. */
    int cache_only;
} sonde_whatif_options;

typedef struct sonde_whatif sonde_whatif;
SONDE_API sonde_status sonde_whatif_measure(sonde_model *model, const sonde_whatif_options *options,
                                            sonde_whatif **result, sonde_error *err);
SONDE_API void sonde_whatif_release(sonde_whatif *result);
/* What the context keeps; files stay. */
SONDE_API void sonde_whatif_cache_reset(sonde_context *context);
SONDE_API size_t sonde_whatif_cache_size(sonde_context *context);

/* One scenario. Number 0 is "now"; the last one is "best mix" unless no_mix was set: every operator
 * in the form that is fastest for it among the scenarios that change only weights, measured
 * together. SONDE_NOT_FOUND past the end. */
typedef struct sonde_whatif_scenario {
    size_t struct_size;
    const char *name;
    const char *reason;    /* why there are no figures, as a sentence; "" */
    const char *precision; /* "file", "bf16" */
    int threads;
    int64_t batch;             /* 0: the inputs have none */
    double total_ns;           /* the rows add up to it */
    double speedup, low, high; /* now divided by it, and a 95 % interval */
    uint64_t weight_bytes;     /* weights in memory, as kernels read them */
    uint64_t peak_bytes;       /* what one run needs, see sonde_inspection_totals */
    int64_t changed;           /* weights that have another form */
    size_t runs;
    int cached;           /* measured earlier */
    const char *measured; /* when: "2026-11-19 17:05 UTC"; "" without figures */
    const char *machine;  /* where: the name of the machine and its CPU; "" */
} sonde_whatif_scenario;
SONDE_API size_t sonde_whatif_scenario_count(const sonde_whatif *result);
SONDE_API sonde_status sonde_whatif_scenario_get(const sonde_whatif *result, size_t index,
                                                 sonde_whatif_scenario *scenario, sonde_error *err);

/* One operator (SONDE_BY_NODE), all with equal shapes (SONDE_BY_SHAPE), or all of a type
 * (SONDE_BY_OP). Largest time now first; what is not an operator ("[Quantize]": steps at the border
 * of 8 bits, "[Reorder]", "[Other]") last. */
typedef struct sonde_whatif_row {
    size_t struct_size;
    const char *name, *op_type; /* "MatMul+Add", "MatMul" */
    const char *shapes;         /* of the inputs: "1x128x768;768x3072;3072"; "" */
    const char *weight;         /* shape of its weight; "" */
    const char *node;           /* an example */
    size_t count;               /* operators in the row */
    const double *times_ns;     /* by scenario; NaN where that has no figures */
    /* The scenario that is fastest for it among those of the mix that compute it in another way
     * than now; 0: none of them is. */
    size_t best;
    int bracket;
    int sparse;         /* the weight may be sparse in blocks of 4x1 */
    const int *changed; /* by scenario: whether it computes anything of the row in another way */
} sonde_whatif_row;
SONDE_API size_t sonde_whatif_row_count(const sonde_whatif *result, sonde_by by);
SONDE_API sonde_status sonde_whatif_row_get(const sonde_whatif *result, sonde_by by, size_t index,
                                            sonde_whatif_row *row, sonde_error *err);

/* To a file: ".csv", ".xlsx" or ".json", by suffix. */
SONDE_API sonde_status sonde_whatif_save(const sonde_whatif *result, const char *path,
                                         sonde_error *err);
/* The same through a callback; `format` is the suffix. */
SONDE_API sonde_status sonde_whatif_write(const sonde_whatif *result, const char *format,
                                          void (*write)(void *user, const char *data, size_t size),
                                          void *user, sonde_error *err);
/* Gives the .csv and .xlsx of a profile the ratios that were measured for sparse90, sparse80 and
 * sparse70, by weight shape. `options` then points into the result. */
SONDE_API sonde_status sonde_whatif_ratios(const sonde_whatif *result,
                                           sonde_export_options *options, sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
