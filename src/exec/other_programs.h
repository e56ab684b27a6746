/* SPDX-License-Identifier: Apache-2.0 */
/* A session's programs for other feeds or outputs than the graph's own. Each may hold packed
 * weights of its own, so only the few that were used last are kept. One that leaves the list while
 * a run uses it, or a recording needs its names, lives until they let go of it. */
#ifndef SN_EXEC_OTHER_PROGRAMS_H
#define SN_EXEC_OTHER_PROGRAMS_H

#include "plan/program.h"

enum { SN_MAX_OTHER_PROGRAMS = 8 };

typedef struct sn_other_program {
    sn_program *program;
    char *key;
    size_t key_bytes;
} sn_other_program;

typedef struct sn_other_programs {
    sn_allocator *alloc;
    sn_fork_lock lock; /* of the list; never held while a program is made */
    sn_other_program list[SN_MAX_OTHER_PROGRAMS]; /* most recently used first */
    size_t n;
} sn_other_programs;

void sn_other_programs_init(sn_other_programs *o, sn_allocator *alloc);
void sn_other_programs_free(sn_other_programs *o); /* also of zeroed memory */

/* The program for cfg->feeds and cfg->outputs (NULL: the graph's own), kept or made now. The caller
 * holds one reference. The other arguments: see sn_program_get. */
sonde_status sn_other_programs_get(sn_other_programs *o, sn_context *ctx, sn_model *model,
                                   const sn_program_config *cfg, sn_pool *pool, const sn_stop *stop,
                                   sn_program **program, sonde_error *err);

#endif
