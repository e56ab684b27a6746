/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, and the process default: the only global of the library. Live contexts are listed so
 * that a forked child can reset their pools and so that traces asked for by SONDE_TRACE are written
 * when the process ends, by itself or by a signal (signals.c). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/internal.h"
#include "base/affinity.h"
#include "base/boolean.h"

/* Records per thread before the recorder drops and counts: 40 bytes each, touched as they fill. */
#define RING_CAP ((size_t)1 << 22)

static struct {
    pthread_mutex_t lock;
    sonde_context *fallback;  /* the process default, made at first use, never released */
    pthread_mutex_t log_lock; /* of what follows */
    void (*log)(void *user, int level, const char *line); /* of the default; NULL: none */
    void *log_user;
    sonde_context *live;
    bool hooked;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .log_lock = PTHREAD_MUTEX_INITIALIZER};

/* ------------------------------------------------------------------ hooks of the process */
/* A child finds what its parent's other threads left: with these locks held it is whole. */
static void before_fork(void)
{
    pthread_mutex_lock(&process.lock);
    for (sonde_context *c = process.live; c; c = c->next)
        sn_records_before_fork(&c->records);
    sn_fork_locks_before();
}

static void after_fork_parent(void)
{
    sn_fork_locks_after();
    for (sonde_context *c = process.live; c; c = c->next)
        sn_records_after_fork(&c->records, false);
    pthread_mutex_unlock(&process.lock);
}

static void after_fork_child(void)
{
    sn_fork_locks_after();
    pthread_mutex_init(&process.log_lock, NULL); /* nobody logs here yet */
    for (sonde_context *c = process.live; c; c = c->next) {
        /* Calls under way on other threads do not exist here. */
        sn_machine_after_fork(&c->machine);
        for (const sn_context_observer *const *o = sn_context_observers; *o; o++)
            if ((*o)->forked)
                (*o)->forked(c);
        sn_records_after_fork(&c->records, true);
    }
    pthread_mutex_unlock(&process.lock);
    sn_api_watch_signals_in_child();
}

/* Tells the observers that a context ends; `exits`: those who want to know when the process does.
 */
static void end_context(sonde_context *c, bool exits)
{
    for (const sn_context_observer *const *o = sn_context_observers; *o; o++)
        if ((*o)->ending && (!exits || ((*o)->wants_exit && (*o)->wants_exit())))
            (*o)->ending(c);
}

static void at_exit(void)
{
    pthread_mutex_lock(&process.lock);
    for (sonde_context *c = process.live; c; c = c->next)
        end_context(c, true);
    pthread_mutex_unlock(&process.lock);
}

void sonde_environment_finish(void)
{
    at_exit();
}

/* With the lock held. A process that cannot register hooks works, without them. */
static void hook_process(void)
{
    if (process.hooked)
        return;
    process.hooked = true;
    sn_pool_hook_fork();
    (void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
    bool wanted = false;
    for (const sn_context_observer *const *o = sn_context_observers; *o; o++)
        wanted |= (*o)->wants_exit && (*o)->wants_exit();
    if (!wanted)
        return;
    (void)atexit(at_exit);
    sn_api_watch_signals(at_exit);
}

/* ------------------------------------------------------------------ memory and log */
static void *alloc_user(sn_allocator *a, size_t bytes)
{
    const sonde_context *c = a->user;
    return c->user_alloc(c->user, bytes);
}

static void free_user(sn_allocator *a, void *ptr, size_t bytes)
{
    const sonde_context *c = a->user;
    c->user_free(c->user, ptr, bytes);
}

static void log_user(void *user, sn_log_level level, const char *line)
{
    const sonde_context *c = user;
    c->user_log(c->log_user, (int)level, line);
}

static void log_default(void *user, sn_log_level level, const char *line)
{
    (void)user;
    pthread_mutex_lock(&process.log_lock);
    if (process.log)
        process.log(process.log_user, (int)level, line);
    pthread_mutex_unlock(&process.log_lock);
}

void sonde_default_log(void (*log)(void *user, int level, const char *line), void *user)
{
    pthread_mutex_lock(&process.log_lock);
    process.log = log;
    process.log_user = user;
    pthread_mutex_unlock(&process.log_lock);
}

static sonde_status init_log(sonde_context *c, const sonde_context_options *o, sonde_error *err)
{
    if (o->log) {
        c->user_log = o->log;
        c->log_user = o->log_user;
        if (o->log_level < 0 || o->log_level > SN_LOG_DEBUG)
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "log_level is %d, expected 1 to 4",
                           o->log_level);
        c->core.log = (sn_log){.level = o->log_level ? (sn_log_level)o->log_level : SN_LOG_WARN,
                               .sink = log_user,
                               .user = c};
        return SONDE_OK;
    }
    const char *text = getenv("SONDE_LOG");
    sn_log_level level = SN_LOG_NONE;
    if (!sn_boolean_is_off(text)) {
        c->core.log.sink = sn_log_stderr;
        c->core.log.level = SN_LOG_WARN;
        if (sn_log_parse_level(text, &level))
            c->core.log.level = level;
        else
            sn_log_write(&c->core.log, SN_LOG_WARN,
                         "SONDE_LOG is '%s', expected error, warn, info or debug", text);
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ life */
/* What is wrong in the environment fails nothing: it is said, as its other words are. */
static void say_wrong(const sonde_context *c, const char *said)
{
    sonde_error
        clean; /* variables may have anything in them, also what moves a terminal's cursor */
    char *message = clean.message;
    snprintf(message, sizeof clean.message, "%s", said);
    for (char *p = message; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7F)
            *p = '?';
    if (c->core.log.sink)
        sn_log_write(&c->core.log, SN_LOG_WARN, "%s", message);
    else
        fprintf(stderr, "sonde: %s\n", message);
}

/* SONDE_THREADS, or 0 when it is unset or no number. */
static int env_threads(const sonde_context *c)
{
    const char *text = getenv("SONDE_THREADS");
    if (!text || !*text)
        return 0;
    char *end = NULL;
    errno = 0;
    const long n = strtol(text, &end, 10);
    if (*end == 0 && errno == 0 && n >= 0 && n <= SN_POOL_MOST)
        return (int)n;
    sonde_error wrong;
    (void)sn_fail(&wrong, SONDE_INVALID_ARGUMENT, "SONDE_THREADS is '%s', expected a number", text);
    say_wrong(c, wrong.message);
    return 0;
}

/* Another machine's /sys and /proc, to see what would be done there. */
static void find_system_root(sonde_context *c)
{
    const char *root = getenv("SONDE_SYSTEM_ROOT");
    c->core.system_root = c->system_root;
    if (root && strlen(root) < sizeof c->system_root)
        memcpy(c->system_root, root, strlen(root) + 1);
    else if (root)
        say_wrong(c, "SONDE_SYSTEM_ROOT is too long and is not used");
}

static sonde_status make_seats(sonde_context *c, const char *text, const char *name, int threads,
                               sonde_error *err)
{
    const sn_topology *t;
    SN_TRY(sn_numa_parse(text, name, &c->core.numa, err));
    if (c->core.numa.mode == SN_NUMA_OFF)
        return SONDE_OK;
    SN_TRY(sn_topology_get(&c->core.topology, c->core.system_root, &c->alloc, &t, err));
    const sn_seats_ask ask = {.numa = c->core.numa,
                              .threads = threads,
                              .here = sn_affinity_cpu(),
                              .quota_cores = c->core.cpu.quota_cores};
    return sn_seats_make(t, &ask, &c->alloc, &c->core.seats, err);
}

/* Where the pool sits. What SONDE_NUMA asks for and this machine does not have is said, and nothing
 * is bound. */
static sonde_status find_seats(sonde_context *c, const char *numa, int threads, sonde_error *err)
{
    const char *env = getenv("SONDE_NUMA");
    sonde_error wrong;
    find_system_root(c);
    if (numa)
        return make_seats(c, numa, "numa", threads, err);
    if (!env || !*env)
        return SONDE_OK;
    const sonde_status st = make_seats(c, env, "the value", threads, &wrong);
    if (st == SONDE_OUT_OF_MEMORY)
        return sn_fail(err, st, "%s", wrong.message);
    if (st) {
        sonde_error whole;
        c->core.numa = (sn_numa){.mode = SN_NUMA_OFF};
        (void)sn_fail(&whole, st, "SONDE_NUMA=%s is not used: %s", env, wrong.message);
        say_wrong(c, whole.message);
    }
    return SONDE_OK;
}

static void context_free(sonde_context *c)
{
    while (c->attachments) {
        sn_attachment *a = c->attachments;
        c->attachments = a->next;
        a->free(c, a);
    }
    if (c->core.trace)
        sn_exec_fini_context(&c->core);
    sn_pool_free(c->core.pool);
    sn_seats_free(c->core.seats);
    sn_topology_drop(&c->core.topology);
    sn_trace_free(c->core.trace);
    sn_machine_fini(&c->machine);
    sn_records_fini(&c->records);
    /* The allocator lives in what it frees: the last call goes through a copy. */
    if (c->user_free) {
        c->user_free(c->user, c, sizeof *c);
        return;
    }
    sn_allocator system;
    sn_allocator_init_system(&system);
    system.free(&system, c, sizeof *c);
}

static sonde_status context_init(sonde_context *c, const sonde_context_options *o, sonde_error *err)
{
    SN_TRY(init_log(c, o, err));
    const char *cpu = o->cpu ? o->cpu : getenv("SONDE_CPU");
    SN_TRY(sn_cpu_detect(&c->core.cpu, cpu && *cpu ? cpu : NULL, err));
    int threads = o->threads ? o->threads : env_threads(c);
    if (threads < 0 || threads > SN_POOL_MOST)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "threads is %d, expected 0 to %d", threads,
                       SN_POOL_MOST);
    c->core.threads_given = threads > 0;
    SN_TRY(find_seats(c, o->numa, threads, err));
    if (threads == 0)
        threads = c->core.seats ? c->core.seats->n : c->core.cpu.usable_cores;
    threads = threads < SN_POOL_MOST ? threads : SN_POOL_MOST;
    c->core.threads = threads;
    SN_TRY(sn_trace_create(&c->core.trace, &c->alloc, RING_CAP, err));
    SN_TRY(sn_pool_create_seated(&c->core.pool, c->core.seats, threads, &c->alloc, err));
    sn_pool_set_trace(c->core.pool, c->core.trace);
    SN_TRY(sn_exec_init_context(&c->core, err));
    for (const sn_context_observer *const *who = sn_context_observers; *who; who++)
        if ((*who)->made)
            SN_TRY((*who)->made(c, err));
    return sn_records_set_level(&c->records, err);
}

sonde_status sonde_context_create(const sonde_context_options *options, sonde_context **context,
                                  sonde_error *err)
{
    SN_REQUIRE(context, err);
    *context = NULL;
    sonde_context_options o;
    SN_OPTIONS(o, options, err);
    if (!o.alloc != !o.free)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "set both alloc and free, or neither");

    sn_allocator system;
    sn_allocator_init_system(&system);
    sonde_context *c =
        o.alloc ? o.alloc(o.alloc_user, sizeof *c) : system.alloc(&system, sizeof *c);
    if (!c)
        return sn_fail_memory(err, sizeof *c);
    memset(c, 0, sizeof *c);
    atomic_init(&c->refs, 1);
    sn_machine_init(&c->machine, &c->core);
    sn_records_init(&c->records, &c->core, &c->machine);
    c->records.labels = &sn_api_env()->labels;
    sn_allocator_init_system(&c->alloc);
    if (o.alloc) {
        c->user_alloc = o.alloc;
        c->user_free = o.free;
        c->user = o.alloc_user;
        c->alloc.alloc = alloc_user;
        c->alloc.alloc_kept = NULL;
        c->alloc.free = free_user;
        c->alloc.user = c;
    }
    c->alloc.limit_bytes = o.max_memory;
    c->core.alloc = &c->alloc;
    const sonde_status st = context_init(c, &o, err);
    if (st != SONDE_OK) {
        context_free(c);
        return st;
    }
    pthread_mutex_lock(&process.lock);
    hook_process();
    c->next = process.live;
    process.live = c;
    pthread_mutex_unlock(&process.lock);
    *context = c;
    return SONDE_OK;
}

sonde_context *sn_api_context_ref(sonde_context *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void sonde_context_release(sonde_context *c)
{
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_lock(&process.lock);
    for (sonde_context **p = &process.live; *p; p = &(*p)->next)
        if (*p == c) {
            *p = c->next;
            break;
        }
    pthread_mutex_unlock(&process.lock);
    end_context(c, false);
    context_free(c);
}

sonde_context *sn_api_context_if_made(sonde_context *c)
{
    if (c)
        return c;
    pthread_mutex_lock(&process.lock);
    c = process.fallback; /* lives as long as the process */
    pthread_mutex_unlock(&process.lock);
    return c;
}

sonde_status sn_api_context(sonde_context *c, sonde_context **out, sonde_error *err)
{
    if (c) {
        *out = sn_api_context_ref(c);
        return SONDE_OK;
    }
    *out = NULL;
    pthread_mutex_lock(&process.lock);
    sonde_context *found = process.fallback;
    pthread_mutex_unlock(&process.lock);
    if (!found) {
        sonde_context *made = NULL;
        SN_TRY(sonde_context_create(NULL, &made, err));
        pthread_mutex_lock(&process.lock);
        if (!process.fallback) {
            if (!made->core.log.sink)
                made->core.log = (sn_log){.level = SN_LOG_WARN, .sink = log_default};
            process.fallback = sn_api_context_ref(made);
        }
        found = process.fallback;
        pthread_mutex_unlock(&process.lock);
        if (found == made) {
            *out = made;
            return SONDE_OK;
        }
        sonde_context_release(made); /* another thread was first */
    }
    *out = sn_api_context_ref(found);
    return SONDE_OK;
}

int sonde_context_threads(sonde_context *context)
{
    sonde_context *c = NULL;
    if (sn_api_context(context, &c, NULL) != SONDE_OK)
        return 0;
    const int threads = c->core.threads;
    sonde_context_release(c);
    return threads;
}

const char *sonde_context_cpu(sonde_context *context)
{
    sonde_context *c = NULL;
    if (sn_api_context(context, &c, NULL) != SONDE_OK)
        return "";
    const char *name = sn_cpu_level_name(c->core.cpu.flags);
    sonde_context_release(c);
    return name;
}

/* ------------------------------------------------------------------ attachments */
sn_attachment *sn_api_attached(const sonde_context *c, const void *key)
{
    sn_attachment *a = c->attachments;
    while (a && a->key != key)
        a = a->next;
    return a;
}

void sn_api_attach(sonde_context *c, sn_attachment *a)
{
    a->next = c->attachments;
    c->attachments = a;
}
