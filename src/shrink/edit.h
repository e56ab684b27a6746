/* SPDX-License-Identifier: Apache-2.0 */
/* A model being edited: a copy of its graph that may be changed, new constants for it, and saving.
 * The model itself stays as it is.
 *
 *     sn_edit e;
 *     SN_TRY(sn_edit_open(&e, model, err));
 *     … change e.graph, with constants of sn_edit_tensor …
 *     st = sn_edit_save(&e, path, options, err);
 *     sn_edit_close(&e);
 */
#ifndef SN_SHRINK_EDIT_H
#define SN_SHRINK_EDIT_H

#include "api/internal.h"
#include "base/map.h"

typedef struct sn_edit {
    sonde_model *model; /* a reference: the copy shares its constants and names */
    sn_arena arena;     /* of the copy, and for whatever belongs to it */
    sn_graph *graph;    /* the copy: functions of graph/graph.h change it */
    sn_buffers buffers; /* memory of new constants */
    sn_map sparse;      /* tensors to save as sparse ones: sn_edit_save_sparse */
} sn_edit;

/* After a failure there is nothing to close. */
sonde_status sn_edit_open(sn_edit *e, sonde_model *model, sonde_error *err);
void sn_edit_close(sn_edit *e);

/* A tensor with memory of its own, not initialised, which lives as long as the edit. */
sonde_status sn_edit_tensor(sn_edit *e, sn_dtype dtype, const int64_t *dims, int rank,
                            sn_tensor **out, sonde_error *err);
/* The same with the elements of a constant. */
sonde_status sn_edit_copy(sn_edit *e, const sn_tensor *from, sn_tensor **out, sonde_error *err);
/* Whatever has one of the n constants `from`, initializers and Constant nodes of the graph and its
 * bodies, has that of `to` from now on. */
sonde_status sn_edit_replace(sn_edit *e, const sn_tensor *const *from, const sn_tensor *const *to,
                             size_t n, sonde_error *err);
/* An initializer with these contents is saved as a sparse one if that takes less room. */
sonde_status sn_edit_save_sparse(sn_edit *e, const sn_tensor *t, sonde_error *err);

/* As sonde_model_save_with; `options` may be NULL. */
sonde_status sn_edit_save(const sn_edit *e, const char *path, const sonde_save_options *options,
                          sonde_error *err);

#endif
