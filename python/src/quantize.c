/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising a model: samples from paths and arrays, the file, and a row for each node. */
#include "binding.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sonde/experimental/quantize.h"

typedef struct job {
    sonde_model *model;
    sonde_samples *samples;
    sonde_quantize_options o;
    sn_py_feed *feeds; /* of all arrays: they stay until the end */
    size_t n_feeds;
    PyObject **holds; /* what texts point into */
    size_t n_holds;
    const char **only, **except;
    PyThreadState *state;
    int measure;
    sonde_quantized_speed speed; /* without runs: not measured */
} job;

/* Python's signal handlers, between two runs; only the main thread has any. */
static int ask_python(void *user, const char *what, double done)
{
    job *j = user;
    (void)what;
    (void)done;
    if (syscall(SYS_gettid) != (long)getpid())
        return 0;
    PyEval_RestoreThread(j->state);
    const int raised = PyErr_CheckSignals();
    j->state = PyEval_SaveThread();
    return raised < 0;
}

static int raise_status(sonde_status st, const sonde_error *err)
{
    if (st == SONDE_OK)
        return 0;
    if (!PyErr_Occurred())
        sn_py_raise(err);
    return -1;
}

static const char *hold_text(job *j, PyObject *text)
{
    PyObject **more = PyMem_Realloc(j->holds, (j->n_holds + 1) * sizeof *more);
    if (!more) {
        PyErr_NoMemory();
        return NULL;
    }
    j->holds = more;
    j->holds[j->n_holds] = NULL;
    const char *bytes = sn_py_name_bytes(text, &j->holds[j->n_holds]);
    j->n_holds += j->holds[j->n_holds] != NULL;
    return bytes;
}

/* ------------------------------------------------------------------ samples */
static int add_dict(job *j, PyObject *dict, int arrays)
{
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "a sample is a dict of arrays by input name");
        return -1;
    }
    const size_t n = (size_t)PyDict_Size(dict);
    const char **names = PyMem_Calloc(n + 1, sizeof *names);
    sonde_value **values = PyMem_Calloc(n + 1, sizeof *values);
    sn_py_feed *more = PyMem_Realloc(j->feeds, (j->n_feeds + n + 1) * sizeof *more);
    int status = names && values && more ? 0 : -1;
    if (status < 0)
        PyErr_NoMemory();
    j->feeds = more ? more : j->feeds;
    PyObject *key, *item;
    Py_ssize_t at = 0;
    for (size_t i = 0; status == 0 && PyDict_Next(dict, &at, &key, &item); i++) {
        names[i] = hold_text(j, key);
        status = names[i] ? sn_py_feed_make(&j->feeds[j->n_feeds], item, NULL) : -1;
        if (status == 0)
            values[i] = j->feeds[j->n_feeds++].value;
    }
    sonde_error err;
    if (status == 0)
        status = raise_status((arrays ? sonde_samples_add_arrays
                                      : sonde_samples_add)(j->samples, names, values, n, &err),
                              &err);
    PyMem_Free(names);
    PyMem_Free(values);
    return status;
}

static int add_samples(job *j, PyObject *paths, PyObject *arrays, PyObject *samples, size_t most)
{
    sonde_error err;
    if (PyList_Size(paths) + PyList_Size(arrays) + PyList_Size(samples) == 0)
        return 0;
    if (raise_status(sonde_samples_create(j->model, &j->samples, &err), &err) < 0 ||
        raise_status(sonde_samples_limit(j->samples, most, &err), &err) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < PyList_Size(paths); i++) {
        const char *path = hold_text(j, PyList_GetItem(paths, i));
        if (!path || raise_status(sonde_samples_add_path(j->samples, path, NULL, &err), &err) < 0)
            return -1;
    }
    for (Py_ssize_t i = 0; i < PyList_Size(arrays); i++)
        if (add_dict(j, PyList_GetItem(arrays, i), 1) < 0)
            return -1;
    for (Py_ssize_t i = 0; i < PyList_Size(samples); i++)
        if (add_dict(j, PyList_GetItem(samples, i), 0) < 0)
            return -1;
    return 0;
}

static int read_names(job *j, PyObject *names, const char ***texts, size_t *count)
{
    const size_t n = (size_t)PyList_Size(names);
    *texts = PyMem_Calloc(n + 1, sizeof **texts);
    if (!*texts) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < n; i++)
        if (!((*texts)[i] = hold_text(j, PyList_GetItem(names, (Py_ssize_t)i))))
            return -1;
    *count = n;
    return 0;
}

static int read_selection(job *j, PyObject *only, PyObject *except)
{
    const int status = read_names(j, only, &j->only, &j->o.only_count) < 0 ||
                               read_names(j, except, &j->except, &j->o.except_count) < 0
                           ? -1
                           : 0;
    j->o.only = j->only;
    j->o.except = j->except;
    return status;
}

/* ------------------------------------------------------------------ the result */
static PyObject *row_dict(const sonde_quantized_row *r)
{
    return Py_BuildValue("{s:N,s:N,s:N,s:N,s:N,s:K,s:K,s:d}", "node", sn_py_text(r->node),
                         "op_type", sn_py_text(r->op_type), "made", sn_py_text(r->made), "why",
                         sn_py_text(r->why), "weight_shape", sn_py_text(r->weight_shape),
                         "bytes_before", (unsigned long long)r->bytes_before, "bytes_after",
                         (unsigned long long)r->bytes_after, "weight_sqnr_db", r->weight_sqnr_db);
}

static PyObject *row_list(const sonde_quantized *made)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < sonde_quantized_count(made); i++) {
        sonde_quantized_row r = SONDE_INIT(sonde_quantized_row);
        sonde_error err;
        PyObject *item =
            sonde_quantized_row_get(made, i, &r, &err) ? sn_py_raise(&err) : row_dict(&r);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *result_tuple(const sonde_quantized *made, const job *j)
{
    const sonde_quantized_speed *s = &j->speed;
    sonde_quantized_info i = SONDE_INIT(sonde_quantized_info);
    sonde_error err;
    if (sonde_quantized_info_get(made, &i, &err))
        return sn_py_raise(&err);
    return Py_BuildValue(
        "N{s:n,s:n,s:n,s:K,s:K,s:L,s:L,s:n,s:n,s:d,s:d,s:O,s:n,s:n,s:n,s:n,s:n,s:O,s:d,s:d}",
        row_list(made), "products", (Py_ssize_t)i.products, "products_quantized",
        (Py_ssize_t)i.products_quantized, "nodes_quantized", (Py_ssize_t)i.nodes_quantized,
        "weight_bytes_before", (unsigned long long)i.weight_bytes_before, "weight_bytes_after",
        (unsigned long long)i.weight_bytes_after, "opset_before", (long long)i.opset_before,
        "opset_after", (long long)i.opset_after, "equalized", (Py_ssize_t)i.equalized, "samples",
        (Py_ssize_t)i.samples, "sqnr_db", i.sqnr_db, "top1_agreement", i.top1_agreement,
        "goal_missed", i.goal_missed ? Py_True : Py_False, "left_for_goal",
        (Py_ssize_t)i.left_for_goal, "body_products", (Py_ssize_t)i.body_products,
        "body_products_quantized", (Py_ssize_t)i.body_products_quantized, "left_over",
        (Py_ssize_t)sonde_samples_left_over(j->samples), "skipped",
        (Py_ssize_t)sonde_samples_skipped(j->samples), "widened", i.widened ? Py_True : Py_False,
        "before_ms", s->runs ? s->before_ms : Py_NAN, "after_ms", s->runs ? s->after_ms : Py_NAN);
}

/* Both models, on the first sample. Without memory for its names there are no figures. */
static sonde_status measure(job *j, const sonde_quantized *made, sonde_error *err)
{
    sonde_value_set *set = NULL;
    sonde_status st = sonde_samples_get(j->samples, 0, &set, err);
    if (st != SONDE_OK)
        return st;
    const size_t n = sonde_value_set_count(set);
    const char **names = calloc(n + 1, sizeof *names);
    sonde_value **values = calloc(n + 1, sizeof *values);
    for (size_t i = 0; i < n && names && values; i++) {
        names[i] = sonde_value_set_name(set, i);
        values[i] = sonde_value_set_value(set, i);
    }
    if (names && values)
        st = sonde_quantized_measure(made, names, values, n, &j->speed, err);
    free(names);
    free(values);
    sonde_value_set_release(set);
    return st;
}

static PyObject *run_job(job *j, const char *output)
{
    sonde_quantized *made = NULL;
    sonde_error err;
    j->o.progress = ask_python;
    j->o.progress_user = j;
    j->state = PyEval_SaveThread();
    sonde_status st = sonde_quantize(j->model, j->samples, &j->o, &made, &err);
    if (st == SONDE_OK)
        st = sonde_quantized_save(made, output, NULL, &err);
    if (st == SONDE_OK && j->measure && sonde_samples_count(j->samples))
        st = measure(j, made, &err);
    PyEval_RestoreThread(j->state);
    PyObject *result = raise_status(st, &err) < 0 ? NULL : result_tuple(made, j);
    sonde_quantized_release(made);
    return result;
}

static int load_model(job *j, PyObject *model)
{
    sonde_error err;
    if (PyBytes_Check(model))
        return raise_status(sonde_model_load_memory(NULL, PyBytes_AsString(model),
                                                    (size_t)PyBytes_Size(model), NULL, &j->model,
                                                    &err),
                            &err);
    const char *path = hold_text(j, model);
    const sonde_status st = path ? sonde_model_load(NULL, path, NULL, &j->model, &err) : SONDE_OK;
    if (st == SONDE_NOT_FOUND) {
        sn_py_raise_text("NoSuchFile", "%s", err.message);
        return -1;
    }
    return path ? raise_status(st, &err) : -1;
}

static PyObject *quantize(PyObject *module, PyObject *args)
{
    (void)module;
    job j = {.o = SONDE_INIT(sonde_quantize_options), .speed = SONDE_INIT(sonde_quantized_speed)};
    PyObject *model, *output, *paths, *arrays, *samples, *only, *except, *result = NULL;
    int kind, method;
    Py_ssize_t most;
    if (!PyArg_ParseTuple(args, "OOO!O!O!O!O!iidppiippdpnp", &model, &output, &PyList_Type, &paths,
                          &PyList_Type, &arrays, &PyList_Type, &samples, &PyList_Type, &only,
                          &PyList_Type, &except, &kind, &method, &j.o.percentile, &j.o.per_tensor,
                          &j.o.signed_activations, &j.o.bits, &j.o.block_size, &j.o.equalize,
                          &j.o.no_bias_correction, &j.o.goal_db, &j.o.force, &most, &j.measure))
        return NULL;
    j.o.kind = (sonde_quantize_kind)kind;
    j.o.method = (sonde_calibration)method;
    const char *path = hold_text(&j, output);
    if (path && load_model(&j, model) == 0 && read_selection(&j, only, except) == 0 &&
        add_samples(&j, paths, arrays, samples, (size_t)most) == 0)
        result = run_job(&j, path);
    sonde_samples_release(j.samples);
    sonde_model_release(j.model);
    for (size_t i = 0; i < j.n_feeds; i++)
        sn_py_feed_clear(&j.feeds[i]);
    for (size_t i = 0; i < j.n_holds; i++)
        Py_DECREF(j.holds[i]);
    PyMem_Free(j.feeds);
    PyMem_Free(j.holds);
    PyMem_Free(j.only);
    PyMem_Free(j.except);
    return result;
}

static PyMethodDef functions[] = {{"quantize", quantize, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

int sn_py_add_quantize(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
