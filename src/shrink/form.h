/* SPDX-License-Identifier: Apache-2.0 */
/* For rooms above that want to know how a quantised model would run, and have no samples: the very
 * graph that quantising writes, with made-up ranges of activations. */
#ifndef SN_SHRINK_FORM_H
#define SN_SHRINK_FORM_H

#include "api/internal.h"
#include "sonde/experimental/quantize.h"

/* Products of the main graph whose origins are among the wanted ones are quantised, as far as that
 * is possible; those of bodies are wherever quantising covers bodies. */
typedef struct sn_form_question {
    sonde_model *model;
    sonde_quantize_kind kind;
    const bool *wanted; /* by origin of the model */
    bool *changed;      /* by origin: set for each product that was quantised */
} sn_form_question;

/* Both are NULL where nothing can be quantised. `made` shares constants and names with `prepared`,
 * and that with the model: they must live as long. Origins of nodes are those of the model, and
 * nodes that convert between floats and bytes have none. */
sonde_status sn_quantized_form(const sn_form_question *question, sonde_model **prepared,
                               sonde_model **made, sonde_error *err);

#endif
