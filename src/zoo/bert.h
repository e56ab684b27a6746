/* SPDX-License-Identifier: Apache-2.0 */
/* BERT's encoder as a part: models with another head put theirs behind it. */
#ifndef SN_ZOO_BERT_H
#define SN_ZOO_BERT_H

#include "zoo/builder.h"

typedef struct sn_bert {
    int64_t layers, width, heads, ffn, vocabulary, positions;
    int64_t sequence; /* size by default */
} sn_bert;

extern const sn_bert sn_bert_mini, sn_bert_tiny;

/* Makes the inputs and the encoder under the module path `prefix` ("" for none); the last hidden
 * state. tokens receives the dims batch and sequence, *table the word embeddings' weight. */
sn_value *sn_bert_encode(sn_builder *b, const sn_bert *size, const char *prefix, sn_dim tokens[2],
                         sn_value **table);

#endif
