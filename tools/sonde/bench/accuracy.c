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

/* ------------------------------------------------------------------ answers */
/* The `label` of an .npz file; false: it has none. */
static bool label_inside(const char *path, int64_t *label)
{
    sonde_value_set *set = NULL;
    double x = -1;
    if (sonde_values_load_with(NULL, path, &unmapped, &set, NULL))
        return false;
    for (size_t i = 0; i < sonde_value_set_count(set); i++)
        if (strcmp(sonde_value_set_name(set, i), "label") == 0)
            (void)sonde_tensor_read(sonde_value_set_value(set, i), 0, 1, &x);
    sonde_value_set_release(set);
    *label = (int64_t)x;
    return x >= 0;
}

/* How many scores of the first output are higher than the label's; -1: it has none. */
static int64_t rank_of(const char *path, int64_t label)
{
    sonde_value_set *set = NULL;
    int64_t higher = -1;
    if (sonde_values_load_with(NULL, path, &unmapped, &set, NULL) || !sonde_value_set_count(set)) {
        sonde_value_set_release(set);
        return -1;
    }
    const sonde_value *v = sonde_value_set_value(set, 0);
    const size_t rank = sonde_tensor_rank(v);
    const int64_t classes = rank ? sonde_tensor_dims(v)[rank - 1] : 0;
    double own = 0, x = 0;
    if (label < classes && sonde_tensor_read(v, label, 1, &own)) {
        higher = 0;
        for (int64_t i = 0; i < classes; i++)
            higher += sonde_tensor_read(v, i, 1, &x) && x > own;
    }
    sonde_value_set_release(set);
    return higher;
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

static void rate(talk *t, const bench_plan *p, const samples *s, bench_result *r)
{
    char *out = scratch_path("answer.npz");
    size_t right = 0, near = 0;
    bool fine = true;
    for (size_t from = 0; from < s->files.n && fine; from += AT_A_TIME) {
        const size_t to = from + AT_A_TIME < s->files.n ? from + AT_A_TIME : s->files.n;
        fine = !bench_prepare_samples(&p->o->setup, p->model->path, &s->files, from, to);
        for (size_t i = from; i < to && fine; i++) {
            int64_t label = s->labels[i];
            progress(&p->o->setup.common, r->runtime, (double)i / (double)s->files.n);
            fine = ask_sample(t, i - from, out);
            if (fine && (label >= 0 || label_inside(s->files.items[i], &label))) {
                const int64_t rank = rank_of(out, label);
                right += rank == 0;
                near += rank >= 0 && rank < 5;
                r->accuracy.samples++;
            }
        }
    }
    progress_end();
    free(out);
    if (r->accuracy.samples) {
        r->accuracy.top1 = (double)right / (double)r->accuracy.samples;
        r->accuracy.top5 = (double)near / (double)r->accuracy.samples;
    } else if (!t->state) {
        t->state = BENCH_FAILED;
        t->message = text_of("the data set has no sample that has a label and can be read");
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
            rate(&t, p, &s, &p->results[i]);
        go_on = bench_talk_end(&t, &p->results[i]) && !interrupted();
    }
    list_free_texts(&s.files);
    free(s.labels);
    return go_on;
}
