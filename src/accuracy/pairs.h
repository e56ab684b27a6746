/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a comparison: pairs of tensors with their errors, the models that are made of the
 * two sides, and what follows from all of it. */
#ifndef SN_ACCURACY_PAIRS_H
#define SN_ACCURACY_PAIRS_H

#include "api/internal.h"
#include "sonde/experimental/accuracy.h"

/* ---- sums.c ---- */
/* What remains of the tensors of all samples: enough for every figure. */
typedef struct sn_sums {
    uint64_t samples, elements, finite, mismatches;
    uint64_t nan_a, nan_b, inf_a, inf_b, not_finite;
    double max_abs, abs, square, aa, bb, ab; /* sums of |a - b|, (a - b)², a², b², a · b */
    bool exact;                              /* no float and no byte was among them */
    bool different;                          /* shapes or types differed */
    bool missing;                            /* a side had no value: another runtime has none */
} sn_sums;
/* Adds one sample. A value may be NULL: that side has none. */
sonde_status sn_sums_add(sn_sums *s, const sonde_value *a, const sonde_value *b, sonde_error *err);
sonde_accuracy_error sn_sums_error(const sn_sums *s);
/* Power of the error divided by that of the signal. An exact tensor: the share of elements that
 * differ. Elements that are finite on one side only make it infinite. */
double sn_sums_noise(const sn_sums *s);
bool sn_sums_over(const sn_sums *s, const sonde_accuracy_bound *bound);

/* The inputs of one sample. */
typedef struct sn_sample {
    const char *const *names;
    sonde_value *const *values;
    size_t n;
} sn_sample;

/* ---- match.c ---- */
/* The values of a graph by name. */
sonde_status sn_map_values(sn_map *names, const sn_graph *g, sonde_error *err);
/* Where B keeps a tensor of A. Values are those of the graph that was searched. */
typedef struct sn_place_b {
    sn_value *seen;      /* what is compared */
    sn_value *quantized; /* seen is DequantizeLinear of this; else NULL: */
    sn_node *dequantize; /* that node */
    sn_node *quantize;   /* the QuantizeLinear before it, if there is one */
} sn_place_b;
/* `names`: the values of g by name; `names_a`: those of A. May add a DequantizeLinear to g.
 * seen is NULL when B does not have the tensor. */
sonde_status sn_match(sn_graph *g, int64_t opset, const sn_map *names, const sn_map *names_a,
                      const char *name, sn_place_b *found, sonde_error *err);
bool sn_is_op(const sn_node *n, const char *op_type); /* in whatever domain it is */
/* An operator on integers or on quantised weights. */
bool sn_is_quantized_op(const sn_node *n);

typedef struct sn_pair {
    const char *name;     /* in A */
    const sn_node *node;  /* that makes it in A */
    const sn_node *layer; /* the product among the nodes of A behind its inputs, else `node` */
    sn_place_b b;         /* values of the graph of acc->tapped */
    size_t bytes;         /* planned, on one side */
    sn_type type;         /* of B, as far as it is known without inputs; in acc->arena */
    sn_dtype dtype_a;     /* UNDEFINED: not known, or no tensor */
    bool output, control, quantized;
    bool local_failed; /* B's operator does not take A's tensors */
    uint32_t group;
    const uint32_t *reads; /* the nearest pairs that its node in A reads */
    uint32_t n_reads;
    const uint32_t *needs; /* the pairs that B's operator reads */
    uint32_t n_needs;
    const char *fed; /* input of acc->cut that stands for it; NULL: it is not cut */
    const char *type_a, *type_b;
    const char *inside; /* nodes of its bodies that differ; "" */
    sn_sums sums, local;
    bool local_known;
    double at_outputs; /* NAN: not tried */
} sn_pair;

/* A constant that both models have, with other numbers. */
typedef struct sn_weight_pair {
    const char *name, *node, *op_type; /* the node that reads it in A */
    const char *type;
    sn_sums sums;
} sn_weight_pair;

typedef struct sn_side {
    const char *label;
    sonde_model *model;
    sonde_session_options options;
    sonde_status (*run)(void *user, sonde_model *model, const char *const *input_names,
                        sonde_value *const *inputs, size_t input_count, sonde_value **outputs,
                        size_t output_count, sonde_error *err);
    void *user;
} sn_side;

/* A model with other outputs, ready to run. One for each side and pass. */
typedef struct sn_runner {
    sonde_model *model;
    sonde_session *session; /* NULL: another runtime runs it */
} sn_runner;

/* Some of B's operators, fed with A's tensors. */
typedef struct sn_local {
    sn_runner runner;
    uint32_t *pairs; /* whose tensors it returns */
    uint32_t n;
    uint32_t *fed; /* pairs whose tensors it reads */
    uint32_t n_fed;
} sn_local;

/* What is run to compare some pairs. */
typedef struct sn_job {
    sn_runner a, b;
    uint32_t *of_a; /* pairs whose tensors `a` returns: those compared, then what local runs read */
    uint32_t n_of_a;
    uint32_t *place; /* by pair: where it is in of_a, plus 1; 0: it is not */
    uint32_t *of_b;  /* pairs whose tensors `b` returns */
    uint32_t n_of_b;
    uint32_t *of_local; /* pairs whose operators are to run alone */
    uint32_t n_of_local;
    sn_local local; /* those of them that can */
    bool local_ready;
    sn_arena arena, scratch; /* `scratch`: of one sample */
} sn_job;

/* A's tensor of a pair, of what `a` returned; NULL: it is not among them. */
static inline sonde_value *sn_job_value(const sn_job *job, sonde_value *const *a, uint32_t pair)
{
    return job->place[pair] ? a[job->place[pair] - 1] : NULL;
}

struct sonde_accuracy {
    sonde_context *context;
    sn_arena arena;
    sn_side a, b;
    sonde_accuracy_options options;
    sn_pair *pairs;
    uint32_t n_pairs, n_groups, only_a;
    bool quantized;
    const char *note;
    sn_model *tapped;    /* B with every tensor that is compared in its graph */
    sn_model *cut;       /* the same, each operator reads A's tensors; NULL: no local errors */
    sn_job job;          /* of the pass that was used last */
    size_t pass;         /* its number */
    sonde_session *tail; /* A, for feeding it the tensors of layers */
    uint64_t *added;     /* samples by pass */
    uint32_t n_models;   /* that were made: numbers for their names */
    uint32_t *tried;     /* pairs that the last pass runs alone */
    uint32_t n_tried;
    uint32_t *worst, *leave; /* made by sn_accuracy_rank, most harmful first */
    uint32_t n_worst, n_leave;
    sn_weight_pair *weights; /* that differ, in the order of A */
    uint32_t n_weights;
    bool cancelled; /* it is to be shown as far as it came */
};

/* Pass 0: the outputs. Then one for each group, and where another runtime runs B, which would have
 * to load one model after the other, a second one for each group, for the local errors. Then,
 * maybe, the layers. */
static inline size_t sn_accuracy_group_passes(const sonde_accuracy *acc)
{
    return (size_t)acc->n_groups * (acc->b.run && acc->cut ? 2 : 1);
}
static inline size_t sn_accuracy_passes(const sonde_accuracy *acc)
{
    return 1 + sn_accuracy_group_passes(acc) +
           (acc->quantized && !acc->options.no_layers && acc->cut);
}

static inline sonde_run_options sn_accuracy_run_options(const sonde_accuracy *acc)
{
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    o.cancel = acc->options.cancel;
    o.interrupt = acc->options.interrupt;
    o.interrupt_user = acc->options.interrupt_user;
    return o;
}

/* ---- find.c: fills acc->pairs, acc->tapped and acc->cut ---- */
sonde_status sn_accuracy_find(sonde_accuracy *acc, const sn_sample *s, sonde_error *err);

/* ---- weights.c: fills acc->weights ---- */
sonde_status sn_accuracy_weights(sonde_accuracy *acc, sonde_error *err);

/* ---- bodies.c: fills `inside` ---- */
bool sn_same_data(const sn_tensor *a, const sn_tensor *b);
sonde_status sn_accuracy_look_inside(sonde_accuracy *acc, sonde_error *err);

/* ---- cut.c ---- */
/* A model with a copy of the graph of `from`, which must live as long. */
sonde_status sn_copy_model(sonde_context *c, const sn_model *from, sn_model **made,
                           sonde_error *err);
/* Makes acc->cut of acc->tapped: what B's operators read of a pair is an input. */
sonde_status sn_accuracy_cut(sonde_accuracy *acc, sonde_error *err);
/* The model `from`, made of that of the side, with these values as its outputs and without what
 * they do not need; fed inputs nobody needs go. For another runtime the outputs get names that
 * every program can write into a file. */
sonde_status sn_with_outputs(sonde_accuracy *acc, const sn_side *side, const sn_model *from,
                             const char *const *names, size_t n, sonde_model **made,
                             sonde_error *err);

/* ---- sides.c ---- */
/* Makes `from`, which was made of the side's model, ready to return the tensors of these pairs;
 * none: does nothing. `arena` must live until it is open. */
sonde_status sn_runner_open(sonde_accuracy *acc, sn_arena *arena, const sn_side *side,
                            const sn_model *from, const uint32_t *pairs, uint32_t n, sn_runner *r,
                            sonde_error *err);
void sn_runner_close(sn_runner *r); /* also after a failure, and of a zeroed one */
sonde_status sn_runner_run(sonde_accuracy *acc, const sn_side *side, const sn_runner *r,
                           const sn_sample *s, sonde_value **out, uint32_t n, sonde_error *err);
void sn_release_values(sonde_value **values, uint32_t n);

/* ---- local.c ---- */
typedef sonde_status (*sn_layer_fn)(sonde_accuracy *acc, sn_pair *pair, sonde_value *value,
                                    void *user, sonde_error *err);
/* One run on a sample: what `a` of the job has returned for it, names of B's inputs with room for
 * one more for each pair, and who gets the tensors; layer NULL: they are compared. */
typedef struct sn_local_run {
    sn_job *job;
    const sn_sample *sample;
    const char **names;
    sonde_value *const *a;
    sn_layer_fn layer;
    void *user;
} sn_local_run;
sonde_status sn_local_open(sonde_accuracy *acc, sn_job *job, sonde_error *err);
sonde_status sn_local_run_all(sonde_accuracy *acc, const sn_local_run *r, sonde_error *err);

/* ---- run.c ---- */
/* What is compared of pairs; may be added up. */
enum {
    SN_JOB_OUTPUTS = 1, /* tensors that are outputs, of both models as they are */
    SN_JOB_INNER = 2,   /* the others */
    SN_JOB_LOCAL = 4    /* what B's operators make of A's tensors */
};
sonde_status sn_job_open(sonde_accuracy *acc, sn_job *job, const uint32_t *pairs, uint32_t n,
                         int what, sonde_error *err);
void sn_job_close(sn_job *job); /* also after a failure, and of a zeroed one */
/* Runs it on a sample and adds the errors. `layer`, when it is not NULL, is given each tensor that
 * a local run has made instead. */
sonde_status sn_job_run(sonde_accuracy *acc, sn_job *job, const sn_sample *s, sn_layer_fn layer,
                        void *user, sonde_error *err);

/* ---- layers.c ---- */
/* The last pass: the quantised layers with the largest errors of their own, each alone in A. */
sonde_status sn_accuracy_layers(sonde_accuracy *acc, const sn_sample *s, sonde_error *err);

/* ---- rank.c ---- */
typedef struct sn_keyed {
    double key;
    uint32_t pair;
} sn_keyed;
void sn_keyed_sort(sn_keyed *all, size_t n); /* the largest key first, then by pair */
double sn_pair_added(const sonde_accuracy *acc, const sn_pair *p);
/* What rounding alone adds to a tensor of A, at most: error power divided by signal power. */
double sn_pair_floor(const sn_pair *p);
/* Fills worst and leave; once all passes are done. */
sonde_status sn_accuracy_rank(sonde_accuracy *acc, sonde_error *err);
sonde_accuracy_bound sn_accuracy_bound_of(const sonde_accuracy *acc);

#endif
