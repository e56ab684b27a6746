/* SPDX-License-Identifier: Apache-2.0 */
/* A list of tensors while it is read. */
#ifndef SN_PROFILE_READERS_SHAPES_H
#define SN_PROFILE_READERS_SHAPES_H

#include "profile_readers/build.h"

typedef struct sn_shapes {
    sn_build *b;
    SN_VEC(sn_prof_tensor) list;
    sn_prof_tensor spare; /* written to when there is no memory */
} sn_shapes;

void sn_shapes_init(sn_shapes *s, sn_build *b);
/* Another tensor, absent until it is filled in; valid until the next one. Never NULL. */
sn_prof_tensor *sn_shapes_add(sn_shapes *s);
/* An array of whole numbers, as the dims of a tensor; anything else is skipped. */
void sn_shapes_read_dims(sn_shapes *s, sn_json *j, sn_prof_tensor *x);
/* "1*3*224" */
void sn_shapes_parse_dims(sn_shapes *s, sn_json_text text, sn_prof_tensor *x);
/* The list, now in the profile; frees the rest. */
const sn_prof_tensor *sn_shapes_take(sn_shapes *s, uint32_t *n);

#endif
