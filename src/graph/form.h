/* SPDX-License-Identifier: Apache-2.0 */
/* How a value is stored, beside its ONNX type: element type, layout, memory. Zeroed is the native
 * form: the type that the model states, plain, in the memory of the host. Inference, feeds,
 * outputs, captured values, sequences and steps with data-dependent shapes see native values only.
 */
#ifndef SN_GRAPH_FORM_H
#define SN_GRAPH_FORM_H

#include "base/dtype.h"

typedef enum sn_layout_kind {
    SN_LAYOUT_PLAIN,  /* dense, row-major */
    SN_LAYOUT_BLOCKS, /* axis 1 (channels) in blocks of `size`: [d0][ceil(d1/size)][d2]…[dn][size];
                         padding lanes are zero */
    SN_LAYOUT_LAST, /* channels last: [d0][d2]…[dn][pitch], where the pitch is d1 rounded up to a
                       multiple of `size`; padding lanes are zero */
} sn_layout_kind;

typedef struct sn_layout {
    uint8_t kind; /* SN_LAYOUT_* */
    uint8_t size; /* 0 when plain */
} sn_layout;

enum { SN_SPACE_HOST }; /* memory spaces */

typedef struct sn_form {
    uint8_t dtype; /* SONDE_DTYPE_* of the stored elements; 0: the type that the model states */
    uint8_t space; /* SN_SPACE_* */
    sn_layout layout;
} sn_form;

static inline bool sn_layout_is_plain(sn_layout l)
{
    return l.kind == SN_LAYOUT_PLAIN;
}
static inline bool sn_layout_same(sn_layout a, sn_layout b)
{
    return a.kind == b.kind && a.size == b.size;
}
/* Channels of a block; 0: not in blocks. */
static inline unsigned sn_layout_block(sn_layout l)
{
    return l.kind == SN_LAYOUT_BLOCKS ? l.size : 0;
}
/* Blocks of so many channels; 0: plain. */
static inline sn_layout sn_layout_blocks(unsigned size)
{
    return size ? (sn_layout){SN_LAYOUT_BLOCKS, (uint8_t)size} : (sn_layout){0};
}

/* Channels last, without gaps. */
static inline sn_layout sn_layout_last(void)
{
    return (sn_layout){SN_LAYOUT_LAST, 1};
}
static inline bool sn_layout_is_last(sn_layout l)
{
    return l.kind == SN_LAYOUT_LAST;
}

static inline bool sn_form_same(sn_form a, sn_form b)
{
    return a.dtype == b.dtype && a.space == b.space && sn_layout_same(a.layout, b.layout);
}
static inline bool sn_form_is_native(sn_form f)
{
    return sn_form_same(f, (sn_form){0});
}
/* The type of the elements in memory, of a value whose ONNX type is `dtype`. */
static inline sn_dtype sn_form_stored(sn_form f, sn_dtype dtype)
{
    return f.dtype ? (sn_dtype)f.dtype : dtype;
}

/* Elements that `dims` take in this layout, padding included; false: too many. */
bool sn_layout_count(sn_layout l, const int64_t *dims, int rank, int64_t *count);
/* "", "blocks of 16", "channels last", "bf16", "bf16, blocks of 16" into buf, at least 48 bytes. */
const char *sn_form_text(sn_form f, char *buf);

#endif
