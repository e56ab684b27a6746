/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of many processes: joined into files, and as lists of dicts. Reading and writing run
 * without the interpreter's lock. */
#include "binding.h"

#include <stdlib.h>

#include "sonde/experimental/fleet.h"

typedef struct fleet_object {
    PyObject_HEAD sonde_fleet *fleet;
} fleet_object;

static sonde_fleet *fleet_of(PyObject *self)
{
    return ((fleet_object *)self)->fleet;
}

static void fleet_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    sonde_fleet_release(fleet_of(self));
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *wrap(sonde_fleet *fleet)
{
    allocfunc alloc = (allocfunc)(uintptr_t)PyType_GetSlot(sn_py.fleet_type, Py_tp_alloc);
    PyObject *self = alloc(sn_py.fleet_type, 0);
    if (self)
        ((fleet_object *)self)->fleet = fleet;
    else
        sonde_fleet_release(fleet);
    return self;
}

/* ------------------------------------------------------------------ opening */
/* open(paths, output, no_mmap): paths as bytes, output bytes or None. */
static PyObject *fleet_open(PyObject *type, PyObject *args)
{
    (void)type;
    PyObject *list;
    sonde_fleet_options how = SONDE_INIT(sonde_fleet_options);
    sonde_fleet *fleet = NULL;
    sonde_error err;
    sonde_status st;
    if (!PyArg_ParseTuple(args, "O!yp", &PyList_Type, &list, &how.output, &how.no_mmap))
        return NULL;
    const Py_ssize_t n = PyList_Size(list);
    const char **paths = calloc((size_t)n + 1, sizeof *paths);
    if (!paths)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) /* NULL as length: a zero byte is refused */
        if (PyBytes_AsStringAndSize(PyList_GetItem(list, i), (char **)&paths[i], NULL) < 0) {
            free(paths);
            return NULL;
        }
    how.output = *how.output ? how.output : NULL;
    Py_BEGIN_ALLOW_THREADS st = sonde_fleet_open(NULL, paths, (size_t)n, &how, &fleet, &err);
    Py_END_ALLOW_THREADS free(paths);
    if (st == SONDE_NOT_FOUND)
        return sn_py_raise_text("NoSuchFile", "%s", err.message);
    return st == SONDE_OK ? wrap(fleet) : sn_py_raise(&err);
}

PyObject *sn_py_profile_fleet(const sonde_profile *profile)
{
    sonde_fleet *fleet = NULL;
    sonde_error err;
    sonde_status st;
    Py_BEGIN_ALLOW_THREADS st = sonde_fleet_of_profile(profile, &fleet, &err);
    Py_END_ALLOW_THREADS return st == SONDE_OK ? wrap(fleet) : sn_py_raise(&err);
}

/* ------------------------------------------------------------------ what there is */
/* Appends and drops an item; -1: an exception. */
static int append(PyObject *list, PyObject *item)
{
    const int result = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return result;
}

static PyObject *fleet_traces(PyObject *self, PyObject *none)
{
    (void)none;
    sonde_fleet_trace t = SONDE_INIT(sonde_fleet_trace);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && sonde_fleet_trace_get(fleet_of(self), i, &t, NULL) == SONDE_OK; i++)
        if (append(list,
                   Py_BuildValue("{s:N,s:N,s:N,s:N,s:N,s:N,s:L,s:K,s:L}", "path",
                                 PyUnicode_DecodeFSDefault(t.path), "host", sn_py_text(t.host),
                                 "worker", sn_py_text(t.worker), "version", sn_py_text(t.version),
                                 "model", sn_py_text(t.model), "note", sn_py_text(t.note), "pid",
                                 (long long)t.pid, "start_ns", (unsigned long long)t.start_wall_ns,
                                 "moved_ns", (long long)t.moved_ns)) < 0)
            Py_CLEAR(list);
    return list;
}

static PyObject *fleet_skipped(PyObject *self, PyObject *none)
{
    (void)none;
    sonde_fleet_skipped s = SONDE_INIT(sonde_fleet_skipped);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && sonde_fleet_skipped_get(fleet_of(self), i, &s, NULL) == SONDE_OK;
         i++)
        if (append(list, Py_BuildValue("{s:N,s:N,s:O}", "path", PyUnicode_DecodeFSDefault(s.path),
                                       "why", sn_py_text(s.why), "duplicate",
                                       s.duplicate ? Py_True : Py_False)) < 0)
            Py_CLEAR(list);
    return list;
}

static PyObject *fleet_clocks(PyObject *self, PyObject *none)
{
    (void)none;
    sonde_fleet_clocks c = SONDE_INIT(sonde_fleet_clocks);
    sonde_error err;
    if (sonde_fleet_clocks_get(fleet_of(self), &c, &err) != SONDE_OK)
        return sn_py_raise(&err);
    PyObject *error = c.error_ns ? PyLong_FromUnsignedLongLong(c.error_ns) : Py_None;
    if (!c.error_ns)
        Py_INCREF(Py_None);
    return Py_BuildValue("{s:n,s:n,s:N,s:K,s:N}", "boots", (Py_ssize_t)c.boots, "loose",
                         (Py_ssize_t)c.loose, "error_ns", error, "moved_ns",
                         (unsigned long long)c.moved_ns, "moved_host", sn_py_text(c.moved_host));
}

/* ------------------------------------------------------------------ files */
static PyObject *fleet_save(PyObject *self, PyObject *args)
{
    const char *path;
    sonde_error err;
    sonde_status st;
    if (!PyArg_ParseTuple(args, "y", &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = sonde_fleet_save(fleet_of(self), path, NULL, &err);
    Py_END_ALLOW_THREADS if (st != SONDE_OK) return sn_py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *fleet_profile(PyObject *self, PyObject *none)
{
    (void)none;
    sonde_profile *profile = NULL;
    sonde_error err;
    sonde_status st;
    Py_BEGIN_ALLOW_THREADS st = sonde_fleet_profile(fleet_of(self), &profile, &err);
    Py_END_ALLOW_THREADS return st == SONDE_OK ? sn_py_wrap_profile(profile) : sn_py_raise(&err);
}

/* ------------------------------------------------------------------ figures */
static PyObject *row_dict(const sonde_fleet_row *r)
{
    return Py_BuildValue(
        "{s:N,s:N,s:N,s:N,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d}", "host",
        sn_py_text(r->host), "worker", sn_py_text(r->worker), "model", sn_py_text(r->model),
        "version", sn_py_text(r->version), "traces", (unsigned long long)r->traces, "incomplete",
        (unsigned long long)r->incomplete, "runs", (unsigned long long)r->runs, "warmups",
        (unsigned long long)r->warmups, "dropped", (unsigned long long)r->dropped, "operators",
        (unsigned long long)r->operators, "operator_ns", (unsigned long long)r->operator_ns,
        "runs_per_s", r->runs_per_s, "share", r->share, "mean_ns", r->mean_ns, "min_ns", r->min_ns,
        "p50_ns", r->p50_ns, "p95_ns", r->p95_ns, "p99_ns", r->p99_ns, "max_ns", r->max_ns);
}

static PyObject *fleet_rows(PyObject *self, PyObject *args)
{
    int by;
    sonde_fleet_rows *rows = NULL;
    sonde_error err;
    sonde_status st;
    if (!PyArg_ParseTuple(args, "i", &by))
        return NULL;
    Py_BEGIN_ALLOW_THREADS st =
        sonde_fleet_rows_get(fleet_of(self), (sonde_fleet_by)by, &rows, &err);
    Py_END_ALLOW_THREADS if (st != SONDE_OK) return sn_py_raise(&err);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < sonde_fleet_rows_count(rows); i++) {
        sonde_fleet_row row = SONDE_INIT(sonde_fleet_row);
        PyObject *item = sonde_fleet_rows_row(rows, i, &row, &err) == SONDE_OK ? row_dict(&row)
                                                                               : sn_py_raise(&err);
        if (append(list, item) < 0)
            Py_CLEAR(list);
    }
    sonde_fleet_rows_release(rows);
    return list;
}

static PyObject *straggler_dict(const sonde_straggler *s)
{
    return Py_BuildValue("{s:N,s:N,s:N,s:N,s:d,s:d,s:n,s:N,s:d,s:d}", "host", sn_py_text(s->host),
                         "worker", sn_py_text(s->worker), "model", sn_py_text(s->model), "version",
                         sn_py_text(s->version), "p50_ns", s->p50_ns, "usual_ns", s->usual_ns,
                         "peers", (Py_ssize_t)s->peers, "op", sn_py_text(s->op), "op_ns", s->op_ns,
                         "op_usual_ns", s->op_usual_ns);
}

static PyObject *fleet_stragglers(PyObject *self, PyObject *none)
{
    (void)none;
    size_t n = 0;
    sonde_error err;
    sonde_status st;
    Py_BEGIN_ALLOW_THREADS st = sonde_fleet_straggler_count(fleet_of(self), &n, NULL, &err);
    Py_END_ALLOW_THREADS if (st != SONDE_OK) return sn_py_raise(&err);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < n; i++) {
        sonde_straggler s = SONDE_INIT(sonde_straggler);
        PyObject *item = sonde_fleet_straggler_get(fleet_of(self), i, &s, &err) == SONDE_OK
                             ? straggler_dict(&s)
                             : sn_py_raise(&err);
        if (append(list, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyMethodDef methods[] = {
    {"open", fleet_open, METH_VARARGS | METH_CLASS, "Traces from files and folders."},
    {"traces", fleet_traces, METH_NOARGS, "Where they come from."},
    {"skipped", fleet_skipped, METH_NOARGS, "Files that are not among them."},
    {"clocks", fleet_clocks, METH_NOARGS, "How well their common time is known."},
    {"save", fleet_save, METH_VARARGS, "Into one file."},
    {"profile", fleet_profile, METH_NOARGS, "As one profile."},
    {"rows", fleet_rows, METH_VARARGS, "By host, worker or version."},
    {"stragglers", fleet_stragglers, METH_NOARGS, "Workers that are slower than their peers."},
    {NULL, NULL, 0, NULL}};

int sn_py_add_fleet(PyObject *module)
{
    PyType_Slot slots[] = {
        SN_PY_SLOT(Py_tp_dealloc, fleet_dealloc), {Py_tp_methods, methods}, {0, NULL}};
    PyType_Spec spec = {.name = "sonde._sonde.Fleet",
                        .basicsize = sizeof(fleet_object),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        .slots = slots};
    sn_py.fleet_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!sn_py.fleet_type)
        return -1;
    return PyModule_AddObjectRef(module, "Fleet", (PyObject *)sn_py.fleet_type);
}
