/* SPDX-License-Identifier: Apache-2.0 */
/* What 'merge' and 'report --by' share: traces of many processes opened, and shown as tables. */
#ifndef SONDE_TOOL_FLEET_H
#define SONDE_TOOL_FLEET_H

#include "sonde/experimental/fleet.h"
#include "tool.h"

/* Opens all of `paths`. What was left out, and what is missing of the rest, is said. *left_out:
 * files that could not be read, for fleet_end. `output` (may be NULL): not read. */
int fleet_open(const common_options *o, int64_t max_memory, const list *paths, const char *output,
               sonde_fleet **fleet, size_t *left_out);
/* What to exit with when everything else went well: an error if files were left out. */
int fleet_end(size_t left_out);

/* "host", "worker", "version"; false: none of them. */
bool fleet_by_named(const char *name, sonde_fleet_by *by);
/* The table, and the stragglers. */
int fleet_print(sonde_fleet *fleet, sonde_fleet_by by);
/* All three tables, the stragglers and the traces; "-" is standard output. */
int fleet_save_json(sonde_fleet *fleet, const char *path);

#endif
