/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C while a run goes on. Python's own handler only notes the signal; what follows from it is
 * for the main thread to find out, which is busy in the library. So the library asks it, between
 * two steps of a run that takes long: short runs are never asked, and nothing is installed
 * anywhere. */
#include "binding.h"

#include <sys/syscall.h>
#include <unistd.h>

/* Non-zero: a signal handler raised (KeyboardInterrupt, for one). On any other thread than the
 * process's first Python calls no handlers: its lock is left alone. */
static int ask_python(void *user)
{
    sn_py_unlocked *u = user;
    if (syscall(SYS_gettid) != (long)getpid())
        return 0;
    PyEval_RestoreThread(u->state);
    const int raised = PyErr_CheckSignals();
    u->state = PyEval_SaveThread();
    return raised < 0;
}

void sn_py_unlock(sn_py_unlocked *u, sonde_run_options *options)
{
    options->interrupt = ask_python;
    options->interrupt_user = u;
    u->state = PyEval_SaveThread();
}

int sn_py_lock(sn_py_unlocked *u, sonde_status status, const sonde_error *err)
{
    PyEval_RestoreThread(u->state);
    if (PyErr_Occurred()) /* the handler's exception says why the run was cancelled */
        return -1;
    if (status == SONDE_OK)
        return 0;
    sn_py_raise(err);
    return -1;
}
