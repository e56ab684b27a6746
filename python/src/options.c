/* SPDX-License-Identifier: Apache-2.0 */
/* RunOptions: what can be said about a single run. `terminate` may be set from another thread while
 * the run goes on, which is why this is not a plain Python class. */
#include "binding.h"

#include <stdbool.h>
#include <stddef.h>
#include <structmember.h>

typedef struct options_object {
    PyObject ob_base;
    sonde_cancel_token *cancel;
    PyObject *logid, *timing_sort, *timing_filter, *entries, *traceparent;
    int log_severity_level, log_verbosity_level;
    char terminate, only_path, training_mode, timing, by_shape, verbose, warmup;
} options_object;

static options_object *cast(PyObject *self)
{
    return (options_object *)self;
}

static void options_dealloc(PyObject *self)
{
    options_object *o = cast(self);
    PyTypeObject *type = Py_TYPE(self);
    sonde_cancel_token_release(o->cancel);
    Py_XDECREF(o->logid);
    Py_XDECREF(o->timing_sort);
    Py_XDECREF(o->timing_filter);
    Py_XDECREF(o->entries);
    Py_XDECREF(o->traceparent);
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *options_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *none[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "", none))
        return NULL;
    allocfunc alloc = (allocfunc)(uintptr_t)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);
    if (!self)
        return NULL;
    options_object *o = cast(self);
    sonde_error err;
    o->log_severity_level = -1;
    o->logid = PyUnicode_FromString("");
    o->timing_sort = PyUnicode_FromString("time");
    o->timing_filter = PyUnicode_FromString("");
    o->entries = PyDict_New();
    o->traceparent = PyUnicode_FromString("");
    if (sonde_cancel_token_create(&o->cancel, &err))
        sn_py_raise(&err);
    if (!o->cancel || !o->logid || !o->timing_sort || !o->timing_filter || !o->entries ||
        !o->traceparent) {
        Py_DECREF(self);
        return NULL;
    }
    return self;
}

/* ------------------------------------------------------------------ attributes */
static PyObject *get_terminate(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(cast(self)->terminate);
}

static int set_terminate(PyObject *self, PyObject *flag, void *closure)
{
    (void)closure;
    const int stop = flag ? PyObject_IsTrue(flag) : 0;
    if (stop < 0)
        return -1;
    cast(self)->terminate = (char)stop;
    if (stop)
        sonde_cancel(cast(self)->cancel);
    else
        sonde_cancel_reset(cast(self)->cancel);
    return 0;
}

/* Texts, found by their place in the object. */
static PyObject *get_text(PyObject *self, void *place)
{
    PyObject *text = *(PyObject **)((char *)self + (size_t)(uintptr_t)place);
    Py_INCREF(text);
    return text;
}

static int set_text(PyObject *self, PyObject *text, void *place)
{
    if (!text || !PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "expected a str");
        return -1;
    }
    PyObject **at = (PyObject **)((char *)self + (size_t)(uintptr_t)place), *old = *at;
    Py_INCREF(text);
    *at = text;
    Py_DECREF(old);
    return 0;
}

static int set_sort(PyObject *self, PyObject *text, void *place)
{
    if (text && PyUnicode_Check(text) && PyUnicode_CompareWithASCIIString(text, "time") != 0 &&
        PyUnicode_CompareWithASCIIString(text, "name") != 0) {
        const char *word = PyUnicode_AsUTF8AndSize(text, NULL);
        if (word)
            sn_py_raise_text("InvalidArgument", "timing_sort is '%s', expected 'time' or 'name'",
                             word);
        return -1;
    }
    return set_text(self, text, place);
}

/* A str, or a list of names, which is read back as one str with commas. */
static int set_names(PyObject *self, PyObject *names, void *place)
{
    if (!names || PyUnicode_Check(names))
        return set_text(self, names, place);
    PyObject *list = PySequence_List(names);
    const Py_ssize_t n = list ? PyList_Size(list) : 0;
    bool fine = list != NULL;
    for (Py_ssize_t i = 0; i < n && fine; i++)
        fine = PyUnicode_Check(PyList_GetItem(list, i));
    PyObject *comma = fine ? PyUnicode_FromString(",") : NULL;
    PyObject *text = comma ? PyUnicode_Join(comma, list) : NULL;
    if (!text && (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError)))
        PyErr_SetString(PyExc_TypeError, "expected a str or a list of str");
    const int failed = text ? set_text(self, text, place) : -1;
    Py_XDECREF(text);
    Py_XDECREF(comma);
    Py_XDECREF(list);
    return failed;
}

#define TEXT(name, field, doc)                                                                     \
    {                                                                                              \
        name, get_text, set_text, doc, (void *)(uintptr_t)offsetof(options_object, field)          \
    }
static PyGetSetDef properties[] = {
    {"terminate", get_terminate, set_terminate,
     "Set this to True, from any thread, to stop runs with these options after the current step.",
     NULL},
    TEXT("logid", logid, "A name for the run."),
    TEXT("traceparent", traceparent,
         "The trace that the caller is in, as W3C Trace Context writes it. Spans of a recorded run "
         "belong to it; a text that the standard does not allow is ignored."),
    {"timing_sort", get_text, set_sort, "Order of the timing table: 'time' or 'name'.",
     (void *)(uintptr_t)offsetof(options_object, timing_sort)},
    {"timing_filter", get_text, set_names,
     "Operators that the timing table shows: 'Conv,MatMul' or ['Conv', 'MatMul'].",
     (void *)(uintptr_t)offsetof(options_object, timing_filter)},
    {NULL, NULL, NULL, NULL, NULL}};

#define FLAG(name, field, doc)                                                                     \
    {                                                                                              \
        name, T_BOOL, offsetof(options_object, field), 0, doc                                      \
    }
static PyMemberDef members[] = {
    {"log_severity_level", T_INT, offsetof(options_object, log_severity_level), 0, NULL},
    {"log_verbosity_level", T_INT, offsetof(options_object, log_verbosity_level), 0, NULL},
    FLAG("only_execute_path_to_fetches", only_path,
         "Compute only what the requested outputs need."),
    FLAG("training_mode", training_mode, NULL),
    FLAG("timing", timing, "Print the timing table of the run to stderr."),
    FLAG("timing_by_shape", by_shape, "Split the timing table by input shapes."),
    FLAG("verbose", verbose, "Print every step to stderr as it runs."),
    FLAG("warmup", warmup, "Mark the run as a warm-up in profiles."),
    {NULL, 0, 0, 0, NULL}};

static PyObject *add_entry(PyObject *self, PyObject *args)
{
    PyObject *key, *text;
    if (!PyArg_ParseTuple(args, "UU", &key, &text) ||
        PyDict_SetItem(cast(self)->entries, key, text) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *get_entry(PyObject *self, PyObject *key)
{
    PyObject *text = PyDict_GetItemWithError(cast(self)->entries, key);
    if (!text) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_RuntimeError, "unknown run configuration entry %R", key);
        return NULL;
    }
    Py_INCREF(text);
    return text;
}

static PyMethodDef methods[] = {
    {"add_run_config_entry", add_entry, METH_VARARGS, "Sets a configuration entry."},
    {"get_run_config_entry", get_entry, METH_O, "Returns a configuration entry."},
    {NULL, NULL, 0, NULL}};

int sn_py_add_run_options_type(PyObject *module)
{
    PyType_Slot slots[] = {SN_PY_SLOT(Py_tp_new, options_new),
                           SN_PY_SLOT(Py_tp_dealloc, options_dealloc),
                           {Py_tp_getset, properties},
                           {Py_tp_members, members},
                           {Py_tp_methods, methods},
                           {Py_tp_doc, (void *)(uintptr_t) "Options of a single run."},
                           {0, NULL}};
    PyType_Spec spec = {.name = "sonde.RunOptions",
                        .basicsize = sizeof(options_object),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                        .slots = slots};
    sn_py.run_options_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return sn_py.run_options_type
               ? PyModule_AddObjectRef(module, "RunOptions", (PyObject *)sn_py.run_options_type)
               : -1;
}

int sn_py_run_settings(PyObject *object, sn_py_settings *to)
{
    *to = (sn_py_settings){.options = SONDE_INIT(sonde_run_options)};
    if (!object || object == Py_None)
        return 0;
    if (!PyObject_TypeCheck(object, sn_py.run_options_type)) {
        PyErr_Format(PyExc_TypeError, "run_options must be a sonde.RunOptions, not %R",
                     (PyObject *)Py_TYPE(object));
        return -1;
    }
    const options_object *from = cast(object);
    PyObject *owner, *caller;
    const char *filter = sn_py_name_bytes(from->timing_filter, &owner);
    if (!filter)
        return -1;
    const char *traceparent = sn_py_name_bytes(from->traceparent, &caller);
    if (!traceparent) { /* no bytes can be what it says: it is no trace */
        PyErr_Clear();
        traceparent = "";
        Py_INCREF(owner);
        caller = owner;
    }
    sonde_run_options *o = &to->options;
    o->cancel = from->cancel;
    o->timing = from->timing;
    o->timing_sort_by_name = PyUnicode_CompareWithASCIIString(from->timing_sort, "name") == 0;
    o->timing_by_shape = from->by_shape;
    o->timing_filter = *filter ? filter : NULL;
    o->verbose = from->verbose;
    o->warmup = from->warmup;
    o->traceparent = *traceparent ? traceparent : NULL;
    to->only_path = from->only_path;
    to->texts = PyTuple_Pack(2, owner, caller);
    Py_DECREF(owner);
    Py_DECREF(caller);
    return to->texts ? 0 : -1;
}
