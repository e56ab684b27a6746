/* SPDX-License-Identifier: Apache-2.0 */
/* Drives the elementwise loops: picks one, collapses shapes, walks the rows of a broadcast, splits
 * large work over the pool, and carries small floats through f32. */
#include "compute/eltwise.h"

#include <string.h>

#include "compute/eltwise_loops.h"
#include "compute/small_floats.h"

enum { CHUNK = 256 }; /* elements of an f32 detour */

/* ------------------------------------------------------------------ choosing */
static bool is_f8(sonde_dtype t)
{
    return t >= SONDE_DTYPE_F8E4M3FN && t <= SONDE_DTYPE_F8E5M2FNUZ;
}

/* "i64_add": texts of all types times all functions, laid out by the compiler. */
#define TYPE_NAMES(text)                                                                           \
    {                                                                                              \
        "?_" text, "f32_" text, "u8_" text, "i8_" text, "u16_" text, "i16_" text, "i32_" text,     \
            "i64_" text, "str_" text, "bool_" text, "f16_" text, "f64_" text, "u32_" text,         \
            "u64_" text, "c64_" text, "c128_" text, "bf16_" text                                   \
    }
enum { NAMED_TYPES = 17 };

/* Name and sizes of elements; is_bool is known. `names`: one per type. */
static void describe(sn_elt *e, const char *const *names, sonde_dtype t)
{
    e->name = names[(int)t < NAMED_TYPES ? t : 0];
    e->in_bytes = (uint8_t)sn_dtype_bytes(t);
    e->out_bytes = e->is_bool ? 1 : e->in_bytes;
}

bool sn_unary_get(sn_elt *e, sn_unary op, sonde_dtype t, uint32_t cpu_flags)
{
#define X(id, text, cost) TYPE_NAMES(text),
    static const char *const names[SN_UNARY_COUNT][NAMED_TYPES] = {SN_UNARY_LIST(X)};
#undef X
#define X(id, text, cost) cost,
    static const uint8_t costs[SN_UNARY_COUNT] = {SN_UNARY_LIST(X)};
#undef X
    memset(e, 0, sizeof(*e));
    e->is_bool = op == SN_UNARY_IS_NAN || op == SN_UNARY_IS_INF || op == SN_UNARY_NOT;
    bool small = sn_is_half(t) || (e->is_bool && is_f8(t));
    e->via = small ? t : SONDE_DTYPE_UNDEFINED;
    sonde_dtype compute = small ? SONDE_DTYPE_F32 : t;
    e->fn = sn_unary_loop(op, compute);
    if (!e->fn)
        return false;
    e->cost = costs[op];
    e->cpu_flags = cpu_flags;
    describe(e, names[op], t);
    if (compute != SONDE_DTYPE_F32)
        return true;
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    switch (op) {
#define KERNEL(id, slot)                                                                           \
    case SN_UNARY_##id:                                                                            \
        e->f32_unary = k->slot;                                                                    \
        e->name = small ? e->name : k->slot##_name;                                                \
        break;
        KERNEL(RELU, f32_relu)
        KERNEL(CLIP, f32_clip)
        KERNEL(LEAKY_RELU, f32_leaky_relu)
        KERNEL(EXP, f32_exp)
        KERNEL(SIGMOID, f32_sigmoid)
        KERNEL(TANH, f32_tanh)
        KERNEL(ERF, f32_erf)
        KERNEL(GELU, f32_gelu)
        KERNEL(GELU_TANH, f32_gelu_tanh)
        KERNEL(SWISH, f32_swish)
        KERNEL(HARD_SIGMOID, f32_hard_sigmoid)
        KERNEL(HARD_SWISH, f32_hard_swish)
        KERNEL(SQRT, f32_sqrt)
        KERNEL(ELU, f32_elu)
        KERNEL(SELU, f32_selu)
        KERNEL(CELU, f32_celu)
        KERNEL(SOFTPLUS, f32_softplus)
        KERNEL(SOFTSIGN, f32_softsign)
        KERNEL(MISH, f32_mish)
        KERNEL(LOG, f32_log)
        KERNEL(SIN, f32_sin)
        KERNEL(COS, f32_cos)
        KERNEL(RECIPROCAL, f32_reciprocal)
        KERNEL(FLOOR, f32_floor)
        KERNEL(CEIL, f32_ceil)
        KERNEL(ROUND, f32_round)
        KERNEL(ABS, f32_abs)
        KERNEL(NEG, f32_neg)
#undef KERNEL
    default:
        break;
    }
    return true;
}

bool sn_binary_get(sn_elt *e, sn_binary op, sonde_dtype t, uint32_t cpu_flags)
{
#define X(id, text, cost) TYPE_NAMES(text),
    static const char *const names[SN_BINARY_COUNT][NAMED_TYPES] = {SN_BINARY_LIST(X)};
#undef X
#define X(id, text, cost) cost,
    static const uint8_t costs[SN_BINARY_COUNT] = {SN_BINARY_LIST(X)};
#undef X
    memset(e, 0, sizeof(*e));
    bool small = sn_is_half(t);
    e->is_bool = op >= SN_BINARY_EQUAL && op <= SN_BINARY_XOR;
    e->via = small ? t : SONDE_DTYPE_UNDEFINED;
    sonde_dtype compute = small ? SONDE_DTYPE_F32 : t;
    e->fn = sn_binary_loop(op, compute);
    if (!e->fn)
        return false;
    e->cost = costs[op];
    e->cpu_flags = cpu_flags;
    describe(e, names[op], t);
    if (compute != SONDE_DTYPE_F32)
        return true;
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    switch (op) {
#define KERNEL(id, slot)                                                                           \
    case SN_BINARY_##id:                                                                           \
        e->f32_binary = k->slot;                                                                   \
        e->name = small ? e->name : k->slot##_name;                                                \
        break;
        KERNEL(ADD, f32_add)
        KERNEL(SUB, f32_sub)
        KERNEL(MUL, f32_mul)
        KERNEL(DIV, f32_div)
        KERNEL(MIN, f32_min)
        KERNEL(MAX, f32_max)
#undef KERNEL
    default:
        break;
    }
    return true;
}

/* ------------------------------------------------------------------ shapes */
void sn_bcast_flat(sn_bcast *b, size_t total, int n)
{
    b->rank = 1;
    b->dims[0] = (int64_t)total;
    b->total = total;
    for (int k = 0; k < 3; k++)
        b->stride[k][0] = k < n ? 1 : 0;
}

void sn_bcast_plan(sn_bcast *b, const int64_t *out, int rank, int n, const int64_t *const *dims,
                   const int *ranks)
{
    ptrdiff_t next[3] = {1, 1, 1}; /* dense stride of the dim being looked at, from the right */
    int64_t rev_dims[SN_BCAST_RANK];
    ptrdiff_t rev[3][SN_BCAST_RANK];
    int used = 0;
    b->total = 1;
    for (int i = rank - 1; i >= 0; i--) {
        ptrdiff_t s[3] = {0, 0, 0};
        for (int k = 0; k < n; k++) {
            int j = i - (rank - ranks[k]);
            int64_t d = j >= 0 ? dims[k][j] : 1;
            s[k] = d == 1 ? 0 : next[k];
            next[k] *= (ptrdiff_t)d;
        }
        b->total *= (size_t)out[i];
        if (out[i] == 1)
            continue;
        /* Joins the dim to its right when every operand walks through both as through one. */
        bool join = used > 0;
        for (int k = 0; k < n && join; k++)
            join = s[k] == rev[k][used - 1] * (ptrdiff_t)rev_dims[used - 1];
        if (join) {
            rev_dims[used - 1] *= out[i];
            continue;
        }
        rev_dims[used] = out[i];
        for (int k = 0; k < 3; k++)
            rev[k][used] = s[k];
        used++;
    }
    if (used == 0) {
        sn_bcast_flat(b, b->total, n);
        return;
    }
    b->rank = used;
    for (int i = 0; i < used; i++) {
        b->dims[i] = rev_dims[used - 1 - i];
        for (int k = 0; k < 3; k++)
            b->stride[k][i] = rev[k][used - 1 - i];
    }
}

/* ------------------------------------------------------------------ one operand */
typedef struct job {
    const sn_elt *e;
    const sn_bcast *b;
    uint8_t *y;
    const uint8_t *in[3];
    const void *params;
    size_t elem_bytes; /* where */
} job;

static void unary_piece(const job *j, void *y, const void *x, size_t n)
{
    const sn_elt *e = j->e;
    if (e->f32_unary)
        e->f32_unary(y, x, n, j->params);
    else
        e->fn(y, x, NULL, n, SN_BINARY_VV, j->params);
}

static void unary_range(void *arg, size_t lo, size_t hi)
{
    const job *j = arg;
    const sn_elt *e = j->e;
    if (!e->via) {
        unary_piece(j, j->y + lo * e->out_bytes, j->in[0] + lo * e->in_bytes, hi - lo);
        return;
    }
    float x[CHUNK], y[CHUNK];
    for (size_t i = lo; i < hi; i += CHUNK) {
        size_t n = hi - i < CHUNK ? hi - i : CHUNK;
        sn_load_f32(e->cpu_flags, e->via, x, j->in[0] + i * e->in_bytes, n);
        if (e->is_bool) {
            unary_piece(j, j->y + i, x, n);
            continue;
        }
        unary_piece(j, y, x, n);
        sn_store_f32(e->cpu_flags, e->via, j->y + i * e->out_bytes, y, n, (sn_rounding){0});
    }
}

void sn_unary_run(const sn_elt *e, void *y, const void *x, size_t n, const void *params,
                  sn_pool *pool)
{
    job j = {.e = e, .y = y, .in = {x}, .params = params};
    sn_parallel_range(pool, n, e->cost, unary_range, &j);
}

/* ------------------------------------------------------------------ rows of a broadcast */
/* Walks the inner runs of [lo, hi) in result order, keeping each operand's offset. */
typedef struct walk {
    const sn_bcast *b;
    int64_t at[SN_BCAST_RANK];
    ptrdiff_t off[3]; /* of the current row's first element */
    size_t inner, in_row;
} walk;

static void walk_start(walk *w, const sn_bcast *b, size_t lo)
{
    w->b = b;
    w->inner = (size_t)b->dims[b->rank - 1];
    w->in_row = lo % w->inner;
    size_t row = lo / w->inner;
    memset(w->off, 0, sizeof(w->off));
    for (int i = b->rank - 2; i >= 0; i--) {
        w->at[i] = (int64_t)(row % (size_t)b->dims[i]);
        row /= (size_t)b->dims[i];
        for (int k = 0; k < 3; k++)
            w->off[k] += w->at[i] * b->stride[k][i];
    }
}

static void walk_next_row(walk *w)
{
    const sn_bcast *b = w->b;
    w->in_row = 0;
    for (int i = b->rank - 2; i >= 0; i--) {
        for (int k = 0; k < 3; k++)
            w->off[k] += b->stride[k][i];
        if (++w->at[i] < b->dims[i])
            return;
        for (int k = 0; k < 3; k++)
            w->off[k] -= b->stride[k][i] * (ptrdiff_t)b->dims[i];
        w->at[i] = 0;
    }
}

static void binary_piece(const job *j, void *y, const void *a, const void *b, size_t n, int mode)
{
    const sn_elt *e = j->e;
    if (e->f32_binary)
        e->f32_binary(y, a, b, n, mode);
    else
        e->fn(y, a, b, n, mode, j->params);
}

static void binary_small(const job *j, uint8_t *y, const uint8_t *a, const uint8_t *b, size_t n,
                         int mode)
{
    const sn_elt *e = j->e;
    float fa[CHUNK], fb[CHUNK], fy[CHUNK];
    size_t sa = mode != SN_BINARY_SV, sb = mode != SN_BINARY_VS;
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t m = n - i < CHUNK ? n - i : CHUNK;
        sn_load_f32(e->cpu_flags, e->via, fa, a + sa * i * e->in_bytes, sa ? m : 1);
        sn_load_f32(e->cpu_flags, e->via, fb, b + sb * i * e->in_bytes, sb ? m : 1);
        if (e->is_bool) {
            binary_piece(j, y + i, fa, fb, m, mode);
            continue;
        }
        binary_piece(j, fy, fa, fb, m, mode);
        sn_store_f32(e->cpu_flags, e->via, y + i * e->out_bytes, fy, m, (sn_rounding){0});
    }
}

static void binary_range(void *arg, size_t lo, size_t hi)
{
    const job *j = arg;
    const sn_elt *e = j->e;
    const sn_bcast *b = j->b;
    ptrdiff_t sa = b->stride[0][b->rank - 1], sb = b->stride[1][b->rank - 1];
    int mode = sa && sb ? SN_BINARY_VV : sb ? SN_BINARY_SV : SN_BINARY_VS;
    walk w;
    walk_start(&w, b, lo);
    for (size_t i = lo; i < hi;) {
        size_t n = w.inner - w.in_row < hi - i ? w.inner - w.in_row : hi - i;
        const uint8_t *pa = j->in[0] + (w.off[0] + sa * (ptrdiff_t)w.in_row) * e->in_bytes;
        const uint8_t *pb = j->in[1] + (w.off[1] + sb * (ptrdiff_t)w.in_row) * e->in_bytes;
        uint8_t *y = j->y + i * e->out_bytes;
        size_t m = sa || sb ? n : 1; /* both stand still: one result, repeated */
        if (e->via)
            binary_small(j, y, pa, pb, m, mode);
        else
            binary_piece(j, y, pa, pb, m, mode);
        for (size_t k = m; k < n; k++)
            memcpy(y + k * e->out_bytes, y, e->out_bytes);
        i += n;
        walk_next_row(&w);
    }
}

void sn_binary_run(const sn_elt *e, const sn_bcast *b, void *y, const void *pa, const void *pb,
                   const void *params, sn_pool *pool)
{
    job j = {.e = e, .b = b, .y = y, .in = {pa, pb}, .params = params};
    if (!sn_repeat_run(e, b, y, pa, pb, params, pool))
        sn_parallel_range(pool, b->total, e->cost, binary_range, &j);
}

/* ------------------------------------------------------------------ where */
typedef struct bytes16 {
    uint64_t part[2];
} bytes16;

/* The usual cases first, with strides the compiler can see: everything dense, or one value fixed.
 */
#define WHERE_LOOP(sc, sa, sb)                                                                     \
    for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i++)                                                   \
        y[i] = c[i * (sc)] ? a[i * (sa)] : b[i * (sb)];
#define WHERE(name, T)                                                                             \
    static void name(void *py, const uint8_t *c, const void *pa, const void *pb, size_t n,         \
                     ptrdiff_t sc, ptrdiff_t sa, ptrdiff_t sb)                                     \
    {                                                                                              \
        T *y = py;                                                                                 \
        const T *a = pa, *b = pb;                                                                  \
        if (sc == 1 && sa == 1 && sb == 1) {                                                       \
            WHERE_LOOP(1, 1, 1)                                                                    \
        } else if (sc == 1 && sa == 1) {                                                           \
            WHERE_LOOP(1, 1, 0)                                                                    \
        } else if (sc == 1 && sb == 1) {                                                           \
            WHERE_LOOP(1, 0, 1)                                                                    \
        } else {                                                                                   \
            WHERE_LOOP(sc, sa, sb)                                                                 \
        }                                                                                          \
    }
WHERE(where_1, uint8_t)
WHERE(where_2, uint16_t)
WHERE(where_4, uint32_t)
WHERE(where_8, uint64_t)
WHERE(where_16, bytes16)

static void where_range(void *arg, size_t lo, size_t hi)
{
    const job *j = arg;
    const sn_bcast *b = j->b;
    ptrdiff_t s[3], bytes = (ptrdiff_t)j->elem_bytes;
    for (int k = 0; k < 3; k++)
        s[k] = b->stride[k][b->rank - 1];
    walk w;
    walk_start(&w, b, lo);
    for (size_t i = lo; i < hi;) {
        size_t n = w.inner - w.in_row < hi - i ? w.inner - w.in_row : hi - i;
        ptrdiff_t in_row = (ptrdiff_t)w.in_row;
        const uint8_t *c = j->in[0] + w.off[0] + s[0] * in_row;
        const uint8_t *pa = j->in[1] + (w.off[1] + s[1] * in_row) * bytes;
        const uint8_t *pb = j->in[2] + (w.off[2] + s[2] * in_row) * bytes;
        uint8_t *y = j->y + i * j->elem_bytes;
        switch (j->elem_bytes) {
        case 1:
            where_1(y, c, pa, pb, n, s[0], s[1], s[2]);
            break;
        case 2:
            where_2(y, c, pa, pb, n, s[0], s[1], s[2]);
            break;
        case 4:
            where_4(y, c, pa, pb, n, s[0], s[1], s[2]);
            break;
        case 8:
            where_8(y, c, pa, pb, n, s[0], s[1], s[2]);
            break;
        default:
            where_16(y, c, pa, pb, n, s[0], s[1], s[2]);
        }
        i += n;
        walk_next_row(&w);
    }
}

void sn_where_run(const sn_bcast *b, size_t elem_bytes, void *y, const uint8_t *cond,
                  const void *pa, const void *pb, sn_pool *pool)
{
    job j = {.b = b, .y = y, .in = {cond, pa, pb}, .elem_bytes = elem_bytes};
    sn_parallel_range(pool, b->total, 1, where_range, &j);
}

/* ------------------------------------------------------------------ blocked layout */
void sn_blocked_zero_pad(float *y, int64_t outer, int64_t channels, int64_t inner, int block)
{
    int used = (int)(channels % block);
    if (used == 0)
        return;
    int64_t blocks = channels / block + 1;
    for (int64_t o = 0; o < outer; o++) {
        float *p = y + ((o + 1) * blocks - 1) * inner * block;
        for (int64_t i = 0; i < inner; i++, p += block)
            memset(p + used, 0, sizeof(float) * (size_t)(block - used));
    }
}
