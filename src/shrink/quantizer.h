/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the quantiser. The way of a model: prepared (opset raised, normalisations
 * folded, equalised), planned (which nodes compute with integers, which values are bytes),
 * calibrated (the range of each such value), written (a clone of the prepared graph with what makes
 * it integers), compared with the prepared one. */
#ifndef SN_SHRINK_QUANTIZER_H
#define SN_SHRINK_QUANTIZER_H

#include "api/internal.h"
#include "shrink/selection.h"
#include "sonde/experimental/quantize.h"

/* What a node does with bytes. */
typedef enum sn_q_role {
    SN_Q_FLOAT,   /* nothing */
    SN_Q_PRODUCT, /* Conv, ConvTranspose, Gemm, MatMul with constant weights */
    SN_Q_JOIN,    /* Add, Mul, Concat, average pools: its result has a scale of its own */
    SN_Q_MOVE,    /* Reshape, MaxPool …: its result has the scale of its input */
    SN_Q_TABLE,   /* elementwise, of one value: only its `root` and the last result are bytes */
    SN_Q_FOLDED   /* Relu or Clip that the range of the integers does */
} sn_q_role;

typedef struct sn_q_node { /* by node id of the prepared graph */
    sn_q_role role;
    const char *why;      /* of SN_Q_FLOAT */
    const sn_value *root; /* of SN_Q_TABLE */
    /* Found while writing, of products: */
    const char *made, *weights; /* "int8", "per channel" */
    uint64_t bytes_before, bytes_after;
    double sqnr_db;
} sn_q_node;

typedef struct sn_q_value { /* by value id of the prepared graph */
    bool bytes;             /* QuantizeLinear and DequantizeLinear stand behind it */
    bool wants_means;       /* per channel, for the correction of biases */
    uint32_t scale_of;      /* the id of the value whose scale it has; mostly its own */
    int axis;               /* of the channels, where it wants means */
    float low, high;        /* the range, 0 included */
    float scale;
    int32_t zero;
    double *means; /* NULL: none */
    int64_t channels;
} sn_q_value;

/* The main graph, or a body of control flow. Clones have the same graphs in the same order. */
typedef struct sn_q_scope {
    sn_graph *g;
    const sn_node **g_nodes; /* by id */
    sn_q_node *nodes;        /* by id */
} sn_q_scope;

typedef struct sn_quantizer {
    sonde_context *context;
    sonde_model *source;
    const sonde_samples *samples;
    sonde_quantize_options o;
    sonde_model *prepared;
    sn_graph *g; /* of the prepared model */
    sn_arena arena;
    SN_VEC(sn_q_scope) scopes; /* of all graphs, the main one first */
    sn_selection selection;
    /* Of the main graph: */
    const sn_node **g_nodes; /* by id */
    sn_q_node *nodes;
    sn_q_value *values;
    bool *left; /* by node id: stays in float for the goal */
    int64_t opset_before;
    bool widened; /* the model is of f16, the prepared one of f32 */
    size_t equalized;
    sonde_error *err;
} sn_quantizer;

/* ---- product.c ---- */
bool sn_q_is(const sn_node *n, const char *op_type); /* of ONNX's own domain */
int64_t sn_q_int(const sn_node *n, const char *name, int64_t otherwise);
float sn_q_float(const sn_node *n, const char *name, float otherwise);
bool sn_q_is_f32(const sn_value *v);
/* A constant f32 tensor; NULL: it is none. */
const sn_tensor *sn_q_floats(const sn_value *v);
/* How the weights of a product lie. */
typedef struct sn_q_product {
    const sn_value *w, *bias; /* bias may be NULL */
    int axis;                 /* of the output channels */
    int64_t channels;
    int64_t groups;
    bool half; /* it computes in f16: the static form does not know that */
} sn_q_product;
bool sn_q_is_product(const sn_node *n); /* Conv, ConvTranspose, Gemm or MatMul */
/* NULL: it can be quantised; else why not. */
const char *sn_q_product_of(const sn_node *n, sn_q_product *p);

/* ---- prepare.c ---- */
/* Makes q->prepared, and empty tables. */
sonde_status sn_q_prepare(sn_quantizer *q);

/* ---- raise_opset.c ---- */
/* Nodes of ONNX's own domain become those of `version`, bodies included. */
sonde_status sn_q_raise_opset(sn_model *m, int64_t version, sonde_error *err);

/* ---- widen.c ---- */
/* Where products compute in f16, all of m computes in f32 but its inputs and outputs, which stay as
 * those of `from`, the graph that m->graph is a copy of. */
sonde_status sn_q_widen(sn_model *m, const sn_graph *from, bool *widened, sonde_error *err);

/* ---- plain_gemm.c ---- */
/* Gemms of this graph and its bodies: constants take up alpha and beta, a Transpose takes up
 * transA, and a single number as bias becomes one for each column. */
sonde_status sn_q_plain_gemms(sn_model *m, sn_graph *g, sonde_error *err);

/* ---- equalize.c ---- */
sonde_status sn_q_equalize(sn_quantizer *q);

/* ---- quantize_plan.c ---- */
sonde_status sn_q_plan(sn_quantizer *q);
/* Does node n read its input k as bytes, if it computes with integers? */
bool sn_q_reads_bytes(const sn_quantizer *q, const sn_node *n, uint32_t k);

/* ---- calibrate.c, ranges.c ---- */
sonde_status sn_q_calibrate(sn_quantizer *q);
/* The number that a Clip before v does not exceed; INFINITY: there is none. */
double sn_q_bound_of(const sn_quantizer *q, const sn_value *v);
/* Scale and zero point of v, from its range. */
void sn_q_set_scale(const sn_quantizer *q, const sn_value *v);
/* The error for a value that is NaN or infinite: x. */
sonde_status sn_q_fail_number(const sn_quantizer *q, const sn_value *v, double x);
enum { SN_Q_BINS = 2048 };
/* The range that a method chooses: `bins` counts values between low and high, in equal steps. */
void sn_q_choose_range(sonde_calibration method, double percentile, const uint64_t *bins,
                       double low, double high, float *chosen_low, float *chosen_high);

/* ---- weights.c ---- */
/* A tensor seen as [outer][channels][inner]. */
typedef struct sn_q_layout {
    int64_t outer, channels, inner;
} sn_q_layout;
/* `axis` < 0: one channel. */
sn_q_layout sn_q_layout_of(const sn_tensor *t, int axis);
void sn_q_weight_scales(const float *w, sn_q_layout l, float *scales);
void sn_q_weight_round(const float *w, sn_q_layout l, const float *scales, int8_t *out);
double sn_q_weight_sqnr(const float *w, sn_q_layout l, const float *scales, const int8_t *rounded);
double sn_q_decibel(double signal, double noise);

/* ---- write_static.c, write_dynamic.c, write_blocks.c: a new model ---- */
sonde_status sn_q_write_static(sn_quantizer *q, sonde_model **made);
sonde_status sn_q_write_dynamic(sn_quantizer *q, sonde_model **made);
sonde_status sn_q_write_blocks(sn_quantizer *q, sonde_model **made);

/* ---- emit.c: what writers have in common ---- */
/* The graph and everything around it, into an empty model. */
sonde_status sn_q_copy_model(sn_model *m, const sn_model *from, sonde_error *err);
/* A new constant name + suffix, whose numbers the caller fills in. */
sonde_status sn_q_constant(sn_model *m, sn_graph *g, const char *name, const char *suffix,
                           sn_dtype dtype, const int64_t *dims, int rank, sn_value **v, void **data,
                           sonde_error *err);
typedef struct sn_q_writer {
    sn_quantizer *q;
    sn_model *m;
    sn_graph *g;               /* being written: of a clone of the prepared model, with its ids */
    const sn_q_scope *scope;   /* that g is a clone of; set by sn_q_write_products */
    SN_VEC(sn_graph *) graphs; /* all, as q->scopes */
    sn_map names;              /* of nodes: runtimes refuse two that are called alike */
    sn_map made;               /* made.c */
    sn_arena scratch;          /* for one product */
    sonde_error *err;
} sn_q_writer;
sonde_status sn_q_writer_open(sn_q_writer *w, sn_quantizer *q);
/* `made` is the model; on failure (st) it is freed. */
sonde_status sn_q_writer_close(sn_q_writer *w, sonde_status st, sonde_model **made);
/* Calls `write` for every node of the clone that is to compute with integers, bodies included. */
typedef sonde_status (*sn_q_write_fn)(sn_q_writer *w, sn_node *n, sn_q_node *d);
sonde_status sn_q_write_products(sn_q_writer *w, sn_q_write_fn write);
/* The numbers of a weight as floats, in w->scratch where it is f16; all must be finite. */
sonde_status sn_q_weight_numbers(sn_q_writer *w, const sn_value *v, const float **numbers);
/* base + suffix, or a variation where a node is called so already. */
sonde_status sn_q_node_name(sn_q_writer *w, const char *base, const char *suffix,
                            const char **name);
/* A node before `before` (NULL: at the end) named base + suffix, with one new output of that name.
 */
sonde_status sn_q_add(sn_q_writer *w, sn_node *before, const char *domain, const char *op_type,
                      const char *base, const char *suffix, sn_value *const *in, uint32_t n_in,
                      sn_node **node, sn_value **out);
sonde_status sn_q_set_int(sn_q_writer *w, sn_node *n, const char *name, int64_t i);
/* Calls q->o.progress, which may cancel. */
sonde_status sn_q_progress(const sn_quantizer *q, const char *what, double done);
sonde_status sn_q_import(sn_q_writer *w, const char *domain, int64_t version);

/* ---- made.c: constants that several nodes share ---- */
enum { SN_Q_PARTS = 3 };
typedef struct sn_q_made {
    const sn_tensor *of;
    int form;                     /* how it lies, as the writer numbers it */
    sn_value *values[SN_Q_PARTS]; /* integers, scales, zero points; NULL: none */
    double sqnr_db;
    const sn_graph *g;      /* that has the values */
    struct sn_q_made *next; /* of the same tensor */
} sn_q_made;
/* What was made of a tensor in this form and with these scales (NULL: any), as values of w->g; NULL
 * in *found: nothing. */
sonde_status sn_q_made_find(sn_q_writer *w, const sn_tensor *of, int form, const float *scales,
                            const sn_q_made **found);
sonde_status sn_q_made_add(sn_q_writer *w, const sn_q_made *one);
/* A constant that several bodies have becomes one of the main graph, too, so that the file has it
 * once. */
sonde_status sn_q_share_constants(sn_graph *g, sonde_error *err);

/* ---- compare.c ---- */
typedef struct sn_q_agreement {
    double sqnr_db; /* -infinity: the quantised model gives NaN or infinities; NaN: no floats */
    double top1;    /* NaN: nothing to compare */
} sn_q_agreement;
/* Of the outputs of both models on the first `most` samples. */
sonde_status sn_q_compare(const sn_quantizer *q, sonde_model *made, size_t most,
                          sn_q_agreement *found);

/* ---- goal.c ---- */
/* Writes models until one meets the goal; the best one is *made. */
sonde_status sn_q_reach_goal(sn_quantizer *q, sonde_model **made, sn_q_agreement *found,
                             size_t *left);

#endif
