/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing forms: which values of a graph are stored how, and where one form becomes another. A
 * stage (element types, layouts) names forms by labels, 0 being the native one, and says for every
 * node what it can do; the solver labels all values and has the stage make the borders.
 *
 * A node has a signature: the label that its ports share. Nodes that can do one thing only are
 * fixed. Those that take any label, the same on all their ports, are elastic: elastic nodes that
 * hang together form a group, and a group takes the label that needs the least work: at its border,
 * and of those of its nodes that prefer one that is not native.
 * This is linear in the size of the graph, deterministic, and needs no dims to be known. */
#ifndef SN_PASSES_FORMS_H
#define SN_PASSES_FORMS_H

#include "passes/rewrite.h"

enum {
    SN_FORM_LABELS = 4,   /* at most, the native one included */
    SN_FORM_ELASTIC = 255 /* signature of a node: the label of its group */
};

/* An operator with one input, one output and one attribute, an integer. */
typedef struct sn_form_border {
    const char *domain, *op_type, *attribute;
    const char *shown_type; /* what reports call it: "[Reorder]" */
    int32_t opset;
    int64_t value; /* of the attribute */
} sn_form_border;

typedef struct sn_form_stage sn_form_stage;
struct sn_form_stage {
    sn_graph *g;
    sn_pass_env *env;
    const char *const *label_names; /* for the names of values: "plain", "blocked" */
    void *user;                     /* of the callbacks */
    /* Its label, SN_FORM_ELASTIC, or 0: native, but for ports that take anything. */
    uint8_t (*signature)(const sn_form_stage *s, const sn_node *n);
    /* Asked of nodes whose signature is not 0, and of all for inputs. The value is there. */
    sn_port_form (*input)(const sn_form_stage *s, const sn_node *n, uint32_t i);
    sn_port_form (*output)(const sn_form_stage *s, const sn_node *n, uint32_t o);
    /* What an elastic node loses where it is native. NULL: nothing. */
    uint32_t (*native_cost)(const sn_form_stage *s, const sn_node *n);
    /* What changing the label of a value weighs. */
    uint32_t (*weight)(const sn_value *v);
    /* v, which is `of` or the same in another label, lies so from now on. */
    sonde_status (*mark)(sn_form_stage *s, sn_value *v, const sn_value *of, uint8_t label);
    /* The constant that n reads as input i in this label. *made is what earlier readers have in it,
     * or NULL, and is left so for a border like any other. NULL: always a border. */
    sonde_status (*constant)(sn_form_stage *s, const sn_node *n, uint32_t i, uint8_t label,
                             sn_value **made);
    /* The node that computes `to` from the same value in another label. */
    sn_form_border (*border)(const sn_form_stage *s, const sn_value *to);
    /* The ports of n are as they will be. NULL: nothing more to do. */
    sonde_status (*done)(sn_form_stage *s, sn_node *n);
    uint32_t changes; /* borders made */
    struct sn_form_tables *tables;
};

/* Labels and rewrites the graph. Nothing changes when no node is fixed to a label. */
sonde_status sn_forms_solve(sn_form_stage *s);
/* Signature of a node that the solver asked for. */
uint8_t sn_forms_signature(const sn_form_stage *s, const sn_node *n);

#endif
