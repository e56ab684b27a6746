/* SPDX-License-Identifier: Apache-2.0 */
/* Which databases are open, and in which process they were opened. SQLite remembers by file which
 * locks its process has. A forked child inherits that memory but not the locks: a database that was
 * open at the fork, and is opened again in the child, would be written to without a lock. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fork_lock.h"
#include "history/history.h"

struct sn_history_file {
    dev_t device;
    ino_t number;
    pid_t owner;
    struct sn_history_file *next;
};

static struct {
    pthread_once_t once;
    sn_fork_lock lock;
    sn_history_file *first;
} files = {.once = PTHREAD_ONCE_INIT};

static void init_lock(void)
{
    sn_fork_lock_init(&files.lock);
}

sonde_status sn_history_may_open(const char *path, sonde_error *err)
{
    struct stat s;
    bool inherited = false;
    if (stat(path, &s) != 0)
        return SONDE_OK;
    pthread_once(&files.once, init_lock);
    sn_fork_lock_take(&files.lock);
    for (const sn_history_file *f = files.first; f && !inherited; f = f->next)
        inherited = f->device == s.st_dev && f->number == s.st_ino && f->owner != getpid();
    sn_fork_lock_give(&files.lock);
    return inherited ? sn_fail(err, SONDE_INVALID_ARGUMENT,
                               "the history '%s' was open when this process was forked, and locks "
                               "of files do not survive that: close it before the fork, or start "
                               "the process anew (spawn)",
                               path)
                     : SONDE_OK;
}

sonde_status sn_history_opened(const char *path, sn_history_file **file, sonde_error *err)
{
    struct stat s;
    *file = NULL;
    if (stat(path, &s) != 0)
        return SONDE_OK;                    /* somebody removed it */
    sn_history_file *f = malloc(sizeof *f); /* may outlive its context, in a child */
    if (!f)
        return sn_fail_memory(err, sizeof *f);
    pthread_once(&files.once, init_lock);
    sn_fork_lock_take(&files.lock);
    *f = (sn_history_file){s.st_dev, s.st_ino, getpid(), files.first};
    files.first = *file = f;
    sn_fork_lock_give(&files.lock);
    return SONDE_OK;
}

/* In a child the parent's stays in the list: SQLite does not forget it either. */
void sn_history_closed(sn_history_file *file)
{
    if (!file || file->owner != getpid())
        return;
    sn_fork_lock_take(&files.lock);
    for (sn_history_file **at = &files.first; *at; at = &(*at)->next)
        if (*at == file) {
            *at = file->next;
            break;
        }
    sn_fork_lock_give(&files.lock);
    free(file);
}
