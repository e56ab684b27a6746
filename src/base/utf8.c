/* SPDX-License-Identifier: Apache-2.0 */
/* Shortest forms only, no surrogates, nothing past U+10FFFF: what one reader accepts no other reads
 * differently. */
#include "base/utf8.h"

size_t sn_utf8_char(const unsigned char *s, size_t n, uint32_t *code)
{
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    size_t len = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || n < len)
        return 0;
    uint32_t c = s[0] & (0xFFu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3Fu);
    }
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (c < smallest[len] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return 0;
    *code = c;
    return len;
}

char *sn_utf8_put(char *dst, uint32_t c)
{
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        c = 0xFFFD;
    if (c < 0x80) {
        *dst++ = (char)c;
        return dst;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t leads[] = {0, 0xC0, 0xE0, 0xF0};
    *dst++ = (char)(leads[more] | c >> (6 * more));
    while (more-- > 0)
        *dst++ = (char)(0x80 | (c >> (6 * more) & 63));
    return dst;
}
