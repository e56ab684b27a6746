/* SPDX-License-Identifier: Apache-2.0 */
/* Options that several verbs take: the structs they fill, and a macro for each that names its group
 * in a verb's list: MODEL_OPTIONS(run_options, setup.model). */
#ifndef SONDE_TOOL_OPTION_GROUPS_H
#define SONDE_TOOL_OPTION_GROUPS_H

#include "options.h"
#include "sonde/experimental/save.h"
#include "sonde/sonde.h"

/* ---- options_model.c: how the model runs ---- */
typedef struct model_options {
    int64_t threads;
    int64_t max_memory; /* bytes; 0 = no limit */
    const char *cpu, *device, *precision;
    const char *numa;                 /* "auto", "off" or nodes; NULL: SONDE_NUMA */
    const char *weights_cache, *tune; /* folders, "" = the user's */
    bool no_optimize, no_mmap, no_prepack, flush_denormals;
    list disabled_passes;
} model_options;
extern const option_row model_option_rows[];
/* What --precision says; NULL: the file's own. False: not a precision. */
bool precision_of(const char *said, sonde_precision *precision);
const char *precision_name(const model_options *m); /* "file" when nothing was said */
int model_options_check(void *values);
#define MODEL_OPTIONS(type, field)                                                                 \
    {                                                                                              \
        "Execution", model_option_rows, offsetof(type, field), model_options_check                 \
    }

/* ---- options_inputs.c: on what ---- */
typedef struct input_options {
    list inputs, sizes, ranges;
    int64_t seed, batch_size, seq_len; /* sizes: 0 = not given */
    int64_t image_resize;
    const char *image_layout, *image_mean, *image_std, *image_scale;
    bool image_bgr, image_raw;
    bool samples;       /* axis 0 of arrays carries samples */
    bool one_of_many;   /* a file that cannot be read is skipped with a warning: FEEDS_UNREADABLE */
    bool skip_silently; /* the warning was given before */
} input_options;
extern const option_row input_option_rows[];
#define INPUT_OPTIONS(type, field)                                                                 \
    {                                                                                              \
        "Inputs", input_option_rows, offsetof(type, field), NULL                                   \
    }

/* ---- options_measuring.c: how often ---- */
typedef struct measuring_options {
    int64_t iterations, warmup; /* -1: not given */
    double duration_s;          /* -1: not given */
    int64_t instances;          /* -1: not given */
} measuring_options;
#define MEASURING_DEFAULTS                                                                         \
    {                                                                                              \
        .iterations = -1, .warmup = -1, .duration_s = -1, .instances = -1                          \
    }
extern const option_row measuring_option_rows[];
int measuring_options_check(void *values);
#define MEASURING_OPTIONS(type, field)                                                             \
    {                                                                                              \
        "Measuring", measuring_option_rows, offsetof(type, field), measuring_options_check         \
    }
/* What --duration says, or 2 s. */
double duration_ms(const measuring_options *m);

/* ---- options_table.c: what to show of a profile ---- */
typedef struct table_options {
    list outputs; /* -o */
    const char *json;
    const char *sort, *filter_op;
    list reports;
    bool by_shape, by_node, wide;
    const char *categories;   /* "operator,user" */
    const char *sparse_ratio; /* "90=4,80=2.5,70=2" */
    double sparse_aim;
    int64_t trace_limit; /* bytes; 0: not given, -1: none */
    bool folded_nodes;
    const char
        *otlp; /* address of a collector, "" = as the environment says; NULL: nothing is sent */
    sonde_export_options export_options; /* made of those above */
} table_options;
extern const option_row table_option_rows[];
int table_options_check(void *values);
#define TABLE_OPTIONS(type, field)                                                                 \
    {                                                                                              \
        "Output", table_option_rows, offsetof(type, field), table_options_check                    \
    }

/* ---- options_saving.c: how models are saved ---- */
typedef struct saving_options {
    const char *external_data; /* "" = under the usual name */
    int64_t inline_limit;      /* bytes; 0 = not given */
} saving_options;
extern const option_row saving_option_rows[];
sonde_save_options save_options(const saving_options *o);
/* Options that have no effect because nothing is saved are refused: `how` says what would be saved.
 * Returns as options_parse does. */
int saving_check(const saving_options *o, bool saves, const char *how);
#define SAVING_OPTIONS(type, field)                                                                \
    {                                                                                              \
        "Saving", saving_option_rows, offsetof(type, field), NULL                                  \
    }

/* ---- options_keep.c: results that go into the history ---- */
typedef struct keep_options {
    const char *save; /* "": the usual database; NULL: not given */
    const char *note, *commit;
} keep_options;
extern const option_row keep_option_rows[];
int keep_options_check(void *values);
#define KEEP_OPTIONS(type, field)                                                                  \
    {                                                                                              \
        "History", keep_option_rows, offsetof(type, field), keep_options_check                     \
    }

/* ---- what a model is made ready and run with: begins the struct of verbs that do so ---- */
typedef struct run_setup {
    common_options common;
    model_options model;
    input_options inputs;
    measuring_options measuring;
    bool counters;
    bool hashes;      /* bench: the history wants to know the model's content */
    bool others;      /* bench: runtimes that may need less memory are measured, too */
    int record_level; /* not 0: recording starts before the model is loaded */
    list labels;      /* of what is recorded: "host=a" */
} run_setup;
#define SETUP_DEFAULTS                                                                             \
    {                                                                                              \
        .measuring = MEASURING_DEFAULTS                                                            \
    }

/* ---- single rows, with a field of the verb's struct ---- */
#define OUTPUT_ROW(type, field)                                                                    \
    {                                                                                              \
        'o', "output", OPT_FILES, offsetof(type, field), "FILE",                                   \
            "save to FILE in the format of its suffix; may be repeated"                            \
    }
#define JSON_ROW(type, field)                                                                      \
    {                                                                                              \
        0, "json", OPT_FILE, offsetof(type, field), "FILE",                                        \
            "write a summary as JSON; '-' is standard output"                                      \
    }
#define PROFILES_MEMORY_ROW(type, field)                                                           \
    {                                                                                              \
        0, "max-memory", OPT_SIZE, offsetof(type, field), "BYTES",                                 \
            "fail instead of using more memory than this, for example 500M or 2G (no limit)"       \
    }

typedef struct tolerances {
    double rtol, atol;
} tolerances;
#define TOLERANCES_DEFAULTS                                                                        \
    {                                                                                              \
        .rtol = 1e-3, .atol = 1e-7                                                                 \
    }
#define RTOL_ROW(type, field)                                                                      \
    {                                                                                              \
        0, "rtol", OPT_REAL, offsetof(type, field.rtol), "X",                                      \
            "relative tolerance of comparisons (default: 1e-3)"                                    \
    }
#define ATOL_ROW(type, field)                                                                      \
    {                                                                                              \
        0, "atol", OPT_REAL, offsetof(type, field.atol), "X",                                      \
            "absolute tolerance of comparisons (default: 1e-7)"                                    \
    }

/* How the values that a run gave are printed. */
typedef struct value_options {
    int64_t top;
    const char *labels;
    list lines;       /* of that file, after labels_open */
    char *lines_text; /* which they point into */
    bool print;       /* every element */
} value_options;
#define TOP_ROW(type, field)                                                                       \
    {                                                                                              \
        0, "top", OPT_INT, offsetof(type, field.top), "K",                                         \
            "show the K largest scores of each output"                                             \
    }
#define LABELS_ROW(type, field)                                                                    \
    {                                                                                              \
        0, "labels", OPT_TEXT, offsetof(type, field.labels), "FILE",                               \
            "labels for --top, one per line"                                                       \
    }
#define PROFILE_ROW(type, field)                                                                   \
    {                                                                                              \
        'p', "profile", OPT_COUNT, offsetof(type, field), NULL,                                    \
            "print the timing table; given twice, split by shape"                                  \
    }
#define SEED_ROW(type, field)                                                                      \
    {                                                                                              \
        0, "seed", OPT_INT, offsetof(type, field), "N",                                            \
            "seed of random inputs and built-in weights (default: 0)"                              \
    }

/* ---- options_help.c: ends of --help ---- */
void help_passes(void);  /* of verbs with MODEL_OPTIONS */
void help_formats(void); /* of verbs with TABLE_OPTIONS */

#endif
