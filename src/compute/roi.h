/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of images on a fixed grid of bins: averages or maxima of samples between pixels
 * (aligned), or maxima of whole pixels (pooled). Regions come from data and may lie anywhere. */
#ifndef SN_COMPUTE_ROI_H
#define SN_COMPUTE_ROI_H

#include "base/pool.h"
#include "compute/element.h"

typedef enum sn_roi_kind { SN_ROI_ALIGN_AVG, SN_ROI_ALIGN_MAX, SN_ROI_POOL } sn_roi_kind;

/* x [images][channels][height][width] ► y [regions][channels][bins_y][bins_x] */
typedef struct sn_roi {
    sn_roi_kind kind;
    sonde_dtype dtype; /* of x and y: f32 or f64 */
    int64_t images, channels, height, width;
    int64_t regions, bins_y, bins_x;
    int64_t ratio; /* aligned: samples per bin and axis; 0: by the region's size */
    double scale;  /* of the regions' coordinates */
    /* aligned: regions begin half a pixel earlier and have their own size; otherwise one is at
     * least a pixel wide and high */
    bool half_pixel;
} sn_roi;

/* Aligned: rois [regions][x1, y1, x2, y2] and the image of each in `batch`; pooled: rois
 * [regions][image, x1, y1, x2, y2], batch NULL. rois are any floats. The first region that names an
 * image that is not there; -1: none does. */
int64_t sn_roi_without_image(const sn_roi *r, sn_elems rois, const int64_t *batch);
/* The images are not empty and the regions have been looked at; one that has changed since takes
 * the first image. */
void sn_roi_run(const sn_roi *r, void *y, const void *x, sn_elems rois, const int64_t *batch,
                sn_pool *pool);

#endif
