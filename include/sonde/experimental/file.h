/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing files in the same way as the library does.
 * Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_FILE_H
#define SONDE_EXPERIMENTAL_FILE_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a file. All functions of the library that write files use these rules:
 *  - An existing file is replaced only when the new content is complete. After a failure (a full
 *    disk) the old content remains; an incomplete file is never visible.
 *  - Links are followed and stay links; pipes, terminals and devices are written to directly.
 *  - Mode, owner and group of an existing file are kept; other hard links to it keep the old
 *    content. A file whose mode forbids writing is not written.
 *  - If the folder does not allow new files, or the owner cannot be kept, an existing file is
 *    overwritten in place, unless a model may be mapped from it: that is an error.
 * Only a streamed trace (sonde_profiler_stream) is written directly to its final place from the
 * beginning. */
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
