/* SPDX-License-Identifier: Apache-2.0 */
/* Session: a loaded model made ready to run, the base of sonde.InferenceSession. Loading and runs
 * let other Python threads go on; closing one that runs takes effect when its last run is over. */
#include "binding.h"

#include <string.h>

#include "sonde/experimental/inspect.h"
#include "sonde/experimental/machine.h"
#include "sonde/experimental/zoo.h"

static sn_py_session *cast(PyObject *self)
{
    return (sn_py_session *)self;
}

/* ------------------------------------------------------------------ life */
static void free_ports(sn_py_port *ports, size_t n)
{
    for (size_t i = 0; ports && i < n; i++) {
        Py_XDECREF(ports[i].name);
        Py_XDECREF(ports[i].type);
    }
    PyMem_Free(ports);
}

static void release(sn_py_session *s)
{
    sonde_session *session = s->session;
    sonde_model *model = s->model;
    s->session = NULL;
    s->model = NULL;
    Py_BEGIN_ALLOW_THREADS /* unmapping a large model takes a while */
        sonde_session_release(session);
    sonde_model_release(model);
    Py_END_ALLOW_THREADS
}

int sn_py_session_enter(sn_py_session *s)
{
    if (!s->session || s->closing) {
        sn_py_raise_text("InvalidArgument",
                         s->inputs ? "the session is closed" : "the session was never opened");
        return -1;
    }
    s->running++;
    return 0;
}

void sn_py_session_leave(sn_py_session *s)
{
    if (--s->running == 0 && s->closing)
        release(s);
}

static PyObject *session_close(PyObject *self, PyObject *none)
{
    (void)none;
    sn_py_session *s = cast(self);
    if (s->session) {
        s->closing = 1;
        if (s->running == 0)
            release(s);
    }
    Py_RETURN_NONE;
}

static void session_dealloc(PyObject *self)
{
    sn_py_session *s = cast(self);
    PyTypeObject *type = Py_TYPE(self);
    release(s);
    free_ports(s->inputs, s->n_inputs);
    free_ports(s->outputs, s->n_outputs);
    freefunc free_object = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    free_object(self);
    Py_DECREF(type);
}

/* ------------------------------------------------------------------ opening */
/* Where a model comes from and how it is made ready; texts and buffers belong to the caller. */
typedef struct opening {
    const char *path, *zoo;
    Py_buffer data;
    unsigned long long seed;
    sonde_model_options model;
    sonde_session_options session;
} opening;

/* Runs without the interpreter's lock. */
static sonde_status open_session(const opening *o, sonde_model **model, sonde_session **session,
                                 sonde_error *err)
{
    sonde_status st = o->path  ? sonde_model_load(NULL, o->path, &o->model, model, err)
                      : o->zoo ? sonde_zoo_build(NULL, o->zoo, o->seed, model, err)
                               : sonde_model_load_memory(NULL, o->data.buf, (size_t)o->data.len,
                                                         &o->model, model, err);
    if (st == SONDE_OK)
        st = sonde_session_create(*model, &o->session, session, err);
    return st;
}

static int describe_port(sn_py_port *p)
{
    p->name = sn_py_name(p->info.name);
    p->type = PyUnicode_FromString(p->info.onnx_type);
    if (!p->name || !p->type)
        return -1;
    PyUnicode_InternInPlace(&p->name);
    p->utf8 = p->info.name;
    return 0;
}

static int describe_ports(sn_py_session *s)
{
    sonde_error err;
    s->n_inputs = sonde_session_input_count(s->session);
    s->n_outputs = sonde_session_output_count(s->session);
    s->inputs = PyMem_Calloc(s->n_inputs + 1, sizeof *s->inputs);
    s->outputs = PyMem_Calloc(s->n_outputs + 1, sizeof *s->outputs);
    if (!s->inputs || !s->outputs) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < s->n_inputs + s->n_outputs; i++) {
        const int input = i < s->n_inputs;
        sn_py_port *p = input ? &s->inputs[i] : &s->outputs[i - s->n_inputs];
        p->info.struct_size = sizeof p->info;
        if (input ? sonde_session_input_info(s->session, i, &p->info, &err)
                  : sonde_session_output_info(s->session, i - s->n_inputs, &p->info, &err)) {
            sn_py_raise(&err);
            return -1;
        }
        if (describe_port(p) < 0)
            return -1;
        if (input && !p->info.optional_input)
            s->n_required++;
    }
    return 0;
}

/* The names of a tuple of str, as texts that live as long as it does. */
static const char **texts_of(PyObject *tuple, size_t *n)
{
    const Py_ssize_t count = PyTuple_Size(tuple);
    const char **texts = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof *texts);
    if (count >= 0 && !texts)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; texts && i < count; i++) {
        PyObject *name = PyTuple_GetItem(tuple, i), *hold = NULL;
        texts[i] = sn_py_name_bytes(name, &hold);
        if (texts[i] && hold != name) { /* passes have ASCII names */
            sn_py_raise_text("InvalidArgument", "unknown pass '%s'", texts[i]);
            texts[i] = NULL;
        }
        Py_XDECREF(hold);
        if (!texts[i]) {
            PyMem_Free(texts);
            return NULL;
        }
    }
    *n = count > 0 ? (size_t)count : 0;
    return texts;
}

static int session_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path",
                            "data",
                            "zoo",
                            "seed",
                            "no_mmap",
                            "no_optimize",
                            "no_prepack",
                            "plan_only",
                            "threads",
                            "disabled",
                            "weights_cache",
                            "external_dir",
                            "tune",
                            "flush_denormals",
                            "instance",
                            "precision",
                            "numa",
                            "instances",
                            NULL};
    sn_py_session *s = cast(self);
    opening o = {.model = SONDE_INIT(sonde_model_options),
                 .session = SONDE_INIT(sonde_session_options)};
    PyObject *data = Py_None, *disabled = NULL;
    int precision = SONDE_PRECISION_FILE;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "|$zOzKppppiO!zzzpiizi", names, &o.path, &data, &o.zoo, &o.seed,
            &o.model.no_mmap, &o.session.no_optimize, &o.session.no_prepack, &o.session.plan_only,
            &o.session.threads, &PyTuple_Type, &disabled, &o.session.weights_cache,
            &o.model.external_dir, &o.session.tune, &o.session.flush_denormals, &o.session.instance,
            &precision, &o.session.numa, &o.session.instances))
        return -1;
    o.session.precision = (sonde_precision)precision;
    if (s->inputs) {
        sn_py_raise_text("InvalidArgument", "the session is already open");
        return -1;
    }
    const char **passes = NULL;
    if (disabled && !(passes = texts_of(disabled, &o.session.disabled_pass_count)))
        return -1;
    o.session.disabled_passes = passes;
    if (data != Py_None && PyObject_GetBuffer(data, &o.data, PyBUF_SIMPLE) < 0) {
        PyMem_Free(passes);
        return -1;
    }
    sonde_error err;
    sonde_status st;
    sn_py_session made = {.model = NULL}; /* another thread may be here with the same object */
    Py_BEGIN_ALLOW_THREADS st = open_session(&o, &made.model, &made.session, &err);
    Py_END_ALLOW_THREADS if (o.data.obj) PyBuffer_Release(&o.data);
    PyMem_Free(passes);
    if (st == SONDE_OK && s->inputs) {
        release(&made);
        sn_py_raise_text("InvalidArgument", "the session is already open");
        return -1;
    }
    if (sn_py_warn(2) < 0) {
        release(&made);
        return -1;
    }
    if (st != SONDE_OK) {
        release(&made);
        if (o.path && st == SONDE_NOT_FOUND)
            sn_py_raise_text("NoSuchFile", "%s", err.message);
        else
            sn_py_raise(&err);
        return -1;
    }
    s->model = made.model;
    s->session = made.session;
    if (describe_ports(s) < 0) {
        release(s);
        return -1;
    }
    return 0;
}

/* ------------------------------------------------------------------ asking */
/* (name, type, [dim, …] or None, element type, has a default) */
static PyObject *port_tuple(const sn_py_port *p)
{
    const int rank = p->info.kind == SONDE_KIND_TENSOR ? p->info.rank : -1;
    PyObject *shape = NULL;
    if (rank < 0) {
        Py_INCREF(Py_None);
        shape = Py_None;
    } else {
        shape = PyList_New(rank);
    }
    for (int i = 0; shape && i < rank; i++) {
        PyObject *dim = NULL;
        if (p->info.dims[i] >= 0)
            dim = PyLong_FromLongLong(p->info.dims[i]);
        else if (p->info.dim_names[i])
            dim = sn_py_name(p->info.dim_names[i]);
        else {
            Py_INCREF(Py_None);
            dim = Py_None;
        }
        if (!dim || PyList_SetItem(shape, i, dim) < 0)
            Py_CLEAR(shape);
    }
    return shape ? Py_BuildValue("(OONii)", p->name, p->type, shape, (int)p->info.dtype,
                                 p->info.optional_input)
                 : NULL;
}

static PyObject *port_list(sn_py_session *s, const sn_py_port *ports, size_t n)
{
    if (sn_py_session_enter(s) < 0) /* the descriptions belong to the session */
        return NULL;
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *port = port_tuple(&ports[i]);
        if (!port || PyList_SetItem(list, (Py_ssize_t)i, port) < 0)
            Py_CLEAR(list);
    }
    sn_py_session_leave(s);
    return list;
}

static PyObject *session_inputs(PyObject *self, PyObject *none)
{
    (void)none;
    return port_list(cast(self), cast(self)->inputs, cast(self)->n_inputs);
}

static PyObject *session_outputs(PyObject *self, PyObject *none)
{
    (void)none;
    return port_list(cast(self), cast(self)->outputs, cast(self)->n_outputs);
}

static PyObject *metadata(const sonde_model *model)
{
    PyObject *map = PyDict_New();
    for (size_t i = 0; map && i < sonde_model_metadata_count(model); i++) {
        PyObject *key = sn_py_shown(sonde_model_metadata_key(model, i)),
                 *text = sn_py_shown(sonde_model_metadata_value(model, i));
        if (!key || !text || PyDict_SetItem(map, key, text) < 0)
            Py_CLEAR(map);
        Py_XDECREF(key);
        Py_XDECREF(text);
    }
    return map;
}

static PyObject *session_model_info(PyObject *self, PyObject *none)
{
    (void)none;
    sn_py_session *s = cast(self);
    if (sn_py_session_enter(s) < 0)
        return NULL;
    sonde_error err;
    sonde_model_info info = SONDE_INIT(sonde_model_info);
    PyObject *made = NULL, *map = NULL;
    if (sonde_model_info_get(s->model, &info, &err))
        sn_py_raise(&err);
    else if ((map = metadata(s->model)))
        made = Py_BuildValue(
            "{s:N,s:N,s:N,s:N,s:N,s:N,s:L,s:L,s:N}", "producer_name", sn_py_shown(info.producer),
            "producer_version", sn_py_shown(info.producer_version), "domain",
            sn_py_shown(info.domain), "description", sn_py_shown(info.description), "graph_name",
            sn_py_shown(info.graph_name), "graph_description", sn_py_shown(info.graph_description),
            "version", (long long)info.version, "ir_version",
            (long long)sonde_model_ir_version(s->model), "custom_metadata_map", map);
    sn_py_session_leave(s);
    return made;
}

static PyObject *session_placement(PyObject *self, PyObject *none)
{
    sn_py_session *s = cast(self);
    sonde_placement p = SONDE_INIT(sonde_placement);
    sonde_error err;
    PyObject *made = NULL;
    (void)none;
    if (sn_py_session_enter(s) < 0)
        return NULL;
    if (sonde_session_placement(s->session, &p, &err))
        sn_py_raise(&err);
    else
        made = Py_BuildValue("{s:i,s:s,s:s,s:s,s:i,s:i,s:K,s:n,s:n}", "threads", p.threads, "nodes",
                             p.nodes, "cpus", p.cpus, "memory", p.memory, "threads_refused",
                             p.threads_refused, "memory_refused", p.memory_refused, "weight_bytes",
                             (unsigned long long)p.weight_bytes, "pages", (Py_ssize_t)p.pages,
                             "pages_elsewhere", (Py_ssize_t)p.pages_elsewhere);
    sn_py_session_leave(s);
    return made;
}

static PyObject *session_bound(PyObject *self, PyObject *none)
{
    sn_py_session *s = cast(self);
    (void)none;
    if (sn_py_session_enter(s) < 0)
        return NULL;
    const size_t n = sonde_session_inputs_text(s->session, NULL, 0);
    char *text = PyMem_Malloc(n + 1);
    PyObject *made = NULL;
    if (text) {
        (void)sonde_session_inputs_text(s->session, text, n + 1);
        made = sn_py_text(text);
    } else {
        PyErr_NoMemory();
    }
    PyMem_Free(text);
    sn_py_session_leave(s);
    return made;
}

static sonde_status save(sn_py_session *s, int optimized, const char *path,
                         const sonde_save_options *how, sonde_error *err)
{
    sonde_inspection *look = NULL;
    if (!optimized)
        return sonde_model_save_with(s->model, path, how, err);
    sonde_status st = sonde_inspect_session(s->session, NULL, NULL, 0, &look, err);
    if (st == SONDE_OK)
        st = sonde_inspection_save_with(look, path, how, err);
    sonde_inspection_release(look);
    return st;
}

/* save(path, optimized, external_data, external_name): the model as it was read, or the graph that
 * is run. */
static PyObject *session_save(PyObject *self, PyObject *args)
{
    sn_py_session *s = cast(self);
    PyObject *path = NULL;
    int optimized = 0;
    sonde_save_options how = SONDE_INIT(sonde_save_options);
    if (!PyArg_ParseTuple(args, "O&|ppz", PyUnicode_FSConverter, &path, &optimized,
                          &how.external_data, &how.external_name))
        return NULL;
    sonde_error err;
    sonde_status st = SONDE_INTERNAL;
    const char *text = PyBytes_AsString(path);
    if (text && sn_py_session_enter(s) == 0) {
        Py_BEGIN_ALLOW_THREADS st = save(s, optimized, text, &how, &err);
        Py_END_ALLOW_THREADS sn_py_session_leave(s);
        if (st != SONDE_OK)
            sn_py_raise(&err);
    }
    Py_DECREF(path);
    if (st != SONDE_OK)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *get_closed(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(!cast(self)->session || cast(self)->closing);
}

static PyMethodDef methods[] = {
    {"run", SN_PY_CALL(sn_py_session_run), METH_FASTCALL | METH_KEYWORDS,
     "run(output_names, input_feed, run_options=None)\n--\n\n"
     "Runs the model and returns a list of the named outputs, or of all outputs for None."},
    {"_run_recorded", sn_py_session_run_recorded, METH_VARARGS, NULL},
    {"_run_values", sn_py_session_run_values, METH_VARARGS, NULL},
    {"_partial_run", sn_py_session_partial_run, METH_VARARGS, NULL},
    {"_inputs", session_inputs, METH_NOARGS, NULL},
    {"_outputs", session_outputs, METH_NOARGS, NULL},
    {"_model_info", session_model_info, METH_NOARGS, NULL},
    {"_placement", session_placement, METH_NOARGS, NULL},
    {"_bound_inputs", session_bound, METH_NOARGS, NULL},
    {"_inspect", sn_py_session_inspect, METH_NOARGS, NULL},
    {"_save", session_save, METH_VARARGS, NULL},
    {"close", session_close, METH_NOARGS,
     "Releases the memory and the file of the model. Later runs raise an exception."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef properties[] = {
    {"closed", get_closed, NULL, "Whether the session is closed.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

int sn_py_add_session_type(PyObject *module)
{
    PyType_Slot slots[] = {SN_PY_SLOT(Py_tp_init, session_init),
                           SN_PY_SLOT(Py_tp_new, PyType_GenericNew),
                           SN_PY_SLOT(Py_tp_dealloc, session_dealloc),
                           {Py_tp_methods, methods},
                           {Py_tp_getset, properties},
                           {0, NULL}};
    PyType_Spec spec = {.name = "sonde._sonde.Session",
                        .basicsize = sizeof(sn_py_session),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                        .slots = slots};
    sn_py.session_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return sn_py.session_type
               ? PyModule_AddObjectRef(module, "Session", (PyObject *)sn_py.session_type)
               : -1;
}
