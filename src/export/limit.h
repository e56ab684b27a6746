/* SPDX-License-Identifier: Apache-2.0 */
/* Formats that list spans grow with the number of runs; a limit of bytes says how many runs stay.
 */
#ifndef SN_EXPORT_LIMIT_H
#define SN_EXPORT_LIMIT_H

#include "export/export.h"
#include "profile/left.h"

/* Calls the format's writer. */
sonde_status sn_export_call(const sn_exporter *format, const sn_profile *p,
                            const sn_export_options *opt, sn_sink *sink, sonde_error *err);
/* *runs: how many of the *all measured runs fit into opt->limit bytes, 1 at least; as many as there
 * are where all do. */
sonde_status sn_export_runs_that_fit(const sn_exporter *format, const sn_profile *p,
                                     const sn_export_options *opt, size_t *runs, size_t *all,
                                     sonde_error *err);

#endif
