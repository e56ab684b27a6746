/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack: tensors from and to other libraries without a copy. The structs are the protocol's (the
 * layout is its ABI), both in the old form and in the versioned one of DLPack 1.0. */
#include "binding.h"

#include <string.h>

enum { DEVICE_CPU = 1, DEVICE_CUDA_HOST = 3, DEVICE_CUDA_MANAGED = 13 };
enum { READ_ONLY = 1 }; /* of versioned.flags */
enum { MOST_DIMS = 32 };
static const char TAKEN[] = "used_dltensor", TAKEN_VERSIONED[] = "used_dltensor_versioned";

typedef struct dl_type {
    uint8_t code, bits;
    uint16_t lanes;
} dl_type;

typedef struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t rank;
    dl_type type;
    int64_t *dims, *strides; /* strides in elements; NULL: dense */
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

typedef struct dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

/* DLPack's numbers of element types. */
static const dl_type types[SONDE_DTYPE_COUNT] = {
    [SONDE_DTYPE_I8] = {0, 8, 1},          [SONDE_DTYPE_I16] = {0, 16, 1},
    [SONDE_DTYPE_I32] = {0, 32, 1},        [SONDE_DTYPE_I64] = {0, 64, 1},
    [SONDE_DTYPE_U8] = {1, 8, 1},          [SONDE_DTYPE_U16] = {1, 16, 1},
    [SONDE_DTYPE_U32] = {1, 32, 1},        [SONDE_DTYPE_U64] = {1, 64, 1},
    [SONDE_DTYPE_F16] = {2, 16, 1},        [SONDE_DTYPE_F32] = {2, 32, 1},
    [SONDE_DTYPE_F64] = {2, 64, 1},        [SONDE_DTYPE_BF16] = {4, 16, 1},
    [SONDE_DTYPE_C64] = {5, 64, 1},        [SONDE_DTYPE_C128] = {5, 128, 1},
    [SONDE_DTYPE_BOOL] = {6, 8, 1},        [SONDE_DTYPE_F8E4M3FN] = {10, 8, 1},
    [SONDE_DTYPE_F8E4M3FNUZ] = {11, 8, 1}, [SONDE_DTYPE_F8E5M2] = {12, 8, 1},
    [SONDE_DTYPE_F8E5M2FNUZ] = {13, 8, 1}, [SONDE_DTYPE_F8E8M0] = {14, 8, 1}};

static sonde_dtype dtype_of(dl_type t)
{
    for (int i = 1; i < SONDE_DTYPE_COUNT; i++)
        if (types[i].bits && types[i].code == t.code && types[i].bits == t.bits && t.lanes == 1)
            return (sonde_dtype)i;
    return SONDE_DTYPE_UNDEFINED;
}

/* ------------------------------------------------------------------ out */
/* What a capsule holds: one struct of either form, dims behind it. */
typedef struct exported {
    union {
        dl_managed plain;
        dl_versioned versioned;
    } as;
    PyObject *owner; /* the OrtValue */
    int64_t dims[];  /* then strides */
} exported;

static void drop(exported *e)
{
    PyGILState_STATE state = PyGILState_Ensure(); /* the consumer may be on any thread */
    Py_XDECREF(e->owner);
    PyMem_Free(e);
    PyGILState_Release(state);
}

static void delete_plain(dl_managed *self)
{
    drop(self->context);
}

static void delete_versioned(dl_versioned *self)
{
    drop(self->context);
}

/* A capsule nobody took. A consumer renames those it takes. */
static void capsule_gone(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
        if (m && m->deleter)
            m->deleter(m);
    } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        dl_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (m && m->deleter)
            m->deleter(m);
    }
}

static PyObject *export_value(sn_py_value *v, int versioned, int copied)
{
    const sonde_value *value = v->value;
    const size_t rank = sonde_tensor_rank(value);
    const int64_t *dims = sonde_tensor_dims(value);
    exported *e = PyMem_Malloc(sizeof *e + (2 * rank + 1) * sizeof *e->dims);
    if (!e)
        return PyErr_NoMemory();
    dl_tensor t = {.data = sonde_tensor_data(value),
                   .device_type = DEVICE_CPU,
                   .rank = (int32_t)rank,
                   .type = types[sonde_tensor_dtype(value)],
                   .dims = e->dims,
                   .strides = e->dims + rank};
    int64_t stride = 1;
    for (size_t i = rank; i-- > 0;) {
        t.dims[i] = dims[i];
        t.strides[i] = stride;
        stride *= dims[i];
    }
    if (versioned)
        e->as.versioned = (dl_versioned){.major = 1,
                                         .minor = 0,
                                         .context = e,
                                         .deleter = delete_versioned,
                                         .flags = (v->read_only ? READ_ONLY : 0) | (copied ? 2 : 0),
                                         .tensor = t};
    else
        e->as.plain = (dl_managed){.tensor = t, .context = e, .deleter = delete_plain};
    Py_INCREF((PyObject *)v);
    e->owner = (PyObject *)v;
    PyObject *capsule =
        PyCapsule_New(&e->as, versioned ? "dltensor_versioned" : "dltensor", capsule_gone);
    if (!capsule)
        drop(e);
    return capsule;
}

/* A value of the same elements with memory of its own. */
static PyObject *copy_value(const sonde_value *v)
{
    sonde_error err;
    sonde_value *made = NULL;
    if (sonde_tensor_create(NULL, sonde_tensor_dtype(v), sonde_tensor_dims(v), sonde_tensor_rank(v),
                            sonde_tensor_data(v), sonde_tensor_bytes(v), &made, &err))
        return sn_py_raise(&err);
    return sn_py_wrap_value(made);
}

/* Two numbers from None, which leaves them, or a tuple. */
static int read_pair(PyObject *pair, const char *name, int *first, int *second)
{
    if (pair == Py_None)
        return 0;
    if (PyTuple_Check(pair) && PyTuple_Size(pair) == 2)
        return PyArg_ParseTuple(pair, "ii", first, second) ? 0 : -1;
    PyErr_Format(PyExc_TypeError, "%s must be a tuple of two int, not %R", name,
                 (PyObject *)Py_TYPE(pair));
    return -1;
}

PyObject *sn_py_to_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOO", names, &stream, &version, &device,
                                     &copy))
        return NULL;
    sn_py_value *v = (sn_py_value *)self;
    if (sonde_value_kind(v->value) != SONDE_KIND_TENSOR ||
        !types[sonde_tensor_dtype(v->value)].bits) {
        PyErr_Format(PyExc_BufferError, "DLPack does not support the dtype %R", self);
        return NULL;
    }
    int major = 0, minor = 0, kind = DEVICE_CPU, id = 0;
    if (read_pair(version, "max_version", &major, &minor) < 0 ||
        read_pair(device, "dl_device", &kind, &id) < 0)
        return NULL;
    if (kind != DEVICE_CPU) {
        PyErr_SetString(PyExc_BufferError, "this tensor is in CPU memory");
        return NULL;
    }
    const int copied = copy != Py_None ? PyObject_IsTrue(copy) : 0;
    if (copied < 0)
        return NULL;
    if (v->read_only && major < 1 && !copied) {
        PyErr_SetString(PyExc_BufferError,
                        "this tensor is read-only, which DLPack before 1.0 cannot express");
        return NULL;
    }
    PyObject *source = copied ? copy_value(v->value) : self;
    if (!source)
        return NULL;
    PyObject *capsule = export_value((sn_py_value *)source, major >= 1, copied);
    if (copied)
        Py_DECREF(source);
    return capsule;
}

/* ------------------------------------------------------------------ in */
static int is_dense(const dl_tensor *t)
{
    int64_t stride = 1;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] == 0)
            return 1;
    for (int i = t->rank; t->strides && i-- > 0;) {
        if (t->dims[i] != 1 && t->strides[i] != stride)
            return 0;
        stride *= t->dims[i];
    }
    return 1;
}

/* Whether the dims are a size that memory can have; *bytes receives it. */
static int read_bytes(const dl_tensor *t, sonde_dtype dtype, size_t *bytes)
{
    *bytes = sonde_dtype_bytes(dtype);
    if (t->rank > 0 && !t->dims)
        return 0;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] < 0 || __builtin_mul_overflow(*bytes, (size_t)t->dims[i], bytes))
            return 0;
    return *bytes <= PTRDIFF_MAX && (t->data || *bytes == 0);
}

/* The elements of a tensor with strides, in row-major order. */
static void gather(const dl_tensor *t, const char *from, char *to, size_t size)
{
    int64_t at[MOST_DIMS] = {0};
    for (;;) {
        int64_t offset = 0;
        for (int i = 0; i < t->rank; i++)
            offset += at[i] * t->strides[i];
        memcpy(to, from + offset * (int64_t)size, size);
        to += size;
        int i = t->rank - 1;
        for (; i >= 0 && ++at[i] == t->dims[i]; i--)
            at[i] = 0;
        if (i < 0)
            return;
    }
}

static int check(const dl_tensor *t, sonde_dtype dtype, size_t *bytes)
{
    if (t->device_type != DEVICE_CPU && t->device_type != DEVICE_CUDA_HOST &&
        t->device_type != DEVICE_CUDA_MANAGED)
        PyErr_Format(PyExc_BufferError, "the tensor is on device %d, not in CPU memory",
                     (int)t->device_type);
    else if (dtype == SONDE_DTYPE_UNDEFINED)
        PyErr_Format(PyExc_BufferError, "the DLPack dtype (%d, %d bits, %d lanes) is unknown",
                     t->type.code, t->type.bits, t->type.lanes);
    else if (t->rank < 0 || t->rank > MOST_DIMS)
        PyErr_Format(PyExc_BufferError, "a tensor of rank %d", (int)t->rank);
    else if (!read_bytes(t, dtype, bytes))
        PyErr_SetString(PyExc_BufferError, "a tensor whose shape does not match its memory");
    else
        return 0;
    return -1;
}

/* A value over that memory, or a copy where it does not lie as ours does. *borrowed says which. */
static sonde_value *import_tensor(const dl_tensor *t, int *borrowed)
{
    const sonde_dtype dtype = dtype_of(t->type);
    size_t bytes;
    if (check(t, dtype, &bytes) < 0)
        return NULL;
    char *data = t->data ? (char *)t->data + t->byte_offset : NULL;
    const size_t size = sonde_dtype_bytes(dtype);
    const size_t rank = (size_t)t->rank;
    sonde_value *value = NULL;
    sonde_error err;
    *borrowed = is_dense(t) && (uintptr_t)data % (size > 8 ? 8 : size) == 0;
    if (*borrowed ? sonde_tensor_borrow(NULL, dtype, t->dims, rank, data, bytes, &value, &err)
                  : sonde_tensor_create(NULL, dtype, t->dims, rank, NULL, bytes, &value, &err)) {
        sn_py_raise(&err);
        return NULL;
    }
    if (!*borrowed && is_dense(t))
        memcpy(sonde_tensor_data(value), data, bytes);
    else if (!*borrowed)
        gather(t, data, sonde_tensor_data(value), size);
    return value;
}

/* The capsule of what was given: itself, or what its __dlpack__ returns. */
static PyObject *capsule_of(PyObject *object)
{
    if (PyCapsule_CheckExact(object)) {
        Py_INCREF(object);
        return object;
    }
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *none = method ? PyTuple_New(0) : NULL;
    PyObject *kwargs = none ? Py_BuildValue("{s:(ii)}", "max_version", 1, 0) : NULL;
    PyObject *capsule = kwargs ? PyObject_Call(method, none, kwargs) : NULL;
    if (kwargs && !capsule && PyErr_ExceptionMatches(PyExc_TypeError)) { /* from before 1.0 */
        PyErr_Clear();
        capsule = PyObject_Call(method, none, NULL);
    }
    Py_XDECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(kwargs);
    return capsule;
}

/* Gives the memory of a capsule we took back to whom it came from. */
static void give_back(void *managed, int versioned)
{
    dl_versioned *v = managed;
    dl_managed *m = managed;
    if (versioned && v->deleter)
        v->deleter(v);
    else if (!versioned && m->deleter)
        m->deleter(m);
}

/* Called when the OrtValue is gone that was made of such a capsule. */
static void taken_gone(PyObject *holder)
{
    const int versioned = PyCapsule_IsValid(holder, TAKEN_VERSIONED);
    give_back(PyCapsule_GetPointer(holder, versioned ? TAKEN_VERSIONED : TAKEN), versioned);
}

/* Takes what the capsule holds: the protocol says so by its name. Whoever has the object returned
 * keeps the memory alive. */
static PyObject *take(PyObject *capsule, void *managed, int versioned)
{
    const char *name = versioned ? TAKEN_VERSIONED : TAKEN;
    PyObject *holder = PyCapsule_New(managed, name, NULL);
    if (!holder)
        return NULL;
    if (PyCapsule_SetName(capsule, name) < 0 || PyCapsule_SetDestructor(holder, taken_gone) < 0) {
        Py_DECREF(holder);
        return NULL;
    }
    return holder;
}

PyObject *sn_py_from_dlpack(PyObject *type, PyObject *object)
{
    (void)type;
    PyObject *capsule = capsule_of(object), *made = NULL;
    if (!capsule)
        return NULL;
    const int versioned = PyCapsule_IsValid(capsule, "dltensor_versioned");
    void *managed = PyCapsule_GetPointer(capsule, versioned ? "dltensor_versioned" : "dltensor");
    const dl_versioned *v = managed;
    const dl_tensor *t = NULL;
    if (managed && versioned && v->major > 1)
        PyErr_Format(PyExc_BufferError, "DLPack %d is newer than this library", (int)v->major);
    else if (managed)
        t = versioned ? &v->tensor : &((const dl_managed *)managed)->tensor;
    int borrowed = 0;
    sonde_value *value = t ? import_tensor(t, &borrowed) : NULL;
    if (value)
        made = sn_py_wrap_value(value);
    if (made && borrowed) {
        sn_py_value *mine = (sn_py_value *)made;
        mine->read_only = versioned && (v->flags & READ_ONLY);
        mine->keep = take(capsule, managed, versioned);
        if (!mine->keep)
            Py_CLEAR(made);
    }
    Py_DECREF(capsule);
    return made;
}
