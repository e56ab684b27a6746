/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of convolutions and products of bytes; see q8.h. A tile is a few rows of the result
 * times a few blocks of output channels: pointers to the rows of x that its taps read, sums from
 * the kernel, and from those the result. */
#include "compute/q8.h"

#include <stdio.h>
#include <string.h>

#include "compute/parallel.h"

enum { MAX_BLOCKS = 4, DEPTHWISE_ROWS = 4, DEPTHWISE_BLOCKS = 16, MANY_TAPS = 4096 };

/* ------------------------------------------------------------------ which kernel */
typedef struct q8_kernel {
    sn_q8_tile_fn *fn;
    const char *name;
    const sn_geometry *geometry;
    sonde_dtype type; /* of the activations it reads */
} q8_kernel;

/* The faster of the two kinds; the activations' own where they are the same. */
static q8_kernel kernel_for(const sn_kernels *k, bool depthwise, sonde_dtype x_type)
{
    const q8_kernel tiles[] = {{k->u8_tile, k->u8_tile_name, &k->u8_tile_geometry, SONDE_DTYPE_U8},
                               {k->i8_tile, k->i8_tile_name, &k->i8_tile_geometry, SONDE_DTYPE_I8}};
    const q8_kernel taps[] = {
        {k->u8_depthwise, k->u8_depthwise_name, &k->u8_depthwise_geometry, SONDE_DTYPE_U8},
        {k->i8_depthwise, k->i8_depthwise_name, &k->i8_depthwise_geometry, SONDE_DTYPE_I8}};
    const q8_kernel *two = depthwise ? taps : tiles;
    if (two[0].geometry->speed > two[1].geometry->speed)
        return two[0];
    if (two[0].geometry->speed < two[1].geometry->speed)
        return two[1];
    return two[x_type == SONDE_DTYPE_I8];
}

static bool is_depthwise(int64_t group_in, int64_t group_out, int64_t groups)
{
    return group_in == 1 && group_out == 1 && groups > 1;
}

static unsigned pack_id(sn_arrangement arrangement, sonde_dtype w_type, uint32_t cpu_flags)
{
    const q8_kernel k =
        kernel_for(sn_kernels_get(cpu_flags), arrangement == SN_WEIGHTS_DEPTHWISE, SONDE_DTYPE_U8);
    return sn_pack_find(arrangement, (sn_dtype)w_type, k.geometry);
}

unsigned sn_q8_conv_pack_id(sonde_dtype w_type, const int64_t *w, int rank, int64_t groups,
                            uint32_t cpu_flags)
{
    if (rank < 3 || groups <= 0 || w[0] <= 0 || w[0] % groups != 0)
        return SN_PACK_NONE;
    return pack_id(is_depthwise(w[1], w[0] / groups, groups) ? SN_WEIGHTS_DEPTHWISE
                                                             : SN_WEIGHTS_CONV_LAST,
                   w_type, cpu_flags);
}

unsigned sn_q8_gemm_pack_id(sonde_dtype w_type, uint32_t cpu_flags)
{
    return pack_id(SN_WEIGHTS_PANELS, w_type, cpu_flags);
}

/* ------------------------------------------------------------------ plan */
sn_q8_desc sn_q8_product(const sn_gemm_desc *d)
{
    sn_q8_desc q = {.product = true,
                    .batch_rank = d->batch_rank,
                    .matrices = d->b_count,
                    .x_pitch = d->k,
                    .y_pitch = d->n};
    q.conv = (sn_conv_desc){.n = 1, .c = d->k, .oc = d->n, .groups = 1};
    for (int i = 0; i < d->batch_rank; i++) {
        q.batch[i] = d->batch[i];
        q.x_batch[i] = d->a_batch[i];
        q.w_batch[i] = d->b_batch[i];
        q.conv.n *= d->batch[i];
    }
    for (int i = 0; i < 3; i++) {
        q.conv.kernel[i] = q.conv.stride[i] = q.conv.dilation[i] = 1;
        q.conv.in[i] = q.conv.out[i] = i == 2 ? d->m : 1;
    }
    return q;
}

/* The weights as packing sees them; dims has room for 5. Without channels they are taken to have
 * one: nothing of it is read. */
static sn_packing packing_of(const sn_q8_plan *p, int64_t *dims)
{
    const sn_q8_desc *d = &p->d;
    const sn_conv_desc *c = &d->conv;
    const int64_t in = sn_max(c->c, 1);
    if (d->product) {
        dims[0] = sn_max(d->matrices, 1);
        dims[1] = d->turned ? c->oc : in;
        dims[2] = d->turned ? in : c->oc;
        return (sn_packing){sn_pack_get(p->pack), dims, 3, d->turned, p->cpu_flags};
    }
    dims[0] = c->oc;
    dims[1] = sn_max(c->c / c->groups, 1);
    for (int i = 0; i < 3; i++)
        dims[i + 2] = c->kernel[i];
    return (sn_packing){sn_pack_get(p->pack), dims, 5, c->groups, p->cpu_flags};
}

/* Rows and blocks of a tile: few blocks, evenly filled, and the rows that registers leave. */
static void plan_tiles(sn_q8_plan *p, const sn_geometry *g)
{
    const sn_q8_weights *w = &p->w;
    int64_t most = MAX_BLOCKS;
    while (most > 1 && g->pixels[most - 1] == 0)
        most--;
    if (p->depthwise)
        most = DEPTHWISE_BLOCKS;
    p->chunks = sn_ceil_div(w->blocks, most);
    p->chunk = sn_ceil_div(w->blocks, p->chunks);
    p->rows = p->depthwise ? DEPTHWISE_ROWS : g->pixels[p->chunk - 1];
    if (w->taps > MANY_TAPS)
        p->rows = 1;
    p->rows = sn_min(p->rows, sn_max(p->out_pixels, 1));
}

/* Tasks: parts of the rows while the weights fit the cache, else parts of the weights. */
static void plan_tasks(sn_q8_plan *p, size_t l2_bytes, int threads)
{
    const int64_t tiles = sn_ceil_div(p->out_pixels, p->rows);
    const int64_t units = (p->d.product ? 1 : p->w.groups) * p->chunks;
    const int64_t images = sn_max(p->d.conv.n, 1);
    const int64_t want = threads > 1 ? sn_ceil_div(4 * (int64_t)threads, images) : 1;
    p->chunks_outer = p->chunks * p->chunk * p->w.block_bytes > (int64_t)(l2_bytes / 2);
    if (p->chunks_outer) {
        p->chunk_parts = sn_min(units, want);
        p->row_parts = sn_min(tiles, sn_ceil_div(want, p->chunk_parts));
    } else {
        p->row_parts = sn_max(sn_min(tiles, want), 1);
        p->chunk_parts = sn_min(units, sn_ceil_div(want, p->row_parts));
    }
    p->row_parts = sn_max(p->row_parts, 1);
    p->chunk_parts = sn_max(p->chunk_parts, 1);
}

static void name_plan(sn_q8_plan *p, const char *kernel)
{
    const char *suffix = strrchr(kernel, '_'), *type = p->d.x_type == SONDE_DTYPE_U8 ? "u8" : "i8";
    const int64_t *k = p->d.conv.kernel;
    if (p->d.product)
        snprintf(p->name, sizeof p->name, "%s_gemm%s", type, suffix);
    else
        snprintf(p->name, sizeof p->name, "%s_%s%lldx%lld%s", type,
                 p->depthwise ? "depthwise" : "conv", (long long)(k[0] * k[1]), (long long)k[2],
                 suffix);
}

static bool is_flat(const sn_conv_desc *c)
{
    for (int i = 0; i < 3; i++)
        if (c->kernel[i] != 1 || c->stride[i] != 1 || c->pad[i] != 0 || c->in[i] != c->out[i])
            return false;
    return true;
}

sonde_status sn_q8_plan_make(sn_q8_plan *p, const sn_q8_desc *d, uint32_t cpu_flags,
                             size_t l2_bytes, int threads, sonde_error *err)
{
    const sn_conv_desc *c = &d->conv;
    *p = (sn_q8_plan){.d = *d, .k = sn_kernels_get(cpu_flags), .cpu_flags = cpu_flags};
    p->depthwise = !d->product && is_depthwise(c->c / c->groups, c->oc / c->groups, c->groups);
    p->empty = c->c == 0;
    const q8_kernel kernel = kernel_for(p->k, p->depthwise, d->x_type);
    p->tile = kernel.fn;
    p->flips = kernel.type != d->x_type;
    p->pack = pack_id(d->product     ? SN_WEIGHTS_PANELS
                      : p->depthwise ? SN_WEIGHTS_DEPTHWISE
                                     : SN_WEIGHTS_CONV_LAST,
                      d->w_type, cpu_flags);
    int64_t dims[5];
    const sn_packing packing = packing_of(p, dims);
    p->in_pixels = sn_count(c->in[0], c->in[1], c->in[2], 1);
    p->out_pixels = sn_count(c->out[0], c->out[1], c->out[2], 1);
    if (!packing.format || !sn_q8_weights_of(&packing, &p->w) || p->in_pixels < 0 ||
        p->out_pixels < 0)
        return sn_fail(err, SONDE_LIMIT, "the product is too large");
    p->flat = is_flat(c);
    plan_tiles(p, kernel.geometry);
    plan_tasks(p, l2_bytes, threads);
    const sn_q8_weights *w = &p->w;
    const int64_t columns = w->groups * w->blocks * w->block, tile = p->chunk * w->block;
    if (!d->packed && !p->empty)
        p->packed = sn_carve(&p->workspace, w->bytes, 1);
    p->zeros = sn_carve(&p->workspace, c->c, 1);
    p->start = sn_carve(&p->workspace, columns, sizeof(int32_t));
    p->factor = sn_carve(&p->workspace, columns, sizeof(float));
    const int64_t pointers = sn_count(w->taps, p->rows, sizeof(void *), 1);
    if (pointers < 0)
        return sn_fail(err, SONDE_LIMIT, "the window has too many taps");
    p->pointers = sn_carve_each(&p->workspace, (size_t)threads, (size_t)pointers);
    p->sums =
        sn_carve_each(&p->workspace, (size_t)threads, (size_t)(p->rows * tile) * sizeof(int32_t));
    p->factors = sn_carve_each(&p->workspace, (size_t)threads, (size_t)tile * sizeof(float));
    const int64_t results = sn_count(sn_max(c->n, 1), p->out_pixels, c->oc, 1);
    p->flops = 2 * (uint64_t)sn_max(results, 0) * (uint64_t)(w->group_in * w->taps);
    if (p->empty)
        p->flops = 0;
    name_plan(p, kernel.name);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ a run */
typedef struct q8_call {
    const sn_q8_plan *p;
    const sn_q8_args *a;
    const uint8_t *weights; /* packed */
    const int32_t *column_sums;
    int32_t *start;
    float *factor;
    const uint8_t *zeros;
    int32_t x_shift, w_shift; /* what the numbers of kernels are smaller by */
    bool w_zeros;             /* some zero point of the weights counts */
    bool row_numbers; /* rows have zero points, scales or biases of their own, or w_zero counts */
    bool plain_bytes; /* the result is bytes, and no row is different from the others */
    float lo, hi;
    _Atomic bool cancelled;
} q8_call;

static int32_t times(int32_t a, int32_t b) /* wraps */
{
    return (int32_t)((uint32_t)a * (uint32_t)b);
}
static int32_t plus(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}
static int32_t minus(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b);
}

/* Zero points and scales of output channel o of matrix m: one, one per channel, or all. */
static int64_t param_at(int64_t n, int64_t oc, int64_t m, int64_t o)
{
    return n == 1 ? 0 : n == oc ? o : m * oc + o;
}
static int32_t w_zero_at(const q8_call *c, int64_t m, int64_t o)
{
    const sn_byte_zeros *z = &c->a->w_zero;
    const int64_t at = param_at(z->n, c->p->d.conv.oc, m, o);
    return (z->data ? sn_byte_at(z->type, z->data, at) : 0) - c->w_shift;
}
static int32_t x_zero_at(const q8_call *c, int64_t row)
{
    const sn_byte_zeros *z = &c->a->x_zero;
    return (z->data ? sn_byte_at(z->type, z->data, z->n == 1 ? 0 : row % z->n) : 0) - c->x_shift;
}
static float w_scale_at(const q8_call *c, int64_t m, int64_t o)
{
    return c->a->w_scale[param_at(c->a->w_scales, c->p->d.conv.oc, m, o)];
}

/* Numbers of each column that all rows share, of group (or matrix) g. */
static void prepare_group(const q8_call *c, int64_t g)
{
    const sn_q8_plan *p = c->p;
    const sn_q8_args *a = c->a;
    const sn_q8_weights *w = &p->w;
    const int64_t first = g * w->blocks * w->block, columns = w->blocks * w->block;
    const int64_t o = p->d.product ? 0 : g * w->out, m = p->d.product ? g : 0;
    const int32_t x_zero = a->x_zero.n <= 1 ? x_zero_at(c, 0) : 0;
    const int32_t terms = (int32_t)(w->group_in * w->taps);
    int32_t *start = c->start + first;
    float *factor = c->factor + first;
    memset(start, 0, (size_t)columns * sizeof *start);
    memset(factor, 0, (size_t)columns * sizeof *factor);
    for (int64_t l = 0; l < w->out && !p->empty; l++)
        start[l] = minus(0, times(x_zero, c->column_sums[first + l]));
    for (int64_t l = 0; l < w->out && c->w_zeros; l++)
        start[l] = plus(start[l], times(x_zero, times(terms, w_zero_at(c, m, o + l))));
    if (a->bias && !a->bias_row)
        for (int64_t l = 0; l < w->out; l++)
            start[l] = plus(start[l], a->bias[(o + l) * a->bias_column]);
    if (!a->w_scale)
        return;
    const bool one_scale = a->x_scales <= 1, bytes = p->d.y_type != SONDE_DTYPE_F32;
    for (int64_t l = 0; l < w->out; l++) {
        const float scale = w_scale_at(c, m, o + l);
        const float both = one_scale ? scale * a->x_scale[0] : scale;
        factor[l] = one_scale && bytes ? both / a->y_scale : both;
    }
}

/* Does any zero point of the weights count? */
static bool w_zeros_count(const q8_call *c)
{
    const sn_byte_zeros *z = &c->a->w_zero;
    for (int64_t i = 0; i < (z->data ? z->n : 1); i++)
        if ((z->data ? sn_byte_at(z->type, z->data, i) : 0) != c->w_shift)
            return true;
    return false;
}

/* ------------------------------------------------------------------ a tile */
typedef struct q8_tile_at {
    int64_t image, row, n; /* rows row … row+n-1 of an image */
    const uint8_t **pointers;
    int32_t *sums;
    float *factors;
} q8_tile_at;

/* Which matrix of x or w a batch uses. */
static int64_t matrix_of(const sn_q8_desc *d, const int64_t *steps, int64_t batch)
{
    int64_t at = 0;
    for (int i = d->batch_rank - 1; i >= 0; i--) {
        at += batch % d->batch[i] * steps[i];
        batch /= d->batch[i];
    }
    return at;
}

static void point_at_rows(const q8_call *c, const q8_tile_at *t)
{
    const sn_q8_plan *p = c->p;
    const sn_conv_desc *d = &p->d.conv;
    const int64_t pitch = p->d.x_pitch;
    const int64_t image = p->d.product ? matrix_of(&p->d, p->d.x_batch, t->image) : t->image;
    const uint8_t *x = (const uint8_t *)c->a->x + image * p->in_pixels * pitch;
    if (p->flat) {
        for (int64_t r = 0; r < t->n; r++)
            t->pointers[r] = x + (t->row + r) * pitch;
        return;
    }
    for (int64_t r = 0; r < t->n; r++) {
        const int64_t row = t->row + r, ox = row % d->out[2], rest = row / d->out[2];
        const int64_t x0 = ox * d->stride[2] - d->pad[2];
        const int64_t y0 = rest % d->out[1] * d->stride[1] - d->pad[1];
        const int64_t z0 = rest / d->out[1] * d->stride[0] - d->pad[0];
        const uint8_t **to = t->pointers + r;
        for (int64_t i = 0; i < d->kernel[0]; i++)
            for (int64_t j = 0; j < d->kernel[1]; j++) {
                const int64_t iz = z0 + i * d->dilation[0], iy = y0 + j * d->dilation[1];
                const bool inside = iz >= 0 && iz < d->in[0] && iy >= 0 && iy < d->in[1];
                const uint8_t *line =
                    inside ? x + (iz * d->in[1] + iy) * d->in[2] * pitch : c->zeros;
                for (int64_t k = 0; k < d->kernel[2]; k++, to += t->n) {
                    const int64_t ix = x0 + k * d->dilation[2];
                    *to = inside && ix >= 0 && ix < d->in[2] ? line + ix * pitch : c->zeros;
                }
            }
    }
}

/* The sum of row r's numbers that output channel o (of its merged group) is made of. */
static int32_t row_sum(const q8_call *c, const q8_tile_at *t, int64_t r, int64_t x_at, int64_t o)
{
    const sn_q8_plan *p = c->p;
    const sn_q8_weights *w = &p->w;
    const int64_t first = x_at + (p->depthwise ? o : o / w->group_out * w->group_in);
    int32_t sum = 0;
    for (int64_t k = 0; k < w->taps; k++) {
        const uint8_t *x = t->pointers[k * t->n + r] + first;
        for (int64_t i = 0; i < w->group_in; i++)
            sum = plus(sum, sn_byte_at(p->d.x_type, x, i) - c->x_shift);
    }
    return sum;
}

/* What the zero points and biases of single rows change in the sums of columns first … first+n-1 of
 * group g. */
static void correct_row(const q8_call *c, const q8_tile_at *t, int64_t r, int64_t g, int64_t first,
                        int64_t n, int64_t x_at, int32_t *sums)
{
    const sn_q8_plan *p = c->p;
    const sn_q8_args *a = c->a;
    const sn_q8_weights *w = &p->w;
    const int64_t terms = p->empty ? 0 : w->group_in * w->taps;
    const int64_t x_row = matrix_of(&p->d, p->d.x_batch, t->image) * p->out_pixels + t->row + r;
    const bool own_zero = a->x_zero.n > 1;
    int64_t summed = -1;
    int32_t x_sum = 0;
    for (int64_t l = 0; l < n && !p->empty; l++) {
        const int64_t o = p->d.product ? first + l : g * w->out + first + l;
        const int64_t m = p->d.product ? g : 0, of = p->depthwise ? l : (first + l) / w->group_out;
        const int32_t w_zero = w_zero_at(c, m, o);
        if (w_zero) {
            if (of != summed)
                x_sum = row_sum(c, t, r, x_at, p->depthwise ? l : first + l);
            summed = of;
            sums[l] = minus(sums[l], times(w_zero, x_sum));
        }
        if (own_zero) {
            const int64_t column = (g * w->blocks * w->block) + first + l;
            const int32_t of_w = minus(c->column_sums[column], times((int32_t)terms, w_zero));
            sums[l] = minus(sums[l], times(x_zero_at(c, x_row), of_w));
        }
    }
    if (a->bias && a->bias_row)
        for (int64_t l = 0; l < n; l++)
            sums[l] = plus(sums[l], a->bias[(t->image * p->out_pixels + t->row + r) * a->bias_row +
                                            (first + l) * a->bias_column]);
}

/* Rows of sums, x_row apart, to bytes from element `at` of the result on: channels o … o+n-1. */
static void store_bytes(const q8_call *c, int64_t at, int64_t o, const int32_t *sums, int64_t x_row,
                        const float *factor, int64_t rows, int64_t n)
{
    const sn_q8_desc *d = &c->p->d;
    const sn_requantize_args t = {.x = sums,
                                  .scale = factor,
                                  .y = (uint8_t *)c->a->y + at,
                                  .rows = (size_t)rows,
                                  .n = (size_t)n,
                                  .x_row = x_row,
                                  .y_row = d->y_pitch,
                                  .zero = (float)c->a->y_zero,
                                  .lo = c->lo,
                                  .hi = c->hi};
    c->p->k->i32_requantize(&t);
    const int64_t padding = d->y_pitch - d->conv.oc;
    for (int64_t r = 0; padding > 0 && o + n == d->conv.oc && r < rows; r++)
        memset(t.y + r * d->y_pitch + n, 0, (size_t)padding);
}

static void store_row(const q8_call *c, const q8_tile_at *t, int64_t r, int64_t o,
                      const int32_t *sums, const float *factor, int64_t n)
{
    const sn_q8_plan *p = c->p;
    const sn_q8_args *a = c->a;
    const int64_t at = (t->image * p->out_pixels + t->row + r) * p->d.y_pitch + o;
    if (a->x_scales > 1) {
        const int64_t row = matrix_of(&p->d, p->d.x_batch, t->image) * p->out_pixels + t->row + r;
        for (int64_t l = 0; l < n; l++) {
            t->factors[l] = a->x_scale[row % a->x_scales] * factor[l];
            if (p->d.y_type != SONDE_DTYPE_F32)
                t->factors[l] /= a->y_scale;
        }
        factor = t->factors;
    }
    if (p->d.y_type == SONDE_DTYPE_I32) {
        memcpy((int32_t *)a->y + at, sums, (size_t)n * sizeof *sums);
    } else if (p->d.y_type == SONDE_DTYPE_F32) {
        float *y = (float *)a->y + at;
        for (int64_t l = 0; l < n; l++)
            y[l] = (float)sums[l] * factor[l] + (a->addend ? a->addend[o + l] : 0.0f);
    } else {
        store_bytes(c, at, o, sums, 0, factor, 1, n);
    }
}

/* Rows of a tile times chunk `unit` (of all groups, or of the batch's matrix). */
static void compute_tile(const q8_call *c, const q8_tile_at *t, int64_t unit)
{
    const sn_q8_plan *p = c->p;
    const sn_q8_weights *w = &p->w;
    const int64_t block = w->block, q = unit % p->chunks * p->chunk;
    const int64_t group =
        p->d.product ? matrix_of(&p->d, p->d.w_batch, t->image) : unit / p->chunks;
    const int64_t blocks = sn_min(p->chunk, w->blocks - q), columns = blocks * block;
    const int64_t first = q * block, n = sn_min(w->out - first, columns);
    const int64_t at = group * w->blocks + q; /* block, of all */
    const int64_t x_at = p->depthwise ? first : p->d.product ? 0 : group * w->in;
    if (blocks <= 0)
        return;
    const sn_q8_tile tile = {.x = t->pointers,
                             .w = (const int8_t *)c->weights + at * w->block_bytes,
                             .start = c->start + at * block,
                             .y = t->sums,
                             .x_at = (size_t)x_at,
                             .rows = (size_t)t->n,
                             .taps = (size_t)w->taps,
                             .channels = (size_t)(p->depthwise ? n : w->in),
                             .w_q = w->block_bytes,
                             .y_row = columns,
                             .blocks = (unsigned)blocks,
                             .block = w->block,
                             .kr = w->kr,
                             .flip = p->flips ? 0x80 : 0};
    const int64_t o = p->d.product ? first : group * w->out + first;
    if (!p->empty)
        p->tile(&tile);
    if (c->plain_bytes) {
        const int64_t row = t->image * p->out_pixels + t->row;
        store_bytes(c, row * p->d.y_pitch + o, o, t->sums, columns, c->factor + at * block, t->n,
                    n);
        return;
    }
    for (int64_t r = 0; r < t->n; r++) {
        int32_t *sums = t->sums + r * columns;
        if (p->empty)
            memcpy(sums, tile.start, (size_t)columns * sizeof *sums);
        if (c->row_numbers)
            correct_row(c, t, r, group, first, n, x_at, sums);
        store_row(c, t, r, o, sums, c->factor + at * block, n);
    }
}

/* ------------------------------------------------------------------ tasks */
static bool is_cancelled(q8_call *c)
{
    if (!c->a->cancel || !atomic_load_explicit(c->a->cancel, memory_order_relaxed))
        return false;
    atomic_store_explicit(&c->cancelled, true, memory_order_relaxed);
    return true;
}

static void task(void *arg, size_t index, int worker)
{
    q8_call *c = arg;
    const sn_q8_plan *p = c->p;
    const size_t tiles = (size_t)sn_ceil_div(p->out_pixels, p->rows);
    const size_t units = (size_t)((p->d.product ? 1 : p->w.groups) * p->chunks);
    const size_t chunk_parts = (size_t)p->chunk_parts, row_parts = (size_t)p->row_parts;
    const size_t cp = index % chunk_parts, rp = index / chunk_parts % row_parts;
    const size_t u0 = sn_split(units, chunk_parts, cp), u1 = sn_split(units, chunk_parts, cp + 1);
    const size_t t0 = sn_split(tiles, row_parts, rp), t1 = sn_split(tiles, row_parts, rp + 1);
    q8_tile_at t = {.image = (int64_t)(index / chunk_parts / row_parts),
                    .pointers = sn_pieces_at(c->a->workspace, p->pointers, (size_t)worker),
                    .sums = sn_pieces_at(c->a->workspace, p->sums, (size_t)worker),
                    .factors = sn_pieces_at(c->a->workspace, p->factors, (size_t)worker)};
    /* Weights that do not stay in the cache go through it once, all rows meet a chunk of them; else
     * rows do. */
    const size_t outer = p->chunks_outer ? u1 - u0 : 1;
    for (size_t k = 0; k < outer; k++)
        for (size_t i = t0; i < t1; i++) {
            if (is_cancelled(c))
                return;
            t.row = (int64_t)i * p->rows;
            t.n = sn_min(p->rows, p->out_pixels - t.row);
            point_at_rows(c, &t);
            for (size_t u = u0; u < u1; u++)
                if (!p->chunks_outer || u == u0 + k)
                    compute_tile(c, &t, (int64_t)u);
        }
}

typedef struct pack_call {
    sn_packing packing;
    void *dst;
    const void *src;
} pack_call;

static void pack_range(void *arg, size_t lo, size_t hi)
{
    const pack_call *c = arg;
    for (size_t u = lo; u < hi; u++)
        c->packing.format->pack(&c->packing, c->dst, c->src, u);
}

static void pack_now(const sn_q8_plan *p, const void *src, void *dst, sn_pool *pool)
{
    int64_t dims[5];
    pack_call c = {packing_of(p, dims), dst, src};
    sn_parallel_range(pool, c.packing.format->units(&c.packing), (size_t)p->w.block_bytes,
                      pack_range, &c);
}

bool sn_q8_run(const sn_q8_plan *p, const sn_q8_args *a, sn_pool *pool)
{
    const uint8_t *w = a->w;
    if (!p->d.packed && !p->empty) {
        void *packed = sn_piece_at(a->workspace, p->packed);
        pack_now(p, a->w, packed, pool);
        w = packed;
    }
    const float lowest = p->d.y_type == SONDE_DTYPE_I8 ? -128.0f : 0.0f;
    const bool all = a->lo == 0 && a->hi == 0;
    q8_call c = {.p = p,
                 .a = a,
                 .weights = w + p->w.sums_bytes,
                 .column_sums = (const int32_t *)(const void *)w,
                 .start = sn_piece_at(a->workspace, p->start),
                 .factor = sn_piece_at(a->workspace, p->factor),
                 .zeros = sn_piece_at(a->workspace, p->zeros),
                 .w_shift = p->d.w_type == SONDE_DTYPE_U8 ? 128 : 0,
                 .lo = all ? lowest : (float)a->lo,
                 .hi = all ? lowest + 255.0f : (float)a->hi};
    if (p->flips)
        c.x_shift = p->d.x_type == SONDE_DTYPE_U8 ? 128 : -128;
    c.w_zeros = !p->empty && w_zeros_count(&c);
    c.row_numbers = a->x_zero.n > 1 || a->bias_row || c.w_zeros;
    c.plain_bytes = !c.row_numbers && a->x_scales <= 1 && !p->empty && sn_is_byte(p->d.y_type);
    memset(sn_piece_at(a->workspace, p->zeros), x_zero_at(&c, 0) + c.x_shift, (size_t)p->d.conv.c);
    for (int64_t g = 0; g < p->w.groups; g++)
        prepare_group(&c, g);
    sn_pool_run(pool, (size_t)(sn_max(p->d.conv.n, 0) * p->row_parts * p->chunk_parts), task, &c);
    return !atomic_load_explicit(&c.cancelled, memory_order_relaxed);
}
