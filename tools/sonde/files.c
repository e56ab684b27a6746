/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders by their paths. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sonde/experimental/file.h"
#include "tool.h"

const sonde_load_options unmapped = {.struct_size = sizeof unmapped, .no_mmap = 1};

bool is_zoo(const char *model)
{
    return strncmp(model, "zoo:", 4) == 0;
}

bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    if (strcmp(a, b) == 0)
        return true;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
           S_ISREG(x.st_mode);
}

int check_outputs(const char *const *written, size_t n, const list *read)
{
    for (size_t i = 0; i < n; i++) {
        if (!written[i] || strcmp(written[i], "-") == 0)
            continue;
        for (size_t k = 0; k < i; k++)
            if (written[k] && same_file(written[i], written[k]))
                return fail_usage("'%s' cannot take two results", written[i]);
        for (size_t k = 0; k < read->n; k++)
            if (same_file(written[i], read->items[k]))
                return fail_usage("'%s' is read and cannot take a result", written[i]);
    }
    return EXIT_OK;
}

int write_text(const char *path, const char *data, size_t bytes)
{
    sonde_error err;
    if (strcmp(path, "-") != 0)
        return sonde_file_write(path, data, bytes, &err) ? fail("%s", err.message) : EXIT_OK;
    errno = 0;
    if (fwrite(data, 1, bytes, stdout) == bytes && fflush(stdout) == 0)
        return EXIT_OK;
    return fail("cannot write to standard output: %s",
                errno ? strerror(errno) : "the write failed");
}

/* ------------------------------------------------------------------ before writing */
static bool may(const char *path, int what)
{
    return faccessat(AT_FDCWD, path, what, AT_EACCESS) == 0;
}

/* The folder that holds `path`, from malloc. */
static char *folder_of(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n ? text_of("%.*s", (int)n, path) : text_of(".");
}

static int check_new(const char *path)
{
    struct stat st;
    char *folder = folder_of(path);
    int code = -1;
    if (stat(folder, &st) != 0 && errno == ENOENT)
        code = fail_usage("cannot write '%s': the folder '%s' does not exist", path, folder);
    else if (stat(folder, &st) != 0 && errno != ENOTDIR)
        code = fail_usage("cannot write '%s': %s", path, strerror(errno));
    else if (!is_folder(folder))
        code = fail_usage("cannot write '%s': '%s' is not a folder", path, folder);
    else if (!may(folder, W_OK | X_OK))
        code = fail_usage("cannot write '%s': no new file can be made in the folder '%s': %s", path,
                          folder, strerror(errno));
    free(folder);
    return code;
}

int output_check(const char *path)
{
    struct stat st;
    const size_t n = strlen(path);
    if (!n)
        return fail_usage("cannot write '': a file needs a name");
    if (path[0] == '-' && (!path[1] || path[1] == '.'))
        return -1; /* standard output, "-.json" also */
    const bool there = stat(path, &st) == 0;
    if (!there && lstat(path, &st) == 0)
        return -1; /* a link: where it leads is found out by writing */
    if (!there)
        return check_new(path);
    if (S_ISDIR(st.st_mode) && path[n - 1] != '/')
        return fail_usage("cannot write '%s': it is a folder", path);
    if (!may(path, S_ISDIR(st.st_mode) ? W_OK | X_OK : W_OK))
        return fail_usage("cannot write '%s': %s", path, strerror(errno));
    return -1;
}
