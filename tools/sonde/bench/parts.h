/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `sonde bench` between the options and the results: runtimes, models made ready,
 * measuring, writing. */
#ifndef SONDE_BENCH_PARTS_H
#define SONDE_BENCH_PARTS_H

#include "bench/bench.h"
#include "bench/child.h"
#include "tool.h"

/* ---- cmd_bench.c ---- */
typedef struct bench_options {
    run_setup setup;
    list against, peers;
    const char *python, *thread_list, *precision_list, *batch_list, *workload, *mode, *dataset;
    const char *scores; /* the output that has them; NULL: found by its shape */
    int64_t rounds, turns, min_runs;
    double timeout_s;
    bool no_program, no_inference, no_pin;
    list outputs;
    const char *json;
    tolerances tolerances;
    value_options values;
    int profile;
    keep_options keep;
} bench_options;

/* ---- runtimes.c ---- */
/* One thing to measure: a runtime, perhaps in a variant. */
typedef struct runtime {
    char *label; /* "onnxruntime:opt=off" */
    char *name;  /* "onnxruntime" */
    list options;
    char *file;          /* its driver; NULL: this program */
    const char *install; /* the command that installs it; NULL: a driver of the user's */
} runtime;

typedef struct runtimes {
    runtime *items;
    size_t n;
    const char *python;
} runtimes;

/* From --against and --peer. Returns as options_parse does; nothing is started. */
int runtimes_make(runtimes *r, const bench_options *o);
void runtimes_free(runtimes *r);
void runtimes_help(text *t); /* all there are */
/* The drivers this program carries, into the scratch folder. */
int runtimes_unpack(void);
/* Its command line; ended with NULL. Texts belong to the runtime. */
void runtime_command(const runtimes *all, const runtime *r, const char **argv /* of 4 */);
/* Where this program is. From malloc. */
char *bench_self(void);

typedef struct bench_file { /* one driver, as a text; embedded at build time */
    const char *name, *text;
    size_t bytes;
} bench_file;
extern const bench_file bench_files[]; /* ended by a row without a name */

/* ---- self.c ---- */
int bench_driver(void);

/* ---- prepare.c ---- */
/* How an image becomes a tensor; one line of text in the protocol. */
typedef struct bench_image {
    char *input; /* its name; NULL: no images */
    int height, width, resize;
    bool nhwc, bgr;
    float mean[3], deviation[3];
} bench_image;
bool bench_image_parse(bench_image *image, const char *line);
void bench_image_free(bench_image *image);

/* A model as all runtimes get it: the same file, the same inputs. */
typedef struct bench_model {
    char *label;      /* as people typed it */
    char *path;       /* an ONNX file */
    list inputs;      /* .npz files, each with a .safetensors beside it; runs take them in turn */
    list images;      /* what the inputs were made of; empty: something else */
    char *preprocess; /* "" or the line of bench_image */
    char *hashes[2];  /* of its content and form; NULL: not asked for */
    size_t skipped;   /* images that cannot be read */
    int64_t batch;
} bench_model;
/* Happens in a process of its own: what the bench itself has ever held in memory would be counted
 * as held by every process it starts. */
int bench_prepare(bench_model *m, const run_setup *s, const char *model);
/* The same for samples of a data set: files [from, to), images or .npz, become inputs_0.npz and so
 * on; what is no input of the model is left out of the latter. A file that cannot be read is
 * not made into inputs, with a warning. */
int bench_prepare_samples(const run_setup *s, const char *model, const list *files, size_t from,
                          size_t to);
char *bench_inputs_path(size_t number); /* from malloc */
/* Runs `work` in a helper process; its exit code. */
int bench_helper(int (*work)(void *argument), void *argument);
void bench_model_free(bench_model *m);

/* ---- talk.c ---- */
/* A driver's process, with the state of the conversation. */
typedef struct talk {
    child process;
    char *log; /* file of its standard error */
    double timeout_s;
    bench_state state; /* BENCH_OK so far */
    char *message;     /* why not; from malloc */
    bool stopped;      /* by Ctrl-C */
} talk;
typedef struct bench_setting {
    const runtimes *all;
    const runtime *runtime;
    const bench_model *model;
    const char *cores;
    int threads, instances;
    bool verbose;
    double timeout_s;
} bench_setting;
/* Starts a driver and tells it everything but `load`. */
bool talk_start(talk *t, const bench_setting *s);
/* Sends a command line and waits for its answer, which must begin with `word`; *rest is what
 * follows. */
bool talk_ask(talk *t, const char *line, const char *word, char **rest);
void talk_end(talk *t);
/* Where the driver only said that it will not: its reason (from malloc), and the talk goes on; else
 * NULL. */
char *talk_forgive(talk *t);
/* The numbers (ns ► ms) of a `times` answer, appended. *wall_ms: all of it. */
bool talk_times(talk *t, const char *line, bench_series *into, bench_when when, double *wall_ms);

/* ---- measure.c ---- */
typedef struct bench_plan {
    const bench_options *o;
    const runtimes *all;
    const bench_model *model;
    bench_result *results; /* one for each runtime */
    const char *cores;
    int threads, instances, rounds, turns;
} bench_plan;
/* What a runtime is asked in a round. False: it failed, or the bench was interrupted. */
bench_setting bench_setting_of(const bench_plan *p, size_t which);
bool bench_ask_load(talk *t, bench_result *r, int round);
/* Warm-up runs with `warmup` or `full`, one a command; the fastest tells how long a run takes. The
 * first is kept in `first` unless that is NULL. */
bool bench_warm_up(talk *t, const char *verb, const bench_plan *p, bench_series *first, int round,
                   double *ms);
/* How many measured runs the round should have, when one takes `ms`. */
long bench_runs_of_round(const bench_plan *p, int round, double ms);
/* That many, a few seconds' worth to a command; what they took is added to *wall_ms. */
bool bench_run_many(talk *t, const char *verb, long runs, double ms, bench_series *into,
                    bench_when when, double *wall_ms);
void bench_ask_memory(talk *t, bench_result *r, int round);
void bench_ask_outputs(talk *t, const bench_plan *p, size_t which);
/* The whole program is the driver's to name; one that has none says so. */
void bench_ask_program(talk *t, bench_result *r);
/* Ends the process and keeps what went wrong; false: the bench was interrupted. */
bool bench_talk_end(talk *t, bench_result *r);

/* ---- rounds.c ---- */
/* Rounds of inference. False: interrupted. */
bool bench_measure(const bench_plan *p);
/* ---- program.c ---- the same for whole programs; the commands were asked for by bench_measure. */
bool bench_programs(const bench_plan *p);
/* ---- accuracy.c ---- the answers to a labelled data set, instead of rounds. */
bool bench_accuracies(const bench_plan *p);
/* ---- agree.c ---- */
/* The outputs a runtime saved, against those of the first that did. */
void bench_agree(const bench_plan *p);
char *bench_outputs_path(size_t which); /* where it saves them; from malloc */
/* The same values for programs that can only compare by themselves: a .safetensors file, made when
 * the first runtime has saved its outputs. From malloc; NULL: there are none yet. */
char *bench_reference(const bench_plan *p, size_t which);

/* ---- answers.c ---- */
/* What --top and -p ask for, about sonde: the best classes of every input, its timing table. */
int bench_answers(const bench_options *o, const run_setup *s, const bench_model *m);

/* ---- keep.c ---- */
/* What a runtime is told to do, as members of JSON. From malloc. */
char *bench_options_said(const runtime *r);
/* What --save asks for: an entry for each runtime of each table. */
int bench_keep(const bench_results *r, const bench_options *o);

/* ---- machine.c ---- */
int bench_machine_look(bench_machine *m);
void bench_machine_free(bench_machine *m);
double bench_memory_left(void); /* bytes that new processes may use; 0: not known */
/* The first `n` cores this process may use, "0,1"; from malloc. */
char *bench_cores(int n);

/* ---- results.c ---- */
void bench_result_open(bench_result *r, const bench_plan *p, const runtime *which);
void bench_result_finish(bench_result *r, const bench_result *first);
void bench_results_cut(bench_results *r, size_t n); /* those from n on are dropped */
void bench_results_free(bench_results *r);

/* ---- table.c, json.c, sheet.c ---- */
/* One table: results [from, to). */
void bench_table(const bench_results *r, size_t from, size_t to);
void bench_json(const bench_results *r, text *t);
void bench_csv(const bench_results *r, text *t);
void bench_markdown(const bench_results *r, text *t);
/* The unit in which the shortest median of a table has digits. */
shown_unit bench_latency_unit(const bench_result *r, size_t n);
/* "not installed: pip install torch" */
char *bench_state_text(const bench_result *r);

#endif
