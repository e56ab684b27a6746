/* SPDX-License-Identifier: Apache-2.0 */
/* OrtValue: a value of the library as a Python object, with the methods of onnxruntime's class. It
 * is also the owner of the memory behind every array that a run returns: it exports that memory as
 * a buffer, and keeps alive the array it was itself made from. */
#include "binding.h"

#include <string.h>

static const char *const formats[SONDE_DTYPE_COUNT] = {
    [SONDE_DTYPE_F32] = "f",  [SONDE_DTYPE_U8] = "B",   [SONDE_DTYPE_I8] = "b",
    [SONDE_DTYPE_U16] = "H",  [SONDE_DTYPE_I16] = "h",  [SONDE_DTYPE_I32] = "i",
    [SONDE_DTYPE_I64] = "q",  [SONDE_DTYPE_BOOL] = "?", [SONDE_DTYPE_F16] = "e",
    [SONDE_DTYPE_F64] = "d",  [SONDE_DTYPE_U32] = "I",  [SONDE_DTYPE_U64] = "Q",
    [SONDE_DTYPE_C64] = "Zf", [SONDE_DTYPE_C128] = "Zd"};

static sn_py_value *cast(PyObject *self)
{
    return (sn_py_value *)self;
}

int sn_py_is_value(PyObject *object)
{
    return PyObject_TypeCheck(object, sn_py.value_type);
}

/* ------------------------------------------------------------------ life */
static sn_py_value *new_object(void)
{
    allocfunc alloc = (allocfunc)(uintptr_t)PyType_GetSlot(sn_py.value_type, Py_tp_alloc);
    return (sn_py_value *)alloc(sn_py.value_type, 0);
}

PyObject *sn_py_wrap_value(sonde_value *value)
{
    sn_py_value *v = new_object();
    if (!v) {
        sonde_value_release(value);
        return NULL;
    }
    v->value = value;
    return (PyObject *)v;
}

/* The feed's value, with the buffer it borrows. */
static PyObject *wrap_feed(sn_py_feed *f)
{
    if (f->owner) {
        PyObject *owner = f->owner;
        Py_INCREF(owner);
        sn_py_feed_clear(f);
        return owner;
    }
    sn_py_value *v = new_object();
    if (!v) {
        sn_py_feed_clear(f);
        return NULL;
    }
    v->value = f->value;
    v->view = f->view;
    v->read_only = f->view.obj && f->view.readonly;
    return (PyObject *)v;
}

static void value_dealloc(PyObject *self)
{
    sn_py_value *v = cast(self);
    PyTypeObject *type = Py_TYPE(self);
    sonde_value_release(v->value);
    if (v->view.obj)
        PyBuffer_Release(&v->view);
    Py_XDECREF(v->keep);
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* ------------------------------------------------------------------ as a buffer */
static int is_numbers(const sn_py_value *v)
{
    return sonde_value_kind(v->value) == SONDE_KIND_TENSOR &&
           sonde_tensor_dtype(v->value) != SONDE_DTYPE_STRING;
}

static int describe_buffer(sn_py_value *v, Py_buffer *view, int flags)
{
    const sonde_dtype dtype = sonde_tensor_dtype(v->value);
    const size_t rank = sonde_tensor_rank(v->value);
    const int64_t *dims = sonde_tensor_dims(v->value);
    const char *format = formats[dtype];
    const int fortran = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS;
    if (!format || (fortran && rank > 1)) {
        PyErr_Format(PyExc_BufferError, "a tensor of %s %s", sonde_dtype_onnx_text(dtype),
                     format ? "is in row-major order" : "has no buffer format");
        return -1;
    }
    Py_ssize_t *shape = PyMem_Malloc((2 * rank + 1) * sizeof *shape);
    if (!shape) {
        PyErr_NoMemory();
        return -1;
    }
    view->internal = shape;
    view->itemsize = (Py_ssize_t)sonde_dtype_bytes(dtype);
    view->format = (char *)(uintptr_t)format;
    view->ndim = (int)rank;
    view->shape = shape;
    view->strides = shape + rank;
    Py_ssize_t stride = view->itemsize;
    for (size_t i = rank; i-- > 0;) {
        view->shape[i] = (Py_ssize_t)dims[i];
        view->strides[i] = stride;
        stride *= view->shape[i];
    }
    if (!(flags & PyBUF_ND))
        view->shape = NULL;
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES)
        view->strides = NULL;
    return 0;
}

static int value_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    static char nothing[16]; /* an empty tensor has no memory, a buffer must point somewhere */
    sn_py_value *v = cast(self);
    view->obj = NULL;
    if (!is_numbers(v)) {
        PyErr_SetString(PyExc_BufferError, "only tensors of numbers have a buffer");
        return -1;
    }
    void *data = sonde_tensor_data(v->value);
    if (PyBuffer_FillInfo(view, self, data ? data : nothing,
                          (Py_ssize_t)sonde_tensor_bytes(v->value), v->read_only, flags) < 0)
        return -1;
    view->internal = NULL;
    /* Without a format it is bytes, which is all that numpy asks for. */
    if ((flags & PyBUF_FORMAT) && describe_buffer(v, view, flags) < 0) {
        Py_CLEAR(view->obj);
        return -1;
    }
    return 0;
}

static void value_releasebuffer(PyObject *self, Py_buffer *view)
{
    (void)self;
    PyMem_Free(view->internal);
    view->internal = NULL;
}

/* ------------------------------------------------------------------ making one */
static int check_device(const char *device)
{
    if (strcmp(device, "cpu") == 0 || strcmp(device, "CPU") == 0)
        return 0;
    sn_py_raise_text("InvalidArgument", "device '%s' is not supported; the only device is cpu",
                     device);
    return -1;
}

static PyObject *from_numpy(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"numpy_obj", "device_type", "device_id", "vendor_id", NULL};
    PyObject *array;
    const char *device = "cpu";
    int id = 0, vendor = -1;
    sn_py_feed f;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|sii", names, &array, &device, &id, &vendor) ||
        check_device(device) < 0 || sn_py_feed_make(&f, array, NULL) < 0)
        return NULL;
    return wrap_feed(&f);
}

static PyObject *from_numpy_with_type(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data", "onnx_element_type", NULL};
    PyObject *data;
    int number;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Oi", names, &data, &number))
        return NULL;
    return PyObject_CallMethod(sn_py.convert, "with_onnx_type", "Oi", data, number);
}

static PyObject *from_shape(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"shape", "element_type", "device_type", "device_id", "vendor_id", NULL};
    PyObject *shape, *element;
    const char *device = "cpu";
    int id = 0, vendor = -1;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|sii", names, &shape, &element, &device, &id,
                                     &vendor) ||
        check_device(device) < 0)
        return NULL;
    return PyObject_CallMethod(sn_py.convert, "empty", "OO", shape, element);
}

/* ------------------------------------------------------------------ asking one */
static PyObject *get_numpy(PyObject *self, PyObject *none)
{
    (void)none;
    return sn_py_value_to_python(self);
}

static PyObject *get_array(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO", names, &dtype, &copy))
        return NULL;
    PyObject *array = sn_py_value_to_python(self);
    if (!array || (dtype == Py_None && copy == Py_None))
        return array;
    PyObject *made = PyObject_CallMethod(sn_py.convert, "as_array", "OOO", array, dtype, copy);
    Py_DECREF(array);
    return made;
}

static PyObject *get_shape(PyObject *self, PyObject *none)
{
    (void)none;
    PyObject *shape = sn_py_shape(cast(self)->value);
    PyObject *list = shape ? PySequence_List(shape) : NULL;
    Py_XDECREF(shape);
    return list;
}

static PyObject *type_text(const sonde_value *value)
{
    static const char *const words[] = {[SONDE_KIND_SEQUENCE] = "seq",
                                        [SONDE_KIND_OPTIONAL] = "optional",
                                        [SONDE_KIND_MAP] = "map"};
    const sonde_kind kind = sonde_value_kind(value);
    if (kind == SONDE_KIND_TENSOR)
        return PyUnicode_FromFormat("tensor(%s)", sonde_dtype_onnx_text(sonde_tensor_dtype(value)));
    if (kind == SONDE_KIND_NONE || sonde_value_count(value) == 0)
        return PyUnicode_FromFormat("%s()", kind == SONDE_KIND_NONE ? "none" : words[kind]);
    sonde_error err;
    sonde_value *item = NULL, *key = NULL;
    PyObject *made = NULL, *inner = NULL;
    if (sonde_value_item(value, kind == SONDE_KIND_MAP ? 1 : 0, &item, &err) ||
        (kind == SONDE_KIND_MAP && sonde_value_item(value, 0, &key, &err)))
        sn_py_raise(&err);
    else
        inner = type_text(item);
    if (inner && key)
        made = PyUnicode_FromFormat("map(%s,%U)", sonde_dtype_onnx_text(sonde_tensor_dtype(key)),
                                    inner);
    else if (inner)
        made = PyUnicode_FromFormat("%s(%U)", words[kind], inner);
    Py_XDECREF(inner);
    sonde_value_release(item);
    sonde_value_release(key);
    return made;
}

static PyObject *get_data_type(PyObject *self, PyObject *none)
{
    (void)none;
    return type_text(cast(self)->value);
}

static PyObject *get_element_type(PyObject *self, PyObject *none)
{
    (void)none;
    return PyLong_FromLong((long)sonde_tensor_dtype(cast(self)->value));
}

static PyObject *get_data_ptr(PyObject *self, PyObject *none)
{
    (void)none;
    return PyLong_FromVoidPtr(sonde_tensor_data(cast(self)->value));
}

static PyObject *get_bytes(PyObject *self, PyObject *none)
{
    (void)none;
    return PyLong_FromSize_t(sonde_tensor_bytes(cast(self)->value));
}

static PyObject *get_device_name(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    return PyUnicode_FromString("cpu");
}

static PyObject *has_value(PyObject *self, PyObject *none)
{
    (void)none;
    const sonde_value *v = cast(self)->value;
    const sonde_kind kind = sonde_value_kind(v);
    return PyBool_FromLong(kind != SONDE_KIND_NONE &&
                           (kind != SONDE_KIND_OPTIONAL || sonde_value_count(v) > 0));
}

static PyObject *is_tensor(PyObject *self, PyObject *none)
{
    (void)none;
    return PyBool_FromLong(sonde_value_kind(cast(self)->value) == SONDE_KIND_TENSOR);
}

static PyObject *is_sparse(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    Py_RETURN_FALSE;
}

static PyObject *is_sequence(PyObject *self, PyObject *none)
{
    (void)none;
    return PyBool_FromLong(sonde_value_kind(cast(self)->value) == SONDE_KIND_SEQUENCE);
}

/* ------------------------------------------------------------------ changing one */
static PyObject *update_inplace(PyObject *self, PyObject *array)
{
    sn_py_value *v = cast(self);
    sn_py_feed f;
    if (sn_py_feed_make(&f, array, NULL) < 0)
        return NULL;
    const size_t bytes = sonde_tensor_bytes(v->value);
    if (v->read_only)
        sn_py_raise_text("InvalidArgument", "this OrtValue is a view of read-only memory");
    else if (!is_numbers(v) || sonde_tensor_dtype(f.value) != sonde_tensor_dtype(v->value) ||
             sonde_tensor_bytes(f.value) != bytes)
        sn_py_raise_text(
            "InvalidArgument",
            "the new content must have the dtype (%s) and the size (%zu bytes) of the old content",
            sonde_dtype_onnx_text(sonde_tensor_dtype(v->value)), bytes);
    else if (bytes > 0)
        memmove(sonde_tensor_data(v->value), sonde_tensor_data(f.value), bytes);
    sn_py_feed_clear(&f);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *value_repr(PyObject *self)
{
    PyObject *made = NULL, *type = get_data_type(self, NULL), *shape = get_shape(self, NULL);
    if (type && shape)
        made = sonde_value_kind(cast(self)->value) == SONDE_KIND_TENSOR
                   ? PyUnicode_FromFormat("OrtValue(%U, shape=%R)", type, shape)
                   : PyUnicode_FromFormat("OrtValue(%U)", type);
    Py_XDECREF(type);
    Py_XDECREF(shape);
    return made;
}

static PyObject *dlpack_device(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    return Py_BuildValue("(ii)", 1, 0); /* the CPU's number */
}

enum { CLASS_KEYWORDS = METH_VARARGS | METH_KEYWORDS | METH_CLASS };

static PyMethodDef methods[] = {
    {"ortvalue_from_numpy", SN_PY_CALL(from_numpy), CLASS_KEYWORDS,
     "Creates a value that refers to an array's memory and keeps the array alive."},
    {"ortvalue_from_numpy_with_onnx_type", SN_PY_CALL(from_numpy_with_type), CLASS_KEYWORDS,
     "Creates a value from the bits of an array, interpreted as the given ONNX dtype."},
    {"ortvalue_from_shape_and_type", SN_PY_CALL(from_shape), CLASS_KEYWORDS,
     "Creates a value of the given shape with its own memory."},
    {"from_dlpack", sn_py_from_dlpack, METH_O | METH_CLASS,
     "Creates a value that refers to the memory of an object with __dlpack__, or of a DLPack "
     "capsule."},
    {"numpy", get_numpy, METH_NOARGS,
     "Returns an array that refers to this value's memory; a list for a sequence."},
    {"__array__", SN_PY_CALL(get_array), METH_VARARGS | METH_KEYWORDS, NULL},
    {"shape", get_shape, METH_NOARGS, "The dimensions of a tensor."},
    {"data_type", get_data_type, METH_NOARGS, "\"tensor(float)\" and the like."},
    {"element_type", get_element_type, METH_NOARGS, "The number of the dtype in ONNX."},
    {"data_ptr", get_data_ptr, METH_NOARGS, "The address of the first element."},
    {"tensor_size_in_bytes", get_bytes, METH_NOARGS, NULL},
    {"device_name", get_device_name, METH_NOARGS, "\"cpu\""},
    {"has_value", has_value, METH_NOARGS, "False for an empty optional."},
    {"is_tensor", is_tensor, METH_NOARGS, NULL},
    {"is_sparse_tensor", is_sparse, METH_NOARGS, NULL},
    {"is_tensor_sequence", is_sequence, METH_NOARGS, NULL},
    {"update_inplace", update_inplace, METH_O, "Copies new elements into this value's memory."},
    {"to_dlpack", SN_PY_CALL(sn_py_to_dlpack), METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack__", SN_PY_CALL(sn_py_to_dlpack), METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

int sn_py_add_value_type(PyObject *module)
{
    PyType_Slot slots[] = {SN_PY_SLOT(Py_tp_dealloc, value_dealloc),
                           SN_PY_SLOT(Py_tp_repr, value_repr),
                           SN_PY_SLOT(Py_bf_getbuffer, value_getbuffer),
                           SN_PY_SLOT(Py_bf_releasebuffer, value_releasebuffer),
                           {Py_tp_methods, methods},
                           {Py_tp_doc, (void *)(uintptr_t) "A tensor, sequence, optional or map."},
                           {0, NULL}};
    PyType_Spec spec = {.name = "sonde.OrtValue",
                        .basicsize = sizeof(sn_py_value),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        .slots = slots};
    sn_py.value_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return sn_py.value_type
               ? PyModule_AddObjectRef(module, "OrtValue", (PyObject *)sn_py.value_type)
               : -1;
}
