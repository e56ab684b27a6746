/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses become exceptions. The classes are Python's (sonde/_errors.py), under the names that
 * onnxruntime gives its own. */
#include "binding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *class_of(sonde_status status)
{
    switch (status) {
    case SONDE_OUT_OF_MEMORY:
        return "OutOfMemory";
    case SONDE_INVALID_ARGUMENT:
    case SONDE_NOT_FOUND:
        return "InvalidArgument";
    case SONDE_INVALID_MODEL:
        return "InvalidGraph";
    case SONDE_INVALID_FORMAT:
        return "InvalidProtobuf";
    case SONDE_UNSUPPORTED:
        return "NotImplemented";
    case SONDE_CANCELLED:
        return "Cancelled";
    case SONDE_RUNTIME:
        return "RuntimeException";
    case SONDE_INTERNAL:
        return "EngineError";
    default:
        return "Fail";
    }
}

static PyObject *raise(const char *class_name, const char *message)
{
    PyObject *type = PyObject_GetAttrString(sn_py.errors, class_name);
    /* Names in a model are any bytes; a message shows those that are not text as they are. */
    PyObject *text = sn_py_shown(message);
    if (type && text)
        PyErr_SetObject(type, text);
    Py_XDECREF(type);
    Py_XDECREF(text);
    return NULL;
}

PyObject *sn_py_raise(const sonde_error *err)
{
    return raise(class_of(err->status), err->message);
}

PyObject *sn_py_raise_text(const char *class_name, const char *fmt, ...)
{
    char message[1024];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    return raise(class_name, message);
}
