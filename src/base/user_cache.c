/* SPDX-License-Identifier: Apache-2.0 */
/* Where what is kept between runs lies unless somebody names another folder. */
#include <stdio.h>
#include <stdlib.h>

#include "base/cache.h"

size_t sn_cache_user_folder(char *path, size_t bytes)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = 0;
    if (xdg && xdg[0] == '/') /* relative ones are to be ignored, says the standard */
        n = snprintf(path, bytes, "%s/sonde", xdg);
    else if (home && home[0] == '/')
        n = snprintf(path, bytes, "%s/.cache/sonde", home);
    return n > 0 && (size_t)n < bytes ? (size_t)n : 0;
}
