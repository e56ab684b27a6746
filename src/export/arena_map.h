/* SPDX-License-Identifier: Apache-2.0 */
/* The arena of one binding as a map: for a terminal now, for other renderings of the same. */
#ifndef SN_EXPORT_ARENA_MAP_H
#define SN_EXPORT_ARENA_MAP_H

#include "export/writer.h"

/* Lifetimes of the values of `table` by step and offset, the peak's step marked, with a legend of
 * the largest. `width`: columns of the terminal; 0: 80. Nothing when no value lies in an arena. */
sonde_status sn_report_arena(const sn_profile *p, uint32_t table, uint32_t peak_step, int width,
                             sn_writer *w, sonde_error *err);

/* Its name; of a value that a pass made, which has none, that of the node that makes it. */
static inline const char *sn_life_label(const sn_prof_life *l, const sn_prof_step *maker)
{
    return *l->name || !maker ? l->name : maker->name;
}

#endif
