/* SPDX-License-Identifier: Apache-2.0 */
/* Dims are as many as the file has digits for: a list can be no longer than its text. */
#include "profile_readers/shapes.h"

#include <string.h>

void sn_shapes_init(sn_shapes *s, sn_build *b)
{
    *s = (sn_shapes){.b = b};
}

sn_prof_tensor *sn_shapes_add(sn_shapes *s)
{
    const sn_prof_tensor absent = {.name = "", .dtype = "", .rank = -1, .zeros = -1};
    if (!sn_vec_push(&s->list, s->b->p->alloc, absent)) {
        s->b->failed = true;
        s->spare = absent;
        return &s->spare;
    }
    return &s->list.data[s->list.n - 1];
}

typedef SN_VEC(int64_t) dims_vec;

static void keep_dims(sn_shapes *s, const dims_vec *dims, sn_prof_tensor *x)
{
    int64_t *copy = SN_NEW_N(&s->b->p->arena, int64_t, dims->n ? dims->n : 1);
    if (!copy || dims->n > INT32_MAX) {
        s->b->failed = true;
        return;
    }
    if (dims->n)
        memcpy(copy, dims->data, dims->n * sizeof *copy);
    x->dims = copy;
    x->rank = (int32_t)dims->n;
}

void sn_shapes_read_dims(sn_shapes *s, sn_json *j, sn_prof_tensor *x)
{
    if (sn_json_peek(j) != SN_JSON_ARRAY) {
        sn_json_skip(j);
        return;
    }
    dims_vec dims = {0};
    bool numbers = true;
    for (sn_json_array(j); sn_json_item(j);) {
        sn_json_num n = {0};
        uint64_t v = 0;
        if (sn_json_peek(j) == SN_JSON_NUMBER)
            sn_json_number(j, &n);
        else
            numbers = sn_json_skip(j) && false;
        const bool known = sn_json_scaled(n, 0, &v) && v <= INT64_MAX;
        s->b->failed |= !sn_vec_push(&dims, s->b->p->alloc, known ? (int64_t)v : -1);
    }
    if (numbers)
        keep_dims(s, &dims, x);
    sn_vec_free(&dims, s->b->p->alloc);
}

void sn_shapes_parse_dims(sn_shapes *s, sn_json_text text, sn_prof_tensor *x)
{
    dims_vec dims = {0};
    int64_t v = 0;
    bool good = true, known = true, digit = false;
    for (size_t i = 0; i <= text.n && good && text.n; i++) {
        const char c = i < text.n ? text.data[i] : '*';
        if (c == '*') {
            good = digit;
            s->b->failed |= !sn_vec_push(&dims, s->b->p->alloc, known ? v : -1);
            v = 0;
            known = true;
            digit = false;
        } else if (c == '?') {
            known = false;
            digit = true;
        } else {
            good = c >= '0' && c <= '9' && sn_i64_mul(v, 10, &v) && sn_i64_add(v, c - '0', &v);
            digit = true;
        }
    }
    if (good)
        keep_dims(s, &dims, x);
    else
        x->text = sn_build_text(s->b, text);
    if (x->text && !*x->text)
        x->text = NULL;
    sn_vec_free(&dims, s->b->p->alloc);
}

const sn_prof_tensor *sn_shapes_take(sn_shapes *s, uint32_t *n)
{
    sn_prof_tensor *list = SN_NEW_N(&s->b->p->arena, sn_prof_tensor, s->list.n + 1);
    *n = 0;
    if (!list)
        s->b->failed = true;
    else if (s->list.n && s->list.n < UINT32_MAX)
        memcpy(list, s->list.data, (*n = (uint32_t)s->list.n) * sizeof *list);
    sn_vec_free(&s->list, s->b->p->alloc);
    return list;
}
