/* SPDX-License-Identifier: Apache-2.0 */
/* Pins: records name their steps by a binding's number only, so every binding that was recorded is
 * kept, with its program, until the records are forgotten. */
#ifndef SN_EXEC_PINS_H
#define SN_EXEC_PINS_H

#include "plan/binding.h"

typedef struct sn_pins sn_pins;

sonde_status sn_pins_create(sn_pins **pins, sn_allocator *alloc, sonde_error *err);
void sn_pins_free(sn_pins *p); /* NULL accepted */

/* Keeps the binding and its root program; out of memory: its records will have no names. */
void sn_pin_binding(sn_pins *p, sn_binding *b);
sn_binding *sn_pins_find(sn_pins *p, uint32_t id); /* NULL: it is not pinned */
/* Lets go of all. Nothing may be recording, and nobody read records. */
void sn_pins_clear(sn_pins *p);
/* Around a fork, so that a child finds the list whole. */
void sn_pins_lock(sn_pins *p);
void sn_pins_unlock(sn_pins *p);

#endif
