/* SPDX-License-Identifier: Apache-2.0 */
/* What services ask for: metrics as text, spans to a collector, and how the recorder is doing. All
 * of the default context. */
#include "binding.h"

#include "sonde/experimental/metrics.h"
#include "sonde/experimental/otlp.h"
#include "sonde/experimental/recording.h"

static PyObject *metrics_start(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    sonde_error err;
    sonde_status st;
    Py_BEGIN_ALLOW_THREADS st = sonde_metrics_start(NULL, &err);
    Py_END_ALLOW_THREADS if (st != SONDE_OK) return sn_py_raise(&err);
    Py_RETURN_NONE;
}

/* metrics_text(openmetrics: bool) -> bytes */
static PyObject *metrics_text(PyObject *module, PyObject *args)
{
    (void)module;
    sonde_metrics_options o = SONDE_INIT(sonde_metrics_options);
    sn_py_pile out = {.n = 0};
    sonde_error err;
    sonde_status st;
    if (!PyArg_ParseTuple(args, "p", &o.openmetrics))
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = sonde_metrics_write(NULL, &o, sn_py_pile_add, &out, &err);
    Py_END_ALLOW_THREADS return sn_py_pile_finish(&out, 0, st, &err);
}

static PyObject *environment_finish(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    Py_BEGIN_ALLOW_THREADS sonde_environment_finish();
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *recorder_info(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    sonde_recorder_info info = SONDE_INIT(sonde_recorder_info);
    sonde_error err;
    if (sonde_recorder_info_get(NULL, &info, &err))
        return sn_py_raise(&err);
    return Py_BuildValue(
        "{s:K,s:K,s:K,s:K,s:K,s:K,s:d}", "capacity", (unsigned long long)info.capacity, "room",
        (unsigned long long)info.room, "held", (unsigned long long)info.held, "dropped",
        (unsigned long long)info.dropped, "sampled", (unsigned long long)info.sampled, "skipped",
        (unsigned long long)info.skipped, "overhead", info.overhead);
}

/* otlp_send(profile, endpoint, headers, service_name, attributes, timeout_ms, max_wait_ms,
 * max_bytes, categories). The caller holds the profile. */
static PyObject *otlp_send(PyObject *module, PyObject *args)
{
    (void)module;
    sonde_otlp_options o = SONDE_INIT(sonde_otlp_options);
    sonde_otlp_result r = SONDE_INIT(sonde_otlp_result);
    sonde_error err;
    sonde_status st;
    PyObject *object;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "Ozzzziinz", &object, &o.endpoint, &o.headers, &o.service_name,
                          &o.attributes, &o.timeout_ms, &o.max_wait_ms, &bytes, &o.categories))
        return NULL;
    const sonde_profile *profile = sn_py_profile(object);
    if (!profile)
        return NULL;
    o.max_bytes = bytes > 0 ? (size_t)bytes : 0;
    Py_BEGIN_ALLOW_THREADS st = sonde_otlp_send(profile, &o, &r, &err);
    Py_END_ALLOW_THREADS if (st != SONDE_OK) return sn_py_raise(&err);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:N}", "spans", (unsigned long long)r.spans, "rejected",
                         (unsigned long long)r.rejected, "requests", (unsigned long long)r.requests,
                         "retries", (unsigned long long)r.retries, "message",
                         sn_py_text(r.message));
}

static PyMethodDef functions[] = {{"metrics_start", metrics_start, METH_NOARGS, NULL},
                                  {"metrics_text", metrics_text, METH_VARARGS, NULL},
                                  {"environment_finish", environment_finish, METH_NOARGS, NULL},
                                  {"recorder_info", recorder_info, METH_NOARGS, NULL},
                                  {"otlp_send", otlp_send, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

int sn_py_add_telemetry(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
