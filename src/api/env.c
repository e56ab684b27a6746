/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment asks of any program that links the library: SONDE_TIMING prints a table
 * after every run, SONDE_TRACE writes a trace of the whole process (a .pftrace while it runs,
 * others when it ends), SONDE_PROFILE a folder of sheets and traces, SONDE_TRACE_LIMIT says how
 * large traces may be, SONDE_LEVEL how much is recorded, SONDE_LABELS what the profiles are called.
 * Nothing here can fail a program: problems are said on stderr and that is all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/internal.h"
#include "base/boolean.h"
#include "base/date.h"

static struct {
    pthread_once_t once;
    sn_env env;
    int64_t local_s;     /* local time less UTC: asked for once, as a child must not ask (date.h) */
    pid_t loaded;        /* the process that loaded the library: the files of others name theirs */
    pid_t pid;           /* of the process that read the environment: a forked child differs */
    _Atomic int written; /* traces so far: the second context gets a name of its own */
    _Atomic bool warned; /* what is wrong in SONDE_TIMING has been said */
    sn_allocator alloc;  /* of the labels, which stay */
} state = {.once = PTHREAD_ONCE_INIT};

/* Children may be the first to run a model, and each of them would write its parent's file. */
__attribute__((constructor)) static void remember_process(void)
{
    state.loaded = getpid();
}

/* What comes before a mistake counts. */
static void read_labels(const char *text)
{
    sonde_error err = {.status = SONDE_OK};
    sn_allocator_init_system(&state.alloc);
    sn_labels_init_changes(&state.env.labels, &state.alloc);
    if (text && sn_labels_parse(&state.env.labels, text, &err) != SONDE_OK)
        fprintf(stderr, "sonde: SONDE_LABELS: %s\n", err.message);
}

/* "64M" in bytes, as of --trace-limit; "0" and "none": no limit. */
static bool parse_limit(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    char *end;
    *bytes = 0;
    if (strcmp(text, "none") == 0)
        return true;
    errno = 0;
    const long long n = strtoll(text, &end, 10);
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    const int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (errno || n < 0 || end == text || (*end && (!unit || end[1])) || n > INT64_MAX >> shift)
        return false;
    *bytes = (uint64_t)n << shift;
    return true;
}

static void read_limit(const char *text)
{
    state.env.trace_limit = SN_TRACE_LIMIT;
    uint64_t bytes;
    if (!text || !*text)
        return;
    if (parse_limit(text, &bytes))
        state.env.trace_limit = state.env.stream_limit = bytes;
    else
        fprintf(stderr,
                "sonde: SONDE_TRACE_LIMIT is '%s', expected a number of bytes such as 500M or 2G, "
                "or none\n",
                text);
}

static void read_env(void)
{
    const char *timing = getenv("SONDE_TIMING"), *trace = getenv("SONDE_TRACE");
    const char *level = getenv("SONDE_LEVEL");
    state.pid = getpid();
    state.env.timing = timing != NULL;
    state.env.timing_text = timing ? timing : "";
    state.env.trace_path = sn_boolean_is_off(trace) ? NULL : trace;
    const size_t n = state.env.trace_path ? strlen(trace) : 0;
    state.env.trace_streams = n >= 8 && strcmp(trace + n - 8, ".pftrace") == 0;
    const char *profile = getenv("SONDE_PROFILE"), *instances = getenv("SONDE_INSTANCES");
    bool plain = false; /* "yes", and not the name of a folder */
    if (!sn_boolean_is_off(profile))
        state.env.profile_dir = sn_boolean_parse(profile, &plain) ? "sonde_profiling" : profile;
    if (state.env.profile_dir) {
        const time_t now = time(NULL);
        struct tm local;
        state.local_s = localtime_r(&now, &local) ? (int64_t)local.tm_gmtoff : 0;
    }
    if (instances && *instances) {
        char *end;
        const long count = strtol(instances, &end, 10);
        if (*end || count < 1 || count > SN_API_MAX_INSTANCES)
            fprintf(stderr, "sonde: SONDE_INSTANCES is '%s', expected a number from 1 to %d\n",
                    instances, SN_API_MAX_INSTANCES);
        else
            state.env.instances = (int)count;
    }
    read_labels(getenv("SONDE_LABELS"));
    read_limit(getenv("SONDE_TRACE_LIMIT"));
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
    if (!options) {
        const bool warned = atomic_exchange(&state.warned, true);
        sn_table_options_parse(sn_api_env()->timing_text, &from_env, &arena, warned ? NULL : warn,
                               NULL);
    }
    sonde_status st = sn_records_profile(&c->records, since, run, 1, &p, &err);
    if (st == SONDE_OK) {
        sn_sink sink = {.write = write_stderr};
        st = sn_export_table(p, options ? options : &from_env, &sink, &err);
    }
    if (st != SONDE_OK)
        fprintf(stderr, "sonde: cannot print the timing table: %s\n", err.message);
    sn_profile_free(p);
    sn_arena_free(&arena);
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
    if (pid != (long)state.loaded && !has_pid)
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
    pthread_mutex_lock(&c->records.lock);
    sn_observer *o = &c->env.observer;
    if (o->level && !c->env.stream && !c->env.failed) {
        sonde_error err = {.status = SONDE_OK};
        char path[4200];
        expand_path(env->trace_path, path, sizeof path);
        if (!env->profile_dir)
            o->since = SN_NO_RECORDS; /* the stream reads them, and nobody after it */
        if (sn_stream_open(&c->env.stream, &c->records, path, c->core.trace->start_ticks, o->level,
                           0, false, env->stream_limit, NULL, &err)) {
            fprintf(stderr, "sonde: SONDE_TRACE: %s\n", err.message);
            c->env.failed = true;
        }
    }
    pthread_mutex_unlock(&c->records.lock);
}

/* ------------------------------------------------------------------ SONDE_PROFILE */
/* Reads the count of profiles in an open file and writes the next; 0 when it holds no number. */
static unsigned long count_on(int fd)
{
    char text[32] = "";
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    const unsigned long count = n > 0 ? strtoul(text, NULL, 10) : 0;
    const int bytes = snprintf(text, sizeof text, "%lu\n", count + 1);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)bytes, 0) != bytes)
        fprintf(stderr, "sonde: SONDE_INSTANCES: cannot write the instance count: %s\n",
                strerror(errno));
    return count;
}

/* Profiles of a folder take turns, 0 … instances - 1 and again: whichever processes of a set write
 * first, and when, they have different numbers. The count is in a file that is locked meanwhile. */
static int turn(const char *folder, int instances)
{
    char path[4300];
    snprintf(path, sizeof path, "%s/.instances", folder);
    const int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    int locked = fd < 0 ? -1 : flock(fd, LOCK_EX);
    while (locked != 0 && fd >= 0 && errno == EINTR)
        locked = flock(fd, LOCK_EX);
    const int number = locked == 0 ? (int)(count_on(fd) % (unsigned long)instances) : 0;
    if (fd >= 0)
        close(fd); /* and unlocks */
    return number;
}

/* The names of a profile's files, up to their suffix. */
typedef struct name {
    const char *folder;
    char text[96]; /* "profiling_<date>_<number>" */
} name;

static const char *const files[][2] = {
    {"profiling_trace", "json"}, {"profiling_csv", "csv"}, {"profiling_csv", "xlsx"}};
enum { FILES = sizeof files / sizeof *files };

static void path_of(const name *own, int file, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/%s/%s.%s", own->folder, files[file][0], own->text, files[file][1]);
}

/* Creates the first file; false: one of the names is taken, or it cannot be (errno says). */
static bool take_name(const name *own)
{
    char path[4400];
    for (int i = 1; i < FILES; i++) {
        path_of(own, i, path, sizeof path);
        if (access(path, F_OK) == 0) {
            errno = EEXIST;
            return false;
        }
    }
    path_of(own, 0, path, sizeof path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Names that nobody has. With SONDE_INSTANCES the number stays in its range: who meets a profile
 * of the same second and number adds a further one. */
static bool find_name(name *own, const char *date, int *number)
{
    const int instances = sn_api_env()->instances;
    *number = instances ? turn(own->folder, instances) : 0;
    for (int k = 1; k < 100000; k++) {
        if (instances && k > 1)
            snprintf(own->text, sizeof own->text, "profiling_%s_%d_%d", date, *number, k);
        else
            snprintf(own->text, sizeof own->text, "profiling_%s_%d", date, *number);
        if (take_name(own))
            return true;
        if (errno != EEXIST)
            return false;
        *number += !instances;
    }
    return false;
}

static bool make_folder(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

/* What is left out is said on stderr, like everything here: when a program ends, what its own log
 * writes to may be gone. */
static sn_log log_of(const sonde_context *c)
{
    return (sn_log){.level = c->core.log.sink ? c->core.log.level : SN_LOG_WARN,
                    .sink = sn_log_stderr};
}

static void write_folder(sn_profile *p, const sn_export_options *limited)
{
    name own = {.folder = sn_api_env()->profile_dir};
    char path[4400], date[32];
    const sn_date d = sn_date_of((int64_t)(sn_wall_ns() / 1000000000u) + state.local_s);
    snprintf(date, sizeof date, "%04d-%02d-%02d_%02d-%02d-%02d", (int)d.year, d.month, d.day,
             d.hour, d.minute, d.second);
    bool fine = make_folder(own.folder);
    for (int i = 0; i < 2 && fine; i++) {
        snprintf(path, sizeof path, "%s/%s", own.folder, files[i][0]);
        fine = make_folder(path);
    }
    if (!fine || !find_name(&own, date, &p->instance)) {
        fprintf(stderr, "sonde: SONDE_PROFILE: cannot write '%s': %s\n", own.folder,
                strerror(errno));
        return;
    }
    for (int i = 0; i < FILES; i++) {
        sonde_error err = {.status = SONDE_OK};
        path_of(&own, i, path, sizeof path);
        if (!sn_exporter_for_path(path) || sn_export_file_with(p, path, limited, &err) == SONDE_OK)
            continue;
        fprintf(stderr, "sonde: SONDE_PROFILE: %s\n", err.message);
        if (i == 0)
            unlink(path); /* the empty one that took the name */
    }
}

/* ------------------------------------------------------------------ a context's life */
static bool wants_files(void)
{
    return sn_api_env()->trace_path || sn_api_env()->profile_dir;
}

static sonde_status begin_life(sonde_context *c, sonde_error *err)
{
    (void)err;
    c->env.observer.since = SN_NO_RECORDS;
    if (wants_files()) {
        c->env.observer.level = sn_api_env()->level ? sn_api_env()->level : 2;
        c->env.observer.since = 0;
    }
    sn_records_add(&c->records, &c->env.observer);
    return SONDE_OK;
}

/* The parent's threads write the parent's traces; a child writes its own when it ends. */
static void after_fork(sonde_context *c)
{
    c->env.stream = NULL;
    if (c->env.observer.level)
        c->env.observer.since = 0;
}

sonde_status sn_api_ignore_env(sonde_context *c, sonde_error *err)
{
    pthread_mutex_lock(&c->records.lock);
    c->env.observer.level = 0;
    c->env.observer.since = SN_NO_RECORDS;
    const sonde_status st = sn_records_set_level(&c->records, err);
    pthread_mutex_unlock(&c->records.lock);
    return st;
}

/* Writes, or ends, the files SONDE_TRACE and SONDE_PROFILE ask for. */
static void write_files(sonde_context *c)
{
    const sn_env *env = sn_api_env();
    sn_observer reader;
    pthread_mutex_lock(&c->records.lock);
    const int level = c->env.observer.level;
    const bool failed = c->env.failed;
    sn_stream *stream = c->env.stream;
    sn_records_read_begin(&c->records, &reader, c->records.fork_ticks);
    c->env.stream = NULL;
    c->env.observer.level = 0;
    c->env.observer.since = SN_NO_RECORDS;
    (void)sn_records_set_level(&c->records, NULL);
    pthread_mutex_unlock(&c->records.lock);
    sonde_error err = {.status = SONDE_OK};
    const sn_log log = log_of(c);
    /* Figures in a limited file are those of all runs. */
    const sn_export_options limited = {.limit = env->trace_limit, .log = &log};
    sonde_status st = sn_stream_close(stream, &log, &err);
    if (st != SONDE_OK)
        fprintf(stderr, "sonde: SONDE_TRACE: %s\n", err.message);
    const bool traces = env->trace_path && !stream && !failed;
    sn_profile *p = NULL;
    st = SONDE_OK;
    if (level && (traces || env->profile_dir))
        st = sn_records_profile(&c->records, reader.since, 0, level, &p, &err);
    sn_records_read_end(&c->records, &reader);
    /* A context that never ran anything (another one did) leaves no file. */
    if (st == SONDE_OK && p && p->spans.n > 0) {
        if (env->profile_dir)
            write_folder(p, &limited);
        char path[4200];
        if (traces) {
            expand_path(env->trace_path, path, sizeof path);
            st = sn_export_file_with(p, path, &limited, &err);
        }
    }
    if (st != SONDE_OK)
        fprintf(stderr, "sonde: SONDE_TRACE: %s\n", err.message);
    sn_profile_free(p);
}

const sn_context_observer sn_env_observer = {
    .made = begin_life, .forked = after_fork, .ending = write_files, .wants_exit = wants_files};
