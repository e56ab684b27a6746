/* SPDX-License-Identifier: Apache-2.0 */
/* A strict JSON reader for tests: RFC 8259 and nothing more, UTF-8 checked, into a tree. */
#ifndef SONDE_TESTS_EXPORT_JSON_H
#define SONDE_TESTS_EXPORT_JSON_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef enum json_kind {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} json_kind;

typedef struct json {
    json_kind kind;
    double number; /* BOOL: 0 or 1 */
    char *text;    /* STRING, escapes undone */
    char *key;     /* when a member of an object */
    size_t n;      /* children */
    struct json *children;
} json;

typedef struct json_reader {
    const unsigned char *s;
    bool bad;
    int depth;
} json_reader;

static inline void json_free(json *j)
{
    for (size_t i = 0; i < j->n; i++)
        json_free(&j->children[i]);
    free(j->children);
    free(j->text);
    free(j->key);
}

static inline void json_space(json_reader *r)
{
    while (*r->s == ' ' || *r->s == '\n' || *r->s == '\r' || *r->s == '\t')
        r->s++;
}

static inline int json_hex4(json_reader *r)
{
    int v = 0;
    for (int k = 0; k < 4; k++, r->s++) {
        int c = *r->s;
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0) {
            r->bad = true;
            return 0;
        }
        v = v * 16 + d;
    }
    return v;
}

/* How many bytes of well-formed UTF-8 start here; 0: none. Table 3-7 of the Unicode standard. */
static inline size_t json_utf8(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xC2 && s[0] <= 0xDF   ? 2
               : s[0] >= 0xE0 && s[0] <= 0xEF ? 3
               : s[0] >= 0xF0 && s[0] <= 0xF4 ? 4
                                              : 0;
    for (size_t k = 1; k < n; k++)
        if (s[k] < 0x80 || s[k] > 0xBF)
            return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ||
        (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
        return 0;
    return n;
}

static inline char *json_string(json_reader *r)
{
    if (*r->s != '"') {
        r->bad = true;
        return NULL;
    }
    char *out = malloc(strlen((const char *)r->s) + 1);
    size_t n = 0;
    for (r->s++; *r->s != '"' && !r->bad;) {
        if (*r->s < 0x20) { /* also the end of the text */
            r->bad = true;
        } else if (*r->s == '\\') {
            static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
            r->s++;
            const char *at = *r->s ? strchr(from, *r->s) : NULL;
            if (at) {
                out[n++] = to[at - from];
                r->s++;
            } else if (*r->s == 'u') {
                r->s++;
                int c = json_hex4(r); /* enough for what sonde writes: the basic plane */
                if (c < 0x80) {
                    out[n++] = (char)c;
                } else if (c < 0x800) {
                    out[n++] = (char)(0xC0 | c >> 6);
                    out[n++] = (char)(0x80 | (c & 0x3F));
                } else {
                    out[n++] = (char)(0xE0 | c >> 12);
                    out[n++] = (char)(0x80 | (c >> 6 & 0x3F));
                    out[n++] = (char)(0x80 | (c & 0x3F));
                }
            } else {
                r->bad = true;
            }
        } else {
            size_t len = json_utf8(r->s);
            r->bad |= len == 0;
            memcpy(out + n, r->s, len);
            n += len;
            r->s += len;
        }
    }
    out[n] = 0;
    r->s += !r->bad;
    return out;
}

static inline bool json_digits(json_reader *r)
{
    const unsigned char *from = r->s;
    while (*r->s >= '0' && *r->s <= '9')
        r->s++;
    return r->s > from;
}

static inline double json_number(json_reader *r)
{
    const char *from = (const char *)r->s;
    r->s += *r->s == '-';
    if (*r->s == '0')
        r->s++;
    else if (!json_digits(r))
        r->bad = true;
    if (*r->s == '.') {
        r->s++;
        r->bad |= !json_digits(r);
    }
    if (*r->s == 'e' || *r->s == 'E') {
        r->s++;
        r->s += *r->s == '+' || *r->s == '-';
        r->bad |= !json_digits(r);
    }
    return strtod(from, NULL);
}

static inline bool json_word(json_reader *r, const char *word)
{
    size_t n = strlen(word);
    if (strncmp((const char *)r->s, word, n) != 0)
        return false;
    r->s += n;
    return true;
}

static inline json json_value(json_reader *r)
{
    json j = {0};
    json_space(r);
    if (++r->depth > 100)
        r->bad = true;
    if (*r->s == '{' || *r->s == '[') {
        bool object = *r->s == '{';
        unsigned char close = object ? '}' : ']';
        size_t cap = 0;
        j.kind = object ? JSON_OBJECT : JSON_ARRAY;
        r->s++;
        json_space(r);
        if (*r->s == close) {
            r->s++;
        } else {
            for (;;) {
                if (j.n == cap) {
                    cap = cap ? cap * 2 : 8;
                    j.children = realloc(j.children, cap * sizeof *j.children);
                }
                char *key = NULL;
                json_space(r);
                if (object) {
                    key = json_string(r);
                    json_space(r);
                    if (*r->s == ':')
                        r->s++;
                    else
                        r->bad = true;
                }
                json child = {0};
                if (!r->bad)
                    child = json_value(r);
                child.key = key;
                j.children[j.n++] = child;
                json_space(r);
                if (r->bad || (*r->s != ',' && *r->s != close)) {
                    r->bad = true;
                    break;
                }
                if (*r->s++ == close)
                    break;
            }
        }
    } else if (*r->s == '"') {
        j.kind = JSON_STRING;
        j.text = json_string(r);
    } else if (json_word(r, "true")) {
        j.kind = JSON_BOOL;
        j.number = 1;
    } else if (json_word(r, "false")) {
        j.kind = JSON_BOOL;
    } else if (!json_word(r, "null")) {
        j.kind = JSON_NUMBER;
        j.number = json_number(r);
    }
    r->depth--;
    return j;
}

/* False when the text is not exactly one JSON value; *out must be freed either way. */
static inline bool json_parse(const char *text, json *out)
{
    json_reader r = {(const unsigned char *)text, false, 0};
    *out = json_value(&r);
    json_space(&r);
    return !r.bad && *r.s == 0;
}

static inline const json *json_get(const json *j, const char *key)
{
    for (size_t i = 0; j && i < j->n; i++)
        if (j->children[i].key && strcmp(j->children[i].key, key) == 0)
            return &j->children[i];
    return NULL;
}
static inline const char *json_text(const json *j, const char *key)
{
    const json *v = json_get(j, key);
    return v && v->kind == JSON_STRING ? v->text : "(no such text)";
}
static inline double json_num(const json *j, const char *key)
{
    const json *v = json_get(j, key);
    return v && (v->kind == JSON_NUMBER || v->kind == JSON_BOOL) ? v->number : -12345;
}

#endif
