/* SPDX-License-Identifier: Apache-2.0 */
/* --mode accuracy: how often a runtime's answers to a labelled data set are right. A data set is a
 * folder of folders of images, one for each class, or a folder of .npz files that hold the model's
 * inputs and a number `label`. A few samples at a time become files, however large the data set. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/parts.h"
#include "sonde/experimental/compare.h"

enum { AT_A_TIME = 32 };

typedef struct samples {
    list files;
    int64_t *labels; /* -1: an .npz file that says it itself */
} samples;

static void add_sample(samples *s, char *file, int64_t label)
{
    s->labels = grow(s->labels, s->files.n, sizeof *s->labels);
    s->labels[s->files.n] = label;
    list_add(&s->files, file);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What is in a folder, sorted, without what begins with a dot. */
static void look_into(const char *folder, list *names)
{
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            list_add(names, text_of("%s", e->d_name));
    if (dir)
        closedir(dir);
    if (names->n)
        qsort((void *)names->items, names->n, sizeof *names->items, by_name);
}

/* ------------------------------------------------------------------ classes */
/* The line of --labels that is this name; -1: none. */
static int64_t line_of(const list *labels, const char *name)
{
    for (size_t i = 0; i < labels->n; i++)
        if (strcmp(labels->items[i], name) == 0)
            return (int64_t)i;
    return -1;
}

/* A folder's class: its name is a line of --labels, or a number, or it is the k-th of them. */
static int class_of(const bench_options *o, const char *name, int64_t position, int64_t *label)
{
    char *end = NULL;
    *label = strtoll(name, &end, 10);
    if (o->values.labels)
        *label = line_of(&o->values.lines, name);
    else if (*end || end == name || *label < 0)
        *label = position;
    return *label >= 0
               ? EXIT_OK
               : fail("the labels file '%s' has no line '%s', but '%s' has a folder with that name",
                      o->values.labels, name, o->dataset);
}

static int find_samples(samples *s, const bench_options *o)
{
    list names = {.n = 0};
    int64_t classes = 0;
    int code = EXIT_OK;
    look_into(o->dataset, &names);
    for (size_t i = 0; i < names.n && !code; i++) {
        char *path = text_of("%s/%s", o->dataset, names.items[i]);
        list inside = {.n = 0};
        int64_t label = -1;
        if (ends_with(path, ".npz"))
            add_sample(s, text_of("%s", path), -1);
        else if (is_folder(path) && !(code = class_of(o, names.items[i], classes++, &label)))
            look_into(path, &inside);
        for (size_t k = 0; k < inside.n; k++)
            if (is_image(inside.items[k]))
                add_sample(s, text_of("%s/%s", path, inside.items[k]), label);
        list_free_texts(&inside);
        free(path);
    }
    list_free_texts(&names);
    if (!code && !s->files.n)
        code = fail("'%s' contains neither folders of images nor .npz files", o->dataset);
    return code;
}

/* ------------------------------------------------------------------ labels */
static int is_label(void *user, const char *name, const int64_t *dims, size_t rank)
{
    enum { MOST = 1 << 20 }; /* samples of a file */
    int64_t n = 1;
    (void)user;
    for (size_t d = 0; d < rank && n <= MOST; d++)
        n = dims[d] <= MOST ? n * dims[d] : MOST + 1;
    return strcmp(name, "label") == 0 && n <= MOST;
}

/* The array `label` of an .npz file; NULL: it has none. */
static sonde_value *labels_inside(const char *path)
{
    sonde_value_set *set = NULL;
    sonde_value *found = NULL;
    sonde_load_options how = unmapped;
    how.wants = is_label;
    if (sonde_values_load_with(NULL, path, &how, &set, NULL))
        return NULL;
    for (size_t i = 0; i < sonde_value_set_count(set) && !found; i++)
        if (strcmp(sonde_value_set_name(set, i), "label") == 0)
            found = sonde_value_retain(sonde_value_set_value(set, i));
    sonde_value_set_release(set);
    return found;
}

/* ------------------------------------------------------------------ answers */
/* Why an output has no scores, for people. */
static char *why_not(const char *name, const sonde_value *v)
{
    char *type = value_type_text(v);
    int64_t rows = 0, classes = 0;
    const bool positions = sonde_value_classes(v, &rows, &classes) == SONDE_CLASSES_POSITIONS;
    const bool images = sonde_value_kind(v) == SONDE_KIND_TENSOR && sonde_tensor_rank(v) > 3;
    char *why = text_of("output '%s' is %s%s", name, type,
                        positions ? ", scores for several positions of a sample"
                        : images  ? ", scores for every pixel as of a segmentation"
                                  : ", not one score for each class");
    free(type);
    return why;
}

/* The output with the scores: the one that --scores names, or one with as many classes as --labels
 * has lines, or the first. NULL: none, and *why, from malloc, is the reason. */
static const sonde_value *scores_of(const sonde_value_set *set, const bench_options *o, char **why)
{
    const sonde_value *first = NULL, *labelled = NULL;
    for (size_t i = 0; i < sonde_value_set_count(set); i++) {
        const sonde_value *v = sonde_value_set_value(set, i);
        const char *name = sonde_value_set_name(set, i);
        int64_t rows = 0, classes = 0;
        if (o->scores && strcmp(o->scores, name) != 0)
            continue;
        if (sonde_value_classes(v, &rows, &classes) != SONDE_CLASSES_SAMPLES) {
            if (!*why)
                *why = why_not(name, v);
            continue;
        }
        first = first ? first : v;
        if (!labelled && (size_t)classes == o->values.lines.n)
            labelled = v;
    }
    if (!first && !*why)
        *why =
            o->scores ? text_of("it has no output '%s'", o->scores) : text_of("it has no outputs");
    return labelled ? labelled : first;
}

/* How many scores of a row come before the label's. NaN is the worst score; of equal ones the first
 * is taken, as by argmax. -1: there is no such class. */
static int64_t rank_of(const sonde_value *v, int64_t row, int64_t classes, int64_t label)
{
    double own = NAN, x = NAN;
    int64_t before = 0;
    if (label < 0 || label >= classes)
        return -1;
    (void)sonde_tensor_read(v, row * classes + label, 1, &own);
    for (int64_t i = 0; i < classes; i++)
        if (i != label && sonde_tensor_read(v, row * classes + i, 1, &x))
            before += x > own || (x == own && i < label) || (isnan(own) && !isnan(x)) ||
                      (isnan(own) && isnan(x) && i < label);
    return before;
}

static bool ask_sample(talk *t, size_t number, const char *out)
{
    char *inputs = bench_inputs_path(number), *line = text_of("outputs %s", out), *rest = NULL;
    (void)(child_send(&t->process, "forget") && child_send(&t->process, "inputs %s", inputs));
    const bool answered = talk_ask(t, line, "outputs", &rest);
    if (answered && strcmp(rest, "saved") != 0) {
        t->state = BENCH_UNSUPPORTED;
        t->message = printable(rest);
    }
    free(line);
    free(inputs);
    return answered && !t->state;
}

/* ------------------------------------------------------------------ rating */
typedef struct rating {
    talk *t;
    const bench_options *o;
    size_t rated, skipped, right, near;
} rating;

static bool give_up(rating *g, bench_state state, char *message)
{
    g->t->state = state;
    g->t->message = message;
    return false;
}

/* `labels`: one for each row of the scores; NULL: all are `label`. */
static bool rate_answer(rating *g, const char *path, const sonde_value *labels, int64_t label)
{
    sonde_value_set *set = NULL;
    sonde_error err;
    char *why = NULL;
    if (sonde_values_load_with(NULL, path, &unmapped, &set, &err))
        return give_up(g, BENCH_FAILED, text_of("its outputs cannot be read: %s", err.message));
    int64_t rows = 0, classes = 0;
    const sonde_value *v = scores_of(set, g->o, &why);
    bool fine = v != NULL;
    if (v)
        (void)sonde_value_classes(v, &rows, &classes);
    else
        (void)give_up(g, BENCH_UNSUPPORTED, text_of("the model is not a classifier: %s", why));
    if (fine && labels && sonde_tensor_count(labels) != rows)
        fine = give_up(g, BENCH_FAILED,
                       text_of("a sample has %lld labels, but the model gave %lld answers",
                               (long long)sonde_tensor_count(labels), (long long)rows));
    for (int64_t i = 0; i < rows && fine; i++) {
        double x = (double)label;
        if (labels)
            (void)sonde_tensor_read(labels, i, 1, &x);
        const int64_t rank = rank_of(v, i, classes, x >= 0 && x < 1e15 ? (int64_t)x : -1);
        g->rated++;
        g->right += rank == 0;
        g->near += rank >= 0 && rank < 5;
    }
    free(why);
    sonde_value_set_release(set);
    return fine;
}

static bool skip(rating *g, bool quiet, const char *file)
{
    if (file && !quiet)
        warn("'%s' has no array 'label'; it is skipped", file);
    g->skipped++;
    return true;
}

/* Sample `index`, whose inputs have this number among those that were made. */
static bool rate_sample(rating *g, const samples *s, size_t index, size_t number, bool first)
{
    char *inputs = bench_inputs_path(number);
    const bool made = is_file(inputs), quiet = g->o->setup.common.quiet || !first;
    free(inputs);
    if (!made)
        return skip(g, true, NULL); /* the warning was given when it was read */
    const char *file = s->files.items[index];
    sonde_value *labels = s->labels[index] < 0 ? labels_inside(file) : NULL;
    if (s->labels[index] < 0 && (!labels || !sonde_tensor_count(labels))) {
        sonde_value_release(labels);
        return skip(g, quiet, file);
    }
    char *out = scratch_path("answer.npz");
    const bool fine =
        ask_sample(g->t, number, out) && rate_answer(g, out, labels, s->labels[index]);
    sonde_value_release(labels);
    free(out);
    return fine;
}

/* `first`: warnings are given for the first runtime only, as all read the same files. */
static void rate(talk *t, const bench_plan *p, const samples *s, bench_result *r, bool first)
{
    rating g = {.t = t, .o = p->o};
    run_setup setup = p->o->setup;
    bool fine = true;
    setup.inputs.skip_silently = !first;
    for (size_t from = 0; from < s->files.n && fine; from += AT_A_TIME) {
        const size_t to = from + AT_A_TIME < s->files.n ? from + AT_A_TIME : s->files.n;
        fine = !bench_prepare_samples(&setup, p->model->path, &s->files, from, to);
        for (size_t i = from; i < to && fine; i++) {
            progress(&p->o->setup.common, r->runtime, (double)i / (double)s->files.n);
            fine = rate_sample(&g, s, i, i - from, first);
        }
    }
    progress_end();
    r->accuracy.samples = g.rated;
    r->accuracy.skipped = g.skipped;
    if (g.rated) {
        r->accuracy.top1 = (double)g.right / (double)g.rated;
        r->accuracy.top5 = (double)g.near / (double)g.rated;
    } else if (!t->state) {
        (void)give_up(&g, BENCH_FAILED,
                      text_of("the data set has no sample that has a label and can be read"));
    }
}

bool bench_accuracies(const bench_plan *p)
{
    samples s = {.labels = NULL};
    bool go_on = !find_samples(&s, p->o);
    for (size_t i = 0; i < p->all->n && go_on; i++) {
        const bench_setting setting = bench_setting_of(p, i);
        talk t;
        if (talk_start(&t, &setting) && bench_ask_load(&t, &p->results[i], 0))
            rate(&t, p, &s, &p->results[i], i == 0);
        go_on = bench_talk_end(&t, &p->results[i]) && !interrupted();
    }
    list_free_texts(&s.files);
    free(s.labels);
    return go_on;
}
