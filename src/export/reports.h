/* SPDX-License-Identifier: Apache-2.0 */
/* Views of a profile as text for a terminal: by inference, by operator execution, by memory. Like
 * exporters they are pure functions of the profile; unlike them they have no file suffix. */
#ifndef SN_EXPORT_REPORTS_H
#define SN_EXPORT_REPORTS_H

#include "export/export.h"

/* Counts and latencies of all measured inferences; with `by_record` one block per record label. */
sonde_status sn_report_summary(const sn_profile *p, bool by_record, sn_sink *sink,
                               sonde_error *err);
/* trace_id, span_id, thread.id, dur: a line per measured inference. */
sonde_status sn_report_inferences(const sn_profile *p, sn_sink *sink, sonde_error *err);
/* Executions on devices: pe_index, execution_index, total, run, waiting. */
sonde_status sn_report_executions(const sn_profile *p, sn_sink *sink, sonde_error *err);
/* Average and count of each operator, over executions. */
sonde_status sn_report_operators(const sn_profile *p, sn_sink *sink, sonde_error *err);
/* Host operators: a line per execution. */
sonde_status sn_report_external_operators(const sn_profile *p, sn_sink *sink, sonde_error *err);
/* What is held by whom, the step at which activations peak, who holds that peak, and the arena as a
 * map that is at most `width` columns wide (0: 80). */
sonde_status sn_report_memory(const sn_profile *p, int width, sn_sink *sink, sonde_error *err);

/* Ids as other tools write them: 32 hex digits for an inference, 16 for a span. They follow from
 * the process, the start of the profile and the numbers in it. `text` has room for 33 and 17. */
void sn_trace_id_text(const sn_profile *p, uint32_t run, char text[33]);
void sn_span_id_text(const sn_profile *p, uint32_t span, char text[17]);

#endif
