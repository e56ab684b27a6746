/* SPDX-License-Identifier: Apache-2.0 */
/* The operator profiler: one operator alone, described by type, shapes and attributes. */
#include "binding.h"

#include "sonde/experimental/op.h"

enum { MOST_INPUTS = 64, MOST_DIMS = 32 };

/* (dtype, dims, constant); a dtype of 0 leaves the input out. */
static int read_input(PyObject *item, sonde_op_input *in, int64_t *dims)
{
    int dtype;
    PyObject *shape;
    if (!PyArg_ParseTuple(item, "iO!p", &dtype, &PyTuple_Type, &shape, &in->constant))
        return -1;
    const Py_ssize_t rank = PyTuple_Size(shape);
    if (rank > MOST_DIMS) {
        PyErr_Format(PyExc_ValueError, "an input of rank %zd", rank);
        return -1;
    }
    for (Py_ssize_t i = 0; i < rank; i++) {
        dims[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
        if (dims[i] == -1 && PyErr_Occurred())
            return -1;
    }
    in->dtype = (sonde_dtype)dtype;
    in->dims = dims;
    in->rank = (size_t)rank;
    return 0;
}

static PyObject *doubles(const double *from, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *item = PyFloat_FromDouble(from[i]);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *variant_dict(const sonde_op_variant *v)
{
    return Py_BuildValue(
        "{s:N,s:K,s:N,s:N,s:N,s:N,s:i,s:O,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:K,s:K,s:d,s:d,s:d,s:N,s:N}",
        "latency", doubles(v->latency_us, v->latency_count), "workspace_size",
        (unsigned long long)v->workspace_bytes, "samples", doubles(v->samples_us, v->sample_count),
        "kernel", sn_py_text(v->kernel), "cpu", sn_py_text(v->cpu), "layout", sn_py_text(v->layout),
        "threads", v->threads, "packed", v->packed ? Py_True : Py_False, "min", v->min_us, "mean",
        v->mean_us, "stddev", v->stddev_us, "p50", v->p50_us, "p90", v->p90_us, "p99", v->p99_us,
        "max", v->max_us, "flops", (unsigned long long)v->flops, "bytes",
        (unsigned long long)v->bytes, "gflops", v->gflops, "gbps", v->gbps, "roofline", v->roofline,
        "bound", sn_py_text(v->bound), "arithmetic", sn_py_text(v->arithmetic));
}

static PyObject *result_list(const sonde_op_result *result)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < sonde_op_result_count(result); i++) {
        sonde_op_variant v = SONDE_INIT(sonde_op_variant);
        sonde_error err;
        PyObject *item =
            sonde_op_result_variant(result, i, &v, &err) ? sn_py_raise(&err) : variant_dict(&v);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *op_profile(PyObject *module, PyObject *args)
{
    (void)module;
    sonde_op_spec spec = SONDE_INIT(sonde_op_spec);
    sonde_op_options o = SONDE_INIT(sonde_op_options);
    sonde_op_input inputs[MOST_INPUTS] = {{.dtype = SONDE_DTYPE_UNDEFINED}};
    int64_t dims[MOST_INPUTS][MOST_DIMS];
    long long opset;
    unsigned long long seed;
    Py_ssize_t outputs;
    PyObject *list;
    if (!PyArg_ParseTuple(args, "szLO!nsKiiipp", &spec.op_type, &spec.domain, &opset, &PyList_Type,
                          &list, &outputs, &spec.attributes, &seed, &o.warmup, &o.exec, &o.repeat,
                          &o.one_variant, &o.no_cache))
        return NULL;
    const Py_ssize_t n = PyList_Size(list);
    if (n > MOST_INPUTS || outputs < 0) {
        PyErr_Format(PyExc_ValueError, "an operator with %zd inputs and %zd outputs", n, outputs);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (read_input(PyList_GetItem(list, i), &inputs[i], dims[i]) < 0)
            return NULL;
    spec.opset = opset;
    spec.seed = seed;
    spec.inputs = inputs;
    spec.input_count = (size_t)n;
    spec.output_count = (size_t)outputs;
    sonde_op_result *result = NULL;
    sonde_error err;
    sonde_status st;
    Py_BEGIN_ALLOW_THREADS st = sonde_op_profile(NULL, &spec, &o, &result, &err);
    Py_END_ALLOW_THREADS if (st != SONDE_OK) return sn_py_raise(&err);
    PyObject *made = result_list(result);
    sonde_op_result_release(result);
    return made;
}

static PyObject *op_cache_reset(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    sonde_op_cache_reset(NULL);
    Py_RETURN_NONE;
}

static PyObject *op_cache_size(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return PyLong_FromSize_t(sonde_op_cache_size(NULL));
}

static PyMethodDef functions[] = {{"op_profile", op_profile, METH_VARARGS, NULL},
                                  {"op_cache_reset", op_cache_reset, METH_NOARGS, NULL},
                                  {"op_cache_size", op_cache_size, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

int sn_py_add_op_profiler(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
