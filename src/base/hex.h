/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal digits, and text in which some characters are written "%2C". */
#ifndef SN_BASE_HEX_H
#define SN_BASE_HEX_H

#include <stddef.h>

/* 0 to 15; -1: it is none. */
static inline int sn_hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The byte that stands at `s`, of which `n` (at least 1) bytes are left; *used: how many it took. A
 * '%' that no two digits follow stands for itself. */
static inline int sn_percent_byte(const char *s, size_t n, size_t *used)
{
    const int high = *s == '%' && n > 2 ? sn_hex_digit(s[1]) : -1;
    const int low = high >= 0 ? sn_hex_digit(s[2]) : -1;
    *used = low >= 0 ? 3 : 1;
    return low >= 0 ? high << 4 | low : (unsigned char)*s;
}

#endif
