/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two files of the verb quantize: its options, and what it shows. */
#ifndef SONDE_TOOL_QUANTIZE_H
#define SONDE_TOOL_QUANTIZE_H

#include "sonde/experimental/quantize.h"
#include "tool.h"

typedef struct quantize_options {
    run_setup setup;
    saving_options saving;
    const char *output, *json, *method, *activation, *weights_only;
    list calibrate, only, except;
    int64_t most, block_size;
    double percentile, goal;
    bool per_channel, per_tensor, dynamic, equalize, correct_bias, keep_bias, force, no_measure;
} quantize_options;

/* quantize_show.c: the table, or every node with -v; --json. `speed` has no runs where nothing was
 * measured, `skipped` files of samples could not be read. */
int quantize_show(const quantize_options *o, const sonde_quantized *made,
                  const sonde_quantized_info *info, const sonde_quantized_speed *speed,
                  size_t skipped);

#endif
