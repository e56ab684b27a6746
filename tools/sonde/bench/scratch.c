/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of temporary files. On Ctrl-C the measuring loops notice, end their process, and the
 * folder goes with the program, whichever way it exits. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/child.h"
#include "tool.h"

static char *folder;
static pid_t owner;

static void remove_all(const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        char *item = text_of("%s/%s", path, e->d_name);
        if (e->d_type == DT_DIR)
            remove_all(item);
        else
            unlink(item);
        free(item);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}

/* A forked helper that exits leaves the folder to its parent. */
static void on_exit_remove(void)
{
    if (folder && getpid() == owner)
        remove_all(folder);
    free(folder);
    folder = NULL;
}

const char *scratch_open(void)
{
    const char *base = getenv("TMPDIR");
    char *path = text_of("%s/sonde-bench-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(path)) {
        (void)fail("cannot create the temporary folder '%s': %s", path, strerror(errno));
        free(path);
        return NULL;
    }
    folder = path;
    owner = getpid();
    atexit(on_exit_remove);
    struct sigaction action = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &action, NULL); /* a process that stopped listening is an answer */
    return interrupt_keep() ? NULL : folder;
}

const char *scratch_folder(void)
{
    return folder;
}

char *scratch_path(const char *name)
{
    return text_of("%s/%s", folder, name);
}
