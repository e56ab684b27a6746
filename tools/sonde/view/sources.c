/* SPDX-License-Identifier: Apache-2.0 */
/* Where the pages come from. A model is measured by the thread that calls, as `sonde profile` does
 * it; another thread makes a page after the first measured run, and then when somebody looks. It
 * takes at most a tenth of the time, because the runs that are measured meanwhile share the machine
 * with it, and a page holds no more than the first and the latest records: some models run a
 * hundred thousand times per second. The last page holds all of them.
 * A file is looked at twice a second and read again when it has changed. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "sonde/experimental/memory.h"
#include "sonde/experimental/profile.h"
#include "sonde/experimental/recording.h"
#include "view/parts.h"

enum { REST = 9 };            /* times as long as making a page took, until the next is made */
enum { LEAST_MS = 500 };      /* and at least this */
enum { LIVE_RECORDS = 8192 }; /* of each thread in a page of a run that goes on */
enum { SILENCE_MS = 10000 };  /* a file that nobody wrote to for so long is all that comes */

static double rest_after(double took_ms)
{
    return took_ms * (double)REST > (double)LEAST_MS ? took_ms * (double)REST : (double)LEAST_MS;
}

static sonde_export_options called(const char *title)
{
    sonde_export_options how = SONDE_INIT(sonde_export_options);
    how.title = title;
    return how;
}

/* ------------------------------------------------------------------ a model */
static int show_so_far(const view_run *v, shown *s)
{
    const sonde_export_options how = called(v->title);
    sonde_profile *profile = NULL;
    sonde_error err;
    if (sonde_profiler_get_latest(v->r.model.context, LIVE_RECORDS, &profile, &err))
        return fail("%s", err.message);
    const int code = shown_set(s, profile, &how, true);
    sonde_profile_release(profile);
    return code;
}

int source_open_model(view_run *v, shown *s, const char *model)
{
    v->title = model;
    const int code = runner_open(&v->r, v->setup, model);
    v->r.stop_when_full = true;
    return code ? code : show_so_far(v, s);
}

typedef struct painter { /* the thread that makes pages while others measure */
    view_run *v;
    shown *s;
    pthread_t thread;
} painter;

static void *paint(void *arg)
{
    const painter *p = arg;
    double rest = 0;
    while (shown_wait_asked(p->s, rest)) {
        const bool early = !p->v->measured; /* somebody waits for the first figures */
        const double start = now_ms();
        if (show_so_far(p->v, p->s))
            break; /* which was said; the end of the run makes the next */
        const double took = now_ms() - start;
        rest = early ? took * (double)REST : rest_after(took);
    }
    return NULL;
}

static void first_run(void *user)
{
    painter *p = user;
    p->v->measured = true;
    shown_ask(p->s);
}

/* More than a page of a run that goes on holds: making the whole one takes a while. */
static bool is_long(const view_run *v)
{
    sonde_recorder_info info = SONDE_INIT(sonde_recorder_info);
    return sonde_recorder_info_get(v->r.model.context, &info, NULL) == SONDE_OK &&
           info.held > LIVE_RECORDS;
}

static int measure(view_run *v)
{
    const measuring_options *m = &v->setup->measuring;
    const int64_t least = v->setup->common.verbose > 0; /* the run that prints is not measured */
    const int64_t warmup = m->warmup >= 0 ? m->warmup : 3;
    sonde_error err;
    if (v->memory && sonde_memory_start(v->r.model.context, &err))
        return fail("%s", err.message);
    const int code =
        runner_run(&v->r, v->setup, warmup > least ? warmup : least, m->iterations, SIZE_MAX);
    if (v->memory && sonde_memory_stop(v->r.model.context, &err))
        return fail("%s", err.message);
    return code;
}

int source_run_model(view_run *v, shown *s)
{
    const sonde_export_options how = called(v->title);
    painter p = {.v = v, .s = s};
    if (pthread_create(&p.thread, NULL, paint, &p))
        return fail("cannot start a thread");
    v->r.first = first_run;
    v->r.user = &p;
    int code = measure(v);
    shown_finish(s); /* the painter's last page must not come behind the whole one */
    pthread_join(p.thread, NULL);
    if (code || v->r.cut) /* nobody would see the page */
        return code;
    if (is_long(v) && (code = show_so_far(v, s)) != EXIT_OK)
        return code;
    sonde_profile *profile = NULL;
    sonde_error err;
    if (sonde_profiler_stop(v->r.model.context, &profile, &err))
        code = fail("%s", err.message);
    if (!code)
        code = shown_set(s, profile, &how, false);
    sonde_profile_release(profile);
    return code;
}

void source_close_model(view_run *v)
{
    runner_close(&v->r);
}

/* ------------------------------------------------------------------ a file */
typedef struct stamp {
    off_t bytes;
    ino_t number;
    struct timespec written;
} stamp;

struct watched {
    const char *path;
    int64_t max_memory;
    stamp seen;
    double changed_ms;
    bool live;
};

/* All 0 for what is not there and for what is no file: a pipe is read once, and whoever opens one
 * that nobody writes to waits. */
static stamp stamp_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return (stamp){0};
    return (stamp){.bytes = st.st_size, .number = st.st_ino, .written = st.st_mtim};
}

static bool same_stamp(stamp a, stamp b)
{
    return a.bytes == b.bytes && a.number == b.number && a.written.tv_sec == b.written.tv_sec &&
           a.written.tv_nsec == b.written.tv_nsec;
}

static bool is_fresh(stamp s)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const double age_ms = (double)(now.tv_sec - s.written.tv_sec) * 1e3 +
                          (double)(now.tv_nsec - s.written.tv_nsec) / 1e6;
    return age_ms < (double)SILENCE_MS;
}

/* A trace without its last record: the note says so. */
static bool is_cut(const sonde_profile *profile)
{
    sonde_profile_summary facts = SONDE_INIT(sonde_profile_summary);
    return sonde_profile_summary_get(profile, &facts, NULL) == SONDE_OK &&
           strstr(facts.note, "still being written");
}

static sonde_status read_quietly(const char *path, int64_t max_memory, sonde_profile **profile)
{
    sonde_context *context = reading_context(max_memory);
    if (!context)
        return SONDE_OUT_OF_MEMORY;
    const sonde_status st = sonde_profile_load_with(context, path, &unmapped, profile, NULL);
    sonde_context_release(context);
    return st;
}

bool source_is_profile(const char *path, int64_t max_memory)
{
    struct stat st;
    sonde_profile *profile = NULL;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return true; /* a look at a pipe would take what is in it */
    const bool is = read_quietly(path, max_memory, &profile) == SONDE_OK;
    sonde_profile_release(profile);
    return is;
}

int source_open_file(watched **w, shown *s, const common_options *o, int64_t max_memory,
                     const char *path)
{
    const sonde_export_options how = called(path);
    sonde_profile *profile = NULL;
    watched *made = *w = need(calloc(1, sizeof *made));
    made->path = path;
    made->max_memory = max_memory;
    made->seen = stamp_of(path);
    made->changed_ms = now_ms();
    int code = load_profile(o, max_memory, path, &profile);
    if (!code) {
        made->live = is_cut(profile) && is_fresh(made->seen);
        code = shown_set(s, profile, &how, made->live);
    }
    sonde_profile_release(profile);
    return code;
}

/* A file that cannot be read now may be half written: what was shown stays. */
static void read_again(watched *w, shown *s)
{
    const sonde_export_options how = called(w->path);
    sonde_profile *profile = NULL;
    if (read_quietly(w->path, w->max_memory, &profile) == SONDE_OK) {
        w->live = is_cut(profile);
        (void)shown_set(s, profile, &how, w->live);
    }
    sonde_profile_release(profile);
}

void source_watch_file(watched *w, shown *s)
{
    double took = 0;
    while (shown_wait(s, rest_after(took))) {
        const stamp now = stamp_of(w->path);
        const double start = now_ms();
        if (!same_stamp(now, w->seen)) {
            w->seen = now;
            w->changed_ms = start;
            if (now.number)
                read_again(w, s);
        } else if (w->live && start - w->changed_ms > (double)SILENCE_MS) {
            w->live = false;
            shown_end(s);
        }
        took = now_ms() - start;
    }
}

void source_close_file(watched *w)
{
    free(w);
}

/* ------------------------------------------------------------------ two files */
static int load_measured(const common_options *o, int64_t max_memory, const char *path,
                         sonde_profile **profile)
{
    sonde_profile_summary facts = SONDE_INIT(sonde_profile_summary);
    sonde_error err;
    const int code = load_profile(o, max_memory, path, profile);
    if (code)
        return code;
    if (sonde_profile_summary_get(*profile, &facts, &err))
        return fail("%s", err.message);
    return facts.iterations ? EXIT_OK : fail("'%s' has no measured run to compare", path);
}

int source_open_two(shown *s, const common_options *o, int64_t max_memory, const char *old_path,
                    const char *new_path)
{
    sonde_export_options how = called(new_path);
    sonde_profile *before = NULL, *now = NULL;
    int code = load_measured(o, max_memory, old_path, &before);
    if (!code)
        code = load_measured(o, max_memory, new_path, &now);
    how.before = before;
    how.before_title = old_path;
    if (!code)
        code = shown_set(s, now, &how, false);
    sonde_profile_release(now);
    sonde_profile_release(before);
    return code;
}
