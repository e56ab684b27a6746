/* SPDX-License-Identifier: Apache-2.0 */
/* What is switched on and off: Recording (a profiler with a beginning and an end of its own),
 * Record (a labelled stretch of the user's code), the memory profiler and hardware counters. */
#include "binding.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sonde/experimental/machine.h"
#include "sonde/experimental/memory.h"
#include "sonde/experimental/recording.h"

static void free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *done(sonde_status st, const sonde_error *err)
{
    if (st != SONDE_OK)
        return sn_py_raise(err);
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------ recordings */
typedef struct recording_object {
    PyObject_HEAD sonde_recording *recording; /* NULL: closed */
    int readers; /* that make a profile now, without the interpreter's lock */
    int closing;
} recording_object;

static sonde_recording *recording_of(PyObject *self)
{
    recording_object *r = (recording_object *)self;
    if (!r->recording || r->closing) {
        sn_py_raise_text("InvalidArgument", "the recording has ended");
        return NULL;
    }
    return r->recording;
}

static void recording_release(recording_object *r)
{
    sonde_recording *recording = r->recording;
    r->recording = NULL;
    Py_BEGIN_ALLOW_THREADS sonde_recording_release(recording);
    Py_END_ALLOW_THREADS
}

static void recording_dealloc(PyObject *self)
{
    recording_release((recording_object *)self);
    free_object(self);
}

/* Labels from a list of pairs of str, while a call needs them. */
typedef struct labels {
    sonde_label *list;
    PyObject **holds; /* two each: who owns the texts */
    size_t n;
} labels;

static void labels_clear(labels *l)
{
    for (size_t i = 0; i < 2 * l->n; i++)
        Py_XDECREF(l->holds[i]);
    free(l->list);
    free(l->holds);
    *l = (labels){.n = 0};
}

/* -1: an exception. `pairs` may be NULL. */
static int labels_of(PyObject *pairs, labels *l)
{
    *l = (labels){.n = 0};
    const Py_ssize_t n = pairs ? PyList_Size(pairs) : 0;
    if (n <= 0)
        return (int)n;
    l->list = calloc((size_t)n, sizeof *l->list);
    l->holds = calloc(2 * (size_t)n, sizeof(PyObject *));
    if (!l->list || !l->holds) {
        labels_clear(l);
        PyErr_NoMemory();
        return -1;
    }
    l->n = (size_t)n;
    for (size_t i = 0; i < l->n; i++) {
        PyObject *key, *value, *pair = PyList_GetItem(pairs, (Py_ssize_t)i); /* borrowed */
        if (!pair || !PyArg_ParseTuple(pair, "UU", &key, &value) ||
            !(l->list[i].key = sn_py_name_bytes(key, &l->holds[2 * i])) ||
            !(l->list[i].value = sn_py_name_bytes(value, &l->holds[2 * i + 1]))) {
            labels_clear(l);
            return -1;
        }
    }
    return 0;
}

static int recording_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"level", "categories", "sample_every", "max_overhead", "labels", NULL};
    recording_object *r = (recording_object *)self;
    sonde_profiler_options o = SONDE_INIT(sonde_profiler_options);
    sonde_error err;
    PyObject *pairs = NULL;
    labels own;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "i|zidO!", names, &o.level, &o.categories,
                                     &o.sample_every, &o.max_overhead, &PyList_Type, &pairs) ||
        labels_of(pairs, &own) < 0)
        return -1;
    if (r->recording) {
        sn_py_raise_text("InvalidArgument", "the recording has already begun");
        labels_clear(&own);
        return -1;
    }
    o.labels = own.list;
    o.label_count = own.n;
    sonde_status st;
    Py_BEGIN_ALLOW_THREADS st = sonde_recording_start(NULL, &o, &r->recording, &err);
    Py_END_ALLOW_THREADS labels_clear(&own);
    if (st != SONDE_OK)
        sn_py_raise(&err);
    return st == SONDE_OK ? 0 : -1;
}

/* ------------------------------------------------------------------ a trace while things happen */
static PyObject *stream_start(PyObject *module, PyObject *args)
{
    (void)module;
    sonde_profiler_options o = SONDE_INIT(sonde_profiler_options);
    sonde_error err;
    PyObject *pairs = NULL;
    labels own;
    if (!PyArg_ParseTuple(args, "siz|O!", &o.path, &o.level, &o.categories, &PyList_Type, &pairs) ||
        labels_of(pairs, &own) < 0)
        return NULL;
    o.labels = own.list;
    o.label_count = own.n;
    sonde_status st;
    Py_BEGIN_ALLOW_THREADS st = sonde_profiler_start_with(NULL, &o, &err);
    Py_END_ALLOW_THREADS labels_clear(&own);
    return done(st, &err);
}

static PyObject *stream_stop(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    sonde_error err;
    sonde_status st;
    Py_BEGIN_ALLOW_THREADS st = sonde_profiler_stop(NULL, NULL, &err);
    Py_END_ALLOW_THREADS return done(st, &err);
}

/* These are a few stores under a lock that nobody holds for long: the interpreter's stays. */
static PyObject *recording_pause(PyObject *self, PyObject *none)
{
    (void)none;
    sonde_error err;
    sonde_recording *r = recording_of(self);
    return r ? done(sonde_recording_pause(r, &err), &err) : NULL;
}

static PyObject *recording_resume(PyObject *self, PyObject *args)
{
    int level = 0;
    sonde_error err;
    sonde_recording *r = recording_of(self);
    if (!r || !PyArg_ParseTuple(args, "|i", &level))
        return NULL;
    return done(sonde_recording_resume(r, level, &err), &err);
}

static PyObject *recording_clear(PyObject *self, PyObject *none)
{
    (void)none;
    sonde_error err;
    sonde_recording *r = recording_of(self);
    return r ? done(sonde_recording_clear(r, &err), &err) : NULL;
}

static PyObject *recording_get(PyObject *self, PyObject *none)
{
    (void)none;
    recording_object *object = (recording_object *)self;
    sonde_profile *profile = NULL;
    sonde_error err;
    sonde_status st;
    sonde_recording *r = recording_of(self);
    if (!r)
        return NULL;
    object->readers++;
    Py_BEGIN_ALLOW_THREADS st = sonde_recording_get(r, &profile, &err);
    Py_END_ALLOW_THREADS if (--object->readers == 0 && object->closing) recording_release(object);
    return st == SONDE_OK ? sn_py_wrap_profile(profile) : sn_py_raise(&err);
}

static PyObject *recording_close(PyObject *self, PyObject *none)
{
    (void)none;
    recording_object *r = (recording_object *)self;
    r->closing = 1;
    if (r->readers == 0)
        recording_release(r);
    Py_RETURN_NONE;
}

static PyMethodDef recording_methods[] = {
    {"pause", recording_pause, METH_NOARGS, "Pauses recording."},
    {"resume", recording_resume, METH_VARARGS, "Goes on."},
    {"clear", recording_clear, METH_NOARGS, "Discards the records."},
    {"get", recording_get, METH_NOARGS, "The profile of everything recorded so far."},
    {"close", recording_close, METH_NOARGS, "Ends the recording and discards its records."},
    {NULL, NULL, 0, NULL}};

/* ------------------------------------------------------------------ records */
/* One object may be entered many times, also by several threads at once. */
typedef struct open_record {
    sonde_record *record;
    unsigned long thread;
} open_record;

typedef struct record_object {
    PyObject_HEAD PyObject *bytes; /* the label, UTF-8 */
    char warm_up;
    open_record *open;
    size_t n, cap;
} record_object;

/* Labels of the records that are open on this thread, innermost last: what it hands to another
 * thread belongs to them. Those too deep are not among them. */
enum { MOST_DEEP = 32 };
static _Thread_local struct {
    const void *owner;
    PyObject *bytes; /* a reference */
    bool warm_up;
} around[MOST_DEEP];
static _Thread_local size_t n_around;

static void come_around(const record_object *r)
{
    if (n_around == MOST_DEEP)
        return;
    Py_INCREF(r->bytes);
    around[n_around].owner = r;
    around[n_around].bytes = r->bytes;
    around[n_around++].warm_up = r->warm_up != 0;
}

static void leave_around(const record_object *r)
{
    size_t at = n_around;
    while (at > 0 && around[at - 1].owner != r)
        at--;
    if (at == 0)
        return;
    PyObject *bytes = around[at - 1].bytes;
    memmove(&around[at - 1], &around[at], (n_around - at) * sizeof *around);
    n_around--;
    Py_DECREF(bytes);
}

/* open_record() -> (label, warm_up) of the innermost record, or None */
static PyObject *open_record_of_thread(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    bool warm_up = false;
    for (size_t i = 0; i < n_around; i++)
        warm_up |= around[i].warm_up;
    if (n_around == 0)
        Py_RETURN_NONE;
    return Py_BuildValue("(NO)", sn_py_text(PyBytes_AsString(around[n_around - 1].bytes)),
                         warm_up ? Py_True : Py_False);
}

static void record_dealloc(PyObject *self)
{
    record_object *r = (record_object *)self;
    while (r->n) {
        leave_around(r);
        sonde_record_end(r->open[--r->n].record);
    }
    PyMem_Free(r->open);
    Py_XDECREF(r->bytes);
    free_object(self);
}

static PyObject *record_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"label", "warm_up", NULL};
    PyObject *label;
    int warm_up = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|p", names, &label, &warm_up))
        return NULL;
    allocfunc alloc = (allocfunc)(uintptr_t)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);
    if (!self)
        return NULL;
    record_object *r = (record_object *)self;
    r->warm_up = (char)warm_up;
    r->bytes = PyUnicode_AsEncodedString(label, "utf-8", "replace");
    if (r->bytes && memchr(PyBytes_AsString(r->bytes), 0, (size_t)PyBytes_Size(r->bytes))) {
        sn_py_raise_text("InvalidArgument", "the label contains a zero byte");
        Py_CLEAR(r->bytes);
    }
    if (!r->bytes) {
        Py_DECREF(self);
        return NULL;
    }
    return self;
}

static PyObject *record_enter(PyObject *self, PyObject *none)
{
    (void)none;
    record_object *r = (record_object *)self;
    sonde_error err;
    if (r->n == r->cap) {
        const size_t cap = r->cap * 2 + 2;
        open_record *more = PyMem_Realloc(r->open, cap * sizeof *more);
        if (!more)
            return PyErr_NoMemory();
        r->open = more;
        r->cap = cap;
    }
    open_record *o = &r->open[r->n];
    if (sonde_record_begin(NULL, PyBytes_AsString(r->bytes), r->warm_up, &o->record, &err))
        return sn_py_raise(&err);
    o->thread = PyThread_get_thread_ident();
    r->n++;
    come_around(r);
    Py_INCREF(self);
    return self;
}

static PyObject *record_exit(PyObject *self, PyObject *args)
{
    (void)args;
    record_object *r = (record_object *)self;
    const unsigned long thread = PyThread_get_thread_ident();
    size_t at = r->n;
    while (at > 0 && r->open[at - 1].thread != thread)
        at--;
    if (at == 0)
        return sn_py_raise_text("InvalidArgument", "the record is not open on this thread");
    sonde_record *record = r->open[at - 1].record;
    memmove(&r->open[at - 1], &r->open[at], (r->n - at) * sizeof *r->open);
    r->n--;
    leave_around(r);
    sonde_record_end(record);
    Py_RETURN_NONE;
}

static PyObject *record_label(PyObject *self, void *closure)
{
    (void)closure;
    return sn_py_text(PyBytes_AsString(((record_object *)self)->bytes));
}

static PyObject *record_warm_up(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((record_object *)self)->warm_up);
}

static PyMethodDef record_methods[] = {{"__enter__", record_enter, METH_NOARGS, NULL},
                                       {"__exit__", record_exit, METH_VARARGS, NULL},
                                       {NULL, NULL, 0, NULL}};
static PyGetSetDef record_properties[] = {
    {"label", record_label, NULL, "The label.", NULL},
    {"warm_up", record_warm_up, NULL, "Whether inferences in this record are warm-up runs.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

/* ------------------------------------------------------------------ memory and counters */
static PyObject *memory_start(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    sonde_error err;
    return done(sonde_memory_start(NULL, &err), &err);
}

static PyObject *memory_stop(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    sonde_error err;
    return done(sonde_memory_stop(NULL, &err), &err);
}

static PyObject *memory_reset(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    sonde_error err;
    return done(sonde_memory_reset(NULL, &err), &err);
}

static PyObject *memory_max(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    sonde_memory_info info = SONDE_INIT(sonde_memory_info);
    sonde_error err;
    sonde_status st;
    Py_BEGIN_ALLOW_THREADS st = sonde_memory_max(NULL, &info, &err);
    Py_END_ALLOW_THREADS if (st != SONDE_OK) return sn_py_raise(&err);
    return Py_BuildValue("{s:d,s:d,s:K,s:K,s:d,s:n}", "max_used", info.max_used_mb, "max_allocated",
                         info.max_allocated_mb, "max_used_bytes", (unsigned long long)info.max_used,
                         "max_allocated_bytes", (unsigned long long)info.max_allocated,
                         "fragmentation", info.fragmentation, "samples", (Py_ssize_t)info.samples);
}

static PyObject *memory_trace(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    sonde_memory_trace *trace = NULL;
    sonde_error err;
    sonde_status st;
    Py_BEGIN_ALLOW_THREADS st = sonde_memory_trace_get(NULL, &trace, &err);
    Py_END_ALLOW_THREADS if (st != SONDE_OK) return sn_py_raise(&err);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < sonde_memory_trace_count(trace); i++) {
        sonde_memory_sample s = SONDE_INIT(sonde_memory_sample);
        PyObject *item =
            sonde_memory_trace_sample(trace, i, &s, &err)
                ? sn_py_raise(&err)
                : Py_BuildValue("(NKKK)", sn_py_text(s.tag), (unsigned long long)s.used,
                                (unsigned long long)s.allocated, (unsigned long long)s.at_ns);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    sonde_memory_trace_release(trace);
    return list;
}

/* "" when counting began, else why there are no hardware counters; the system counts in any case.
 */
static PyObject *counters_start(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    sonde_error err = {.status = SONDE_OK, .message = ""};
    const sonde_status st = sonde_counters_start(NULL, &err);
    return st == SONDE_OUT_OF_MEMORY ? sn_py_raise(&err) : sn_py_text(st ? err.message : "");
}

static PyObject *counters_stop(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    sonde_error err;
    return done(sonde_counters_stop(NULL, &err), &err);
}

static PyMethodDef functions[] = {{"stream_start", stream_start, METH_VARARGS, NULL},
                                  {"stream_stop", stream_stop, METH_NOARGS, NULL},
                                  {"memory_start", memory_start, METH_NOARGS, NULL},
                                  {"memory_stop", memory_stop, METH_NOARGS, NULL},
                                  {"memory_reset", memory_reset, METH_NOARGS, NULL},
                                  {"memory_max", memory_max, METH_NOARGS, NULL},
                                  {"memory_trace", memory_trace, METH_NOARGS, NULL},
                                  {"counters_start", counters_start, METH_NOARGS, NULL},
                                  {"counters_stop", counters_stop, METH_NOARGS, NULL},
                                  {"open_record", open_record_of_thread, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

/* ------------------------------------------------------------------ types */
static int add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    const int st = type ? PyModule_AddObjectRef(module, name, type) : -1;
    Py_XDECREF(type);
    return st;
}

int sn_py_add_profiler(PyObject *module)
{
    PyType_Slot recording[] = {SN_PY_SLOT(Py_tp_init, recording_init),
                               SN_PY_SLOT(Py_tp_dealloc, recording_dealloc),
                               {Py_tp_methods, recording_methods},
                               {0, NULL}};
    PyType_Slot record[] = {SN_PY_SLOT(Py_tp_new, record_new),
                            SN_PY_SLOT(Py_tp_dealloc, record_dealloc),
                            {Py_tp_methods, record_methods},
                            {Py_tp_getset, record_properties},
                            {0, NULL}};
    PyType_Spec recording_spec = {.name = "sonde._sonde.Recording",
                                  .basicsize = sizeof(recording_object),
                                  .flags = Py_TPFLAGS_DEFAULT,
                                  .slots = recording};
    PyType_Spec record_spec = {.name = "sonde._sonde.Record",
                               .basicsize = sizeof(record_object),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                               .slots = record};
    return add_type(module, "Recording", &recording_spec) < 0 ||
                   add_type(module, "Record", &record_spec) < 0
               ? -1
               : PyModule_AddFunctions(module, functions);
}
