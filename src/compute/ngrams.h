/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of known n-grams in rows of tokens. Tokens are numbers; the known n-grams are a trie over
 * them, in one hash table from (node, token) to node, so that a row costs its length times the
 * longest n-gram and skip, however many n-grams are known. */
#ifndef SN_COMPUTE_NGRAMS_H
#define SN_COMPUTE_NGRAMS_H

#include "base/pool.h"

typedef struct sn_ngram_edge {
    uint64_t key;  /* node << 32 | token, plus one; 0: free */
    uint32_t node; /* it leads to */
} sn_ngram_edge;

typedef struct sn_ngrams {
    int64_t min, max; /* lengths that count */
    int64_t skips;    /* tokens of an n-gram may lie this many apart, plus one */
    int64_t width;    /* columns of a result */
    /* Of every n-gram: its column and, unless NULL, its weight, which is 1 otherwise. */
    const int64_t *columns;
    const float *weights;
    bool once; /* a column holds the weight of what was found, however often */
    /* The trie; its memory is the caller's: */
    sn_ngram_edge *edges; /* `cap` of them, zeroed */
    size_t cap;
    int64_t *gram; /* node ► n-gram that ends there, or -1; one more than the tokens of all */
    uint32_t nodes;
} sn_ngrams;

/* Edges that a trie of this many tokens in all needs. */
size_t sn_ngrams_cap(size_t tokens);
/* Makes the trie empty; edges, cap and gram are set. */
void sn_ngrams_clear(sn_ngrams *t);
void sn_ngrams_add(sn_ngrams *t, const uint32_t *tokens, int64_t length, int64_t gram);

/* The numbers of n tokens, of which the first is `first`; -1 for one that is in no n-gram. */
typedef void sn_ngram_numbers_fn(const void *arg, int64_t first, int64_t n, int32_t *numbers);
/* y [rows][width] of [rows][columns] tokens; `scratch` has room for a number each. Rows are split
 * over the pool: `numbers` is called once for each, from any thread. */
void sn_ngrams_count(const sn_ngrams *t, float *y, int64_t rows, int64_t columns,
                     sn_ngram_numbers_fn *numbers, const void *arg, int32_t *scratch,
                     sn_pool *pool);

#endif
