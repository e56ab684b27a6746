/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the extension module: the makers of values that sonde._convert is built on, and the
 * lists of words that the library has. */
#include "binding.h"

#include <string.h>

#include "sonde/experimental/zoo.h"

enum { MOST_DIMS = 32 };

/* A tuple of ints as dims. */
static int read_shape(PyObject *tuple, int64_t *dims, size_t *rank)
{
    const Py_ssize_t n = PyTuple_Size(tuple);
    if (n < 0)
        return -1;
    if (n > MOST_DIMS) {
        PyErr_Format(PyExc_ValueError, "a tensor of rank %zd", n);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        dims[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (dims[i] == -1 && PyErr_Occurred())
            return -1;
    }
    *rank = (size_t)n;
    return 0;
}

static PyObject *wrap(sonde_status st, sonde_value *value, const sonde_error *err)
{
    return st == SONDE_OK ? sn_py_wrap_value(value) : sn_py_raise(err);
}

/* tensor(dtype, shape, buffer): over the buffer's memory; the bits are taken as they are. */
static PyObject *make_tensor(PyObject *module, PyObject *args)
{
    int dtype;
    PyObject *shape, *object;
    int64_t dims[MOST_DIMS];
    size_t rank;
    (void)module;
    if (!PyArg_ParseTuple(args, "iO!O", &dtype, &PyTuple_Type, &shape, &object) ||
        read_shape(shape, dims, &rank) < 0)
        return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    sonde_error err;
    sonde_value *value = NULL;
    const sonde_status st = sonde_tensor_borrow(NULL, (sonde_dtype)dtype, dims, rank, view.buf,
                                                (size_t)view.len, &value, &err);
    PyObject *made = wrap(st, value, &err);
    if (!made) {
        PyBuffer_Release(&view);
        return NULL;
    }
    ((sn_py_value *)made)->view = view;
    ((sn_py_value *)made)->read_only = view.readonly;
    return made;
}

/* pointer(dtype, shape, address, bytes): memory that the caller answers for. */
static PyObject *make_pointer(PyObject *module, PyObject *args)
{
    int dtype;
    PyObject *shape, *address;
    Py_ssize_t bytes;
    int64_t dims[MOST_DIMS];
    size_t rank;
    (void)module;
    if (!PyArg_ParseTuple(args, "iO!On", &dtype, &PyTuple_Type, &shape, &address, &bytes) ||
        read_shape(shape, dims, &rank) < 0)
        return NULL;
    void *data = PyLong_AsVoidPtr(address);
    if (!data && PyErr_Occurred())
        return NULL;
    sonde_error err;
    sonde_value *value = NULL;
    const sonde_status st = sonde_tensor_borrow(NULL, (sonde_dtype)dtype, dims, rank, data,
                                                (size_t)bytes, &value, &err);
    return wrap(st, value, &err);
}

/* zeros(dtype, shape): memory of its own. */
static PyObject *make_zeros(PyObject *module, PyObject *args)
{
    int dtype;
    PyObject *shape;
    int64_t dims[MOST_DIMS];
    size_t rank, bytes;
    (void)module;
    if (!PyArg_ParseTuple(args, "iO!", &dtype, &PyTuple_Type, &shape) ||
        read_shape(shape, dims, &rank) < 0)
        return NULL;
    bytes = sonde_dtype_bytes((sonde_dtype)dtype);
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(bytes, (size_t)dims[i], &bytes))
            return sn_py_raise_text("InvalidArgument", "dim %zu of the shape is out of range", i);
    sonde_error err;
    sonde_value *value = NULL;
    const sonde_status st =
        sonde_tensor_create(NULL, (sonde_dtype)dtype, dims, rank, NULL, bytes, &value, &err);
    return wrap(st, value, &err);
}

/* string_tensor(shape, [bytes, …]) */
static PyObject *make_strings(PyObject *module, PyObject *args)
{
    PyObject *shape, *list;
    int64_t dims[MOST_DIMS], count = 1;
    size_t rank;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &shape, &PyList_Type, &list) ||
        read_shape(shape, dims, &rank) < 0)
        return NULL;
    const Py_ssize_t n = PyList_Size(list);
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(count, dims[i], &count))
            count = -1, i = rank - 1;
    if (count != n)
        return sn_py_raise_text("InvalidArgument", "%zd strings do not match the shape", n);
    sonde_string *elements = PyMem_Calloc((size_t)n + 1, sizeof *elements);
    if (!elements)
        return PyErr_NoMemory();
    PyObject *made = NULL;
    int status = 0;
    for (Py_ssize_t i = 0; status == 0 && i < n; i++) {
        char *data;
        Py_ssize_t size;
        status = PyBytes_AsStringAndSize(PyList_GetItem(list, i), &data, &size);
        if (status == 0)
            elements[i] = (sonde_string){data, (size_t)size};
    }
    if (status == 0) {
        sonde_error err;
        sonde_value *value = NULL;
        const sonde_status st =
            sonde_tensor_create_strings(NULL, dims, rank, elements, &value, &err);
        made = wrap(st, value, &err);
    }
    PyMem_Free(elements);
    return made;
}

static sonde_value *value_of(PyObject *object)
{
    if (sn_py_is_value(object))
        return ((sn_py_value *)object)->value;
    PyErr_Format(PyExc_TypeError, "expected an OrtValue, not %R", (PyObject *)Py_TYPE(object));
    return NULL;
}

/* sequence([OrtValue, …]) */
static PyObject *make_sequence(PyObject *module, PyObject *list)
{
    (void)module;
    const Py_ssize_t n = PyList_Size(list);
    if (n < 0)
        return NULL;
    sonde_value **items = PyMem_Calloc((size_t)n + 1, sizeof(sonde_value *));
    if (!items)
        return PyErr_NoMemory();
    PyObject *made = NULL;
    Py_ssize_t i = 0;
    for (; i < n; i++)
        if (!(items[i] = value_of(PyList_GetItem(list, i))))
            break;
    if (i == n) {
        sonde_error err;
        sonde_value *value = NULL;
        const sonde_status st = sonde_sequence_create(NULL, items, (size_t)n, &value, &err);
        made = wrap(st, value, &err);
    }
    PyMem_Free(items);
    return made;
}

/* optional(OrtValue or None) */
static PyObject *make_optional(PyObject *module, PyObject *object)
{
    (void)module;
    sonde_value *item = object == Py_None ? NULL : value_of(object), *value = NULL;
    if (!item && object != Py_None)
        return NULL;
    sonde_error err;
    const sonde_status st = sonde_optional_create(NULL, item, &value, &err);
    return wrap(st, value, &err);
}

/* map(keys, values) */
static PyObject *make_map(PyObject *module, PyObject *args)
{
    PyObject *keys, *values;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &keys, &values))
        return NULL;
    sonde_value *k = value_of(keys), *v = k ? value_of(values) : NULL, *value = NULL;
    if (!v)
        return NULL;
    sonde_error err;
    const sonde_status st = sonde_map_create(NULL, k, v, &value, &err);
    return wrap(st, value, &err);
}

PyObject *sn_py_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *sn_py_shown(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
}

PyObject *sn_py_name(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

const char *sn_py_name_bytes(PyObject *name, PyObject **hold)
{
    Py_ssize_t n;
    const char *text = PyUnicode_AsUTF8AndSize(name, &n);
    *hold = NULL;
    if (text) {
        Py_INCREF(name);
        *hold = name;
    } else if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
        PyErr_Clear();
        *hold = PyUnicode_AsEncodedString(name, "utf-8", "surrogateescape");
        if (!*hold || PyBytes_AsStringAndSize(*hold, (char **)&text, &n) < 0)
            text = NULL;
    }
    if (text && strlen(text) != (size_t)n) {
        PyObject *shown = PyObject_ASCII(name);
        const char *ascii = shown ? PyUnicode_AsUTF8AndSize(shown, NULL) : NULL;
        if (ascii)
            sn_py_raise_text("InvalidArgument", "the name %s contains a zero byte", ascii);
        Py_XDECREF(shown);
        text = NULL;
    }
    if (!text)
        Py_CLEAR(*hold);
    return text;
}

/* dtype_bytes(dtype): of an element in memory. */
static PyObject *dtype_bytes(PyObject *module, PyObject *number)
{
    (void)module;
    const long dtype = PyLong_AsLong(number);
    if (dtype == -1 && PyErr_Occurred())
        return NULL;
    return PyLong_FromSize_t(sonde_dtype_bytes((sonde_dtype)dtype));
}

/* [(name, summary, parameters, flops), …] */
static PyObject *zoo_list(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && sonde_zoo_name(i); i++) {
        PyObject *row = Py_BuildValue("(ssKK)", sonde_zoo_name(i), sonde_zoo_summary(i),
                                      (unsigned long long)sonde_zoo_parameters(i),
                                      (unsigned long long)sonde_zoo_flops(i));
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* [(name, summary), …] of the passes. */
static PyObject *pass_list(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && sonde_pass_name(i); i++) {
        PyObject *row = Py_BuildValue("(ss)", sonde_pass_name(i), sonde_pass_summary(i));
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* set_convert(module): who turns unusual objects into values and back. */
static PyObject *set_convert(PyObject *module, PyObject *convert)
{
    (void)module;
    PyObject *old = sn_py.convert;
    Py_INCREF(convert);
    sn_py.convert = convert;
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

PyMethodDef sn_py_functions[] = {{"tensor", make_tensor, METH_VARARGS, NULL},
                                 {"pointer", make_pointer, METH_VARARGS, NULL},
                                 {"zeros", make_zeros, METH_VARARGS, NULL},
                                 {"string_tensor", make_strings, METH_VARARGS, NULL},
                                 {"sequence", make_sequence, METH_O, NULL},
                                 {"optional", make_optional, METH_O, NULL},
                                 {"map", make_map, METH_VARARGS, NULL},
                                 {"dtype_bytes", dtype_bytes, METH_O, NULL},
                                 {"zoo_list", zoo_list, METH_NOARGS, NULL},
                                 {"pass_list", pass_list, METH_NOARGS, NULL},
                                 {"set_convert", set_convert, METH_O, NULL},
                                 {NULL, NULL, 0, NULL}};
