/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights and arenas of a program that belongs to certain memory nodes are asked from these.
 * Where the system refuses that, it is said once in a context, and the memory lies where the first
 * thread that writes to it runs: the program's threads run on those nodes. */
#ifndef SN_PLAN_MEMORY_NODES_H
#define SN_PLAN_MEMORY_NODES_H

#include "graph/tensor.h"
#include "plan/program.h"

/* A fresh buffer of its own memory; small ones are left alone. */
void sn_program_bind_buffer(const sn_program *p, sn_buffer *b);
/* Before it is let go of. NULL accepted. */
void sn_program_unbind_buffer(const sn_program *p, sn_buffer *b);

#endif
