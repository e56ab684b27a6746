/* SPDX-License-Identifier: Apache-2.0 */
/* A handful of labels: found by looking at all of them. A value that is replaced stays in the
 * arena: sets are filled once and then read. */
#include "profile/labels.h"

#include <string.h>

void sn_labels_init(sn_labels *l, sn_allocator *alloc)
{
    *l = (sn_labels){.alloc = alloc};
    sn_arena_init(&l->arena, alloc);
}

void sn_labels_init_changes(sn_labels *l, sn_allocator *alloc)
{
    sn_labels_init(l, alloc);
    l->changes = true;
}

void sn_labels_free(sn_labels *l)
{
    if (!l->alloc)
        return;
    sn_vec_free(&l->list, l->alloc);
    sn_arena_free(&l->arena);
}

static size_t find(const sn_labels *l, const char *key)
{
    size_t i = 0;
    while (i < l->list.n && strcmp(l->list.data[i].key, key) != 0)
        i++;
    return i;
}

const char *sn_labels_get(const sn_labels *l, const char *key)
{
    const size_t i = find(l, key);
    return i < l->list.n ? l->list.data[i].value : "";
}

static sonde_status check(const char *key, const char *value, sonde_error *err)
{
    if (!*key)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "a label has no key; expected key=value");
    if (strlen(key) > SN_LABEL_KEY_BYTES)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "the key of a label has %zu bytes, the maximum is %d", strlen(key),
                       SN_LABEL_KEY_BYTES);
    if (strlen(value) > SN_LABEL_VALUE_BYTES)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "the label '%s' has a value of %zu bytes, the maximum is %d", key,
                       strlen(value), SN_LABEL_VALUE_BYTES);
    return SONDE_OK;
}

sonde_status sn_labels_put(sn_labels *l, const char *key, const char *value, sonde_error *err)
{
    SN_TRY(check(key, value, err));
    const size_t i = find(l, key);
    if (!*value && !l->changes) {
        if (i < l->list.n) {
            memmove(&l->list.data[i], &l->list.data[i + 1],
                    (l->list.n - i - 1) * sizeof *l->list.data);
            l->list.n--;
        }
        return SONDE_OK;
    }
    if (i == l->list.n && i == SN_LABELS_MOST)
        return sn_fail(err, SONDE_LIMIT, "there are more than %d labels", SN_LABELS_MOST);
    const sn_label own = {.key =
                              i < l->list.n ? l->list.data[i].key : sn_arena_strdup(&l->arena, key),
                          .value = sn_arena_strdup(&l->arena, value)};
    if (!own.key || !own.value)
        return sn_fail_memory(err, strlen(key) + strlen(value));
    if (i < l->list.n)
        l->list.data[i] = own;
    else if (!sn_vec_push(&l->list, l->alloc, own))
        return sn_fail_memory(err, sizeof own);
    return SONDE_OK;
}

sonde_status sn_labels_put_all(sn_labels *l, const sn_labels *from, sonde_error *err)
{
    for (size_t i = 0; i < from->list.n; i++)
        SN_TRY(sn_labels_put(l, from->list.data[i].key, from->list.data[i].value, err));
    return SONDE_OK;
}

/* One text up to a separator that is not escaped; false: it does not fit. */
static bool take(const char **at, const char *separators, char *to, size_t room)
{
    size_t n = 0;
    const char *s = *at;
    for (; *s && !strchr(separators, *s); s++) {
        if (*s == '\\' && s[1])
            s++;
        if (n + 1 >= room)
            return false;
        to[n++] = *s;
    }
    to[n] = 0;
    *at = s;
    return true;
}

sonde_status sn_labels_parse(sn_labels *l, const char *text, sonde_error *err)
{
    char key[SN_LABEL_KEY_BYTES + 1], value[SN_LABEL_VALUE_BYTES + 1];
    for (const char *at = text; *at;) {
        if (!take(&at, ",=", key, sizeof key))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "the key of a label has more than %d bytes",
                           SN_LABEL_KEY_BYTES);
        if (*at != '=')
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "the label '%s' has no value; expected key=value,key=value", key);
        at++;
        if (!take(&at, ",", value, sizeof value))
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "the label '%s' has a value of more than %d bytes", key,
                           SN_LABEL_VALUE_BYTES);
        SN_TRY(sn_labels_put(l, key, value, err));
        at += *at == ',';
    }
    return SONDE_OK;
}
