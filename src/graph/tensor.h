/* SPDX-License-Identifier: Apache-2.0 */
/* Runtime values: tensor views, refcounted buffers, and the slot, the tagged union that holds any
 * ONNX value (tensor, string tensor, sequence, optional, map). Constants of the graph and values in
 * a frame are the same type. */
#ifndef SN_GRAPH_TENSOR_H
#define SN_GRAPH_TENSOR_H

#include <stdatomic.h>

#include "base/vec.h"
#include "graph/form.h"

#define SN_MAX_RANK 16

/* Refcounted memory. Immutable once more than one owner exists. */
typedef struct sn_buffer {
    _Atomic int refs;
    sn_allocator *alloc;
    size_t bytes; /* of data */
    void *data;   /* SN_ALIGN-aligned when allocated here */
    void (*release)(void *user, void *data, size_t bytes); /* foreign memory; NULL: ours */
    void *user;
} sn_buffer;

typedef struct sn_buffers {
    SN_VEC(sn_buffer *) list;
} sn_buffers;

sn_buffer *sn_buffer_new(sn_allocator *alloc, size_t bytes);      /* NULL: out of memory */
sn_buffer *sn_buffer_new_kept(sn_allocator *alloc, size_t bytes); /* by sn_alloc_kept */
sn_buffer *sn_buffer_wrap(sn_allocator *alloc, void *data, size_t bytes,
                          void (*release)(void *, void *, size_t), void *user);
sn_buffer *sn_buffer_ref(sn_buffer *b); /* NULL accepted by both */
void sn_buffer_unref(sn_buffer *b);

/* A view. */
typedef struct sn_tensor {
    sn_dtype dtype; /* of the elements in memory */
    sn_layout layout;
    uint8_t space;      /* SN_SPACE_* */
    uint8_t pack;       /* 0, or an id from compute/packs.inc: data is a packed weight */
    uint8_t scale_axis; /* of `scale` */
    int32_t rank;
    int64_t pack_arg;          /* of a packed weight: the argument of its format */
    int64_t dims[SN_MAX_RANK]; /* logical dims, also for blocked and packed tensors */
    void *data;
    size_t bytes;     /* physical size of data */
    sn_buffer *owner; /* NULL: memory of an arena, a mapped file or the caller */
    /* f32 constants only: NULL, or what the elements at each place c of axis `scale_axis` are still
     * to be multiplied by. A pass that scales weights leaves this behind, so that they are copied
     * once, when they are packed. */
    const double *scale;
    /* Constants only: NULL, or the tensors this one is made of, not yet put together; data is NULL
     * then. Read and packed like one, so that merged weights need no copy of their own. */
    const struct sn_tensor_parts *parts;
} sn_tensor;

/* Tensors of one element type that differ in the size of `axis` only, side by side along it. */
typedef struct sn_tensor_parts {
    int axis;
    size_t n;
    const sn_tensor *const *part;
} sn_tensor_parts;

/* The most elements of a tensor, dims of 0 not counted: far beyond memory, and small enough that a
 * few factors more (bytes of an element, lanes, workspace) do not overflow. */
#define SN_MAX_ELEMS ((int64_t)1 << 56)
/* Product of the dims; false beyond SN_MAX_ELEMS or with a negative dim. Rank 0 has one element. */
bool sn_dims_count(const int64_t *dims, int rank, int64_t *count);
int64_t sn_tensor_count(const sn_tensor *t); /* dims already validated */
/* Bytes in memory of a plain tensor of that type and dims; false on overflow. */
bool sn_tensor_bytes(sn_dtype dtype, const int64_t *dims, int rank, size_t *bytes);
/* Are the elements where and as they are in a file: plain, in host memory, not packed? */
static inline bool sn_tensor_is_plain(const sn_tensor *t)
{
    return sn_layout_is_plain(t->layout) && t->space == SN_SPACE_HOST && !t->pack;
}

/* May the data be read as it lies? Constants need not be readable: views of files may be
 * misaligned, others still carry a scale or are in parts. */
bool sn_tensor_is_readable(const sn_tensor *t);
/* Elements [first, first + count) as they are meant, into dst. */
void sn_tensor_read(const sn_tensor *t, int64_t first, int64_t count, void *dst);
/* A readable copy of the data, added to `buffers`. */
sonde_status sn_tensor_make_readable(sn_tensor *t, sn_buffers *buffers, sn_allocator *alloc,
                                     sonde_error *err);

typedef enum sn_kind {
    SN_KIND_NONE = SONDE_KIND_NONE,
    SN_KIND_TENSOR = SONDE_KIND_TENSOR,
    SN_KIND_SEQUENCE = SONDE_KIND_SEQUENCE,
    SN_KIND_OPTIONAL = SONDE_KIND_OPTIONAL,
    SN_KIND_MAP = SONDE_KIND_MAP
} sn_kind;

typedef struct sn_list sn_list;

typedef struct sn_slot {
    sn_kind kind;
    sn_tensor t;   /* TENSOR */
    sn_list *list; /* SEQUENCE: its elements; OPTIONAL: none or one; MAP: two, keys and values */
} sn_slot;

/* Refcounted list of slots (payload of sequences, optionals, maps): slot.c. What more than one may
 * hold is not changed; a new list is made of it, which mostly shares its memory. */
struct sn_list {
    _Atomic int refs;
    sn_allocator *alloc;
    sn_dtype elem_dtype; /* of an empty sequence, UNDEFINED when unknown */
    sn_kind elem_kind;
    size_t n;
    sn_slot *items;
    struct sn_list_store *store; /* where the items lie; NULL: there are none */
};

sn_list *sn_list_new(sn_allocator *alloc, size_t cap);
sn_list *sn_list_ref(sn_list *l);
void sn_list_unref(sn_list *l);
/* Appends a new reference to what `s` holds, to a list that nobody else has yet. A borrowed tensor
 * (owner NULL) is copied. */
sonde_status sn_list_push(sn_list *l, const sn_slot *s, sonde_error *err);
/* A new list: l with the same before position `at` (at most n). Appending again and again to what
 * came out takes constant time on average. */
sonde_status sn_list_with(sn_list **out, const sn_list *l, size_t at, const sn_slot *s,
                          sonde_error *err);
/* A new list: l without element `at`. Constant time at both ends, where the element's memory goes
 * with the last list that was made of this one. */
sonde_status sn_list_without(sn_list **out, const sn_list *l, size_t at, sonde_error *err);

/* Drops what the slot owns and makes it NONE. */
void sn_slot_clear(sn_slot *s);
/* dst (any previous content is cleared) refers to the same payload; borrowed memory is copied when
 * `own` is set, so that dst may outlive src's arena. Blocked or packed tensors are never shared so.
 */
sonde_status sn_slot_share(sn_slot *dst, const sn_slot *src, bool own, sn_allocator *alloc,
                           sonde_error *err);
/* A fresh tensor with its own buffer; contents undefined (strings: empty). */
sonde_status sn_slot_new_tensor(sn_slot *dst, sn_dtype dtype, const int64_t *dims, int rank,
                                sn_allocator *alloc, sonde_error *err);
/* A fresh string tensor: copies n elements' bytes into one buffer. */
sonde_status sn_slot_new_strings(sn_slot *dst, const int64_t *dims, int rank,
                                 const sonde_string *elems, sn_allocator *alloc, sonde_error *err);

#endif
