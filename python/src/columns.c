/* SPDX-License-Identifier: Apache-2.0 */
/* The spans of a profile as columns. Numbers are written into one bytearray per column, which numpy
 * then reads in place. Texts become str objects: those that many spans share are made once. */
#include "binding.h"

#include <stddef.h>
#include <string.h>

#include "sonde/experimental/profile.h"

/* X(name, field): texts, then numbers (int64). The order is that of the columns. */
#define TEXTS(X)                                                                                   \
    X("trace_id", trace_id)                                                                        \
    X("span_id", span_id)                                                                          \
    X("parent_span_id", parent_span_id)                                                            \
    X("name", name)                                                                                \
    X("cat", category)                                                                             \
    X("text", text)                                                                                \
    X("thread.name", thread_name)                                                                  \
    X("node", node)                                                                                \
    X("op_type", op_type)                                                                          \
    X("post_op", post_op)                                                                          \
    X("kernel", kernel)                                                                            \
    X("arithmetic", arithmetic)                                                                    \
    X("input_shapes", input_shapes)                                                                \
    X("input_types", input_types)                                                                  \
    X("output_shapes", output_shapes)                                                              \
    X("output_types", output_types)
#define NUMBERS(X)                                                                                 \
    X("thread.id", thread_id)                                                                      \
    X("start", start_ns)                                                                           \
    X("end", end_ns)                                                                               \
    X("iteration", iteration)                                                                      \
    X("instance", instance)                                                                        \
    X("pe_index", pe_index)                                                                        \
    X("execution_index", execution_index)                                                          \
    X("operator_index", operator_index)                                                            \
    X("flops", flops)                                                                              \
    X("bytes", bytes)                                                                              \
    X("warm_up", warmup)

#define COUNT(name, field) +1
enum { N_TEXTS = 0 TEXTS(COUNT), N_NUMBERS = 0 NUMBERS(COUNT), IDS = 3, KEPT = 512 };
#define NAME(name, field) name,
static const char *const text_names[] = {TEXTS(NAME)};
static const char *const number_names[] = {NUMBERS(NAME)};

/* Texts of the library live as long as the spans: an address stands for its text. */
typedef struct kept_texts {
    const char *text[KEPT];
    PyObject *object[KEPT];
} kept_texts;

static PyObject *shared_text(kept_texts *kept, const char *text)
{
    const size_t at = ((uintptr_t)text >> 3) % KEPT;
    if (kept->text[at] != text) {
        PyObject *made = sn_py_text(text);
        if (!made)
            return NULL;
        Py_XDECREF(kept->object[at]);
        kept->object[at] = made;
        kept->text[at] = text;
    }
    Py_INCREF(kept->object[at]);
    return kept->object[at];
}

typedef struct columns {
    PyObject *texts[N_TEXTS];     /* lists of str */
    PyObject *numbers[N_NUMBERS]; /* bytearrays of int64 */
    kept_texts kept;
    char last_trace[33];
    PyObject *last_trace_object;
} columns;

/* Spans of one inference mostly follow each other. */
static PyObject *trace_text(columns *c, const char *id)
{
    if (!c->last_trace_object || strcmp(c->last_trace, id) != 0) {
        Py_XDECREF(c->last_trace_object);
        c->last_trace_object = sn_py_text(id);
        memcpy(c->last_trace, id, sizeof c->last_trace);
    }
    Py_XINCREF(c->last_trace_object);
    return c->last_trace_object;
}

static int add_span(columns *c, size_t at, const sonde_profile_span *s)
{
#define FIELD(name, field) s->field,
    const char *const texts[] = {TEXTS(FIELD)};
#define NUMBER(name, field) (int64_t) s->field,
    const int64_t numbers[] = {NUMBERS(NUMBER)};
    for (size_t k = 0; k < N_TEXTS; k++) {
        PyObject *text = k == 0    ? trace_text(c, texts[k])
                         : k < IDS ? sn_py_text(texts[k])
                                   : shared_text(&c->kept, texts[k]);
        if (!text || PyList_SetItem(c->texts[k], (Py_ssize_t)at, text) < 0)
            return -1;
    }
    for (size_t k = 0; k < N_NUMBERS; k++)
        memcpy(PyByteArray_AsString(c->numbers[k]) + at * sizeof(int64_t), &numbers[k],
               sizeof(int64_t));
    return 0;
}

static int make_columns(columns *c, size_t n)
{
    for (size_t k = 0; k < N_TEXTS; k++)
        if (!(c->texts[k] = PyList_New((Py_ssize_t)n)))
            return -1;
    for (size_t k = 0; k < N_NUMBERS; k++)
        if (!(c->numbers[k] =
                  PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(n * sizeof(int64_t)))))
            return -1;
    return 0;
}

static PyObject *as_dict(const columns *c)
{
    PyObject *dict = PyDict_New();
    for (size_t k = 0; dict && k < N_TEXTS; k++)
        if (PyDict_SetItemString(dict, text_names[k], c->texts[k]) < 0)
            Py_CLEAR(dict);
    for (size_t k = 0; dict && k < N_NUMBERS; k++)
        if (PyDict_SetItemString(dict, number_names[k], c->numbers[k]) < 0)
            Py_CLEAR(dict);
    return dict;
}

static void clear_columns(columns *c)
{
    for (size_t k = 0; k < N_TEXTS; k++)
        Py_XDECREF(c->texts[k]);
    for (size_t k = 0; k < N_NUMBERS; k++)
        Py_XDECREF(c->numbers[k]);
    for (size_t k = 0; k < KEPT; k++)
        Py_XDECREF(c->kept.object[k]);
    Py_XDECREF(c->last_trace_object);
    PyMem_Free(c);
}

PyObject *sn_py_span_columns(const sonde_profile *profile)
{
    sonde_profile_spans *spans = NULL;
    sonde_error err;
    sonde_status st;
    Py_BEGIN_ALLOW_THREADS st = sonde_profile_spans_get(profile, &spans, &err);
    Py_END_ALLOW_THREADS if (st != SONDE_OK) return sn_py_raise(&err);
    columns *c = PyMem_Calloc(1, sizeof *c);
    if (!c) {
        sonde_profile_spans_release(spans);
        return PyErr_NoMemory();
    }
    const size_t n = sonde_profile_spans_count(spans);
    int fine = make_columns(c, n) == 0;
    for (size_t i = 0; fine && i < n; i++) {
        sonde_profile_span span = SONDE_INIT(sonde_profile_span);
        if (sonde_profile_spans_span(spans, i, &span, &err) != SONDE_OK) {
            sn_py_raise(&err);
            fine = 0;
        } else {
            fine = add_span(c, i, &span) == 0;
        }
    }
    PyObject *dict = fine ? as_dict(c) : NULL;
    clear_columns(c);
    sonde_profile_spans_release(spans);
    return dict;
}
