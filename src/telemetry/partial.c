/* SPDX-License-Identifier: Apache-2.0 */
/* Replies come from anybody: they are read with the strict JSON reader, and what cannot be printed
 * becomes a question mark. */
#include "telemetry/partial.h"

#include "base/json.h"

static void copy_printable(char *to, size_t room, const char *from, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n && k + 1 < room; i++)
        to[k++] = from[i] >= ' ' && from[i] < 0x7f ? from[i] : '?';
    to[k] = 0;
}

static void take_message(sn_json *j, char *message, size_t room)
{
    sn_json_text text;
    if (sn_json_peek(j) == SN_JSON_STRING && sn_json_string(j, &text))
        copy_printable(message, room, text.data, text.n);
    else
        sn_json_skip(j);
}

/* A number, or a text of one: JSON has integers of 64 bits as texts. */
static void take_number(sn_json *j, uint64_t *number)
{
    sn_json_num n;
    sn_json_text text;
    if (sn_json_peek(j) == SN_JSON_NUMBER && sn_json_number(j, &n)) {
        (void)sn_json_scaled(n, 0, number);
    } else if (sn_json_peek(j) == SN_JSON_STRING && sn_json_string(j, &text)) {
        uint64_t value = 0;
        for (size_t i = 0; i < text.n && text.data[i] >= '0' && text.data[i] <= '9' && i < 18; i++)
            value = value * 10 + (uint64_t)(text.data[i] - '0');
        *number = value;
    } else {
        sn_json_skip(j);
    }
}

static bool is_either(sn_json_text key, const char *one, const char *other)
{
    return sn_json_is(key, one) || sn_json_is(key, other);
}

void sn_partial_read(const char *body, size_t bytes, sn_allocator *alloc, uint64_t *rejected,
                     char *message, size_t room)
{
    sn_arena arena;
    sn_json j;
    sn_json_text key;
    *rejected = 0;
    message[0] = 0;
    sn_arena_init(&arena, alloc);
    sn_json_init(&j, body, bytes, &arena);
    if (sn_json_peek(&j) == SN_JSON_OBJECT)
        for (sn_json_object(&j); sn_json_member(&j, &key);) {
            if (!is_either(key, "partialSuccess", "partial_success") ||
                sn_json_peek(&j) != SN_JSON_OBJECT) {
                sn_json_skip(&j);
                continue;
            }
            for (sn_json_object(&j); sn_json_member(&j, &key);)
                if (is_either(key, "rejectedSpans", "rejected_spans"))
                    take_number(&j, rejected);
                else if (is_either(key, "errorMessage", "error_message"))
                    take_message(&j, message, room);
                else
                    sn_json_skip(&j);
        }
    sn_arena_free(&arena);
}

void sn_refusal_read(const char *body, size_t bytes, sn_allocator *alloc, char *message,
                     size_t room)
{
    sn_arena arena;
    sn_json j;
    sn_json_text key;
    message[0] = 0;
    sn_arena_init(&arena, alloc);
    sn_json_init(&j, body, bytes, &arena);
    if (sn_json_peek(&j) == SN_JSON_OBJECT) {
        for (sn_json_object(&j); sn_json_member(&j, &key);)
            if (sn_json_is(key, "message"))
                take_message(&j, message, room);
            else
                sn_json_skip(&j);
    } else {
        size_t n = 0;
        while (n < bytes && body[n] != '\n' && body[n] != '\r')
            n++;
        copy_printable(message, room < 200 ? room : 200, body, n);
    }
    sn_arena_free(&arena);
}
