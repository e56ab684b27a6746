/* SPDX-License-Identifier: Apache-2.0 */
/* What Reshape, Transpose, Squeeze, Unsqueeze and Flatten do to a tensor, on symbols: every axis is
 * a list of atoms, pieces of the axes it began with. A reshape splits and joins them, a transpose
 * moves them. In the end it shows what a whole chain of them does. Axes of one element have no
 * atoms. */
#ifndef SN_PASSES_AXES_H
#define SN_PASSES_AXES_H

#include "passes/rewrite.h"

enum { SN_MAX_ATOMS = 24 };

typedef struct sn_axis {
    int n;
    uint8_t atom[SN_MAX_ATOMS];
} sn_axis;

typedef struct sn_axes {
    int rank;
    sn_axis axis[SN_MAX_RANK];
} sn_axes;

typedef struct sn_atoms {
    sn_dim size[SN_MAX_ATOMS]; /* a number above 1, a symbol, or unknown */
    int n;
    sn_axes from, to; /* before and after, in the same atoms */
} sn_atoms;

/* False: a dim is 0, or not even the rank is known. */
bool sn_atoms_begin(sn_atoms *a, const sn_type *t);
/* Reshape by constant, Transpose, Squeeze, Unsqueeze, Flatten applied to `to`; false: any other
 * node, or it cannot be said what it does. */
bool sn_atoms_apply(sn_atoms *a, const sn_node *n);
/* Atoms that stand side by side before and after count as one. */
void sn_atoms_join(sn_atoms *a);
/* One of the five operators. */
bool sn_moves_axes(const sn_node *n);
/* The permutation of a Transpose over `rank` axes (absent: reversed); false: not a valid one. */
bool sn_transpose_perm(const sn_node *n, int rank, int64_t *perm);

#endif
