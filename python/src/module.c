/* SPDX-License-Identifier: Apache-2.0 */
/* The extension module sonde._sonde: its types and functions, and what it knows of numpy. Users
 * see what the package sonde makes of it. */
#include "binding.h"

sn_py_state sn_py;

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "sonde._sonde",
    .m_doc = "libsonde for Python; use the package sonde.",
    .m_size = -1,
    .m_methods = sn_py_functions,
};

static int find_modules(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (!numpy)
        return -1;
    sn_py.ndarray = PyObject_GetAttrString(numpy, "ndarray");
    Py_DECREF(numpy);
    sn_py.errors = PyImport_ImportModule("sonde._errors");
    return sn_py.ndarray && sn_py.errors ? 0 : -1;
}

PyMODINIT_FUNC PyInit__sonde(void);

PyMODINIT_FUNC PyInit__sonde(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module)
        return NULL;
    if (find_modules() < 0 || sn_py_add_value_type(module) < 0 ||
        sn_py_add_run_options_type(module) < 0 || sn_py_add_profile_type(module) < 0 ||
        sn_py_add_profiler(module) < 0 || sn_py_add_op_profiler(module) < 0 ||
        sn_py_add_arrow(module) < 0 || sn_py_add_session_type(module) < 0 ||
        sn_py_add_accuracy(module) < 0 || sn_py_add_sparsify(module) < 0 ||
        sn_py_add_quantize(module) < 0 || sn_py_add_whatif(module) < 0 ||
        sn_py_add_telemetry(module) < 0 || sn_py_add_history(module) < 0 ||
        sn_py_add_fleet(module) < 0 ||
        PyModule_AddStringConstant(module, "version", sonde_version()) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    sn_py_watch_warnings();
    return module;
}
