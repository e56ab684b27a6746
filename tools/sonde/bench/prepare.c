/* SPDX-License-Identifier: Apache-2.0 */
/* The same bytes for every runtime: the model as an ONNX file and its inputs as .npz files (and
 * .safetensors, which some programs take instead), made once in the scratch folder. A helper
 * process does it, and leaves what the bench has to know in a small file of facts. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/parts.h"
#include "sonde/experimental/history.h"
#include "sonde/experimental/inspect.h"
#include "sonde/experimental/tensor_file.h"

/* Tabs and line breaks separate things in the protocol. */
static int check_name(const char *name)
{
    return strpbrk(name, "\t\n\r")
               ? fail("cannot pass '%s' to other programs: its name contains a tab or a line break",
                      name)
               : EXIT_OK;
}

/* ------------------------------------------------------------------ images */
bool bench_image_parse(bench_image *i, const char *line)
{
    const char *name = strrchr(line, '\t'); /* last, as it may contain anything else */
    char layout[8], colours[8];
    bench_image_free(i);
    if (!name || sscanf(line, "%d\t%d\t%d\t%7[a-z]\t%7[a-z]\t%f,%f,%f\t%f,%f,%f", &i->height,
                        &i->width, &i->resize, layout, colours, &i->mean[0], &i->mean[1],
                        &i->mean[2], &i->deviation[0], &i->deviation[1], &i->deviation[2]) != 11)
        return false;
    i->nhwc = strcmp(layout, "nhwc") == 0;
    i->bgr = strcmp(colours, "bgr") == 0;
    i->input = text_of("%s", name + 1);
    return true;
}

void bench_image_free(bench_image *i)
{
    free(i->input);
    *i = (bench_image){.input = NULL};
}

/* The preprocess line of the first input. */
static int describe_images(const loaded *l, const run_setup *s, const char *path, text *facts)
{
    sonde_image_options i = SONDE_INIT(sonde_image_options);
    sonde_image_plan p = SONDE_INIT(sonde_image_plan);
    sonde_error err;
    float numbers[6];
    const char *input = sonde_session_input_name(l->session, 0);
    int code = image_plan(l, &s->inputs, 0, path, &i, numbers);
    if (!code)
        code = check_name(input);
    if (!code && sonde_image_plan_get(&i, &p, &err))
        code = fail("%s", err.message);
    if (code)
        return code;
    text_add(facts, "preprocess %d\t%d\t%d\t%s\t%s\t%.9g,%.9g,%.9g\t%.9g,%.9g,%.9g\t%s\n", p.height,
             p.width, p.resize, i.nhwc ? "nhwc" : "nchw", i.bgr ? "bgr" : "rgb", (double)p.mean[0],
             (double)p.mean[1], (double)p.mean[2], (double)p.deviation[0], (double)p.deviation[1],
             (double)p.deviation[2], input);
    return EXIT_OK;
}

/* ------------------------------------------------------------------ the helper process */
char *bench_inputs_path(size_t number)
{
    char *name = text_of("inputs_%zu.npz", number), *path = scratch_path(name);
    free(name);
    return path;
}

/* Sizes that nobody gave and that do not fit are better told once than by every runtime. Where no
 * others fit either, the runtimes have the word. */
static int check_sizes(const loaded *l, const run_setup *s, const feeds *f)
{
    sonde_inspection *look = NULL;
    sonde_error err;
    int code = EXIT_OK;
    if (f->n && sonde_inspect_session(l->session, f->names, f->values, f->n, &look, &err)) {
        list sizes = sizes_that_fit(l, s);
        if (sizes.n)
            code = fail_with_sizes(l, s, err.message);
        list_free_texts(&sizes);
    }
    sonde_inspection_release(look);
    return code;
}

/* One set of inputs, saved under its number. */
static int save_feeds(const loaded *l, const run_setup *s, size_t number, int64_t *batch)
{
    static const char *const suffixes[] = {"npz", "safetensors"};
    feeds f;
    int code = feeds_make(&f, l, s);
    if (!code && !s->inputs.inputs.n)
        code = check_sizes(l, s, &f);
    for (int k = 0; k < 2 && !code; k++) {
        char *name = text_of("inputs_%zu.%s", number, suffixes[k]), *path = scratch_path(name);
        sonde_error err;
        const bool essential = k == 0; /* strings, for instance, have no .safetensors */
        if (sonde_values_save(path, f.names, f.values, f.n, &err) && essential)
            code = fail("cannot pass the inputs to other programs: %s", err.message);
        free(path);
        free(name);
    }
    if (!code && f.n && sonde_value_kind(f.values[0]) == SONDE_KIND_TENSOR &&
        sonde_tensor_rank(f.values[0]) > 0)
        *batch = sonde_tensor_dims(f.values[0])[0];
    feeds_free(&f);
    return code;
}

static run_setup one_of_many(const run_setup *s, const char **file)
{
    run_setup one = *s;
    one.inputs.inputs = (list){.items = file, .n = 1};
    one.inputs.one_of_many = true;
    one.inputs.skip_silently |= s->common.quiet;
    return one;
}

static int save_inputs(const loaded *l, const run_setup *s, text *facts)
{
    list images;
    int64_t batch = 1;
    int code = image_folder(s, &images);
    if (!code)
        code =
            images.n ? describe_images(l, s, images.items[0], facts) : save_feeds(l, s, 0, &batch);
    size_t kept = 0;
    for (size_t i = 0; i < images.n && !code; i++) {
        const char *item = images.items[i];
        run_setup one = one_of_many(s, &item);
        code = save_feeds(l, &one, kept, &batch);
        if (code == FEEDS_UNREADABLE) {
            code = EXIT_OK;
            continue;
        }
        kept++;
        char *whole = realpath(item, NULL);
        if (!code && !(code = check_name(whole ? whole : item)))
            text_add(facts, "image %s\n", whole ? whole : item);
        free(whole);
    }
    if (!code && images.n && !kept)
        code = none_readable(images.n, "images", s->inputs.inputs.items[0]);
    batch = counts_samples(l) ? batch : 1;
    if (!code && s->inputs.batch_size && batch != s->inputs.batch_size)
        code = fail_usage("--batch-size %lld: the batch size of the model is fixed to %lld",
                          (long long)s->inputs.batch_size, (long long)batch);
    text_add(facts, "inputs %zu\nskipped %zu\nbatch %lld\n", images.n ? kept : 1, images.n - kept,
             (long long)batch);
    list_free_texts(&images);
    return code;
}

/* A built-in model becomes a file; a file stays where it is, as its weights may lie beside it. */
static int save_model(const loaded *l, const char *model, text *facts)
{
    sonde_error err;
    char *path = is_zoo(model) ? scratch_path("model.onnx") : realpath(model, NULL);
    int code = EXIT_OK;
    if (!path)
        code = fail("cannot find '%s': %s", model, strerror(errno));
    else if (is_zoo(model) && sonde_model_save(l->model, path, &err))
        code = fail("%s", err.message);
    else if (!(code = check_name(path)))
        text_add(facts, "model %s\n", path);
    free(path);
    return code;
}

/* Inputs are known without weights. What is known of no input cannot be measured; why, was said. */
static int load_to_look_at(loaded *l, const run_setup *s, const char *model)
{
    const int code = load(l, s, model, LOAD_TO_KNOW_PORTS);
    return code || l->session ? code : fail("cannot prepare '%s'", model);
}

static int add_hashes(const loaded *l, text *facts)
{
    sonde_model_hashes h = SONDE_INIT(sonde_model_hashes);
    sonde_error err;
    if (sonde_model_hashes_get(l->model, &h, &err))
        return fail("%s", err.message);
    text_add(facts, "content %s\nform %s\n", h.content, h.form);
    return EXIT_OK;
}

static int make_files(const run_setup *s, const char *model)
{
    loaded l;
    text facts = {.n = 0};
    int code = load_to_look_at(&l, s, model);
    if (!code && !s->others)
        code = memory_check(&l, s, model);
    if (!code)
        code = save_model(&l, model, &facts);
    if (!code)
        code = save_inputs(&l, s, &facts);
    if (!code && s->hashes)
        code = add_hashes(&l, &facts);
    if (!code) {
        char *path = scratch_path("facts");
        code = write_text(path, facts.data, facts.n);
        free(path);
    }
    text_free(&facts);
    unload(&l);
    return code;
}

/* ------------------------------------------------------------------ the bench's side */
static int read_facts(bench_model *m)
{
    char *path = scratch_path("facts"), *line = NULL;
    FILE *f = fopen(path, "re");
    size_t cap = 0, inputs = 0;
    while (f && getline(&line, &cap, f) > 0) {
        line[strcspn(line, "\n")] = 0;
        char *value = line + strcspn(line, " ");
        if (*value)
            *value++ = 0;
        if (strcmp(line, "model") == 0)
            m->path = text_of("%s", value);
        else if (strcmp(line, "image") == 0)
            list_add(&m->images, text_of("%s", value));
        else if (strcmp(line, "inputs") == 0)
            inputs = strtoul(value, NULL, 10);
        else if (strcmp(line, "skipped") == 0)
            m->skipped = strtoul(value, NULL, 10);
        else if (strcmp(line, "batch") == 0)
            m->batch = strtoll(value, NULL, 10);
        else if (strcmp(line, "content") == 0)
            m->hashes[0] = text_of("%s", value);
        else if (strcmp(line, "form") == 0)
            m->hashes[1] = text_of("%s", value);
        else if (strcmp(line, "preprocess") == 0) {
            free(m->preprocess);
            m->preprocess = text_of("%s", value);
        }
    }
    for (size_t i = 0; i < inputs; i++)
        list_add(&m->inputs, bench_inputs_path(i));
    if (f)
        fclose(f);
    unlink(path);
    free(line);
    free(path);
    return m->path ? EXIT_OK : fail("cannot prepare '%s'", m->label);
}

typedef struct wanted {
    const loaded *l;
    char *wrong; /* what does not fit, for people; NULL: nothing */
} wanted;

static int is_input(void *user, const char *name, const int64_t *dims, size_t rank)
{
    wanted *w = user;
    const sonde_session *session = w->l->session;
    for (size_t k = 0; k < sonde_session_input_count(session); k++) {
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        if (strcmp(name, sonde_session_input_name(session, k)) != 0)
            continue;
        if (w->wrong || sonde_session_input_info(session, k, &info, NULL) ||
            feeds_takes_shape(&info, dims, rank))
            return !w->wrong;
        text shape = {.n = 0};
        text_add_shape(&shape, dims, rank);
        w->wrong =
            text_of("input '%s' should be %s but has the shape %s", name, info.text, shape.data);
        text_free(&shape);
    }
    return 0;
}

/* An .npz file without what is no input, a label for instance. */
static int save_sample(const loaded *l, const run_setup *s, const char *path, size_t number)
{
    sonde_value_set *set = NULL;
    sonde_error err;
    sonde_load_options how = unmapped;
    wanted w = {.l = l};
    how.wants = is_input;
    how.wants_user = &w;
    const sonde_status st = sonde_values_load_with(l->context, path, &how, &set, &err);
    if (st)
        return file_unreadable(&s->inputs, st, &err);
    if (w.wrong) {
        warn("'%s': %s; it is skipped", path, w.wrong);
        free(w.wrong);
        sonde_value_set_release(set);
        return FEEDS_UNREADABLE;
    }
    const size_t n = sonde_value_set_count(set);
    const char **names = need(calloc(n + 1, sizeof *names));
    sonde_value **values = need(calloc(n + 1, sizeof(sonde_value *)));
    for (size_t i = 0; i < n; i++) {
        names[i] = sonde_value_set_name(set, i);
        values[i] = sonde_value_set_value(set, i);
    }
    char *out = bench_inputs_path(number);
    const int code =
        sonde_values_save(out, names, values, n, &err) ? fail("%s", err.message) : EXIT_OK;
    free(out);
    free((void *)names);
    free(values);
    sonde_value_set_release(set);
    return code;
}

static int make_samples(const run_setup *s, const char *model, const list *files, size_t from,
                        size_t to)
{
    loaded l;
    int64_t batch = 1;
    int code = load_to_look_at(&l, s, model);
    for (size_t i = from; i < to && !code; i++) {
        char *made = bench_inputs_path(i - from);
        run_setup one = one_of_many(s, &files->items[i]);
        unlink(made); /* that of the sample before */
        code = is_image(files->items[i]) ? save_feeds(&l, &one, i - from, &batch)
                                         : save_sample(&l, &one, files->items[i], i - from);
        if (code == FEEDS_UNREADABLE)
            code = EXIT_OK;
        free(made);
    }
    unload(&l);
    return code;
}

/* ------------------------------------------------------------------ helpers */
int bench_helper(int (*work)(void *argument), void *argument)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid < 0)
        return fail("cannot fork: %s", strerror(errno));
    if (pid == 0) {
        const int code = work(argument);
        fflush(NULL);
        _exit(code);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        if (interrupted())
            kill(pid, SIGKILL);
    if (interrupted())
        return EXIT_ERROR;
    return WIFEXITED(status) ? WEXITSTATUS(status)
                             : fail("a helper process ended by signal %d", WTERMSIG(status));
}

typedef struct task {
    const run_setup *s;
    const char *model;
    const list *files;
    size_t from, to;
} task;

static int work_files(void *argument)
{
    const task *t = argument;
    return make_files(t->s, t->model);
}

int bench_prepare(bench_model *m, const run_setup *s, const char *model)
{
    *m = (bench_model){.label = text_of("%s", model), .preprocess = text_of("%s", ""), .batch = 1};
    task t = {.s = s, .model = model};
    const int code = bench_helper(work_files, &t);
    return code ? code : read_facts(m);
}

static int work_samples(void *argument)
{
    const task *t = argument;
    return make_samples(t->s, t->model, t->files, t->from, t->to);
}

int bench_prepare_samples(const run_setup *s, const char *model, const list *files, size_t from,
                          size_t to)
{
    task t = {.s = s, .model = model, .files = files, .from = from, .to = to};
    return bench_helper(work_samples, &t);
}

void bench_model_free(bench_model *m)
{
    list_free_texts(&m->inputs);
    list_free_texts(&m->images);
    free(m->label);
    free(m->path);
    free(m->preprocess);
    free(m->hashes[0]);
    free(m->hashes[1]);
    *m = (bench_model){.batch = 0};
}
