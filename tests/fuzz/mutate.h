/* SPDX-License-Identifier: Apache-2.0 */
/* Changing a model so that it stays one. A mutation is a function that picks a place and changes
 * it; after a few of them the model is made to fit together again (mutate_repair.c), so that most
 * of what comes out is read, bound and run, and fails, if it fails, deep inside. */
#ifndef SONDE_TESTS_FUZZ_MUTATE_H
#define SONDE_TESTS_FUZZ_MUTATE_H

#include "fuzz/proto_tree.h"
#include "fuzz/values.h"

typedef struct mutation {
    pt_arena *arena;
    pt_field *model;
    uint64_t random;
    unsigned fresh; /* names made so far */
} mutation;

/* False: there was no place for it. */
typedef bool (*mutation_fn)(mutation *m);

typedef struct mutation_row {
    mutation_fn fn;
    unsigned weight;
} mutation_row;

/* Each file's list, ended by a row without function. */
extern const mutation_row mutations_of_attributes[];
extern const mutation_row mutations_of_tensors[];
extern const mutation_row mutations_of_types[];
extern const mutation_row mutations_of_nodes[];
extern const mutation_row mutations_of_structure[];

/* The whole of it: some mutations, names, steering. Bytes written to `out`, 0 when nothing came of
 * it. */
size_t mutate_model(const uint8_t *data, size_t size, uint8_t *out, size_t room, uint64_t seed);
/* `a` with parts of `b`. */
size_t mutate_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                    size_t room, uint64_t seed);

/* ---- what mutations are made of ---- */

static inline uint32_t mu_below(mutation *m, uint32_t n)
{
    return fuzz_below(&m->random, n);
}
static inline bool mu_one_in(mutation *m, uint32_t n)
{
    return fuzz_below(&m->random, n) == 0;
}

/* A random place in the tree. */
typedef struct mu_spot {
    pt_field *parent, *field;
} mu_spot;
typedef bool (*mu_filter)(const pt_field *parent, const pt_field *field);
/* Any message of that kind under `root` for which `filter` (may be NULL) is true; false: none. */
bool mu_pick_in(mutation *m, pt_field *root, pt_kind kind, mu_filter filter, mu_spot *out);
bool mu_pick(mutation *m, pt_kind kind, mu_filter filter, mu_spot *out);
/* Any kid of that number. */
pt_field *mu_pick_kid(mutation *m, const pt_field *message, uint32_t number);
/* The leaf that names some value, anywhere in the model; NULL: there is none. */
const pt_field *mu_pick_name(mutation *m);
const char *mu_fresh_name(mutation *m);

/* A number near the old one, or one of those that hurt. */
int64_t mu_int(mutation *m, int64_t old);
float mu_float(mutation *m, float old);
uint32_t mu_dtype(mutation *m);

/* Gives undefined inputs a value that exists, outputs a name of their own, domains an import. */
void mu_repair(mutation *m);

#endif
