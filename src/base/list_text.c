/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names of whole items; see list_text.h. */
#include "base/list_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ELLIPSIS "\xE2\x80\xA6" /* … */
enum { TAIL = 48 };             /* " … and at least 18446744073709551615 more" */

static size_t room_of(const sn_list_text *l)
{
    const size_t room = l->room ? l->room : SN_LIST_USUAL;
    return (room < SN_LIST_BYTES ? room : SN_LIST_BYTES) - TAIL;
}

void sn_list_add(sn_list_text *l, const char *fmt, ...)
{
    char item[SN_LIST_ITEM + sizeof ELLIPSIS] = "";
    va_list args;
    va_start(args, fmt);
    const int whole = vsnprintf(item, SN_LIST_ITEM + 1, fmt, args);
    va_end(args);
    size_t bytes = strlen(item);
    if (whole > SN_LIST_ITEM) {
        /* The character that the cut went through goes whole. */
        size_t start = bytes;
        while (start > 0 && ((unsigned char)item[start - 1] & 0xC0) == 0x80)
            start--;
        const unsigned char lead = start > 0 ? (unsigned char)item[start - 1] : 0;
        const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
        if (lead >= 0xC0 && bytes - (start - 1) < length)
            bytes = start - 1;
        memcpy(item + bytes, ELLIPSIS, sizeof ELLIPSIS);
        bytes += sizeof ELLIPSIS - 1;
    }
    const size_t comma = l->n ? 2 : 0;
    if (l->left || l->n + comma + bytes >= room_of(l)) { /* the first ones, without gaps */
        l->left++;
        return;
    }
    memcpy(l->text + l->n, ", ", comma);
    memcpy(l->text + l->n + comma, item, bytes + 1);
    l->n += comma + bytes;
}

const char *sn_list_end(sn_list_text *l)
{
    if (l->left || l->at_least)
        snprintf(l->text + l->n, sizeof l->text - l->n, "%s" ELLIPSIS " and %s%zu more",
                 l->n ? " " : "", l->at_least ? "at least " : "", l->left + l->at_least);
    return l->text;
}
