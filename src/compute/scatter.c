/* SPDX-License-Identifier: Apache-2.0 */
/* One update after the other: two may hit the same place, and the order then counts. */
#include "compute/scatter.h"

#include "base/codec.h"
#include "compute/copy.h"
#include "compute/small_floats.h"
#include "kernels/kernels.h"

/* Combines n elements of src into dst. */
typedef void (*scatter_fn)(void *dst, const void *src, int64_t n);

/* X(NAME, C type, type the arithmetic is done in: unsigned so that overflow wraps) */
#define NUMBER_LIST(X)                                                                             \
    X(F32, float, float)                                                                           \
    X(F64, double, double)                                                                         \
    X(I8, int8_t, uint64_t)                                                                        \
    X(I16, int16_t, uint64_t)                                                                      \
    X(I32, int32_t, uint64_t)                                                                      \
    X(I64, int64_t, uint64_t)                                                                      \
    X(U8, uint8_t, uint64_t)                                                                       \
    X(U16, uint16_t, uint64_t) X(U32, uint32_t, uint64_t) X(U64, uint64_t, uint64_t)

#define DEFINE_HOW(NAME, SUFFIX, T, EXPR)                                                          \
    static void NAME##_##SUFFIX(void *dst, const void *src, int64_t n)                             \
    {                                                                                              \
        T *d = dst;                                                                                \
        const T *s = src;                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T a = d[i], b = s[i];                                                                  \
            d[i] = (T)(EXPR);                                                                      \
        }                                                                                          \
    }
/* min and max keep a NaN of either side. */
#define DEFINE_ALL(NAME, T, U)                                                                     \
    DEFINE_HOW(NAME, add, T, (U)a + (U)b)                                                          \
    DEFINE_HOW(NAME, mul, T, (U)a *(U)b)                                                           \
    DEFINE_HOW(NAME, min, T, a < b || a != a ? a : b)                                              \
    DEFINE_HOW(NAME, max, T, a > b || a != a ? a : b)
NUMBER_LIST(DEFINE_ALL)

/* Half floats: through float, one by one. */
#define DEFINE_HALF_HOW(NAME, SUFFIX, LOAD, STORE, EXPR)                                           \
    static void NAME##_##SUFFIX(void *dst, const void *src, int64_t n)                             \
    {                                                                                              \
        uint16_t *d = dst;                                                                         \
        const uint16_t *s = src;                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float a = LOAD(d[i]), b = LOAD(s[i]);                                                  \
            d[i] = STORE(EXPR);                                                                    \
        }                                                                                          \
    }
#define DEFINE_HALF(NAME, LOAD, STORE)                                                             \
    DEFINE_HALF_HOW(NAME, add, LOAD, STORE, a + b)                                                 \
    DEFINE_HALF_HOW(NAME, mul, LOAD, STORE, a *b)                                                  \
    DEFINE_HALF_HOW(NAME, min, LOAD, STORE, a < b || a != a ? a : b)                               \
    DEFINE_HALF_HOW(NAME, max, LOAD, STORE, a > b || a != a ? a : b)
DEFINE_HALF(F16, sn_f16_to_f32, sn_f32_to_f16)
DEFINE_HALF(BF16, sn_bf16_to_f32, sn_f32_to_bf16)

/* NULL: not defined for this type, or nothing to combine. */
static scatter_fn find(sonde_dtype t, sn_scatter how)
{
    switch (t) {
#define PICK(NAME, ...)                                                                            \
    case SONDE_DTYPE_##NAME: {                                                                     \
        static const scatter_fn all[SN_SCATTER_COUNT] = {NULL, NAME##_add, NAME##_mul, NAME##_min, \
                                                         NAME##_max};                              \
        return all[how];                                                                           \
    }
        NUMBER_LIST(PICK)
        PICK(F16, )
        PICK(BF16, )
#undef PICK
    case SONDE_DTYPE_BOOL: {
        static const scatter_fn all[SN_SCATTER_COUNT] = {NULL, U8_max, U8_mul, U8_min, U8_max};
        return all[how];
    }
    default:
        return NULL;
    }
}

bool sn_scatter_supported(sn_scatter how, sonde_dtype t)
{
    return how == SN_SCATTER_REPLACE || find(t, how) != NULL;
}

static void begin_with_input(const sn_scatter_data *d, sn_pool *pool)
{
    if (d->y != d->x)
        sn_copy_bytes(d->y, d->x, (size_t)d->count * sn_dtype_bytes(d->dtype), pool);
}

/* n updates, at `stride` from one to the next and `step` times their indices. */
#define PUT_LINE(T, TO)                                                                            \
    for (int64_t i = 0; i < n; i++)                                                                \
        ((T *)y)[i * stride + v[i] * step] TO((const T *)u)[i];

static void put_line(scatter_fn how, void *y, const void *u, const int64_t *v, int64_t n,
                     ptrdiff_t stride, ptrdiff_t step, size_t bytes)
{
    if (how == F32_add) {
        PUT_LINE(float, +=)
    } else if (!how && bytes == sizeof(uint32_t)) {
        PUT_LINE(uint32_t, =)
    } else if (!how && bytes == sizeof(uint64_t)) {
        PUT_LINE(uint64_t, =)
    } else {
        for (int64_t i = 0; i < n; i++) {
            char *to = (char *)y + (ptrdiff_t)bytes * (i * stride + v[i] * step);
            const char *from = (const char *)u + (size_t)i * bytes;
            if (how)
                how(to, from, 1);
            else
                sn_elem_copy(to, from, bytes);
        }
    }
}

bool sn_scatter_elements_run(const sn_indexed_axis *g, const sn_scatter_data *d, sn_bad_index *bad,
                             sn_pool *pool)
{
    int64_t at[SN_INDEXED_RANK] = {0}, line[SN_INDEX_LINE];
    const int last = g->rank - 1;
    const int64_t width = g->rank ? g->dims[last] : 1;
    const ptrdiff_t stride = g->rank ? g->strides[last] : 0;
    ptrdiff_t offset = 0;
    if (!sn_indices_inside(d->index, g->count, g->dim, bad))
        return false;
    begin_with_input(d, pool);
    const scatter_fn how = find(d->dtype, d->how);
    for (int64_t i = 0; i < g->count; i += width) {
        for (int64_t k = 0, n; k < width; k += n) {
            sn_bad_index changed; /* an index that has changed since it was looked at is 0 */
            n = width - k < SN_INDEX_LINE ? width - k : SN_INDEX_LINE;
            (void)sn_index_line(d->index, i + k, n, g->dim, line, &changed);
            put_line(how, (char *)d->y + (offset + k * stride) * (ptrdiff_t)g->elem_bytes,
                     (const char *)d->updates + (size_t)(i + k) * g->elem_bytes, line, n, stride,
                     g->step, g->elem_bytes);
        }
        offset = sn_next_offset(at, g->dims, g->strides, last, offset);
    }
    return true;
}

static bool tuple_offset(const sn_indexed_rows *g, sn_elems index, int64_t t, int64_t *offset,
                         sn_bad_index *bad)
{
    *offset = 0;
    for (int k = 0; k < g->depth; k++) {
        const int64_t v = sn_elem_i64(index.dtype, index.data, t * g->depth + k), dim = g->dims[k];
        if (v < -dim || v >= dim) {
            *bad = (sn_bad_index){v, dim};
            return false;
        }
        *offset += (v < 0 ? v + dim : v) * g->strides[k];
    }
    return true;
}

/* How rows of f32 are combined by vectors; NULL: not that. */
static sn_f32_binary_fn *find_rows(const sn_scatter_data *d)
{
    const sn_kernels *k = sn_kernels_get(d->cpu_flags);
    sn_f32_binary_fn *const all[SN_SCATTER_COUNT] = {NULL, k->f32_add, k->f32_mul, k->f32_min,
                                                     k->f32_max};
    return d->dtype == SONDE_DTYPE_F32 ? all[d->how] : NULL;
}

bool sn_scatter_nd_run(const sn_indexed_rows *g, const sn_scatter_data *d, sn_bad_index *bad,
                       sn_pool *pool)
{
    int64_t offset;
    for (int64_t t = 0; t < g->tuples; t++)
        if (!tuple_offset(g, d->index, t, &offset, bad))
            return false;
    begin_with_input(d, pool);
    const scatter_fn how = find(d->dtype, d->how);
    sn_f32_binary_fn *const rows = g->row > 1 ? find_rows(d) : NULL;
    for (int64_t t = 0; t < g->tuples; t++) {
        if (!tuple_offset(g, d->index, t, &offset, bad))
            offset = 0; /* an index that has changed since it was looked at */
        char *to = (char *)d->y + (size_t)offset * g->elem_bytes;
        const char *u = (const char *)d->updates + (size_t)(t * g->row) * g->elem_bytes;
        if (rows)
            rows((float *)(void *)to, (const float *)(const void *)to,
                 (const float *)(const void *)u, (size_t)g->row, SN_BINARY_VV);
        else if (how)
            how(to, u, g->row);
        else
            memcpy(to, u, (size_t)g->row * g->elem_bytes);
    }
    return true;
}

void sn_scatter_positions_run(const sn_scatter_positions *p, void *y, const void *updates,
                              const int64_t *first)
{
    const size_t bytes = p->position_bytes;
    if (p->max == 0)
        return;
    for (int64_t row = 0; row < p->batches * p->rows_per_batch; row++) {
        const int64_t given = first ? first[row / p->rows_per_batch] : 0,
                      at = given < 0 ? 0 : given % p->max;
        const uint8_t *src = (const uint8_t *)updates + (size_t)(row * p->len) * bytes;
        uint8_t *dst = (uint8_t *)y + (size_t)(row * p->max) * bytes;
        const int64_t part = at + p->len <= p->max ? p->len : p->max - at;
        memcpy(dst + (size_t)at * bytes, src, (size_t)part * bytes);
        memcpy(dst, src + (size_t)part * bytes, (size_t)(p->len - part) * bytes);
    }
}
