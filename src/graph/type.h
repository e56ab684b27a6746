/* SPDX-License-Identifier: Apache-2.0 */
/* Types as the graph knows them before a run: kind, element type, and a shape whose dims may be
 * known, a named symbol, or unknown. A dim is one int64, so shape arithmetic and the propagation of
 * small integer values share one representation. */
#ifndef SN_GRAPH_TYPE_H
#define SN_GRAPH_TYPE_H

#include "base/arena.h"
#include "graph/tensor.h"

/* Known: any value >= SN_DIM_FIRST_KNOWN, negative ones too (values, not dims, can be negative).
 * Below that: SN_DIM_UNKNOWN + id, where id 0 is "unknown" and id k > 0 the k-th symbol of the
 * graph. */
typedef int64_t sn_dim;
#define SN_DIM_UNKNOWN     INT64_MIN
#define SN_DIM_FIRST_KNOWN (INT64_MIN + ((int64_t)1 << 33))
static inline bool sn_dim_known(sn_dim d)
{
    return d >= SN_DIM_FIRST_KNOWN;
}
static inline sn_dim sn_dim_symbol(uint32_t id)
{
    return SN_DIM_UNKNOWN + (int64_t)id;
}
static inline uint32_t sn_dim_symbol_id(sn_dim d)
{
    return (uint32_t)(d - SN_DIM_UNKNOWN);
}
/* A number found in data: the few that stand for symbols become the lowest that does not. */
static inline sn_dim sn_dim_of_number(int64_t v)
{
    return v < SN_DIM_FIRST_KNOWN ? SN_DIM_FIRST_KNOWN : v;
}
/* A number to compute with: the lowest one may stand for a lower one that was in data. */
static inline sn_dim sn_dim_to_compute(sn_dim d)
{
    return d == SN_DIM_FIRST_KNOWN ? SN_DIM_UNKNOWN : d;
}
/* The same known number, or the same symbol. Two unknowns are not the same. */
static inline bool sn_dim_same(sn_dim a, sn_dim b)
{
    return a == b && a != SN_DIM_UNKNOWN;
}

typedef struct sn_type {
    sn_kind kind;               /* NONE: nothing known */
    sn_dtype dtype;             /* TENSOR; MAP: key type */
    int32_t rank;               /* TENSOR: -1 = unknown rank */
    const sn_dim *dims;         /* rank entries */
    const struct sn_type *elem; /* SEQUENCE, OPTIONAL: element; MAP: value type */
} sn_type;

/* What is known of a value: its type; its elements when it is a small integer tensor (entries may
 * be symbols); its data when it is constant. Inference maps facts to facts, at every phase:
 * symbolic when a program is made, concrete when it is bound, and from real slots when shapes
 * depend on data. */
typedef struct sn_fact {
    sn_type type;
    const sn_dim *ints; /* n_ints elements in row-major order, or NULL */
    int64_t n_ints;
    const sn_tensor *data; /* constant (or, in a data-dependent step, actual) contents, or NULL */
    sn_form form;          /* as planned */
    uint8_t pack;          /* as planned: a packed weight (see sn_tensor) … */
    int64_t pack_arg;      /* … and the argument of its format */
} sn_fact;

/* Channels of a block; 0: the value does not lie in blocks. */
static inline unsigned sn_fact_block(const sn_fact *f)
{
    return sn_layout_block(f->form.layout);
}
/* The type of its elements in memory. */
static inline sn_dtype sn_fact_stored(const sn_fact *f)
{
    return sn_form_stored(f->form, f->type.dtype);
}
/* Bytes in memory, of a tensor whose dims are known and that is not packed; false on overflow. */
bool sn_fact_bytes(const sn_fact *f, size_t *bytes);

#define SN_MAX_KNOWN_INTS 256 /* larger integer tensors are not propagated */

/* A tensor of whole bytes of which every element is known. */
bool sn_fact_ints_known(const sn_fact *f);
/* Its elements as they lie in memory: little-endian, as everything sonde runs on. */
void sn_fact_write_ints(const sn_fact *f, void *data);

/* All dims known (and rank known)? */
bool sn_type_is_concrete(const sn_type *t);
/* Number of elements when concrete; false otherwise or on overflow. */
bool sn_type_count(const sn_type *t, int64_t *count);
/* False when the dims that are known already make more elements than a tensor may have. */
bool sn_type_fits(const sn_type *t);
/* Both tensors of known rank with the same dims, each known or the same symbol. */
bool sn_type_same_shape(const sn_type *a, const sn_type *b);
/* "f32[1, 3, N, ?]", "seq(f32[?])" into buf; always terminated. `symbols` may be NULL. */
const char *sn_type_text(const sn_type *t, const char *const *symbols, char *buf, size_t cap);
/* Deep copy of dims and element types into an arena. */
sonde_status sn_type_copy(sn_type *dst, const sn_type *src, sn_arena *arena, sonde_error *err);

#endif
