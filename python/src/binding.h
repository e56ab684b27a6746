/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the Python extension share. The extension is written against CPython's stable
 * ABI (3.11) and include/sonde alone; numpy is called, never linked, so that one binary serves
 * every Python and every numpy.
 *
 * Conventions are CPython's: a function that returns PyObject * or int fails with NULL or -1 and an
 * exception set. Everything here needs the interpreter's lock unless it says otherwise. */
#ifndef SN_PY_BINDING_H
#define SN_PY_BINDING_H

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "sonde/sonde.h"

/* The one instance of this module: like numpy it lives once in a process. */
typedef struct sn_py_state {
    PyObject *ndarray;                   /* numpy.ndarray */
    PyObject *dtypes[SONDE_DTYPE_COUNT]; /* numpy's types, found at first use */
    PyObject *convert;                   /* the module sonde._convert: all that need not be fast */
    PyObject *errors;                    /* the module sonde._errors */
    PyTypeObject *value_type, *session_type, *run_options_type, *profile_type, *fleet_type;
} sn_py_state;
extern sn_py_state sn_py;

/* Slots of types hold functions in object pointers, which ISO C allows by way of an integer only.
 */
#define SN_PY_SLOT(id, function)                                                                   \
    {                                                                                              \
        id, (void *)(uintptr_t)(function)                                                          \
    }
/* A method that takes keywords, or its arguments as an array. */
#define SN_PY_CALL(function) ((PyCFunction)(void (*)(void))(function))

/* ---- warnings.c ---- */
void sn_py_watch_warnings(void); /* once, from the module's init */
/* Issues what the library has warned of since, as RuntimeWarning at that stack level; -1: one
 * became an error, which is set. */
int sn_py_warn(int stack_level);

/* ---- errors.c ---- */
/* Raises the class of sonde._errors that stands for the status. Returns NULL. */
PyObject *sn_py_raise(const sonde_error *err);
/* The same with words of our own. */
PyObject *sn_py_raise_text(const char *class_name, const char *fmt, ...);

/* ---- value.c: OrtValue ---- */
typedef struct sn_py_value {
    PyObject ob_base;
    sonde_value *value;
    PyObject *keep; /* whose memory the value borrows; NULL: it has its own */
    Py_buffer view; /* of `keep`, when view.obj is set */
    int read_only;
} sn_py_value;
int sn_py_add_value_type(PyObject *module);
/* Takes over the reference to `value`, also on failure. */
PyObject *sn_py_wrap_value(sonde_value *value);
int sn_py_is_value(PyObject *object);

/* ---- input.c ---- */
/* A feed during a call: the value, and the buffer it borrows. */
typedef struct sn_py_feed {
    sonde_value *value;
    Py_buffer view;  /* held while view.obj is set */
    PyObject *owner; /* an OrtValue that must live as long; NULL */
} sn_py_feed;
/* What an input takes, as far as it is known. */
typedef struct sn_py_port {
    PyObject *name;       /* str, interned */
    const char *utf8;     /* the same */
    sonde_type_info info; /* owned by the session */
    PyObject *type;       /* str: "tensor(float)" */
} sn_py_port;
/* Anything that can be fed: an array or other buffer, an OrtValue, what sonde._convert understands.
 * `port` NULL: nothing is known about the input. */
int sn_py_feed_make(sn_py_feed *f, PyObject *object, const sn_py_port *port);
void sn_py_feed_clear(sn_py_feed *f);
/* Operators check indices and sizes before they use them, and another thread may write to an array
 * in between. So a run gets its own copy of an array of them; OrtValues stay where they are. */
int sn_py_feed_own_integers(sn_py_feed *f, PyObject *object);

/* ---- output.c ---- */
/* The value as Python people expect it: ndarray, list, dict, None. Arrays share its memory. */
PyObject *sn_py_value_to_python(PyObject *value);
/* The same for a fresh result; takes over the reference, also on failure. */
PyObject *sn_py_result(sonde_value *value);
PyObject *sn_py_shape(const sonde_value *value); /* tuple */
PyObject *sn_py_numpy_dtype(sonde_dtype dtype);  /* borrowed */

/* ---- dlpack.c ---- */
PyObject *sn_py_to_dlpack(PyObject *value, PyObject *args, PyObject *kwargs);
PyObject *sn_py_from_dlpack(PyObject *type, PyObject *object);

/* ---- options.c: RunOptions ---- */
int sn_py_add_run_options_type(PyObject *module);
typedef struct sn_py_settings {
    sonde_run_options options;
    int only_path;   /* compute nothing but what the requested outputs need */
    PyObject *texts; /* the attributes that texts of the options point into; may be NULL */
} sn_py_settings;
/* From None or a RunOptions, which must live as long. Drop `texts` afterwards. */
int sn_py_run_settings(PyObject *object, sn_py_settings *settings);

/* ---- session.c ---- */
typedef struct sn_py_session {
    PyObject ob_base;
    sonde_model *model;
    sonde_session *session; /* NULL: closed */
    sn_py_port *inputs;
    sn_py_port *outputs;
    size_t n_inputs, n_required, n_outputs;
    int running; /* calls under way; closing waits for the last of them */
    int closing;
} sn_py_session;
int sn_py_add_session_type(PyObject *module);
/* Around every use of self->session. Entering a closed one raises. */
int sn_py_session_enter(sn_py_session *self);
void sn_py_session_leave(sn_py_session *self);

/* ---- interrupt.c: Ctrl-C while a run goes on ---- */
/* Lets go of the interpreter's lock, as Py_BEGIN_ALLOW_THREADS does, for a run with these options:
 * on the main thread Python's signal handlers are called meanwhile, and an exception of theirs ends
 * the run. */
typedef struct sn_py_unlocked {
    PyThreadState *state;
} sn_py_unlocked;
void sn_py_unlock(sn_py_unlocked *u, sonde_run_options *options);
/* Takes the lock again and raises what went wrong: -1, or 0. */
int sn_py_lock(sn_py_unlocked *u, sonde_status status, const sonde_error *err);

/* ---- run.c ---- */
PyObject *sn_py_session_run(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *sn_py_session_run_recorded(PyObject *self, PyObject *args);
PyObject *sn_py_session_run_values(PyObject *self, PyObject *args);
PyObject *sn_py_session_partial_run(PyObject *self, PyObject *args);

/* ---- inspect.c ---- */
PyObject *sn_py_session_inspect(PyObject *self, PyObject *none);

/* ---- profile.c, columns.c: what was recorded ---- */
int sn_py_add_profile_type(PyObject *module);
/* What the library writes piece by piece; adding needs no lock. */
typedef struct sn_py_pile {
    char *data;
    size_t n, cap;
    int failed;
} sn_py_pile;
void sn_py_pile_add(void *pile, const char *data, size_t size);
/* The pile as str or bytes, or the error; frees it. */
PyObject *sn_py_pile_finish(sn_py_pile *p, int text, sonde_status st, const sonde_error *err);
/* NULL and an exception: not a profile. Lives as long as the object. */
const sonde_profile *sn_py_profile(PyObject *object);
/* Takes over the profile, also on failure. */
PyObject *sn_py_wrap_profile(sonde_profile *profile);
/* A row of a comparison. */
struct sonde_change;
PyObject *sn_py_change_dict(const struct sonde_change *c);
/* {name: list of str, or bytearray of int64}, an item for each span. */
PyObject *sn_py_span_columns(const sonde_profile *profile);

/* ---- files with types or functions of their own ---- */
int sn_py_add_profiler(PyObject *module);
int sn_py_add_op_profiler(PyObject *module);
int sn_py_add_accuracy(PyObject *module);
int sn_py_add_sparsify(PyObject *module);
int sn_py_add_quantize(PyObject *module);
int sn_py_add_whatif(PyObject *module);
int sn_py_add_telemetry(PyObject *module);
int sn_py_add_history(PyObject *module);
int sn_py_add_fleet(PyObject *module);
/* The figures of a profile's workers. */
PyObject *sn_py_profile_fleet(const sonde_profile *profile);
int sn_py_add_arrow(PyObject *module);

/* ---- words.c: functions of the module that need no object ---- */
extern PyMethodDef sn_py_functions[];
/* Names and other texts of a model are any bytes without NUL; each of these makes a str of them.
 * For tables: what is no UTF-8 becomes U+FFFD, as in every exported file. */
PyObject *sn_py_text(const char *text);
/* For people to read: it is shown as \xNN. */
PyObject *sn_py_shown(const char *text);
/* A name by which something is asked for: it becomes lone surrogates, of which sn_py_name_bytes
 * makes the same bytes again. */
PyObject *sn_py_name(const char *text);
/* The bytes of a name that somebody asks for; *hold receives a new reference to their owner. NULL:
 * an exception, also for a name with a zero byte, which would be cut there. */
const char *sn_py_name_bytes(PyObject *name, PyObject **hold);

#endif
