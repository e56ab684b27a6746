/* SPDX-License-Identifier: Apache-2.0 */
/* What another form of a session's model would give, measured. */
#include "binding.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sonde/experimental/whatif.h"

enum { MOST_FEEDS = 4096 };

typedef struct question {
    sonde_whatif_options o;
    sn_py_feed *feeds;
    sonde_value **values;
    const char **names, **only;
    size_t n;
    PyObject *held; /* owners of the names */
} question;

static void question_free(question *q)
{
    for (size_t i = 0; i < q->n; i++)
        sn_py_feed_clear(&q->feeds[i]);
    PyMem_Free(q->feeds);
    PyMem_Free(q->values);
    PyMem_Free((void *)q->names);
    PyMem_Free((void *)q->only);
    Py_XDECREF(q->held);
}

static const sn_py_port *port_named(const sn_py_session *s, const char *name)
{
    for (size_t i = 0; i < s->n_inputs; i++)
        if (strcmp(s->inputs[i].utf8, name) == 0)
            return &s->inputs[i];
    return NULL;
}

/* The bytes of a name; the question holds them. */
static const char *hold_name(question *q, PyObject *name)
{
    PyObject *owner;
    const char *text = sn_py_name_bytes(name, &owner);
    if (!text)
        return NULL;
    const int kept = PyList_Append(q->held, owner);
    Py_DECREF(owner);
    return kept < 0 ? NULL : text;
}

static int add_feed(question *q, const sn_py_session *s, PyObject *pair)
{
    PyObject *name, *array;
    if (!PyArg_ParseTuple(pair, "OO", &name, &array))
        return -1;
    const char *text = hold_name(q, name);
    if (!text)
        return -1;
    sn_py_feed *f = &q->feeds[q->n];
    if (sn_py_feed_make(f, array, port_named(s, text)) < 0)
        return -1;
    q->names[q->n] = text;
    q->values[q->n++] = f->value;
    return sn_py_feed_own_integers(f, array) < 0 ? -1 : (q->values[q->n - 1] = f->value, 0);
}

static int read_feeds(question *q, const sn_py_session *s, PyObject *list)
{
    const Py_ssize_t n = PyList_Size(list);
    if (n < 0 || n > MOST_FEEDS) {
        PyErr_Format(PyExc_ValueError, "a model with %zd inputs", n);
        return -1;
    }
    q->feeds = PyMem_Calloc((size_t)n + 1, sizeof *q->feeds);
    q->values = PyMem_Calloc((size_t)n + 1, sizeof *q->values);
    q->names = PyMem_Calloc((size_t)n + 1, sizeof *q->names);
    q->held = PyList_New(0);
    if (!q->feeds || !q->values || !q->names || !q->held) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (add_feed(q, s, PyList_GetItem(list, i)) < 0)
            return -1;
    q->o.input_names = q->names;
    q->o.values = q->values;
    q->o.value_count = q->n;
    return 0;
}

/* After read_feeds, which makes the list that holds names. */
static int read_only(question *q, PyObject *tuple)
{
    const Py_ssize_t n = PyTuple_Size(tuple);
    q->only = PyMem_Calloc((size_t)n + 1, sizeof *q->only);
    if (!q->only) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (!(q->only[i] = hold_name(q, PyTuple_GetItem(tuple, i))))
            return -1;
    q->o.only = q->only;
    q->o.only_count = (size_t)n;
    return 0;
}

static PyObject *times(const double *ns, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *item = PyFloat_FromDouble(ns[i] / 1e6);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *row_tuple(const sonde_whatif_row *r, size_t scenarios)
{
    return Py_BuildValue("(NNNNNKKON)", sn_py_text(r->name), sn_py_text(r->op_type),
                         sn_py_text(r->node), sn_py_text(r->shapes), sn_py_text(r->weight),
                         (unsigned long long)r->count, (unsigned long long)r->best,
                         r->bracket ? Py_True : Py_False, times(r->times_ns, scenarios));
}

static PyObject *scenario_dict(const sonde_whatif_scenario *s)
{
    return Py_BuildValue(
        "{s:N,s:d,s:d,s:d,s:d,s:K,s:K,s:L,s:i,s:L,s:s,s:n,s:O,s:N,s:N,s:N}", "scenario",
        sn_py_text(s->name), "total_ms", s->total_ns / 1e6, "speedup", s->speedup, "low", s->low,
        "high", s->high, "weight_bytes", (unsigned long long)s->weight_bytes, "peak_bytes",
        (unsigned long long)s->peak_bytes, "changed", (long long)s->changed, "threads", s->threads,
        "batch", (long long)s->batch, "precision", s->precision, "runs", (Py_ssize_t)s->runs,
        "cached", s->cached ? Py_True : Py_False, "measured", sn_py_text(s->measured), "machine",
        sn_py_text(s->machine), "reason", sn_py_text(s->reason));
}

static int append(PyObject *list, PyObject *item)
{
    const int done = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return done;
}

static PyObject *result_tuple(const sonde_whatif *w, sonde_by by)
{
    const size_t n = sonde_whatif_scenario_count(w);
    PyObject *scenarios = PyList_New(0), *rows = PyList_New(0);
    int done = scenarios && rows ? 0 : -1;
    for (size_t i = 0; i < n && done == 0; i++) {
        sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
        done =
            sonde_whatif_scenario_get(w, i, &s, NULL) ? -1 : append(scenarios, scenario_dict(&s));
    }
    for (size_t i = 0; i < sonde_whatif_row_count(w, by) && done == 0; i++) {
        sonde_whatif_row r = SONDE_INIT(sonde_whatif_row);
        done = sonde_whatif_row_get(w, by, i, &r, NULL) ? -1 : append(rows, row_tuple(&r, n));
    }
    if (done == 0)
        return Py_BuildValue("(NN)", scenarios, rows);
    Py_XDECREF(scenarios);
    Py_XDECREF(rows);
    return NULL;
}

static sonde_status save_all(const sonde_whatif *w, PyObject *paths, sonde_error *err)
{
    sonde_status st = SONDE_OK;
    for (Py_ssize_t i = 0; i < PyTuple_Size(paths) && st == SONDE_OK; i++)
        st = sonde_whatif_save(w, PyBytes_AsString(PyTuple_GetItem(paths, i)), err);
    return st;
}

/* Without the interpreter's lock, which is taken now and then to find out about Ctrl-C. */
typedef struct unlocked {
    PyThreadState *state;
    sonde_cancel_token *token;
} unlocked;

/* Python calls signal handlers on the process's first thread only. */
static void watch(void *user, const char *scenario, double done)
{
    (void)scenario;
    (void)done;
    unlocked *u = user;
    if (syscall(SYS_gettid) != (long)getpid())
        return;
    PyEval_RestoreThread(u->state);
    const int raised = PyErr_Occurred() ? -1 : PyErr_CheckSignals();
    u->state = PyEval_SaveThread();
    if (raised < 0)
        sonde_cancel(u->token);
}

static sonde_status measure(question *q, sonde_model *model, sonde_whatif **w, sonde_error *err)
{
    unlocked u = {.token = q->o.cancel};
    q->o.progress = watch;
    q->o.progress_user = &u;
    u.state = PyEval_SaveThread();
    const sonde_status st = sonde_whatif_measure(model, &q->o, w, err);
    PyEval_RestoreThread(u.state);
    return st;
}

/* (session, feeds, scenarios, only, by, threads, precision, runs, warmup, no_mix, no_cache, folder,
 * paths) */
static PyObject *whatif(PyObject *module, PyObject *args)
{
    (void)module;
    question q = {.o = SONDE_INIT(sonde_whatif_options)};
    PyObject *session, *feeds, *only, *paths;
    int by, precision;
    if (!PyArg_ParseTuple(args, "O!O!zO!iiiiippzO!", sn_py.session_type, &session, &PyList_Type,
                          &feeds, &q.o.scenarios, &PyTuple_Type, &only, &by, &q.o.threads,
                          &precision, &q.o.runs, &q.o.warmup, &q.o.no_mix, &q.o.no_cache,
                          &q.o.cache, &PyTuple_Type, &paths))
        return NULL;
    sn_py_session *s = (sn_py_session *)session;
    q.o.precision = (sonde_precision)precision;
    if (sn_py_session_enter(s) < 0)
        return NULL;
    PyObject *made = NULL;
    sonde_whatif *w = NULL;
    sonde_error err;
    sonde_status st = sonde_cancel_token_create(&q.o.cancel, &err);
    if (st != SONDE_OK) {
        sn_py_raise(&err);
    } else if (read_feeds(&q, s, feeds) == 0 && read_only(&q, only) == 0) {
        st = measure(&q, s->model, &w, &err);
        if (st == SONDE_OK && !PyErr_Occurred())
            st = save_all(w, paths, &err);
        if (PyErr_Occurred()) /* a handler's exception says why it was cancelled */
            made = NULL;
        else
            made = st == SONDE_OK ? result_tuple(w, (sonde_by)by) : sn_py_raise(&err);
    }
    sonde_whatif_release(w);
    sonde_cancel_token_release(q.o.cancel);
    question_free(&q);
    sn_py_session_leave(s);
    return made;
}

static PyObject *cache_reset(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    sonde_whatif_cache_reset(NULL);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"whatif", whatif, METH_VARARGS, NULL},
                                  {"whatif_cache_reset", cache_reset, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

int sn_py_add_whatif(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
