/* SPDX-License-Identifier: Apache-2.0 */
/* The first stage of forms: which memory a value lies in. One row per memory space, the host's
 * first; a device is a further row. */
#ifndef SN_PASSES_PLACE_H
#define SN_PASSES_PLACE_H

#include "passes/forms.h"

typedef struct sn_space_row {
    const char *name; /* "host"; part of the names of copies */
    uint8_t space;    /* SN_SPACE_* */
    /* Whether the node is computed in this space; the first row that says so has it. The host has
     * the rest and needs no answer. */
    bool (*takes)(const sn_node *n);
    sn_form_border copy; /* the step that brings a value here from another space */
} sn_space_row;

/* Gives every value a space, with copies where nodes of two spaces meet. At most SN_FORM_LABELS
 * rows. */
sonde_status sn_place(sn_graph *g, sn_pass_env *env, const sn_space_row *rows, size_t n,
                      uint32_t *changes);

#endif
