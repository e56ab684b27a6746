/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this room share: a zoo model with inputs, asked with few runs and a cache
 * folder of its own. */
#ifndef SONDE_TESTS_WHATIF_WHATIF_QUESTION_H
#define SONDE_TESTS_WHATIF_WHATIF_QUESTION_H

#include "api/zoo_session.h"
#include "temp_folder.h"
#include "whatif/whatif.h"

typedef struct question {
    sonde_context *context;
    sonde_model *model;
    sonde_value *in[MAX_PORTS];
    size_t n_in;
    char cache[300];
    sonde_whatif_options o;
} question;

/* Aborts where it cannot be made. The folder `cache` is the caller's. */
static inline void question_open(question *q, const char *zoo, const char *cache)
{
    sonde_context_options co = SONDE_INIT(sonde_context_options);
    sonde_session *s = NULL;
    sonde_error err;
    co.threads = 2;
    *q = (question){.o = SONDE_INIT(sonde_whatif_options)};
    if (sonde_context_create(&co, &q->context, &err) ||
        zoo_model(q->context, zoo, &q->model, &err) ||
        sonde_session_create(q->model, NULL, &s, &err) ||
        random_inputs(q->context, s, 1, q->in, &q->n_in, &err)) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
    sonde_session_release(s);
    q->o.values = q->in;
    q->o.value_count = q->n_in;
    q->o.warmup = -1;
    q->o.runs = 3;
    snprintf(q->cache, sizeof q->cache, "%s", cache ? cache : "");
    q->o.cache = cache ? q->cache : NULL;
}

static inline void question_close(question *q)
{
    release_all(q->in, q->n_in);
    sonde_model_release(q->model);
    sonde_context_release(q->context);
}

#endif
