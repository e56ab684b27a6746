/* SPDX-License-Identifier: Apache-2.0 */
/* The IR. A graph is a list of nodes in topological order over values in SSA form; everything lives
 * in one arena. Uses are kept in intrusive lists, so that "who reads this value" and "replace it"
 * cost what they touch and passes stay linear on graphs of 10^5 nodes.
 *
 * Origins: every node read from a file has an origin id (an index into the model's origin table);
 * a node a pass makes carries the union of the origins it stands for. Passes replace nodes only
 * through sn_graph_replace and sn_graph_fold, which keep that promise. */
#ifndef SN_GRAPH_GRAPH_H
#define SN_GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "graph/type.h"

typedef struct sn_graph sn_graph;
typedef struct sn_node sn_node;
typedef struct sn_value sn_value;
struct sn_op; /* ops/framework/op.h; opaque here */

/* One input of one node: a link in its value's use list. value == NULL: optional input left out. */
typedef struct sn_edge {
    sn_value *value;
    sn_node *node;
    uint32_t index;    /* of this input in node->in */
    const char *shown; /* what reports call the part of the value it reads; NULL: the value's */
    struct sn_edge *prev, *next;
} sn_edge;

struct sn_value {
    const char *name;  /* "" for unnamed; unique within its graph otherwise */
    const char *shown; /* what reports call a value a pass made: sn_value_shown; NULL: its name */
    uint32_t id;       /* dense within its graph: side tables index by it */
    sn_fact fact;      /* type, known small values, constant data */
    sn_node *producer; /* NULL: graph input, constant or capture */
    uint32_t output_index;
    sn_edge *uses;
    uint32_t n_uses;    /* edges; graph outputs not counted */
    uint32_t n_outputs; /* how often it is a graph output */
    bool f16_in_file;   /* it is f32 because steps compute in that */
    bool is_input;
    bool is_initializer; /* had an initializer in the file (may also be an input: a default) */
};

/* The tensors of the file that a value is or stands for, "q.weight+k.weight"; "": no such tensor. A
 * pass gives values names of its own, which mean nothing to people. */
static inline const char *sn_value_shown(const sn_value *v)
{
    return v->shown ? v->shown : v->name;
}

/* The same of what an input reads, which may be a part of a joined value. */
static inline const char *sn_edge_shown(const sn_edge *e)
{
    return e->shown ? e->shown : sn_value_shown(e->value);
}

/* Constant for good and from the beginning: an initializer that is also an input is only a default,
 * and what a Constant node makes may come after the node that would read it (fold-constants frees
 * it of its node). */
static inline bool sn_value_is_const(const sn_value *v)
{
    return v->fact.data && !v->is_input && !v->producer;
}
/* A name read in a body but defined outside it: what sn_model_finish turns into a capture. */
static inline bool sn_value_is_unresolved(const sn_value *v)
{
    return !v->producer && !v->is_input && !v->is_initializer && !v->fact.data;
}

typedef enum sn_attr_kind { /* numbers as in AttributeProto.AttributeType */
                            SN_ATTR_FLOAT = 1,
                            SN_ATTR_INT = 2,
                            SN_ATTR_STRING = 3,
                            SN_ATTR_TENSOR = 4,
                            SN_ATTR_GRAPH = 5,
                            SN_ATTR_FLOATS = 6,
                            SN_ATTR_INTS = 7,
                            SN_ATTR_STRINGS = 8,
                            SN_ATTR_TENSORS = 9,
                            SN_ATTR_GRAPHS = 10,
                            SN_ATTR_SPARSE_TENSOR = 11,
                            SN_ATTR_TYPE_PROTO = 13
} sn_attr_kind;

typedef struct sn_attr {
    const char *name;
    sn_attr_kind kind;
    size_t n; /* of the lists; 1 otherwise */
    union {
        float f;
        int64_t i;
        sonde_string s;
        const sn_tensor *tensor; /* sparse tensors are made dense by the reader */
        sn_graph *graph;
        const float *floats;
        const int64_t *ints;
        const sonde_string *strings;
        const sn_tensor *const *tensors;
        sn_graph *const *graphs;
        const sn_type *type;
    };
    const char
        *ref; /* inside a function body: name of the function attribute it takes, else NULL */
} sn_attr;

#define SN_NO_ORIGIN       UINT32_MAX
#define SN_MAX_ATTRS       1024 /* per node: attributes are looked up one by one */
#define SN_MAX_GRAPH_DEPTH 64   /* bodies inside bodies, calls inside calls */

struct sn_node {
    const char *name; /* may be "" */
    const char *op_type;
    const char *shown_type; /* what reports call it: the type its anchor has in the file */
    const char *domain;     /* "" = ai.onnx; "sonde" = internal */
    const char *overload;
    uint32_t id;   /* dense within its graph */
    int32_t opset; /* version of `domain` this node was written for */
    sn_edge *in;   /* n_in entries; captures of bodies are appended after n_formal_in */
    uint32_t n_in, n_formal_in, in_cap;
    sn_value **out; /* n_out entries; NULL: output not wanted */
    uint32_t n_out;
    sn_attr *attrs;
    uint32_t n_attrs, attr_cap;
    const uint32_t *origins; /* sorted, unique */
    uint32_t n_origins;
    uint32_t anchor;        /* the origin whose type and name a step shows; SN_NO_ORIGIN: none */
    const char *post_op;    /* "Add+Relu": what a fusion put behind the anchor; "" */
    const char *function;   /* call path it was inlined from ("f/g"), or NULL */
    bool narrow_weights;    /* constant weights may be narrower floats than its other inputs */
    bool border;            /* no node of the file: the same value in another form */
    const struct sn_op *op; /* resolved descriptor, NULL before resolution */
    const void *params;   /* typed attributes made by op->prepare; NULL before or after a change */
    sn_node *prev, *next; /* topological order; not linked once removed */
    bool removed;
};

/* The original nodes of a model, functions inlined, bodies included: names for every report. */
typedef struct sn_origin {
    const char *name, *op_type, *domain;
    const char *function; /* call path it was inlined from ("f/g"), or NULL */
    const sn_node *node;  /* as it was read, with its attributes */
} sn_origin;

typedef struct sn_origins {
    SN_VEC(sn_origin) list;
} sn_origins;

struct sn_graph {
    sn_arena *arena;     /* of everything below; shared with bodies */
    sn_allocator *alloc; /* of the vectors */
    const char *name;
    sn_node *first, *last;
    uint32_t n_nodes; /* ids handed out, removed ones included */
    uint32_t n_live_nodes;
    SN_VEC(sn_value *) values; /* by id */
    SN_VEC(sn_value *) inputs; /* of a body: formal inputs first, then captures */
    SN_VEC(sn_value *) outputs;
    uint32_t n_formal_inputs;
    /* Body only: outer values it reads; capture k is inputs[n_formal_inputs + k] inside and
     * in[capture_map[k]] of the owning node outside (all bodies of a node share its list, so an
     * outer value is an input once). */
    SN_VEC(uint32_t) capture_map; /* capture k ► input index of the owning node */
    sn_graph *parent;
    sn_graph *child, *sibling_prev, *sibling_next; /* every body ever made under it, for freeing */
    uint32_t depth;                                /* 0: no parent */
    sn_map symbol_ids;                             /* name ► id; root only */
    SN_VEC(const char *)
    symbols;                 /* names of symbolic dims (NULL: a fresh symbol's); symbol id k is
                                symbols[k-1]; root only */
    sn_origins *origins;     /* shared by a model's graphs and their clones */
    SN_VEC(uint32_t) folded; /* origins that folding removed: listed at zero time */
};

/* ---- building ----
 * Names and types given as text are copied into the arena. */
/* A graph with a parent is one of its bodies: freed with it, at most SN_MAX_GRAPH_DEPTH deep. */
sonde_status sn_graph_new(sn_graph **g, sn_arena *arena, sn_allocator *alloc, const char *name,
                          sn_graph *parent, sonde_error *err);
void sn_graph_free(
    sn_graph *g); /* the vectors, bodies included; the arena's owner frees the rest */

sonde_status sn_graph_add_value(sn_graph *g, const char *name, sn_value **out, sonde_error *err);
sonde_status sn_graph_add_input(sn_graph *g, sn_value *v, sonde_error *err);
sonde_status sn_graph_add_output(sn_graph *g, sn_value *v, sonde_error *err);
/* A value that is a constant; `data` must live as long as the graph. */
sonde_status sn_graph_add_constant(sn_graph *g, const char *name, const sn_tensor *data,
                                   sn_value **out, sonde_error *err);
/* Makes an existing value such a constant (its type follows). */
sonde_status sn_value_set_constant(sn_graph *g, sn_value *v, const sn_tensor *data,
                                   sonde_error *err);
/* Inserted before `before` (NULL: at the end). Inputs and outputs start as NULL. No origins yet. */
sonde_status sn_graph_add_node(sn_graph *g, sn_node *before, const char *domain,
                               const char *op_type, const char *name, uint32_t n_in, uint32_t n_out,
                               sn_node **out, sonde_error *err);
/* Gives the node a fresh origin named after itself. Without an origin table it does nothing:
 * sn_model_finish numbers all nodes of a model. */
sonde_status sn_graph_add_origin(sn_graph *g, sn_node *n, const char *function, sonde_error *err);
uint32_t sn_graph_symbol(sn_graph *g, const char *name); /* id, made if new; 0 = out of memory */
/* A symbol nothing else has, without a name (its entry in `symbols` is NULL); 0 = out of memory. */
uint32_t sn_graph_fresh_symbol(sn_graph *g);

/* ---- changing ---- */
void sn_node_set_input(sn_node *n, uint32_t i, sn_value *v); /* keeps the use lists */
sonde_status sn_node_add_input(sn_graph *g, sn_node *n, sn_value *v, sonde_error *err);
/* n's output i becomes v; v's former producer loses it. */
void sn_node_set_output(sn_node *n, uint32_t i, sn_value *v);
/* Reports call v, which a pass made, as they call `as` (the same elements in another form), or as
 * all n of `list` together (what it was made of; entries may be NULL). */
void sn_value_show_as(sn_value *v, const sn_value *as);
sonde_status sn_value_show_all(sn_graph *g, sn_value *v, const sn_value *const *list, size_t n,
                               sonde_error *err);
/* Every reader of `from` (nodes and graph outputs) reads `to` instead. */
void sn_value_replace(sn_graph *g, sn_value *from, sn_value *to);
sonde_status sn_node_set_attr(sn_graph *g, sn_node *n, const sn_attr *attr, sonde_error *err);
const sn_attr *sn_node_attr(const sn_node *n, const char *name); /* NULL when absent */
/* Constants of a file are views of it and may be misaligned for their element type. Before numbers
 * of a large one are read, this gives the value an aligned copy (owned by `buffers`); else it does
 * nothing. Tensors the reader found small are aligned already. */
sonde_status sn_value_make_readable(sn_graph *g, sn_value *v, sn_buffers *buffers,
                                    sonde_error *err);
void sn_node_remove_attr(sn_node *n, const char *name);
/* Moves a node of the list to just before `before` (NULL: to the end). */
void sn_node_move(sn_graph *g, sn_node *n, sn_node *before);
/* The k-th body over all graph attributes, in order; NULL past the end. */
sn_graph *sn_node_body(const sn_node *n, uint32_t k);
/* "kernel_shape=3,3;strides=1,1" in the arena; NULL when out of memory. */
const char *sn_node_attributes_text(const sn_node *node, sn_arena *arena);
/* "node 'conv1' (Conv)", for messages; unnamed nodes are told by what they produce. */
const char *sn_node_text(const sn_node *n, char *buf, size_t cap);

/* `olds` disappear; `made` (already wired, may be one of `olds`) takes their origins. `anchor` is
 * the old node whose type and name the step shows. Extra new nodes get the same origins by calling
 * sn_node_inherit. */
sonde_status sn_graph_replace(sn_graph *g, sn_node *const *olds, size_t n_olds, sn_node *made,
                              const sn_node *anchor, sonde_error *err);
sonde_status sn_node_inherit(sn_graph *g, sn_node *made, const sn_node *from, sonde_error *err);
/* The node's result is known: its outputs have constant facts. Removes it, remembers its origins.
 */
sonde_status sn_graph_fold(sn_graph *g, sn_node *n, sonde_error *err);
/* Takes a node away without a trace: for rewrites that happen before origins exist. */
void sn_node_unlink(sn_graph *g, sn_node *n);
/* Takes the node out of the list only. */
void sn_node_take_out(sn_graph *g, sn_node *n);
/* Removes a node nothing reads (dead code): origins go to `folded` too. */
sonde_status sn_graph_remove(sn_graph *g, sn_node *n, sonde_error *err);
/* Forgets the values that nothing makes, reads or returns, and numbers the others anew. */
void sn_graph_drop_values(sn_graph *g);

/* ---- whole graphs ---- */
/* Sorts nodes topologically (stable); fails naming a node on a cycle. */
sonde_status sn_graph_sort(sn_graph *g, sonde_error *err);
/* A deep copy of structure into another arena; constant data and names are shared, not copied.
 * Value ids are kept. */
sonde_status sn_graph_clone(const sn_graph *g, sn_arena *arena, sn_graph **out, sonde_error *err);
/* Checks every promise of this structure (use lists, producers, ids, order, captures), bodies
 * included; for tests and debugging. */
sonde_status sn_graph_verify(const sn_graph *g, sonde_error *err);
/* Text form, for tests, logs and `inspect`; DOT for graphviz. `write` receives pieces of text. */
typedef void (*sn_write_fn)(void *user, const char *text, size_t n);
void sn_graph_print(const sn_graph *g, sn_write_fn write, void *user);
void sn_graph_print_dot(const sn_graph *g, sn_write_fn write, void *user);

#define sn_graph_each(n, g)                                                                        \
    for (sn_node *n = (g)->first, *n##_next = n ? n->next : NULL; n;                               \
         n = n##_next, n##_next = n ? n->next : NULL)

#endif
