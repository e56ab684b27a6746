/* SPDX-License-Identifier: Apache-2.0 */
/* Columns for other libraries through Arrow's C data interface, without any of them: a table is a
 * struct array whose children are its columns. Data is copied into memory of C's, so that a
 * consumer may release it on any thread, with or without the interpreter. */
#include "binding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* As the interface's specification lays them down. */
struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};
enum { ARROW_NULLABLE = 2 };

/* ------------------------------------------------------------------ schemas */
static void release_schema(struct ArrowSchema *s)
{
    for (int64_t i = 0; s->children && i < s->n_children; i++) {
        struct ArrowSchema *child = s->children[i];
        if (child && child->release)
            child->release(child);
        free(child);
    }
    free(s->children);
    free(s->private_data); /* the name */
    s->release = NULL;
}

/* False: out of memory, and nothing is left behind. */
static int make_schema(struct ArrowSchema *s, const char *format, const char *name, size_t children)
{
    char *copy = strdup(name);
    *s = (struct ArrowSchema){.format = format,
                              .name = copy,
                              .flags = children ? 0 : ARROW_NULLABLE,
                              .n_children = (int64_t)children,
                              .children = calloc(children + 1, sizeof s->children[0]),
                              .release = release_schema,
                              .private_data = copy};
    int fine = copy && s->children;
    for (size_t i = 0; fine && i < children; i++)
        fine = (s->children[i] = calloc(1, sizeof *s)) != NULL;
    if (!fine)
        release_schema(s);
    return fine;
}

/* ------------------------------------------------------------------ arrays */
static void release_array(struct ArrowArray *a)
{
    for (int64_t i = 0; a->children && i < a->n_children; i++) {
        struct ArrowArray *child = a->children[i];
        if (child && child->release)
            child->release(child);
        free(child);
    }
    for (int64_t i = 0; a->buffers && i < a->n_buffers; i++)
        free((void *)(uintptr_t)a->buffers[i]);
    free(a->children);
    free((void *)a->buffers);
    a->release = NULL;
}

static int make_array(struct ArrowArray *a, size_t length, size_t buffers, size_t children)
{
    *a = (struct ArrowArray){.length = (int64_t)length,
                             .n_buffers = (int64_t)buffers,
                             .n_children = (int64_t)children,
                             .buffers = calloc(buffers + 1, sizeof a->buffers[0]),
                             .children = calloc(children + 1, sizeof a->children[0]),
                             .release = release_array};
    int fine = a->buffers && a->children;
    for (size_t i = 0; fine && i < children; i++)
        fine = (a->children[i] = calloc(1, sizeof *a)) != NULL;
    if (!fine) {
        release_array(a);
        PyErr_NoMemory();
    }
    return fine;
}

static void *buffer(struct ArrowArray *a, size_t k, size_t bytes)
{
    void *data = calloc(bytes + 64, 1);
    if (!data)
        PyErr_NoMemory();
    a->buffers[k] = data;
    return data;
}

static void set_bit(uint8_t *bits, size_t i)
{
    bits[i / 8] |= (uint8_t)(1u << (i % 8));
}

/* Numbers from a buffer. Integers that are `missing` are null; bools are a bit each. */
static const char *fill_numbers(struct ArrowArray *a, const Py_buffer *view, const char *format,
                                PyObject *missing)
{
    const size_t n = (size_t)view->len / (size_t)view->itemsize;
    if (format[0] == '?') {
        const char *from = view->buf;
        uint8_t *bits = buffer(a, 1, n / 8 + 1);
        for (size_t i = 0; bits && i < n; i++)
            if (from[i])
                set_bit(bits, i);
        return bits ? "b" : NULL;
    }
    void *data = buffer(a, 1, (size_t)view->len);
    if (!data)
        return NULL;
    memcpy(data, view->buf, (size_t)view->len);
    if (format[0] == 'd')
        return "g";
    if (missing == Py_None)
        return "l";
    const long long none = PyLong_AsLongLong(missing);
    uint8_t *bits = none == -1 && PyErr_Occurred() ? NULL : buffer(a, 0, n / 8 + 1);
    for (size_t i = 0; bits && i < n; i++) {
        if (((const int64_t *)data)[i] == none)
            a->null_count++;
        else
            set_bit(bits, i);
    }
    return bits ? "l" : NULL;
}

/* A list of str: offsets, then their bytes one behind the other. */
static const char *fill_texts(struct ArrowArray *a, PyObject *list)
{
    const Py_ssize_t n = PyList_Size(list);
    int64_t *offsets = buffer(a, 1, ((size_t)n + 1) * sizeof *offsets);
    for (Py_ssize_t i = 0; offsets && i < n; i++) {
        Py_ssize_t bytes;
        if (!PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), &bytes))
            return NULL;
        offsets[i + 1] = offsets[i] + bytes;
    }
    char *data = offsets ? buffer(a, 2, (size_t)offsets[n]) : NULL;
    for (Py_ssize_t i = 0; data && i < n; i++) {
        const char *text = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);
        if (!text)
            return NULL;
        memcpy(data + offsets[i], text, (size_t)(offsets[i + 1] - offsets[i]));
    }
    return data ? "U" : NULL;
}

/* One column into `a`; its format, or NULL with an exception set. */
static const char *make_column(struct ArrowArray *a, PyObject *column, PyObject *missing,
                               size_t length)
{
    if (PyList_Check(column)) {
        if ((size_t)PyList_Size(column) != length) {
            PyErr_SetString(PyExc_ValueError, "columns differ in length");
            return NULL;
        }
        return make_array(a, length, 3, 0) ? fill_texts(a, column) : NULL;
    }
    Py_buffer view;
    if (PyObject_GetBuffer(column, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0)
        return NULL;
    const char *format = view.format ? view.format : "B";
    const int known = (format[0] == 'l' || format[0] == 'q' || format[0] == 'd') &&
                      view.itemsize == (Py_ssize_t)sizeof(int64_t);
    const char *made = NULL;
    if (!(known || (format[0] == '?' && view.itemsize == 1)))
        PyErr_Format(PyExc_TypeError, "a column of format '%s'", format);
    else if ((size_t)(view.len / view.itemsize) != length)
        PyErr_SetString(PyExc_ValueError, "columns differ in length");
    else if (make_array(a, length, 2, 0))
        made = fill_numbers(a, &view, format, missing);
    PyBuffer_Release(&view);
    return made;
}

/* ------------------------------------------------------------------ capsules */
static void free_schema_capsule(PyObject *capsule)
{
    struct ArrowSchema *s = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (s && s->release)
        s->release(s);
    free(s);
}

static void free_array_capsule(PyObject *capsule)
{
    struct ArrowArray *a = PyCapsule_GetPointer(capsule, "arrow_array");
    if (a && a->release)
        a->release(a);
    free(a);
}

static void free_stream_capsule(PyObject *capsule)
{
    struct ArrowArrayStream *s = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (s && s->release)
        s->release(s);
    free(s);
}

/* table([(name, column, missing), …], length) as a pair of structs. */
static int make_table(PyObject *list, size_t length, struct ArrowSchema *schema,
                      struct ArrowArray *array)
{
    const Py_ssize_t n = PyList_Size(list);
    if (n < 0)
        return 0;
    if (!make_schema(schema, "+s", "", (size_t)n)) {
        PyErr_NoMemory();
        return 0;
    }
    if (!make_array(array, length, 1, (size_t)n)) {
        schema->release(schema);
        return 0;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        const char *name, *format = NULL;
        PyObject *column, *missing;
        if (PyArg_ParseTuple(PyList_GetItem(list, i), "sOO", &name, &column, &missing))
            format = make_column(array->children[i], column, missing, length);
        if (format && !make_schema(schema->children[i], format, name, 0)) {
            PyErr_NoMemory();
            format = NULL;
        }
        if (!format) {
            schema->release(schema);
            array->release(array);
            return 0;
        }
    }
    return 1;
}

static PyObject *arrow_table(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *list;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "O!n", &PyList_Type, &list, &length))
        return NULL;
    struct ArrowSchema *schema = calloc(1, sizeof *schema);
    struct ArrowArray *array = calloc(1, sizeof *array);
    if (!schema || !array || !make_table(list, (size_t)length, schema, array)) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        free(schema);
        free(array);
        return NULL;
    }
    PyObject *first = PyCapsule_New(schema, "arrow_schema", free_schema_capsule);
    PyObject *second = PyCapsule_New(array, "arrow_array", free_array_capsule);
    if (!first) {
        schema->release(schema);
        free(schema);
    }
    if (!second) {
        array->release(array);
        free(array);
    }
    PyObject *pair = first && second ? PyTuple_Pack(2, first, second) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    return pair;
}

/* ------------------------------------------------------------------ a stream of one batch */
typedef struct batch {
    struct ArrowSchema schema;
    struct ArrowArray array; /* release NULL: handed out */
} batch;

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    const struct ArrowSchema *from = &((batch *)stream->private_data)->schema;
    if (!make_schema(out, from->format, from->name, (size_t)from->n_children))
        return ENOMEM;
    for (int64_t i = 0; i < from->n_children; i++)
        if (!make_schema(out->children[i], from->children[i]->format, from->children[i]->name, 0)) {
            out->release(out);
            return ENOMEM;
        }
    return 0;
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    batch *b = stream->private_data;
    *out = b->array;
    b->array.release = NULL;
    return 0;
}

static const char *stream_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void stream_release(struct ArrowArrayStream *stream)
{
    batch *b = stream->private_data;
    b->schema.release(&b->schema);
    if (b->array.release)
        b->array.release(&b->array);
    free(b);
    stream->release = NULL;
}

static PyObject *arrow_stream(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *list;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "O!n", &PyList_Type, &list, &length))
        return NULL;
    struct ArrowArrayStream *stream = calloc(1, sizeof *stream);
    batch *b = calloc(1, sizeof *b);
    if (!stream || !b || !make_table(list, (size_t)length, &b->schema, &b->array)) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        free(stream);
        free(b);
        return NULL;
    }
    *stream = (struct ArrowArrayStream){.get_schema = stream_schema,
                                        .get_next = stream_next,
                                        .get_last_error = stream_error,
                                        .release = stream_release,
                                        .private_data = b};
    PyObject *capsule = PyCapsule_New(stream, "arrow_array_stream", free_stream_capsule);
    if (!capsule) {
        stream->release(stream);
        free(stream);
    }
    return capsule;
}

static PyMethodDef functions[] = {{"arrow_table", arrow_table, METH_VARARGS, NULL},
                                  {"arrow_stream", arrow_stream, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

int sn_py_add_arrow(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
