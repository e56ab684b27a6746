/* SPDX-License-Identifier: Apache-2.0 */
/* Files the way this library handles them, for programs around it.
 * Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_FILE_H
#define SONDE_EXPERIMENTAL_FILE_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a file as every function here that takes a path to write to does:
 *  - What is there is replaced when the new content is whole. A failure (a full disk) leaves the
 *    old, and half a file is never seen.
 *  - Links are followed and stay links; pipes, terminals and devices are written to as they are.
 *  - Mode, owner and group of a file that was there are kept; other hard links to it keep the old
 *    content. A file whose mode forbids writing is not written.
 *  - Where the folder takes no new file, or the owner cannot be kept, a file that is there is
 *    written where it lies, unless it is a model that may be mapped: that is an error.
 * Only a trace that is written while things happen (sonde_profiler_stream) lies in its place from
 * the beginning. */
SONDE_API sonde_status sonde_file_write(const char *path, const void *data, size_t bytes,
                                        sonde_error *err);

/* The whole file as a u8 tensor, read, not mapped, into the context's memory: its max_memory holds.
 * One of more than `most` bytes is refused with SONDE_LIMIT; 0: any number. */
SONDE_API sonde_status sonde_file_read(sonde_context *context, const char *path, size_t most,
                                       sonde_value **bytes, sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
