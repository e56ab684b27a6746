/* SPDX-License-Identifier: Apache-2.0 */
/* What readers look for at the beginning of a file. */
#include "profile_readers/reader.h"

#include <string.h>

bool sn_profile_sniff_has(const char *head, size_t bytes, const char *word)
{
    return memmem(head, bytes, word, strlen(word)) != NULL;
}

char sn_profile_sniff_first(const char *head, size_t bytes)
{
    size_t i = bytes >= 3 && memcmp(head, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    while (i < bytes && strchr(" \t\r\n", head[i]) && head[i])
        i++;
    return i < bytes ? head[i] : 0;
}
