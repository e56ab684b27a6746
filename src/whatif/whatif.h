/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of this room: a scenario is what is asked, a variant the model that answers it,
 * a measurement what its runs took. */
#ifndef SN_WHATIF_WHATIF_H
#define SN_WHATIF_WHATIF_H

#include "api/internal.h"
#include "sonde/experimental/whatif.h"

/* ---- scenario.c ---- */
typedef enum sn_bits { /* of the products with constant weights */
                       SN_BITS_FILE,
                       SN_BITS_INT8,
                       SN_BITS_INT8_DYNAMIC,
                       SN_BITS_INT4
} sn_bits;

typedef struct sn_scenario {
    const char *name; /* canonical: the parts in one order */
    int sparsity;     /* % of zeros; 0: as they are */
    sn_bits form;
    bool has_precision;
    sonde_precision precision;
    sonde_session_options session; /* but for these two */
    int64_t batch;                 /* 0: that of the inputs */
    int threads;                   /* 0: as now */
} sn_scenario;

typedef struct sn_scenarios {
    SN_VEC(sn_scenario) list;
} sn_scenarios;

/* Parses a list, or makes the default one, up to so many threads; equal ones are listed once. */
sonde_status sn_scenarios_parse(sn_scenarios *s, const char *text, int threads, sn_arena *arena,
                                sn_allocator *alloc, sonde_error *err);
/* Whether it changes weights only: what operators can have side by side. */
bool sn_scenario_is_mixable(const sn_scenario *s);

/* ---- variant.c: the model of a scenario ---- */
/* What becomes of the weight of a node. */
typedef struct sn_node_form {
    uint8_t sparsity; /* % */
    uint8_t form;     /* sn_bits */
} sn_node_form;

/* What the model of a variant refers to; must live as long. */
typedef struct sn_variant_parts {
    sn_buffers buffers; /* of new constants: outside of the model, as weights of a mapped file are,
                           so that those which were packed do not count as memory in use */
    SN_VEC(sonde_model *) models; /* that it was made of */
    bool idle; /* a form that was asked for is that of no weight: what is joined is not all there */
} sn_variant_parts;

typedef struct sn_variant {    /* while it is made */
    const sn_model *source;    /* alive as long as the variant */
    const sn_node_form *forms; /* by origin of the source; NULL: all stay */
    bool *changed;             /* by origin: its weight has another form */
    sonde_context *context;
    sn_model *m;
    sn_variant_parts *parts;
    sonde_error *err;
} sn_variant;

/* A copy in another context, which shares the constants that stay. Every origin of it is called by
 * its number in the source; nodes that were added have higher ones. `changed`: weights that have
 * another form. */
sonde_status sn_variant_make(const sn_model *source, const sn_node_form *forms,
                             sonde_context *context, sn_variant_parts *parts, int64_t *changed,
                             sonde_model **model, sonde_error *err);
/* When the model is gone, or was not made. */
void sn_variant_free_parts(sn_variant_parts *parts, sonde_context *context);

/* ---- weights.c: for sparse.c ---- */
typedef struct sn_weight { /* the constant matrix of a product */
    sn_node *holder;       /* that reads it: the product, or the DequantizeLinear before it */
    uint32_t input;        /* of the holder */
    const sn_tensor *data;
    int64_t outputs, inputs;         /* of the product: columns and rows, channels */
    int64_t output_step, input_step; /* elements from one to the next */
} sn_weight;
/* False: the node has none. `inputs` of a convolution are channels times pixels of the kernel. */
bool sn_weight_of(const sn_node *n, sn_weight *w);
/* Not that of a depthwise convolution, which has one input for each output, nor one whose zero is
 * another number. */
bool sn_weight_may_be_sparse(const sn_weight *w);
/* The % of zeros that the weight of a node is to have. */
int sn_variant_sparsity(const sn_variant *v, const sn_node *n);
sonde_status sn_variant_constant(const sn_variant *v, sn_graph *g, sonde_dtype dtype,
                                 const int64_t *dims, int rank, sn_value **value, void **data);

/* ---- only.c ---- */
/* By origin: whether the node is on the lists, see shrink/selection.h; *only is NULL without lists.
 */
sonde_status sn_whatif_only(const sn_model *m, const char *const *names, size_t n, sn_arena *arena,
                            bool **only, sonde_error *err);

/* ---- sparse.c: one graph, bodies not included ---- */
sonde_status sn_variant_sparse(const sn_variant *v, sn_graph *g);

/* ---- subject.c: a variant that runs ---- */
typedef struct sn_whatif_step {
    const char *name, *op_type;  /* "MatMul+Add", "MatMul"; "[Other]" */
    const char *shapes, *weight; /* see sonde_whatif_row */
    const char *how;             /* it computes: its kernel and the types it reads and writes */
    const uint32_t *nodes;       /* origins of the source; those that were added are left out */
    uint32_t n_nodes;
    bool added;  /* nothing but nodes that were added */
    bool sparse; /* its weight may be sparse */
    double ns;   /* of one run */
} sn_whatif_step;

typedef struct sn_whatif_case { /* what is to be measured, and how */
    sonde_model *model;
    const sn_node_form *forms; /* read while it is opened */
    bool must_change;          /* a weight, or it makes no sense */
    int threads;
    sonde_precision precision;
    sonde_session_options session; /* but for these two */
    int64_t batch;                 /* samples are repeated up to it; 0: the inputs as they are */
    const char *const *names;
    sonde_value *const *values;
    size_t n_values;
    int warmup, runs; /* runs 0: by time */
    sonde_cancel_token *cancel;
    void (*progress)(void *user, double done);
    void *progress_user;
} sn_whatif_case;

/* Runs one after the other, each a profile of its own: what one of them takes. */
typedef struct sn_round {
    double ns;
    size_t runs, first_part; /* in the subject's list of parts; the next round's ends it */
} sn_round;
typedef struct sn_round_part {
    uint32_t step;
    double ns;
} sn_round_part;

typedef struct sn_subject {
    sn_whatif_case k;
    sn_allocator *alloc;
    sn_arena arena;
    sonde_context *context; /* its own */
    sn_variant_parts parts;
    sonde_model *model;
    sonde_session *session;
    sonde_value **values, **outputs;
    size_t n_out;
    uint64_t weight_bytes, peak_bytes;
    int64_t changed;
    SN_VEC(sn_whatif_step) steps;
    SN_VEC(sn_round) rounds;
    SN_VEC(sn_round_part) round_parts;
    struct sn_round_open *open; /* the round under way */
} sn_subject;

/* Makes the variant and warms it up. Close it also after a failure. */
sonde_status sn_subject_open(sn_subject *s, const sn_whatif_case *k, sn_allocator *alloc,
                             sonde_error *err);
void sn_subject_close(sn_subject *s); /* also a zeroed one */
/* Adds a round of so many runs; 0: by time. It is the part of all progress from `done` to `then`.
 */
sonde_status sn_subject_round(sn_subject *s, size_t runs, double done, double then,
                              sonde_error *err);

/* ---- measure.c ---- */
typedef struct sn_measured {
    sn_allocator *alloc;
    sn_arena arena;
    SN_VEC(sn_whatif_step) steps; /* they add up to total_ns */
    SN_VEC(double) ratios;        /* of each round, "now" divided by it; smallest first */
    double total_ns;
    double now_ns; /* what "now" took in the same rounds */
    uint64_t weight_bytes, peak_bytes;
    int64_t changed;
    size_t runs;
    int64_t at_s;     /* when, in seconds since 1970 */
    const char *host; /* the machine's name */
} sn_measured;

void sn_measured_init(sn_measured *m, sn_allocator *alloc);
void sn_measured_free(sn_measured *m);
/* Measures a case in turns with "now", to which rounds are added. */
sonde_status sn_whatif_measure(const sn_whatif_case *k, sn_subject *now, sn_measured *m,
                               sonde_error *err);
/* From the rounds of a subject, of which there must be one, and those of "now" beside them. */
sonde_status sn_measured_take(sn_measured *m, const sn_subject *s, const sn_round *clock,
                              sonde_error *err);
/* "now" itself, of all its rounds so far, of which there must be one. */
sonde_status sn_whatif_measure_now(const sn_subject *now, sn_measured *m, sonde_error *err);
/* The rounds of a subject that runs alone. */
sonde_status sn_whatif_run_alone(sn_subject *s, sonde_error *err);
/* 95 % interval of the median of sorted samples. */
void sn_median_interval(const double *sorted, size_t n, double *low, double *high);

/* ---- batch.c ---- */
/* The inputs' batch: the first dimension of those whose first dimension is the symbol that the
 * first input begins with. 0 and a sentence: there is none. */
int64_t sn_batch_of(const sonde_session *s, const char *const *names, sonde_value *const *values,
                    size_t n, const char **reason);
/* The inputs with another batch: samples are repeated. New references. */
sonde_status sn_batch_values(const sonde_session *s, const char *const *names,
                             sonde_value *const *values, size_t n, int64_t batch,
                             sonde_context *context, sonde_value **out, sonde_error *err);

/* ---- kept.c: measurements by key, in the context and in a folder ---- */
typedef struct sn_kept {
    sonde_context *context;
    const char *folder; /* NULL: only in the context */
} sn_kept;
/* SONDE_NOT_FOUND: there is none. What is damaged is none, with a warning. */
sonde_status sn_kept_find(const sn_kept *k, const char *key, sn_measured *m, sonde_error *err);
/* A folder that cannot be written to only causes a warning. */
sonde_status sn_kept_add(const sn_kept *k, const char *key, const sn_measured *m, sonde_error *err);

/* ---- measured_text.c ---- */
struct sn_text;
sonde_status sn_measured_write(const sn_measured *m, struct sn_text *t, sonde_error *err);
/* False: it is not such a text, or there is no memory. `m` is initialised. */
bool sn_measured_read(sn_measured *m, const char *text, size_t bytes, bool *no_memory);

/* ---- key.c ---- */
/* Everything of the model and of its inputs that may change how long it runs. */
uint64_t sn_model_fingerprint(const sn_model *m, sn_arena *arena);
uint64_t sn_inputs_fingerprint(const char *const *names, sonde_value *const *values, size_t n);

/* ---- the result ---- */
typedef SN_VEC(sonde_whatif_row) sn_whatif_rows;

typedef struct sn_answer { /* one scenario */
    sn_scenario asked;
    sn_measured *measured; /* NULL: it has no figures */
    double scale;          /* its batch to that of the inputs */
    const char *key;       /* of the cache */
    bool mix;              /* the best mix */
    sonde_whatif_scenario shown;
} sn_answer;

struct sonde_whatif {
    sonde_context *context;
    sn_arena arena;
    const char *model; /* its name */
    const char *cpu;
    SN_VEC(sn_answer) answers;
    SN_VEC(sn_measured *) measurements; /* all of them, to be freed */
    sn_whatif_rows rows[3];             /* by sonde_by */
    uint32_t *row_of_node;              /* by origin: number in rows[SONDE_BY_NODE] */
    const char **how_of_node;           /* by origin: how the step of that row computes today */
    SN_VEC(sonde_sparse_ratio) ratios;
    const char *about_ratios; /* when and where they were measured */
};

/* What the times of an answer, which were measured beside another "now" than the one that is shown,
 * are multiplied with: so that all ratios are of one moment each. */
static inline double sn_answer_factor(const sonde_whatif *w, const sn_answer *a)
{
    return a->scale * w->answers.data[0].measured->total_ns / a->measured->now_ns;
}

/* A form is preferred to one before it only if it takes less than this: what differs by less may be
 * chance. */
#define SN_CLEARLY 0.98

/* rows.c: rows of one operator each from the measurements so far; then all rows. */
sonde_status sn_whatif_node_rows(sonde_whatif *w, const sn_model *source, sonde_error *err);
sonde_status sn_whatif_group_rows(sonde_whatif *w, sonde_error *err);
sonde_status sn_whatif_find_ratios(sonde_whatif *w, sonde_error *err);

/* mix.c: the form of every node in the best mix, and the precision of its session; rows say by
 * `best` which scenario a form comes from. False: nothing is faster than now. */
bool sn_whatif_mix(const sonde_whatif *w, const sn_model *source, sn_node_form *forms,
                   sonde_precision now, sonde_precision *precision);

/* What is said of a scenario beside its name, in all tables. */
enum { SN_SCENARIO_TITLES = 14 };
extern const char *const sn_scenario_titles[SN_SCENARIO_TITLES];

#endif
