/* SPDX-License-Identifier: Apache-2.0 */
/* Function types of the kernels: one per kind of loop, shared by all slots that compute that kind
 * of thing. Rules for every kernel: sizes and strides are in elements, pointers are aligned for
 * their element type only, exactly the stated elements are read and written, nothing is allocated.
 * A NaN that goes in comes out; which payload is not promised. */
#ifndef SN_KERNELS_SIGNATURES_H
#define SN_KERNELS_SIGNATURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* y[i] = f(x[i]); y may be x, any other overlap is forbidden. `params` are the function's constants
 * (LeakyRelu: alpha; Clip: low, high; …), NULL when it has none. */
typedef void sn_f32_unary_fn(float *y, const float *x, size_t n, const float *params);

/* y[i] = f(a[i], b[i]); y may be a or b. The mode says which operand is one element for all i. */
enum { SN_BINARY_VV, SN_BINARY_SV, SN_BINARY_VS };
typedef void sn_f32_binary_fn(float *y, const float *a, const float *b, size_t n, int mode);

/* One run of output pixels times a few blocks of output channels: the inner loop of convolution and
 * of matrix multiplication (there a pixel is a row of A, a block is a panel of B's columns).
 *
 *   y[q][p][l] = clip(z[q][p][l] + bias[q][l]
 *                     + sum over b < ic_blocks, i < kh, j < kw, c < (channels of block b) of
 *                           x[b*x_block + i*x_kh + j*x_kw + c*x_ic + p*x_pixel]
 *                         * w[q*w_q + b*w_block + i*w_kh + j*w_kw + c*w_ic + l], lo, hi)
 *
 * for q < blocks, p < pixels, l < block (l < lanes in the last q when lanes > 0; weights are there
 * for all lanes). Block b has `ic` channels, the last one `ic_last`. clip keeps NaN; lo = -inf and
 * hi = +inf switch it off. */
typedef struct sn_f32_tile {
    const float *x, *w;
    const float *bias; /* blocks * block (or lanes) elements; NULL: 0 */
    const float *z;    /* addend laid out by z_pixel, z_q; NULL: none */
    float *y;          /* never overlaps an input, except z == y with equal strides */
    size_t pixels;     /* any number */
    unsigned blocks;   /* 1 … 4 */
    unsigned lanes;    /* valid lanes of the last block; 0: all */
    unsigned block;    /* lanes of a block: 16 with AVX-512, else 8 */
    size_t ic_blocks, ic, ic_last, kh, kw;
    ptrdiff_t x_pixel, x_ic, x_block, x_kh, x_kw;
    ptrdiff_t w_q, w_block, w_kh, w_kw, w_ic; /* w_ic is `block`, except in f32_gemm */
    ptrdiff_t y_pixel, y_q, z_pixel, z_q;
    /* Taps j < first_kw are outside of the image for pixel 0, taps j >= last_kw for pixel
     * pixels-1: they count as zero and are never read. 0 and kw: all inside. With more than one
     * pixel first_kw <= last_kw. */
    size_t first_kw, last_kw;
    /* Hints, never read: the weights needed next (NULL: unknown), fetched into the second-level
     * cache one block per input channel while this run is computed, and how far from x the next
     * run's x is. */
    const float *w_next;
    ptrdiff_t x_next;
    float lo, hi;
} sn_f32_tile;
typedef void sn_f32_tile_fn(const sn_f32_tile *t);

/* Sparse weights in panels of four outputs: of each panel only the k at which one of its weights is
 * not zero, in ascending order. Entries first[p] … first[p+1]-1 belong to panel p; entry j is the
 * four weights at w[4*j] and their k, index[j]. Of floats panels may also be single outputs, P = 1
 * instead of 4: then entry j is one weight. */
enum { SN_SPARSE_PANEL = 4 };

/* Rows of x in vectors of `block`, so that a weight meets `block` of them at once:
 *
 *   y[o*y_o + v*y_v + l] = clip(start[o] + sum over the entries j of panel o/P of
 *                                   x[at(index[j]) + v*x_v + l] * w[P*j + o%P], lo, hi)
 *
 * for o < outputs, v < vectors, l < block; at(k) is x_at[k], or k*x_k without it. The order of a
 * sum does not depend on `vectors`. clip keeps NaN; lo = -inf and hi = +inf switch it off. */
typedef struct sn_f32_sparse {
    const float *x, *w;
    const uint16_t *index;
    const uint32_t *first;
    const float *start;  /* outputs; NULL: 0 */
    const int32_t *x_at; /* NULL: at equal distances */
    float *y;            /* overlaps nothing */
    size_t outputs;
    unsigned panel;   /* P, 4 or 1 */
    unsigned vectors; /* 1 … pixels[0] of the row's geometry, of single outputs pixels[1] */
    unsigned block;
    ptrdiff_t x_k, x_v, y_o, y_v;
    float lo, hi;
} sn_f32_sparse;
typedef void sn_f32_sparse_fn(const sn_f32_sparse *t);

/* The same for few rows of x as they lie:
 *
 *   y[r*y_row + o] = clip(start[o] + sum over the entries j of panel o/P of
 *                             x[r*x_row + index[j]*x_k] * w[P*j + o%P], lo, hi)
 *
 * for r < rows, o < outputs. */
enum { SN_SPARSE_ROWS = 4 };
typedef struct sn_f32_sparse_rows {
    const float *x, *w;
    const uint16_t *index;
    const uint32_t *first;
    const float *start;   /* outputs; NULL: 0 */
    float *y;             /* overlaps nothing */
    size_t rows, outputs; /* rows: 1 … SN_SPARSE_ROWS */
    unsigned panel;       /* P, 4 or 1 */
    ptrdiff_t x_row, x_k, y_row;
    float lo, hi;
} sn_f32_sparse_rows;
typedef void sn_f32_sparse_rows_fn(const sn_f32_sparse_rows *t);

/* The same of bytes, four entries of a panel at a time, a group: group j of panel p, with j from
 * first[p] to first[p+1]-1, has the k of its entries at index[4*j] and its weights at w[16*j], four
 * of each output one behind the other. Groups are filled up with weights of zero, at any k that is
 * there.
 *
 *   y[o*y_o + v*y_v + l] = start[o] + sum over the groups j of panel o/4, i < 4, of
 *                              number(x[index[4*j + i]*x_k + v*block + l]) * w[16*j + o%4*4 + i]
 *
 * for o < outputs, v < vectors, l < block. number() takes the byte as unsigned in slots u8_…, as
 * signed in i8_…. Sums wrap as 32 bits do. */
typedef struct sn_q8_sparse {
    const uint8_t *x;
    const int8_t *w;
    const uint16_t *index;
    const uint32_t *first;
    const int32_t *start;
    int32_t *y; /* overlaps nothing */
    size_t outputs;
    unsigned vectors; /* pixels[0] of the row's geometry */
    unsigned block;
    ptrdiff_t x_k, y_o, y_v;
} sn_q8_sparse;
typedef void sn_q8_sparse_fn(const sn_q8_sparse *t);

/* The same for one row of x as it lies: y[o] = start[o] + …, reading x[index[4*j + i]] ^ flip. */
typedef struct sn_q8_sparse_row {
    const uint8_t *x;
    const int8_t *w;
    const uint16_t *index;
    const uint32_t *first;
    const int32_t *start;
    int32_t *y; /* overlaps nothing */
    size_t outputs;
    uint8_t flip;
} sn_q8_sparse_row;
typedef void sn_q8_sparse_row_fn(const sn_q8_sparse_row *t);

/* Sparse weights in tiles, panels of 16 outputs. A line is one pair of k in bf16, or four k in
 * bytes: 64 bytes, those of 16 rows of x. Group j of panel p, with j from first[p] to first[p+1]-1,
 * is 16 lines, index[16*j] and those behind it, and a tile of weights:
 *
 *   y[o*y_o + v*y_v + r] = start[o] + sum over the groups j of panel o/16, i < 16, c < kr, of
 *                              x[v*x_v + index[16*j + i]*64 + (r*kr + c) numbers]
 *                            * w[j*1024 + ((o%16*16 + i)*kr + c) numbers]
 *
 * for o < outputs, v < vectors, r < 16, where x_v and what is read at is in bytes. u8_ and
 * i8_sparse16: x in unsigned or signed bytes, w signed, kr = 4, sums in int32; bf16_sparse16: kr =
 * 2, sums in f32, rounded in any order that does not depend on `vectors`, denormals may count as
 * zero. On a thread between tiles_enter and tiles_leave. */
typedef struct sn_tile_sparse {
    const void *x, *w;
    const uint16_t *index;
    const uint32_t *first;
    const void *start; /* outputs; int32 or f32 */
    void *y; /* overlaps nothing; int32 or f32; rows of outputs up to a panel are written */
    size_t outputs, vectors;
    ptrdiff_t x_v, y_o, y_v;
} sn_tile_sparse;
typedef void sn_tile_sparse_fn(const sn_tile_sparse *t);

/* Depthwise convolution of one channel block, and convolution in narrow groups: rows `from` …
 * `to`-1 of a plane, `cols` pixels each.
 *
 *   y[r][p][l] = clip(bias[l] + z[r][p][l]
 *                     + sum over q < n_planes, i < kernel[0], j < kernel[1] of w[q][i][j][l]
 *                         * x_q[r*stride[0] - pad[0] + i*dilation[0]]
 *                              [p*stride[1] - pad[1] + j*dilation[1]][l], lo, hi)
 *
 * All planes are dense, pixels of `block` lanes. Taps outside of the in[0] × in[1] pixels of x
 * count as zero and are never read. Without `planes` there is one, x_0 = x: every lane reads
 * itself. Otherwise lane l of x_q is lane planes[q].lane[l] of two planes, which begin at
 * x + planes[q].at[0] and x + planes[q].at[1]: numbers below `block` are lanes of the first, those
 * from `block` to 2*block-1 lanes of the second, -1 is zero. */
typedef struct sn_f32_plane {
    ptrdiff_t at[2];  /* equal where no lane is of the second */
    int32_t lane[16]; /* `block` of them */
} sn_f32_plane;
typedef struct sn_f32_depthwise {
    const float *x, *w, *bias, *z; /* whole planes; bias and z may be NULL */
    const float *zeros;            /* in[1] * block zeros: what rows outside of the image are */
    float *y; /* overlaps no input, except z == y, or x == y where the window is one pixel */
    ptrdiff_t from, to, cols;
    ptrdiff_t in[2], kernel[2], stride[2], dilation[2], pad[2]; /* rows, columns */
    const sn_f32_plane *planes;                                 /* NULL: x itself */
    ptrdiff_t n_planes;                                         /* where there are planes */
    unsigned block;
    float lo, hi;
} sn_f32_depthwise;
typedef void sn_f32_depthwise_fn(const sn_f32_depthwise *t);

/* Winograd's F(m×m, 3×3), one patch of one channel block; m = 4 or 2 by slot, n = m + 2.
 * in: the n×n patch x, of which rows row_from … row_to-1 and columns col_from … col_to-1 are inside
 * the image and the others count as zero and are never read; position k = i*n + j of the
 * transformed patch goes to v + k*v_pos. out: positions at m + k*m_pos become the first `rows` ×
 * `cols` (at most m each) of m×m pixels: y = clip(pixel + bias + z, lo, hi); y may be z. False, and
 * nothing is written: a pixel of the patches or a tap of the filters may not be finite, which
 * would be in all results. */
typedef struct sn_f32_wino_in {
    const float *x;
    float *v;
    unsigned block;
    ptrdiff_t x_row, x_pixel, v_pos;
    int row_from, row_to, col_from, col_to;
} sn_f32_wino_in;
typedef void sn_f32_wino_in_fn(const sn_f32_wino_in *t);
typedef struct sn_f32_wino_out {
    const float *m, *bias, *z; /* bias and z may be NULL */
    float *y;
    unsigned block;
    ptrdiff_t m_pos, y_row, y_pixel; /* of y and z */
    int rows, cols;
    float lo, hi;
} sn_f32_wino_out;
typedef bool sn_f32_wino_out_fn(const sn_f32_wino_out *t);
/* Filters of a block of input times a block of output channels, to n×n positions each: position k
 * of channel c is u[k*(block*block + SN_WINO_GAP) + c*block + l], of a filter whose tap i is
 * w[(i*block + c)*block + l]. No overlap. The gap keeps positions out of the same cache sets. */
enum { SN_WINO_GAP = 16 };
typedef void sn_f32_wino_filter_fn(float *u, const float *w, unsigned block);

/* Pooling of one channel block over a window wholly inside the image:
 * y[p][l] = scale * sum, or the maximum, of x[p*x_pixel + i*x_kh + j*x_kw + l] over i < kh, j < kw.
 */
typedef struct sn_f32_pool {
    const float *x;
    float *y;
    size_t pixels, kh, kw; /* kh, kw >= 1 */
    unsigned block;
    ptrdiff_t x_pixel, x_kh, x_kw;
    float scale;
} sn_f32_pool;
typedef void sn_f32_pool_fn(const sn_f32_pool *t);

/* Maxima of bf16 or f16: one row of results of a block of channels,
 *
 *   y[p][l] = the maximum of x[i*x_row + (p*stride + j*step - before)*block + l] over i < rows and
 *             those j < kw whose pixel p*stride + j*step lies in before … before+in-1
 *
 * for p < pixels; every window has such a pixel, and rows >= 1. NaN is the largest number.
 *
 * Floats with their sign in the first bit are ordered like integers once the other bits of negative
 * ones are flipped. `nans` is how many codes of NaN have a sign: by so much the order is turned, so
 * that they are the largest numbers, too. line: room for so many numbers of that order, of all
 * pixels that windows read. No overlap. */
typedef struct sn_half_pool {
    const uint16_t *x;
    uint16_t *y;
    int16_t *line;
    size_t rows, in, before, pixels, kw, stride, step;
    ptrdiff_t x_row;
    unsigned block;
    uint16_t nans;
} sn_half_pool;
typedef void sn_half_pool_fn(const sn_half_pool *t);
enum { SN_BF16_NANS = 0x7f, SN_F16_NANS = 0x3ff };
/* Pixels of the line. */
static inline size_t sn_half_pool_line(size_t before, size_t in, size_t pixels, size_t stride,
                                       size_t kw, size_t step)
{
    const size_t there = before + in, read = (pixels - 1) * stride + (kw - 1) * step + 1;
    return there > read ? there : read;
}

/* Weighted sums of rows of `inner` elements, taps >= 1:
 * y[o][i] = sum over t < taps of weight[o*taps + t] * x[index[o*taps + t]][i] for o < n. No
 * overlap. */
typedef void sn_f32_mix_fn(float *y, const float *x, size_t n, size_t inner, const int32_t *index,
                           const float *weight, size_t taps);

/* Plain ► blocked: y[p*block + l] = l < lanes ? x[l*x_channel + p] : 0, for p < n, l < block. */
typedef void sn_f32_block_fn(float *y, const float *x, size_t n, unsigned lanes, unsigned block,
                             size_t x_channel);
/* Blocked ► plain: y[l*y_channel + p] = x[p*block + l], for p < n, l < lanes. */
typedef void sn_f32_unblock_fn(float *y, const float *x, size_t n, unsigned lanes, unsigned block,
                               size_t y_channel);

/* One number from n: a sum (0 when n is 0), a maximum or minimum (the infinity that loses against
 * every number when n is 0; a NaN wins), or the largest finite one without its sign (0). */
typedef float sn_f32_reduce_fn(const float *x, size_t n);

/* y = e^(x - max x) / sum of the same, over one row; y may be x. */
typedef void sn_f32_softmax_fn(float *y, const float *x, size_t n);

/* Softmax of rows that arrive in pieces, here one piece of rows × n products. Their scores are
 * s[r * s_row + i] * scale + bias[r * bias_row + i] + more[r * more_row + i]; `more` may be NULL,
 * and so may both, which adds nothing. max[r] and
 * sum[r] hold the largest score of row r so far (-inf: none) and the sum of e^(score - max[r]);
 * both are brought up to date. s becomes e^(score - max[r]) with an error of 4 ulp of the largest
 * |score| or of 1, factor[r] what earlier pieces are to be multiplied by. No key to see (all scores
 * are -inf) leaves zeros; a NaN among them makes the sum NaN, and the rest of the row whatever it
 * likes. */
typedef struct sn_f32_exp_rows {
    float *s;
    const float *bias, *more;
    ptrdiff_t s_row, bias_row, more_row;
    size_t rows, n;
    float scale;
    float *max, *sum, *factor; /* [rows] */
} sn_f32_exp_rows;
typedef void sn_f32_exp_rows_fn(const sn_f32_exp_rows *e);
/* y[r * y_row + i] *= by[r], for r < rows, i < n. */
typedef void sn_f32_scale_rows_fn(float *y, ptrdiff_t y_row, size_t rows, size_t n,
                                  const float *by);
/* y[j] = sum of x[i] * rows[j * stride + i] over i < size, for j < n. No overlap. */
typedef void sn_f32_dots_fn(float *y, const float *x, const float *rows, size_t n, size_t size,
                            size_t stride);

/* y[i] = (x[i] - mean) * inv * scale[i] + bias[i] over one row, n >= 1; y may be x. layernorm: mean
 * of x and inv = 1 / sqrt(variance + epsilon); rmsnorm: mean 0 and inv = 1 / sqrt(mean of squares +
 * epsilon). scale and bias may be NULL. stats, when not NULL, receives mean and inv. */
typedef void sn_f32_norm_fn(float *y, const float *x, const float *scale, const float *bias,
                            size_t n, float epsilon, float *stats);

/* One step of a recurrent layer for units from … to-1 of all rows. Gate q of unit u is
 *
 *   g[q] = x[row*x_row + q*x_gate + u] + sum over k < units of
 *              h[row*h_row + k] * w[q*w_gate + (u / block * units + k) * block + u % block]
 *
 * (weights are there for all lanes), and with s for the sigmoid function
 *
 *   lstm (gates i, o, f, n)   c' = s(f) c + s(i) tanh(n),  y = s(o) tanh(c')
 *   gru (gates z, r, n)       y = (1 - s(z)) tanh(x_n + s(r) (sum_n + bias)) + s(z) h
 */
typedef struct sn_f32_cell {
    const float *x, *w, *h;
    const float *bias; /* gru: of the sums of its last gate; NULL: 0 */
    float *c;          /* lstm: read and written; else NULL */
    float *y;          /* overlaps nothing */
    size_t rows, units;
    size_t from, to; /* multiples of `block`, except to = units */
    bool last_first; /* the order of blocks, for the cache: the result is the same */
    unsigned block;
    ptrdiff_t x_row, x_gate, w_gate, h_row, c_row, y_row;
} sn_f32_cell;
typedef void sn_f32_cell_fn(const sn_f32_cell *t);

/* y[i] = clip(x[i] + z[i], lo, hi), without z where it is NULL; clip keeps NaN; lo = -inf and hi =
 * +inf switch it off. y may be x or z. */
typedef void sn_f32_add_clip_fn(float *y, const float *x, const float *z, size_t n, float lo,
                                float hi);

/* The same with z and y in bf16 or f16 (by slot), to nearest even, where denormals of bf16 may
 * become zero. y may be z. */
typedef void sn_bf16_add_clip_fn(uint16_t *y, const float *x, const uint16_t *z, size_t n, float lo,
                                 float hi);

/* y[i] = x[i] / (1 + e^(-beta x[i])), within 2^-12 of itself, as f32 or rounded to bf16; what is
 * below 2^-100 may become zero. y may be x where it is f32, else no overlap. */
typedef void sn_f32_swish_rough_fn(float *y, const float *x, size_t n, float beta);
typedef void sn_bf16_swish_fn(uint16_t *y, const float *x, size_t n, float beta);

/* Two vectors of 16 become one of 32 in bf16, to nearest even, where denormals may become zero:
 * y[i*32 + l] = a[i*step + l] * gate[l] and y[i*32 + 16 + l] = b[i*step + l] * gate[16 + l], for
 * i < n, l < 16. b NULL: zeros; gate NULL: no factors; a NULL: from a16 and b16, which are bf16.
 * rest, not NULL, gets in the same order what rounding took away, in bf16, too; what is not finite
 * in bf16 goes there as a whole, and y is 0. No overlap. */
enum { SN_PAIR_BLOCK = 16 };
typedef struct sn_bf16_pairs {
    const float *a, *b, *gate;
    const uint16_t *a16, *b16;
    uint16_t *y, *rest;
    size_t n, step;
} sn_bf16_pairs;
typedef void sn_bf16_pairs_fn(const sn_bf16_pairs *t);

/* Rows of f32 in bf16, to nearest even, where denormals may become zero: y[r*y_row + i] =
 * x[r*x_row + i] for r < rows, i < n, and 0 up to the next multiple of 32 behind n. No overlap. */
typedef struct sn_bf16_round {
    const float *x;
    uint16_t *y;
    size_t rows, n;
    ptrdiff_t x_row, y_row;
} sn_bf16_round;
typedef void sn_bf16_round_fn(const sn_bf16_round *t);

/* Rows of up to four channels become pixels of four numbers in bf16, to nearest even, where
 * denormals may become zero: y[4*i + c] = x[c][i], for i < n; zeros where x[c] is NULL. False: some
 * are not finite. No overlap. */
enum { SN_JOIN_CHANNELS = 4 };
typedef bool sn_bf16_join_fn(uint16_t *y, const float *const x[SN_JOIN_CHANNELS], size_t n);
/* The same of rows that are f16, and stay it. */
typedef bool sn_f16_join_fn(uint16_t *y, const uint16_t *const x[SN_JOIN_CHANNELS], size_t n);

/* n floats of f16, each as the sum of two in bf16, which is exact: the nearest one, and the rest.
 * What is not finite is 0 and itself. No overlap. */
typedef void sn_f16_split_fn(uint16_t *y, uint16_t *rest, const uint16_t *x, size_t n);

/* n floats times `scale`, a power of two, each as the sum of two in f16: the nearest one, and what
 * is nearest to the rest. What is not finite is 0 and itself; what is, is below 65520 times
 * `scale`. No overlap. */
typedef void sn_f16_halves_fn(uint16_t *y, uint16_t *rest, const float *x, size_t n, float scale);

/* Sums of products that were scaled, and a row that is added to them:
 * y[r*y_row + i] = x[r*x_row + i] * by_row[r*row] * by[i] + start[i], for r < rows, i < n; by the
 * smaller of both factors first. y may be x. */
typedef struct sn_f32_rescale {
    float *y;
    const float *x, *by_row, *by, *start;
    size_t rows, n;
    ptrdiff_t y_row, x_row, row;
} sn_f32_rescale;
typedef void sn_f32_rescale_fn(const sn_f32_rescale *t);

/* Two rows become one of pairs in bf16, to nearest even: y[2*i] = a[i] and y[2*i + 1] = b[i], for
 * i < n. b NULL: zeros. No overlap. */
typedef void sn_bf16_zip_fn(uint16_t *y, const float *a, const float *b, size_t n);

/* n floats of 16 bits (f16 or bf16, by slot) to f32, exact. A NaN stays one, with its
 * sign and payload, quiet if it was f16. No overlap. */
typedef void sn_half_load_fn(float *y, const uint16_t *x, size_t n);
/* f32 to 16 bits, to nearest even; overflow becomes infinity, NaN stays NaN. No overlap. */
typedef void sn_half_store_fn(uint16_t *y, const float *x, size_t n);

/* y[i] = x[i] - zero, of n unsigned or signed bytes (by slot). No overlap. */
typedef void sn_bytes_load_fn(float *y, const uint8_t *x, size_t n, int32_t zero);
/* y[i] = round((x[i] + bias) * scale) + zero, cut to [lo, lo + 255], as a byte; to nearest even,
 * NaN gives lo. x is finite and below 2^30 in magnitude, lo is 0 or -128. No overlap. */
typedef void sn_bytes_store_fn(uint8_t *y, const float *x, size_t n, float bias, float scale,
                               float zero, float lo);

/* Bytes times bytes: the sums of a few rows times a few blocks of output channels. A row is a pixel
 * of a convolution, whose taps may lie anywhere, or a row of a matrix, which has one tap.
 *
 *   y[r*y_row + q*block + l] = start[q*block + l]
 *                              + sum over t < taps, c < channels of
 *                                    number(x[t*rows + r][x_at + c] ^ flip)
 *                                  * w[q*w_q + ((t*groups + c/kr)*block + l)*kr + c%kr]
 *
 * for r < rows, q < blocks, l < block, with groups = ceil(channels / kr). number() takes the byte
 * as unsigned in slots u8_…, as signed in i8_…; a flip of 0x80 makes one from the other (128 more,
 * or less), 0 leaves it. Sums wrap as 32 bits do. Weights behind the last channel are there. */
typedef struct sn_q8_tile {
    const uint8_t *const *x;
    const int8_t *w;
    const int32_t *start;
    int32_t *y; /* overlaps nothing */
    size_t x_at, rows, taps, channels;
    ptrdiff_t w_q, y_row;
    unsigned blocks; /* 1 … 4 */
    unsigned block, kr;
    uint8_t flip;
} sn_q8_tile;
typedef void sn_q8_tile_fn(const sn_q8_tile *t);

/* The same, channel by channel: y[r*y_row + c] = start[c] + sum over t < taps of
 * number(x[t*rows + r][x_at + c] ^ flip) * w[((c/block*groups + t/kr)*block + c%block)*kr + t%kr],
 * for r < rows, c < channels, with groups = ceil(taps / kr); blocks, w_q are not used. Weights
 * behind the last tap are 0, start is there up to a multiple of block. */
typedef void sn_q8_depthwise_fn(const sn_q8_tile *t);

/* Rows at equal distances times blocks of 16 output channels. x and the weights are read in steps
 * of 64 bytes, that is 64 numbers, or 32 of 16 bits; side by side in the weights are kr of them, 4
 * or 2 (geometry.h).
 *
 *   y[r*y_row + q*y_q + l] = start[q*16 + l]
 *                            + sum over s < steps, numbers c of a step, of
 *                                  x[r*x_row + at[s] + c]
 *                                * w[q*w_q + s*1024 + (c/kr*16 + l)*kr + c%kr]
 *
 * for r < rows, q < blocks, l < 16, x_row, at, w_q and 1024 being bytes. By slot:
 *
 *   u8_rows, i8_rows   x in unsigned or signed bytes, w signed, start and y in int32, which wraps
 *   bf16_rows          x and w in bf16, start and y in f32; products are exact, sums rounded in any
 *                      order, denormals may count as zero
 *   f16_rows           the same with x and w in f16, whose denormals count
 *
 * Rows of x up to the next multiple of 16 may be read, and those of y written. On a thread between
 * tiles_enter and tiles_leave. */
enum { SN_ROWS_TILE = 16, SN_ROWS_GROUP = 32, SN_ROWS_STEP = 64, SN_ROWS_WEIGHTS = 1024 };
typedef struct sn_tile_rows {
    const void *x;
    const ptrdiff_t *at;
    const ptrdiff_t *w_at; /* f16_rows: step s of the weights is there, not at s*1024; or NULL */
    const void *w, *start;
    void *y;                          /* overlaps nothing */
    size_t rows, blocks, steps;       /* steps > 0 */
    ptrdiff_t x_row, w_q, y_row, y_q; /* y_row and y_q in elements */
    /* Weights that will be read next: so many bytes, and at so many further places, ahead_q bytes
     * apart, or some of all these, may be brought into the second-level cache on the way. */
    const void *ahead;
    size_t ahead_bytes, ahead_more;
    ptrdiff_t ahead_q;
    bool again; /* the same weights were, or will be, multiplied by several other groups of rows */
    /* Not 0: sums have only two places, `turn` elements apart. Groups of SN_ROWS_GROUP rows take
     * turns, and whoever calls uses them on the way: `beside` is called with the number of groups
     * that are there so far, for every group at least once before its place is used again, and
     * often: a call does a small part of the work, while products go on. */
    ptrdiff_t turn;
    void (*beside)(void *arg, size_t groups); /* may be NULL if turn is 0 */
    void *beside_arg;
} sn_tile_rows;
/* How often it may be called for each group: once for a step of two blocks. */
static inline size_t sn_tile_rows_calls(const sn_tile_rows *t)
{
    return (t->blocks + 1) / 2 * t->steps;
}
typedef void sn_tile_rows_fn(const sn_tile_rows *t);

/* What a thread does before and after it calls kernels whose registers have to be set up. */
typedef void sn_thread_state_fn(void);

/* Depthwise convolutions of 64 channels by quads: four neighbouring pixels of a line, whose bytes
 * lie together channel by channel, in the order of channels that SN_QUAD_AT says. Quads begin at
 * every second pixel. A result whose first tap is an odd pixel reads the quad of the pixel before
 * it, with weights that are shifted by one tap.
 *
 * y[p*256 + SN_QUAD_AT(c) + t] = channel c of pixel 2p + t, xored with flip, for p < pairs, c < 64,
 * t < 4, where pixel i is x + (i - before)*x_pixel for before <= i < before + there, else
 * `outside`. `channels` of a pixel are read, the others are 0. */
#define SN_QUAD_AT(c) ((c) % 16 / 4 * 64 + (c) / 16 * 16 + (c) % 4 * 4)
enum { SN_QUAD_CHANNELS = 64, SN_QUAD_TAPS = 4, SN_QUAD_BYTES = 256 };
typedef struct sn_quads_args {
    const uint8_t *x, *outside;
    uint8_t *y;
    size_t pairs, channels, before, there;
    ptrdiff_t x_pixel;
    uint8_t flip;
} sn_quads_args;
typedef void sn_bytes_quads_fn(const sn_quads_args *t);

/* The sums of `rows` results along a line, with p = r*stride for result r:
 *
 *   sum[r][c] = start[c] + sum over k < runs, q < quads, i < 4 of
 *                   x[at[k] + (p/2 + 2*q)*256 + SN_QUAD_AT(c) + i]
 *                 * w[((p%2*runs + k)*quads + q)*256 + SN_QUAD_AT(c) + i]
 *
 * for c < 64. sums not NULL: they go there, sums_row elements from row to row. Otherwise they
 * become bytes as in sn_requantize_args, `channels` of them to y; scales are then below 1, or NaN.
 */
typedef struct sn_q8_depthwise_args {
    const uint8_t *x;
    const ptrdiff_t *at;
    const int8_t *w;
    const int32_t *start; /* 64 */
    const float *scale;   /* 64 */
    size_t rows, runs, quads, stride, channels;
    int32_t *sums;
    uint8_t *y;
    ptrdiff_t sums_row, y_row;
    float zero, lo, hi;
} sn_q8_depthwise_args;
typedef void sn_q8_by_quads_fn(const sn_q8_depthwise_args *t);

/* y[r*y_row + i] = round(x[r*x_row + i] * scale[i]) + zero, cut to [lo, hi], as a byte, for
 * r < rows, i < n; x becomes f32 first, rounding is to nearest even, NaN gives lo. zero, lo and hi
 * are integers from 0 to 255, or from -128 to 127. No overlap.
 *
 * With `sum` that byte is v, and what is stored is the sum of v and z[r*y_row + i] as q8_add makes
 * it: v is its first operand, or its second one. */
typedef struct sn_requantize_sum {
    const uint8_t *z;
    float a_scale, b_scale, offset; /* of the first and the second operand */
    bool second, is_signed;
} sn_requantize_sum;
typedef struct sn_requantize_args {
    const int32_t *x;
    const float *scale;
    uint8_t *y;
    size_t rows, n;
    ptrdiff_t x_row, y_row;
    float zero, lo, hi;
    const sn_requantize_sum *sum; /* NULL: there is none */
} sn_requantize_args;
typedef void sn_i32_requantize_fn(const sn_requantize_args *t);

/* y[r*y_row + i] = x[r*x_row + i] * scale[i] + addend[i], in f32, for r < rows, i < n: x becomes
 * f32 first, and the product is rounded before the sum. addend may be NULL: nothing is added. No
 * overlap. */
typedef struct sn_i32_scale_args {
    const int32_t *x;
    const float *scale, *addend;
    float *y;
    size_t rows, n;
    ptrdiff_t x_row, y_row;
} sn_i32_scale_args;
typedef void sn_i32_scale_fn(const sn_i32_scale_args *t);

/* y[i] = round(x[i] / scale) + zero, cut to [lo, hi], as a byte; to nearest even, NaN gives zero.
 * lo and hi are integers from 0 to 255, or from -128 to 127, zero lies between them. No overlap. */
typedef void sn_f32_quantize_fn(uint8_t *y, const float *x, size_t n, float scale, float zero,
                                float lo, float hi);

/* Two quantised operands, a and b less their zero points, all bytes signed or all unsigned:
 *
 *   sums      y[i] = round(a·a_scale + (b·b_scale + offset)), a product and the sum that it is part
 *             of are rounded once, together
 *   products  y[i] = round(a·b·a_scale + offset), rounded after each multiplication and addition
 *
 * to nearest even, cut to a byte; NaN gives the smallest. The zero point of the result is part of
 * the offset, so it is there when results are rounded. In mode SN_BINARY_VS b is one element for
 * all i, else the mode is SN_BINARY_VV. y may be a or b. */
typedef struct sn_q8_binary_args {
    const uint8_t *a, *b;
    uint8_t *y;
    size_t n;
    float a_scale, b_scale, offset;
    int32_t a_zero, b_zero;
    int mode;
    bool is_signed;
} sn_q8_binary_args;
typedef void sn_q8_pair_fn(const sn_q8_binary_args *t);

/* The same of rows, where the second operand is one row for all of them, of numbers that are known:
 * for r < rows, i < n, a = a[r*row + i] as above,
 *
 *   sums      y[r*row + i] = round(a·a_scale + b[i])
 *   products  y[r*row + i] = round(a·b[i]·a_scale + offset)
 *
 * y may be a. */
typedef struct sn_q8_repeat {
    const uint8_t *a;
    const float *b;
    uint8_t *y;
    size_t rows, n;
    ptrdiff_t row;
    float a_scale, offset;
    int32_t a_zero;
    bool is_signed;
} sn_q8_repeat;
typedef void sn_q8_repeat_fn(const sn_q8_repeat *t);

/* y[i] = the larger of y[i] and x[i], as unsigned bytes after both are xored with `flip`,
 * 0 or 0x80. No overlap. */
typedef void sn_bytes_max_fn(uint8_t *y, const uint8_t *x, size_t n, uint8_t flip);

/* Sums of columns: y[i] = sum over r < rows of (x[r*x_row + i] ^ flip), bytes taken as unsigned,
 * for i < n; flip is 0 or 0x80. 1 <= rows <= SN_SUMS_ROWS. No overlap. */
enum { SN_SUMS_ROWS = 1 << 23 }; /* 255 times as much is below 2^31 */
typedef void sn_bytes_sums_fn(int32_t *y, const uint8_t *x, ptrdiff_t x_row, size_t rows, size_t n,
                              uint8_t flip);

/* Averages of quantised numbers over a grid of taps, for each of n channels of some pixels, in f32,
 * rounded after every operation:
 *
 *   y[p*n + c] = round(sum / count / y_scale + y_zero), cut to a byte, for p < pixels, c < n; the
 *                sum is, in this order, over i < taps[0], j < taps[1], k < taps[2], of
 *                (x[p*x_pixel + i*step[0] + j*step[1] + k*step[2] + c] - x_zero) * x_scale
 *
 * To nearest even, NaN gives y_zero; a count of 0 gives a mean of 0. Bytes are all signed or all
 * unsigned. No overlap. */
typedef struct sn_q8_average {
    const uint8_t *x;
    uint8_t *y;
    size_t pixels, n, taps[3];
    ptrdiff_t x_pixel, step[3];
    float count, x_scale, y_scale, y_zero;
    int32_t x_zero;
    bool is_signed;
} sn_q8_average;
typedef void sn_q8_average_fn(const sn_q8_average *t);

/* y[i] = table[x[i]], with a table of SN_BYTE_VALUES bytes; y may be x. */
enum { SN_BYTE_VALUES = 256 };
typedef void sn_bytes_table_fn(uint8_t *y, const uint8_t *x, size_t n, const uint8_t *table);

/* Rows of bytes become columns: y[c*y_row + r] = x[r*x_row + c] for r < rows, c < columns. No
 * overlap. */
typedef void sn_bytes_turn_fn(uint8_t *y, ptrdiff_t y_row, const uint8_t *x, ptrdiff_t x_row,
                              size_t rows, size_t columns);

/* y[i] += a * x[i * stride], stride >= 1; product and sum are rounded once or twice. No overlap. */
typedef void sn_f32_axpy_fn(float *y, const float *x, size_t n, size_t stride, float a);

/* `rounds` times over x: every element goes into two multiply-adds, by 1/2 and by 1/4, fused where
 * the instruction set has that: 4 * n * rounds floating-point operations. Returns their sum, so
 * that nothing can be left out. */
typedef float sn_f32_peak_fn(const float *x, size_t n, size_t rounds);

/* The same products `rounds` times over, with operands that stay in registers. x and w are
 * SN_ROWS_WEIGHTS bytes each, kr numbers of them are four bytes. By slot, with sums in int32, which
 * wraps, or in f32:
 *
 *   i8_peak, bf16_peak   y[i] = rounds * sum over c < kr of x[i*kr + c] * w[i*kr + c], for i < 16,
 *                        of the first 64 bytes only
 *   i8_tile_peak,        y[r*16 + l] = rounds * sum over c < 16*kr of
 *   bf16_tile_peak           x[r*16*kr + c] * w[(c/kr*16 + l)*kr + c%kr], for r < 16, l < 16;
 *                        on a thread between tiles_enter and tiles_leave
 *
 * Bytes of x are 0 … 127, as signed and as unsigned ones: two products then fit 16 bits. Floats are
 * small integers: sums of any order are exact. */
typedef void sn_product_peak_fn(void *y, const void *x, const void *w, size_t rounds);

#endif
