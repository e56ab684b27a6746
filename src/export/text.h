/* SPDX-License-Identifier: Apache-2.0 */
/* A text that is put together piece by piece and used again for the next one, and the lists of
 * tensors that tables show: "1024x256;256x256;256". */
#ifndef SN_EXPORT_TEXT_H
#define SN_EXPORT_TEXT_H

#include "profile/profile.h"

typedef struct sn_text {
    sn_allocator *alloc;
    SN_VEC(char) b;
    bool failed; /* out of memory, for good */
} sn_text;

void sn_text_init(sn_text *t, sn_allocator *alloc);
void sn_text_free(sn_text *t);
void sn_text_clear(sn_text *t);
void sn_text_add(sn_text *t, const char *text); /* NULL is "" */
/* Terminated, valid until the next change; "" after a failure. */
const char *sn_text_get(const sn_text *t);

/* Of n tensors, separated by ";". A scalar has no dims and an absent input nothing at all: both
 * keep their place. */
void sn_text_names(sn_text *t, const sn_prof_tensor *list, uint32_t n);
void sn_text_shapes(sn_text *t, const sn_prof_tensor *list, uint32_t n);
/* Of the nodes the step stands for, likewise. */
void sn_text_nodes(sn_text *t, const sn_prof_step *step);
void sn_text_types(sn_text *t, const sn_prof_tensor *list, uint32_t n); /* f32 as "fp32" */

#endif
