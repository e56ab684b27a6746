/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions in the RE2 dialect, as far as RegexFullMatch and Tokenizer need them: a
 * pattern becomes a small program, run over all its states at once, so that time is linear in the
 * text whatever the pattern. No captures, no back references; \p{…} classes are not known. */
#ifndef SN_BASE_REGEX_H
#define SN_BASE_REGEX_H

#include "base/arena.h"

typedef enum sn_regex_op {
    SN_REGEX_RANGES, /* a code point in (or not in) ranges[first … first + n) */
    SN_REGEX_JUMP,   /* go to pc + x */
    SN_REGEX_SPLIT,  /* both pc + x and pc + y */
    SN_REGEX_BEGIN,
    SN_REGEX_END,
    SN_REGEX_WORD_EDGE,
    SN_REGEX_NOT_WORD_EDGE,
    SN_REGEX_MATCH
} sn_regex_op;

typedef struct sn_regex_instr {
    sn_regex_op op;
    bool negate;
    int32_t x, y;
    uint32_t first, n;
} sn_regex_instr;

typedef struct sn_regex_range {
    uint32_t lo, hi;
} sn_regex_range;

typedef struct sn_regex {
    sn_regex_instr *code;
    sn_regex_range *ranges;
    uint32_t n, cap, n_ranges, cap_ranges;
} sn_regex;

/* NULL, or what is wrong with the pattern. The program lives in the arena. */
const char *sn_regex_compile(sn_regex *r, const char *pattern, sn_arena *arena);
size_t sn_regex_workspace(const sn_regex *r);
/* How many bytes the longest match that begins at `from` has; SN_REGEX_NONE: there is none. */
#define SN_REGEX_NONE SIZE_MAX
size_t sn_regex_longest(const sn_regex *r, const char *text, size_t size, size_t from,
                        void *workspace);
/* Does the whole text match? Bytes that are not UTF-8 count as code points of their own. */
bool sn_regex_full_match(const sn_regex *r, const char *text, size_t size, void *workspace);

#endif
