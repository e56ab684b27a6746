/* SPDX-License-Identifier: Apache-2.0 */
/* Values become what Python people expect. Numbers become arrays over the value's own memory: the
 * array's base is the OrtValue that owns it, so nothing is copied, whatever the size. */
#include "binding.h"

static PyObject *to_python(sonde_value *value);

static int is_numbers(const sonde_value *value)
{
    return sonde_value_kind(value) == SONDE_KIND_TENSOR &&
           sonde_tensor_dtype(value) != SONDE_DTYPE_STRING;
}

PyObject *sn_py_numpy_dtype(sonde_dtype dtype)
{
    if (!sn_py.dtypes[dtype]) /* those of ml_dtypes are imported when they are needed */
        sn_py.dtypes[dtype] = PyObject_CallMethod(sn_py.convert, "numpy_dtype", "i", (int)dtype);
    return sn_py.dtypes[dtype];
}

PyObject *sn_py_shape(const sonde_value *value)
{
    const size_t rank = sonde_tensor_rank(value);
    const int64_t *dims = sonde_tensor_dims(value);
    PyObject *shape = PyTuple_New((Py_ssize_t)rank);
    for (size_t i = 0; shape && i < rank; i++) {
        PyObject *dim = PyLong_FromLongLong(dims[i]);
        if (!dim || PyTuple_SetItem(shape, (Py_ssize_t)i, dim) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

/* numpy.ndarray(shape, dtype, owner) */
static PyObject *array_over(PyObject *owner, const sonde_value *value)
{
    PyObject *dtype = sn_py_numpy_dtype(sonde_tensor_dtype(value));
    PyObject *shape = dtype ? sn_py_shape(value) : NULL;
    PyObject *args = shape ? PyTuple_New(3) : NULL;
    if (!args) {
        Py_XDECREF(shape);
        return NULL;
    }
    Py_INCREF(dtype);
    Py_INCREF(owner);
    PyTuple_SetItem(args, 0, shape);
    PyTuple_SetItem(args, 1, dtype);
    PyTuple_SetItem(args, 2, owner);
    PyObject *array = PyObject_Call(sn_py.ndarray, args, NULL);
    Py_DECREF(args);
    return array;
}

/* An array of str objects, by way of sonde._convert.strings(shape, list). */
static PyObject *strings(const sonde_value *value)
{
    const int64_t n = sonde_tensor_count(value);
    const sonde_string *elements = sonde_tensor_data(value);
    PyObject *array = NULL, *shape = sn_py_shape(value), *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *text = PyUnicode_DecodeUTF8(elements[i].size ? elements[i].data : "",
                                              (Py_ssize_t)elements[i].size, "surrogateescape");
        if (!text || PyList_SetItem(list, (Py_ssize_t)i, text) < 0)
            Py_CLEAR(list);
    }
    if (shape && list)
        array = PyObject_CallMethod(sn_py.convert, "strings", "OO", shape, list);
    Py_XDECREF(shape);
    Py_XDECREF(list);
    return array;
}

/* A new object of item i of a sequence, optional or map. Items may share memory with one another,
 * which arrays that are written to must not. */
static PyObject *item_to_python(const sonde_value *value, size_t i)
{
    sonde_error err;
    sonde_value *item = NULL, *copy = NULL;
    sonde_status st = sonde_value_item(value, i, &item, &err);
    if (st == SONDE_OK && is_numbers(item)) {
        st = sonde_tensor_create(NULL, sonde_tensor_dtype(item), sonde_tensor_dims(item),
                                 sonde_tensor_rank(item), sonde_tensor_data(item),
                                 sonde_tensor_bytes(item), &copy, &err);
        sonde_value_release(item);
        item = copy;
    }
    return st == SONDE_OK ? sn_py_result(item) : sn_py_raise(&err);
}

static PyObject *sequence(const sonde_value *value)
{
    const size_t n = sonde_value_count(value);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *item = item_to_python(value, i);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *map(const sonde_value *value)
{
    PyObject *dict = NULL, *keys = item_to_python(value, 0);
    PyObject *values = keys ? item_to_python(value, 1) : NULL;
    if (values)
        dict = PyObject_CallMethod(sn_py.convert, "mapping", "OO", keys, values);
    Py_XDECREF(keys);
    Py_XDECREF(values);
    return dict;
}

/* Everything but tensors of numbers: made anew, so no owner is needed. */
static PyObject *to_python(sonde_value *value)
{
    switch (sonde_value_kind(value)) {
    case SONDE_KIND_TENSOR:
        return strings(value);
    case SONDE_KIND_SEQUENCE:
        return sequence(value);
    case SONDE_KIND_MAP:
        return map(value);
    case SONDE_KIND_OPTIONAL:
        if (sonde_value_count(value) > 0)
            return item_to_python(value, 0);
        break;
    case SONDE_KIND_NONE:
        break;
    }
    Py_RETURN_NONE;
}

PyObject *sn_py_value_to_python(PyObject *object)
{
    sonde_value *value = ((sn_py_value *)object)->value;
    return is_numbers(value) ? array_over(object, value) : to_python(value);
}

PyObject *sn_py_result(sonde_value *value)
{
    PyObject *made = NULL;
    if (!is_numbers(value)) {
        made = to_python(value);
        sonde_value_release(value);
        return made;
    }
    PyObject *owner = sn_py_wrap_value(value);
    if (owner) {
        made = array_over(owner, value);
        Py_DECREF(owner);
    }
    return made;
}
