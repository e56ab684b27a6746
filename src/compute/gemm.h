/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of f32: Y = act(alpha * A · B + beta * C + Z), batched. B is read in packed
 * panels of `block` columns (packed with the weights, or at run into the workspace), or where it
 * lies when there are too few rows to earn the packing; A is always read where it lies, transposed
 * or not. */
#ifndef SN_COMPUTE_GEMM_H
#define SN_COMPUTE_GEMM_H

#include "base/arithmetic.h"
#include "base/cpu.h"
#include "base/dtype.h"
#include "base/pool.h"
#include "base/workspace.h"
#include "compute/act.h"
#include "compute/split.h"

#define SN_GEMM_MAX_BATCH_RANK 16

typedef struct sn_gemm_desc {
    int64_t m, n, k;
    /* Batch dims, outermost first; strides in whole matrices (0 = broadcast). Y is dense. */
    int batch_rank;
    int64_t batch[SN_GEMM_MAX_BATCH_RANK], a_batch[SN_GEMM_MAX_BATCH_RANK],
        b_batch[SN_GEMM_MAX_BATCH_RANK];
    int64_t b_count;       /* distinct B matrices in memory, at least 1 */
    bool trans_a, trans_b; /* stored as [k, m], [n, k] */
    bool packed;           /* B comes in the format sn_gemm_pack_id names, argument trans_b */
    sn_dtype b_dtype; /* of a packed B: F16 and BF16 are widened a few panels at a time; 0: f32 */
    bool f16;         /* a packed B of f16, and A, are that in the file: A may be rounded to it */
    bool tiles;       /* packed B is in the format sn_gemm_tiles_pack_id names, other B, of f32,
                         and with k > 0, is rounded to bf16 in every run; A is rounded, too */
    unsigned sparse;  /* packed B is F32_SPARSE4 or 1, or BF16_SPARSE16 (sparse.h): outputs of a
                         block; 0: it is not sparse */
    int64_t entries;  /* of sparse B */
    bool a_rows;      /* tiles: A comes in rows of bf16 (sn_tiles_row_bytes), and those
                         behind the last one, up to a whole tile, may be read */
    bool has_c;
    int64_t c_m, c_n; /* strides of C over rows and columns: 0 = broadcast */
    bool residual;    /* Z, dense like Y */
    float alpha, beta;
    sn_act act;
    unsigned variant; /* compute/variant.h: how to cut it; 0: as the cost model says */
} sn_gemm_desc;

/* How products in bf16 are cut (gemm_tiles.c). */
typedef struct sn_gemm_tiles {
    int64_t steps, pitch; /* of 64 bytes of a row; bytes from row to row of A in bf16 */
    int64_t kernel_steps; /* that the kernel does for them */
    bool f16;             /* B is f16, and A is rounded to it */
    bool split;           /* B is f16, A the sum of two bf16 */
    bool halves;          /* A and B are f32, sums of two f16 (tiles.h) */
    int64_t rows, parts;  /* of a task; tasks of a batch */
    int64_t k_parts;      /* ranges of steps that are done one after the other, … */
    int64_t band;         /* … for so many chunks */
    int64_t chunks, column_parts;
    sn_ending ending;      /* pieces are of columns, and of rows */
    int64_t column_pieces; /* of a task */
    bool shared;           /* A is rounded once for all tasks */
} sn_gemm_tiles;

/* How products with sparse B are cut (gemm_sparse.c). */
typedef struct sn_gemm_sparse {
    bool by_rows;            /* a few rows of A as they lie, else vectors of them */
    bool tiles;              /* A is rounded to bf16, and panels of B are 16 columns */
    int64_t depth;           /* vectors of a turned one: its k, or pairs of them and one of zeros */
    int64_t vectors, groups; /* of `block` rows at most in a task; tasks of a batch by rows */
    int64_t chunks, column_parts;
    bool shared; /* A is turned once for all tasks */
    sn_piece turned_all;
    sn_pieces turned, sums;
} sn_gemm_sparse;

typedef struct sn_gemm_plan {
    sn_gemm_desc d;
    const sn_kernels *k;
    sn_f32_tile_fn *tile;
    unsigned block;
    int64_t batches;
    int64_t panels;               /* of one B */
    int64_t chunk_panels, chunks; /* per kernel call */
    int64_t seg, segs;            /* rows */
    int64_t part, parts;          /* of k: how much of it at a time */
    size_t items, tasks;
    size_t together; /* items after which the second pass follows, if there is one */
    int threads;
    float lo, hi;        /* clip inside the kernel */
    bool bias, add;      /* C is the kernel's bias, C or Z its addend */
    bool raw;            /* scaling and odd broadcasts of C remain for a second pass */
    bool post;           /* that, or an activation that is not a clip */
    bool in_place;       /* B is read where it lies; only a partial last panel is packed */
    size_t pack_bytes;   /* workspace: B, packed at every run */
    int64_t near_pitch;  /* from row to row of a copy of some of A; 0: it is read where it lies */
    int64_t wide_floats; /* per thread: panels in f32 where they come narrower; 0: they do not */
    sn_piece pack;
    sn_pieces wide, near;
    sn_gemm_tiles tiles;
    sn_gemm_sparse sparse;
    sn_piece tiles_at, tiles_start, tiles_b;
    sn_pieces tiles_a, tiles_sums, tiles_parts, tiles_partial;
    sn_workspace workspace; /* of a run: what its way needs of these */
    uint32_t cpu_flags;
    uint64_t flops;
    sn_arithmetic arithmetic; /* of its products */
    char name[48];
} sn_gemm_plan;

unsigned sn_gemm_pack_id(sn_dtype dtype, uint32_t cpu_flags);
unsigned sn_gemm_tiles_pack_id(sn_dtype dtype, uint32_t cpu_flags); /* of F32, F16 or BF16 */
/* Floats of one packed B. */
size_t sn_gemm_packed_floats(int64_t n, int64_t k, unsigned block);
/* Is f32 faster in two halves of f16, for machines that multiply those in tiles? rows -1: nobody
 * knows how many there will be. */
bool sn_gemm_halves_pay(int64_t rows, int64_t n, int64_t k);
/* Bytes of a panel of f32 in two halves. */
size_t sn_gemm_halves_panel(int64_t k);
/* The same in tiles of bf16; -1: too many. */
int64_t sn_gemm_tiles_floats(int64_t n, int64_t k);
/* Is a product of f32 whose B is not packed faster in bf16, with all that has to be rounded? */
bool sn_gemm_tiles_pay(const sn_gemm_desc *d);

sonde_status sn_gemm_plan_make(sn_gemm_plan *p, const sn_gemm_desc *d, uint32_t cpu_flags,
                               size_t l2_bytes, int threads, sonde_error *err);
/* May y be z? Not where sums are finished in y before the residual is added. */
static inline bool sn_gemm_overwrites_z(const sn_gemm_plan *p)
{
    return p->d.tiles || !p->raw;
}
/* c, z: NULL where the desc has none. */
void sn_gemm_run(const sn_gemm_plan *p, const void *a, const void *b, const float *c,
                 const float *z, float *y, void *workspace, sn_pool *pool);

#endif
