/* SPDX-License-Identifier: Apache-2.0 */
/* Several traces in one .pftrace: each is written whole, behind the one before it. */
#ifndef SN_EXPORT_PFTRACE_SECTIONS_H
#define SN_EXPORT_PFTRACE_SECTIONS_H

#include "base/map.h"
#include "export/pftrace_stream.h"

/* What tells the traces apart: number, name and process number, none of them twice. */
typedef struct sn_pftrace_sections {
    sn_allocator *alloc;
    sn_arena arena;
    sn_map names, pids; /* those that were given */
    uint32_t n, of;
    int64_t next_pid;
} sn_pftrace_sections;

/* `of`: how many there will be. */
void sn_pftrace_sections_init(sn_pftrace_sections *s, size_t of, sn_allocator *alloc);
void sn_pftrace_sections_free(sn_pftrace_sections *s);
/* Of the next trace, in the order in which viewers shall show them. The name lives as long as `s`.
 */
sonde_status sn_pftrace_sections_next(sn_pftrace_sections *s, const sn_profile *p,
                                      sn_pftrace_section *section, sonde_error *err);

/* A whole profile as one trace; `section` NULL: it is alone in its file. */
sonde_status sn_pftrace_write(const sn_profile *p, const sn_pftrace_section *section, sn_sink *sink,
                              sonde_error *err);

#endif
