/* SPDX-License-Identifier: Apache-2.0 */
/* Images sampled at the positions of a grid, and grids made from affine maps, both with one to
 * three spatial dims. A grid names positions from -1 to 1, the innermost axis first. */
#ifndef SN_COMPUTE_GRID_SAMPLE_H
#define SN_COMPUTE_GRID_SAMPLE_H

#include "base/pool.h"
#include "compute/element.h"

enum { SN_SAMPLE_SPATIAL = 3 };

typedef enum sn_sample_mode { SN_SAMPLE_NEAREST, SN_SAMPLE_LINEAR, SN_SAMPLE_CUBIC } sn_sample_mode;
/* What lies outside of the image. */
typedef enum sn_sample_padding {
    SN_SAMPLE_ZEROS,
    SN_SAMPLE_BORDER,
    SN_SAMPLE_REFLECTION
} sn_sample_padding;

/* x [images][channels][in…], grid [images][out…][spatial] ► y [images][channels][out…]. No dim of
 * the image is 0. */
typedef struct sn_grid_sample {
    sn_sample_mode mode;
    sn_sample_padding padding;
    bool align_corners; /* -1 and 1 are the centres of the corner pixels, not their far edges */
    int spatial;
    int64_t images, channels;
    int64_t in[SN_SAMPLE_SPATIAL], out[SN_SAMPLE_SPATIAL];
} sn_grid_sample;
/* x and y have one type: any for NEAREST, a number otherwise. The grid is f32, f64, f16 or bf16. */
void sn_grid_sample_run(const sn_grid_sample *g, sn_elems y, sn_elems x, sn_elems grid,
                        sn_pool *pool);

/* theta [images][spatial][spatial + 1] ► y [images][out…][spatial]; floats. */
typedef struct sn_affine_grid {
    bool align_corners;
    int spatial;
    int64_t images;
    int64_t out[SN_SAMPLE_SPATIAL];
} sn_affine_grid;
void sn_affine_grid_run(const sn_affine_grid *g, sn_elems y, sn_elems theta);

#endif
