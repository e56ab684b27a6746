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

/* The same file, or the same name in the same folder where there is none yet. Devices and pipes
 * take what they get. */
static bool same_place(const char *a, const char *b)
{
    struct stat x, y;
    const bool there_a = stat(a, &x) == 0, there_b = stat(b, &y) == 0;
    if (there_a && there_b)
        return x.st_dev == y.st_dev && x.st_ino == y.st_ino && S_ISREG(x.st_mode);
    if (there_a != there_b)
        return false;
    const char *name_a = strrchr(a, '/'), *name_b = strrchr(b, '/');
    if (strcmp(name_a ? name_a + 1 : a, name_b ? name_b + 1 : b) != 0)
        return false;
    char *folder_a = folder_of(a), *folder_b = folder_of(b);
    const bool same = stat(folder_a, &x) == 0 && stat(folder_b, &y) == 0 && x.st_dev == y.st_dev &&
                      x.st_ino == y.st_ino;
    free(folder_a);
    free(folder_b);
    return same;
}

/* Is there such a file in a folder whose files are read? */
static bool lies_in(const char *path, const char *folder)
{
    struct stat x, y;
    char *own = folder_of(path);
    const bool in = is_file(path) && is_folder(folder) && stat(own, &x) == 0 &&
                    stat(folder, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    free(own);
    return in;
}

static bool is_stdout(const char *path)
{
    return path[0] == '-' && (!path[1] || path[1] == '.');
}

int check_outputs(const list *written, const list *read)
{
    for (size_t i = 0; i < written->n; i++) {
        const char *path = written->items[i];
        for (size_t k = 0; k < i && !is_stdout(path); k++)
            if (same_place(path, written->items[k]))
                return fail_usage("'%s' cannot take two results", path);
        for (size_t k = 0; k < read->n && !is_stdout(path); k++)
            if ((is_file(path) && same_place(path, read->items[k])) ||
                lies_in(path, read->items[k]))
                return fail_usage("'%s' is read and cannot take a result", path);
    }
    return -1;
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
    if (is_stdout(path))
        return -1; /* "-.json" also */
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
