/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning: which way to cut a step's work was measured fastest on this machine, kept on disk so that
 * it is measured once. A file is text, one line per choice, and is for one kind of machine: its
 * first line names the library's version, the CPU, its instructions and caches. A file that is
 * refused (base/cache.h) costs a warning; what speaks of variants that an operator does not have is
 * as good as absent. */
#ifndef SN_PLAN_TUNING_H
#define SN_PLAN_TUNING_H

#include "ops/framework/op.h"

typedef struct sn_tuning sn_tuning;

/* Reads what is known in `dir`. Files that cannot be read are none. */
sonde_status sn_tuning_open(const sn_context *ctx, const char *dir, sn_tuning **tuning,
                            sonde_error *err);
void sn_tuning_free(sn_tuning *t); /* NULL accepted */

/* The variant chosen for what the choices describe, with so many threads; false: not known. */
bool sn_tuning_find(sn_tuning *t, const sn_choices *c, int threads, unsigned *variant);
sonde_status sn_tuning_put(sn_tuning *t, const sn_choices *c, int threads, unsigned variant,
                           sonde_error *err);
/* Writes what is new, together with what others have written meanwhile. Not being able to costs a
 * warning. */
void sn_tuning_save(sn_tuning *t);

/* Binds `s`, whose variant 0 `k` holds, in the variant that is known to be the fastest, or that is
 * measured so now on scratch memory and the step's own constants (`consts`: by slot). `k->variant`
 * says which one it is. `pool`: what the step will run with. */
sonde_status sn_tune_step(sn_tuning *t, const sn_step *s, sn_bind *k, const sn_slot *consts,
                          sn_pool *pool);

#endif
