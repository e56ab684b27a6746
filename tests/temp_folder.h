/* SPDX-License-Identifier: Apache-2.0 */
/* Folders for the files of a test: made empty, removed with all that is in them.
 *     char dir[TEMP_PATH];
 *     temp_make(dir);
 *     …
 *     temp_remove(dir);
 * Tests that share one folder ask for in_dir("name"); it is gone when the program ends. */
#ifndef SONDE_TESTS_TEMP_FOLDER_H
#define SONDE_TESTS_TEMP_FOLDER_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEMP_PATH = 64 };

static inline void temp_make(char path[TEMP_PATH])
{
    const char *where = getenv("TMPDIR");
    if (!where || strlen(where) > TEMP_PATH - sizeof "/sonde-test-XXXXXX")
        where = "/tmp";
    snprintf(path, TEMP_PATH, "%s/sonde-test-XXXXXX", where);
    if (!mkdtemp(path))
        abort();
}

/* Takes over `at`, an open folder. */
static inline void temp_empty(int at)
{
    DIR *d = fdopendir(at);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (unlinkat(at, e->d_name, 0) == 0)
            continue;
        const int inner = openat(at, e->d_name, O_RDONLY | O_DIRECTORY);
        if (inner >= 0)
            temp_empty(inner);
        (void)unlinkat(at, e->d_name, AT_REMOVEDIR);
    }
    if (d)
        closedir(d);
}

/* False: something is left. */
static inline bool temp_remove(const char *path)
{
    const int at = open(path, O_RDONLY | O_DIRECTORY);
    if (at >= 0)
        temp_empty(at);
    return rmdir(path) == 0;
}

/* Entries of a folder, -1 where there is none. */
static inline int temp_count(const char *path)
{
    int n = -1;
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d)
        closedir(d);
    return d ? n + 1 : -1;
}

static char in_dir_path[TEMP_PATH];
static pid_t in_dir_owner; /* not a child that was forked */

static inline void in_dir_remove(void)
{
    if (in_dir_owner == getpid())
        temp_remove(in_dir_path);
}

/* The folder itself. */
static inline const char *the_dir(void)
{
    if (!in_dir_owner) {
        temp_make(in_dir_path);
        in_dir_owner = getpid();
        atexit(in_dir_remove);
    }
    return in_dir_path;
}

/* A path in it, in one of a few static buffers. */
static inline const char *in_dir(const char *name)
{
    static char path[8][512];
    static int turn;
    char *p = path[turn++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", the_dir(), name);
    return p;
}

#endif
