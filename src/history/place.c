/* SPDX-License-Identifier: Apache-2.0 */
/* Where the history lies, and what this machine is called. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "history/history.h"

/* Makes the folders above the last name. Whether that worked shows when the file is opened. */
static void make_folders(char *path)
{
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            (void)mkdir(path, 0700);
            *p = '/';
        }
}

static sonde_status join(const char *head, const char *tail, sn_allocator *alloc, char **out,
                         size_t *bytes, sonde_error *err)
{
    const size_t a = strlen(head), b = strlen(tail);
    if (a + b >= SN_PATH_BYTES)
        return sn_fail(err, SONDE_IO, "the path of the history is too long");
    *bytes = a + b + 1;
    *out = sn_alloc(alloc, *bytes);
    if (!*out)
        return sn_fail_memory(err, *bytes);
    memcpy(*out, head, a);
    memcpy(*out + a, tail, b + 1);
    return SONDE_OK;
}

sonde_status sn_history_place(const char *path, bool make, sn_allocator *alloc, char **out,
                              size_t *bytes, sonde_error *err)
{
    const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    const char *named = getenv("SONDE_HISTORY");
    if (!path || !*path)
        path = named;
    if (path && *path) /* SQLite takes ":memory:" and "file:…" for something else than names */
        return join(*path == '/' ? "" : "./", path, alloc, out, bytes, err);
    if (xdg && xdg[0] == '/') /* relative ones are to be ignored, says the standard */
        SN_TRY(join(xdg, "/sonde/history.db", alloc, out, bytes, err));
    else if (home && home[0] == '/')
        SN_TRY(join(home, "/.local/share/sonde/history.db", alloc, out, bytes, err));
    else
        return sn_fail(
            err, SONDE_NOT_FOUND,
            "there is no place for the history: neither SONDE_HISTORY, XDG_DATA_HOME nor "
            "HOME names one; give the path of a database");
    if (make)
        make_folders(*out);
    return SONDE_OK;
}

void sn_history_host(char *text, size_t bytes)
{
    const char *said = getenv("SONDE_MACHINE");
    if (said && *said) {
        const size_t n = strlen(said) < bytes ? strlen(said) : bytes - 1;
        memcpy(text, said, n);
        text[n] = 0;
    } else {
        if (gethostname(text, bytes) != 0)
            text[0] = 0;
        text[bytes - 1] = 0; /* a name that was cut need not end */
    }
}
