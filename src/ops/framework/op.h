/* SPDX-License-Identifier: Apache-2.0 */
/* What a node means. An operator is an array of const descriptors, one per opset version range,
 * listed once in ops.inc. A descriptor has at most five functions, one per phase:
 *
 *   prepare  attributes ► typed params            once per program
 *   infer    facts of inputs ► facts of outputs   symbolic, concrete, or from real slots
 *   pack     which constant inputs want a packed format   once per program
 *   bind     concrete facts ► kernel parameters, workspace, the run function   once per shape
 *   run      numbers ► numbers; validates nothing that an earlier phase could
 *
 * A step whose input shapes are only known while running goes through infer, bind and run in one
 * go (eval.h), with the same functions: an operator is written once. */
#ifndef SN_OPS_FRAMEWORK_OP_H
#define SN_OPS_FRAMEWORK_OP_H

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/workspace.h"
#include "graph/graph.h"
#include "ops/framework/signature.h"

typedef struct sn_op sn_op;
typedef struct sn_step sn_step;
typedef struct sn_frame sn_frame;

#define SN_NO_SLOT UINT32_MAX

/* ------------------------------------------------------------------ prepare */
typedef struct sn_prep {
    const sn_node *node;
    sn_arena *arena;
    void *params; /* op->params_size zeroed bytes to fill */
    sonde_error *err;
} sn_prep;

/* Typed attribute access: a missing attribute gives the default, one of the wrong kind an error. */
sonde_status sn_prep_int(sn_prep *p, const char *name, int64_t def, int64_t *out);
sonde_status sn_prep_float(sn_prep *p, const char *name, float def, float *out);
/* Copies into the arena, NUL-terminated; def may be NULL. */
sonde_status sn_prep_string(sn_prep *p, const char *name, const char *def, const char **out);
sonde_status sn_prep_ints(sn_prep *p, const char *name, const int64_t **out,
                          size_t *n); /* n=0 absent */
sonde_status sn_prep_floats(sn_prep *p, const char *name, const float **out, size_t *n);
sonde_status sn_prep_strings(sn_prep *p, const char *name, const sonde_string **out, size_t *n);
/* May weights of this type be read beside inputs of `dtype`? They have the same, or a pass left
 * them narrower (sn_node.narrow_weights). */
static inline bool sn_weights_fit(const sn_node *n, sn_dtype weights, sn_dtype dtype)
{
    return weights == dtype || (n->narrow_weights && dtype == SONDE_DTYPE_F32 &&
                                (weights == SONDE_DTYPE_F16 || weights == SONDE_DTYPE_BF16));
}
/* "node 'conv1' (Conv): …", status INVALID_MODEL. */
sonde_status sn_prep_fail(sn_prep *p, const char *fmt, ...) SONDE_PRINTF(2, 3);

/* ------------------------------------------------------------------ infer */
typedef struct sn_infer {
    const sn_node *node;
    const void *params;
    const sn_fact *const *in; /* n_in; NULL entry: input absent */
    sn_fact *out;             /* n_out zeroed facts to fill */
    uint32_t n_in, n_out;
    sn_arena *arena; /* for dims and ints; scratch and results */
    sonde_error *err;
} sn_infer;

static inline bool sn_infer_has(const sn_infer *c, uint32_t i)
{
    return i < c->n_in && c->in[i];
}
/* A tensor output. dims are copied; rank -1: unknown (dims NULL). Negative known dims are an error.
 */
sonde_status sn_infer_tensor(sn_infer *c, uint32_t o, sn_dtype dtype, const sn_dim *dims, int rank);
sonde_status sn_infer_same(sn_infer *c, uint32_t o, uint32_t i); /* type of input i */
/* Elements of a small integer input if known (from ints or from constant data of i32/i64/…): *ints
 * in row-major order, arena-owned; *ints = NULL when unknown. Entries may be symbols. Values near
 * INT64_MIN are clamped to SN_DIM_FIRST_KNOWN (as Slice ends they mean the same). */
sonde_status sn_infer_ints(sn_infer *c, uint32_t i, const sn_dim **ints, int64_t *n);
/* Says which integers output o holds (copied); ignored above SN_MAX_KNOWN_INTS. */
sonde_status sn_infer_set_ints(sn_infer *c, uint32_t o, const sn_dim *ints, int64_t n);
/* Multidirectional broadcast of inputs a and b into dims (room for SN_MAX_RANK); *rank = -1
 * unknown. */
sonde_status sn_infer_broadcast(sn_infer *c, const sn_type *a, const sn_type *b, sn_dim *dims,
                                int *rank);
/* Resolves a possibly negative axis against rank; error names the node. allow_rank: axis == rank
 * ok. */
sonde_status sn_infer_axis(sn_infer *c, int64_t axis, int rank, bool allow_rank, int *out);
/* Control flow, while a program is made: sets the facts of a body's inputs (`formal`, n of them, a
 * NULL entry or kind NONE: keep what the file declares; captures come from the node's extra inputs)
 * and infers the whole body afresh, so that it can be called again with more general facts. Does
 * nothing when facts are inferred for a binding or a real run: bodies are shared then and keep what
 * the program inferred. Results: the facts of body->outputs. */
sonde_status sn_infer_body(sn_infer *c, sn_graph *body, const sn_fact *const *formal, uint32_t n);
sonde_status sn_infer_fail(sn_infer *c, const char *fmt, ...) SONDE_PRINTF(2, 3);
/* Dim arithmetic: unknown when either is not known; overflow gives unknown. */
sn_dim sn_dim_add(sn_dim a, sn_dim b);
sn_dim sn_dim_mul(sn_dim a, sn_dim b);
/* Product of known dims [from, to) of a tensor that can exist. */
static inline int64_t sn_dims_product(const sn_dim *dims, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= dims[i];
    return n;
}

/* ------------------------------------------------------------------ pack */
typedef struct sn_pack_request {
    const sn_node *node;
    const void *params;
    uint32_t cpu_flags;
    const sn_fact *const *in;
    uint32_t n_in;
    uint8_t in_block, out_block; /* planned layout of input 0 and output 0 */
    sonde_precision precision;   /* of floating-point weights … */
    bool as_in_file[8];          /* … but not of these, which do not fit its type */
    /* answer: input index ► pack id (compute/packs.inc), 0 = leave as it is */
    uint8_t pack[8];
    int64_t pack_arg[8]; /* format argument, e.g. groups of a convolution */
} sn_pack_request;
/* The type in which input i, weights of a step that computes in f32, is packed. */
static inline sn_dtype sn_pack_dtype(const sn_pack_request *r, uint32_t i)
{
    const sn_dtype file = r->in[i]->type.dtype;
    if ((file != SONDE_DTYPE_F32 && file != SONDE_DTYPE_F16 && file != SONDE_DTYPE_BF16) ||
        r->as_in_file[i])
        return file;
    switch (r->precision) {
    case SONDE_PRECISION_F32:
        return SONDE_DTYPE_F32;
    case SONDE_PRECISION_BF16:
        return SONDE_DTYPE_BF16;
    case SONDE_PRECISION_F16:
        return SONDE_DTYPE_F16;
    default:
        return file;
    }
}

/* ------------------------------------------------------------------ bind */
/* What an operator that can cut its work in several ways says of them. */
typedef struct sn_choices {
    unsigned n;    /* variants 0 … n-1; 0: there is nothing to choose */
    uint64_t cut;  /* of this variant: two with the same are the same work */
    char key[400]; /* what the choice depends on, beside the machine and the threads */
} sn_choices;

typedef struct sn_bind {
    const sn_node *node;
    const void *params;
    const sn_fact *const *in; /* concrete types; NULL entry: absent */
    const sn_fact *out;       /* concrete unless the op is SN_OP_DATA_DEPENDENT */
    uint32_t n_in, n_out;
    const sn_context *ctx;
    uint32_t cpu_flags;
    sonde_precision precision; /* that the session asks for */
    int threads;
    unsigned variant;    /* which way to cut the work; 0: what the operator thinks best */
    sn_choices *choices; /* to be filled; NULL: nobody asks */
    sn_arena *arena;     /* lifetime of the binding */
    sonde_error *err;
    /* answers */
    const void *bound;      /* kernel parameters, from `arena` */
    sn_workspace workspace; /* carved: the scratch memory the step needs while it runs */
    sonde_status (*run)(const sn_step *, sn_frame *); /* preset to op->run; may be specialised */
    const char *kernel;    /* name shown to people: "f32_conv3x3_14x2_avx512" */
    uint64_t flops, bytes; /* arithmetic and compulsory memory traffic of the step; 0 = default */
    sn_arithmetic arithmetic; /* what most of the flops are products of; NONE: f32, or the type of
                                 input 0 where that is f64 or an integer */
    uint32_t overwrites; /* bit per input: output 0 may overwrite it when shapes, types and layout
                            agree and nobody else reads it, as SN_OP_INPLACE0 says for all steps of
                            an operator: each element is read before the one in its place is
                            written, and not again */
    bool view;  /* with these shapes output 0 holds input 0's bytes in their order: the plan may let
                   it share the memory, and then the step does not run */
    bool joins; /* with these shapes output 0 holds the bytes of all inputs, one behind the other:
                   the plan may let some of them be made there, which the step then leaves alone */
} sn_bind;
sonde_status sn_bind_fail(sn_bind *b, sonde_status st, const char *fmt, ...) SONDE_PRINTF(3, 4);

/* ------------------------------------------------------------------ run */
/* One executable step. Filled by plan (static) or eval (one-off). Read-only while running. */
struct sn_step {
    sonde_status (*run)(const sn_step *, sn_frame *);
    const void *params, *bound;
    const uint32_t *in, *out; /* slot numbers; SN_NO_SLOT: absent */
    uint32_t n_in, n_out;
    uint32_t index; /* position in the binding */
    const sn_op *op;
    const sn_node *node; /* names for messages */
    const void *const
        *bodies; /* control flow: opaque handles for run_body, one per graph attribute */
    uint32_t n_bodies;
};

typedef struct sn_frame_hooks {
    /* Runs body `handle` of a control-flow step: inputs are the body's formal inputs; captures are
     * taken from the step's own slots. Outputs (n_out slots, cleared by the callee) own what they
     * hold. `in` entries are shared, not consumed. */
    sonde_status (*run_body)(sn_frame *f, const sn_step *s, uint32_t body, const sn_slot *in,
                             uint32_t n_in, sn_slot *out, uint32_t n_out);
} sn_frame_hooks;

struct sn_frame {
    sn_slot *slots;
    uint8_t *workspace;
    const sn_context *ctx;
    sn_pool *pool;       /* may be NULL: run alone */
    sn_allocator *alloc; /* dynamic outputs */
    sonde_error *err;
    const sn_frame_hooks *hooks;
    const _Atomic int *cancel; /* non-zero: stop; long loops may look too; may be NULL */
};

/* Where a piece carved in `bind` lies in this run. */
static inline void *sn_piece_ptr(const sn_frame *f, sn_piece p)
{
    return sn_piece_at(f->workspace, p);
}

static inline bool sn_has(const sn_step *s, uint32_t i)
{
    return i < s->n_in && s->in[i] != SN_NO_SLOT;
}
static inline sn_slot *sn_in_slot(const sn_step *s, const sn_frame *f, uint32_t i)
{
    return &f->slots[s->in[i]];
}
static inline const sn_tensor *sn_in(const sn_step *s, const sn_frame *f, uint32_t i)
{
    return &f->slots[s->in[i]].t;
}
static inline sn_slot *sn_out_slot(const sn_step *s, const sn_frame *f, uint32_t i)
{
    return &f->slots[s->out[i]];
}
static inline sn_tensor *sn_out(const sn_step *s, const sn_frame *f, uint32_t i)
{
    return &f->slots[s->out[i]].t;
}
static inline bool sn_wants(const sn_step *s, uint32_t o)
{
    return o < s->n_out && s->out[o] != SN_NO_SLOT;
}

/* Data-dependent operators: gives output o this type and dims with memory of its own, data
 * undefined. (Other operators find their outputs allocated.) Does nothing when the output is not
 * wanted, but then *t is NULL. */
sonde_status sn_run_output(const sn_step *s, sn_frame *f, uint32_t o, sn_dtype dtype,
                           const int64_t *dims, int rank, sn_tensor **t);
/* String outputs are made by run, whatever the operator's flags: copies the elements. */
sonde_status sn_run_strings(const sn_step *s, sn_frame *f, uint32_t o, const int64_t *dims,
                            int rank, const sonde_string *elems);
sonde_status sn_run_fail(const sn_step *s, sn_frame *f, const char *fmt, ...) SONDE_PRINTF(3, 4);
/* Has somebody asked the run to stop? For loops that take long; then sn_fail_cancelled. */
static inline bool sn_frame_cancelled(const sn_frame *f)
{
    return f->cancel && atomic_load_explicit(f->cancel, memory_order_relaxed);
}
sonde_status sn_fail_cancelled(sn_frame *f);

/* ------------------------------------------------------------------ descriptor */
enum {
    SN_OP_DATA_DEPENDENT =
        1 << 0,               /* output shapes depend on input *values*: run allocates outputs */
    SN_OP_RANDOM = 1 << 1,    /* two runs differ: never folded or merged */
    SN_OP_CONTROL = 1 << 2,   /* has bodies */
    SN_OP_VIEW = 1 << 3,      /* output 0 may share input 0's memory (Reshape, Identity, …): run
                                 copies only when data pointers differ */
    SN_OP_INPLACE0 = 1 << 4,  /* output 0 may overwrite input 0 when shapes, types and layout agree
                                 and nobody else reads it */
    SN_OP_INPLACE1 = 1 << 5,  /* the same for input 1 */
    SN_OP_NONTENSOR = 1 << 6, /* inputs or outputs may be sequences, optionals or maps: run
                                 handles whole slots and allocates its outputs */
    SN_OP_NO_FOLD = 1 << 7,
    SN_OP_BYTES0 =
        1 << 8, /* input 0 is copied as bytes: a constant may lie in its file misaligned */
    SN_OP_TILES = 1 << 9, /* it, or what passes make of it, may use tiles of AMX, which a process
                             has to ask for (sn_cpu_request) */
    SN_OP_ELEMENTWISE = 1 << 10, /* has one output, each element of which is a function of the
                                   elements that broadcasting puts in its place and of inputs with
                                   one element: where it lies and what is beside it do not matter */
    SN_OP_PLAIN_TILES = 1 << 11  /* its tiles of bf16 are for plain images, not for blocks */
};

/* Of sn_op.in_half: output 0; and the operator only moves elements, so that its images are all
 * halves or all f32. */
enum { SN_HALF_OUT = 1 << 30, SN_HALF_ALIKE = 1 << 29, SN_HALF_INPUTS = 29 };

#define SN_MS_DOMAIN "com.microsoft"

struct sn_op {
    const char *name;     /* "Conv" */
    const char *domain;   /* "" = ai.onnx */
    int16_t since, until; /* opset range, both inclusive; until 0 = open */
    /* Arity; max -1: any number. The first min_in inputs are always present (an operator whose
     * leading input may be left out says 0); outputs below min_out, and all of a variadic one, are
     * always wanted. */
    int16_t min_in, max_in, min_out, max_out;
    uint32_t flags;
    size_t params_size;
    sonde_status (*prepare)(sn_prep *p); /* NULL: no attributes that matter */
    sonde_status (*infer)(sn_infer *c);  /* never NULL */
    sonde_status (*pack)(sn_pack_request *p);
    sonde_status (*bind)(sn_bind *b); /* NULL: nothing to choose */
    sonde_status (*run)(const sn_step *s, sn_frame *f);
    /* Element types: what it does with 16-bit floats (SN_HALF_*), and a bit per input that is a
     * weight: constants there may stay 16-bit floats beside f32 (sn_weights_fit). */
    uint8_t half, narrow_in;
    /* Layouts: the signature of this node with images in blocks of `block` channels; NULL, or no
     * function: all is plain. Asked with types inferred. */
    const sn_op_signature *(*in_blocks)(const sn_node *node, const void *params, int block);
    /* The same with images of bytes that have their channels last. */
    const sn_op_signature *(*in_last)(const sn_node *node, const void *params);
    /* Storage: which images of f32 may lie in memory as `half`, BF16 if that is the precision, or
     * F16 if they are that in the file; a bit per input (the first SN_HALF_INPUTS) and SN_HALF_*.
     * Asked with layouts chosen. NULL: none. */
    uint32_t (*in_half)(const sn_node *node, const void *params, sn_dtype half, uint32_t cpu_flags);
    const char *types; /* allowed element types of input 0 for docs and tests: "f32 f64 i32 …" */
    /* Names of all its attributes, read or not: "axis keepdims"; a file that has others is newer
     * than this version, or wrong (attributes.c). NULL: attributes.inc has them, or there are none.
     */
    const char *attributes;
};

/* The descriptor for (domain, type, version), or NULL; *other tells whether another version exists.
 */
const sn_op *sn_op_find(const char *domain, const char *op_type, int64_t version, bool *other);
/* The k-th row of ops.inc as an array ended by a descriptor with name NULL; NULL past the end. */
const sn_op *sn_op_row(size_t k);

/* Resolves node->op and makes node->params (in g->arena). Errors name the node. */
sonde_status sn_op_prepare(sn_graph *g, sn_node *n, sonde_error *err);
/* Resolves every node, bodies included; unknown operators are all listed in one error. */
sonde_status sn_ops_resolve(sn_graph *g, sonde_error *err);
/* Has a node of the graph or its bodies this flag? */
bool sn_ops_any(const sn_graph *g, uint32_t flag);
/* Runs inference of one node on the facts in the graph, storing into its outputs' facts. An output
 * type declared in the file is merged in: a contradiction of known dims is an error. */
sonde_status sn_op_infer_node(sn_graph *g, sn_node *n, sonde_error *err);
/* Binds a step through its operator. One whose outputs have no elements gets nothing to do: its
 * other dims may be so large that no loop over them would end, and it needs no workspace. Refuses
 * a step whose workspace is too large. */
sonde_status sn_op_bind_step(const sn_step *s, sn_bind *b);
/* All nodes in order, bodies included. */
sonde_status sn_ops_infer(sn_graph *g, sonde_error *err);
/* Forgets what the file declares or an earlier inference stored for the values that nodes make;
 * element types stay. */
void sn_ops_forget_shapes(sn_graph *g);
/* Both: as if the file did not declare shapes for what nodes make. */
sonde_status sn_ops_infer_undeclared(sn_graph *g, sonde_error *err);

/* "node 'conv1' (Conv): …" into err; what the *_fail helpers of each phase are made of. */
sonde_status sn_node_fail_va(sonde_error *err, sonde_status st, const sn_node *n, const char *fmt,
                             va_list args);

/* The list (ops.c): descriptors of one operator each, and a NULL. */
enum { SN_OP_TABLE = 2048 }; /* places of the registry's hash table, at least twice the rows */
extern const sn_op *const sn_op_rows[];
extern const size_t sn_op_count;
#define SN_OP(symbol) extern const sn_op symbol[];
#include "ops/ops.inc"
#undef SN_OP

#endif
