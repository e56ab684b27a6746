/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes that stay in float. "@FILE" stands for the list "leave_in_float" in a comparison that
 * was saved as JSON. */
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "shrink/quantizer.h"

enum { MOST_BYTES = 1 << 28 };
static const char schema[] = "sonde.compare/1";

typedef SN_VEC(const char *) name_list;

static sonde_status push(sn_quantizer *q, name_list *list, const char *name, size_t n)
{
    const char *copy = sn_arena_strndup(&q->arena, name, n);
    if (!copy || !sn_vec_push(list, &q->context->alloc, copy))
        return sn_fail_memory(q->err, n);
    return SONDE_OK;
}

static sonde_status read_names(sn_quantizer *q, sn_json *j, const char *path, name_list *list)
{
    sn_json_text key, text;
    bool known = false, found = false;
    for (sn_json_object(j); sn_json_member(j, &key);) {
        if (sn_json_is(key, "schema") && sn_json_string(j, &text)) {
            known = sn_json_is(text, schema);
        } else if (sn_json_is(key, "leave_in_float")) {
            found = true;
            for (sn_json_array(j); sn_json_item(j);)
                if (sn_json_string(j, &text))
                    SN_TRY(push(q, list, text.data, text.n));
        } else {
            sn_json_skip(j);
        }
    }
    SN_TRY(sn_json_status(j, q->err));
    if (!known || !found)
        return sn_fail(q->err, SONDE_INVALID_FORMAT,
                       "'%.300s' is no comparison that names layers to leave in float (schema "
                       "\"%s\" with \"leave_in_float\")",
                       path, schema);
    return SONDE_OK;
}

static sonde_status read_file(sn_quantizer *q, const char *path, name_list *list)
{
    sn_file file;
    sn_json j;
    SN_TRY(sn_file_read(&file, path, MOST_BYTES, &q->context->alloc, q->err));
    sn_json_init(&j, file.data, file.bytes, &q->arena);
    const sonde_status st = read_names(q, &j, path, list);
    if (st != SONDE_OK && j.problem)
        sn_error_prefix(q->err, "'%.300s'", path);
    sn_file_close(&file);
    return st;
}

sonde_status sn_q_expand_except(sn_quantizer *q)
{
    name_list list = {0};
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < q->o.except_count && st == SONDE_OK; i++) {
        const char *name = q->o.except[i];
        st = name[0] == '@' ? read_file(q, name + 1, &list) : push(q, &list, name, strlen(name));
    }
    const char **own = SN_NEW_N(&q->arena, const char *, list.n + 1);
    if (st == SONDE_OK && !own)
        st = sn_fail_memory(q->err, list.n * sizeof *own);
    for (size_t i = 0; i < list.n && own; i++)
        own[i] = list.data[i];
    q->o.except = own;
    q->o.except_count = list.n;
    sn_vec_free(&list, &q->context->alloc);
    return st;
}
