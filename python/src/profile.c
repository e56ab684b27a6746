/* SPDX-License-Identifier: Apache-2.0 */
/* Profile: what was recorded, as text, as files, as figures and as columns. It never changes once
 * made, so any number of threads may read it; everything that takes long runs without the
 * interpreter's lock. */
#include "binding.h"

#include <stdlib.h>
#include <string.h>

#include "sonde/experimental/findings.h"
#include "sonde/experimental/profile.h"

typedef struct profile_object {
    PyObject_HEAD sonde_profile *profile;
} profile_object;

static const sonde_profile *profile_of(PyObject *self)
{
    return ((profile_object *)self)->profile;
}

const sonde_profile *sn_py_profile(PyObject *object)
{
    if (PyObject_TypeCheck(object, sn_py.profile_type))
        return profile_of(object);
    PyErr_Format(PyExc_TypeError, "expected a profile, not %R", (PyObject *)Py_TYPE(object));
    return NULL;
}

static void profile_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    sonde_profile_release(((profile_object *)self)->profile);
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

PyObject *sn_py_wrap_profile(sonde_profile *profile)
{
    allocfunc alloc = (allocfunc)(uintptr_t)PyType_GetSlot(sn_py.profile_type, Py_tp_alloc);
    PyObject *self = alloc(sn_py.profile_type, 0);
    if (self)
        ((profile_object *)self)->profile = profile;
    else
        sonde_profile_release(profile);
    return self;
}

static PyObject *profile_load(PyObject *type, PyObject *args)
{
    (void)type;
    const char *path;
    sonde_profile *profile = NULL;
    sonde_error err;
    sonde_status st;
    sonde_load_options how = SONDE_INIT(sonde_load_options);
    if (!PyArg_ParseTuple(args, "s|p", &path, &how.no_mmap))
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = sonde_profile_load_with(NULL, path, &how, &profile, &err);
    Py_END_ALLOW_THREADS if (st == SONDE_NOT_FOUND) return sn_py_raise_text("NoSuchFile", "%s",
                                                                            err.message);
    return st == SONDE_OK ? sn_py_wrap_profile(profile) : sn_py_raise(&err);
}

/* ------------------------------------------------------------------ texts and files */
void sn_py_pile_add(void *user, const char *data, size_t size)
{
    sn_py_pile *p = user;
    if (p->failed)
        return;
    if (p->n + size > p->cap) {
        const size_t cap = (p->n + size) * 2 + 4096;
        char *more = realloc(p->data, cap);
        if (!more) {
            p->failed = 1;
            return;
        }
        p->data = more;
        p->cap = cap;
    }
    memcpy(p->data + p->n, data, size);
    p->n += size;
}

PyObject *sn_py_pile_finish(sn_py_pile *p, int text, sonde_status st, const sonde_error *err)
{
    PyObject *made;
    if (st != SONDE_OK)
        made = sn_py_raise(err);
    else if (p->failed)
        made = PyErr_NoMemory();
    else if (text)
        made = PyUnicode_DecodeUTF8(p->data ? p->data : "", (Py_ssize_t)p->n, "replace");
    else
        made = PyBytes_FromStringAndSize(p->data, (Py_ssize_t)p->n);
    free(p->data);
    return made;
}

static PyObject *profile_table(PyObject *self, PyObject *args)
{
    sonde_table_options o = SONDE_INIT(sonde_table_options);
    sn_py_pile out = {.n = 0};
    sonde_error err;
    sonde_status st;
    if (!PyArg_ParseTuple(args, "pppzip", &o.sort_by_name, &o.by_shape, &o.by_node, &o.filter_op,
                          &o.width, &o.color))
        return NULL;
    Py_BEGIN_ALLOW_THREADS st =
        sonde_profile_table(profile_of(self), &o, sn_py_pile_add, &out, &err);
    Py_END_ALLOW_THREADS return sn_py_pile_finish(&out, 1, st, &err);
}

static PyObject *profile_report(PyObject *self, PyObject *args)
{
    int kind;
    sonde_report_options o = SONDE_INIT(sonde_report_options);
    sn_py_pile out = {.n = 0};
    sonde_error err;
    sonde_status st;
    if (!PyArg_ParseTuple(args, "ii", &kind, &o.width))
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = sonde_profile_report_with(profile_of(self), (sonde_report)kind, &o,
                                                          sn_py_pile_add, &out, &err);
    Py_END_ALLOW_THREADS return sn_py_pile_finish(&out, 1, st, &err);
}

/* The caller holds a reference while the page is written. */
static void compare_with(sonde_export_options *o, PyObject *before)
{
    if (!before)
        return;
    o->before = profile_of(before);
    o->before_title = "before";
    o->title = "after";
}

static PyObject *profile_save(PyObject *self, PyObject *args)
{
    sonde_export_options o = SONDE_INIT(sonde_export_options);
    const char *path;
    sonde_error err;
    sonde_status st;
    PyObject *before = NULL;
    long long limit = 0;
    if (!PyArg_ParseTuple(args, "szzpL|O!", &path, &o.format, &o.categories, &o.folded_nodes,
                          &limit, sn_py.profile_type, &before))
        return NULL;
    o.trace_limit = limit;
    compare_with(&o, before);
    Py_BEGIN_ALLOW_THREADS st = sonde_profile_save_with(profile_of(self), path, &o, &err);
    Py_END_ALLOW_THREADS if (st != SONDE_OK) return sn_py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *profile_write(PyObject *self, PyObject *args)
{
    sonde_export_options o = SONDE_INIT(sonde_export_options);
    sn_py_pile out = {.n = 0};
    sonde_error err;
    sonde_status st;
    PyObject *before = NULL;
    long long limit = 0;
    if (!PyArg_ParseTuple(args, "zzpL|O!", &o.format, &o.categories, &o.folded_nodes, &limit,
                          sn_py.profile_type, &before))
        return NULL;
    o.trace_limit = limit;
    compare_with(&o, before);
    Py_BEGIN_ALLOW_THREADS st =
        sonde_profile_write(profile_of(self), &o, sn_py_pile_add, &out, &err);
    Py_END_ALLOW_THREADS return sn_py_pile_finish(&out, 0, st, &err);
}

/* ------------------------------------------------------------------ figures */
/* None where the figure is not known. */
static PyObject *number_or_none(double v)
{
    if (v != v)
        Py_RETURN_NONE;
    return PyFloat_FromDouble(v);
}

static PyObject *profile_summary(PyObject *self, PyObject *none)
{
    (void)none;
    sonde_profile_summary s = SONDE_INIT(sonde_profile_summary);
    sonde_error err;
    sonde_status st;
    Py_BEGIN_ALLOW_THREADS st = sonde_profile_summary_get(profile_of(self), &s, &err);
    Py_END_ALLOW_THREADS if (st != SONDE_OK) return sn_py_raise(&err);
    return Py_BuildValue(
        "{s:N,s:N,s:N,s:N,s:N,s:i,s:i,s:i,s:K,s:K,s:K,s:K,s:K,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,"
        "s:"
        "N,s:N}",
        "model", sn_py_text(s.model), "version", sn_py_text(s.version), "cpu", sn_py_text(s.cpu),
        "cpu_level", sn_py_text(s.cpu_level), "note", sn_py_text(s.note), "cores", s.cores,
        "threads", s.threads, "level", s.level, "start_ns", (unsigned long long)s.start_wall_ns,
        "spans", (unsigned long long)s.spans, "dropped", (unsigned long long)s.dropped,
        "iterations", (unsigned long long)s.iterations, "warmups", (unsigned long long)s.warmups,
        "ops", s.ops, "mean_ns", s.mean_ns, "stddev_ns", s.stddev_ns, "min_ns", s.min_ns, "max_ns",
        s.max_ns, "p50_ns", s.p50_ns, "p90_ns", s.p90_ns, "p95_ns", s.p95_ns, "p99_ns", s.p99_ns,
        "cost_ns", number_or_none(s.cost_ns), "precision", sn_py_text(s.precision));
}

static PyObject *profile_labels(PyObject *self, PyObject *none)
{
    (void)none;
    const sonde_profile *profile = profile_of(self);
    PyObject *made = PyDict_New();
    for (size_t i = 0; made && i < sonde_profile_label_count(profile); i++) {
        sonde_label label;
        sonde_error err;
        if (sonde_profile_label_get(profile, i, &label, &err) != SONDE_OK) {
            Py_DECREF(made);
            return sn_py_raise(&err);
        }
        PyObject *key = sn_py_text(label.key), *value = sn_py_text(label.value);
        if (!key || !value || PyDict_SetItem(made, key, value) < 0)
            Py_CLEAR(made);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return made;
}

static PyObject *row_dict(const sonde_profile_row *r)
{
    return Py_BuildValue(
        "{s:N,s:N,s:N,s:N,s:N,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:N,s:d,s:d,s:d,s:d,s:O,s:O,s:N,"
        "s:N}",
        "name", sn_py_text(r->name), "op_type", sn_py_text(r->op_type), "node", sn_py_text(r->node),
        "kernel", sn_py_text(r->kernel), "dtype", sn_py_text(r->dtype), "calls", r->calls,
        "mean_ns", r->mean_ns, "share", r->share, "per_call_mean_ns", r->per_call_mean_ns,
        "per_call_p50_ns", r->per_call_p50_ns, "per_call_p99_ns", r->per_call_p99_ns, "flops",
        r->flops, "bytes", r->bytes, "roofline", r->roofline, "bound", sn_py_text(r->bound),
        "instructions", r->instructions, "cycles", r->cycles, "cache_misses", r->cache_misses,
        "branch_misses", r->branch_misses, "bracket", r->bracket ? Py_True : Py_False, "dynamic",
        r->dynamic ? Py_True : Py_False, "nodes", sn_py_text(r->nodes), "arithmetic",
        sn_py_text(r->arithmetic));
}

static PyObject *profile_rows(PyObject *self, PyObject *args)
{
    int by;
    sonde_profile_rows *rows = NULL;
    sonde_error err;
    sonde_status st;
    if (!PyArg_ParseTuple(args, "i", &by))
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = sonde_profile_rows_get(profile_of(self), (sonde_by)by, &rows, &err);
    Py_END_ALLOW_THREADS if (st != SONDE_OK) return sn_py_raise(&err);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < sonde_profile_rows_count(rows); i++) {
        sonde_profile_row row = SONDE_INIT(sonde_profile_row);
        PyObject *item = sonde_profile_rows_row(rows, i, &row, &err) == SONDE_OK
                             ? row_dict(&row)
                             : sn_py_raise(&err);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    sonde_profile_rows_release(rows);
    return list;
}

static PyObject *finding_dict(const sonde_finding *f)
{
    return Py_BuildValue("{s:N,s:N,s:N,s:N,s:N}", "severity",
                         sn_py_text(sonde_severity_text(f->severity)), "topic",
                         sn_py_text(f->topic), "finding", sn_py_text(f->finding), "evidence",
                         sn_py_text(f->evidence), "remedy", sn_py_text(f->remedy));
}

static PyObject *profile_findings(PyObject *self, PyObject *none)
{
    (void)none;
    sonde_findings *found = NULL;
    sonde_error err;
    sonde_status st;
    Py_BEGIN_ALLOW_THREADS st = sonde_profile_findings(profile_of(self), &found, &err);
    Py_END_ALLOW_THREADS if (st != SONDE_OK) return sn_py_raise(&err);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < sonde_findings_count(found); i++) {
        sonde_finding f;
        PyObject *item = sonde_findings_get(found, i, &f, &err) == SONDE_OK ? finding_dict(&f)
                                                                            : sn_py_raise(&err);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    sonde_findings_release(found);
    return list;
}

PyObject *sn_py_change_dict(const sonde_change *c)
{
    return Py_BuildValue("{s:N,s:N,s:N,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:N,s:n}",
                         "name", sn_py_text(c->name), "op_type", sn_py_text(c->op_type), "node",
                         sn_py_text(c->node), "old_ns", c->old_ns, "new_ns", c->new_ns, "old_share",
                         c->old_share, "new_share", c->new_share, "old_calls", c->old_calls,
                         "new_calls", c->new_calls, "old_median_ns", c->old_median_ns,
                         "new_median_ns", c->new_median_ns, "ratio", c->ratio, "low", c->low,
                         "high", c->high, "p", c->p, "verdict",
                         sn_py_text(sonde_verdict_text(c->verdict)), "turns", (Py_ssize_t)c->turns);
}

/* The total, then the rows. */
static PyObject *change_list(const sonde_comparison *comparison)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i <= sonde_comparison_count(comparison); i++) {
        sonde_change c = SONDE_INIT(sonde_change);
        sonde_error err;
        const sonde_status st = i ? sonde_comparison_row(comparison, i - 1, &c, &err)
                                  : sonde_comparison_total(comparison, &c, &err);
        PyObject *item = st == SONDE_OK ? sn_py_change_dict(&c) : sn_py_raise(&err);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *profile_compare(PyObject *self, PyObject *args)
{
    PyObject *other;
    int by;
    sonde_comparison *comparison = NULL;
    sonde_error err;
    sonde_status st;
    if (!PyArg_ParseTuple(args, "O!i", sn_py.profile_type, &other, &by))
        return NULL;
    Py_BEGIN_ALLOW_THREADS st =
        sonde_profile_compare(profile_of(self), profile_of(other), (sonde_by)by, &comparison, &err);
    Py_END_ALLOW_THREADS if (st != SONDE_OK) return sn_py_raise(&err);
    PyObject *list = change_list(comparison);
    sonde_comparison_release(comparison);
    return list;
}

static PyObject *profile_spans(PyObject *self, PyObject *none)
{
    (void)none;
    return sn_py_span_columns(profile_of(self));
}

static PyObject *profile_fleet(PyObject *self, PyObject *none)
{
    (void)none;
    return sn_py_profile_fleet(profile_of(self));
}

static PyMethodDef methods[] = {
    {"load", profile_load, METH_VARARGS | METH_CLASS, "A saved profile."},
    {"table", profile_table, METH_VARARGS, "The timing table."},
    {"report", profile_report, METH_VARARGS, "One of the reports as text."},
    {"save", profile_save, METH_VARARGS, "Into a file."},
    {"write", profile_write, METH_VARARGS, "As bytes."},
    {"summary", profile_summary, METH_NOARGS, "Statistics of the whole profile."},
    {"fleet", profile_fleet, METH_NOARGS, "The figures of its workers."},
    {"labels", profile_labels, METH_NOARGS, "What it is called."},
    {"rows", profile_rows, METH_VARARGS, "Rows by operator, node, shape or kernel."},
    {"findings", profile_findings, METH_NOARGS, "What the figures mean."},
    {"compare", profile_compare, METH_VARARGS, "Compares this profile with another one."},
    {"spans", profile_spans, METH_NOARGS, "All spans as a dict of columns."},
    {NULL, NULL, 0, NULL}};

int sn_py_add_profile_type(PyObject *module)
{
    PyType_Slot slots[] = {SN_PY_SLOT(Py_tp_dealloc, profile_dealloc),
                           {Py_tp_methods, methods},
                           {Py_tp_doc, (void *)(uintptr_t) "A profile."},
                           {0, NULL}};
    PyType_Spec spec = {.name = "sonde._sonde.Profile",
                        .basicsize = sizeof(profile_object),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        .slots = slots};
    sn_py.profile_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return sn_py.profile_type
               ? PyModule_AddObjectRef(module, "Profile", (PyObject *)sn_py.profile_type)
               : -1;
}
