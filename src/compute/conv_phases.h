/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolution of f32 on blocked tensors. With stride s every s-th pixel of an axis reads
 * the same taps, every s-th of the kernel: these pixels are a phase, and a phase is an ordinary
 * convolution at stride 1 whose results lie s pixels apart. There are as many phases as the product
 * of the strides; each is a plan of the direct way (conv.h). */
#ifndef SN_COMPUTE_CONV_PHASES_H
#define SN_COMPUTE_CONV_PHASES_H

#include "compute/conv.h"

enum { SN_CONV_MAX_PHASES = 64 };

/* Axes are depth, height, width, as in sn_conv_desc; x and y are in blocks of the kernel's size. */
typedef struct sn_conv_phases_desc {
    int64_t n, c, oc, groups; /* channels of all groups */
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
    sn_act act;
} sn_conv_phases_desc;

typedef struct sn_conv_phases {
    sn_conv_phases_desc d;
    size_t n;            /* phases */
    sn_conv_plan *plans; /* one each */
    sn_conv_plan
        finish;    /* what is left to do when all have run; only if its post or clear is set */
    sn_piece room; /* of the phase that runs */
    sn_workspace workspace;
    uint64_t flops;
    char name[48]; /* "f32_conv_transpose4x4_14x2_avx512" */
} sn_conv_phases;

/* Can weights [in, out per group, …] be used this way, at these strides and dilations (one per
 * spatial axis; NULL: all 1)? */
bool sn_conv_phases_fit(const int64_t *w, int rank, int64_t groups, const int64_t *strides,
                        const int64_t *dilations, unsigned block);
/* Their packed format; its argument is the number of groups. SN_PACK_NONE: there is none. */
unsigned sn_conv_phases_pack_id(sn_dtype dtype, const int64_t *w, int rank, int64_t groups,
                                uint32_t cpu_flags);
/* How many plans the desc needs. */
size_t sn_conv_phases_count(const sn_conv_phases_desc *d);
/* `plans`: room for them, which stays the caller's. */
sonde_status sn_conv_phases_make(sn_conv_phases *p, const sn_conv_phases_desc *d,
                                 sn_conv_plan *plans, uint32_t cpu_flags, size_t l2_bytes,
                                 int threads, sonde_error *err);
/* w comes in the format sn_conv_phases_pack_id names; bias and z, which is added, may be NULL. z
 * may be y. */
void sn_conv_phases_run(const sn_conv_phases *p, const float *x, const void *w, const float *bias,
                        const float *z, float *y, void *workspace, sn_pool *pool);

#endif
