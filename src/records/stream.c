/* SPDX-License-Identifier: Apache-2.0 */
/* A trace that is written while things happen: a thread of its own drains the rings ten times a
 * second, turns what it finds into spans and appends them to a .pftrace file. Memory stays flat
 * however long it goes on, and whatever kills the process, the file opens up to the last batch.
 * Records that another reader still wants stay in the rings; otherwise their places are freed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/thread.h"
#include "exec/session.h"
#include "export/pftrace_stream.h"
#include "export/writer.h"
#include "records/builder.h"
#include "records/steps.h"
#include "records/stream.h"

#define INTERVAL_NS 100000000u
/* Records a thread may make between two looks, and within one run when the drainer is behind. */
#define STREAM_CAP ((size_t)1 << 18)
/* Steps that may wait for the end of their run. */
#define MOST_WAITING ((size_t)1 << 20)

typedef struct position { /* how far a ring has been read */
    const sn_trace_ring *ring;
    size_t next;
} position;

struct sn_stream {
    sn_records *records;
    sn_allocator *alloc;
    sn_profile_builder builder;
    sn_time_window window; /* since the stream began: others may keep what is older */
    sn_pftrace *trace;
    sn_sink sink;
    char path[SN_PATH_BYTES];
    sn_file_writer file;
    SN_VEC(position) positions;
    size_t threads_told, steps_told, lives_told;
    const char *model_told; /* in the builder's arena; NULL: nothing yet */
    uint64_t dropped_told;
    uint64_t limit, bytes; /* of the file; no limit: 0 */
    uint64_t spans;        /* that are in it */
    uint64_t runs, left;   /* measured ones: in it, and after it was full */
    bool full;
    char note[160];
    pthread_t thread;
    _Atomic bool stop;
    pid_t pid;       /* that has the thread */
    sn_stream *next; /* of the records */
    sonde_status failed;
    sonde_error error;
};

/* Every batch reaches the file: it is what a crash leaves. */
static bool write_file(sn_sink *sink, const void *data, size_t bytes)
{
    sn_stream *s = sink->user;
    s->bytes += bytes;
    return sn_file_writer_put(&s->file, data, bytes) && sn_file_writer_flush(&s->file);
}

/* ------------------------------------------------------------------ draining */
static size_t *next_of(sn_stream *s, const sn_trace_ring *r)
{
    for (size_t i = 0; i < s->positions.n; i++)
        if (s->positions.data[i].ring == r)
            return &s->positions.data[i].next;
    const position p = {.ring = r, .next = atomic_load(&r->tail)};
    if (!sn_vec_push(&s->positions, s->alloc, p))
        return NULL;
    return &s->positions.data[s->positions.n - 1].next;
}

/* How far another stream of the context has read a ring; where it has not begun, nothing. */
static size_t read_by(const sn_stream *other, const sn_trace_ring *r, size_t own)
{
    size_t next = atomic_load_explicit(&r->tail, memory_order_relaxed);
    for (size_t i = 0; i < other->positions.n; i++)
        if (other->positions.data[i].ring == r)
            next = other->positions.data[i].next;
    return next < own ? next : own;
}

/* What one ring has that was not read yet; its places are freed unless others want them. */
static bool drain_ring(sn_stream *s, sn_trace_ring *r, bool others)
{
    sn_profile_builder *b = &s->builder;
    size_t *next = next_of(s, r);
    const uint32_t thread = sn_builder_thread(b, r);
    const size_t n = atomic_load_explicit(&r->n, memory_order_acquire);
    if (!next || thread == UINT32_MAX)
        return false;
    if (!sn_vec_reserve(&b->events, s->alloc, n - *next))
        return false;
    for (; *next < n; ++*next) {
        const sn_trace_rec *rec = &r->recs[*next & (r->cap - 1)];
        if (rec->t1 >= rec->t0)
            b->events.data[b->events.n++] = (sn_event){.rec = *rec, .thread = thread};
    }
    size_t read = n;
    for (const sn_stream *other = s->records->streams; other; other = other->next)
        if (other != s)
            read = read_by(other, r, read);
    if (!others)
        atomic_store_explicit(&r->tail, read, memory_order_release);
    return true;
}

/* Which other threads had a share of each operator is not known before it is written: all of them
 * get an arrow's end, and those without a slice show none. */
static uint64_t arrows_of(const sn_stream *s, const sn_prof_span *span)
{
    const size_t n = s->builder.p->threads_seen.n;
    const uint64_t all = n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
    if (span->cat == SN_CAT_THREAD)
        return span->parent != 0;
    if (span->cat != SN_CAT_OPERATOR || s->builder.p->level < 3 || span->thread >= 64)
        return 0;
    return all & ~((uint64_t)1 << span->thread);
}

/* Whether this batch would make the file too large. Batches are of whole runs. What a span takes is
 * not known before there are some, so the first batch only needs room for its beginning. */
static bool is_full(sn_stream *s)
{
    const size_t n = s->builder.p->spans.n;
    const double each = s->spans ? (double)s->bytes / (double)s->spans : 0;
    if ((double)s->bytes + each * (double)n > (double)s->limit)
        s->full = true;
    return s->full;
}

/* At once, and again at the end with all that were left out: a killed process tells nothing later.
 */
static bool tell_full(sn_stream *s)
{
    char limit[SN_BYTES_TEXT];
    sn_profile *p = s->builder.p;
    snprintf(
        s->note, sizeof s->note,
        "it has the first %llu of %llu runs, as its size is limited to %s; figures are those of "
        "the runs in it",
        (unsigned long long)s->runs, (unsigned long long)(s->runs + s->left),
        sn_bytes_text(limit, s->limit));
    p->note = s->note;
    p->note_stays = true;
    return sn_pftrace_facts(s->trace, p);
}

static uint64_t measured_runs(const sn_profile *p)
{
    uint64_t n = 0;
    for (size_t i = 0; i < p->spans.n; i++)
        n += p->spans.data[i].cat == SN_CAT_ITERATION && !p->spans.data[i].warmup;
    return n;
}

/* Which models ran is not known before they did, and nobody knows when the process ends. */
static bool tell_facts(sn_stream *s)
{
    const sn_profile *p = s->builder.p;
    if (p->model_name == s->model_told && p->dropped == s->dropped_told)
        return true;
    s->model_told = p->model_name;
    s->dropped_told = p->dropped;
    return sn_pftrace_facts(s->trace, p);
}

static bool write_batch(sn_stream *s)
{
    const sn_profile *p = s->builder.p;
    const bool before = s->full;
    bool fine = tell_facts(s);
    if (s->limit)
        *(is_full(s) ? &s->left : &s->runs) += measured_runs(p);
    if (s->full)
        return fine && (before || (tell_full(s) && sn_pftrace_flush(s->trace)));
    s->spans += p->spans.n;
    for (; s->threads_told < p->threads_seen.n && fine; s->threads_told++)
        fine = sn_pftrace_thread(s->trace, &p->threads_seen.data[s->threads_told]);
    for (; s->steps_told < p->steps.n && fine; s->steps_told++)
        fine = sn_pftrace_step(s->trace, &p->steps.data[s->steps_told]);
    for (; s->lives_told < p->lives.n && fine; s->lives_told++)
        fine = sn_pftrace_life(s->trace, &p->lives.data[s->lives_told]);
    for (size_t i = 0; i < p->spans.n && fine; i++)
        fine = sn_pftrace_slice(s->trace, &p->spans.data[i], arrows_of(s, &p->spans.data[i]));
    for (size_t i = 0; i < p->counters.n && fine; i++)
        fine = sn_pftrace_counter(s->trace, &p->counters.data[i]);
    return fine && sn_pftrace_flush(s->trace);
}

/* One look at all rings. The lock keeps others from clearing them meanwhile. */
static void drain(sn_stream *s, bool last)
{
    sn_records *records = s->records;
    sn_trace *trace = records->ctx->trace;
    bool fine = s->failed == SONDE_OK;
    pthread_mutex_lock(&records->lock);
    const bool others = sn_records_wanted(records) != SN_NO_RECORDS;
    uint64_t dropped = 0;
    const uint64_t until = last ? UINT64_MAX : sn_ticks();
    for (sn_trace_ring *r = atomic_load(&trace->rings); r && fine; r = r->next) {
        fine = drain_ring(s, r, others);
        dropped += atomic_load(&r->dropped);
    }
    pthread_mutex_unlock(&records->lock);
    sn_trace_drained(trace);
    s->builder.p->dropped = dropped;
    if (fine && sn_builder_batch(&s->builder, MOST_WAITING, until, &s->error))
        fine = false;
    if (fine)
        fine = write_batch(s);
    if (!fine && s->failed == SONDE_OK)
        s->failed = s->error.status ? s->error.status : SONDE_IO;
}

static void *drain_main(void *arg)
{
    sn_stream *s = arg;
    pthread_setname_np(pthread_self(), "sonde-trace");
    unsigned hurries = 0;
    while (!atomic_load(&s->stop)) {
        drain(s, false);
        sn_trace_drain_wait(s->records->ctx->trace, INTERVAL_NS, &s->stop, &hurries);
    }
    return NULL;
}

/* ------------------------------------------------------------------ life */
static sonde_status open_file(sn_stream *s, const char *path, sonde_error *err)
{
    const size_t n = strlen(path);
    if (n < 8 || strcmp(path + n - 8, ".pftrace") != 0)
        return sn_fail(
            err, SONDE_INVALID_ARGUMENT,
            "cannot write '%s' while the program runs: only .pftrace files can be streamed", path);
    snprintf(s->path, sizeof s->path, "%s", path);
    return sn_file_writer_open(&s->file, n < sizeof s->path ? s->path : path, SN_WRITE_VISIBLE,
                               err);
}

static void free_stream(sn_stream *s)
{
    sn_file_writer_abandon(&s->file);
    sn_vec_free(&s->positions, s->alloc);
    sn_builder_free(&s->builder);
    sn_free(s->alloc, s, sizeof *s);
}

sonde_status sn_stream_open(sn_stream **stream, sn_records *r, const char *path, uint64_t since,
                            int level, uint32_t categories, bool sampled, uint64_t limit,
                            const sn_labels *labels, sonde_error *err)
{
    *stream = NULL;
    sn_stream *s = sn_alloc_zero(r->ctx->alloc, sizeof *s);
    if (!s)
        return sn_fail_memory(err, sizeof *s);
    s->records = r;
    s->alloc = r->ctx->alloc;
    s->file.fd = -1;
    s->limit = limit;
    s->pid = getpid();
    s->sink = (sn_sink){.write = write_file, .user = s};
    sn_records_shrink(r, STREAM_CAP); /* rings are what stays in memory */
    sn_exec_measure_cost(r->ctx);     /* which the beginning of the file tells */
    sonde_status st = open_file(s, path, err);
    if (st == SONDE_OK)
        st = sn_builder_init(&s->builder, r, since, level, err);
    if (st == SONDE_OK && labels)
        st = sn_labels_put_all(&s->builder.p->labels, labels, err);
    if (st == SONDE_OK) {
        s->builder.p->categories = categories;
        s->builder.only_sampled = sampled;
        s->window = (sn_time_window){.from = since, .to = UINT64_MAX};
        s->builder.windows = &s->window;
        s->builder.n_windows = 1;
        st = sn_pftrace_open(&s->trace, &s->sink, s->builder.p, s->alloc, err);
    }
    s->model_told = s->builder.p ? s->builder.p->model_name : NULL;
    if (st == SONDE_OK && !sn_pftrace_flush(s->trace))
        st = s->file.cause ? sn_file_writer_finish(&s->file, false, err) : sn_fail_memory(err, 1);
    if (st == SONDE_OK && !sn_thread_start(&s->thread, drain_main, s))
        st = sn_fail(err, SONDE_OUT_OF_MEMORY, "cannot start the thread that writes '%s'", path);
    if (st != SONDE_OK) {
        if (s->trace)
            (void)sn_pftrace_close(s->trace, NULL, NULL);
        free_stream(s);
        return st;
    }
    sn_trace_drain_begin(r->ctx->trace);
    s->next = r->streams;
    r->streams = s;
    *stream = s;
    return SONDE_OK;
}

sonde_status sn_stream_close(sn_stream *s, const sn_log *log, sonde_error *err)
{
    if (!s)
        return SONDE_OK;
    if (s->pid != getpid()) { /* a forked child: neither thread nor file are its own */
        free_stream(s);
        return SONDE_OK;
    }
    atomic_store(&s->stop, true);
    sn_trace_drain_hurry(s->records->ctx->trace);
    pthread_join(s->thread, NULL);
    sn_trace_drain_end(s->records->ctx->trace);
    drain(s, true);
    sn_prof_span model;
    if (s->failed == SONDE_OK && sn_builder_model_span(&s->builder, &model))
        (void)sn_pftrace_slice(s->trace, &model, 0);
    sn_records_describe_memory(s->builder.p, s->records);
    sn_machine_describe_counters(s->records->machine, s->builder.p);
    if (s->full && s->failed == SONDE_OK) {
        (void)tell_full(s); /* now all are counted */
        sn_log_write(log, SN_LOG_WARN, "%s: %s", s->path, s->note);
    }
    sonde_status st = sn_pftrace_close(s->trace, s->builder.p, err);
    if (st == SONDE_OK || s->file.cause)
        st = sn_file_writer_finish(&s->file, false, err);
    if (s->failed && st == SONDE_OK)
        st = sn_fail(err, s->failed, "the trace is incomplete: %s",
                     s->error.message[0] ? s->error.message : "it could not be written");
    pthread_mutex_lock(&s->records->lock);
    for (sn_stream **at = &s->records->streams; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            break;
        }
    sn_records_forget(s->records);
    pthread_mutex_unlock(&s->records->lock);
    free_stream(s);
    return st;
}
