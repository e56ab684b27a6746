/* SPDX-License-Identifier: Apache-2.0 */
/* Session.run: a dict of arrays in, a list of arrays out. Everything a call needs lies on the stack
 * as long as there are few inputs and outputs; arrays are read where they lie and results handed
 * out where the library wrote them. */
#include "binding.h"

#include <string.h>

enum { FEW = 8, MOST_NAMES = 1 << 20 };

/* One call. Inputs come in the graph's order; names are used only where they are not the graph's
 * own required ones. */
typedef struct call {
    sn_py_feed few_feeds[FEW], *feeds;
    sonde_value *few_in[FEW], **in;
    sonde_value *few_out[FEW], **out;
    const char *few_names[FEW], **names;
    const char *few_wanted[FEW], **wanted;
    size_t few_chosen[FEW], *chosen; /* which of `out` the caller asked for, in his order */
    size_t n_in, n_out, n_chosen;
    size_t most_in;         /* there is room for */
    int by_name, by_wanted; /* whether names and wanted are handed to the library */
    PyObject *held;         /* a list of the owners of texts among the names; NULL: none */
} call;

static void *room(void *few, size_t n, size_t size)
{
    return n <= FEW ? few : PyMem_Malloc(n * size);
}

static int call_init_inputs(call *c, size_t most)
{
    c->n_in = 0;
    c->most_in = most;
    c->by_name = 0;
    c->feeds = room(c->few_feeds, most, sizeof *c->feeds);
    c->in = room(c->few_in, most, sizeof *c->in);
    c->names = room(c->few_names, most, sizeof *c->names);
    return c->feeds && c->in && c->names ? 0 : (PyErr_NoMemory(), -1);
}

static int call_init_outputs(call *c, size_t n_out, size_t n_chosen)
{
    c->n_out = n_out;
    c->n_chosen = n_chosen;
    c->out = room(c->few_out, n_out, sizeof *c->out);
    c->wanted = room(c->few_wanted, n_out, sizeof *c->wanted);
    c->chosen = room(c->few_chosen, n_chosen, sizeof *c->chosen);
    if (!c->out || !c->wanted || !c->chosen) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < n_out; i++)
        c->out[i] = NULL;
    return 0;
}

static void give_room(void *p, const void *few)
{
    if (p != few)
        PyMem_Free(p);
}

static void drop_inputs(call *c)
{
    for (size_t i = 0; i < c->n_in; i++)
        sn_py_feed_clear(&c->feeds[i]);
    c->n_in = 0;
}

/* Safe after any of the steps before, given that c's pointers were NULL at first. */
static void call_free(call *c)
{
    drop_inputs(c);
    for (size_t i = 0; c->out && i < c->n_out; i++)
        sonde_value_release(c->out[i]);
    give_room(c->feeds, c->few_feeds);
    give_room(c->in, c->few_in);
    give_room(c->out, c->few_out);
    give_room(c->names, c->few_names);
    give_room(c->wanted, c->few_wanted);
    give_room(c->chosen, c->few_chosen);
    Py_XDECREF(c->held);
}

/* The text of a name that is the caller's. He may drop it on another thread while the run goes on,
 * so it is held. */
static const char *hold_name(call *c, PyObject *name)
{
    PyObject *owner;
    const char *text;
    if ((!c->held && !(c->held = PyList_New(0))) || !(text = sn_py_name_bytes(name, &owner)))
        return NULL;
    if (PyList_Append(c->held, owner) < 0)
        text = NULL;
    Py_DECREF(owner);
    return text;
}

static int add_feed(call *c, PyObject *object, const sn_py_port *port, const char *name)
{
    if (c->n_in == c->most_in) {
        PyErr_SetString(PyExc_RuntimeError, "input_feed changed while it was read");
        return -1;
    }
    sn_py_feed *f = &c->feeds[c->n_in];
    Py_INCREF(object); /* converting may run code that changes the dict */
    int status = sn_py_feed_make(f, object, port);
    if (status == 0 && (status = sn_py_feed_own_integers(f, object)) < 0)
        sn_py_feed_clear(f);
    Py_DECREF(object);
    if (status < 0)
        return -1;
    c->in[c->n_in] = f->value;
    c->names[c->n_in] = name;
    c->n_in++;
    return 0;
}

/* ------------------------------------------------------------------ inputs */
static const sn_py_port *find_port(const sn_py_port *ports, size_t n, PyObject *name)
{
    for (size_t i = 0; i < n; i++)
        if (ports[i].name == name || PyUnicode_Compare(ports[i].name, name) == 0)
            return &ports[i];
    return NULL;
}

/* Feeds that are no inputs of the graph: inner values, or mistakes that the library names. */
static int feed_inner(call *c, const sn_py_session *s, PyObject *dict)
{
    PyObject *name, *object;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &name, &object)) {
        if (!PyUnicode_Check(name)) {
            PyErr_Format(PyExc_TypeError, "names in input_feed must be str, not %R", name);
            return -1;
        }
        if (find_port(s->inputs, s->n_inputs, name))
            continue;
        const char *utf8 = hold_name(c, name);
        if (!utf8 || add_feed(c, object, NULL, utf8) < 0)
            return -1;
    }
    return 0;
}

static int raise_missing(const sn_py_session *s, PyObject *dict)
{
    PyObject *names = PyList_New(0);
    for (size_t i = 0; names && i < s->n_required; i++)
        if (PyList_Append(names, s->inputs[i].name) < 0)
            Py_CLEAR(names);
    PyObject *raised =
        names ? PyObject_CallMethod(sn_py.errors, "raise_missing", "OO", names, dict) : NULL;
    Py_XDECREF(names);
    Py_XDECREF(raised);
    return -1;
}

/* The graph's inputs first, in its order; then what else the dict has, of which a copy is walked:
 * converting may run code that changes the dict. */
static int feed_all(call *c, const sn_py_session *s, PyObject *dict)
{
    const Py_ssize_t given = PyDict_Size(dict);
    Py_ssize_t seen = 0;
    size_t required = 0;
    for (size_t i = 0; i < s->n_inputs; i++) {
        const sn_py_port *p = &s->inputs[i];
        PyObject *object = PyDict_GetItemWithError(dict, p->name);
        if (!object && PyErr_Occurred())
            return -1;
        seen += object != NULL;
        if (!object || (object == Py_None && p->info.kind != SONDE_KIND_OPTIONAL))
            continue;
        if (add_feed(c, object, p, p->utf8) < 0)
            return -1;
        required += !p->info.optional_input;
    }
    if (seen == given && required < s->n_required)
        return raise_missing(s, dict);
    c->by_name = seen < given || c->n_in != s->n_required;
    if (seen == given)
        return 0;
    PyObject *copy = PyDict_Copy(dict);
    const int status = copy ? feed_inner(c, s, copy) : -1;
    Py_XDECREF(copy);
    return status;
}

/* ------------------------------------------------------------------ outputs */
static int all_outputs(call *c, const sn_py_session *s)
{
    if (call_init_outputs(c, s->n_outputs, s->n_outputs) < 0)
        return -1;
    for (size_t i = 0; i < c->n_chosen; i++)
        c->chosen[i] = i;
    c->by_wanted = 0;
    return 0;
}

/* Names of the graph's outputs choose among its results; with other names among them, or when only
 * the path to them shall be computed, the library is asked for exactly those. */
static int choose_outputs(call *c, const sn_py_session *s, PyObject *names, int only_path)
{
    if (PyUnicode_Check(names) || !PySequence_Check(names)) {
        PyErr_SetString(PyExc_TypeError, "output_names must be None or a sequence of str");
        return -1;
    }
    const Py_ssize_t n = PySequence_Size(names);
    if (n < 0)
        return -1;
    if (n > MOST_NAMES) { /* some objects claim any length */
        PyErr_Format(PyExc_ValueError, "%zd output_names", n);
        return -1;
    }
    if (n == 0)
        return all_outputs(c, s);
    const size_t count = (size_t)n, most = count > s->n_outputs ? count : s->n_outputs;
    if (call_init_outputs(c, most, count) < 0)
        return -1;
    size_t own = 0;
    for (size_t i = 0; i < count; i++) {
        PyObject *name = PySequence_GetItem(names, (Py_ssize_t)i);
        if (!name || !PyUnicode_Check(name)) {
            if (name)
                PyErr_Format(PyExc_TypeError, "output_names must be str, not %R", name);
            Py_XDECREF(name);
            return -1;
        }
        const sn_py_port *p = find_port(s->outputs, s->n_outputs, name);
        c->chosen[i] = p ? (size_t)(p - s->outputs) : 0;
        c->wanted[i] = p ? p->utf8 : hold_name(c, name);
        own += p != NULL;
        Py_DECREF(name);
        if (!c->wanted[i])
            return -1;
    }
    c->by_wanted = own < count || (only_path && count < s->n_outputs);
    c->n_out = c->by_wanted ? count : s->n_outputs;
    for (size_t i = 0; c->by_wanted && i < count; i++)
        c->chosen[i] = i;
    return 0;
}

/* The chosen results as a list; each is taken over by the object made of it. */
static PyObject *results(call *c)
{
    PyObject *list = PyList_New((Py_ssize_t)c->n_chosen);
    for (size_t i = 0; list && i < c->n_chosen; i++) {
        const size_t at = c->chosen[i];
        int again = 0; /* asked for once more: one reference each */
        for (size_t k = i + 1; k < c->n_chosen && !again; k++)
            again = c->chosen[k] == at;
        sonde_value *value = c->out[at];
        if (again)
            sonde_value_retain(value);
        else
            c->out[at] = NULL;
        PyObject *item = sn_py_result(value);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* ------------------------------------------------------------------ the call */
/* Without the interpreter's lock. */
static int run_call(sn_py_session *s, call *c, sonde_run_options *options)
{
    sn_py_unlocked unlocked;
    sonde_error err;
    sn_py_unlock(&unlocked, options);
    const sonde_status st =
        sonde_session_run(s->session, options, c->by_name ? c->names : NULL, c->in, c->n_in,
                          c->by_wanted ? c->wanted : NULL, c->out, c->n_out, &err);
    return sn_py_lock(&unlocked, st, &err);
}

/* A profile of the run, where one was asked for, into the list `sink` (NULL: nobody asked); one
 * that could not be made is None. */
static int give_profile(sonde_profile **profile, PyObject *sink)
{
    PyObject *item = Py_None;
    if (!sink)
        return 0;
    if (*profile) {
        item = sn_py_wrap_profile(*profile);
        *profile = NULL;
    } else {
        Py_INCREF(item);
    }
    const int status = item ? PyList_Append(sink, item) : -1;
    Py_XDECREF(item);
    return status;
}

/* `sink`: a list that receives a profile of this run; NULL. */
static PyObject *run_dict(sn_py_session *s, PyObject *names, PyObject *dict, PyObject *options,
                          PyObject *sink)
{
    sn_py_settings settings;
    PyObject *list = NULL;
    sonde_profile *profile = NULL;
    if (sn_py_run_settings(options, &settings) < 0)
        return NULL;
    settings.options.profile = sink ? &profile : NULL;
    call c;
    c.feeds = NULL, c.in = c.out = NULL, c.names = c.wanted = NULL, c.chosen = NULL;
    c.n_in = c.n_out = c.n_chosen = 0;
    c.held = NULL;
    const size_t given = (size_t)PyDict_Size(dict);
    if (call_init_inputs(&c, s->n_inputs + given) == 0 && feed_all(&c, s, dict) == 0 &&
        (names == Py_None ? all_outputs(&c, s)
                          : choose_outputs(&c, s, names, settings.only_path)) == 0) {
        if (run_call(s, &c, &settings.options) == 0) {
            drop_inputs(&c);
            list = results(&c);
            if (list && give_profile(&profile, sink) < 0)
                Py_CLEAR(list);
        }
    }
    call_free(&c);
    sonde_profile_release(profile);
    Py_XDECREF(settings.texts);
    return list;
}

/* The three arguments by position or name. */
static int read_arguments(PyObject *const *args, Py_ssize_t n, PyObject *keywords,
                          PyObject *values[3])
{
    static const char *const names[3] = {"output_names", "input_feed", "run_options"};
    const Py_ssize_t n_keywords = keywords ? PyTuple_Size(keywords) : 0;
    if (n > 3) {
        PyErr_SetString(PyExc_TypeError, "run() takes output_names, input_feed and run_options");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        values[i] = args[i];
    for (Py_ssize_t k = 0; k < n_keywords; k++) {
        PyObject *name = PyTuple_GetItem(keywords, k);
        int i = 0;
        while (i < 3 && PyUnicode_CompareWithASCIIString(name, names[i]) != 0)
            i++;
        if (i == 3 || values[i]) {
            PyErr_Format(PyExc_TypeError, "run() got %s argument %R",
                         i == 3 ? "an unexpected" : "twice the", name);
            return -1;
        }
        values[i] = args[n + k];
    }
    if (!values[0] || !values[1]) {
        PyErr_Format(PyExc_TypeError, "run() is missing the argument '%s'",
                     names[values[0] != NULL]);
        return -1;
    }
    return 0;
}

static PyObject *run_mapping(sn_py_session *s, PyObject *names, PyObject *dict, PyObject *options,
                             PyObject *sink)
{
    PyObject *made = NULL;
    if (PyDict_Check(dict)) {
        Py_INCREF(dict);
    } else if (PyMapping_Check(dict) && PyObject_HasAttrString(dict, "keys")) {
        PyObject *mapping = dict;
        dict = PyDict_New();
        if (!dict || PyDict_Update(dict, mapping) < 0)
            Py_CLEAR(dict);
        if (!dict)
            return NULL;
    } else {
        PyErr_Format(PyExc_TypeError, "input_feed must be a dict of names to arrays, not %R",
                     (PyObject *)Py_TYPE(dict));
        return NULL;
    }
    if (sn_py_session_enter(s) == 0) {
        made = run_dict(s, names, dict, options, sink);
        sn_py_session_leave(s);
    }
    Py_DECREF(dict);
    return made;
}

PyObject *sn_py_session_run(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *values[3] = {NULL, NULL, NULL};
    if (read_arguments(args, n, names, values) < 0)
        return NULL;
    return run_mapping((sn_py_session *)self, values[0], values[1], values[2], NULL);
}

/* _run_recorded(sink: list, output_names, input_feed, run_options=None): run(), with a profile of
 * this run alone behind the items of `sink`. */
PyObject *sn_py_session_run_recorded(PyObject *self, PyObject *args)
{
    PyObject *sink, *names, *feed, *options = Py_None;
    if (!PyArg_ParseTuple(args, "O!OO|O", &PyList_Type, &sink, &names, &feed, &options))
        return NULL;
    return run_mapping((sn_py_session *)self, names, feed, options, sink);
}

/* ------------------------------------------------------------------ values in, values out */
/* A list of OrtValue of the results. */
static PyObject *result_values(call *c)
{
    PyObject *list = PyList_New((Py_ssize_t)c->n_out);
    for (size_t i = 0; list && i < c->n_out; i++) {
        PyObject *item = sn_py_wrap_value(c->out[i]);
        c->out[i] = NULL;
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* Outputs by name; those with an OrtValue are written to. */
static int take_outputs(call *c, PyObject *names, PyObject *buffers)
{
    const Py_ssize_t n = PyList_Size(names);
    if (n < 0 || call_init_outputs(c, (size_t)n, 0) < 0)
        return -1;
    c->by_wanted = 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        c->wanted[i] = hold_name(c, PyList_GetItem(names, i));
        PyObject *buffer = PyList_GetItem(buffers, i);
        if (!c->wanted[i] || !buffer)
            return -1;
        if (buffer == Py_None)
            continue;
        if (!sn_py_is_value(buffer)) {
            PyErr_SetString(PyExc_TypeError, "an output to write to must be an OrtValue");
            return -1;
        }
        if (((sn_py_value *)buffer)->read_only) {
            sn_py_raise_text("InvalidArgument", "the memory for output '%s' is read-only",
                             c->wanted[i]);
            return -1;
        }
        c->out[i] = sonde_value_retain(((sn_py_value *)buffer)->value);
    }
    return 0;
}

static int take_inputs(call *c, PyObject *dict)
{
    PyObject *name, *object;
    Py_ssize_t at = 0;
    if (call_init_inputs(c, (size_t)PyDict_Size(dict)) < 0)
        return -1;
    c->by_name = 1;
    while (PyDict_Next(dict, &at, &name, &object)) {
        const char *utf8 = hold_name(c, name);
        if (!utf8)
            return -1;
        if (!sn_py_is_value(object)) {
            PyErr_Format(PyExc_TypeError, "input %R must be an OrtValue", name);
            return -1;
        }
        if (add_feed(c, object, NULL, utf8) < 0)
            return -1;
    }
    return 0;
}

/* _run_values(inputs: dict, output_names: list, buffers: list, run_options, sink=None). A value
 * that was written to stays who it was: its OrtValue is returned. */
PyObject *sn_py_session_run_values(PyObject *self, PyObject *args)
{
    sn_py_session *s = (sn_py_session *)self;
    PyObject *inputs, *names, *buffers, *options, *sink = NULL, *list = NULL;
    sonde_profile *profile = NULL;
    sn_py_settings settings;
    if (!PyArg_ParseTuple(args, "O!O!O!O|O!", &PyDict_Type, &inputs, &PyList_Type, &names,
                          &PyList_Type, &buffers, &options, &PyList_Type, &sink) ||
        sn_py_session_enter(s) < 0)
        return NULL;
    call c;
    memset(&c, 0, sizeof c);
    if (sn_py_run_settings(options, &settings) == 0) {
        settings.options.profile = sink ? &profile : NULL;
        if (take_inputs(&c, inputs) == 0 && take_outputs(&c, names, buffers) == 0) {
            if (run_call(s, &c, &settings.options) == 0)
                list = result_values(&c);
            if (list && give_profile(&profile, sink) < 0)
                Py_CLEAR(list);
        }
        Py_XDECREF(settings.texts);
    }
    call_free(&c);
    sonde_profile_release(profile);
    sn_py_session_leave(s);
    for (Py_ssize_t i = 0; list && i < PyList_Size(buffers); i++) {
        PyObject *buffer = PyList_GetItem(buffers, i);
        if (buffer != Py_None && i < PyList_Size(list)) {
            Py_INCREF(buffer);
            PyList_SetItem(list, i, buffer);
        }
    }
    return list;
}

/* ------------------------------------------------------------------ partial runs */
static PyObject *set_to_dict(const sonde_value_set *set)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < sonde_value_set_count(set); i++) {
        PyObject *item = sn_py_result(sonde_value_retain(sonde_value_set_value(set, i)));
        PyObject *name = sn_py_name(sonde_value_set_name(set, i));
        if (!item || !name || PyDict_SetItem(dict, name, item) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(name);
        Py_XDECREF(item);
    }
    return dict;
}

/* _partial_run(feeds: dict, run_options, sink=None) */
PyObject *sn_py_session_partial_run(PyObject *self, PyObject *args)
{
    sn_py_session *s = (sn_py_session *)self;
    PyObject *dict, *options, *sink = NULL, *made = NULL, *name, *object;
    sonde_profile *profile = NULL;
    sn_py_settings settings;
    sonde_error err;
    if (!PyArg_ParseTuple(args, "O!O|O!", &PyDict_Type, &dict, &options, &PyList_Type, &sink) ||
        sn_py_run_settings(options, &settings) < 0)
        return NULL;
    settings.options.profile = sink ? &profile : NULL;
    if (sn_py_session_enter(s) < 0) {
        Py_XDECREF(settings.texts);
        return NULL;
    }
    call c;
    memset(&c, 0, sizeof c);
    PyObject *copy = PyDict_Copy(dict); /* converting may run code that changes the dict */
    int status = copy ? call_init_inputs(&c, (size_t)PyDict_Size(copy)) : -1;
    for (Py_ssize_t at = 0; status == 0 && PyDict_Next(copy, &at, &name, &object);) {
        const char *utf8 = hold_name(&c, name);
        status = utf8 ? add_feed(&c, object, find_port(s->inputs, s->n_inputs, name), utf8) : -1;
    }
    if (status == 0) {
        sonde_value_set *set = NULL;
        sn_py_unlocked unlocked;
        sn_py_unlock(&unlocked, &settings.options);
        const sonde_status st = sonde_session_partial_run(s->session, &settings.options, c.names,
                                                          c.in, c.n_in, &set, &err);
        made = sn_py_lock(&unlocked, st, &err) == 0 ? set_to_dict(set) : NULL;
        sonde_value_set_release(set);
        if (made && give_profile(&profile, sink) < 0)
            Py_CLEAR(made);
    }
    sonde_profile_release(profile);
    call_free(&c);
    Py_XDECREF(copy);
    Py_XDECREF(settings.texts);
    sn_py_session_leave(s);
    return made;
}
