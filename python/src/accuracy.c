/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing two models: Accuracy, of which sonde.compare makes rows. Another runtime is a Python
 * function that runs the file of a model. */
#include "binding.h"

#include <string.h>

#include "sonde/experimental/accuracy.h"
#include "sonde/experimental/inspect.h"

typedef struct py_accuracy {
    PyObject ob_base;
    sonde_accuracy *accuracy; /* NULL: not open */
    PyObject *run;  /* of B: run(is it another model?, feeds) ► values; NULL: a session */
    PyObject *path; /* the file in which `run` finds the model, as bytes */
    char model[64]; /* name of the model in that file */
    sn_py_unlocked unlocked; /* while the library works */
    int busy;
} py_accuracy;

static py_accuracy *cast(PyObject *self)
{
    return (py_accuracy *)self;
}

/* ------------------------------------------------------------------ inputs */
/* Names and values of a dict of OrtValues, which must live as long. */
typedef struct inputs {
    const char **names;
    sonde_value **values;
    PyObject *held; /* owners of the names */
    size_t n;
} inputs;

static void inputs_free(inputs *in)
{
    PyMem_Free(in->names);
    PyMem_Free(in->values);
    Py_XDECREF(in->held);
}

static int add_input(inputs *in, PyObject *name, PyObject *value)
{
    PyObject *hold = NULL;
    if (!sn_py_is_value(value)) {
        PyErr_SetString(PyExc_TypeError, "feeds must be OrtValues");
        return -1;
    }
    const char *text = sn_py_name_bytes(name, &hold);
    const int status = text ? PyList_Append(in->held, hold) : -1;
    Py_XDECREF(hold);
    in->names[in->n] = text;
    in->values[in->n++] = ((sn_py_value *)value)->value;
    return status;
}

static int inputs_read(inputs *in, PyObject *dict)
{
    const size_t n = (size_t)PyDict_Size(dict);
    *in = (inputs){.names = PyMem_Calloc(n + 1, sizeof *in->names),
                   .values = PyMem_Calloc(n + 1, sizeof(sonde_value *)),
                   .held = PyList_New(0)};
    if (!in->names || !in->values || !in->held) {
        PyErr_NoMemory();
        return -1;
    }
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &name, &value))
        if (in->n == n || add_input(in, name, value) < 0)
            return -1;
    return 0;
}

/* ------------------------------------------------------------------ another runtime */
static PyObject *feeds_dict(const char *const *names, sonde_value *const *values, size_t n)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < n; i++) {
        PyObject *name = sn_py_name(names[i]);
        PyObject *value = sn_py_wrap_value(sonde_value_retain(values[i]));
        if (!name || !value || PyDict_SetItem(dict, name, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    return dict;
}

/* With memory of its own: that of `from` may be an array's. Values that are no tensors stay NULL.
 */
static sonde_status copy_value(const sonde_value *from, sonde_value **to, sonde_error *err)
{
    if (sonde_value_kind(from) != SONDE_KIND_TENSOR)
        return SONDE_OK;
    const int64_t *dims = sonde_tensor_dims(from);
    const size_t rank = sonde_tensor_rank(from);
    if (sonde_tensor_dtype(from) == SONDE_DTYPE_STRING)
        return sonde_tensor_create_strings(NULL, dims, rank, sonde_tensor_data(from), to, err);
    return sonde_tensor_create(NULL, sonde_tensor_dtype(from), dims, rank, sonde_tensor_data(from),
                               sonde_tensor_bytes(from), to, err);
}

static sonde_status take_outputs(PyObject *list, sonde_value **outputs, size_t n, sonde_error *err)
{
    sonde_status st = SONDE_OK;
    const size_t given = PyList_Check(list) ? (size_t)PyList_Size(list) : 0;
    for (size_t i = 0; i < n && i < given && st == SONDE_OK; i++) {
        PyObject *item = PyList_GetItem(list, (Py_ssize_t)i);
        if (sn_py_is_value(item))
            st = copy_value(((sn_py_value *)item)->value, &outputs[i], err);
    }
    return st;
}

/* With the interpreter's lock. An exception stays set; whoever called the library finds it. */
static sonde_status run_python(py_accuracy *self, sonde_model *model, PyObject *feeds,
                               sonde_value **outputs, size_t n, sonde_error *err)
{
    const char *name = sonde_model_name(model), *path = PyBytes_AsString(self->path);
    if (!feeds || !path)
        return SONDE_RUNTIME;
    const int fresh = strcmp(self->model, name) != 0;
    if (fresh) {
        self->model[0] = 0;
        const sonde_status st = sonde_model_save(model, path, err);
        if (st != SONDE_OK)
            return st;
        (void)PyOS_snprintf(self->model, sizeof self->model, "%s", name);
    }
    PyObject *list = PyObject_CallFunction(self->run, "OO", fresh ? Py_True : Py_False, feeds);
    const sonde_status st = list ? take_outputs(list, outputs, n, err) : SONDE_RUNTIME;
    Py_XDECREF(list);
    return st;
}

static sonde_status run_other(void *user, sonde_model *model, const char *const *names,
                              sonde_value *const *values, size_t count, sonde_value **outputs,
                              size_t n, sonde_error *err)
{
    py_accuracy *self = user;
    if (err)
        *err = (sonde_error){.status = SONDE_RUNTIME, .message = "the other runtime failed"};
    PyEval_RestoreThread(self->unlocked.state);
    PyObject *feeds = feeds_dict(names, values, count);
    const sonde_status st = run_python(self, model, feeds, outputs, n, err);
    Py_XDECREF(feeds);
    const int raised = PyErr_Occurred() != NULL;
    self->unlocked.state = PyEval_SaveThread();
    return raised ? SONDE_CANCELLED : st;
}

/* ------------------------------------------------------------------ life */
enum { MOST_PASSES = 64 };

typedef struct py_side {
    sonde_session_options options;
    const char *disabled[MOST_PASSES];
} py_side;

/* (label, no_optimize, no_prepack, flush_denormals, precision, threads, disabled passes) */
static int read_side(PyObject *tuple, PyObject *session, sonde_accuracy_side *side, py_side *own)
{
    int precision;
    PyObject *passes;
    sonde_session_options *o = &own->options;
    if (!PyArg_ParseTuple(tuple, "spppiiO!", &side->label, &o->no_optimize, &o->no_prepack,
                          &o->flush_denormals, &precision, &o->threads, &PyTuple_Type, &passes))
        return -1;
    const Py_ssize_t n = PyTuple_Size(passes);
    for (Py_ssize_t i = 0; i < n && i < MOST_PASSES; i++) {
        own->disabled[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(passes, i), NULL);
        if (!own->disabled[i])
            return -1;
        o->disabled_pass_count++;
    }
    o->disabled_passes = own->disabled;
    o->precision = (sonde_precision)precision;
    side->model = ((sn_py_session *)session)->model;
    side->session = o;
    return 0;
}

static sonde_status create(py_accuracy *self, const sonde_accuracy_side *sides,
                           sonde_accuracy_options *o, const inputs *in, int *raised)
{
    sonde_run_options run = SONDE_INIT(sonde_run_options);
    sonde_accuracy *made = NULL;
    sonde_error err;
    self->busy = 1;
    sn_py_unlock(&self->unlocked, &run);
    o->interrupt = run.interrupt;
    o->interrupt_user = run.interrupt_user;
    const sonde_status st =
        sonde_accuracy_create(&sides[0], &sides[1], o, in->names, in->values, in->n, &made, &err);
    *raised = sn_py_lock(&self->unlocked, st, &err);
    self->busy = 0;
    self->accuracy = made;
    return st;
}

static int accuracy_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    py_accuracy *self = cast(object);
    PyObject *sessions[2], *tuples[2], *bound, *feeds, *run, *path;
    sonde_accuracy_side sides[2] = {SONDE_INIT(sonde_accuracy_side),
                                    SONDE_INIT(sonde_accuracy_side)};
    py_side own[2] = {{.options = SONDE_INIT(sonde_session_options)},
                      {.options = SONDE_INIT(sonde_session_options)}};
    sonde_accuracy_options o = SONDE_INIT(sonde_accuracy_options);
    Py_ssize_t group_bytes;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!nppO!OO!", sn_py.session_type, &sessions[0],
                          sn_py.session_type, &sessions[1], &PyTuple_Type, &tuples[0],
                          &PyTuple_Type, &tuples[1], &PyTuple_Type, &bound, &group_bytes,
                          &o.no_local, &o.no_layers, &PyDict_Type, &feeds, &run, &PyBytes_Type,
                          &path) ||
        !PyArg_ParseTuple(bound, "ddd", &o.bound.sqnr_db, &o.bound.max_abs, &o.bound.relative))
        return -1;
    if (self->accuracy || self->busy) {
        sn_py_raise_text("InvalidArgument", "the comparison is already open");
        return -1;
    }
    for (int k = 0; k < 2; k++)
        if (read_side(tuples[k], sessions[k], &sides[k], &own[k]) < 0)
            return -1;
    o.group_bytes = (size_t)group_bytes;
    if (run != Py_None && !self->run) {
        Py_INCREF(run);
        Py_INCREF(path);
        self->run = run;
        self->path = path;
        sides[1].run = run_other;
        sides[1].user = self;
    }
    inputs in;
    int raised = inputs_read(&in, feeds);
    if (raised == 0)
        (void)create(self, sides, &o, &in, &raised);
    inputs_free(&in);
    return raised;
}

static void accuracy_dealloc(PyObject *object)
{
    py_accuracy *self = cast(object);
    PyTypeObject *type = Py_TYPE(object);
    sonde_accuracy_release(self->accuracy);
    Py_XDECREF(self->run);
    Py_XDECREF(self->path);
    freefunc free_object = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    free_object(object);
    Py_DECREF(type);
}

/* NULL: it cannot be used now, which is said. */
static sonde_accuracy *opened(PyObject *object)
{
    const py_accuracy *self = cast(object);
    if (!self->accuracy)
        sn_py_raise_text("InvalidArgument", "the comparison is not open");
    else if (self->busy)
        sn_py_raise_text("InvalidArgument", "the comparison runs on another thread");
    else
        return self->accuracy;
    return NULL;
}

/* ------------------------------------------------------------------ using it */
static PyObject *accuracy_passes(PyObject *object, PyObject *none)
{
    (void)none;
    return opened(object) ? PyLong_FromSize_t(sonde_accuracy_pass_count(cast(object)->accuracy))
                          : NULL;
}

static PyObject *accuracy_add(PyObject *object, PyObject *args)
{
    py_accuracy *self = cast(object);
    Py_ssize_t pass;
    PyObject *feeds;
    if (!PyArg_ParseTuple(args, "nO!", &pass, &PyDict_Type, &feeds) || !opened(object))
        return NULL;
    inputs in;
    int raised = inputs_read(&in, feeds);
    if (raised == 0) {
        sonde_run_options run = SONDE_INIT(sonde_run_options);
        sonde_error err;
        self->busy = 1;
        sn_py_unlock(&self->unlocked, &run);
        const sonde_status st =
            sonde_accuracy_add(self->accuracy, (size_t)pass, in.names, in.values, in.n, &err);
        raised = sn_py_lock(&self->unlocked, st, &err);
        self->busy = 0;
    }
    inputs_free(&in);
    if (raised < 0)
        return NULL;
    Py_RETURN_NONE;
}

static void append(void *user, const char *text, size_t size)
{
    PyObject **bytes = user;
    const Py_ssize_t before = *bytes ? PyByteArray_Size(*bytes) : 0;
    if (*bytes && PyByteArray_Resize(*bytes, before + (Py_ssize_t)size) == 0)
        memcpy(PyByteArray_AsString(*bytes) + before, text, size);
    else
        Py_CLEAR(*bytes);
}

static PyObject *accuracy_write(PyObject *object, PyObject *args)
{
    const char *format;
    sonde_error err;
    if (!PyArg_ParseTuple(args, "s", &format) || !opened(object))
        return NULL;
    PyObject *bytes = PyByteArray_FromStringAndSize("", 0);
    if (bytes && sonde_accuracy_write(cast(object)->accuracy, format, append, &bytes, &err)) {
        Py_CLEAR(bytes);
        sn_py_raise(&err);
    }
    return bytes;
}

static PyObject *accuracy_save(PyObject *object, PyObject *args)
{
    PyObject *path = NULL;
    sonde_error err;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
        return NULL;
    const int failed =
        !opened(object) ||
        sonde_accuracy_save(cast(object)->accuracy, PyBytes_AsString(path), &err) != SONDE_OK;
    Py_DECREF(path);
    if (!failed)
        Py_RETURN_NONE;
    return PyErr_Occurred() ? NULL : sn_py_raise(&err);
}

static PyMethodDef methods[] = {
    {"passes", accuracy_passes, METH_NOARGS, "How many passes over the samples there are."},
    {"add", accuracy_add, METH_VARARGS, "Compares on one sample."},
    {"write", accuracy_write, METH_VARARGS, "As bytes, by suffix."},
    {"save", accuracy_save, METH_VARARGS, "To a file, by its suffix."},
    {NULL, NULL, 0, NULL}};

int sn_py_add_accuracy(PyObject *module)
{
    PyType_Slot slots[] = {SN_PY_SLOT(Py_tp_dealloc, accuracy_dealloc),
                           SN_PY_SLOT(Py_tp_init, accuracy_init),
                           {Py_tp_methods, methods},
                           {Py_tp_doc, (void *)(uintptr_t) "A comparison of two models."},
                           {0, NULL}};
    PyType_Spec spec = {.name = "sonde._sonde.Accuracy",
                        .basicsize = sizeof(py_accuracy),
                        .flags = Py_TPFLAGS_DEFAULT,
                        .slots = slots};
    PyObject *type = PyType_FromSpec(&spec);
    const int status = type ? PyModule_AddObjectRef(module, "Accuracy", type) : -1;
    Py_XDECREF(type);
    return status;
}
