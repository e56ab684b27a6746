/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that records, reads and forgets, at once: several threads of one context, each doing
 * one thing after the other in an order of its own. Made for ThreadSanitizer and AddressSanitizer;
 * without them it shows crashes and wrong answers only.
 *     SONDE_STRESS_ROUNDS    things each thread does, else a few hundred
 *     SONDE_STRESS_SECONDS   again and again, each time with another seed, until so many are over
 * What a call may answer is success or that the profiler is in another state just now. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "forks.h"
#include "sonde/experimental/machine.h"
#include "sonde/experimental/memory.h"
#include "sonde/experimental/op.h"
#include "sonde/experimental/profile.h"
#include "sonde/experimental/recording.h"
#include "tiny_session.h"

enum { THREADS = 6, MODELS = 4, SESSIONS = 2 };

typedef struct shared {
    sonde_context *context;
    sonde_model *models[MODELS];
    sonde_session *sessions[MODELS][SESSIONS];
    pthread_rwlock_t lock;      /* whoever releases the next one holds it alone */
    sonde_recording *recording; /* of all threads; NULL: none now */
    _Atomic int failures;
    FILE *messages; /* stderr itself takes timing tables meanwhile */
    int rounds;
} shared;

typedef struct actor {
    shared *all;
    pthread_t thread;
    uint64_t state;  /* of its random numbers */
    char path[96];   /* of a file of its own */
    const char *act; /* what it does, for messages */
} actor;

static uint32_t pick(actor *a, uint32_t below)
{
    uint64_t z = (a->state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ (z >> 31)) % below);
}

/* True on success; false: not now. Anything else is a failure. */
static bool expect(actor *a, sonde_status st, const sonde_error *err)
{
    if (st != SONDE_OK && st != SONDE_INVALID_ARGUMENT) {
        atomic_fetch_add(&a->all->failures, 1);
        fprintf(a->all->messages, "%s: %s\n", a->act, err->message);
    }
    return st == SONDE_OK;
}

static void fail(actor *a, const char *why)
{
    atomic_fetch_add(&a->all->failures, 1);
    fprintf(a->all->messages, "%s: %s\n", a->act, why);
}

/* ------------------------------------------------------------------ reading a profile */
static void count_bytes(void *user, const char *data, size_t size)
{
    (void)data;
    *(size_t *)user += size;
}

/* Every operator's span has its step. */
static void look_at_spans(actor *a, const sonde_profile *p)
{
    sonde_error err;
    sonde_profile_spans *spans = NULL;
    if (!expect(a, sonde_profile_spans_get(p, &spans, &err), &err))
        return;
    for (size_t i = 0; i < sonde_profile_spans_count(spans); i++) {
        sonde_profile_span s = SONDE_INIT(sonde_profile_span);
        if (!expect(a, sonde_profile_spans_span(spans, i, &s, &err), &err))
            break;
        if (strcmp(s.category, "operator") == 0 && (!*s.op_type || s.operator_index < 0))
            fail(a, "an operator without its step");
        if (s.end_ns < s.start_ns)
            fail(a, "a span ends before it begins");
    }
    sonde_profile_spans_release(spans);
}

/* Reads a profile in one of the ways there are, and lets go of it. */
static void read_profile(actor *a, sonde_profile *p)
{
    sonde_error err;
    size_t bytes = 0;
    sonde_profile_summary s = SONDE_INIT(sonde_profile_summary);
    sonde_export_options o = SONDE_INIT(sonde_export_options);
    switch (pick(a, 5)) {
    case 0:
        (void)expect(a, sonde_profile_table(p, NULL, count_bytes, &bytes, &err), &err);
        break;
    case 1:
        (void)expect(
            a, sonde_profile_report(p, SONDE_REPORT_SUMMARY_BY_RECORD, count_bytes, &bytes, &err),
            &err);
        break;
    case 2:
        o.format = pick(a, 2) ? ".pftrace" : ".json";
        (void)expect(a, sonde_profile_write(p, &o, count_bytes, &bytes, &err), &err);
        break;
    case 3:
        (void)expect(a, sonde_profile_summary_get(p, &s, &err), &err);
        break;
    default:
        look_at_spans(a, p);
    }
    sonde_profile_release(p);
}

/* ------------------------------------------------------------------ running */
/* Some numbers, in one of four shapes where the model leaves that open. */
static sonde_status make_input(actor *a, const sonde_session *session, size_t nth,
                               sonde_value **value, sonde_error *err)
{
    static const float floats[4 * 3 * 32 * 32] = {3, 3, 3, 0, 3};
    static const int64_t one = 1; /* integers and bools are scalars */
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    sonde_status st = sonde_session_input_info(session, nth, &info, err);
    if (st != SONDE_OK)
        return st;
    int64_t dims[4] = {0};
    size_t elems = 1;
    for (int i = 0; i < info.rank && i < 4; i++) {
        dims[i] = info.dims[i] < 0 ? 1 + pick(a, 4) : info.dims[i];
        elems *= (size_t)dims[i];
    }
    const bool real = info.dtype == SONDE_DTYPE_F32;
    const size_t each = real ? sizeof *floats : info.dtype == SONDE_DTYPE_BOOL ? 1 : 8;
    return sonde_tensor_create(a->all->context, info.dtype, dims, (size_t)info.rank,
                               real ? (const void *)floats : (const void *)&one, elems * each,
                               value, err);
}

static void run(actor *a, sonde_session *session, int timing)
{
    sonde_error err;
    sonde_value *in[2] = {NULL, NULL}, *out[2] = {NULL, NULL};
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    o.timing = timing;
    const size_t n_in = sonde_session_input_count(session);
    const size_t n_out = sonde_session_output_count(session);
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < n_in && st == SONDE_OK; i++)
        st = make_input(a, session, i, &in[i], &err);
    if (st == SONDE_OK)
        st = sonde_session_run(session, &o, NULL, in, n_in, NULL, out, n_out, &err);
    if (!expect(a, st, &err))
        fail(a, err.message);
    for (size_t i = 0; i < 2; i++) {
        sonde_value_release(in[i]);
        sonde_value_release(out[i]);
    }
}

static sonde_session *any_session(actor *a)
{
    return a->all->sessions[pick(a, MODELS)][pick(a, SESSIONS)];
}

static void act_run(actor *a)
{
    run(a, any_session(a), 0);
}

static void act_timed_run(actor *a)
{
    run(a, any_session(a), 1);
}

/* Its records are unread when it goes. */
static void act_passing_session(actor *a)
{
    sonde_error err;
    sonde_session *session = NULL;
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    o.no_optimize = (int)pick(a, 2);
    o.threads = (int)pick(a, 3);
    if (expect(a, sonde_session_create(a->all->models[pick(a, MODELS)], &o, &session, &err), &err))
        run(a, session, 0);
    sonde_session_release(session);
}

static void act_passing_model(actor *a)
{
    sonde_error err;
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    if (expect(a, sonde_zoo_build(a->all->context, "tiny_if", pick(a, 9), &model, &err), &err) &&
        expect(a, sonde_session_create(model, NULL, &session, &err), &err)) {
        sonde_model_release(model);
        model = NULL;
        run(a, session, 0);
    }
    sonde_session_release(session);
    sonde_model_release(model);
}

static void act_records(actor *a)
{
    sonde_error err;
    sonde_context *c = a->all->context;
    sonde_record *outer = NULL, *inner = NULL;
    (void)expect(a, sonde_record_begin(c, "outer", (int)pick(a, 2), &outer, &err), &err);
    const uint64_t scope = sonde_scope_begin(c);
    (void)expect(a, sonde_record_begin(c, "inner", 0, &inner, &err), &err);
    run(a, any_session(a), 0);
    sonde_record_end(inner);
    sonde_scope_end(c, scope, "scope", "stress", a->act);
    sonde_record_end(outer);
}

static void act_op(actor *a)
{
    static const int64_t dims[2] = {4, 4};
    const sonde_op_input in[2] = {{.dtype = SONDE_DTYPE_F32, .dims = dims, .rank = 2},
                                  {.dtype = SONDE_DTYPE_F32, .dims = dims, .rank = 2}};
    sonde_error err;
    sonde_op_result *result = NULL;
    sonde_op_spec spec = SONDE_INIT(sonde_op_spec);
    sonde_op_options o = SONDE_INIT(sonde_op_options);
    spec.op_type = pick(a, 2) ? "Add" : "MatMul";
    spec.inputs = in;
    spec.input_count = 2;
    o.exec = o.warmup = o.one_variant = 1;
    (void)expect(a, sonde_op_profile(a->all->context, &spec, &o, &result, &err), &err);
    sonde_op_result_release(result);
    if (pick(a, 4) == 0)
        sonde_op_cache_reset(a->all->context);
}

/* ------------------------------------------------------------------ the profiler */
static void act_start(actor *a)
{
    sonde_error err;
    (void)expect(a, sonde_profiler_start(a->all->context, 1 + (int)pick(a, 3), &err), &err);
}

static void act_stream(actor *a)
{
    sonde_error err;
    (void)expect(a, sonde_profiler_stream(a->all->context, 1 + (int)pick(a, 3), a->path, &err),
                 &err);
}

static void act_stop(actor *a)
{
    sonde_error err;
    sonde_profile *p = NULL;
    const bool wanted = pick(a, 3) == 0;
    if (expect(a, sonde_profiler_stop(a->all->context, wanted ? &p : NULL, &err), &err) && wanted)
        read_profile(a, p);
}

static void act_get(actor *a)
{
    sonde_error err;
    sonde_profile *p = NULL;
    if (expect(a, sonde_profiler_get(a->all->context, &p, &err), &err))
        read_profile(a, p);
}

static void act_dump(actor *a)
{
    sonde_error err;
    char path[120];
    snprintf(path, sizeof path, "%s.json", a->path);
    (void)expect(a, sonde_profiler_dump(a->all->context, path, &err), &err);
    (void)remove(path);
}

static void act_clear(actor *a)
{
    sonde_error err;
    (void)expect(a, sonde_profiler_clear(a->all->context, &err), &err);
}

static void act_pause(actor *a)
{
    sonde_error err;
    (void)expect(a, sonde_profiler_pause(a->all->context, &err), &err);
    run(a, any_session(a), 0);
    (void)expect(a, sonde_profiler_resume(a->all->context, &err), &err);
}

/* ------------------------------------------------------------------ recordings */
static void use_recording(actor *a, sonde_recording *r)
{
    sonde_error err;
    sonde_profile *p = NULL;
    switch (pick(a, 5)) {
    case 0:
        (void)expect(a, sonde_recording_pause(r, &err), &err);
        break;
    case 1:
        (void)expect(a, sonde_recording_resume(r, (int)pick(a, 4), &err), &err);
        break;
    case 2:
        (void)expect(a, sonde_recording_clear(r, &err), &err);
        break;
    default:
        if (expect(a, sonde_recording_get(r, &p, &err), &err))
            read_profile(a, p);
    }
}

static sonde_recording *start_recording(actor *a)
{
    sonde_error err;
    sonde_recording *r = NULL;
    sonde_profiler_options o = SONDE_INIT(sonde_profiler_options);
    o.level = 1 + (int)pick(a, 3);
    return expect(a, sonde_recording_start(a->all->context, &o, &r, &err), &err) ? r : NULL;
}

/* Used by several threads at once, begun and ended by any of them. */
static void act_shared_recording(actor *a)
{
    shared *all = a->all;
    pthread_rwlock_rdlock(&all->lock);
    if (all->recording)
        use_recording(a, all->recording);
    pthread_rwlock_unlock(&all->lock);
    if (pick(a, 2))
        return;
    pthread_rwlock_wrlock(&all->lock);
    sonde_recording *before = all->recording;
    all->recording = before ? NULL : start_recording(a);
    pthread_rwlock_unlock(&all->lock);
    sonde_recording_release(before);
}

static void act_nested_recordings(actor *a)
{
    sonde_recording *outer = start_recording(a);
    run(a, any_session(a), 0);
    sonde_recording *inner = start_recording(a);
    for (int i = 0; i < 3; i++) {
        run(a, any_session(a), 0);
        use_recording(a, pick(a, 2) ? outer : inner);
    }
    sonde_recording_release(inner);
    sonde_recording_release(outer);
}

/* ------------------------------------------------------------------ memory and counters */
static void read_memory(actor *a)
{
    sonde_error err;
    sonde_memory_info info = SONDE_INIT(sonde_memory_info);
    sonde_memory_trace *trace = NULL;
    (void)expect(a, sonde_memory_max(a->all->context, &info, &err), &err);
    (void)expect(a, sonde_memory_trace_get(a->all->context, &trace, &err), &err);
    for (size_t i = 0; i < sonde_memory_trace_count(trace); i++) {
        sonde_memory_sample s = SONDE_INIT(sonde_memory_sample);
        (void)expect(a, sonde_memory_trace_sample(trace, i, &s, &err), &err);
    }
    sonde_memory_trace_release(trace);
}

static void act_memory(actor *a)
{
    sonde_error err;
    sonde_context *c = a->all->context;
    (void)expect(a, sonde_memory_start(c, &err), &err);
    run(a, any_session(a), 0);
    read_memory(a);
    if (pick(a, 2))
        (void)expect(a, sonde_memory_reset(c, &err), &err);
    (void)expect(a, sonde_memory_stop(c, &err), &err);
    read_memory(a);
    (void)expect(a, sonde_memory_reset(c, &err), &err);
}

static void act_counters(actor *a)
{
    (void)sonde_counters_start(a->all->context, NULL); /* where there are any */
    run(a, any_session(a), 0);
    (void)sonde_counters_stop(a->all->context, NULL);
}

/* ------------------------------------------------------------------ forks */
/* A child does with the context what its parent's threads were busy with. */
static int in_child(sonde_context *c, const char *path)
{
    sonde_record *r = NULL;
    sonde_profile *p = NULL;
    (void)sonde_profiler_get(c, &p, NULL);
    sonde_profile_release(p);
    p = NULL;
    (void)sonde_profiler_stop(c, NULL, NULL);
    const bool fine = sonde_profiler_clear(c, NULL) == SONDE_OK &&
                      sonde_profiler_start(c, 1, NULL) == SONDE_OK &&
                      sonde_record_begin(c, "child", 0, &r, NULL) == SONDE_OK;
    sonde_record_end(r);
    const bool written = fine && sonde_profiler_dump(c, path, NULL) == SONDE_OK;
    (void)remove(path);
    return written ? 0 : 1;
}

static void act_fork(actor *a)
{
    if (!can_fork() || pick(a, 4))
        return;
    char path[120];
    snprintf(path, sizeof path, "%s.child.json", a->path);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(in_child(a->all->context, path));
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
        fail(a, "a forked child went wrong");
}

/* ------------------------------------------------------------------ all at once */
/* Runs most often; what keeps others from forgetting is let go of as often as it is taken. */
static const struct {
    const char *name;
    void (*act)(actor *);
    uint32_t weight;
} acts[] = {{"run", act_run, 24},
            {"timed run", act_timed_run, 3},
            {"passing session", act_passing_session, 6},
            {"passing model", act_passing_model, 2},
            {"records", act_records, 6},
            {"operator profiler", act_op, 1},
            {"start", act_start, 6},
            {"stream", act_stream, 2},
            {"stop", act_stop, 8},
            {"get", act_get, 6},
            {"dump", act_dump, 1},
            {"clear", act_clear, 8},
            {"pause", act_pause, 2},
            {"shared recording", act_shared_recording, 4},
            {"nested recordings", act_nested_recordings, 3},
            {"memory profiler", act_memory, 3},
            {"counters", act_counters, 1},
            {"fork", act_fork, 1}};

static void *actor_main(void *arg)
{
    actor *a = arg;
    uint32_t total = 0;
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        total += acts[i].weight;
    for (int round = 0; round < a->all->rounds; round++) {
        uint32_t at = pick(a, total);
        size_t i = 0;
        for (; at >= acts[i].weight; i++)
            at -= acts[i].weight;
        a->act = acts[i].name;
        acts[i].act(a);
    }
    return NULL;
}

static bool open_all(shared *all)
{
    static const char *const names[MODELS] = {"tiny_mlp", "tiny_cnn", "tiny_loop", "tiny_dynamic"};
    sonde_error err;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = 2;
    pthread_rwlock_init(&all->lock, NULL);
    bool fine = sonde_context_create(&o, &all->context, &err) == SONDE_OK;
    for (int m = 0; m < MODELS && fine; m++) {
        fine = sonde_zoo_build(all->context, names[m], 1, &all->models[m], &err) == SONDE_OK;
        for (int s = 0; s < SESSIONS && fine; s++)
            fine =
                sonde_session_create(all->models[m], NULL, &all->sessions[m][s], &err) == SONDE_OK;
    }
    return fine;
}

static void close_all(shared *all)
{
    (void)sonde_profiler_stop(all->context, NULL, NULL);
    sonde_recording_release(all->recording);
    for (int m = 0; m < MODELS; m++) {
        for (int s = 0; s < SESSIONS; s++)
            sonde_session_release(all->sessions[m][s]);
        sonde_model_release(all->models[m]);
    }
    sonde_context_release(all->context);
    pthread_rwlock_destroy(&all->lock);
}

/* With a context of its own, so that its end is part of it. */
static int stress(int rounds, uint64_t seed)
{
    shared all = {.messages = stderr, .rounds = rounds};
    actor actors[THREADS];
    if (!open_all(&all))
        return 1;
    FILE *nowhere = fopen("/dev/null", "w");
    stderr = nowhere ? nowhere : stderr;
    int started = 0;
    for (; started < THREADS; started++) {
        actor *a = &actors[started];
        *a = (actor){.all = &all, .state = seed * THREADS + (uint64_t)started};
        snprintf(a->path, sizeof a->path, "/tmp/sonde-test-stress-%ld-%d.pftrace", (long)getpid(),
                 started);
        if (pthread_create(&a->thread, NULL, actor_main, a) != 0)
            break;
    }
    for (int i = 0; i < started; i++)
        pthread_join(actors[i].thread, NULL);
    stderr = all.messages;
    if (nowhere)
        fclose(nowhere);
    close_all(&all);
    for (int i = 0; i < started; i++)
        (void)remove(actors[i].path);
    return atomic_load(&all.failures) + (started < THREADS);
}

static int number_of(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text && *text ? atoi(text) : otherwise;
}

TEST(what_is_read_outlives_what_is_cleared)
{
    const int rounds = number_of("SONDE_STRESS_ROUNDS", 300);
    const time_t end = time(NULL) + number_of("SONDE_STRESS_SECONDS", 0);
    uint64_t seed = test_seed;
    do {
        const int failures = stress(rounds, seed);
        CHECK_MSG(failures == 0, "%d failures with seed %llu", failures, (unsigned long long)seed);
        seed++;
    } while (time(NULL) < end);
}

TEST_MAIN()
