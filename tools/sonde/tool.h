/* SPDX-License-Identifier: Apache-2.0 */
/* What all verbs share: exit codes, the options people type, models, inputs and printing. The
 * program uses nothing but the installed headers. */
#ifndef SONDE_TOOL_H
#define SONDE_TOOL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "option_groups.h"
#include "options.h"
#include "sonde/experimental/tensor_file.h"
#include "sonde/sonde.h"

enum {
    EXIT_OK = 0,
    EXIT_ERROR = 1,
    EXIT_USAGE = 2,
    EXIT_MISMATCH = 3,
    EXIT_SIGNAL = 128 /* plus its number: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP */
};

/* ---- messages.c ---- */
/* One line on stderr: "sonde: …". Returns EXIT_ERROR, or EXIT_USAGE, to be returned on. */
int fail(const char *fmt, ...) SONDE_PRINTF(1, 2);
int fail_usage(const char *fmt, ...) SONDE_PRINTF(1, 2);
void warn(const char *fmt, ...) SONDE_PRINTF(1, 2);

/* ---- files.c ---- */
bool is_folder(const char *path);
bool is_zoo(const char *model); /* "zoo:NAME", not a path */
bool is_file(const char *path);
/* For files that are not models: someone who writes one meanwhile must not end the program. */
extern const sonde_load_options unmapped;
/* A usage error if two of these files that are to be written are the same, or one of them is among
 * those that are read, or in a folder that is; else -1. */
int check_outputs(const list *written, const list *read);
/* Text to a file, or to stdout for "-". */
int write_text(const char *path, const char *text, size_t bytes);
/* Before anything is done: whether a file can be written there, or a folder made where the path
 * ends in "/". What cannot be known, a full disk for one, is an error of the writing. Returns as
 * options_parse does. */
int output_check(const char *path);

/* ---- text.c ---- */
void *need(void *memory); /* exits when it is NULL: a program may, a library may not */
void *grow(void *memory, size_t n, size_t bytes);       /* room for element n; doubles */
char *text_of(const char *fmt, ...) SONDE_PRINTF(1, 2); /* from malloc */
char *text_of_args(const char *fmt, va_list args) SONDE_PRINTF(1, 0);
/* A copy without control characters, marks of direction and bytes that are no text: names come from
 * models and would write elsewhere on a terminal. */
char *printable(const char *text);
bool ends_with(const char *text, const char *suffix);
/* In any case, as formats are chosen. */
bool has_suffix(const char *path, const char *suffix);
/* 1234567 ► "1,234,567" and 22020096 ► "21.0 MiB", in one of a few static buffers. */
const char *grouped(uint64_t n);
const char *bytes_text(uint64_t n);
/* The candidate closest to `word`, or NULL when none is near; candidates end with NULL. */
const char *closest(const char *word, const char *const *candidates);
/* A growing text. */
typedef struct text {
    char *data;
    size_t n, cap;
} text;
void text_add(text *t, const char *fmt, ...) SONDE_PRINTF(2, 3);
/* How many bytes the first character of s takes; 0: it may not be shown as it is, because it is no
 * UTF-8 or moves what is around it. */
size_t shown_bytes(const char *s);
void text_add_shape(text *t, const int64_t *dims, size_t rank); /* "[1, 3]" */
void text_json(text *t, const char *s); /* quoted and escaped; valid whatever the bytes are */
void text_free(text *t);

/* ---- instances.c ---- */
double now_ms(void); /* of a clock that is never set back */

/* ---- columns.c ---- */
/* Columns of the terminal; 0 where the output goes elsewhere and COLUMNS is not set. */
int terminal_width(void);
/* Bytes of the character at `s`, 0 when there is none of UTF-8; *code receives it. */
size_t utf8_next(const char *s, uint32_t *code);
int display_width(const char *s);
/* The name, printable, in exactly `width` columns: with spaces behind it, or without its middle.
 * From malloc. */
char *cell(const char *s, int width);
/* How wide a column is whose longest cell has `longest` columns, where the rest of the line takes
 * `others`. */
int column_width(int longest, int others);

/* ---- main.c ---- */
typedef struct command {
    const char *name, *arguments, *summary;
    int (*run)(int argc, char **argv);
} command;
extern const command commands[]; /* ended by a row without a name */

/* ---- load.c ---- */
typedef struct loaded {
    sonde_context *context;
    sonde_model *model;
    sonde_session *session;   /* the first of: */
    sonde_session **sessions; /* one for every instance, cores divided among them */
    size_t n_sessions;
    list sizes; /* "name=number" of -s */
    double load_ms, prepare_ms;
} loaded;
typedef enum load_for {
    LOAD_TO_RUN,
    LOAD_TO_PLAN,       /* what a run would do and need, without packing any weights */
    LOAD_TO_KNOW_PORTS, /* what goes in and out: weights are not even looked at */
    LOAD_MODEL          /* no session at all */
} load_for;
/* Makes the context, loads MODEL (a path or zoo:NAME?dim=n&…) and makes a session of it, or as many
 * as --instances says. One that is not to run is a single one, and a model that cannot be run
 * leaves it NULL with a warning that says why. */
int load(loaded *l, const run_setup *s, const char *model, load_for what);
/* Of the sessions that load makes; their texts are those of the options. */
sonde_session_options session_options(const model_options *m);
/* The context's threads, memory and instructions. */
sonde_context_options context_options(const model_options *m);
/* How a session runs; texts belong to the options. */
sonde_session_options session_options(const model_options *m);
/* What contexts made with these options warn of is printed; with -v also what they tell. */
void show_warnings(sonde_context_options *c, const common_options *o);
/* For files alone: a context of at most `max_memory` bytes (0: no limit). NULL: after an error that
 * was said. */
sonde_context *reading_context(int64_t max_memory);
/* A saved profile, in a context like that. The note about what it lacks is said. */
int load_profile(const common_options *o, int64_t max_memory, const char *path,
                 sonde_profile **profile);
void unload(loaded *l);

/* ---- feeds.c ---- */
typedef struct feeds {
    const char **names;
    sonde_value **values;
    size_t n;
} feeds;
enum { FEEDS_UNREADABLE = -1 }; /* a file could not be read, of which a warning was given */
/* What to return after a file could not be read: the error is said, or, of one of many, a warning.
 * That memory ran out is no fault of the file. */
int file_unreadable(const input_options *o, sonde_status st, const sonde_error *err);
/* One value for every input that has no default: from files, else made up. FEEDS_UNREADABLE: only
 * with one_of_many. */
int feeds_make(feeds *f, const loaded *l, const run_setup *s);
/* May an array of that shape be this input? Asked before the array is unpacked. */
bool feeds_takes_shape(const sonde_type_info *input, const int64_t *dims, size_t rank);
void feeds_free(feeds *f);
bool is_image(const char *path); /* by its suffix */
/* What --image-* say, apart from size and layout. `image` may point into numbers[6] afterwards. */
int image_numbers(const input_options *o, sonde_image_options *image, float *numbers);
/* How the image `path` becomes input number `index`. `image` may point into numbers[6] afterwards.
 */
int image_plan(const loaded *l, const input_options *o, size_t index, const char *path,
               sonde_image_options *image, float *numbers);

/* ---- memory_check.c ---- */
/* Refuses made-up inputs with which no run fits into memory, before they are made. Whatever else
 * may be wrong is not looked at here. */
int memory_check(const loaded *l, const run_setup *s, const char *model);

/* ---- made_up.c ---- */
/* The shape of an input that nobody gave, info->rank numbers from 0 on. */
void made_up_shape(const loaded *l, const input_options *o, const sonde_type_info *info, bool warns,
                   int64_t *dims);
/* A value for an input that nobody gave; `random` is the state of the numbers. */
int made_up_value(const loaded *l, const run_setup *s, const sonde_type_info *info,
                  uint64_t *random, sonde_value **out);

/* ---- image_folder.c ---- */
/* The images, by name, where the only -i is a folder of them; else none. Free with list_free_texts,
 * also after an error. */
int image_folder(const run_setup *s, list *images);
/* "images that cannot be read and were skipped: 3 of 64"; nothing for none. `all` 0: not known. */
void print_skipped(size_t skipped, size_t all, const char *what);
/* After none of them could be read: what to return. */
int none_readable(size_t all, const char *what, const char *folder);
/* As feeds_make; of a folder of images the first that can be read. */
int feeds_make_one(feeds *f, const loaded *l, const run_setup *s);

/* ---- sizes.c ---- */
/* Whether the first dimension of the model's first input counts samples. */
bool counts_samples(const loaded *l);
/* Every -s must be DIM=N and name a dimension the model has. */
int sizes_check(const loaded *l);
/* No -s, --batch-size or --seq-len may say otherwise than the value that a file gives an input. */
int sizes_fit(const loaded *l, const input_options *o, const sonde_type_info *info,
              const sonde_value *given);
/* The number N for the dim `name` (NULL: none) number `dim` of `input`; false: nobody said. */
bool size_of_dim(const loaded *l, const input_options *o, const char *input, const char *name,
                 int dim, int64_t *size);

/* ---- propose.c ---- */
/* Sizes for the symbolic dimensions that nobody gave, "height=48", with which the model fits, found
 * by trying. None: those that are used fit, or nothing was found. Free with list_free_texts. */
list sizes_that_fit(const loaded *l, const run_setup *s);
char *sizes_as_options(const list *sizes); /* "-s height=48 -s width=48", from malloc */
/* A run failed: the message, and sizes that fit where those that nobody gave may be the reason. */
int fail_with_sizes(const loaded *l, const run_setup *s, const char *message);

/* ---- print.c ---- */
/* "f32[1, 1000]" of an actual value. */
char *value_type_text(const sonde_value *v);
/* Reads the lines of --labels, where it is given, with at most `max_memory` bytes (0: no limit).
 * Returns as options_parse does. */
int labels_open(value_options *o, int64_t max_memory);
void labels_close(value_options *o);
void print_value(const char *name, const sonde_value *v, const value_options *o);
/* The statistics a tensor of numbers has; false for anything else. */
typedef struct summary {
    double min, max, mean;
    uint64_t nans;
} summary;
bool summarize(const sonde_value *v, summary *s);

/* A unit that keeps numbers short: what they are divided by, its name, and the decimals that leave
 * three digits. */
typedef struct shown_unit {
    double divisor;
    const char *name;
    int decimals;
} shown_unit;
/* ns, µs, ms from 1 ms on, s from 10 s on: the same borders as those of the timing table. */
shown_unit unit_of_ms(double ms);
/* "9.13 µs", in one of a few static buffers. */
const char *time_text(double ms);

/* ---- samples.c ---- */
void sort_samples(double *samples, size_t n); /* the smallest first */
/* p from 0 to 1; linear interpolation between the samples around it, of which there is at least
 * one.
 */
double percentile(const double *sorted, size_t n, double p);

/* Latencies in milliseconds; sorts them. */
typedef struct latency {
    double min, max, mean, p50, p95, p99;
    size_t n;
} latency;
void latency_of(double *ms, size_t n, latency *out);

/* ---- show.c ---- */
/* Before anything runs: every -o names a format, every --report a report. Returns as options_parse
 * does. */
int show_check(const table_options *o);
/* The table and the reports that were asked for, --json and every -o. */
int show_profile(const sonde_profile *profile, const table_options *o,
                 const common_options *common);

/* ---- progress.c ---- */
/* A bar on stderr while that is a terminal and -q is not given; `done` in 0…1. */
void progress(const common_options *o, const char *what, double done);
void progress_end(void);

/* ---- interrupt.c ---- */
void interrupt_watch(void); /* from main */
/* From here on there are results to keep: the first signal cancels runs that have the token, and
 * the verb ends soon. */
int interrupt_keep(void);
sonde_cancel_token *interrupt_token(void); /* NULL before interrupt_keep */
bool interrupted(void);
int interrupt_code(int code); /* what to exit with instead of `code` */

/* ---- the verbs ---- */
#define COMMAND(name, arguments, summary) int cmd_##name(int argc, char **argv);
#include "commands.inc"
#undef COMMAND

#endif
