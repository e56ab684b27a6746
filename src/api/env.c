/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment asks of any program that links the library: SONDE_TIMING prints a table
 * after every run, SONDE_TRACE writes a trace of the whole process (a .pftrace while it runs,
 * others when it ends), SONDE_PROFILE a folder of sheets and traces, SONDE_LEVEL says how much is
 * recorded. Nothing here can fail a program: problems are said on stderr and that is all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/stream.h"

static struct {
    pthread_once_t once;
    sn_env env;
    pid_t pid;           /* of the process that read the environment: a forked child differs */
    _Atomic int written; /* traces so far: the second context gets a name of its own */
} state = {.once = PTHREAD_ONCE_INIT};

static void read_env(void)
{
    const char *timing = getenv("SONDE_TIMING"), *trace = getenv("SONDE_TRACE");
    const char *level = getenv("SONDE_LEVEL");
    state.pid = getpid();
    state.env.timing = timing != NULL;
    state.env.timing_text = timing ? timing : "";
    state.env.trace_path = trace && *trace ? trace : NULL;
    const size_t n = trace ? strlen(trace) : 0;
    state.env.trace_streams = n >= 8 && strcmp(trace + n - 8, ".pftrace") == 0;
    const char *profile = getenv("SONDE_PROFILE"), *instances = getenv("SONDE_INSTANCES");
    if (profile && *profile && strcmp(profile, "0") != 0)
        state.env.profile_dir = strcmp(profile, "1") == 0 ? "sonde_profiling" : profile;
    state.env.instances = 1;
    if (instances && *instances) {
        char *end = NULL;
        const long count = strtol(instances, &end, 10);
        if (!*end && count >= 1 && count <= 100000)
            state.env.instances = (int)count;
        else
            fprintf(stderr, "sonde: SONDE_INSTANCES is '%s', expected a number from 1\n",
                    instances);
    }
    if (level && *level) {
        if (level[0] >= '1' && level[0] <= '3' && !level[1])
            state.env.level = level[0] - '0';
        else
            fprintf(stderr, "sonde: SONDE_LEVEL is '%s', expected 1, 2 or 3\n", level);
    }
}

const sn_env *sn_api_env(void)
{
    pthread_once(&state.once, read_env);
    return &state.env;
}

/* ------------------------------------------------------------------ SONDE_TIMING */
static bool write_stderr(sn_sink *sink, const void *data, size_t bytes)
{
    (void)sink;
    return fwrite(data, 1, bytes, stderr) == bytes;
}

static void warn(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "sonde: SONDE_TIMING: %s\n", message);
}

void sn_api_print_timing(sonde_context *c, uint64_t since, uint32_t run,
                         const sn_table_options *options)
{
    sonde_error err = {.status = SONDE_OK};
    sn_profile *p = NULL;
    sn_table_options from_env = {0};
    sn_arena arena;
    sn_arena_init(&arena, &c->alloc);
    if (!options)
        sn_table_options_parse(sn_api_env()->timing_text, &from_env, &arena, warn, NULL);
    sonde_status st = sn_api_profile_build(c, since, run, 1, &p, &err);
    if (st == SONDE_OK) {
        sn_sink sink = {.write = write_stderr};
        st = sn_export_table(p, options ? options : &from_env, &sink, &err);
    }
    if (st != SONDE_OK)
        fprintf(stderr, "sonde: no timing table: %s\n", err.message);
    sn_profile_free(p);
    sn_arena_free(&arena);
    pthread_mutex_lock(&c->lock);
    sn_api_forget(c);
    pthread_mutex_unlock(&c->lock);
}

/* ------------------------------------------------------------------ SONDE_TRACE */
/* "%p" ► process id, "%t" ► seconds since the epoch, "%%" ► "%"; then, before the suffix, the id of
 * a forked child and the number of a further context. */
static void expand_path(const char *pattern, char *out, size_t cap)
{
    const long pid = (long)getpid();
    const int nth = atomic_fetch_add(&state.written, 1) + 1;
    bool has_pid = false;
    size_t n = 0;
    char body[4096];
    for (const char *p = pattern; *p && n + 32 < sizeof body; p++) {
        if (p[0] == '%' && p[1] == 'p') {
            n += (size_t)snprintf(body + n, sizeof body - n, "%ld", pid);
            has_pid = true;
            p++;
        } else if (p[0] == '%' && p[1] == 't') {
            n += (size_t)snprintf(body + n, sizeof body - n, "%lld", (long long)time(NULL));
            p++;
        } else {
            body[n++] = *p;
            p += p[0] == '%' && p[1] == '%';
        }
    }
    body[n] = 0;
    const char *name = strrchr(body, '/');
    const char *dot = strrchr(name ? name : body, '.');
    const int stem = (int)(dot ? (size_t)(dot - body) : n);
    char child[32] = "", number[32] = "";
    if (pid != (long)state.pid && !has_pid)
        snprintf(child, sizeof child, ".%ld", pid);
    if (nth > 1)
        snprintf(number, sizeof number, "_%d", nth);
    snprintf(out, cap, "%.*s%s%s%s", stem, body, child, number, dot ? dot : "");
}

void sn_api_begin_trace(sonde_context *c)
{
    const sn_env *env = sn_api_env();
    if (!env->trace_streams || getpid() != state.pid)
        return;
    pthread_mutex_lock(&c->lock);
    if (c->env_level && !c->env_stream) {
        sonde_error err = {.status = SONDE_OK};
        char path[4200];
        expand_path(env->trace_path, path, sizeof path);
        if (sn_stream_open(&c->env_stream, c, path, c->core.trace->start_ticks, c->env_level, 0,
                           &err)) {
            fprintf(stderr, "sonde: SONDE_TRACE: %s\n", err.message);
            state.env.trace_streams = false; /* said once */
            state.env.trace_path = NULL;
        }
    }
    pthread_mutex_unlock(&c->lock);
}

/* ------------------------------------------------------------------ SONDE_PROFILE */
/* A file of its own: processes and contexts that run side by side take the next number. */
static bool take_number(const char *folder, const char *date, int *number)
{
    for (int k = *number; k < 100000; k++) {
        char path[4300];
        snprintf(path, sizeof path, "%s/profiling_trace/profiling_%s_%d.json", folder, date, k);
        const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            close(fd);
            *number = k;
            return true;
        }
        if (errno != EEXIST)
            return false;
    }
    return false;
}

static bool make_folder(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

static void write_folder(const sn_profile *p)
{
    const sn_env *env = sn_api_env();
    char path[4300], date[32];
    const time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(date, sizeof date, "%Y-%m-%d_%H-%M-%S", &local);
    bool fine = make_folder(env->profile_dir);
    snprintf(path, sizeof path, "%s/profiling_csv", env->profile_dir);
    fine = fine && make_folder(path);
    snprintf(path, sizeof path, "%s/profiling_trace", env->profile_dir);
    fine = fine && make_folder(path);
    int number = 0;
    if (!fine || !take_number(env->profile_dir, date, &number)) {
        fprintf(stderr, "sonde: SONDE_PROFILE: '%s' cannot be written: %s\n", env->profile_dir,
                strerror(errno));
        return;
    }
    static const char *const files[][2] = {
        {"profiling_trace", "json"}, {"profiling_csv", "csv"}, {"profiling_csv", "xlsx"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        sonde_error err = {.status = SONDE_OK};
        snprintf(path, sizeof path, "%s/%s/profiling_%s_%d.%s", env->profile_dir, files[i][0], date,
                 number, files[i][1]);
        if (!sn_exporter_for_path(path) || sn_export_file(p, path, &err) == SONDE_OK)
            continue;
        fprintf(stderr, "sonde: SONDE_PROFILE: %s\n", err.message);
        if (i == 0)
            unlink(path); /* the empty one that took the number */
    }
}

void sn_api_write_trace(sonde_context *c)
{
    const sn_env *env = sn_api_env();
    if (!c->env_level)
        return;
    pthread_mutex_lock(&c->lock);
    const int level = c->env_level;
    sn_stream *stream = c->env_stream;
    c->env_stream = NULL;
    c->env_level = 0;
    (void)sn_api_set_level(c, NULL);
    pthread_mutex_unlock(&c->lock);
    sonde_error err = {.status = SONDE_OK};
    sonde_status st = sn_stream_close(stream, &err);
    if (st != SONDE_OK)
        fprintf(stderr, "sonde: SONDE_TRACE: %s\n", err.message);
    if (stream && !env->profile_dir)
        return;
    sn_profile *p = NULL;
    st = sn_api_profile_build(c, c->fork_ticks, 0, level, &p, &err);
    /* A context that never ran anything (another one did) leaves no file. */
    if (st == SONDE_OK && p->spans.n > 0) {
        if (env->profile_dir)
            write_folder(p);
        char path[4200];
        if (env->trace_path && !stream) {
            expand_path(env->trace_path, path, sizeof path);
            st = sn_export_file(p, path, &err);
        }
    }
    if (st != SONDE_OK)
        fprintf(stderr, "sonde: SONDE_TRACE: %s\n", err.message);
    sn_profile_free(p);
}
