/* SPDX-License-Identifier: Apache-2.0 */
/* sparsify: a model in, a sparse one out, and a row for each weight. */
#include "binding.h"

#include "sonde/experimental/sparsify.h"
#include "sonde/experimental/zoo.h"

/* Names that somebody asks for: texts, and whose they are. */
typedef struct names {
    const char **texts;
    PyObject **holds;
    size_t n;
} names;

static void free_names(names *list)
{
    for (size_t i = 0; list->holds && i < list->n; i++)
        Py_XDECREF(list->holds[i]);
    PyMem_Free(list->holds);
    PyMem_Free(list->texts);
}

static int read_names(PyObject *tuple, names *list)
{
    const Py_ssize_t n = PyTuple_Size(tuple);
    list->texts = PyMem_Calloc((size_t)n + 1, sizeof *list->texts);
    list->holds = PyMem_Calloc((size_t)n + 1, sizeof(PyObject *));
    if (!list->texts || !list->holds) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++, list->n++) {
        list->texts[i] = sn_py_name_bytes(PyTuple_GetItem(tuple, i), &list->holds[i]);
        if (!list->texts[i])
            return -1;
    }
    return 0;
}

static PyObject *row_dict(const sonde_sparse_weight *w)
{
    return Py_BuildValue(
        "{s:N,s:N,s:N,s:N,s:N,s:s,s:K,s:K,s:K,s:d,s:N}", "node", sn_py_text(w->node), "op",
        sn_py_text(w->op_type), "weight", sn_py_text(w->weight), "shape", sn_py_text(w->shape),
        "pattern", sn_py_text(w->pattern), "dtype", w->dtype, "elements",
        (unsigned long long)w->elements, "zeros_before", (unsigned long long)w->zeros_before,
        "zeros_after", (unsigned long long)w->zeros_after, "norm_kept", w->norm_kept, "skipped",
        sn_py_text(w->skipped));
}

/* ([row, …], total) */
static PyObject *result(const sonde_sparsified *made)
{
    sonde_error err;
    sonde_sparse_weight w = SONDE_INIT(sonde_sparse_weight);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < sonde_sparsified_count(made); i++) {
        PyObject *row =
            sonde_sparsified_weight(made, i, &w, &err) ? sn_py_raise(&err) : row_dict(&w);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    if (!list)
        return NULL;
    PyObject *total = sonde_sparsified_total(made, &w, &err) ? sn_py_raise(&err) : row_dict(&w);
    if (!total) {
        Py_DECREF(list);
        return NULL;
    }
    return Py_BuildValue("(NN)", list, total);
}

typedef struct work {
    const char *path, *zoo, *out;
    Py_buffer data;
    sonde_sparsify_options how;
    sonde_save_options save;
} work;

/* Runs without the interpreter's lock. */
static sonde_status prune(const work *w, sonde_sparsified **made, sonde_error *err)
{
    sonde_model *model = NULL;
    sonde_status st = w->path  ? sonde_model_load(NULL, w->path, NULL, &model, err)
                      : w->zoo ? sonde_zoo_build(NULL, w->zoo, 0, &model, err)
                               : sonde_model_load_memory(NULL, w->data.buf, (size_t)w->data.len,
                                                         NULL, &model, err);
    if (st == SONDE_OK)
        st = sonde_sparsify(model, &w->how, made, err);
    sonde_model_release(model);
    if (st == SONDE_OK && w->out)
        st = sonde_sparsified_save(*made, w->out, &w->save, err);
    return st;
}

static PyObject *run(work *w, PyObject *data)
{
    sonde_sparsified *made = NULL;
    sonde_error err;
    sonde_status st;
    if (data != Py_None && PyObject_GetBuffer(data, &w->data, PyBUF_SIMPLE) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = prune(w, &made, &err);
    Py_END_ALLOW_THREADS if (w->data.obj) PyBuffer_Release(&w->data);
    PyObject *rows = NULL;
    if (sn_py_warn(2) == 0) {
        if (w->path && st == SONDE_NOT_FOUND)
            sn_py_raise_text("NoSuchFile", "%s", err.message);
        else
            rows = st == SONDE_OK ? result(made) : sn_py_raise(&err);
    }
    sonde_sparsified_release(made);
    return rows;
}

/* sparsify(path, data, zoo, out, ratio, pattern, only, except, global, sparse_initializers,
 *          external_data, external_name, inline_limit) */
static PyObject *sparsify(PyObject *module, PyObject *args)
{
    (void)module;
    work w = {.how = SONDE_INIT(sonde_sparsify_options), .save = SONDE_INIT(sonde_save_options)};
    PyObject *data, *only, *except, *path = NULL, *out = NULL, *rows = NULL;
    names lists[2] = {{.n = 0}, {.n = 0}};
    PyObject *given_path, *given_out;
    unsigned long long limit;
    if (!PyArg_ParseTuple(args, "OOzOdsO!O!pppzK", &given_path, &data, &w.zoo, &given_out,
                          &w.how.ratio, &w.how.pattern, &PyTuple_Type, &only, &PyTuple_Type,
                          &except, &w.how.global, &w.how.sparse_initializers, &w.save.external_data,
                          &w.save.external_name, &limit))
        return NULL;
    w.save.inline_bytes = limit;
    if ((given_path == Py_None || PyUnicode_FSConverter(given_path, &path)) &&
        (given_out == Py_None || PyUnicode_FSConverter(given_out, &out)) &&
        read_names(only, &lists[0]) == 0 && read_names(except, &lists[1]) == 0) {
        w.path = path ? PyBytes_AsString(path) : NULL;
        w.out = out ? PyBytes_AsString(out) : NULL;
        w.how.only = lists[0].texts;
        w.how.only_count = lists[0].n;
        w.how.except = lists[1].texts;
        w.how.except_count = lists[1].n;
        rows = run(&w, data);
    }
    free_names(&lists[0]);
    free_names(&lists[1]);
    Py_XDECREF(path);
    Py_XDECREF(out);
    return rows;
}

static PyMethodDef functions[] = {{"sparsify", sparsify, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

int sn_py_add_sparsify(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
