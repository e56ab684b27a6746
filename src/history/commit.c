/* SPDX-License-Identifier: Apache-2.0 */
/* The commit that is checked out, read from git's files: HEAD names a reference, which is a file of
 * its own or a line of packed-refs. Only what looks like a commit is taken for one. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "sonde/experimental/history.h"

enum { LINE = 1024, FEWEST = 7, MOST = 64, MOST_LINES = 1000000 };

static bool take(const char *word, char *text, size_t bytes)
{
    const size_t n = strspn(word, "0123456789abcdef");
    const char end = word[n];
    if (n < FEWEST || n > MOST || n >= bytes || (end && end != '\n' && end != '\r' && end != ' '))
        return false;
    memcpy(text, word, n);
    text[n] = 0;
    return true;
}

/* The first line of a regular file, without its end. */
static bool read_line(const char *folder, const char *name, char line[LINE])
{
    char path[SN_PATH_BYTES];
    struct stat s;
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path || stat(path, &s) != 0 || !S_ISREG(s.st_mode))
        return false;
    FILE *f = fopen(path, "re");
    const bool fine = f && fgets(line, LINE, f);
    if (f)
        fclose(f);
    if (fine)
        line[strcspn(line, "\r\n")] = 0;
    return fine;
}

/* A path in a file of git's, which may be relative to the folder of that file. */
static void resolve(const char *folder, const char *path, char out[SN_PATH_BYTES])
{
    const int n = path[0] == '/' ? snprintf(out, SN_PATH_BYTES, "%s", path)
                                 : snprintf(out, SN_PATH_BYTES, "%s/%s", folder, path);
    if (n < 0 || n >= SN_PATH_BYTES)
        out[0] = 0;
}

static bool find_packed(const char *git, const char *reference, char *text, size_t bytes)
{
    char path[SN_PATH_BYTES], line[LINE];
    resolve(git, "packed-refs", path);
    struct stat s;
    FILE *f = stat(path, &s) == 0 && S_ISREG(s.st_mode) ? fopen(path, "re") : NULL;
    bool found = false;
    for (int k = 0; f && !found && k < MOST_LINES && fgets(line, sizeof line, f); k++) {
        const size_t n = strspn(line, "0123456789abcdef");
        line[strcspn(line, "\r\n")] = 0;
        found = line[n] == ' ' && strcmp(line + n + 1, reference) == 0 && take(line, text, bytes);
    }
    if (f)
        fclose(f);
    return found;
}

/* `git`: the folder of git's files, of a worktree its own. */
static bool read_head(const char *git, char *text, size_t bytes)
{
    char head[LINE], line[LINE], shared[SN_PATH_BYTES];
    if (!read_line(git, "HEAD", head))
        return false;
    if (strncmp(head, "ref: ", 5) != 0)
        return take(head, text, bytes);
    const char *reference = head + 5;
    if (strncmp(reference, "refs/", 5) != 0 || strstr(reference, ".."))
        return false;
    if (read_line(git, reference, line))
        return take(line, text, bytes);
    snprintf(shared, sizeof shared, "%s", git);
    if (read_line(git, "commondir", line))
        resolve(git, line, shared);
    return (read_line(shared, reference, line) && take(line, text, bytes)) ||
           find_packed(shared, reference, text, bytes);
}

/* What lies in `folder` as .git: a folder, or a file that names one. */
static bool find_git(const char *folder, char git[SN_PATH_BYTES])
{
    struct stat s;
    char line[LINE];
    resolve(folder, ".git", git);
    if (!*git || stat(git, &s) != 0)
        return false;
    if (S_ISDIR(s.st_mode))
        return true;
    if (!read_line(folder, ".git", line) || strncmp(line, "gitdir: ", 8) != 0)
        return false;
    resolve(folder, line + 8, git);
    return *git;
}

static bool find_above(const char *folder, char *text, size_t bytes)
{
    char git[SN_PATH_BYTES], at[SN_PATH_BYTES];
    char *real = realpath(folder ? folder : ".", NULL);
    snprintf(at, sizeof at, "%s", real ? real : "");
    free(real);
    while (*at) {
        if (find_git(strcmp(at, "/") == 0 ? "" : at, git))
            return read_head(git, text, bytes);
        char *slash = strrchr(at, '/');
        if (!slash || !at[1])
            return false;
        slash[slash == at] = 0; /* "/a" ► "/" */
    }
    return false;
}

const char *sonde_commit_find(const char *folder, char *text, size_t bytes)
{
    static const char *const variables[] = {"GITHUB_SHA", "CI_COMMIT_SHA"};
    if (!text || !bytes)
        return "";
    text[0] = 0;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *said = getenv(variables[i]);
        if (said && take(said, text, bytes))
            return text;
    }
    if (!find_above(folder, text, bytes))
        text[0] = 0;
    return text;
}
