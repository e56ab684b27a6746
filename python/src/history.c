/* SPDX-License-Identifier: Apache-2.0 */
/* The history for Python: a thin layer of tuples and dicts, of which sonde/history.py makes what
 * people use. All calls run without the interpreter's lock, because they may wait for other
 * processes. */
#include "binding.h"

#include <string.h>

#include "sonde/experimental/changes.h"
#include "sonde/experimental/history.h"

typedef struct history_object {
    PyObject_HEAD sonde_history *history; /* NULL: closed */
    int users;                            /* calls under way and cursors; the last one closes */
    int closing;
} history_object;

typedef struct cursor_object {
    PyObject_HEAD history_object *owner;
    sonde_history_cursor *cursor;
    int busy; /* one thread at a time */
} cursor_object;

static PyTypeObject *history_type, *cursor_type;

/* ------------------------------------------------------------------ closing */
static int enter(history_object *h)
{
    if (h->history && !h->closing) {
        h->users++;
        return 0;
    }
    sn_py_raise_text("InvalidArgument", "the history is closed");
    return -1;
}

static void close_now(history_object *h)
{
    sonde_history *history = h->history;
    h->history = NULL;
    Py_BEGIN_ALLOW_THREADS sonde_history_close(history);
    Py_END_ALLOW_THREADS
}

static void leave(history_object *h)
{
    if (--h->users == 0 && h->closing && h->history)
        close_now(h);
}

static PyObject *history_close(PyObject *self, PyObject *none)
{
    history_object *h = (history_object *)self;
    (void)none;
    h->closing = 1;
    if (h->users == 0 && h->history)
        close_now(h);
    Py_RETURN_NONE;
}

static void free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static void history_dealloc(PyObject *self)
{
    sonde_history_close(((history_object *)self)->history);
    free_object(self);
}

/* ------------------------------------------------------------------ texts */
enum { MOST_TEXTS = 10 };

/* Texts that somebody asks for or gives, and whose they are. */
typedef struct texts {
    const char *of[MOST_TEXTS]; /* NULL: None */
    PyObject *holds[MOST_TEXTS];
} texts;

static void free_texts(texts *t)
{
    for (int i = 0; i < MOST_TEXTS; i++)
        Py_XDECREF(t->holds[i]);
}

/* The first `n` items of the tuple. */
static int read_texts(PyObject *tuple, Py_ssize_t n, texts *t)
{
    *t = (texts){.of = {NULL}};
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) < n) {
        PyErr_SetString(PyExc_TypeError, "expected a tuple of texts");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        if (item != Py_None && !(t->of[i] = sn_py_name_bytes(item, &t->holds[i]))) {
            free_texts(t);
            return -1;
        }
    }
    return 0;
}

enum { FILTER_TEXTS = 7 };

/* (model, kind, runtime, commit, machine, note, options, since_ms, until_ms, series, limit) */
static int read_filter(PyObject *tuple, sonde_history_filter *f, texts *t)
{
    long long since, until;
    unsigned long long series, limit;
    *f = (sonde_history_filter)SONDE_INIT(sonde_history_filter);
    if (read_texts(tuple, FILTER_TEXTS, t) < 0)
        return -1;
    PyObject *numbers = PyTuple_GetSlice(tuple, FILTER_TEXTS, PyTuple_Size(tuple));
    if (!numbers || !PyArg_ParseTuple(numbers, "LLKK", &since, &until, &series, &limit)) {
        Py_XDECREF(numbers);
        free_texts(t);
        return -1;
    }
    Py_DECREF(numbers);
    f->model = t->of[0];
    f->kind = t->of[1];
    f->runtime = t->of[2];
    f->commit = t->of[3];
    f->machine = t->of[4];
    f->note = t->of[5];
    f->options = t->of[6];
    f->since_ms = since;
    f->until_ms = until;
    f->series = series;
    f->limit = (size_t)limit;
    return 0;
}

/* ------------------------------------------------------------------ opening and adding */
static PyObject *history_open(PyObject *type, PyObject *args)
{
    (void)type;
    PyObject *given, *path = NULL;
    sonde_history_options o = SONDE_INIT(sonde_history_options);
    sonde_history *history = NULL;
    sonde_error err;
    sonde_status st;
    if (!PyArg_ParseTuple(args, "Op", &given, &o.read_only) ||
        (given != Py_None && !PyUnicode_FSConverter(given, &path)))
        return NULL;
    const char *text = path ? PyBytes_AsString(path) : NULL;
    Py_BEGIN_ALLOW_THREADS st = sonde_history_open(NULL, text, &o, &history, &err);
    Py_END_ALLOW_THREADS Py_XDECREF(path);
    if (st)
        return st == SONDE_NOT_FOUND ? sn_py_raise_text("NoSuchFile", "%s", err.message)
                                     : sn_py_raise(&err);
    allocfunc alloc = (allocfunc)(uintptr_t)PyType_GetSlot(history_type, Py_tp_alloc);
    PyObject *self = alloc(history_type, 0);
    if (self)
        ((history_object *)self)->history = history;
    else
        sonde_history_close(history);
    return self;
}

static PyObject *history_path(PyObject *self, PyObject *none)
{
    (void)none;
    history_object *h = (history_object *)self;
    if (enter(h) < 0)
        return NULL;
    PyObject *path = PyUnicode_DecodeFSDefault(sonde_history_path(h->history));
    leave(h);
    return path;
}

static PyObject *add(history_object *h, sonde_history_new *what)
{
    sonde_error err;
    sonde_status st;
    int64_t id = 0;
    if (enter(h) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = sonde_history_add(h->history, what, &id, &err);
    Py_END_ALLOW_THREADS leave(h);
    return st ? sn_py_raise(&err) : PyLong_FromLongLong(id);
}

/* add(profile, samples, session, (model, kind, runtime, version, commit, host, options, note),
 * peak, at_ms) */
static PyObject *history_add(PyObject *self, PyObject *args)
{
    PyObject *profile, *samples, *session, *words, *made = NULL;
    sonde_history_new what = SONDE_INIT(sonde_history_new);
    Py_buffer view = {.obj = NULL};
    unsigned long long peak;
    long long at;
    texts t;
    if (!PyArg_ParseTuple(args, "OOOOKL", &profile, &samples, &session, &words, &peak, &at) ||
        (profile != Py_None && !(what.profile = sn_py_profile(profile))) ||
        (samples != Py_None && PyObject_GetBuffer(samples, &view, PyBUF_SIMPLE) < 0))
        return NULL;
    if (session != Py_None && PyObject_TypeCheck(session, sn_py.session_type))
        what.source = ((sn_py_session *)session)->model;
    if (read_texts(words, 8, &t) == 0) {
        what.samples_ns = view.obj ? view.buf : NULL;
        what.sample_count = view.obj ? (size_t)view.len / sizeof(double) : 0;
        what.model = t.of[0];
        what.kind = t.of[1];
        what.runtime = t.of[2];
        what.version = t.of[3];
        what.commit = t.of[4];
        what.host = t.of[5];
        what.options = t.of[6];
        what.note = t.of[7];
        what.peak_bytes = peak;
        what.at_ms = at;
        made = add((history_object *)self, &what);
        free_texts(&t);
    }
    if (view.obj)
        PyBuffer_Release(&view);
    return made;
}

/* ------------------------------------------------------------------ entries */
static PyObject *entry_dict(const sonde_history_entry *e)
{
    PyObject *d = Py_BuildValue(
        "{s:L,s:L,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:i,s:N}", "id", (long long)e->id,
        "at_ms", (long long)e->at_ms, "kind", sn_py_text(e->kind), "model", sn_py_text(e->model),
        "model_hash", sn_py_text(e->model_hash), "model_form", sn_py_text(e->model_form), "runtime",
        sn_py_text(e->runtime), "version", sn_py_text(e->version), "commit", sn_py_text(e->commit),
        "note", sn_py_text(e->note), "host", sn_py_text(e->host), "cpu", sn_py_text(e->cpu),
        "cpu_level", sn_py_text(e->cpu_level), "cores", e->cores, "options",
        sn_py_text(e->options));
    PyObject *figures = Py_BuildValue(
        "{s:K,s:K,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:K,s:K}", "series",
        (unsigned long long)e->series, "runs", (unsigned long long)e->runs, "median_ns",
        e->median_ns, "low_ns", e->low_ns, "high_ns", e->high_ns, "mean_ns", e->mean_ns,
        "stddev_ns", e->stddev_ns, "min_ns", e->min_ns, "max_ns", e->max_ns, "p95_ns", e->p95_ns,
        "p99_ns", e->p99_ns, "peak_bytes", (unsigned long long)e->peak_bytes, "profile_bytes",
        (unsigned long long)e->profile_bytes);
    if (!d || !figures || PyDict_Update(d, figures) < 0)
        Py_CLEAR(d);
    Py_XDECREF(figures);
    return d;
}

static PyObject *history_list(PyObject *self, PyObject *filter)
{
    history_object *h = (history_object *)self;
    sonde_history_filter f;
    sonde_history_cursor *cursor = NULL;
    sonde_error err;
    sonde_status st;
    texts t;
    if (read_filter(filter, &f, &t) < 0)
        return NULL;
    if (enter(h) < 0) {
        free_texts(&t);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS st = sonde_history_list(h->history, &f, &cursor, &err);
    Py_END_ALLOW_THREADS free_texts(&t);
    allocfunc alloc = (allocfunc)(uintptr_t)PyType_GetSlot(cursor_type, Py_tp_alloc);
    cursor_object *c = st ? NULL : (cursor_object *)alloc(cursor_type, 0);
    if (c) { /* it stays a user until it ends */
        c->cursor = cursor;
        c->owner = h;
        Py_INCREF(self);
        return (PyObject *)c;
    }
    sonde_history_cursor_release(cursor);
    leave(h);
    return st ? sn_py_raise(&err) : NULL;
}

static PyObject *cursor_next(PyObject *self)
{
    cursor_object *c = (cursor_object *)self;
    sonde_history_entry e = SONDE_INIT(sonde_history_entry);
    sonde_error err;
    sonde_status st;
    if (c->busy)
        return sn_py_raise_text("InvalidArgument", "another thread reads from this list");
    c->busy = 1;
    Py_BEGIN_ALLOW_THREADS st = sonde_history_next(c->cursor, &e, &err);
    Py_END_ALLOW_THREADS PyObject *made = NULL;
    if (st == SONDE_OK)
        made = entry_dict(&e);
    else if (st != SONDE_NOT_FOUND)
        sn_py_raise(&err);
    c->busy = 0;
    return made;
}

static PyObject *itself(PyObject *self)
{
    Py_INCREF(self);
    return self;
}

static void cursor_dealloc(PyObject *self)
{
    cursor_object *c = (cursor_object *)self;
    sonde_history_cursor_release(c->cursor);
    if (c->owner) {
        leave(c->owner);
        Py_DECREF((PyObject *)c->owner);
    }
    free_object(self);
}

/* find(reference, filter) */
static PyObject *history_find(PyObject *self, PyObject *args)
{
    history_object *h = (history_object *)self;
    PyObject *name, *filter, *hold = NULL;
    sonde_history_filter f;
    sonde_error err;
    sonde_status st;
    int64_t id = 0;
    texts t;
    if (!PyArg_ParseTuple(args, "OO", &name, &filter) || read_filter(filter, &f, &t) < 0)
        return NULL;
    const char *reference = sn_py_name_bytes(name, &hold);
    if (!reference || enter(h) < 0) {
        free_texts(&t);
        Py_XDECREF(hold);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS st = sonde_history_find(h->history, reference, &f, &id, &err);
    Py_END_ALLOW_THREADS leave(h);
    free_texts(&t);
    Py_DECREF(hold);
    return st ? sn_py_raise(&err) : PyLong_FromLongLong(id);
}

static sonde_history_record *get_record(history_object *h, long long id)
{
    sonde_history_record *r = NULL;
    sonde_error err;
    sonde_status st;
    if (enter(h) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = sonde_history_get(h->history, id, &r, &err);
    Py_END_ALLOW_THREADS leave(h);
    if (st)
        sn_py_raise(&err);
    return r;
}

static PyObject *operator_list(const sonde_history_record *r)
{
    sonde_history_operator op = SONDE_INIT(sonde_history_operator);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && sonde_history_record_operator(r, i, &op, NULL) == SONDE_OK; i++) {
        PyObject *item = Py_BuildValue("{s:N,s:d,s:d}", "name", sn_py_text(op.name), "calls",
                                       op.calls, "mean_ns", op.mean_ns);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* get(id) ► (entry, operators, samples as the bytes of doubles) */
static PyObject *history_get(PyObject *self, PyObject *args)
{
    long long id;
    if (!PyArg_ParseTuple(args, "L", &id))
        return NULL;
    sonde_history_record *r = get_record((history_object *)self, id);
    if (!r)
        return NULL;
    sonde_history_entry e = SONDE_INIT(sonde_history_entry);
    size_t n;
    const double *samples = sonde_history_record_samples(r, &n);
    PyObject *made = NULL;
    if (sonde_history_record_entry(r, &e, NULL) == SONDE_OK)
        made = Py_BuildValue("(NNN)", entry_dict(&e), operator_list(r),
                             PyByteArray_FromStringAndSize((const char *)samples,
                                                           (Py_ssize_t)(n * sizeof *samples)));
    sonde_history_record_release(r);
    return made;
}

static PyObject *history_profile(PyObject *self, PyObject *args)
{
    long long id;
    sonde_profile *profile = NULL;
    sonde_error err;
    sonde_status st;
    if (!PyArg_ParseTuple(args, "L", &id))
        return NULL;
    sonde_history_record *r = get_record((history_object *)self, id);
    if (!r)
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = sonde_history_record_profile(r, &profile, &err);
    sonde_history_record_release(r);
    Py_END_ALLOW_THREADS return st ? sn_py_raise(&err) : sn_py_wrap_profile(profile);
}

/* compare(old, new) ► (change, what makes them not alike) */
static PyObject *history_compare(PyObject *self, PyObject *args)
{
    long long ids[2];
    sonde_history_record *r[2] = {NULL, NULL};
    sonde_change change = SONDE_INIT(sonde_change);
    sonde_error err;
    char unlike[1000];
    PyObject *made = NULL;
    if (!PyArg_ParseTuple(args, "LL", &ids[0], &ids[1]))
        return NULL;
    for (int k = 0; k < 2; k++)
        if (!(r[k] = get_record((history_object *)self, ids[k])))
            break;
    if (r[0] && r[1] && sonde_history_record_compare(r[0], r[1], &change, &err))
        sn_py_raise(&err);
    else if (r[0] && r[1])
        made = Py_BuildValue(
            "(NN)", sn_py_change_dict(&change),
            sn_py_text(sonde_history_record_unlike(r[0], r[1], unlike, sizeof unlike)));
    sonde_history_record_release(r[0]);
    sonde_history_record_release(r[1]);
    return made;
}

/* ------------------------------------------------------------------ removing */
static PyObject *history_remove(PyObject *self, PyObject *args)
{
    history_object *h = (history_object *)self;
    long long id;
    sonde_error err;
    sonde_status st;
    if (!PyArg_ParseTuple(args, "L", &id) || enter(h) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = sonde_history_remove(h->history, id, &err);
    Py_END_ALLOW_THREADS leave(h);
    if (st)
        return sn_py_raise(&err);
    Py_RETURN_NONE;
}

/* prune(filter, keep, only_profiles) */
static PyObject *history_prune(PyObject *self, PyObject *args)
{
    history_object *h = (history_object *)self;
    PyObject *filter;
    sonde_history_filter f;
    sonde_history_prune_options o = SONDE_INIT(sonde_history_prune_options);
    unsigned long long keep;
    uint64_t removed = 0;
    sonde_error err;
    sonde_status st;
    texts t;
    if (!PyArg_ParseTuple(args, "OKp", &filter, &keep, &o.only_profiles) ||
        read_filter(filter, &f, &t) < 0)
        return NULL;
    o.keep = (size_t)keep;
    if (enter(h) < 0) {
        free_texts(&t);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS st = sonde_history_prune(h->history, &f, &o, &removed, &err);
    Py_END_ALLOW_THREADS leave(h);
    free_texts(&t);
    return st ? sn_py_raise(&err) : PyLong_FromUnsignedLongLong(removed);
}

/* ------------------------------------------------------------------ trends */
/* Steals the item. */
static int append(PyObject *list, PyObject *item)
{
    const int done = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return done;
}

static PyObject *trend_tuple(const sonde_trends *t, size_t k)
{
    sonde_trend s = SONDE_INIT(sonde_trend);
    sonde_trend_point p = SONDE_INIT(sonde_trend_point);
    sonde_trend_level l = SONDE_INIT(sonde_trend_level);
    PyObject *points = PyList_New(0), *levels = PyList_New(0);
    int done = points && levels && !sonde_trends_get(t, k, &s, NULL) ? 0 : -1;
    for (size_t i = 0; done == 0 && !sonde_trends_point(t, k, i, &p, NULL); i++)
        done = append(points, Py_BuildValue("{s:L,s:L,s:d,s:d,s:d,s:N,s:N,s:N,s:O,s:N,s:N}", "id",
                                            (long long)p.id, "at_ms", (long long)p.at_ms, "ns",
                                            p.ns, "low_ns", p.low_ns, "high_ns", p.high_ns,
                                            "commit", sn_py_text(p.commit), "note",
                                            sn_py_text(p.note), "version", sn_py_text(p.version),
                                            "new_model", p.new_model ? Py_True : Py_False, "model",
                                            sn_py_text(p.model), "which", sn_py_text(p.which)));
    for (size_t i = 0; done == 0 && !sonde_trends_level(t, k, i, &l, NULL); i++)
        done = append(levels, Py_BuildValue("{s:K,s:K,s:d,s:d,s:d,s:d,s:d}", "start",
                                            (unsigned long long)l.from, "stop",
                                            (unsigned long long)l.to, "ns", l.ns, "ratio", l.ratio,
                                            "low", l.low, "high", l.high, "p", l.p));
    if (done == 0)
        return Py_BuildValue("(NNNNN)", sn_py_text(s.title), sn_py_text(s.machine), points, levels,
                             sn_py_text(s.across));
    Py_XDECREF(points);
    Py_XDECREF(levels);
    return NULL;
}

static PyObject *trend_list(const sonde_trends *t)
{
    PyObject *list = PyList_New(0);
    for (size_t k = 0; list && k < sonde_trends_count(t); k++)
        if (append(list, trend_tuple(t, k)) < 0)
            Py_CLEAR(list);
    return list;
}

/* Without the interpreter's lock. */
static sonde_status find_trends(sonde_history *h, const sonde_history_filter *f,
                                const sonde_trend_options *o, PyObject *paths, Py_ssize_t n,
                                sonde_trends **t, sonde_error *err)
{
    sonde_status st = sonde_history_trends(h, f, o, t, err);
    for (Py_ssize_t i = 0; i < n && !st; i++)
        st = sonde_trends_save(*t, PyBytes_AsString(PyTuple_GetItem(paths, i)), err);
    return st;
}

/* trends(filter, across, op, false_alarms, least, shortest, paths as bytes) */
static PyObject *history_trends(PyObject *self, PyObject *args)
{
    history_object *h = (history_object *)self;
    PyObject *filter, *op, *paths, *hold = NULL, *made = NULL;
    sonde_history_filter f;
    sonde_trend_options o = SONDE_INIT(sonde_trend_options);
    unsigned long long shortest;
    sonde_trends *found = NULL;
    sonde_error err;
    sonde_status st;
    texts t;
    if (!PyArg_ParseTuple(args, "OIOddKO!", &filter, &o.across, &op, &o.false_alarms, &o.least,
                          &shortest, &PyTuple_Type, &paths) ||
        read_filter(filter, &f, &t) < 0)
        return NULL;
    o.shortest = (size_t)shortest;
    if ((op == Py_None || (o.op = sn_py_name_bytes(op, &hold))) && enter(h) == 0) {
        const Py_ssize_t n = PyTuple_Size(paths);
        Py_BEGIN_ALLOW_THREADS st = find_trends(h->history, &f, &o, paths, n, &found, &err);
        Py_END_ALLOW_THREADS leave(h);
        made = st ? sn_py_raise(&err) : trend_list(found);
        sonde_trends_release(found);
    }
    free_texts(&t);
    Py_XDECREF(hold);
    return made;
}

/* ------------------------------------------------------------------ functions */
/* history_commit(folder as bytes or None) */
static PyObject *commit(PyObject *module, PyObject *folder)
{
    char text[72];
    (void)module;
    const char *path = folder == Py_None ? NULL : PyBytes_AsString(folder);
    if (!path && folder != Py_None)
        return NULL;
    return sn_py_text(sonde_commit_find(path, text, sizeof text));
}

/* find_changes(doubles, false_alarms, least, shortest) ► [change, …] */
static PyObject *changes(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer view;
    sonde_change_options o = SONDE_INIT(sonde_change_options);
    unsigned long long shortest;
    sonde_error err;
    if (!PyArg_ParseTuple(args, "y*ddK", &view, &o.false_alarms, &o.least, &shortest))
        return NULL;
    o.shortest = (size_t)shortest;
    const size_t count = (size_t)view.len / sizeof(double), room = count / 2 + 1;
    sonde_change_point *found = PyMem_Calloc(room, sizeof *found);
    size_t n = 0;
    sonde_status st = SONDE_OK;
    if (found) {
        Py_BEGIN_ALLOW_THREADS st = sonde_changes_find(view.buf, count, &o, found, room, &n, &err);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&view);
    PyObject *list = !found ? PyErr_NoMemory() : st ? sn_py_raise(&err) : PyList_New(0);
    for (size_t i = 0; list && i < n && i < room; i++)
        if (append(list,
                   Py_BuildValue("{s:K,s:d,s:d,s:d,s:d,s:d}", "at", (unsigned long long)found[i].at,
                                 "before", found[i].before, "after", found[i].after, "low",
                                 found[i].low, "high", found[i].high, "p", found[i].p)) < 0)
            Py_CLEAR(list);
    PyMem_Free(found);
    return list;
}

/* ------------------------------------------------------------------ the module */
static PyMethodDef history_methods[] = {
    {"open", history_open, METH_VARARGS | METH_STATIC, "Opens a database."},
    {"close", history_close, METH_NOARGS, "Closes it when the last call has ended."},
    {"path", history_path, METH_NOARGS, "Where it lies."},
    {"add", history_add, METH_VARARGS, "Adds an entry; its number."},
    {"list", history_list, METH_O, "Entries as dicts, the newest first."},
    {"find", history_find, METH_VARARGS, "The number of an entry."},
    {"get", history_get, METH_VARARGS, "An entry, its operators and its samples."},
    {"profile", history_profile, METH_VARARGS, "The profile of an entry."},
    {"compare", history_compare, METH_VARARGS, "Compares the samples of two entries."},
    {"remove", history_remove, METH_VARARGS, "Removes an entry."},
    {"prune", history_prune, METH_VARARGS, "Removes all but the newest of each series."},
    {"trends", history_trends, METH_VARARGS, "Series with their levels."},
    {NULL, NULL, 0, NULL}};

static PyMethodDef functions[] = {
    {"history_commit", commit, METH_O, "The commit that is checked out."},
    {"find_changes", changes, METH_VARARGS, "Where a series changes its level."},
    {NULL, NULL, 0, NULL}};

int sn_py_add_history(PyObject *module)
{
    PyType_Slot history_slots[] = {SN_PY_SLOT(Py_tp_dealloc, history_dealloc),
                                   {Py_tp_methods, history_methods},
                                   {Py_tp_doc, (void *)(uintptr_t) "A history."},
                                   {0, NULL}};
    PyType_Slot cursor_slots[] = {SN_PY_SLOT(Py_tp_dealloc, cursor_dealloc),
                                  SN_PY_SLOT(Py_tp_iter, itself),
                                  SN_PY_SLOT(Py_tp_iternext, cursor_next),
                                  {Py_tp_doc, (void *)(uintptr_t) "Entries of a history."},
                                  {0, NULL}};
    PyType_Spec specs[] = {{.name = "sonde._sonde.History",
                            .basicsize = sizeof(history_object),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            .slots = history_slots},
                           {.name = "sonde._sonde.HistoryCursor",
                            .basicsize = sizeof(cursor_object),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            .slots = cursor_slots}};
    history_type = (PyTypeObject *)PyType_FromSpec(&specs[0]);
    cursor_type = (PyTypeObject *)PyType_FromSpec(&specs[1]);
    if (!history_type || !cursor_type || PyModule_AddFunctions(module, functions) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "History", (PyObject *)history_type);
}
