/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names for errors: "conv, pool, relu … and 12 more". A message has little room, and a
 * name that is cut looks like another name: what does not fit is left out whole, and counted.
 *
 *     sn_list_text known = {0};
 *     for (…)
 *         sn_list_add(&known, "'%s'", name);
 *     return sn_fail(err, …, "…; the passes are %s", sn_list_end(&known));
 */
#ifndef SN_BASE_LIST_TEXT_H
#define SN_BASE_LIST_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "sonde/types.h"

enum {
    SN_LIST_BYTES = 900,
    SN_LIST_USUAL = 600, /* leaves room for a sentence around it */
    SN_LIST_ITEM = 200   /* of a longer item only its beginning is shown, with "…" behind it */
};

typedef struct sn_list_text {
    size_t room;   /* at most SN_LIST_BYTES; 0: SN_LIST_USUAL */
    bool at_least; /* more were left out than were ever added */
    size_t n, left;
    char text[SN_LIST_BYTES];
} sn_list_text;

void sn_list_add(sn_list_text *l, const char *fmt, ...) SONDE_PRINTF(2, 3);
/* The text, "" for no items. Nothing can be added afterwards. */
const char *sn_list_end(sn_list_text *l);

#endif
