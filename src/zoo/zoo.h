/* SPDX-License-Identifier: Apache-2.0 */
/* Built-in models: structure as in the reference definitions, seeded weights, nothing downloaded.
 * One short file per family on the builder in builder.h, one row in models.inc. */
#ifndef SN_ZOO_ZOO_H
#define SN_ZOO_ZOO_H

#include "graph/model.h"

typedef struct sn_zoo_model {
    const char *name;    /* "regnet_x_400mf" */
    const char *summary; /* "RegNet X 400MF, ImageNet classifier (torchvision structure)" */
    uint64_t parameters; /* published number; a test holds the built model against it */
    uint64_t flops;      /* of one inference at the default sizes, to three digits */
    sonde_status (*build)(sn_model *m, uint64_t seed,
                          sonde_error *err); /* fills m->graph, opsets … */
} sn_zoo_model;

const sn_zoo_model *sn_zoo_row(size_t k); /* NULL past the end */
const sn_zoo_model *sn_zoo_find(const char *name);

/* Symbolic dims keep their names; defaults for them are in the model's metadata as
 * "sonde.default.<symbol>" = "1". The result is finished (sn_model_finish) and ready to use. */
sonde_status sn_zoo_build(const char *name, uint64_t seed, sn_context *ctx, sn_model **m,
                          sonde_error *err);

#endif
