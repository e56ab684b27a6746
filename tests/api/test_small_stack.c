/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the caller may have little stack: 128 KiB where musl is the C library, 64 KiB in
 * programs that want thousands of them. What a verb of the program does through the API is done
 * here on a stack that was painted before, and less than 64 KiB of the paint may be gone. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sonde/experimental/accuracy.h"
#include "sonde/experimental/inspect.h"
#include "sonde/experimental/quantize.h"
#include "sonde/experimental/sparsify.h"
#include "sonde/experimental/whatif.h"
#include "sonde/experimental/zoo.h"
#include "sonde/sonde.h"
#include "temp_folder.h"
#include "test.h"

enum { STACK = 4 << 20, PAINT = 0xA5 };
#if SONDE_FEW_TILES /* under sanitizers, whose frames are many times as large */
enum { MOST = STACK };
#else
enum { MOST = 64 << 10 };
#endif

typedef struct job {
    const char *name;
    void (*run)(struct job *);
    sonde_model *model;
    sonde_session *session;
    sonde_value *in;
    const char *in_name;
    char path[400];
    sonde_status status;
    sonde_error err;
} job;

static void *start(void *user)
{
    job *j = user;
    j->run(j);
    return NULL;
}

/* How much of a new thread's stack the job takes. */
static size_t stack_of(job *j)
{
    uint8_t *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attr;
    pthread_t thread;
    if (stack == MAP_FAILED || pthread_attr_init(&attr) ||
        pthread_attr_setstack(&attr, stack, STACK))
        abort();
    memset(stack, PAINT, STACK);
    if (pthread_create(&thread, &attr, start, j) || pthread_join(thread, NULL))
        abort();
    size_t left = 0;
    while (left < STACK && stack[left] == PAINT)
        left++;
    pthread_attr_destroy(&attr);
    munmap(stack, STACK);
    return STACK - left;
}

/* ------------------------------------------------------------------ the verbs */
static void nothing(job *j)
{
    j->status = SONDE_OK;
}

static void load_and_run(job *j)
{
    sonde_model *m = NULL;
    sonde_session *s = NULL;
    sonde_value *out = NULL;
    j->status = sonde_model_save_with(j->model, j->path, NULL, &j->err);
    if (!j->status)
        j->status = sonde_model_load(NULL, j->path, NULL, &m, &j->err);
    if (!j->status)
        j->status = sonde_session_create(m, NULL, &s, &j->err);
    if (!j->status)
        j->status = sonde_session_run(s, NULL, NULL, &j->in, 1, NULL, &out, 1, &j->err);
    sonde_value_release(out);
    sonde_session_release(s);
    sonde_model_release(m);
}

static void profile(job *j)
{
    static const char *const formats[] = {".json",  ".pftrace", ".csv",  ".html",        ".folded",
                                          ".pb.gz", ".md",      ".prom", ".summary.json"};
    sonde_profile *p = NULL;
    sonde_value *out = NULL;
    j->status = sonde_profiler_start(NULL, 3, &j->err);
    if (!j->status)
        j->status = sonde_session_run(j->session, NULL, NULL, &j->in, 1, NULL, &out, 1, &j->err);
    if (!j->status)
        j->status = sonde_profiler_stop(NULL, &p, &j->err);
    for (size_t k = 0; k < sizeof formats / sizeof *formats && !j->status; k++) {
        char path[440];
        snprintf(path, sizeof path, "%s%s", j->path, formats[k]);
        j->status = sonde_profile_save(p, path, &j->err);
        if (j->status == SONDE_UNSUPPORTED && strcmp(formats[k], ".html") == 0)
            j->status = SONDE_OK; /* a build without Node.js */
    }
    sonde_value_release(out);
    sonde_profile_release(p);
}

static void inspect(job *j)
{
    sonde_inspection *i = NULL;
    j->status = sonde_inspect_session(j->session, NULL, &j->in, 1, &i, &j->err);
    if (!j->status)
        j->status = sonde_inspection_save(i, j->path, &j->err);
    sonde_inspection_release(i);
}

static void sparsify(job *j)
{
    sonde_sparsify_options o = SONDE_INIT(sonde_sparsify_options);
    sonde_sparsified *made = NULL;
    o.ratio = 0.5;
    j->status = sonde_sparsify(j->model, &o, &made, &j->err);
    if (!j->status)
        j->status = sonde_sparsified_save(made, j->path, NULL, &j->err);
    sonde_sparsified_release(made);
}

static void quantize(job *j)
{
    sonde_samples *samples = NULL;
    j->status = sonde_samples_create(j->model, &samples, &j->err);
    if (!j->status)
        j->status = sonde_samples_add(samples, &j->in_name, &j->in, 1, &j->err);
    for (int kind = 0; kind < 3 && !j->status; kind++) {
        sonde_quantize_options o = SONDE_INIT(sonde_quantize_options);
        sonde_quantized *made = NULL;
        o.kind = (sonde_quantize_kind)kind;
        o.equalize = 1;
        o.goal_db = o.kind == SONDE_QUANTIZE_STATIC ? 60 : 0;
        j->status = sonde_quantize(j->model, samples, &o, &made, &j->err);
        if (!j->status)
            j->status = sonde_quantized_save(made, j->path, NULL, &j->err);
        sonde_quantized_release(made);
    }
    sonde_samples_release(samples);
}

static void compare(job *j)
{
    sonde_session_options how = SONDE_INIT(sonde_session_options);
    sonde_accuracy_side a = SONDE_INIT(sonde_accuracy_side), b = a;
    sonde_accuracy *made = NULL;
    how.precision = SONDE_PRECISION_BF16;
    a.model = b.model = j->model;
    b.session = &how;
    j->status = sonde_accuracy_create(&a, &b, NULL, &j->in_name, &j->in, 1, &made, &j->err);
    for (size_t k = 0; !j->status && k < sonde_accuracy_pass_count(made); k++)
        j->status = sonde_accuracy_add(made, k, &j->in_name, &j->in, 1, &j->err);
    if (!j->status)
        j->status = sonde_accuracy_save(made, j->path, &j->err);
    sonde_accuracy_release(made);
}

static void whatif(job *j)
{
    static const char *const suffixes[] = {".csv", ".json", ".xlsx"};
    sonde_whatif_options o = SONDE_INIT(sonde_whatif_options);
    sonde_whatif *made = NULL;
    o.scenarios = "sparse90,int8,int8-dynamic,int4,bf16,batch=2";
    o.values = &j->in;
    o.value_count = 1;
    o.warmup = -1;
    o.runs = 1;
    o.no_cache = 1;
    j->status = sonde_whatif_measure(j->model, &o, &made, &j->err);
    for (size_t k = 0; k < 3 && !j->status; k++) {
        char path[440];
        snprintf(path, sizeof path, "%s%s", j->path, suffixes[k]);
        j->status = sonde_whatif_save(made, path, &j->err);
    }
    sonde_whatif_release(made);
}

/* ------------------------------------------------------------------ models */
static void check_model(const char *zoo, const int64_t *dims, size_t rank, const char *folder)
{
    static const struct {
        const char *name, *file;
        void (*run)(job *);
    } verbs[] = {{"run", "run.onnx", load_and_run},    {"profile", "profile", profile},
                 {"inspect", "inspect.onnx", inspect}, {"sparsify", "sparse.onnx", sparsify},
                 {"quantize", "quant.onnx", quantize}, {"compare", "compare.json", compare},
                 {"whatif", "whatif", whatif}};
    job j = {.name = "nothing", .run = nothing};
    sonde_error err;
    size_t bytes = sizeof(float);
    for (size_t i = 0; i < rank; i++)
        bytes *= (size_t)dims[i];
    CHECK_OK(sonde_zoo_build(NULL, zoo, 1, &j.model, &err));
    CHECK_OK(sonde_session_create(j.model, NULL, &j.session, &err));
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_F32, dims, rank, NULL, bytes, &j.in, &err));
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        ((float *)sonde_tensor_data(j.in))[i] = test_randf();
    j.in_name = sonde_session_input_name(j.session, 0);
    /* What a thread takes for itself: variables of the thread, of all libraries. */
    const size_t own = stack_of(&j);
    for (size_t k = 0; k < sizeof verbs / sizeof *verbs; k++) {
        j.name = verbs[k].name;
        j.run = verbs[k].run;
        snprintf(j.path, sizeof j.path, "%s/%s", folder, verbs[k].file);
        const size_t taken = stack_of(&j);
        CHECK_MSG(j.status == SONDE_OK, "%s of %s: %s", j.name, zoo, j.err.message);
        CHECK_MSG(taken < MOST, "%s of %s takes %zu bytes of the stack, %zu of them for the thread",
                  j.name, zoo, taken, own);
        if (getenv("SONDE_STACK_SIZES"))
            fprintf(stderr, "%s %s: %zu\n", zoo, j.name, taken);
    }
    sonde_value_release(j.in);
    sonde_session_release(j.session);
    sonde_model_release(j.model);
}

TEST(every_verb_runs_on_64_KiB_of_stack)
{
    char folder[TEMP_PATH];
    temp_make(folder);
    check_model("tiny_mlp", (const int64_t[]){2, 16}, 2, folder);
    check_model("tiny_cnn", (const int64_t[]){1, 3, 32, 32}, 4, folder);
    CHECK(temp_remove(folder));
}

TEST_MAIN()
