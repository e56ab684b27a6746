/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller feeds becomes a value. Contiguous buffers of the usual types (numpy's arrays, most
 * of the time) are read where they lie and handled here; everything else goes through
 * sonde._convert, which makes an OrtValue of it. */
#include "binding.h"

#include <string.h>

enum { MOST_DIMS = 32 };

/* The element type that a buffer's format stands for; UNDEFINED for none. */
static sonde_dtype dtype_of(const char *format, Py_ssize_t itemsize)
{
    static const sonde_dtype by_size[2][9] = {
        {0, SONDE_DTYPE_U8, SONDE_DTYPE_U16, 0, SONDE_DTYPE_U32, 0, 0, 0, SONDE_DTYPE_U64},
        {0, SONDE_DTYPE_I8, SONDE_DTYPE_I16, 0, SONDE_DTYPE_I32, 0, 0, 0, SONDE_DTYPE_I64}};
    if (!format)
        return SONDE_DTYPE_U8;
    if (*format == '@' || *format == '=' || *format == '<') /* all of ours are little-endian */
        format++;
    if (format[0] == 'Z' && format[1] && !format[2])
        return format[1] == 'f' && itemsize == 8    ? SONDE_DTYPE_C64
               : format[1] == 'd' && itemsize == 16 ? SONDE_DTYPE_C128
                                                    : SONDE_DTYPE_UNDEFINED;
    if (!format[0] || format[1] || itemsize > 8 || itemsize < 1)
        return SONDE_DTYPE_UNDEFINED;
    switch (*format) {
    case 'f':
        return itemsize == 4 ? SONDE_DTYPE_F32 : SONDE_DTYPE_UNDEFINED;
    case 'd':
        return itemsize == 8 ? SONDE_DTYPE_F64 : SONDE_DTYPE_UNDEFINED;
    case 'e':
        return itemsize == 2 ? SONDE_DTYPE_F16 : SONDE_DTYPE_UNDEFINED;
    case '?':
        return itemsize == 1 ? SONDE_DTYPE_BOOL : SONDE_DTYPE_UNDEFINED;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
        return by_size[0][itemsize];
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
        return by_size[1][itemsize];
    default:
        return SONDE_DTYPE_UNDEFINED;
    }
}

/* 1: fed; 0: not one of the usual buffers; -1: an exception. */
static int feed_buffer(sn_py_feed *f, PyObject *object)
{
    if (!PyObject_CheckBuffer(object))
        return 0;
    if (PyObject_GetBuffer(object, &f->view, PyBUF_ND | PyBUF_FORMAT) < 0) {
        f->view.obj = NULL;
        PyErr_Clear(); /* not contiguous, or of a type that buffers cannot describe */
        return 0;
    }
    const sonde_dtype dtype = dtype_of(f->view.format, f->view.itemsize);
    const int rank = f->view.ndim;
    const size_t align = (size_t)(f->view.itemsize > 8 ? 8 : f->view.itemsize);
    if (dtype == SONDE_DTYPE_UNDEFINED || rank > MOST_DIMS || (uintptr_t)f->view.buf % align) {
        PyBuffer_Release(&f->view);
        f->view.obj = NULL;
        return 0;
    }
    int64_t dims[MOST_DIMS];
    for (int i = 0; i < rank; i++)
        dims[i] = f->view.shape[i];
    sonde_error err;
    if (sonde_tensor_borrow(NULL, dtype, dims, (size_t)rank, f->view.buf, (size_t)f->view.len,
                            &f->value, &err)) {
        sn_py_raise(&err);
        return -1;
    }
    return 1;
}

static int feed_value(sn_py_feed *f, PyObject *object)
{
    sn_py_value *v = (sn_py_value *)object;
    f->value = sonde_value_retain(v->value);
    Py_INCREF(object);
    f->owner = object;
    return 1;
}

/* The way for everything unusual: sonde._convert.to_value(object, type, name). */
static int feed_other(sn_py_feed *f, PyObject *object, const sn_py_port *port)
{
    PyObject *made = PyObject_CallMethod(sn_py.convert, "to_value", "OOO", object,
                                         port ? port->type : Py_None, port ? port->name : Py_None);
    if (!made)
        return -1;
    int status = -1;
    if (sn_py_is_value(made))
        status = feed_value(f, made);
    else
        PyErr_SetString(PyExc_TypeError, "sonde._convert.to_value did not return an OrtValue");
    Py_DECREF(made);
    return status;
}

int sn_py_feed_make(sn_py_feed *f, PyObject *object, const sn_py_port *port)
{
    *f = (sn_py_feed){.value = NULL};
    int status = 0;
    if (sn_py_is_value(object))
        status = feed_value(f, object);
    else if (!port ||
             (port->info.kind <= SONDE_KIND_TENSOR && port->info.dtype != SONDE_DTYPE_STRING))
        status = feed_buffer(f, object);
    if (status == 0)
        status = feed_other(f, object, port);
    if (status < 0) {
        sn_py_feed_clear(f);
        return -1;
    }
    return 0;
}

void sn_py_feed_clear(sn_py_feed *f)
{
    sonde_value_release(f->value);
    if (f->view.obj)
        PyBuffer_Release(&f->view);
    Py_XDECREF(f->owner);
    *f = (sn_py_feed){.value = NULL};
}

int sn_py_feed_own_integers(sn_py_feed *f, PyObject *object)
{
    const sonde_dtype dtype = sonde_tensor_dtype(f->value);
    if (f->owner == object || (dtype != SONDE_DTYPE_I64 && dtype != SONDE_DTYPE_I32))
        return 0;
    sonde_error err;
    sonde_value *copy = NULL;
    if (sonde_tensor_create(NULL, dtype, sonde_tensor_dims(f->value), sonde_tensor_rank(f->value),
                            sonde_tensor_data(f->value), sonde_tensor_bytes(f->value), &copy,
                            &err)) {
        sn_py_raise(&err);
        return -1;
    }
    sn_py_feed_clear(f);
    f->value = copy;
    return 0;
}
