/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, one character at a time: what every reader and writer of text needs. */
#ifndef SN_BASE_UTF8_H
#define SN_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* One UTF-8 character of the n > 0 bytes at s: its length, 0 when they are not one. */
size_t sn_utf8_char(const unsigned char *s, size_t n, uint32_t *code);
/* A character as UTF-8, at most four bytes; what is no character becomes U+FFFD. Returns the end.
 */
char *sn_utf8_put(char *dst, uint32_t c);

#endif
