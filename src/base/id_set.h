/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of small numbers, of CPUs or of memory nodes, as the system writes them: "0-3,8". A fixed
 * size, because the kernel's own limit is 8192 CPUs: nothing is allocated, and a cpu_set_t with its
 * 1024 is never in the way. */
#ifndef SN_BASE_ID_SET_H
#define SN_BASE_ID_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SN_ID_LIMIT = 8192 }; /* members are below it */

typedef struct sn_id_set {
    uint64_t words[SN_ID_LIMIT / 64];
} sn_id_set;

static inline bool sn_id_set_has(const sn_id_set *s, int id)
{
    return id >= 0 && id < SN_ID_LIMIT && (s->words[id / 64] >> (id % 64) & 1);
}
/* Numbers out of range are left out. */
static inline void sn_id_set_add(sn_id_set *s, int id)
{
    if (id >= 0 && id < SN_ID_LIMIT)
        s->words[id / 64] |= (uint64_t)1 << (id % 64);
}

int sn_id_set_count(const sn_id_set *s);
int sn_id_set_next(const sn_id_set *s, int from); /* the first member >= from; -1: none */
bool sn_id_set_is_empty(const sn_id_set *s);
bool sn_id_set_within(const sn_id_set *s, const sn_id_set *of); /* is a subset */
void sn_id_set_keep(sn_id_set *s, const sn_id_set *others);     /* only what both have */
void sn_id_set_join(sn_id_set *s, const sn_id_set *others);

/* "0-3,8"; white space around it is skipped. False: the text is not such a list, and the set is
 * empty. "" is an empty list. *beyond (may be NULL): it names numbers from SN_ID_LIMIT on, which
 * are left out. */
bool sn_id_set_parse(const char *text, sn_id_set *s, bool *beyond);
/* The same back; a list that does not fit ends with "...". Always terminated. */
const char *sn_id_set_text(const sn_id_set *s, char *text, size_t bytes);

#endif
