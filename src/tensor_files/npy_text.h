/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded cursor over text, for the header of .npy files, which is a Python literal. */
#ifndef SN_TENSOR_FILES_NPY_TEXT_H
#define SN_TENSOR_FILES_NPY_TEXT_H

#include <string.h>

#include "base/alloc.h"

typedef struct sn_npy_text {
    const char *at, *end;
} sn_npy_text;

static inline void sn_npy_text_space(sn_npy_text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\n' || *t->at == '\t' || *t->at == '\r'))
        t->at++;
}

/* Each of these skips white space, then steps over what it looks for, or stays and says false. */
static inline bool sn_npy_text_take(sn_npy_text *t, char c)
{
    sn_npy_text_space(t);
    if (t->at == t->end || *t->at != c)
        return false;
    t->at++;
    return true;
}

static inline bool sn_npy_text_word(sn_npy_text *t, const char *word)
{
    size_t n = strlen(word);
    sn_npy_text_space(t);
    if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
        return false;
    t->at += n;
    return true;
}

static inline bool sn_npy_text_number(sn_npy_text *t, int64_t *out)
{
    int64_t v = 0;
    sn_npy_text_space(t);
    if (t->at == t->end || *t->at < '0' || *t->at > '9')
        return false;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++)
        if (!sn_i64_mul(v, 10, &v) || !sn_i64_add(v, *t->at - '0', &v))
            return false;
    *out = v;
    return true;
}

static inline bool sn_npy_text_is(const sn_npy_text *t, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(t->end - t->at) == n && memcmp(t->at, word, n) == 0;
}

#endif
