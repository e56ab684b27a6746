/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers and tensors. A buffer is one allocation (header and data) with a count of its owners; a
 * tensor is a view of one, or of memory that somebody else keeps. */
#include "graph/tensor.h"

#include <math.h>
#include <string.h>

/* The data follows the header at the next aligned address. */
#define HEADER_BYTES 64
_Static_assert(sizeof(sn_buffer) <= HEADER_BYTES && HEADER_BYTES % SN_ALIGN == 0,
               "the header keeps the data aligned");

/* A header in memory that was allocated, or was not; `bytes`: what the buffer is said to hold. Its
 * data is the caller's to set. */
static sn_buffer *begin_buffer(sn_allocator *alloc, sn_buffer *b, size_t bytes)
{
    if (!b)
        return NULL;
    memset(b, 0, sizeof *b);
    atomic_init(&b->refs, 1);
    b->alloc = alloc;
    b->bytes = bytes;
    return b;
}

typedef void *alloc_fn(sn_allocator *alloc, size_t bytes);

static sn_buffer *new_buffer(sn_allocator *alloc, alloc_fn *fn, size_t bytes)
{
    size_t total;
    if (!sn_size_add(bytes, HEADER_BYTES, &total))
        return NULL;
    sn_buffer *b = begin_buffer(alloc, fn(alloc, total), bytes);
    if (b)
        b->data = (uint8_t *)b + HEADER_BYTES;
    return b;
}

sn_buffer *sn_buffer_new(sn_allocator *alloc, size_t bytes)
{
    return new_buffer(alloc, sn_alloc, bytes);
}

sn_buffer *sn_buffer_new_kept(sn_allocator *alloc, size_t bytes)
{
    return new_buffer(alloc, sn_alloc_kept, bytes);
}

sn_buffer *sn_buffer_wrap(sn_allocator *alloc, void *data, size_t bytes,
                          void (*release)(void *, void *, size_t), void *user)
{
    sn_buffer *b = begin_buffer(alloc, sn_alloc(alloc, HEADER_BYTES), bytes);
    if (!b)
        return NULL;
    b->data = data;
    b->release = release;
    b->user = user;
    return b;
}

sn_buffer *sn_buffer_ref(sn_buffer *b)
{
    if (b)
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void sn_buffer_unref(sn_buffer *b)
{
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    bool ours = b->data == (uint8_t *)b + HEADER_BYTES;
    if (b->release)
        b->release(b->user, b->data, b->bytes);
    sn_free(b->alloc, b, ours ? b->bytes + HEADER_BYTES : HEADER_BYTES);
}

bool sn_dims_count(const int64_t *dims, int rank, int64_t *count)
{
    int64_t n = 1;
    bool zero = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return false;
        if (dims[i] == 0)
            zero = true;
        else if (!sn_i64_mul(n, dims[i], &n) || n > SN_MAX_ELEMS)
            return false;
    }
    *count = zero ? 0 : n;
    return true;
}

int64_t sn_tensor_count(const sn_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dims[i];
    return n;
}

bool sn_tensor_bytes(sn_dtype dtype, const int64_t *dims, int rank, size_t *bytes)
{
    int64_t n;
    return rank >= 0 && rank <= SN_MAX_RANK && sn_dims_count(dims, rank, &n) &&
           sn_size_mul((size_t)n, sn_dtype_bytes(dtype), bytes);
}

bool sn_tensor_is_readable(const sn_tensor *t)
{
    size_t align = sn_dtype_bytes(t->dtype);
    if (t->scale || t->parts)
        return false;
    return align < 2 || (uintptr_t)t->data % (align > 8 ? 8 : align) == 0;
}

enum { PIECE = 16 }; /* a known count, which compilers turn into vectors */

/* y = x · scale. Rounds twice where that is harmless, as it is four times faster. x need not be
 * aligned, and may be y. */
static void scale_row(float *y, const uint8_t *x, int64_t n, double scale)
{
    const float f = (float)scale;
    const bool harmless = fabs(scale) > 1e-30 && fabs(scale) < 1e30;
    float part[PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t count = n - i < PIECE ? n - i : PIECE;
        const uint8_t *from = x + (size_t)i * sizeof *y;
        if (count == PIECE && harmless) {
            __builtin_prefetch(from + 4096); /* hardware does not look into the next page */
            memcpy(part, from, sizeof part);
            for (int k = 0; k < PIECE; k++)
                part[k] *= f;
            memcpy(y + i, part, sizeof part);
            continue;
        }
        memcpy(part, from, (size_t)count * sizeof *part);
        for (int64_t k = 0; k < count; k++)
            y[i + k] = harmless ? part[k] * f : (float)((double)part[k] * scale);
    }
}

/* A factor for each element. */
static void scale_each(float *y, const uint8_t *x, int64_t n, const double *scale)
{
    float part[PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t count = n - i < PIECE ? n - i : PIECE;
        memcpy(part, x + (size_t)i * sizeof *y, (size_t)count * sizeof *part);
        if (count == PIECE)
            for (int k = 0; k < PIECE; k++)
                y[i + k] = (float)((double)part[k] * scale[i + k]);
        else
            for (int64_t k = 0; k < count; k++)
                y[i + k] = (float)((double)part[k] * scale[i + k]);
    }
}

/* y: elements [first, first + count) of t, which lie in x, or in y itself, without their factors.
 */
static void scale_elements(const sn_tensor *t, int64_t first, int64_t count, const uint8_t *x,
                           float *y)
{
    const int64_t places = t->dims[t->scale_axis];
    int64_t each = 1; /* elements of one place, side by side */
    for (int i = t->scale_axis + 1; i < t->rank; i++)
        each *= t->dims[i];
    const int64_t run = each == 1 ? places : each;
    for (int64_t i = 0; i < count;) {
        const int64_t at = first + i, left = run - at % run;
        const int64_t n = left < count - i ? left : count - i;
        if (each == 1)
            scale_each(y + i, x + (size_t)i * sizeof *y, n, t->scale + at % places);
        else
            scale_row(y + i, x + (size_t)i * sizeof *y, n, t->scale[at / each % places]);
        i += n;
    }
}

/* Rows of all dims from the parts' axis on: each part has its piece of every one. */
static void read_parts(const sn_tensor *t, int64_t first, int64_t count, uint8_t *dst)
{
    const sn_tensor_parts *p = t->parts;
    const size_t size = sn_dtype_bytes(t->dtype);
    int64_t inner = 1;
    for (int i = p->axis + 1; i < t->rank; i++)
        inner *= t->dims[i];
    while (count > 0) {
        const int64_t row = first / (t->dims[p->axis] * inner);
        int64_t at = first % (t->dims[p->axis] * inner), width;
        size_t k = 0;
        for (; at >= (width = p->part[k]->dims[p->axis] * inner); k++)
            at -= width;
        const int64_t n = width - at < count ? width - at : count;
        sn_tensor_read(p->part[k], row * width + at, n, dst);
        dst += (size_t)n * size;
        first += n;
        count -= n;
    }
}

void sn_tensor_read(const sn_tensor *t, int64_t first, int64_t count, void *dst)
{
    const size_t size = sn_dtype_bytes(t->dtype);
    const uint8_t *src = dst;
    if (t->parts)
        read_parts(t, first, count, dst);
    else
        src = (const uint8_t *)t->data + (size_t)first * size;
    if (t->scale)
        scale_elements(t, first, count, src, dst);
    else if (src != dst)
        memcpy(dst, src, (size_t)count * size);
}

sonde_status sn_tensor_make_readable(sn_tensor *t, sn_buffers *buffers, sn_allocator *alloc,
                                     sonde_error *err)
{
    sn_buffer *b = sn_buffer_new(alloc, t->bytes);
    if (!b || !sn_vec_push(&buffers->list, alloc, b)) {
        sn_buffer_unref(b);
        return sn_fail_memory(err, t->bytes);
    }
    if (t->scale || t->parts)
        sn_tensor_read(t, 0, sn_tensor_count(t), b->data);
    else
        memcpy(b->data, t->data, t->bytes); /* whatever its layout */
    t->data = b->data;
    t->owner = b;
    t->scale = NULL;
    t->scale_axis = 0;
    t->parts = NULL;
    return SONDE_OK;
}
