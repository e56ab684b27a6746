/* SPDX-License-Identifier: Apache-2.0 */
/* Traces written while things happen. */
#ifndef SN_RECORDS_STREAM_H
#define SN_RECORDS_STREAM_H

#include "records/records.h"

/* Starts to append what is recorded, spans of these categories (a set; 0: all), to a new .pftrace
 * file whose times count from `since` ticks and which has these labels, too (NULL: none).
 * `sampled`: only runs that sampling chose. `limit`: bytes after which no further runs are written,
 * about; 0: none. The recorder's level is the caller's to set. With the records' lock held. */
sonde_status sn_stream_open(sn_stream **stream, sn_records *r, const char *path, uint64_t since,
                            int level, uint32_t categories, bool sampled, uint64_t limit,
                            const sn_labels *labels, sonde_error *err);
/* Writes the rest and closes the file; tells what went wrong since it was opened. `log` (may be
 * NULL) is told of runs that the limit left out. NULL accepted. Without the lock. */
sonde_status sn_stream_close(sn_stream *stream, const sn_log *log, sonde_error *err);

#endif
