/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of f32: a descriptor becomes a plan (kernel, tiles, split over threads, workspace)
 * when a shape is bound; running a plan neither allocates nor fails.
 *
 * Eight ways: direct on blocked output (blocked input, or plain input for first layers), depthwise
 * (and in narrow groups) and Winograd on blocked tensors, by tiles of bf16 (conv_tiles.h), those
 * of several small images at once (conv_images.h), for plain tensors of one to three spatial dims a
 * matrix product over gathered columns, in f32 or in bf16 (conv_rows.h), and for sparse weights
 * without the zeros (conv_sparse.h). */
#ifndef SN_COMPUTE_CONV_H
#define SN_COMPUTE_CONV_H

#include "base/arithmetic.h"
#include "base/cpu.h"
#include "base/dtype.h"
#include "base/pool.h"
#include "base/workspace.h"
#include "compute/act.h"
#include "compute/lines.h"
#include "compute/split.h"

enum { SN_CONV_MAX_MERGE = 8 }; /* narrow groups joined to fill a block: at most 8 times the work */

/* How channels fall into blocks. */
typedef struct sn_conv_blocks {
    unsigned block;
    int64_t groups;              /* after merging; the last one may be made of fewer */
    int64_t group_in, group_out; /* channels of one group as the model has it */
    int64_t in, out;             /* channels of one merged group */
    int64_t in_blocks, out_blocks;
    int64_t channels, channels_last; /* input channels of a block, of the last block */
} sn_conv_blocks;
/* From the weight's dims [out, in per group, …]; false: channels do not fit blocks. */
bool sn_conv_blocks_of(const int64_t *w, int64_t groups, unsigned block, bool plain_input,
                       sn_conv_blocks *out);

/* Spatial arrays are depth, height, width; dims a model does not have come first and are 1 (pads
 * 0). */
typedef struct sn_conv_desc {
    int64_t n, c, oc, groups;
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3]; /* pad: at the beginning */
    unsigned in_block, out_block;                                     /* 0 = plain */
    bool residual;
    bool packed;      /* weights come in the format sn_conv_pack_id names */
    sn_dtype w_dtype; /* of packed weights: F16 and BF16 are widened a few at a time; 0: f32 */
    bool tiles;       /* weights come in the format sn_conv_tiles_pack_id names; those of plain
                         tensors in that of sn_conv_rows_pack_id */
    /* Types of images that lie in memory as bf16 or f16, all of them the same; 0: f32. With tiles
     * of that type, and but for z of depthwise ones. */
    sn_dtype x_half, z_half, y_half;
    unsigned sparse; /* weights come as SN_PACK_F32_SPARSE4 or 1: outputs of a block; 0: they are
                        not sparse */
    int64_t entries; /* blocks of sparse weights */
    bool f16;        /* weights and images of f16 are that in the file: x may be rounded to it */
    bool images;     /* go together: sn_conv_images_pay, and there are tiles for f32 in halves */
    int winograd;    /* 0: direct; SN_CONV_FREE: the way that is faster; 4, 2: Winograd's F(m×m) */
    sn_act act;
    unsigned variant; /* compute/variant.h: how to cut it; 0: as the cost model says */
} sn_conv_desc;

enum { SN_CONV_FREE = 1 };

typedef enum sn_conv_kind {
    SN_CONV_DIRECT,
    SN_CONV_DEPTHWISE,
    SN_CONV_WINOGRAD,
    SN_CONV_COLUMNS,
    SN_CONV_TILES,
    SN_CONV_ROWS,
    SN_CONV_SPARSE,
    SN_CONV_IMAGES
} sn_conv_kind;

/* How weights lie in tiles, and x beside them: a step is 32 numbers of 16 bits. */
typedef struct sn_conv_tiles {
    sn_conv_blocks b;
    bool narrow;        /* pixels have fewer channels than a step */
    bool merged;        /* a run is a row of the kernel, else a tap */
    int64_t pixel;      /* numbers of a pixel of the copy */
    int64_t slabs;      /* of a group's channels, one pixel of the copy each */
    int64_t taps, runs; /* of the kernel */
    int64_t run_steps, steps;
    int64_t block_bytes; /* of a block of output channels */
    /* of a plan */
    bool f16;                    /* weights are f16, and x is rounded to it */
    bool split;                  /* weights are f16, x the sum of two bf16 */
    bool halves;                 /* both are f32, sums of two f16 (tiles.h) */
    int64_t kernel_steps;        /* that the kernel does for `steps` of weights */
    int64_t slab_bytes;          /* of the copy */
    int64_t chunks, chunk_parts; /* of the output blocks of all groups, and ranges of them */
    sn_ending ending;            /* pieces are of the chunks */
} sn_conv_tiles;

/* Weights in rows of bf16, and x beside them (conv_rows.h). */
typedef struct sn_conv_rows {
    int64_t taps, pairs;      /* of the kernel; of input channels of a group */
    int64_t steps, row_bytes; /* of a row */
    int64_t group_rows, rows; /* of weights; of all, and what tiles read behind them */
    /* of a plan: the copy of x, with borders, axis by axis; pixels from pair to pair; images at a
     * time */
    int64_t extent[3], plane, images;
} sn_conv_rows;

/* Sparse weights, and the copies of x they meet (conv_sparse.c). */
typedef struct sn_conv_sparse {
    bool flat;                     /* 1×1 at stride 1 */
    int64_t taps, pixels;          /* of the kernel; of an image of y */
    int64_t extent[3], phases[3];  /* of a copy, axis by axis */
    int64_t volume, plane;         /* of a phase; of a channel, all phases */
    int64_t copy_floats;           /* of an image */
    int64_t positions;             /* from the first pixel of a copy to the last */
    int64_t images;                /* that are copied at a time */
    int64_t lanes, vectors, wide;  /* of a vector; of a group; positions of a group */
    int64_t groups, chunks, parts; /* of positions; of output channels, and ranges of them */
    int64_t channels, in_blocks;   /* input channels that are copied at a time */
    sn_piece copies, bad, at;
    sn_pieces copy, line, sums, room;
} sn_conv_sparse;

/* Pixels of all images as the rows of one product (conv_images.c). */
typedef struct sn_conv_images {
    int64_t pixels, rows; /* of an image, of all */
    int64_t in_blocks, out_blocks, slabs;
    int64_t block_bytes;         /* of weights in halves */
    int64_t part_rows, parts;    /* rows at a time */
    int64_t chunks, chunk_parts; /* of output blocks, and ranges of them */
    int64_t slab_bytes;          /* of the copy */
    sn_ending ending;            /* pieces are of the chunks */
    sn_piece weights, tops;      /* in halves; of each image the largest number */
    sn_pieces back;              /* what undoes the scale of each row */
} sn_conv_images;

/* What is computed of a larger thing: pixel i of an axis is y_first + i*y_step of y, tap i is
 * w_first + i*w_step of the packed weights. Of all but transposed convolutions everything is. */
typedef struct sn_conv_phase {
    int64_t y_dims[3], y_first[3], y_step[3];
    int64_t w_dims[3], w_first[3], w_step[3];
} sn_conv_phase;

typedef struct sn_conv_plan {
    sn_conv_desc d;
    sn_conv_kind kind;
    const sn_kernels *k;
    sn_f32_tile_fn *tile;
    sn_conv_blocks b;
    unsigned block; /* of the kernels */
    uint32_t cpu_flags;
    int threads;
    float lo, hi;       /* clip inside the kernel */
    bool post;          /* the activation is more than that */
    bool clear;         /* padding lanes have to be set to zero again */
    bool flat;          /* 1×1 at stride 1: all pixels are one row */
    bool by_pixels;     /* direct: the one row, flat or of a sequence, is cut into segments */
    int64_t rows, cols; /* of the output, after flattening */
    /* Pixels run_from … run_to-1 of a row go in one kernel call, of which only the first and the
     * last may miss taps; of the others those that read the same taps. */
    int64_t run_from, run_to;
    int64_t run_first, run_end; /* taps inside: of the first pixel from, of the last up to */
    /* Rows of x are copied first, with zeros at both ends, so that pixels that read other taps go
     * together, `together` at a time; 0: they are read where they lie. */
    int64_t together, margin[2];
    int64_t line; /* pixels from a row of x to the next */
    /* 1×1: pixels `sampled_step` apart of an image of `sampled_in` are copied first, and d speaks
     * of the copy. */
    bool sampled;
    int64_t sampled_in[3], sampled_step[3];
    sn_conv_phase phase;          /* direct */
    int64_t chunk_blocks, chunks; /* output blocks per kernel call, and how many such chunks */
    int64_t tiles;                /* of a run */
    int64_t part;                 /* input blocks at a time */
    int64_t seg, segs;            /* rows (by_pixels: pixels) per segment */
    bool chunk_outer;             /* items: all segments of a chunk, else all chunks of a segment */
    /* Winograd: rows and cols are of patches, segments batches of them, of all images. Floats from
     * one position of transformed patches to the next. */
    int64_t patch_pos;
    int64_t inputs; /* blocks of input channels × taps of depth */
    size_t items, tasks;
    size_t pack_bytes;   /* of weights that are packed at every run; 0: they come packed */
    size_t panel_bytes;  /* per thread: gathered columns, patches, or a row of zeros */
    int64_t wide_floats; /* per thread: weights in f32 where they come narrower; 0: they do not */
    sn_piece pack;
    sn_piece lines_of_x; /* the copy of `together` */
    sn_piece samples;    /* that of `sampled` */
    sn_pieces panels, wide;
    sn_conv_tiles t;
    sn_conv_rows r;
    sn_conv_sparse sparse;
    sn_conv_images images;
    sn_lines lines; /* of tiles */
    sn_pieces copies, sums, offsets, columns, own, parts, held;
    int64_t room; /* depthwise: planes that packed weights have room for, of each tap of depth */
    int64_t band; /* depthwise, of bf16 in memory: rows at a time, from `copies` to `sums` */
    sn_workspace workspace; /* of a run: pack, panels, wide, or those of tiles */
    uint64_t flops;
    sn_arithmetic arithmetic; /* of its products */
    char name[48];            /* "f32_conv3x3_14x2_avx512" */
} sn_conv_plan;

/* One filter per channel? Of the weight's dims [out, in per group, …]. */
static inline bool sn_conv_is_depthwise(const int64_t *w, int64_t groups)
{
    return groups > 1 && w[1] == 1 && w[0] == groups;
}
/* Depthwise, or in groups so narrow that they go the same way, by planes (conv_groups.c). */
enum { SN_CONV_MAX_PLANES = 64 };
bool sn_conv_by_planes(const int64_t *w, int rank, int64_t groups, unsigned block);
/* Planes of one block of outputs, `index`; `at` are numbers of input blocks. How many; no block has
 * more than sn_conv_plane_room, and none reads more than sn_conv_plane_blocks, one behind the
 * other. */
int64_t sn_conv_planes(const int64_t *w, int64_t groups, unsigned block, int64_t index,
                       sn_f32_plane *out);
int64_t sn_conv_plane_room(const int64_t *w, int64_t groups, unsigned block);
int64_t sn_conv_plane_blocks(const int64_t *w, int64_t groups, unsigned block);
/* By planes, and images may be 16-bit floats in memory. */
bool sn_conv_stores_planes(const int64_t *w, int rank, int64_t groups, unsigned block);
/* Can a convolution with these weights run on blocked output, with blocked or plain input? */
bool sn_conv_can_block(const int64_t *w, int rank, int64_t groups, unsigned block,
                       bool plain_input);
/* The packed format (compute/packs.inc) for these weights and layouts; 0: none. Its argument is the
 * number of groups. */
unsigned sn_conv_pack_id(sn_dtype dtype, const int64_t *w, int rank, int64_t groups,
                         unsigned in_block, unsigned out_block, uint32_t cpu_flags);
/* Channels of a block, in the blocked layout that convolutions are made for on this CPU. */
unsigned sn_conv_block(uint32_t cpu_flags);

/* The desc has been validated; out dims follow from the rest. Unsupported layouts are an error. */
sonde_status sn_conv_plan_make(sn_conv_plan *p, const sn_conv_desc *d, uint32_t cpu_flags,
                               size_t l2_bytes, int threads, sonde_error *err);
/* The same for a part of a larger convolution: the direct way on blocked tensors, with weights in
 * f32; those that come packed lie as SN_WEIGHTS_CONV does, with w_dims of f as taps. */
sonde_status sn_conv_phase_plan(sn_conv_plan *p, const sn_conv_desc *d, const sn_conv_phase *f,
                                uint32_t cpu_flags, size_t l2_bytes, int threads, sonde_error *err);
/* bias and z (residual, laid out like y) may be NULL; y may be z. workspace: as the plan says. */
void sn_conv_run(const sn_conv_plan *p, const float *x, const void *w, const float *bias,
                 const float *z, float *y, void *workspace, sn_pool *pool);

/* The same for double, plain tensors and plain loops; of activations, those that clip
 * (sn_act_limits). */
void sn_conv_f64_run(const sn_conv_desc *d, const double *x, const double *w, const double *bias,
                     const double *z, double *y, sn_pool *pool);

/* Taps of one axis that lie inside: first … end-1 for output position o. */
static inline void sn_conv_taps(int64_t o, int64_t stride, int64_t pad, int64_t dilation,
                                int64_t kernel, int64_t in, int64_t *first, int64_t *end)
{
    const int64_t at = o * stride - pad;
    int64_t a = 0, b = kernel;
    if (at < 0)
        a = sn_min(sn_ceil_div(-at, dilation), kernel);
    if (at + (kernel - 1) * dilation >= in)
        b = at >= in ? 0 : sn_min(sn_ceil_div(in - at, dilation), kernel);
    *first = a;
    *end = sn_max(a, b);
}

/* One call per way, for sn_conv_run. */
typedef struct sn_conv_call {
    const sn_conv_plan *p;
    const void *w; /* of w_dtype */
    const float *x, *bias, *z;
    float *y;
    void *workspace;
} sn_conv_call;
/* A thread's own scratch memory, panel_bytes of it. */
static inline void *sn_conv_panel(const sn_conv_call *c, int worker)
{
    return sn_pieces_at(c->workspace, c->p->panels, (size_t)worker);
}
/* Weights [first, first + count) as f32: where they lie, or widened into `room`. */
const float *sn_conv_weights(const sn_conv_call *c, int64_t first, int64_t count, float *room);
/* A thread's own room for them, wide_floats; NULL: none is needed. */
static inline float *sn_conv_wide(const sn_conv_call *c, int worker)
{
    return c->p->wide_floats ? sn_pieces_at(c->workspace, c->p->wide, (size_t)worker) : NULL;
}
/* What the kernel leaves to do on pixels of one channel block with `lanes` real channels: an
 * activation beyond a clip, and zeros in the padding lanes. */
void sn_conv_finish(const sn_conv_plan *p, float *y, int64_t pixels, int64_t lanes);
/* The first `pixels` pixels from x on of a flat plan's one image; planes of y hold just these. */
void sn_conv_direct_band(const sn_conv_call *c, int64_t pixels);
/* Output rows from … to-1 of a depthwise plan's one image, one filter per channel; planes of x hold
 * just the input rows in_from … in_from+in_rows-1. */
typedef struct sn_conv_band {
    int64_t from, to, in_from, in_rows;
} sn_conv_band;
void sn_conv_depthwise_band(const sn_conv_call *c, const sn_conv_band *band);
void sn_conv_direct_task(void *call, size_t task, int worker);
void sn_conv_depthwise_task(void *call, size_t task, int worker);
void sn_conv_columns_task(void *call, size_t task, int worker);
void sn_conv_winograd_run(sn_conv_call *c, sn_pool *pool);
/* m of Winograd's F(m×m) if that is faster than the direct way, else 0, for a plan whose blocks are
 * known; and the rest of a plan whose desc asks for it. */
int sn_conv_winograd_pick(const sn_conv_plan *p, size_t l2_bytes);
sonde_status sn_conv_plan_winograd(sn_conv_plan *p, size_t l2_bytes, sonde_error *err);

#endif
