/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's model consists of. */
#include "binding.h"

#include "sonde/experimental/inspect.h"

static PyObject *operators(const sonde_inspection *look)
{
    PyObject *list = PyList_New(0);
    uint64_t count;
    const char *name;
    for (size_t i = 0; list && (name = sonde_inspection_operator(look, i, &count)); i++) {
        PyObject *row = Py_BuildValue("(NK)", sn_py_text(name), (unsigned long long)count);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *opsets(const sonde_inspection *look)
{
    PyObject *list = PyList_New(0);
    int64_t version;
    const char *domain;
    for (size_t i = 0; list && (domain = sonde_inspection_opset(look, i, &version)); i++) {
        PyObject *row = Py_BuildValue("(NL)", sn_py_text(domain), (long long)version);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

PyObject *sn_py_session_inspect(PyObject *self, PyObject *none)
{
    (void)none;
    sn_py_session *s = (sn_py_session *)self;
    if (sn_py_session_enter(s) < 0)
        return NULL;
    sonde_inspection *look = NULL;
    sonde_inspection_totals totals = SONDE_INIT(sonde_inspection_totals);
    sonde_error err;
    sonde_status st;
    Py_BEGIN_ALLOW_THREADS st = sonde_inspect_model(s->model, &look, &err);
    if (st == SONDE_OK)
        st = sonde_inspection_totals_get(look, &totals, &err);
    Py_END_ALLOW_THREADS PyObject *made =
        st != SONDE_OK ? sn_py_raise(&err)
                       : Py_BuildValue("{s:N,s:K,s:K,s:K,s:N,s:N}", "name",
                                       sn_py_text(sonde_model_name(s->model)), "nodes",
                                       (unsigned long long)totals.nodes, "parameters",
                                       (unsigned long long)totals.parameters, "parameter_bytes",
                                       (unsigned long long)totals.parameter_bytes, "operators",
                                       operators(look), "opsets", opsets(look));
    sonde_inspection_release(look);
    sn_py_session_leave(s);
    return made;
}
