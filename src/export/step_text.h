/* SPDX-License-Identifier: Apache-2.0 */
/* What a step's inputs and outputs are called in traces: lists of names, types and shapes, and the
 * signature in one word. Made once per step, used by every event of it. */
#ifndef SN_EXPORT_STEP_TEXT_H
#define SN_EXPORT_STEP_TEXT_H

#include "profile/profile.h"

typedef struct sn_step_text {
    const char *input_names, *input_types, *input_shapes;    /* "x,w" "fp32,fp32" "1*3,3*8" */
    const char *output_names, *output_types, *output_shapes; /* the same */
    const char *nodes;                                       /* "conv1;relu1": all it stands for */
    const char *args_string; /* "T<1x3xf32>,T<3x8xf32>,|T<1x8xf32>" */
} sn_step_text;

/* The texts live in `arena`; NULL when out of memory. */
const sn_step_text *sn_step_text_of(const sn_prof_step *step, sn_arena *arena);
/* What the step goes by: the name of its anchor; an unnamed one goes by its type. */
const char *sn_step_title(const sn_prof_step *step);

#endif
