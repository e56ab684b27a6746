/* SPDX-License-Identifier: Apache-2.0 */
/* Every byte is looked at once and compared with the end first. Depth is bounded, values are walked
 * in a loop: hostile nesting costs neither stack nor time. */
#include "base/json.h"

#include <string.h>

#include "base/utf8.h"

void sn_json_init(sn_json *j, const void *data, size_t bytes, sn_arena *arena)
{
    const uint8_t *p = data;
    *j = (sn_json){.start = p, .at = p, .end = p + bytes, .arena = arena};
    if (bytes >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
        j->at += 3; /* a byte order mark, as some programs write */
}

static const char no_memory[] = "out of memory";

static bool bad(sn_json *j, const char *problem)
{
    if (!j->problem)
        j->problem = j->at < j->end || problem == no_memory ? problem : "it is truncated";
    return false;
}

sonde_status sn_json_status(const sn_json *j, sonde_error *err)
{
    if (!j->problem)
        return SONDE_OK;
    if (j->problem == no_memory)
        return sn_fail_memory(err, (size_t)(j->end - j->at));
    return sn_fail(err, SONDE_INVALID_ARGUMENT, "%s (byte %zu)", j->problem,
                   (size_t)(j->at - j->start));
}

static void space(sn_json *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\r' || *j->at == '\t'))
        j->at++;
}

static int look(sn_json *j)
{
    if (j->problem)
        return -1;
    space(j);
    return j->at < j->end ? *j->at : -1;
}

sn_json_kind sn_json_peek(sn_json *j)
{
    int c = look(j);
    switch (c) {
    case '{':
        return SN_JSON_OBJECT;
    case '[':
        return SN_JSON_ARRAY;
    case '"':
        return SN_JSON_STRING;
    case 't':
    case 'f':
        return SN_JSON_BOOL;
    case 'n':
        return SN_JSON_NULL;
    default:
        return c == '-' || (c >= '0' && c <= '9') ? SN_JSON_NUMBER : SN_JSON_BAD;
    }
}

/* ------------------------------------------------------------------ objects and arrays */
static bool enter(sn_json *j, char open, const char *problem)
{
    if (look(j) != open)
        return bad(j, problem);
    if (j->depth >= SN_JSON_MAX_DEPTH)
        return bad(j, "it is nested too deeply");
    j->at++;
    j->depth++;
    j->first = true;
    return true;
}

bool sn_json_object(sn_json *j)
{
    return enter(j, '{', "an object was expected");
}

bool sn_json_array(sn_json *j)
{
    return enter(j, '[', "an array was expected");
}

/* True before the next element; false past the last one, or with a problem. */
static bool next(sn_json *j, char close)
{
    int c = look(j);
    if (c == close) {
        j->at++;
        j->depth--;
        j->first = false;
        return false;
    }
    if (!j->first) {
        if (c != ',')
            return bad(j, "a comma or the end was expected");
        j->at++;
        space(j);
    }
    j->first = false;
    return !j->problem;
}

bool sn_json_item(sn_json *j)
{
    return next(j, ']');
}

bool sn_json_member(sn_json *j, sn_json_text *key)
{
    if (!next(j, '}') || !sn_json_string(j, key))
        return false;
    if (look(j) != ':')
        return bad(j, "a colon was expected");
    j->at++;
    return true;
}

/* ------------------------------------------------------------------ texts */
static int hex(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool four_digits(sn_json *j, uint32_t *code)
{
    *code = 0;
    for (int k = 0; k < 4; k++, j->at++) {
        int d = j->at < j->end ? hex(*j->at) : -1;
        if (d < 0)
            return bad(j, "four hexadecimal digits were expected");
        *code = *code * 16 + (uint32_t)d;
    }
    return true;
}

/* After \u: one character, or the two halves of one. What is no text becomes U+FFFD, and so does
 * the character 0, which would end a C string. */
static bool unicode(sn_json *j, uint32_t *code)
{
    if (!four_digits(j, code))
        return false;
    if (*code >= 0xD800 && *code < 0xDC00 && j->end - j->at >= 2 && j->at[0] == '\\' &&
        j->at[1] == 'u') {
        uint32_t low;
        j->at += 2;
        if (!four_digits(j, &low))
            return false;
        *code = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00)
                                              : 0xFFFD;
    }
    if (*code == 0) {
        j->zero = true;
        *code = 0xFFFD;
    }
    return true;
}

/* One character of a string; with `to` it is also written there. */
static bool character(sn_json *j, char **to)
{
    uint32_t code = 0;
    if (*j->at == '\\') {
        static const char from[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
        if (++j->at == j->end)
            return bad(j, "it is truncated");
        const char *found = *j->at ? strchr(from, *j->at) : NULL;
        if (found)
            code = (uint32_t)means[found - from];
        else if (*j->at != 'u')
            return bad(j, "invalid escape");
        j->at++;
        if (!found && !unicode(j, &code))
            return false;
    } else {
        if (*j->at < 0x20)
            return bad(j, "a control character inside a string");
        size_t n = sn_utf8_char(j->at, (size_t)(j->end - j->at), &code);
        if (!n)
            return bad(j, "this is not UTF-8");
        j->at += n;
    }
    if (to)
        *to = sn_utf8_put(*to, code);
    return true;
}

/* Past the closing quote; says whether there were escapes. */
static bool scan_string(sn_json *j, bool *escapes)
{
    *escapes = false;
    if (look(j) != '"')
        return bad(j, "a string was expected");
    for (j->at++; j->at < j->end && *j->at != '"';) {
        *escapes |= *j->at == '\\';
        if (!character(j, NULL))
            return false;
    }
    if (j->at == j->end)
        return bad(j, "it is truncated");
    j->at++;
    return true;
}

bool sn_json_string(sn_json *j, sn_json_text *out)
{
    bool escapes;
    *out = (sn_json_text){"", 0};
    space(j);
    const uint8_t *from = j->at + 1;
    if (!scan_string(j, &escapes))
        return false;
    size_t n = (size_t)(j->at - 1 - from);
    if (!escapes) {
        *out = (sn_json_text){(const char *)from, n};
        return true;
    }
    char *copy = sn_arena_alloc(j->arena, n + 1, 1), *end = copy; /* escapes are never shorter */
    if (!copy)
        return bad(j, no_memory);
    sn_json again = *j;
    for (again.at = from; again.at < j->at - 1;)
        character(&again, &end);
    *out = (sn_json_text){copy, (size_t)(end - copy)};
    return true;
}

bool sn_json_is(sn_json_text text, const char *word)
{
    return text.n == strlen(word) && memcmp(text.data, word, text.n) == 0;
}

/* ------------------------------------------------------------------ numbers and words */
static bool digits(sn_json *j, sn_json_num *n, bool fraction)
{
    const uint8_t *from = j->at;
    for (; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++) {
        bool room = n->digits < (UINT64_MAX - 9) / 10;
        if (room)
            n->digits = n->digits * 10 + (uint64_t)(*j->at - '0');
        if (room == fraction && n->exponent > -1000000 && n->exponent < 1000000)
            n->exponent += fraction ? -1 : 1;
    }
    return j->at > from || bad(j, "a digit was expected");
}

bool sn_json_number(sn_json *j, sn_json_num *out)
{
    *out = (sn_json_num){0};
    if (sn_json_peek(j) != SN_JSON_NUMBER)
        return bad(j, "a number was expected");
    if (*j->at == '-') {
        out->negative = true;
        j->at++;
    }
    bool zero = j->at < j->end && *j->at == '0';
    if (zero)
        j->at++;
    else if (!digits(j, out, false))
        return false;
    if (j->at < j->end && *j->at == '.') {
        j->at++;
        if (!digits(j, out, true))
            return false;
    }
    if (j->at < j->end && (*j->at == 'e' || *j->at == 'E')) {
        j->at++;
        bool minus = j->at < j->end && *j->at == '-';
        if (j->at < j->end && (*j->at == '-' || *j->at == '+'))
            j->at++;
        sn_json_num e = {0};
        if (!digits(j, &e, false))
            return false;
        int exponent = e.digits < 100000 && !e.exponent ? (int)e.digits : 100000;
        out->exponent += minus ? -exponent : exponent;
    }
    return true;
}

static bool word(sn_json *j, const char *w)
{
    size_t n = strlen(w);
    if (look(j) < 0 || (size_t)(j->end - j->at) < n || memcmp(j->at, w, n) != 0)
        return bad(j, "a value was expected");
    j->at += n;
    return true;
}

bool sn_json_bool(sn_json *j, bool *out)
{
    *out = look(j) == 't';
    return word(j, *out ? "true" : "false");
}

double sn_json_double(sn_json_num n)
{
    double v = (double)n.digits, ten = n.exponent < 0 ? 0.1 : 10;
    int e = n.exponent < 0 ? -n.exponent : n.exponent;
    if (n.digits == 0 || e > 400)
        v = n.exponent < 0 || n.digits == 0 ? 0 : 1e308;
    else if (e <= 22 && n.exponent < 0) { /* both exact: one rounding */
        double scale = 1;
        for (int k = 0; k < e; k++)
            scale *= 10;
        v /= scale;
    } else {
        for (int k = 0; k < e; k++)
            v *= ten;
    }
    v = v > 1e308 ? 1e308 : v;
    return n.negative ? -v : v;
}

bool sn_json_scaled(sn_json_num n, int shift, uint64_t *out)
{
    int e = n.exponent + shift;
    uint64_t v = n.digits;
    *out = 0;
    if (n.negative && v)
        return false;
    for (; e > 0 && v; e--)
        if (__builtin_mul_overflow(v, (uint64_t)10, &v))
            return false;
    uint64_t dropped = 0;
    for (; e < 0 && v; e++) {
        dropped = v % 10;
        v /= 10;
    }
    *out = v + (e == 0 && dropped >= 5);
    return true;
}

/* ------------------------------------------------------------------ any value */
static bool scalar(sn_json *j, sn_json_kind kind)
{
    sn_json_num n;
    bool b;
    switch (kind) {
    case SN_JSON_STRING:
        return scan_string(j, &b);
    case SN_JSON_NUMBER:
        return sn_json_number(j, &n);
    case SN_JSON_BOOL:
        return sn_json_bool(j, &b);
    case SN_JSON_NULL:
        return word(j, "null");
    default:
        return bad(j, "a value was expected");
    }
}

/* A key without keeping it. */
static bool skip_key(sn_json *j)
{
    bool escapes;
    if (!scan_string(j, &escapes))
        return false;
    if (look(j) != ':')
        return bad(j, "a colon was expected");
    j->at++;
    return true;
}

bool sn_json_skip(sn_json *j)
{
    bool object[SN_JSON_MAX_DEPTH + 1];
    int open = 0;
    do {
        sn_json_kind kind = sn_json_peek(j);
        if (kind == SN_JSON_OBJECT || kind == SN_JSON_ARRAY) {
            object[open] = kind == SN_JSON_OBJECT;
            if (!(object[open] ? sn_json_object(j) : sn_json_array(j)))
                return false;
            open++;
        } else if (!scalar(j, kind)) {
            return false;
        }
        while (open && !next(j, object[open - 1] ? '}' : ']')) {
            if (j->problem)
                return false;
            open--;
        }
        if (open && object[open - 1] && !skip_key(j))
            return false;
    } while (open);
    return true;
}

bool sn_json_end(sn_json *j)
{
    space(j);
    if (j->problem)
        return false;
    return j->at == j->end || bad(j, "more follows after the end");
}
