/* SPDX-License-Identifier: Apache-2.0 */
/* A strict JSON cursor (RFC 8259, UTF-8 checked) over bytes in memory. The caller asks for what it
 * expects and skips the rest; nothing is built, so a file of any size takes no memory:
 *
 *     sn_json_text key;
 *     for (sn_json_object(&j); sn_json_member(&j, &key);)
 *         if (sn_json_is(key, "ts"))
 *             sn_json_number(&j, &n);
 *         else
 *             sn_json_skip(&j);
 *
 * The first thing that is not as asked for is kept with its place; every later call then says false
 * and moves nothing, so loops end and only the end has to look. */
#ifndef SN_BASE_JSON_H
#define SN_BASE_JSON_H

#include "base/arena.h"

enum { SN_JSON_MAX_DEPTH = 64 };

typedef struct sn_json {
    const uint8_t *start, *at, *end;
    sn_arena *arena;     /* of texts that contain escapes */
    int depth;           /* of open objects and arrays */
    bool first;          /* nothing of the innermost one has been read yet */
    bool zero;           /* a text so far has the character 0, which was read as U+FFFD */
    const char *problem; /* NULL: none so far */
} sn_json;

/* Not terminated; belongs to the file or to the arena. */
typedef struct sn_json_text {
    const char *data;
    size_t n;
} sn_json_text;

typedef enum sn_json_kind {
    SN_JSON_BAD,
    SN_JSON_NULL,
    SN_JSON_BOOL,
    SN_JSON_NUMBER,
    SN_JSON_STRING,
    SN_JSON_ARRAY,
    SN_JSON_OBJECT
} sn_json_kind;

/* A number as it is written: ±digits · 10^exponent. At most 19 digits are kept. */
typedef struct sn_json_num {
    uint64_t digits;
    int exponent;
    bool negative;
} sn_json_num;

void sn_json_init(sn_json *j, const void *data, size_t bytes, sn_arena *arena);
sn_json_kind sn_json_peek(sn_json *j); /* of the value that comes next */

bool sn_json_object(sn_json *j);                    /* steps into one */
bool sn_json_member(sn_json *j, sn_json_text *key); /* the next one, or out of the object */
bool sn_json_array(sn_json *j);
bool sn_json_item(sn_json *j);

bool sn_json_string(sn_json *j, sn_json_text *out);
bool sn_json_number(sn_json *j, sn_json_num *out);
bool sn_json_bool(sn_json *j, bool *out);
bool sn_json_skip(sn_json *j); /* any value, checked */
bool sn_json_end(sn_json *j);  /* nothing but white space follows */

/* SONDE_OK, or the problem and its byte as SONDE_INVALID_ARGUMENT. */
sonde_status sn_json_status(const sn_json *j, sonde_error *err);

bool sn_json_is(sn_json_text text, const char *word);
double sn_json_double(sn_json_num n);
/* The number times 10^shift, rounded; false when it is negative or too large. */
bool sn_json_scaled(sn_json_num n, int shift, uint64_t *out);

#endif
