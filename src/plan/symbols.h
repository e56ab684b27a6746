/* SPDX-License-Identifier: Apache-2.0 */
/* Dimensions that a file gives one name are one number to passes and bindings. Exporters give names
 * to dimensions that have nothing to do with each other, and other runtimes do not mind: a session
 * that is fed such inputs goes on with a program in which those names are told apart. */
#ifndef SN_PLAN_SYMBOLS_H
#define SN_PLAN_SYMBOLS_H

#include "plan/program.h"

typedef struct sn_symbol_clash {
    const char *input, *symbol;
    int64_t size, other; /* of this input, and what another one or another dimension has */
} sn_symbol_clash;

/* Do inputs, in the order of the program's, give one name two sizes? */
bool sn_symbols_clash(const sn_program *p, const sn_slot *const *in, sn_symbol_clash *clash);
/* Before inference: in every input of g a name that was there before becomes a dimension without a
 * name, and what the file declares of inner values is forgotten. */
sonde_status sn_symbols_part(sn_graph *g, sonde_error *err);

#endif
