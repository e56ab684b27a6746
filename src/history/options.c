/* SPDX-License-Identifier: Apache-2.0 */
/* Options as JSON: whoever measures decides what belongs there. One form for each meaning, so that
 * equal texts are equal options. */
#include <stdlib.h>

#include "base/json.h"
#include "export/text.h"
#include "history/history.h"

enum { LONGEST_NUMBER = 300 }; /* characters; readers in other languages refuse thousands */

/* ------------------------------------------------------------------ one form */

typedef struct member {
    const char *key, *value; /* the value as canonical JSON */
} member;

typedef SN_VEC(member) members;

static int by_key(const void *a, const void *b)
{
    return strcmp(((const member *)a)->key, ((const member *)b)->key);
}

static void add_quoted(sn_text *t, const char *s)
{
    char part[8] = {0};
    sn_text_add(t, "\"");
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            snprintf(part, sizeof part, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            snprintf(part, sizeof part, "\\u%04x", c);
        else
            snprintf(part, sizeof part, "%c", c);
        sn_text_add(t, part);
    }
    sn_text_add(t, "\"");
}

static const char *copy_text(sn_text *t, sn_arena *arena)
{
    const char *copy = t->failed ? NULL : sn_arena_strdup(arena, sn_text_get(t));
    sn_text_free(t);
    return copy;
}

static const char *value_of(sn_json *j, sn_arena *arena);

/* The members in the order of their keys; false: out of memory, or j has a problem. */
static bool read_members(sn_json *j, sn_arena *arena, members *m)
{
    sn_json_text key;
    bool fine = true;
    for (sn_json_object(j); fine && sn_json_member(j, &key);) {
        member one = {.key = sn_arena_strndup(arena, key.data, key.n)};
        one.value = value_of(j, arena);
        fine = one.key && one.value && sn_vec_push(m, arena->alloc, one);
    }
    if (m->n)
        qsort(m->data, m->n, sizeof *m->data, by_key);
    return fine && !j->problem;
}

/* Of equal keys the first one counts. */
static const char *join_members(const members *m, sn_arena *arena)
{
    sn_text t;
    sn_text_init(&t, arena->alloc);
    sn_text_add(&t, "{");
    for (size_t i = 0; i < m->n; i++) {
        if (i && strcmp(m->data[i].key, m->data[i - 1].key) == 0)
            continue;
        sn_text_add(&t, i ? "," : "");
        add_quoted(&t, m->data[i].key);
        sn_text_add(&t, ":");
        sn_text_add(&t, m->data[i].value);
    }
    sn_text_add(&t, "}");
    return copy_text(&t, arena);
}

static const char *object_of(sn_json *j, sn_arena *arena)
{
    members m = {0};
    const char *text = read_members(j, arena, &m) ? join_members(&m, arena) : NULL;
    sn_vec_free(&m, arena->alloc);
    return text;
}

static const char *array_of(sn_json *j, sn_arena *arena)
{
    sn_text t;
    bool fine = true, first = true;
    sn_text_init(&t, arena->alloc);
    sn_text_add(&t, "[");
    for (sn_json_array(j); fine && sn_json_item(j); first = false) {
        const char *value = value_of(j, arena);
        fine = value != NULL;
        sn_text_add(&t, first ? "" : ",");
        sn_text_add(&t, value);
    }
    sn_text_add(&t, "]");
    t.failed |= !fine || j->problem;
    return copy_text(&t, arena);
}

/* A number or a word keeps its spelling. */
static const char *word_of(sn_json *j, sn_arena *arena)
{
    const uint8_t *from = j->at;
    if (!sn_json_skip(j))
        return NULL;
    const uint8_t *to = j->at;
    while (from < to && (*from == ',' || *from == ' ' || *from == '\t' || *from == '\n' ||
                         *from == '\r' || *from == ':'))
        from++;
    if (to - from > LONGEST_NUMBER) {
        j->problem = "a number has too many digits";
        return NULL;
    }
    return sn_arena_strndup(arena, (const char *)from, (size_t)(to - from));
}

static const char *value_of(sn_json *j, sn_arena *arena)
{
    sn_json_text text;
    sn_text t;
    switch (sn_json_peek(j)) {
    case SN_JSON_OBJECT:
        return object_of(j, arena);
    case SN_JSON_ARRAY:
        return array_of(j, arena);
    case SN_JSON_STRING: {
        const char *plain =
            sn_json_string(j, &text) ? sn_arena_strndup(arena, text.data, text.n) : NULL;
        if (!plain)
            return NULL;
        sn_text_init(&t, arena->alloc);
        add_quoted(&t, plain);
        return copy_text(&t, arena);
    }
    default:
        return word_of(j, arena);
    }
}

static bool has_key(const members *m, const char *key)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->data[i].key, key) == 0)
            return true;
    return false;
}

static const char *quoted(const char *s, sn_arena *arena)
{
    sn_text t;
    sn_text_init(&t, arena->alloc);
    add_quoted(&t, s);
    return copy_text(&t, arena);
}

/* False: out of memory. */
static bool add_known(members *m, int threads, const char *precision, sn_arena *arena)
{
    bool fine = true;
    if (threads > 0 && !has_key(m, "threads")) {
        const member one = {"threads", sn_arena_printf(arena, "%d", threads)};
        fine = one.value && sn_vec_push(m, arena->alloc, one);
    }
    if (fine && precision && *precision && !has_key(m, "precision")) {
        const member one = {"precision", quoted(precision, arena)};
        fine = one.value && sn_vec_push(m, arena->alloc, one);
    }
    if (m->n)
        qsort(m->data, m->n, sizeof *m->data, by_key);
    return fine;
}

sonde_status sn_history_options(const char *json, int threads, const char *precision,
                                sn_arena *arena, const char **out, sonde_error *err)
{
    members m = {0};
    sn_json j;
    const char *text = json && *json ? json : "{}";
    if (strlen(text) > SN_HISTORY_OPTIONS_BYTES)
        return sn_fail(err, SONDE_LIMIT, "the options of an entry have more than %d bytes",
                       SN_HISTORY_OPTIONS_BYTES);
    sn_json_init(&j, text, strlen(text), arena);
    const bool object = sn_json_peek(&j) == SN_JSON_OBJECT;
    const bool fine = read_members(&j, arena, &m) && sn_json_end(&j);
    *out = fine && add_known(&m, threads, precision, arena) ? join_members(&m, arena) : NULL;
    sn_vec_free(&m, arena->alloc);
    if (*out)
        return SONDE_OK;
    sonde_error why;
    if (object && sn_json_status(&j, &why) == SONDE_OK)
        return sn_fail_memory(err, 0);
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "the options of an entry must be a JSON object, such as {\"batch\":8}: %s",
                   object ? why.message : "it is something else");
}

/* ------------------------------------------------------------------ asking it
 * What comes from a database may be anything: what is no such object says nothing. */

/* The value of a key: that of a text without its quotes. False: it is not there, or the arena has
 * no memory (then *no_memory is set). */
static bool find(const char *json, const char *key, size_t key_bytes, sn_arena *arena,
                 sn_json_text *value, bool *no_memory)
{
    sn_json j;
    sn_json_text k;
    bool found = false;
    sn_json_init(&j, json, strlen(json), arena);
    for (sn_json_object(&j); !found && sn_json_member(&j, &k);) {
        if (k.n != key_bytes || memcmp(k.data, key, key_bytes) != 0) {
            sn_json_skip(&j);
        } else if (sn_json_peek(&j) == SN_JSON_STRING) {
            if (!sn_json_string(&j, value))
                break;
            found = true;
        } else {
            const char *word = value_of(&j, arena);
            *no_memory |= !word && !j.problem;
            if (!word)
                break;
            *value = (sn_json_text){word, strlen(word)};
            found = true;
        }
    }
    *no_memory |= sn_json_status(&j, NULL) == SONDE_OUT_OF_MEMORY;
    return found;
}

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

/* The end of a pair "key=value": a comma with another key behind it. Values may have commas. */
static const char *end_of_pair(const char *p)
{
    for (; *p; p++) {
        if (*p != ',')
            continue;
        const char *q = p + 1;
        while (is_key_char(*q))
            q++;
        if (q > p + 1 && *q == '=')
            return p;
    }
    return p;
}

int sn_history_options_say(void *alloc, const char *json, const char *wanted)
{
    sn_arena arena;
    bool all = true, no_memory = false;
    sn_arena_init(&arena, alloc);
    for (const char *p = wanted; *p && all;) {
        const char *end = end_of_pair(p), *equals = memchr(p, '=', (size_t)(end - p));
        const char *key_end = equals ? equals : end;
        const char *value = equals ? equals + 1 : end;
        sn_json_text found;
        const bool there = find(json, p, (size_t)(key_end - p), &arena, &found, &no_memory);
        const size_t n = (size_t)(end - value);
        all = n ? there && found.n == n && memcmp(found.data, value, n) == 0
                : there == (equals == NULL); /* "key" alone: it says something */
        p = *end ? end + 1 : end;
    }
    sn_arena_free(&arena);
    return no_memory ? -1 : all;
}

static void append(char *text, size_t bytes, const char *fmt, ...) SONDE_PRINTF(3, 4);
static void append(char *text, size_t bytes, const char *fmt, ...)
{
    va_list args;
    const size_t n = strlen(text);
    va_start(args, fmt);
    vsnprintf(text + n, bytes - n, fmt, args);
    va_end(args);
}

static void append_value(char *text, size_t bytes, bool there, sn_json_text v)
{
    append(text, bytes, "%.*s",
           there && v.n < 200 ? (int)v.n
           : there            ? 200
                              : 4,
           there ? v.data : "none");
}

/* Keys of `a` whose value in `b` is another; of those in `b` as well only where `both`. */
static void differ_one_way(const char *a, const char *b, bool both, bool swapped, sn_arena *arena,
                           char *text, size_t bytes)
{
    sn_json j;
    sn_json_text k;
    sn_json_init(&j, a, strlen(a), arena);
    for (sn_json_object(&j); sn_json_member(&j, &k); sn_json_skip(&j)) {
        sn_json_text x = {"", 0}, y = {"", 0};
        bool no_matter = false; /* it is a text for people */
        const bool in_a = find(a, k.data, k.n, arena, &x, &no_matter);
        const bool in_b = find(b, k.data, k.n, arena, &y, &no_matter);
        if (in_b && (!both || (in_a && x.n == y.n && memcmp(x.data, y.data, x.n) == 0)))
            continue;
        append(text, bytes, "%s%.*s ", *text ? ", " : "", (int)(k.n < 100 ? k.n : 100), k.data);
        append_value(text, bytes, swapped ? in_b : in_a, swapped ? y : x);
        append(text, bytes, " and ");
        append_value(text, bytes, swapped ? in_a : in_b, swapped ? x : y);
    }
}

void sn_history_options_differ(const char *a, const char *b, sn_allocator *alloc, char *text,
                               size_t bytes)
{
    sn_arena arena;
    sn_arena_init(&arena, alloc);
    differ_one_way(a, b, true, false, &arena, text, bytes);
    differ_one_way(b, a, false, true, &arena, text, bytes);
    sn_arena_free(&arena);
}

/* A key with its value, as people would say it. */
static void append_words(char *text, size_t bytes, sn_json_text k, sn_json_text v)
{
    const int n = v.n < 100 ? (int)v.n : 100, key = k.n < 40 ? (int)k.n : 40;
    append(text, bytes, "%s", *text ? ", " : "");
    if (sn_json_is(k, "threads"))
        append(text, bytes, "%.*s thread%s", n, v.data, sn_json_is(v, "1") ? "" : "s");
    else if ((sn_json_is(k, "precision") && !sn_json_is(v, "file")) || sn_json_is(k, "inputs"))
        append(text, bytes, "%.*s", n, v.data);
    else
        append(text, bytes, "%.*s %.*s", key, k.data, n, v.data);
}

void sn_history_options_title(const char *json, sn_allocator *alloc, char *text, size_t bytes)
{
    sn_arena arena;
    sn_json j;
    sn_json_text k, v;
    text[0] = 0;
    sn_arena_init(&arena, alloc);
    sn_json_init(&j, json, strlen(json), &arena);
    for (sn_json_object(&j); sn_json_member(&j, &k); sn_json_skip(&j)) {
        bool no_matter = false;
        if (!find(json, k.data, k.n, &arena, &v, &no_matter))
            continue;
        if (sn_json_is(k, "precision") && sn_json_is(v, "file"))
            continue; /* the usual */
        append_words(text, bytes, k, v);
    }
    sn_arena_free(&arena);
}

static bool is_among(const sn_history_keys *keys, sn_json_text key)
{
    for (size_t i = 0; i < keys->n; i++)
        if (sn_json_is(key, keys->data[i]))
            return true;
    return false;
}

/* False: no memory. */
static bool add_keys(const char *a, const char *b, sn_arena *arena, sn_history_keys *keys)
{
    sn_json j;
    sn_json_text k;
    bool no_memory = false;
    sn_json_init(&j, a, strlen(a), arena);
    for (sn_json_object(&j); !no_memory && keys->n < SN_HISTORY_KEYS && sn_json_member(&j, &k);
         sn_json_skip(&j)) {
        sn_json_text x = {"", 0}, y = {"", 0};
        const bool in_a = find(a, k.data, k.n, arena, &x, &no_memory);
        const bool in_b = find(b, k.data, k.n, arena, &y, &no_memory);
        if ((in_a && in_b && x.n == y.n && memcmp(x.data, y.data, x.n) == 0) || is_among(keys, k))
            continue;
        const char *key = sn_arena_strndup(arena, k.data, k.n);
        no_memory |= !key || !sn_vec_push(keys, arena->alloc, key);
    }
    return !no_memory && sn_json_status(&j, NULL) != SONDE_OUT_OF_MEMORY;
}

bool sn_history_options_keys(const char *a, const char *b, sn_arena *arena, sn_history_keys *keys)
{
    return add_keys(a, b, arena, keys) && add_keys(b, a, arena, keys);
}

bool sn_history_options_words(const char *json, const sn_history_keys *keys, sn_allocator *alloc,
                              char *text, size_t bytes)
{
    sn_arena arena;
    bool no_memory = false;
    text[0] = 0;
    sn_arena_init(&arena, alloc);
    for (size_t i = 0; i < keys->n; i++) {
        const sn_json_text k = {keys->data[i], strlen(keys->data[i])};
        sn_json_text v;
        if (find(json, k.data, k.n, &arena, &v, &no_memory))
            append_words(text, bytes, k, v);
        else
            append(text, bytes, "%swithout %.40s", *text ? ", " : "", k.data);
    }
    sn_arena_free(&arena);
    return !no_memory;
}
