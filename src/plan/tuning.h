/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning: which way to cut a step's work was measured fastest on this machine, kept on disk so that
 * it is measured once. A file is text, one line per choice, and is for one kind of machine: its
 * first line names the library's version, the CPU, its instructions and caches. A file that is
 * refused (base/cache.h) costs a warning; what speaks of variants that an operator does not have is
 * as good as absent. */
#ifndef SN_PLAN_TUNING_H
#define SN_PLAN_TUNING_H

#include "base/stop.h"
#include "plan/binding.h"

typedef struct sn_tuning sn_tuning;

/* Reads what is known in `dir`. Files that cannot be read are none. */
sonde_status sn_tuning_open(const sn_context *ctx, const char *dir, sn_tuning **tuning,
                            sonde_error *err);
void sn_tuning_free(sn_tuning *t); /* NULL accepted */

/* The variant chosen for what the choices describe, with so many threads; false: not known. Any
 * thread may ask, also while another measures. */
bool sn_tuning_find(sn_tuning *t, const sn_choices *c, int threads, unsigned *variant);
/* Whether there is room for one more choice: what cannot be remembered is not measured. */
bool sn_tuning_has_room(sn_tuning *t);
sonde_status sn_tuning_put(sn_tuning *t, const sn_choices *c, int threads, unsigned variant,
                           sonde_error *err);
/* Writes what is new, together with what others have written meanwhile. Not being able to costs a
 * warning. Where another thread is writing, it is left to that one, and this one does not wait. */
void sn_tuning_save(sn_tuning *t);

/* Measures the steps of `b` whose fastest variant is not known, on scratch memory and the steps'
 * own constants, and puts what it finds into the program's tuning. `b` stays as it is: other
 * threads may run it meanwhile. *better: bound anew, it would run steps in another way. `pool`:
 * what the steps will run with; a step that never gets it to itself keeps its way and is not
 * remembered. */
sonde_status sn_tune_binding(const sn_binding *b, sn_pool *pool, const sn_stop *stop, bool *better,
                             sonde_error *err);

#endif
