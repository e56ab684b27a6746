/* SPDX-License-Identifier: Apache-2.0 */
/* What the library warns of becomes Python's warnings. It may warn on any thread, without the GIL:
 * lines wait here until a call that holds it asks for them. */
#include "binding.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 32 }; /* lines that wait; more say nothing new */

static struct {
    pthread_mutex_t lock;
    char *lines[MOST];
    size_t n;
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep(void *user, int level, const char *line)
{
    (void)user, (void)level;
    pthread_mutex_lock(&waiting.lock);
    char *copy = waiting.n < MOST ? strdup(line) : NULL;
    if (copy)
        waiting.lines[waiting.n++] = copy;
    pthread_mutex_unlock(&waiting.lock);
}

void sn_py_watch_warnings(void)
{
    sonde_default_log(keep, NULL);
}

int sn_py_warn(int stack_level)
{
    char *lines[MOST];
    pthread_mutex_lock(&waiting.lock);
    const size_t n = waiting.n;
    memcpy(lines, waiting.lines, n * sizeof *lines);
    waiting.n = 0;
    pthread_mutex_unlock(&waiting.lock);
    int status = 0;
    for (size_t i = 0; i < n; i++) {
        PyObject *text = status ? NULL : sn_py_shown(lines[i]);
        PyObject *bytes =
            text ? PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace") : NULL;
        const char *shown = bytes ? PyBytes_AsString(bytes) : NULL;
        if (!status && (!shown || PyErr_WarnEx(PyExc_RuntimeWarning, shown, stack_level) < 0))
            status = -1; /* a filter may make errors of them */
        Py_XDECREF(bytes);
        Py_XDECREF(text);
        free(lines[i]);
    }
    return status;
}
