/* SPDX-License-Identifier: Apache-2.0 */
/* What .csv and .xlsx have in common: one row per step with its latency, and what the latency would
 * be if sparse-capable weights had as many zeros as aimed at. A weight is sparse-capable when it is
 * the constant matrix of a MatMul, Gemm or 1x1 Conv whose output dimension divides by 4 (blocks of
 * 4x1). How much faster such a product would be is
 * assumed, unless it was measured (sonde/experimental/whatif.h). */
#ifndef SN_EXPORT_SHEET_H
#define SN_EXPORT_SHEET_H

#include "base/map.h"
#include "export/export.h"
#include "export/text.h"

/* Columns A to P of the operator part. */
typedef enum sn_sheet_column {
    SN_COLUMN_TYPE,
    SN_COLUMN_POST_OP,
    SN_COLUMN_NAME,
    SN_COLUMN_IN_NAMES,
    SN_COLUMN_IN_SHAPES,
    SN_COLUMN_IN_TYPES,
    SN_COLUMN_OUT_NAMES,
    SN_COLUMN_OUT_SHAPES,
    SN_COLUMN_OUT_TYPES,
    SN_COLUMN_WEIGHT_SHAPE, /* J: the last one that is text */
    SN_COLUMN_WEIGHT_ZEROS,
    SN_COLUMN_SUPPORT,
    SN_COLUMN_LATENCY, /* M */
    SN_COLUMN_AIM,     /* N */
    SN_COLUMN_RATIO,   /* O */
    SN_COLUMN_AIM_LATENCY,
    SN_COLUMN_COUNT
} sn_sheet_column;
extern const char *const sn_sheet_titles[SN_COLUMN_COUNT];

enum { SN_WEIGHT_COLUMNS = 5 }; /* A to E of the weight part: shape, three ratios, others */
extern const char *const sn_sheet_weight_titles[SN_WEIGHT_COLUMNS];

/* The total part; those of the sparse what-if stand beside the ones of today. */
typedef struct sn_sheet_totals {
    double latency_ms, aim_ms;               /* everything: the mean wall time, and then */
    double support_ms, support_aim_ms;       /* steps with a sparse-capable weight */
    double sparse_ms;                        /* of those the ones that are sparse already */
    double improve;                          /* latency / aim */
    double support_ratio, support_aim_ratio; /* their share in everything */
} sn_sheet_totals;

typedef struct sn_sheet_row {
    const sn_prof_step *step; /* NULL: [Other] and the like */
    const char *type;
    const char *weight; /* shape, "" = none */
    double zeros;       /* of the weight, 0…1; -1: not known */
    uint32_t ratios;    /* row of the weight part, from 0; UINT32_MAX: not sparse-capable */
    bool aimed;         /* sparse-capable and less than half zeros: has N and O */
    double latency_ms, ratio, aim_ms;
} sn_sheet_row;

typedef struct sn_sheet {
    sn_allocator *alloc;
    sn_export_options options; /* without defaults left open */
    sn_prof_summary steps;
    sn_arena arena;
    sn_map weight_rows;           /* shape ► 1 + row */
    SN_VEC(const char *) weights; /* distinct shapes, in order of first use */
    SN_VEC(sn_sheet_row) rows;    /* in the order of execution, brackets last */
    sn_sheet_totals totals;
    sn_text cell; /* `failed`: the texts of some cells are missing */
} sn_sheet;

/* `options` may be NULL. On failure there is nothing to free. */
sonde_status sn_sheet_build(sn_sheet *s, const sn_profile *p, const sn_export_options *options,
                            sonde_error *err);
void sn_sheet_free(sn_sheet *s);
/* Frees it at the end of writing; out of memory where a cell was. */
sonde_status sn_sheet_finish(sn_sheet *s, sonde_error *err);
/* A text column of a row, valid until the next call. */
const char *sn_sheet_text(sn_sheet *s, const sn_sheet_row *row, sn_sheet_column column);
/* The k-th ratio (90, 80, 70, others) of a row of the weight part: measured, else assumed. */
double sn_sheet_ratio(const sn_sheet *s, uint32_t row, int k);
/* The constant weight of a product; NULL: the step has none. `capable`: it may be sparse. */
const sn_prof_tensor *sn_sheet_weight(const sn_prof_step *step, bool *capable);
/* That ratios are assumed, or measured, or some of both. */
const char *sn_sheet_note(const sn_sheet *s);
/* When and where those that were measured were, as far as that is known; NULL. */
const char *sn_sheet_about(const sn_sheet *s);
/* A number with up to nine decimals, as short as it goes, into at least 32 bytes. */
const char *sn_sheet_number(char *buf, double v);

#endif
