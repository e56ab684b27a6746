/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two files that read a .pftrace: packets and events (pftrace.c), tables
 * (pftrace_tables.c). */
#ifndef SN_PROFILE_READERS_PFTRACE_READER_H
#define SN_PROFILE_READERS_PFTRACE_READER_H

#include <string.h>

#include "base/wire.h"
#include "profile/pftrace_fields.h"
#include "profile_readers/build.h"

typedef struct sn_pf_reader {
    sn_build b;
    sn_profile *p;
    SN_VEC(const char *) names; /* by their number, from 1 */
    bool facts, whole;
    uint32_t of;     /* so many traces in the file; 0: it does not say */
    bool facts_only; /* nothing else is wanted */
    bool next;       /* the next trace of the file begins */
} sn_pf_reader;

static inline const char *sn_pf_text(sn_pf_reader *r, const sn_field *f)
{
    const char *bytes = (const char *)f->body.at;
    size_t n = sn_wire_bytes(&f->body);
    return sn_build_text(&r->b, (sn_json_text){bytes, n ? strnlen(bytes, n) : 0});
}

static inline double sn_pf_real(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline uint32_t sn_pf_small(uint64_t v)
{
    return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

/* Each reads one record of that kind into the profile; memory that is out is kept in the reader. */
sonde_status sn_pf_read_facts(sn_pf_reader *r, sn_wire w, sonde_error *err);
void sn_pf_read_thread(sn_pf_reader *r, sn_wire w);
void sn_pf_read_left(sn_pf_reader *r, sn_wire w);
void sn_pf_read_step(sn_pf_reader *r, sn_wire w);
void sn_pf_read_counts(sn_pf_reader *r, sn_wire w);
void sn_pf_read_life(sn_pf_reader *r, sn_wire w);

#endif
