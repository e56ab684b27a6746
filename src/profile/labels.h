/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a profile: what its user calls it. Keys differ and are not empty; they stay in the
 * order in which they were first put. What a user says is a set of changes, which may take labels
 * away. Three have a meaning for those who join profiles: the machine, the process on it, and the
 * version of the model. */
#ifndef SN_PROFILE_LABELS_H
#define SN_PROFILE_LABELS_H

#include "base/arena.h"
#include "base/vec.h"

#define SN_LABEL_HOST    "host"
#define SN_LABEL_WORKER  "worker"
#define SN_LABEL_VERSION "version"

enum { SN_LABELS_MOST = 64, SN_LABEL_KEY_BYTES = 255, SN_LABEL_VALUE_BYTES = 4096 };

typedef struct sn_label {
    const char *key, *value;
} sn_label;

typedef struct sn_labels {
    sn_allocator *alloc;
    sn_arena arena; /* texts */
    SN_VEC(sn_label) list;
    bool changes; /* values may be "": such a label is taken away where the set is put */
} sn_labels;

void sn_labels_init(sn_labels *l, sn_allocator *alloc);
void sn_labels_init_changes(sn_labels *l, sn_allocator *alloc);
void sn_labels_free(sn_labels *l); /* may be used again */
/* Replaces the value of a key there is already; "" takes the label away. Both are copied. */
sonde_status sn_labels_put(sn_labels *l, const char *key, const char *value, sonde_error *err);
sonde_status sn_labels_put_all(sn_labels *l, const sn_labels *from, sonde_error *err);
/* "host=a,worker=b": a backslash takes the next character as it is. */
sonde_status sn_labels_parse(sn_labels *l, const char *text, sonde_error *err);
const char *sn_labels_get(const sn_labels *l, const char *key); /* "": there is none */

#endif
